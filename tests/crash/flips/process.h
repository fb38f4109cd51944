/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - programs that may hang, crash or refuse: started with their output in files, waited for with patience. */
#ifndef WEIR_CRASH_FLIPS_PROCESS_H
#define WEIR_CRASH_FLIPS_PROCESS_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weir_test.h"

#define WORDS_MAX     48
#define PATH_LENGTH   1024
#define SENTENCE_MAX  400
#define PROCESS_HANGS (-1)
#define JOBS_MAX      64u

typedef struct process {
    pid_t pid;
    int out; /* of its standard output, where it was asked for */
} process;

static inline int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline int open_for(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0640);
    if (fd < 0) fail_msg("%s: %s", path, strerror(errno));
    return fd;
}

/* in: NULL for nothing; out: NULL for a pipe. A crash is counted and leaves no core. */
static inline void process_start(process *p, const char *const *argv, const char *in, const char *out,
                                 const char *err) {
    char *own[WORDS_MAX] = {NULL};
    int ends[2] = {-1, -1};
    if (!out) assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (size_t i = 0; argv[i] && i + 1 < WORDS_MAX; i++)
        memcpy(&own[i], &argv[i], sizeof own[i]);
    int from = open_for(in ? in : "/dev/null", O_RDONLY),
        to = out ? open_for(out, O_WRONLY | O_CREAT | O_TRUNC) : ends[1];
    int errors = open_for(err, O_WRONLY | O_CREAT | O_TRUNC);
    p->out = ends[0];
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (!p->pid) {
        const struct rlimit none = {0, 0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_CORE, &none);
        dup2(from, STDIN_FILENO);
        dup2(to, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        execvp(own[0], own);
        _exit(127);
    }
    close(from);
    close(to);
    close(errors);
}

/* Its exit status, 128 + the signal that ended it, or PROCESS_HANGS; it is gone in each case. */
static inline int process_wait(process *p, int64_t patience_ms) {
    int status;
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    assert_true(fd >= 0);
    bool ended = poll(&end, 1, (int)patience_ms) == 1;
    close(fd);
    if (!ended) kill(p->pid, SIGKILL);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    if (p->out >= 0) close(p->out);
    p->pid = 0;
    if (!ended) return PROCESS_HANGS;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline bool process_has_ended(const process *p) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* A campaign's work, by so many processes at once; each has its number. */
static inline void side_by_side(uint64_t jobs, void (*work)(const void *context, uint64_t job), const void *context) {
    pid_t pids[JOBS_MAX];
    assert_in_range(jobs, 1, JOBS_MAX);
    fflush(NULL);
    for (uint64_t job = 0; job < jobs; job++) {
        pids[job] = fork();
        assert_true(pids[job] >= 0);
        if (!pids[job]) {
            work(context, job);
            fflush(NULL);
            _exit(0);
        }
    }
    for (uint64_t job = 0; job < jobs; job++) {
        int status;
        assert_int_equal(waitpid(pids[job], &status, 0), pids[job]);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("a process of the campaign ended with %#x", status);
    }
}

/* A setting of a campaign, from its script. */
static inline uint64_t environment(const char *name, uint64_t normal) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : normal;
}

/* --- files --------------------------------------------------------------------------------------------------*/

/* The whole file, ended by 0; free it. NULL if there is none. */
static inline char *file_text(const char *path, size_t *lengthp) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    assert_int_equal(fstat(fd, &status), 0);
    char *text = malloc((size_t)status.st_size + 1);
    assert_non_null(text);
    ssize_t got = read(fd, text, (size_t)status.st_size);
    assert_int_equal(got, status.st_size);
    text[got] = 0;
    if (lengthp) *lengthp = (size_t)got;
    close(fd);
    return text;
}

static inline void file_write(const char *path, const char *text, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* The last line that says something: what a person would be told. */
static inline void file_sentence(const char *path, char sentence[SENTENCE_MAX]) {
    char *text = file_text(path, NULL);
    sentence[0] = 0;
    for (char *rest = text, *line; rest && (line = strsep(&rest, "\n"));)
        if (*line) snprintf(sentence, SENTENCE_MAX, "%s", line);
    free(text);
}

#endif /* WEIR_CRASH_FLIPS_PROCESS_H */

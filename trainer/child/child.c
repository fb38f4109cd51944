/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - a program run to its end, with its output in a file. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/signals.h>
#include <weir/trainer/child/child.h>

#define CHILD_LOOK_MS         100 /* between two looks whether a stop is asked for */
#define CHILD_LINE_BYTES      1024u
#define CHILD_ENVIRONMENT_MAX 4096u
#define CHILD_USAGE           64 /* exit statuses, as of WEIR_CODES */
#define CHILD_DATA            65
#define CHILD_SIGNALLED       128 /* and the signal's number, as shells and mpirun say it */

void weir_child_words_add(weir_child_words *words, size_t count, const char *const *more) {
    for (size_t i = 0; i < count; i++) {
        if (!more[i]) continue;
        WEIR_ASSERT(words->count < WEIR_CHILD_WORDS_MAX);
        words->words[words->count++] = more[i];
    }
}

weir_err weir_child_beside(const char *file, char path[WEIR_CHILD_PATH_MAX]) {
    static const char *const places[] = {"", "/../libexec/weir"};
    char folder[WEIR_CHILD_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return WEIR_ERRNO(errno, "cannot find this program's own file by /proc/self/exe");
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    WEIR_ASSERT(slash);
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int written = snprintf(path, WEIR_CHILD_PATH_MAX, "%s%s/%s", folder, places[i], file);
        if (written > 0 && (unsigned)written < WEIR_CHILD_PATH_MAX && access(path, X_OK) == 0) return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EUNAVAILABLE, "%s is neither in %s nor in %s%s; build or install it beside weir", file, folder,
                    folder, places[1]);
}

weir_err weir_child_find_mpirun(char path[WEIR_CHILD_PATH_MAX]) {
    const char *begin = getenv("PATH");
    for (; begin && *begin; begin += *begin == ':') {
        size_t length = strcspn(begin, ":");
        int written = snprintf(path, WEIR_CHILD_PATH_MAX, "%.*s/mpirun", (int)length, begin);
        begin += length;
        if (written <= 0 || (unsigned)written >= WEIR_CHILD_PATH_MAX || access(path, X_OK) != 0) continue;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EUNAVAILABLE, "mpirun is not in PATH; install openmpi-bin, or train with --ranks 1");
}

/* --- what it says ------------------------------------------------------------------------------------------------ */

typedef struct child_output {
    int from;
    bool pass_on;
    weir_file *log;              /* NULL: none */
    char line[CHILD_LINE_BYTES]; /* the last one that has something in it */
    size_t length;
    bool ended;                      /* by its newline */
    char sentence[CHILD_LINE_BYTES]; /* the last line that begins like a sentence of ours: mpirun says more behind it */
} child_output;

static void child_keep_last_line(child_output *o, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            if (!o->ended && strncmp(o->line, "weir ", 5) == 0) memcpy(o->sentence, o->line, sizeof o->sentence);
            o->ended = true;
        } else {
            if (o->ended) o->length = 0;
            o->ended = false;
            if (o->length + 1 < sizeof o->line) o->line[o->length++] = bytes[i];
            o->line[o->length] = 0;
        }
    }
    WEIR_ASSERT(o->length < sizeof o->line);
}

static weir_err child_stopped(const char *goes_on) {
    return WEIR_ERR(WEIR_ECANCELLED, "stopped on request; %s", goes_on);
}

/* To its end, or until a stop is asked for or the log cannot be written: then the child is asked to end. */
static weir_err child_listen(child_output *o, pid_t child, const char *goes_on) {
    char bytes[8192];
    struct pollfd wait = {.fd = o->from, .events = POLLIN};
    weir_err err = WEIR_OK;
    while (!err) {
        if (poll(&wait, 1, CHILD_LOOK_MS) > 0) {
            ssize_t got = read(o->from, bytes, sizeof bytes);
            if (got == 0 || (got < 0 && errno != EINTR)) return WEIR_OK;
            if (got > 0) {
                if (o->log) err = weir_file_append(o->log, bytes, (size_t)got);
                if (o->pass_on && write(STDERR_FILENO, bytes, (size_t)got) < 0) o->pass_on = false;
                child_keep_last_line(o, bytes, (size_t)got);
            }
        }
        if (!err && weir_signals_stop_asked()) err = child_stopped(goes_on);
    }
    kill(child, SIGTERM);
    return err;
}

/* --- starting it ------------------------------------------------------------------------------------------------- */

/* The environment, and behind it what mpirun is to know: its ranks may be more than the cores, and a container's root
 * may start them. Other kinds of mpirun do not mind these. */
static void child_make_environment(char *own[CHILD_ENVIRONMENT_MAX]) {
    static const char *const more[] = {"OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_ALLOW_RUN_AS_ROOT=1",
                                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
    size_t count = 0;
    for (; environ[count] && count + 4 < CHILD_ENVIRONMENT_MAX; count++)
        own[count] = environ[count];
    memcpy(own + count, more, sizeof more); /* posix_spawn does not write to them */
    own[count + 3] = NULL;
}

/* *fromp: what it prints. */
static weir_err child_spawn(const weir_child_words *words, int lock, int *fromp, pid_t *childp) {
    char *arguments[WEIR_CHILD_WORDS_MAX + 1] = {NULL}, *environment[CHILD_ENVIRONMENT_MAX];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return WEIR_ERRNO(errno, "cannot make a pipe");
    *fromp = ends[0];
    memcpy(arguments, words->words, words->count * sizeof arguments[0]);
    child_make_environment(environment);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    if (lock >= 0) posix_spawn_file_actions_adddup2(&files, lock, lock); /* onto itself: it is inherited */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int problem = posix_spawn(childp, arguments[0], &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (!problem) return WEIR_OK;
    *childp = -1;
    return WEIR_ERRNO(problem, "cannot run %s", words->words[0]);
}

/* The statuses of wrong options and wrong data are what it was given; all others are of the machine. */
static weir_err child_judge_end(int status, const child_output *o, const char *program, const char *goes_on) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : CHILD_SIGNALLED + WTERMSIG(status);
    if (!code) return WEIR_OK;
    if (weir_signals_stop_asked()) return child_stopped(goes_on); /* a terminal tells the child, too */
    if (code > CHILD_SIGNALLED) /* mpirun ends so, too, where one of its ranks was ended by a signal */
        return WEIR_ERR(WEIR_EUNAVAILABLE, "%s was ended by signal %d, perhaps for want of memory; %s",
                        strrchr(program, '/') + 1, code - CHILD_SIGNALLED, goes_on);
    const bool own = code == CHILD_USAGE || code == CHILD_DATA;
    const char *last = o->length ? o->line : "it failed and printed nothing";
    return WEIR_ERR(own ? WEIR_EDATA : WEIR_EUNAVAILABLE, "%s", o->sentence[0] ? o->sentence : last);
}

weir_err weir_child_run(const weir_child_words *words, const weir_child_opts *opts, char *last, size_t last_size) {
    child_output output = {.from = -1, .pass_on = opts->pass_on};
    pid_t child = -1;
    int status = 0;
    weir_err err = opts->log ? weir_file_open(opts->log, WEIR_FILE_OPEN_OR_CREATE, &output.log) : WEIR_OK;
    if (!err && output.log) err = weir_file_truncate(output.log, 0);
    if (!err) err = child_spawn(words, opts->lock, &output.from, &child);
    if (!err) err = child_listen(&output, child, opts->goes_on);
    if (child > 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        if (!err) err = child_judge_end(status, &output, words->words[0], opts->goes_on);
    }
    if (output.from >= 0) close(output.from);
    if (output.log) weir_err_keep(&err, weir_file_close(output.log));
    if (last) snprintf(last, last_size, "%s", output.line);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.c - a program run to its end, with its output in a file.
 *
 * It holds the night's lock as long as it lives: a night that was killed is not gone on with while one of its steps
 * still runs. Such a step ends at the next line that nobody reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/signals.h>

#include "nightly_private.h"

#define LOOK_MS         100
#define LINE_MAX_BYTES  1024u
#define ENVIRONMENT_MAX 4096u

void weir_night_word(weir_night_words *words, const char *word) {
    if (!word) return;
    WEIR_ASSERT(words->count < WEIR_NIGHT_WORDS_MAX);
    words->words[words->count++] = word;
}

weir_err weir_night_beside(const char *file, char path[WEIR_NIGHT_PATH_MAX]) {
    static const char *const places[] = {"", "/../libexec/weir"};
    char folder[WEIR_NIGHT_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return WEIR_ERRNO(errno, "cannot find this program's own file by /proc/self/exe");
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    WEIR_ASSERT(slash);
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int written = snprintf(path, WEIR_NIGHT_PATH_MAX, "%s%s/%s", folder, places[i], file);
        if (written > 0 && (unsigned)written < WEIR_NIGHT_PATH_MAX && access(path, X_OK) == 0) return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EUNAVAILABLE, "%s is neither in %s nor in %s%s; build or install it beside weir", file, folder,
                    folder, places[1]);
}

/* --- what it says ------------------------------------------------------------------------------------------------ */

typedef struct listening {
    int from;
    bool pass_on;
    weir_file *log;
    char line[LINE_MAX_BYTES]; /* the last one that has something in it */
    size_t length;
    bool ended;                    /* by its newline */
    char sentence[LINE_MAX_BYTES]; /* the last line that begins like a sentence of ours: mpirun says more behind it */
} listening;

static void keep_last_line(listening *l, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            if (!l->ended && strncmp(l->line, "weir ", 5) == 0) memcpy(l->sentence, l->line, sizeof l->sentence);
            l->ended = true;
        } else {
            if (l->ended) l->length = 0;
            l->ended = false;
            if (l->length + 1 < sizeof l->line) l->line[l->length++] = bytes[i];
            l->line[l->length] = 0;
        }
    }
}

/* false: its end, or an error that is in *errp. */
static bool listen_once(listening *l, weir_err *errp) {
    char bytes[8192];
    struct pollfd wait = {.fd = l->from, .events = POLLIN};
    if (poll(&wait, 1, LOOK_MS) <= 0) return true;
    ssize_t got = read(l->from, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    *errp = weir_file_append(l->log, bytes, (size_t)got);
    if (l->pass_on && write(STDERR_FILENO, bytes, (size_t)got) < 0) l->pass_on = false;
    keep_last_line(l, bytes, (size_t)got);
    return !*errp;
}

static weir_err listen_to(listening *l, pid_t child) {
    weir_err err = WEIR_OK;
    while (listen_once(l, &err)) {
        if (!weir_signals_stop_asked()) continue;
        kill(child, SIGTERM);
        return WEIR_ERR(WEIR_ECANCELLED, "a stop was asked for; --resume goes on with this night");
    }
    if (err) kill(child, SIGTERM);
    return err;
}

static weir_err judge_end(int status, const listening *l, const char *program) {
    const char *name = strrchr(program, '/') + 1;
    if (WIFSIGNALED(status))
        return WEIR_ERR(WEIR_EDATA, "%s was ended by signal %d; --resume goes on", name, WTERMSIG(status));
    if (WEXITSTATUS(status) == 0) return WEIR_OK;
    const char *last = l->length ? l->line : "it failed and said nothing";
    return WEIR_ERR(WEIR_EDATA, "%s", l->sentence[0] ? l->sentence : last);
}

/* --- starting it ------------------------------------------------------------------------------------------------- */

/* The environment, and behind it what mpirun is to know: its ranks may be more than the cores, and a container's root
 * may start them. Other kinds of mpirun do not mind these. */
static void make_environment(char **own) {
    static const char *const more[] = {"OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_ALLOW_RUN_AS_ROOT=1",
                                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
    size_t count = 0;
    for (; environ[count] && count + 4 < ENVIRONMENT_MAX; count++)
        own[count] = environ[count];
    memcpy(own + count, more, sizeof more); /* posix_spawn does not write to them */
    own[count + 3] = NULL;
}

static int spawn_into(const weir_night_words *words, int out, pid_t *childp) {
    char *arguments[WEIR_NIGHT_WORDS_MAX + 1] = {NULL}, *environment[ENVIRONMENT_MAX];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    memcpy(arguments, words->words, words->count * sizeof arguments[0]);
    make_environment(environment);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, words->lock, words->lock); /* onto itself: it is inherited */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int problem = posix_spawn(childp, arguments[0], &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return problem;
}

static weir_err spawn(const weir_night_words *words, listening *l, pid_t *childp) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return WEIR_ERRNO(errno, "cannot make a pipe");
    int problem = spawn_into(words, ends[1], childp);
    close(ends[1]);
    l->from = ends[0];
    if (!problem) return WEIR_OK;
    *childp = -1;
    return WEIR_ERRNO(problem, "cannot run %s", words->words[0]);
}

weir_err weir_night_run(const weir_night_words *words, const char *log, bool pass_on, char *last, size_t last_size) {
    listening l = {.from = -1, .pass_on = pass_on};
    pid_t child = -1;
    int status = 0;
    weir_err err = weir_file_open(log, WEIR_FILE_OPEN_OR_CREATE, &l.log);
    if (!err) err = weir_file_truncate(l.log, 0);
    if (!err) err = spawn(words, &l, &child);
    if (!err) err = listen_to(&l, child);
    if (child > 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        if (!err) err = judge_end(status, &l, words->words[0]);
    }
    if (l.from >= 0) close(l.from);
    weir_err_keep(&err, weir_file_close(l.log));
    if (last) snprintf(last, last_size, "%s", l.line);
    return err;
}

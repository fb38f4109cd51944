/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.h - a real Kafka broker for one test program, started by ops/kafka on a free port in a folder of its own.
 *
 * Starting takes seconds, so main does it once, before the cases; each case has a topic of its own. A watcher process
 * stops the broker and removes the folder when the program ends in any way, by SIGKILL too.
 */
#ifndef WEIR_TEST_KAFKA_BROKER_H
#define WEIR_TEST_KAFKA_BROKER_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weir_test.h"

static char broker_program[PATH_MAX]; /* ops/kafka */
static char broker_folder[64];
static char broker_address[64];
static char broker_absent[512]; /* why there is none */
static int broker_alive_fd = -1;
static pid_t broker_watcher = -1;

/* Runs ops/kafka with these arguments; the caller frees *outputp. */
__attribute__((unused)) static int broker_tool(const char *const *arguments, const char *const *environment,
                                               weir_test_output *outputp) {
    const char *argv[16] = {broker_program};
    size_t count = 1;
    for (; arguments[count - 1]; count++) {
        assert_true(count < sizeof argv / sizeof argv[0] - 1);
        argv[count] = arguments[count - 1];
    }
    weir_test_run(argv, environment, outputp);
    return outputp->status;
}

/* ops/kafka ARGUMENTS… --dir FOLDER must succeed; its output goes with the case's. */
#define broker_do(...) broker_do_these((const char *const[]){__VA_ARGS__, "--dir", broker_folder, NULL})
__attribute__((unused)) static void broker_do_these(const char *const *arguments) {
    weir_test_output output;
    int status = broker_tool(arguments, NULL, &output);
    printf("ops/kafka %s: %s%s", arguments[0], output.out, output.err);
    weir_test_output_free(&output);
    assert_int_equal(status, 0);
}

/* The first thing that a case does. */
__attribute__((unused)) static const char *broker_needed(void) {
    if (!broker_address[0]) weir_test_skip(broker_absent);
    return broker_address;
}

/* The process id that the broker of this folder recorded. */
__attribute__((unused)) static pid_t broker_pid(const char *folder) {
    char path[PATH_MAX + 8], text[32] = "";
    snprintf(path, sizeof path, "%s/pid", folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    long pid = strtol(text, NULL, 10);
    assert_true(pid > 1);
    return (pid_t)pid;
}

__attribute__((unused)) static void broker_kill(void) {
    assert_int_equal(kill(broker_pid(broker_folder), SIGKILL), 0);
}

/* Topics appear when a client asks for one, unless it says that it does not want that: ours must. */
#define BROKER_CONFIG "auto.create.topics.enable=true"

/* Most of a start is Java's own: without its second compiler and its collector of many threads it takes a quarter less,
 * and the broker of a test is started often and never works for long. Java says that it was told so, and the tools of
 * topics repeat what it says, so this is for a start alone. */
__attribute__((unused)) static void broker_start_faster(bool now) {
    if (now)
        setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", 1);
    else
        unsetenv("JDK_JAVA_OPTIONS");
}

/* The same data at the same port. */
__attribute__((unused)) static void broker_start_again(void) {
    broker_start_faster(true);
    broker_do("up", "--port", strrchr(broker_address, ':') + 1, "--config", BROKER_CONFIG);
    broker_start_faster(false);
}

/* Waits for the end of the other side of the pipe, then cleans up. */
_Noreturn static void broker_watch(int ended_fd) {
    static const char script[] = "for d in \"$1\" \"$1\"/*/; do "
                                 "if [ -e \"$d/pid\" ]; then \"$0\" down --dir \"$d\"; fi; done; rm -rf \"$1\"";
    char byte;
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    while (read(ended_fd, &byte, 1) < 0 && errno == EINTR) {
    }
    execl("/bin/sh", "sh", "-c", script, broker_program, broker_folder, (char *)NULL);
    _exit(127);
}

static void broker_start_watcher(void) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    broker_watcher = fork();
    if (broker_watcher == 0) {
        close(ends[1]);
        broker_watch(ends[0]);
    }
    close(ends[0]);
    broker_alive_fd = ends[1];
}

__attribute__((format(printf, 1, 2))) static void broker_none(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(broker_absent, sizeof broker_absent, format, arguments);
    va_end(arguments);
}

static void broker_find_program(void) {
    const char *source = getenv("WEIR_SOURCE_DIR");
    snprintf(broker_program, sizeof broker_program, "%s/ops/kafka", source && *source ? source : ".");
    if (access(broker_program, X_OK) != 0) broker_none("no %.400s; set WEIR_SOURCE_DIR", broker_program);
}

/* The folder, and what cleans it up with the brokers in it and in its subfolders. */
static bool broker_prepare(void) {
    broker_find_program();
    strcpy(broker_folder, "/tmp/weir-kafka-XXXXXX");
    if (broker_absent[0] || !mkdtemp(broker_folder)) return false;
    broker_start_watcher();
    return true;
}

static void broker_need(int status, const char *command, const weir_test_output *output) {
    if (status == 0) return;
    fprintf(stderr, "ops/kafka %s: status %d: %s\n", command, status, output->err);
    exit(1);
}

/* Where `ops/kafka install` says that something is missing, as Java or a repository of jars, the cases are skipped with
 * its sentence. Any other failure, and a broker that does not start, fails the program. */
__attribute__((unused)) static void broker_start(void) {
    if (!broker_prepare()) return;
    weir_test_output output;
    weir_test_run((const char *const[]){broker_program, "install", "--dir", broker_folder, NULL}, NULL, &output);
    if (output.status == 69)
        broker_none("%.*s", (int)strcspn(output.err, "\n"), output.err);
    else
        broker_need(output.status, "install", &output);
    weir_test_output_free(&output);
    if (broker_absent[0]) return;
    broker_start_faster(true);
    weir_test_run((const char *const[]){broker_program, "up", "--port", "0", "--config", BROKER_CONFIG, "--dir",
                                        broker_folder, NULL},
                  NULL, &output);
    broker_start_faster(false);
    broker_need(output.status, "up", &output);
    snprintf(broker_address, sizeof broker_address, "%.*s", (int)strcspn(output.out, "\n"), output.out);
    weir_test_output_free(&output);
}

static void broker_stop(void) {
    if (broker_alive_fd < 0) return;
    close(broker_alive_fd);
    waitpid(broker_watcher, NULL, 0);
}

/* WEIR_TESTS with `begin` before them, which is broker_start or broker_prepare. Starting a broker within a case takes
 * seconds, and many on a busy machine. */
#define WEIR_BROKER_TESTS(begin, ...)                                                   \
    int main(int argc, char **argv) {                                                   \
        static const weir_test_case cases[] = {__VA_ARGS__};                            \
        setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "12", 0);                                \
        if (argc < 2 || strcmp(argv[1], "--list") != 0) begin();                        \
        int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv); \
        broker_stop();                                                                  \
        return status;                                                                  \
    }

#endif /* WEIR_TEST_KAFKA_BROKER_H */

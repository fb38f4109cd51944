/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kafka as a user runs it: twice, side by side, with a stranger's process id, on a busy port, without Java. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "broker.h"

#define ARGUMENTS_MAX 16

static char folder[PATH_MAX]; /* of this case */

/* ops/kafka ARGUMENTS… in this case's folder. */
#define kafka(outputp, ...) kafka_in(folder, NULL, (outputp), (const char *const[]){__VA_ARGS__, NULL})
static int kafka_in(const char *dir, const char *const *environment, weir_test_output *outputp,
                    const char *const *arguments) {
    const char *argv[ARGUMENTS_MAX] = {broker_program};
    size_t count = 1;
    for (; arguments[count - 1]; count++)
        argv[count] = arguments[count - 1];
    argv[count++] = "--dir";
    argv[count] = dir;
    weir_test_run(argv, environment, outputp);
    printf("ops/kafka %s: %d\n%s%s", arguments[0], outputp->status, outputp->out, outputp->err);
    return outputp->status;
}

/* It must exit so, and say this on stdout or stderr. */
#define expect(status, text, ...) expect_in(folder, NULL, (status), (text), (const char *const[]){__VA_ARGS__, NULL})
static void expect_in(const char *dir, const char *const *environment, int status, const char *text,
                      const char *const *arguments) {
    weir_test_output output;
    assert_int_equal(kafka_in(dir, environment, &output, arguments), status);
    if (!strstr(output.out, text)) assert_non_null(strstr(output.err, text));
    weir_test_output_free(&output);
}

static void begin(const char *name) {
    if (broker_absent[0]) weir_test_skip(broker_absent);
    snprintf(folder, sizeof folder, "%s/%s", broker_folder, name);
}

/* Also where no broker can run: then the case has nothing to show. */
static void begin_installed(const char *name) {
    weir_test_output output;
    begin(name);
    if (kafka(&output, "install") != 0) weir_test_skip(output.err);
    weir_test_output_free(&output);
}

static void begin_running(const char *name, char address[64]) {
    weir_test_output output;
    begin_installed(name);
    assert_int_equal(kafka(&output, "up", "--port", "0"), 0);
    snprintf(address, 64, "%.*s", (int)strcspn(output.out, "\n"), output.out);
    weir_test_output_free(&output);
}

static void write_file(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "wxe"); // never through a link to something else
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void write_pid(pid_t pid) {
    char path[PATH_MAX + 8], text[32];
    snprintf(path, sizeof path, "%s/pid", folder);
    snprintf(text, sizeof text, "%d\n", (int)pid);
    assert_int_equal(unlink(path), 0);
    write_file(path, text, 0644);
}

static void wrong_usage(void **state) {
    (void)state;
    begin("usage");
    expect(64, "usage: ops/kafka", "");
    expect(64, "'upp' is unknown", "upp");
    expect(64, "unknown option '--prot'", "up", "--prot", "1");
    expect(64, "--port takes a number from 0 to 65535, not 'x'", "up", "--port", "x");
    expect(64, "not '65536'", "up", "--port=65536");
    expect(64, "'down' takes no --port", "down", "--port", "1");
    expect(64, "'status' takes no 'now'", "status", "now");
    expect(64, "topic needs create, ls, show, put or rm", "topic");
    expect(64, "'topic make' is unknown", "topic", "make", "t");
    expect(64, "'a b' cannot name a topic", "topic", "create", "a b");
    expect(64, "--partitions takes a number from 1 to 9999, not '0'", "topic", "create", "t", "--partitions", "0");
    expect(64, "KEY=VALUE", "topic", "create", "t", "--config", "x");
    expect(0, "Exit status:", "--help");
    expect(0, "ops/kafka topic create NAME", "topic", "--help");
}

static void nothing_runs(void **state) {
    (void)state;
    begin("nothing");
    expect(3, "not running; start it with ops/kafka up", "status");
    expect(0, "not running", "down");
    expect(69, "the broker is not running; start it with ops/kafka up", "topic", "ls");
}

static void up_twice_and_down_twice(void **state) {
    (void)state;
    char address[64];
    begin_running("twice", address);
    expect(0, address, "up");
    expect(0, "runs already", "up");
    expect(0, address, "status");
    expect(69, "it runs already at port", "up", "--port", "1");
    expect(0, "stopped", "down");
    expect(0, "not running", "down");
    expect(3, "not running", "status");
}

static void topics(void **state) {
    (void)state;
    char address[64];
    begin_running("topics", address);
    expect(0, "", "topic", "create", "pay", "--partitions", "3");
    expect(0, "there already (3 partitions)", "topic", "create", "pay");
    expect(69, "there already with 3 partitions; remove it first: ops/kafka topic rm pay", "topic", "create", "pay",
           "--partitions", "4");
    expect(69, "no topic 'way'", "topic", "show", "way");
    expect(69, "no topic 'way'", "topic", "rm", "way");
    expect(69, "nonsense", "topic", "create", "odd", "--config", "nonsense=1");
    expect(0, "pay  3 partitions", "topic", "ls");
    expect(0, "pay  3 partitions", "status");
    expect(0, "retention.ms=-1", "topic", "show", "pay");
    expect(0, "", "topic", "rm", "pay");
    expect(0, "topics   0", "status");
    expect(0, "", "topic", "create", "kept", "--partitions", "1");
    expect(0, "is ready", "reset");
    expect(0, address, "status"); // the port stays, the data does not
    expect(0, "topics   0", "status");
    expect(0, "stopped", "down");
}

static void busy_port(void **state) {
    (void)state;
    char address[64], other[PATH_MAX + 8];
    begin_running("busy", address);
    snprintf(other, sizeof other, "%s-other", folder);
    const char *port = strrchr(address, ':') + 1;
    char sentence[128];
    snprintf(sentence, sizeof sentence, "port %s is in use by another program", port);
    expect_in(other, NULL, 69, sentence, (const char *const[]){"up", "--port", port, NULL});
    expect_in(other, NULL, 3, "not running", (const char *const[]){"status", NULL});
    expect(0, "stopped", "down");
}

/* Killed, and its number given to somebody else: who must not be killed, nor taken for the broker. */
static void recycled_process_id(void **state) {
    (void)state;
    char address[64];
    begin_running("recycled", address);
    expect(0, "", "topic", "create", "kept", "--partitions", "1");
    assert_int_equal(kill(broker_pid(folder), SIGKILL), 0);
    write_pid(getpid());
    expect(3, "not running", "status");
    expect(0, address, "up");
    expect(0, "kept  1 partition", "status");
    expect(0, "stopped", "down");
}

/* It is still there when `up` looks, as one that was killed a moment ago may be, and ends while `up` waits. */
static void one_that_ends_meanwhile_is_started_again(void **state) {
    (void)state;
    char address[64];
    begin_running("meanwhile", address);
    const pid_t broker = broker_pid(folder), killer = kill(broker, SIGSTOP) == 0 ? fork() : -1;
    assert_true(killer >= 0);
    if (killer == 0) {
        usleep(1000000);
        _exit(kill(broker, SIGKILL) != 0);
    }
    expect(0, address, "up");
    int status;
    assert_int_equal(waitpid(killer, &status, 0), killer);
    assert_int_equal(status, 0);
    assert_true(broker_pid(folder) != broker);
    expect(0, "stopped", "down");
}

static void two_at_once_start_one(void **state) {
    (void)state;
    begin_installed("race");
    static const char script[] = "\"$0\" up --dir \"$1\" --port 0 & \"$0\" up --dir \"$1\" --port 0; here=$?\n"
                                 "wait $!; exit $((here + $?))";
    const char *const argv[] = {"/bin/sh", "-c", script, broker_program, folder, NULL};
    weir_test_output output;
    weir_test_run(argv, NULL, &output);
    printf("%s%s", output.out, output.err);
    assert_int_equal(output.status, 0);
    assert_non_null(strstr(output.err, "runs already"));
    assert_non_null(strstr(output.err, "is ready"));
    weir_test_output_free(&output);
    expect(0, "stopped", "down");
}

static void refused_setting_is_named(void **state) {
    (void)state;
    begin_installed("refused");
    expect(69, "log.segment.bytes", "up", "--port", "0", "--config", "log.segment.bytes=abc");
    expect(3, "not running", "status");
}

static void folder_of_somebody_else(void **state) {
    (void)state;
    char path[PATH_MAX + 16];
    begin("foreign");
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/data", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/data/thesis", folder);
    write_file(path, "years of work\n", 0644);
    expect(69, "does not look like Kafka's data", "up");
    expect(69, "does not look like Kafka's data", "reset");
    assert_int_equal(access(path, R_OK), 0);
}

/* --- what is missing --- */

/* A PATH with these tools and no others; its folder. */
static const char *narrow_path(const char *tools) {
    static char path[PATH_MAX + 8];
    char link[PATH_MAX + 64], names[256], *rest = names;
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/bin", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(names, sizeof names, "%s", tools);
    for (char *name = strsep(&rest, " "); name; name = strsep(&rest, " ")) {
        char target[64];
        snprintf(target, sizeof target, "/usr/bin/%s", name);
        snprintf(link, sizeof link, "%s/%s", path, name);
        assert_int_equal(symlink(target, link), 0);
    }
    return path;
}

#define TOOLS "bash env dirname basename cat cmp mkdir flock grep sed head rm mv sha256sum"

static void expect_missing(const char *path, const char *sentence, const char *command) {
    char path_line[PATH_MAX + 16], lib_line[PATH_MAX + 32];
    snprintf(path_line, sizeof path_line, "PATH=%s", path);
    snprintf(lib_line, sizeof lib_line, "KAFKA_DEV_LIB=%s/lib", folder);
    const char *const environment[] = {path_line, lib_line, "JAVA_HOME=", NULL};
    expect_in(folder, environment, 69, sentence, (const char *const[]){command, NULL});
}

static void no_java(void **state) {
    (void)state;
    begin("java");
    const char *path = narrow_path(TOOLS);
    expect_missing(path, "install the package openjdk-17-jre-headless", "up");
    expect_missing(path, "install the package openjdk-17-jre-headless", "install");
}

/* A program of this name in a narrow PATH. */
static void add_program(const char *path, const char *name, const char *text) {
    char file[PATH_MAX + 16];
    snprintf(file, sizeof file, "%s/%s", path, name);
    write_file(file, text, 0755);
}

static void no_maven(void **state) {
    (void)state;
    begin("maven");
    const char *path = narrow_path(TOOLS);
    add_program(path, "java", "#!/usr/bin/env bash\nexit 0\n");
    expect_missing(path, "install the package maven", "install");
}

static void no_network(void **state) {
    (void)state;
    begin("network");
    const char *path = narrow_path(TOOLS);
    add_program(path, "java", "#!/usr/bin/env bash\nexit 0\n");
    add_program(path, "mvn",
                "#!/usr/bin/env bash\n"
                "echo '[ERROR] Could not transfer artifact x from/to central: repo.example: Unknown host'\nexit 1\n");
    expect_missing(path, "Maven reached no repository", "install");
    expect_missing(path, "~/.m2/settings.xml", "up");
}

static void altered_jars(void **state) {
    (void)state;
    begin("altered");
    const char *path = narrow_path(TOOLS);
    add_program(path, "java", "#!/usr/bin/env bash\nexit 0\n");
    add_program(path, "mvn",
                "#!/usr/bin/env bash\n"
                "for a; do case $a in -DoutputDirectory=*) mkdir -p \"${a#*=}\"; "
                "echo evil >\"${a#*=}/kafka_2.13-3.9.1.jar\" ;; esac; done\n");
    expect_missing(path, "a jar is not the one that ops/kafka.d/jars.sha256 names", "install");
}

WEIR_BROKER_TESTS(broker_prepare, WEIR_CASE(wrong_usage), WEIR_CASE(nothing_runs), WEIR_CASE(up_twice_and_down_twice),
                  WEIR_CASE(topics), WEIR_CASE(busy_port), WEIR_CASE(recycled_process_id),
                  WEIR_CASE(one_that_ends_meanwhile_is_started_again), WEIR_CASE(two_at_once_start_one),
                  WEIR_CASE(refused_setting_is_named), WEIR_CASE(folder_of_somebody_else), WEIR_CASE(no_java),
                  WEIR_CASE(no_maven), WEIR_CASE(no_network), WEIR_CASE(altered_jars))

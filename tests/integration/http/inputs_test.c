/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs_test.c - what may be wrong around `weir serve`: a full disk, a torn or flipped file, a second server, another
 * schema. Each is one sentence that names what is wrong; nothing acknowledged is lost, nothing wrong is served.
 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "serve_payments.h"
#include "shell.h"

enum { ACCOUNTS = 40, EVENTS = 400, FLIPS = 12, FILES_MAX = 256 };

/* --- a data folder and its answers ------------------------------------------------------------------------------ */

static int post(const serve_child *server, unsigned first, unsigned count, char problem[1024]) {
    static char body[EVENTS * 256];
    size_t length = 0;
    for (unsigned i = first; i < first + count; i++)
        length += (size_t)snprintf(body + length, sizeof body - length,
                                   "{\"id\":\"p%u\",\"time\":\"2026-01-05T10:%02u:%02uZ\",\"account\":\"a%u\","
                                   "\"card\":\"c%u\",\"amount\":%u,\"currency\":\"EUR\",\"channel\":\"web\"}\n",
                                   i, i / 60 % 60, i % 60, i % ACCOUNTS, i % 7, i);
    return serve_post_lines(server, body, length, problem, 1024);
}

/* The neighbours of an account, as text; an error's detail is printed, and NULL. */
static char *neighbors(const serve_child *server, unsigned account) {
    char text[256];
    http_answer answer;
    snprintf(text, sizeof text, "GET /v1/neighbors/account/a%u?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n",
             account);
    client_ask(server->port, text, &answer);
    json_t *root = json_loads(answer.body ? answer.body : "", 0, NULL);
    char *found = answer.status == 200 ? json_dumps(json_object_get(root, "neighbors"), JSON_SORT_KEYS) : NULL;
    if (!found) printf("%d %s", answer.status, answer.body ? answer.body : "no answer\n");
    json_decref(root);
    answer_free(&answer);
    return found;
}

static char said_path[512]; /* stderr of the server that was started last */

/* Starts; false: it did not come up, and said why in one sentence that contains `word`. */
static bool start(serve_child *server, const char *data, const char *word, const char *const *more) {
    static unsigned starts;
    char line[2048] = "";
    int status;
    snprintf(said_path, sizeof said_path, "%s.%u.err", data, starts++);
    fflush(NULL);
    int kept = dup(STDERR_FILENO), file = open(said_path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    serve_start(server, data, more);
    dup2(kept, STDERR_FILENO);
    close(file);
    close(kept);
    if (server->port) return true;
    waitpid(server->pid, &status, 0);
    close(server->out);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) >= 65 && WEXITSTATUS(status) <= 78);
    assert_int_not_equal(WEXITSTATUS(status), 70); /* no mistake of ours */
    FILE *said = fopen(said_path, "re");
    assert_non_null(said);
    size_t length = fread(line, 1, sizeof line - 1, said);
    fclose(said);
    const char *sentence = strstr(line, "weir serve: ");
    printf("%s", sentence ? sentence : line);
    assert_non_null(sentence);
    assert_ptr_equal(strchr(sentence, '\n'), line + length - 1);
    assert_non_null(strstr(sentence, word));
    return false;
}

static void stop(serve_child *server) {
    assert_int_equal(serve_end(server, SIGTERM), 0);
}

static const char *const seals[] = {"--set", "store.seal_interval=50ms", NULL};

/* Several seals' worth of events in NAME; the right answers, which the caller frees. */
static void make_data(const char *name, char *answers[ACCOUNTS]) {
    serve_child server;
    char problem[1024];
    assert_true(start(&server, weir_test_path(name), "", seals));
    serve_await(&server, "/readyz", NULL, 200, NULL);
    for (unsigned i = 0; i < EVENTS; i += EVENTS / 4) {
        assert_int_equal(post(&server, i, EVENTS / 4, problem), 200);
        usleep(80000);
    }
    stop(&server);
    assert_true(start(&server, weir_test_path(name), "", seals));
    serve_await(&server, "/readyz", NULL, 200, NULL);
    for (unsigned a = 0; a < ACCOUNTS; a++) {
        answers[a] = neighbors(&server, a);
        assert_non_null(answers[a]);
    }
    stop(&server);
}

static void free_answers(char *answers[ACCOUNTS]) {
    for (unsigned a = 0; a < ACCOUNTS; a++)
        free(answers[a]);
}

/* Each answer is the right one, or an error. Returns how many are right. */
static unsigned nothing_wrong_is_served(const serve_child *server, char *const answers[ACCOUNTS]) {
    unsigned right = 0;
    for (unsigned a = 0; a < ACCOUNTS; a++) {
        char *found = neighbors(server, a);
        if (found) assert_string_equal(found, answers[a]);
        right += found != NULL;
        free(found);
    }
    return right;
}

/* --- what stands in the way of a start -------------------------------------------------------------------------- */

static void a_second_server_on_the_same_data_is_refused(void **state) {
    (void)state;
    char *answers[ACCOUNTS];
    serve_child first, second;
    make_data("data", answers);
    assert_true(start(&first, weir_test_path("data"), "", NULL));
    assert_false(start(&second, weir_test_path("data"), "is locked by process", NULL));
    serve_await(&first, "/readyz", NULL, 200, NULL);
    assert_int_equal(nothing_wrong_is_served(&first, answers), ACCOUNTS);
    stop(&first);
    free_answers(answers);
}

static void a_schema_that_does_not_match_the_data_is_refused(void **state) {
    (void)state;
    char *answers[ACCOUNTS];
    serve_child server;
    make_data("data", answers);
    const char *const other[] = {"--schema", weir_test_path("other.yaml"), NULL};
    shell("$weir schema show payments | sed 's/name: payments/name: other/' > $folder/other.yaml");
    assert_false(start(&server, weir_test_path("data"), "the schema was 'payments' and is 'other'", other));
    assert_true(start(&server, weir_test_path("data"), "", NULL));
    serve_await(&server, "/readyz", NULL, 200, NULL);
    assert_int_equal(nothing_wrong_is_served(&server, answers), ACCOUNTS);
    stop(&server);
    free_answers(answers);
}

static void a_torn_table_is_named_or_made_anew(void **state) {
    (void)state;
    char *answers[ACCOUNTS];
    serve_child server;
    const char *const by_hand[] = {"--set", "store.repair=false", NULL};
    make_data("data", answers);
    shell("cd $data; tables=(store/shard-000/*.sst); cp -r . ../torn; truncate -s -700 ../torn/${tables[0]}; "
          "cp -r ../torn ../alone");
    assert_false(start(&server, weir_test_path("torn"), "shard-000", by_hand));
    /* What the sentence advises: the log has it all. */
    shell("find $folder/torn/store/shard-000 -type f ! -name identity -delete");
    for (int i = 0; i < 2; i++) {
        assert_true(start(&server, weir_test_path(i ? "alone" : "torn"), "", i ? NULL : by_hand));
        serve_await(&server, "/readyz", NULL, 200, NULL);
        assert_int_equal(nothing_wrong_is_served(&server, answers), ACCOUNTS);
        stop(&server);
    }
    assert_true(weir_path_exists(weir_test_path("alone/store/shard-000.damaged")));
    free_answers(answers);
}

/* --- a flipped bit in any file ---------------------------------------------------------------------------------- */

static struct {
    char paths[FILES_MAX][512];
    off_t sizes[FILES_MAX];
    size_t count;
} files;

static int see_file(const char *path, const struct stat *status, int kind) {
    if (kind != FTW_F || status->st_size == 0) return 0;
    assert_true(files.count < FILES_MAX);
    snprintf(files.paths[files.count], sizeof files.paths[0], "%s", path);
    files.sizes[files.count++] = status->st_size;
    return 0;
}

static void flip_bit(const char *path, off_t at, unsigned bit) {
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= (uint8_t)(1u << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Any file as likely as any other, any bit of it. */
static const char *flip(weir_rng *rng, const char *folder) {
    files.count = 0;
    assert_int_equal(ftw(folder, see_file, 16), 0);
    size_t i = weir_rng_below(rng, files.count);
    off_t at = (off_t)weir_rng_below(rng, (uint64_t)files.sizes[i]);
    unsigned bit = (unsigned)weir_rng_below(rng, 8);
    flip_bit(files.paths[i], at, bit);
    printf("\nbit %u of byte %jd of %s\n", bit, (intmax_t)at, files.paths[i]);
    return files.paths[i];
}

/* The server's log names the file that it could not read. */
static void log_names(const char *file) {
    char line[4096];
    bool named = false;
    FILE *log = fopen(said_path, "re");
    assert_non_null(log);
    while (!named && fgets(line, sizeof line, log))
        named = strstr(line, strrchr(file, '/')) != NULL;
    fclose(log);
    if (named) printf("%s", line);
    assert_true(named);
}

static bool was_set_aside(const char *folder) {
    char path[4096];
    bool found = false;
    for (unsigned shard = 0; shard < 2; shard++) {
        snprintf(path, sizeof path, "%s/store/shard-%03u.damaged", folder, shard);
        found = found || weir_path_exists(path);
    }
    return found;
}

/* Refused with a sentence that says where, or the answers are right, or errors whose file the log names; or what was
 * damaged is set aside, and all is right once the log has filled its place. */
static void a_flipped_bit_is_found_or_harmless(void **state) {
    (void)state;
    char *answers[ACCOUNTS];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    make_data("data", answers);
    for (uint64_t round = 0; round < weir_test_rounds(FLIPS); round++) {
        serve_child server;
        shell("rm -rf $folder/flipped; cp -r $data $folder/flipped");
        const char *file = flip(&rng, weir_test_path("flipped"));
        if (!start(&server, weir_test_path("flipped"), "flipped/", NULL)) continue;
        unsigned right = nothing_wrong_is_served(&server, answers);
        printf("starts; %u of %d answers are right, the rest are errors\n", right, ACCOUNTS);
        if (was_set_aside(weir_test_path("flipped"))) {
            serve_await(&server, "/readyz", NULL, 200, NULL);
            right = nothing_wrong_is_served(&server, answers);
            assert_int_equal(right, ACCOUNTS);
        }
        stop(&server);
        if (right < ACCOUNTS) log_names(file);
    }
    free_answers(answers);
}

/* Another number of shards would look for vertices where they are not: no bit of this file may change unseen. */
static void a_flipped_bit_of_the_description_is_refused(void **state) {
    (void)state;
    char *answers[ACCOUNTS], path[512], store[512];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    struct stat status;
    make_data("data", answers);
    snprintf(store, sizeof store, "%s/store", weir_test_path("data"));
    snprintf(path, sizeof path, "%s/graph.yaml", store);
    assert_int_equal(stat(path, &status), 0);
    for (off_t at = 0; at < status.st_size; at++) {
        const char *const stats[] = {weir_test_program(), "store", "stats", "--path", store, NULL};
        unsigned bit = (unsigned)weir_rng_below(&rng, 8);
        weir_test_output output;
        flip_bit(path, at, bit);
        weir_test_run(stats, NULL, &output);
        if (output.status != 65) fail_msg("bit %u of byte %jd: %s%s", bit, (intmax_t)at, output.out, output.err);
        assert_non_null(strstr(output.err, "graph.yaml is damaged"));
        weir_test_output_free(&output);
        flip_bit(path, at, bit);
    }
    free_answers(answers);
}

/* --- a full disk ------------------------------------------------------------------------------------------------ */

static void mount_small(const char *folder) {
    assert_int_equal(mkdir(folder, 0700), 0);
    if (mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=8m") != 0)
        weir_test_skip("a file system of 8 MiB cannot be mounted here: that takes root");
}

/* What was acknowledged before the disk was full is there, what was not is taken when there is room again. */
static void a_full_disk_loses_nothing(void **state) {
    (void)state;
    serve_child server;
    char problem[1024] = "", data[512];
    unsigned taken = 0, most = EVENTS / 4;
    snprintf(data, sizeof data, "%s/data", weir_test_path("small"));
    mount_small(weir_test_path("small"));
    assert_true(start(&server, data, "", seals));
    serve_await(&server, "/readyz", NULL, 200, NULL);
    shell("fallocate -l $(($(stat -f -c '%f * %S' $folder/small) - 600000)) $folder/small/ballast");
    while (post(&server, taken, most, problem) == 200)
        taken += most;
    printf("%u events, then %s", taken, problem);
    assert_non_null(strstr(problem, "No space left on device; free some space and try again"));
    assert_int_equal(serve_end(&server, SIGTERM), 69); /* it says at its end, too, that something is missing */
    shell("rm $folder/small/ballast");
    assert_true(start(&server, data, "", seals));
    serve_await(&server, "/readyz", NULL, 200, NULL);
    assert_int_equal(post(&server, taken, most, problem), 200);
    char part[64];
    snprintf(part, sizeof part, "\"p%u\"", taken ? taken - 1 : 0);
    char path[64];
    snprintf(path, sizeof path, "/v1/neighbors/account/a%u?limit=1000", (taken ? taken - 1 : 0) % ACCOUNTS);
    serve_await(&server, path, NULL, 200, part);
    stop(&server);
    shell("$weir store verify --against-log --path $folder/small/data/store --log $folder/small/data/eventlog");
    umount2(weir_test_path("small"), MNT_DETACH);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {
        WEIR_CASE(a_second_server_on_the_same_data_is_refused),
        WEIR_CASE(a_schema_that_does_not_match_the_data_is_refused),
        WEIR_CASE(a_torn_table_is_named_or_made_anew),
        WEIR_CASE(a_flipped_bit_is_found_or_harmless),
        WEIR_CASE(a_flipped_bit_of_the_description_is_refused),
        WEIR_CASE(a_full_disk_loses_nothing),
    };
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "6", 0);
    return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}

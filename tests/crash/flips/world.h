/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - the small data folder that is damaged, and the truth about it.
 *
 *   d/store  d/eventlog  d/checkpoints/c  d/models  d/models.key  d/models.pub  d/keys  d/nights/n      parts
 *
 * All of it is made by the programs themselves: payments and chargebacks over HTTP into a server, seal after seal, one
 * message that becomes a dead letter, a checkpoint of the running server, a night of training, parts of its snapshot.
 * What was sent is this file's own: each answer that becomes the truth is first held against it.
 */
#ifndef WEIR_CRASH_FLIPS_WORLD_H
#define WEIR_CRASH_FLIPS_WORLD_H

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "ask.h"

#define PAYMENTS        800u
#define BATCHES         10u /* a seal each; the next ones make the shards merge sorted files */
#define PAYMENT_MAX     320u
#define ACCOUNTS        40u
#define MERCHANTS       12u
#define FIRST_PAYMENT_S 1735689600 /* 2025-01-01 */
#define PAYMENT_EVERY_S 9720
#define QUESTIONS_MAX   256u
#define NEW_PREFIX      'n' /* keys of what is sent after the damage begin so, and no others */

typedef struct question {
    const char *method;
    char path[128], body[128];
    char *answer; /* as ask_normal leaves it */
} question;

typedef struct world {
    char folder[PATH_LENGTH];
    question questions[QUESTIONS_MAX];
    size_t question_count;
    char *export, *log, *letters, *trained, *resumed; /* what commands print or write, in their normal form */
} world;

/* --- what is sent -------------------------------------------------------------------------------------------*/

static inline double payment_amount(unsigned n) {
    weir_rng rng = weir_rng_stream(7, n, 0);
    return (double)(100 + weir_rng_below(&rng, 90000)) / 100;
}

/* prefix: of all its keys. */
static inline int payment_text(char text[PAYMENT_MAX], const char *prefix, unsigned n) {
    static const char *const channels[] = {"web", "app", "pos"};
    weir_rng rng = weir_rng_stream(7, n, 1);
    char time_text[32];
    time_t at = FIRST_PAYMENT_S + (time_t)n * PAYMENT_EVERY_S;
    struct tm tm;
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    unsigned account = (unsigned)weir_rng_below(&rng, ACCOUNTS);
    return snprintf(text, PAYMENT_MAX,
                    "{\"id\":\"%sp%u\",\"time\":\"%s\",\"account\":\"%sa%u\",\"card\":\"%sc%u\",\"device\":\"%sd%u\","
                    "\"merchant\":\"%sm%u\",\"amount\":%.2f,\"currency\":\"EUR\",\"channel\":\"%s\",\"mcc\":\"%u\"}\n",
                    prefix, n, time_text, prefix, account, prefix, account + (unsigned)weir_rng_below(&rng, 2) * 100,
                    prefix, (unsigned)weir_rng_below(&rng, 60), prefix, (unsigned)weir_rng_below(&rng, MERCHANTS),
                    payment_amount(n), channels[n % 3], 5000 + n % 7);
}

static inline char *payments_text(const char *prefix, unsigned from, unsigned count) {
    char *text = malloc((size_t)count * PAYMENT_MAX + 1);
    size_t length = 0;
    assert_non_null(text);
    for (unsigned n = from; n < from + count; n++)
        length += (size_t)payment_text(text + length, prefix, n);
    return text;
}

/* Each fourth payment, ten days later: enough of both classes in each part of the time to learn from. */
static inline char *chargebacks_text(void) {
    char *text = malloc((size_t)PAYMENTS * PAYMENT_MAX);
    size_t length = 0;
    assert_non_null(text);
    for (unsigned n = 0; n < PAYMENTS; n += 4) {
        time_t at = FIRST_PAYMENT_S + (time_t)n * PAYMENT_EVERY_S + 864000;
        char time_text[32];
        struct tm tm;
        strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
        length +=
            (size_t)sprintf(text + length, "{\"id\":\"b%u\",\"time\":\"%s\",\"payment\":\"p%u\",\"label\":\"fraud\"}\n",
                            n, time_text, n);
    }
    return text;
}

/* --- programs on a folder -----------------------------------------------------------------------------------*/

/* One server on FOLDER/d; it has sealed a moment after it took something. */
static inline void server_start(process *server, const char *folder) {
    char data[PATH_LENGTH], keys[PATH_LENGTH], public[PATH_LENGTH + 32], err[PATH_LENGTH];
    snprintf(data, sizeof data, "%s/d", folder);
    snprintf(keys, sizeof keys, "%s/d/keys", folder);
    snprintf(public, sizeof public, "models.public_keys=%s/d/models.pub", folder);
    snprintf(err, sizeof err, "%s/serve.err", folder);
    const char *const argv[] = {weir_test_program(),
                                "serve",
                                "--listen",
                                "127.0.0.1:0",
                                "--schema",
                                "payments",
                                "--data",
                                data,
                                "--keys",
                                keys,
                                "--set",
                                public,
                                "--set",
                                "store.seal_interval=20ms",
                                "--set",
                                "store.shards=2",
                                "--set",
                                "eventlog.partitions=2",
                                "--set",
                                "eventlog.segment_bytes=64KiB",
                                "--set",
                                "log.level=error",
                                NULL};
    process_start(server, argv, NULL, NULL, err);
}

/* 0: it has ended, or hangs. */
static inline uint16_t server_port(const process *server, int64_t patience_ms) {
    char line[1024] = "";
    size_t length = 0;
    int64_t end_ms = now_ms() + patience_ms;
    while (length + 1 < sizeof line && !strchr(line, '\n')) {
        struct pollfd wait = {.fd = server->out, .events = POLLIN};
        int64_t left_ms = end_ms - now_ms();
        if (left_ms <= 0 || poll(&wait, 1, (int)left_ms) != 1) break;
        ssize_t got = read(server->out, line + length, sizeof line - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
        line[length] = 0;
    }
    const char *colon = strstr(line, "http://127.0.0.1:");
    return colon ? (uint16_t)strtoul(colon + strlen("http://127.0.0.1:"), NULL, 10) : 0;
}

/* A command in FOLDER, with FOLDER/out and FOLDER/err: its status, or PROCESS_HANGS. */
static inline int command(const char *folder, int64_t patience_ms, const char *in, const char *const *argv) {
    char out[PATH_LENGTH], err[PATH_LENGTH];
    process p;
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    process_start(&p, argv, in, out, err);
    return process_wait(&p, patience_ms);
}

static inline void must(const char *folder, const char *in, const char *const *argv) {
    char err[PATH_LENGTH];
    int status = command(folder, 120000, in, argv);
    snprintf(err, sizeof err, "%s/err", folder);
    if (status) fail_msg("%s %s ends with %d: %s", argv[0], argv[1], status, file_text(err, NULL));
}

/* --- normal forms: what may differ from one run to the next is left out, and the order of lines ----------------*/

static inline void strip(json_t *node) {
    static const char *const varying[] = {"freshness", "event", "request_id", "decision", "id"};
    const char *name;
    json_t *value;
    size_t i;
    for (size_t v = 0; v < sizeof varying / sizeof varying[0]; v++)
        json_object_del(node, varying[v]);
    json_object_foreach(node, name, value) strip(value);
    json_array_foreach(node, i, value) strip(value);
}

/* Free it. */
static inline char *ask_normal(const char *body) {
    json_t *root = json_loads(body, 0, NULL);
    if (!root) return strdup("no JSON");
    strip(root);
    char *text = json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(root);
    assert_non_null(text);
    return text;
}

static inline int line_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines in order, without those that begin with `left_out` (0: none); payments among those are counted. Takes
 * text. */
static inline char *lines_normal(char *text, char left_out, size_t *left_outp) {
    size_t count = 0, length = strlen(text), at = 0;
    char **lines = malloc((length + 1) * sizeof *lines), *sorted = malloc(length + 2), *rest = text, *line;
    assert_true(lines && sorted);
    if (left_outp) *left_outp = 0;
    while ((line = strsep(&rest, "\n"))) {
        if (!*line) continue;
        if (left_out && *line == left_out && left_outp) *left_outp += strstr(line, ",payment,") != NULL;
        if (!left_out || *line != left_out) lines[count++] = line;
    }
    qsort(lines, count, sizeof *lines, line_order);
    for (size_t i = 0; i < count; i++)
        at += (size_t)sprintf(sorted + at, "%s\n", lines[i]);
    sorted[at] = 0;
    free(lines);
    free(text);
    return sorted;
}

/* --- building -----------------------------------------------------------------------------------------------*/

static inline void await_sealed(asker *a, int64_t patience_ms) {
    const char *body;
    char why[SENTENCE_MAX];
    int64_t behind = 1, end_ms = now_ms() + patience_ms;
    bool sealed = false;
    while (!sealed && now_ms() < end_ms) {
        if (behind != 0 && ask_ready(a, &behind, why) >= RED) return;
        if (ask(a, "/v1/status", &body) != 200) return;
        json_t *root = json_loads(body, 0, NULL);
        sealed = behind == 0 && json_integer_value(json_object_get(root, "memory_bytes")) == 0;
        json_decref(root);
        if (!sealed) usleep(2000);
    }
}

static inline void send_all(asker *a, const char *path, char *text) {
    const char *body;
    int status = ask_post(a, path, "application/x-ndjson", text, &body);
    if (status != 200) fail_msg("%s: %d %s", path, status, body);
    await_sealed(a, 30000);
    free(text);
}

static inline asker world_server(process *server, const char *folder) {
    char why[SENTENCE_MAX] = "";
    int64_t behind = 1;
    server_start(server, folder);
    asker a = {.port = server_port(server, 60000), .patience_ms = 60000, .fd = -1};
    readiness ready = WAITS;
    for (int i = 0; i < 10000 && (ready == WAITS || behind != 0); i++) {
        ready = ask_ready(&a, &behind, why);
        if (ready != READY) usleep(5000);
    }
    if (ready != READY) fail_msg("the server on what is whole is not ready: %d %s", ready, why);
    return a;
}

static inline void world_server_end(process *server, asker *a) {
    ask_free(a);
    kill(server->pid, SIGTERM);
    assert_int_equal(process_wait(server, 60000), 0);
}

static inline void world_feed(const char *folder) {
    process server;
    const char *body;
    asker a = world_server(&server, folder);
    for (unsigned b = 0; b < BATCHES; b++)
        send_all(&a, "/v1/events?source=payments", payments_text("", b * PAYMENTS / BATCHES, PAYMENTS / BATCHES));
    send_all(&a, "/v1/events?source=chargebacks", chargebacks_text());
    assert_int_equal(ask_post(&a, "/v1/admin/checkpoint", "application/json", "{\"name\":\"c\"}", &body), 200);
    world_server_end(&server, &a);
}

static inline void world_letter(const char *folder) {
    char log[PATH_LENGTH], line[PATH_LENGTH];
    process server;
    snprintf(log, sizeof log, "%s/d/eventlog", folder);
    snprintf(line, sizeof line, "%s/line", folder);
    file_write(line, "{\"id\":\"broken\",\"account\":\"a1\"}\n", 0600);
    const char *const append[] = {weir_test_program(), "log", "append", "payments", "--path", log, NULL};
    must(folder, line, append);
    asker a = world_server(&server, folder);
    await_sealed(&a, 30000);
    world_server_end(&server, &a);
}

static inline void world_models(const char *folder) {
    char secret[PATH_LENGTH], public[PATH_LENGTH], data[PATH_LENGTH], set[PATH_LENGTH + 32];
    char snapshot[PATH_LENGTH], parts[PATH_LENGTH];
    snprintf(data, sizeof data, "%s/d", folder);
    snprintf(secret, sizeof secret, "%s/d/models.key", folder);
    snprintf(public, sizeof public, "%s/d/models.pub", folder);
    snprintf(set, sizeof set, "models.public_keys=%s", public);
    snprintf(snapshot, sizeof snapshot, "%s/d/nights/n/snapshot", folder);
    snprintf(parts, sizeof parts, "%s/parts", folder);
    const char *const keygen[] = {weir_test_program(), "model", "keygen", "--secret", secret, "--public", public, NULL};
    const char *const nightly[] = {
        weir_test_program(), "nightly", "--data",   data, "--name",    "n", "--set",          set, "--",
        "--epochs",          "1",       "--hidden", "4",  "--fanouts", "3", "--no-baselines", NULL};
    /* one part, so that no mpirun is needed */
    const char *const partition[] = {weir_test_program(), "partition", snapshot, "--parts", "1", "--out", parts, NULL};
    must(folder, NULL, keygen);
    must(folder, NULL, nightly);
    must(folder, NULL, partition);
}

static inline void world_build(const char *folder) {
    char keys[PATH_LENGTH];
    snprintf(keys, sizeof keys, "%s/d", folder);
    assert_ok(weir_folder_create(folder));
    assert_ok(weir_folder_create(keys));
    snprintf(keys, sizeof keys, "%s/d/keys", folder);
    file_write(keys,
               "reader,writer,admin f9263f743d4a834f0cf0b174eed53025e162887934f25be08104fc6bdb4d54c2 boss\n"
               "reader e0469fec4757654bcf74134aef073cc67e848faca520968ed7c2e555141dfd2a guest\n",
               0600);
    world_feed(folder);
    world_letter(folder);
    world_models(folder);
}

#endif /* WEIR_CRASH_FLIPS_WORLD_H */

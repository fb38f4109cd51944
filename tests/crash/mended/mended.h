/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mended.h - a server whose files are damaged while it serves: how it is fed, damaged, asked, and compared.
 *
 * What it was asked before the damage it must answer in the same words afterwards: the questions of flips/world.h.
 * What is sent meanwhile are batches, which are alike but for the prefix of their keys: the answers about the first
 * one, asked of a whole store, are those about each.
 */
#ifndef WEIR_CRASH_MENDED_MENDED_H
#define WEIR_CRASH_MENDED_MENDED_H

#include <dirent.h>
#include <stdatomic.h>

#include "../flips/truth.h"

#define SHARDS        3
#define BATCH         8u
#define SHARE         64u /* of a folder's name, what is left for those below it */
#define PATIENCE_MS   600000
#define LOOK_AGAIN_US 10000

typedef struct mended {
    char folder[PATH_LENGTH - SHARE]; /* its data are in d */
    process server;
    asker boss;
    world truth;                  /* what it answers to what is not touched */
    char *batch_truth[2 * BATCH]; /* what it answers about a batch */
    atomic_uint_fast64_t batches; /* that were acknowledged */
} mended;

/* --- the server -------------------------------------------------------------------------------------------*/

static inline asker asker_of(const mended *m) {
    return (asker){.port = m->boss.port, .patience_ms = PATIENCE_MS, .fd = -1};
}

/* kill_at: of WEIR_KILL_AT; or NULL. A scrub comes with each look, once a second. false: it does not come up. */
static inline bool mended_try_start(mended *m, const char *kill_at) {
    char data[PATH_LENGTH], err[PATH_LENGTH];
    snprintf(data, sizeof data, "%s/d", m->folder);
    snprintf(err, sizeof err, "%s/serve.err", m->folder);
    const char *const argv[] = {weir_test_program(),
                                "serve",
                                "--listen",
                                "127.0.0.1:0",
                                "--schema",
                                "payments",
                                "--data",
                                data,
                                "--set",
                                "store.seal_interval=100ms",
                                "--set",
                                "store.scrub_interval=10ms",
                                "--set",
                                "store.shards=3",
                                "--set",
                                "eventlog.partitions=2",
                                NULL};
    if (kill_at) setenv("WEIR_KILL_AT", kill_at, 1);
    process_start(&m->server, argv, NULL, NULL, err);
    unsetenv("WEIR_KILL_AT");
    m->boss = (asker){.port = server_port(&m->server, PATIENCE_MS), .patience_ms = PATIENCE_MS, .fd = -1};
    return m->boss.port != 0;
}

static inline void mended_start(mended *m, const char *kill_at) {
    char err[PATH_LENGTH];
    snprintf(err, sizeof err, "%s/serve.err", m->folder);
    if (!mended_try_start(m, kill_at)) fail_msg("the server does not come up: %s", file_text(err, NULL));
}

/* Until all that it has acknowledged is applied, and it is ready. */
static inline void mended_await_ready(mended *m) {
    char why[SENTENCE_MAX];
    int64_t behind = -1;
    readiness ready;
    do {
        usleep(LOOK_AGAIN_US);
        ready = ask_ready(&m->boss, &behind, why);
        if (ready >= GONE) fail_msg("/readyz has no answer");
    } while (ready != READY || behind != 0);
}

static inline void mended_stop(mended *m) {
    ask_free(&m->boss);
    kill(m->server.pid, SIGTERM);
    assert_int_equal(process_wait(&m->server, PATIENCE_MS), 0);
}

static inline uint64_t mended_metric(mended *m, const char *name) {
    char start[96];
    const char *body;
    int status = ask(&m->boss, "/metrics", &body);
    snprintf(start, sizeof start, "\n%s ", name);
    const char *at = status == 200 ? strstr(body, start) : NULL;
    if (!at) fail_msg("/metrics is answered %d, without %s", status, name);
    return strtoull(at + strlen(start), NULL, 10);
}

/* --- batches ----------------------------------------------------------------------------------------------*/

/* The status of the next one; it counts when that is 200. What was not acknowledged is sent again: its ids say so. */
static inline int mended_send(mended *m, asker *a) {
    char prefix[32];
    const char *body;
    uint64_t b = atomic_load(&m->batches);
    snprintf(prefix, sizeof prefix, "w%" PRIu64 "x", b);
    char *text = payments_text(prefix, 0, BATCH);
    int status = ask_post(a, "/v1/events?source=payments", "application/x-ndjson", text, &body);
    free(text);
    if (status > 0 && status != 200 && status < 500) fail_msg("batch %" PRIu64 ": %d %s", b, status, body);
    if (status == 200) atomic_store(&m->batches, b + 1);
    return status;
}

/* One question of the 2 * BATCH about a batch. */
static inline void batch_path(uint64_t batch, unsigned which, char path[128]) {
    snprintf(path, 128, "/v1/%s/payment/w%" PRIu64 "xp%u", which < BATCH ? "vertices" : "neighbors", batch,
             which % BATCH);
}

/* An answer about a batch without its prefix; takes text. */
static inline char *without_prefix(char *text, uint64_t batch) {
    char begin[32], *to = text;
    size_t length = (size_t)snprintf(begin, sizeof begin, "\"w%" PRIu64 "x", batch);
    for (const char *from = text; *from;) {
        bool is = strncmp(from, begin, length) == 0;
        *to++ = *from;
        from += is ? length : 1;
    }
    *to = 0;
    return text;
}

/* --- questions --------------------------------------------------------------------------------------------*/

typedef enum verdict { VERDICT_RIGHT, VERDICT_ERROR, VERDICT_WRONG } verdict;

/* batch: UINT64_MAX where the answer is not about one. A wrong one fails the case. */
static inline verdict ask_and_compare(asker *a, const char *path, const char *truth, uint64_t batch, int *statusp) {
    const char *body;
    *statusp = ask(a, path, &body);
    if (*statusp >= 500) return VERDICT_ERROR;
    if (*statusp != 200) fail_msg("%s: %d %.600s", path, *statusp, body);
    char *normal = ask_normal(body);
    if (batch != UINT64_MAX) normal = without_prefix(normal, batch);
    if (strcmp(normal, truth) != 0) fail_msg("%s is answered\n%.2000s\nnot\n%.2000s", path, normal, truth);
    free(normal);
    return VERDICT_RIGHT;
}

/* One of the 2 * BATCH questions about a batch that was acknowledged and applied. */
static inline verdict ask_batch(const mended *m, asker *a, uint64_t batch, unsigned which, int *statusp) {
    char path[128];
    batch_path(batch, which, path);
    return ask_and_compare(a, path, m->batch_truth[which], batch, statusp);
}

/* The store is whole, and all is applied: everything is answered, and right. Of batches: those from `first` on. */
static inline void mended_ask_all(mended *m, uint64_t first) {
    int status;
    for (size_t i = 0; i < m->truth.question_count; i++) {
        const question *q = &m->truth.questions[i];
        if (ask_and_compare(&m->boss, q->path, q->answer, UINT64_MAX, &status) != VERDICT_RIGHT)
            fail_msg("%s: %d of a store that is whole", q->path, status);
    }
    for (uint64_t b = first; b < atomic_load(&m->batches); b++)
        for (unsigned which = 0; which < (b % 8 ? BATCH : 2 * BATCH); which++)
            if (ask_batch(m, &m->boss, b, which, &status) != VERDICT_RIGHT)
                fail_msg("batch %" PRIu64 ", question %u: %d of a store that is whole", b, which, status);
}

/* --- a store of its own -----------------------------------------------------------------------------------*/

static inline void mended_questions(world *w) {
    static const char *const types[] = {"account", "merchant", "device", "card", "payment"};
    static const unsigned counts[] = {ACCOUNTS, MERCHANTS, 30, ACCOUNTS, 40};
    for (unsigned n = 0; n < PAYMENTS; n += 9)
        snprintf(question_add(w, "GET")->path, sizeof w->questions[0].path, "/v1/vertices/payment/p%u", n);
    for (unsigned t = 0; t < sizeof types / sizeof types[0]; t++)
        for (unsigned n = 0; n < counts[t]; n++)
            snprintf(question_add(w, "GET")->path, sizeof w->questions[0].path, "/v1/neighbors/%s/%c%u?limit=1000",
                     types[t], types[t][0], n);
}

static inline void mended_remember(mended *m) {
    const char *body;
    char path[128];
    mended_questions(&m->truth);
    for (size_t i = 0; i < m->truth.question_count; i++) {
        question *q = &m->truth.questions[i];
        if (ask(&m->boss, q->path, &body) != 200) fail_msg("%s: %s", q->path, body);
        q->answer = ask_normal(body);
    }
    for (unsigned which = 0; which < 2 * BATCH; which++) {
        batch_path(0, which, path);
        if (ask(&m->boss, path, &body) != 200) fail_msg("%s: %s", path, body);
        m->batch_truth[which] = without_prefix(ask_normal(body), 0);
    }
}

/* The truth is held against what was sent. */
static inline void mended_hold(const mended *m) {
    size_t edges = 0, at;
    json_t *edge;
    for (unsigned n = 0; n < BATCH; n++) {
        json_t *root = json_loads(m->batch_truth[n], 0, NULL);
        const json_t *amount = json_object_get(json_object_get(root, "features"), "amount");
        assert_true(fabs(json_number_value(amount) - payment_amount(n)) < 1e-9);
        json_decref(root);
    }
    for (size_t i = 0; i < m->truth.question_count; i++) {
        if (!strstr(m->truth.questions[i].path, "/account/")) continue;
        json_t *root = json_loads(m->truth.questions[i].answer, 0, NULL);
        json_array_foreach(json_object_get(root, "neighbors"), at, edge) edges +=
            strcmp(json_string_value(json_object_get(edge, "relation")), "paid_by") == 0;
        json_decref(root);
    }
    assert_int_equal(edges, PAYMENTS);
}

static inline void mended_post(mended *m, const char *path, char *text) {
    const char *body;
    int status = ask_post(&m->boss, path, "application/x-ndjson", text, &body);
    if (status != 200) fail_msg("%s: %d %s", path, status, body);
    free(text);
}

/* Beside the store, where a repair looks for it; the one of this name makes room. */
static inline void mended_checkpoint(mended *m, const char *name) {
    char path[PATH_LENGTH], text[64];
    const char *body;
    snprintf(path, sizeof path, "%s/d/checkpoints/%s", m->folder, name);
    if (weir_path_exists(path)) assert_ok(weir_folder_remove(path));
    snprintf(text, sizeof text, "{\"name\":\"%s\"}", name);
    int status = ask_post(&m->boss, "/v1/admin/checkpoint", "application/json", text, &body);
    if (status != 200) fail_msg("a checkpoint: %d %s", status, body);
}

/* A server on a new store that is whole, and what it answers. */
static inline void mended_make(mended *m, const char *folder) {
    for (size_t i = 0; i < m->truth.question_count; i++)
        free(m->truth.questions[i].answer);
    for (unsigned which = 0; which < 2 * BATCH; which++)
        free(m->batch_truth[which]);
    *m = (mended){.server = {0}};
    snprintf(m->folder, sizeof m->folder, "%s", folder);
    snprintf(m->truth.folder, sizeof m->truth.folder, "%s", folder);
    if (weir_path_exists(folder)) assert_ok(weir_folder_remove(folder));
    assert_ok(weir_folder_create(folder));
    mended_start(m, NULL);
    for (unsigned b = 0; b < BATCHES; b++) {
        mended_post(m, "/v1/events?source=payments", payments_text("", b * PAYMENTS / BATCHES, PAYMENTS / BATCHES));
        await_sealed(&m->boss, PATIENCE_MS);
    }
    mended_post(m, "/v1/events?source=chargebacks", chargebacks_text());
    assert_int_equal(mended_send(m, &m->boss), 200);
    await_sealed(&m->boss, PATIENCE_MS);
    mended_await_ready(m);
    mended_remember(m);
    mended_hold(m);
}

/* Stores of one log are alike if they share it. */
static inline void share_id_key(void) {
    file_write(weir_test_path("id_key"), "000102030405060708090a0b0c0d0e0f\n", 0600);
    setenv("WEIR_STORE_ID_KEY", weir_test_path("id_key"), 1);
}

/* --- damage -----------------------------------------------------------------------------------------------*/

typedef enum flipped { FLIPPED_SORTED, FLIPPED_MANIFEST, FLIPPED_CURRENT, FLIPPED_IDENTITY, FLIPPED_KINDS } flipped;
static const char *const flipped_names[FLIPPED_KINDS] = {"sorted files", "MANIFEST", "CURRENT", "identity"};

static inline bool is_of_kind(const char *name, flipped kind) {
    size_t length = strlen(name);
    if (kind == FLIPPED_SORTED) return length > 4 && strspn(name, "0123456789") + 4 == length && strstr(name, ".sst");
    if (kind == FLIPPED_MANIFEST) return strncmp(name, "MANIFEST-", 9) == 0;
    return strcmp(name, kind == FLIPPED_CURRENT ? "CURRENT" : "identity") == 0;
}

/* One of the files of the kind, at random; false: there is none. */
static inline bool draw_file(const char *folder, flipped kind, weir_rng *rng, char path[PATH_LENGTH]) {
    uint64_t seen = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));)
        if (is_of_kind(entry->d_name, kind) && weir_rng_below(rng, ++seen) == 0)
            snprintf(path, PATH_LENGTH, "%s/%s", folder, entry->d_name);
    if (open) closedir(open);
    return seen > 0;
}

/* In one of the bytes from `begin` up to before `end`. false: the store is through with the file, or it is shorter. */
static inline bool flip_bit(const char *path, weir_rng *rng, uint64_t begin, uint64_t end) {
    struct stat status;
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    assert_int_equal(fstat(fd, &status), 0);
    if ((uint64_t)status.st_size < end) end = (uint64_t)status.st_size;
    bool done = begin < end;
    if (done) {
        off_t at = (off_t)(begin + weir_rng_below(rng, end - begin));
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte = (uint8_t)(byte ^ 1u << weir_rng_below(rng, 8));
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    return done;
}

/* --- whole again ------------------------------------------------------------------------------------------*/

/* Scrubs come one after the other, so the second whose end is seen after some damage began after it. What one finds
 * turns readiness red before it ends, and red it stays until that is mended. */
typedef struct watch {
    uint64_t scrubbed; /* when the newest ended */
    unsigned clean;    /* ended, with readiness green ever since */
} watch;

/* Looks once; whether it is green. */
static inline bool watch_look(watch *w, mended *m) {
    char why[SENTENCE_MAX];
    int64_t behind;
    uint64_t scrubbed = mended_metric(m, "weir_store_scrub_time_seconds");
    usleep(LOOK_AGAIN_US); /* an answer may say how it was 5 ms ago */
    readiness ready = ask_ready(&m->boss, &behind, why);
    if (ready >= GONE) fail_msg("/readyz has no answer");
    w->clean = ready != READY ? 0 : w->clean + (scrubbed != w->scrubbed);
    w->scrubbed = scrubbed;
    return ready == READY;
}

static inline bool watch_is_whole(const watch *w) {
    return w->clean >= 3; /* what was seen first may have ended before */
}

static inline void mended_await_whole(mended *m) {
    watch w = {0};
    while (!watch_is_whole(&w))
        (void)watch_look(&w, m);
}

/* --- after it ---------------------------------------------------------------------------------------------*/

static inline bool there_is(const mended *m, unsigned shard, const char *suffix) {
    char path[PATH_LENGTH];
    snprintf(path, sizeof path, "%s/d/store/shard-%03u%s", m->folder, shard, suffix);
    return weir_path_exists(path);
}

static inline bool something_is_left_over(const mended *m) {
    bool left = false;
    for (unsigned shard = 0; shard < SHARDS; shard++)
        left = left || there_is(m, shard, ".repair");
    return left;
}

/* What is sealed, as an export has it; free it. */
static inline char *mended_export(const mended *m) {
    char store[PATH_LENGTH], snapshot[PATH_LENGTH];
    int status;
    snprintf(store, sizeof store, "%s/d/store", m->folder);
    snprintf(snapshot, sizeof snapshot, "%s/snapshot", m->folder);
    assert_int_equal(snapshot_build(m->folder, PATIENCE_MS, store, snapshot), 0);
    char *export = export_normal(m->folder, PATIENCE_MS, snapshot, &status, NULL);
    assert_non_null(export);
    return export;
}

/* The store, which nobody has open, is what the log says: record by record, and as another that is made of a copy. */
static inline void mended_is_what_the_log_says(const mended *m) {
    static const char *const log_alone[] = {"d/eventlog"};
    static mended anew;
    char store[PATH_LENGTH], log[PATH_LENGTH], out[PATH_LENGTH];
    snprintf(store, sizeof store, "%s/d/store", m->folder);
    snprintf(log, sizeof log, "%s/d/eventlog", m->folder);
    snprintf(out, sizeof out, "%s/out", m->folder);
    const char *const verify[] = {
        weir_test_program(), "store", "verify", "--against-log", "--path", store, "--log", log, NULL};
    must(m->folder, NULL, verify);
    char *said = file_text(out, NULL);
    if (!said || !strstr(said, " 0 differences")) fail_msg("store verify says %s", said);
    free(said);
    snprintf(anew.folder, sizeof anew.folder, "%.*s-anew", (int)sizeof anew.folder - 8, m->folder);
    world_copy(&m->truth, log_alone, 1, anew.folder);
    mended_start(&anew, NULL);
    mended_await_ready(&anew);
    mended_stop(&anew);
    char *lived = mended_export(m), *made = mended_export(&anew);
    if (strcmp(lived, made) != 0) fail_msg("the store's export is not that of one made anew from the log");
    free(lived);
    free(made);
    assert_ok(weir_folder_remove(anew.folder));
}

#endif /* WEIR_CRASH_MENDED_MENDED_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers.h - a damaged folder is read by what reads it in life, and what comes of it is one of nine outcomes.
 *
 * The last five are bad. A round's outcome is the worst that its steps came to.
 */
#ifndef WEIR_CRASH_FLIPS_READERS_H
#define WEIR_CRASH_FLIPS_READERS_H

#include <stdarg.h>

#include "truth.h"

#define OUTCOMES(X)                                  \
    X(RIGHT, "right")                                \
    X(REPAIRED, "right after a while")               \
    X(REFUSED, "refused with a sentence")            \
    X(UNREADY, "5xx and not ready, with a sentence") \
    X(GREEN_ERRORS, "errors while ready")            \
    X(WRONG, "wrong answer")                         \
    X(LOST, "silent loss")                           \
    X(HANG, "hang")                                  \
    X(CRASH, "crash")
#define OUTCOME_NAME(name, text) OUTCOME_##name,
typedef enum outcome { OUTCOMES(OUTCOME_NAME) OUTCOME_COUNT } outcome;
#define FIRST_BAD OUTCOME_GREEN_ERRORS

#define NEW_BATCHES 3u
#define NEW_COUNT   8u /* payments of a batch */

/* What of a world a server needs. */
#define SERVER_FOLDERS \
    { "d/store", "d/eventlog", "d/models", "d/models.pub", "d/keys", "d/nights" }

typedef struct trial {
    const world *world;
    char folder[PATH_LENGTH];
    void (*damage)(struct trial *r);
    const char *file; /* below the folder */
    uint64_t offset;
    int bit;                       /* 8: the file is cut at offset */
    int64_t patience_ms, grace_ms; /* a hang is longer; what is wrong is known, or mended, within */
    outcome outcome;
    char why[SENTENCE_MAX + 200];
} trial;

__attribute__((format(printf, 3, 4))) static inline void came_to(trial *r, outcome o, const char *format, ...) {
    va_list args;
    if (o <= r->outcome) return;
    r->outcome = o;
    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
}

static inline const char *in_folder(const trial *r, const char *name) {
    static char paths[4][PATH_LENGTH];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_LENGTH, "%s/%s", r->folder, name);
    return path;
}

/* --- commands -----------------------------------------------------------------------------------------------*/

/* What a program's end says; true: 0. A refusal is a status of its own, and a sentence on stderr. */
static inline bool ended_well(trial *r, const char *what, int status, const char *err) {
    char sentence[SENTENCE_MAX];
    file_sentence(err, sentence);
    if (status == PROCESS_HANGS) {
        came_to(r, OUTCOME_HANG, "%s does not end", what);
    } else if (status == 70 || status > 128 || status == 127) {
        came_to(r, OUTCOME_CRASH, "%s ends with %d: %s", what, status, sentence);
    } else if (status && !sentence[0]) {
        came_to(r, OUTCOME_CRASH, "%s ends with %d and not a word", what, status);
    } else if (status) {
        came_to(r, OUTCOME_REFUSED, "%s: %s", what, sentence);
    }
    return status == 0;
}

/* Takes text. */
static inline void compare_text(trial *r, const char *what, char *text, const char *truth) {
    size_t at = 0;
    while (text && text[at] && text[at] == truth[at])
        at++;
    if (!text || text[at] != truth[at])
        came_to(r, OUTCOME_WRONG, "%s differs from byte %zu on: %.60s", what, at, text ? text + at : "nothing");
    free(text);
}

/* Of any store: the sealed records, by a snapshot and its export. */
static inline void compare_export(trial *r, const char *store, size_t new_wanted) {
    int status;
    size_t new_found = 0;
    const char *snapshot = in_folder(r, "snapshot"), *err = in_folder(r, "err");
    if (!ended_well(r, "snapshot build", snapshot_build(r->folder, r->patience_ms, store, snapshot), err)) return;
    char *export = export_normal(r->folder, r->patience_ms, snapshot, &status, &new_found);
    if (!ended_well(r, "snapshot export", status, err)) return;
    compare_text(r, "the store's export", export, r->world->export);
    if (new_found < new_wanted)
        came_to(r, OUTCOME_LOST, "of %zu payments that were acknowledged and seen, %zu are sealed", new_wanted,
                new_found);
}

static inline void read_store(trial *r) {
    r->damage(r);
    const char *const verify[] = {
        weir_test_program(),        "store", "verify", "--against-log", "--path", in_folder(r, "d/store"), "--log",
        in_folder(r, "d/eventlog"), NULL};
    ended_well(r, "store verify", command(r->folder, r->patience_ms, NULL, verify), in_folder(r, "err"));
    compare_export(r, in_folder(r, "d/store"), 0);
}

static inline void read_log(trial *r) {
    char *text;
    r->damage(r);
    const char *const verify[] = {weir_test_program(), "log", "verify", "--path", in_folder(r, "d/eventlog"), NULL};
    bool sound = ended_well(r, "log verify", command(r->folder, r->patience_ms, NULL, verify), in_folder(r, "err"));
    int status = log_said(r->folder, r->patience_ms, log_cat, &text);
    if (ended_well(r, "log cat", status, in_folder(r, "err"))) {
        /* what is whole may be shown of what is not: but then somebody has said so */
        if (sound)
            compare_text(r, "log cat", text, r->world->log);
        else
            free(text);
    } else {
        free(text);
    }
}

static inline void read_letters(trial *r) {
    char *text;
    r->damage(r);
    int status = log_said(r->folder, r->patience_ms, letters_list, &text);
    if (ended_well(r, "ingest dlq list", status, in_folder(r, "err"))) {
        compare_text(r, "ingest dlq list", text, r->world->letters);
    } else {
        free(text);
    }
}

static inline void read_checkpoint(trial *r) {
    r->damage(r);
    const char *const restore[] = {
        weir_test_program(),      "store", "restore", in_folder(r, "d/checkpoints/c"), "--path",
        in_folder(r, "restored"), NULL};
    if (ended_well(r, "store restore", command(r->folder, r->patience_ms, NULL, restore), in_folder(r, "err")))
        compare_export(r, in_folder(r, "restored"), 0);
}

static inline void read_snapshot(trial *r) {
    int status;
    r->damage(r);
    const char *snapshot = in_folder(r, "d/nights/n/snapshot");
    const char *const check[] = {weir_test_program(), "snapshot", "check", snapshot, NULL};
    ended_well(r, "snapshot check", command(r->folder, r->patience_ms, NULL, check), in_folder(r, "err"));
    char *export = export_normal(r->folder, r->patience_ms, in_folder(r, "d/nights/n/snapshot"), &status, NULL);
    if (ended_well(r, "snapshot export", status, in_folder(r, "err")))
        compare_text(r, "snapshot export", export, r->world->export);
}

static inline void read_snapshot_to_cut(trial *r) {
    r->damage(r);
    const char *const cut[] = {weir_test_program(), "partition", in_folder(r, "d/nights/n/snapshot"),
                               "--parts",           "2",         "--out",
                               in_folder(r, "cut"), NULL};
    ended_well(r, "partition", command(r->folder, r->patience_ms, NULL, cut), in_folder(r, "err"));
}

static inline void train_and_compare(trial *r, bool resume, bool on_part) {
    char *text;
    r->damage(r);
    int status = train_run(r->folder, r->patience_ms, resume, on_part, &text);
    if (ended_well(r, resume ? "train --resume" : "train", status, in_folder(r, "err")))
        compare_text(r, "the report of training", text, resume ? r->world->resumed : r->world->trained);
}

static inline void read_to_train(trial *r) {
    train_and_compare(r, false, false);
}
static inline void read_to_train_on_part(trial *r) {
    train_and_compare(r, false, true);
}
static inline void read_to_resume(trial *r) {
    train_and_compare(r, true, false);
}

static inline void read_model(trial *r) {
    char set[PATH_LENGTH + 32];
    r->damage(r);
    snprintf(set, sizeof set, "models.public_keys=%s", in_folder(r, "d/models.pub"));
    const char *const verify[] = {weir_test_program(),      "model", "verify", "--path",
                                  in_folder(r, "d/models"), "--set", set,      NULL};
    ended_well(r, "model verify", command(r->folder, r->patience_ms, NULL, verify), in_folder(r, "err"));
}

/* A model that is signed by a damaged key is none. */
static inline void read_secret_key(trial *r) {
    char set[PATH_LENGTH + 32];
    r->damage(r);
    snprintf(set, sizeof set, "models.public_keys=%s", in_folder(r, "d/models.pub"));
    const char *const train[] = {weir_test_program(),
                                 "train",
                                 in_folder(r, "d/nights/n/snapshot"),
                                 "--epochs",
                                 "1",
                                 "--hidden",
                                 "4",
                                 "--fanouts",
                                 "3",
                                 "--no-baselines",
                                 "--models",
                                 in_folder(r, "d/models"),
                                 "--key",
                                 in_folder(r, "d/models.key"),
                                 "--set",
                                 set,
                                 NULL};
    ended_well(r, "train --key", command(r->folder, r->patience_ms, NULL, train), in_folder(r, "err"));
}

/* --- the server ---------------------------------------------------------------------------------------------*/

typedef struct tally {
    size_t right, errors, wrong, told;
    char why[SENTENCE_MAX];
} tally;

/* An answer of figures may leave out what is damaged and say so. */
static inline bool tells_trouble(const char *body) {
    json_t *root = json_loads(body, 0, NULL);
    bool tells = json_is_string(json_object_get(root, "trouble"));
    json_decref(root);
    return tells;
}

static inline void tally_answer(tally *t, const char *path, int status, const char *body, const char *truth) {
    char *normal = status == 200 ? ask_normal(body) : NULL;
    bool equal = normal && strcmp(normal, truth) == 0;
    if (equal) {
        t->right++;
    } else if (normal && tells_trouble(normal)) {
        t->told++;
    } else if (status >= 500 || status <= 0) {
        if (!t->errors++ && !t->wrong) snprintf(t->why, sizeof t->why, "%s: %d %.200s", path, status, body);
    } else if (!t->wrong++) {
        size_t at = 0;
        while (normal && normal[at] == truth[at])
            at++;
        at = at > 20 ? at - 20 : 0;
        snprintf(t->why, sizeof t->why, "%s: %d %.120s; not %.60s", path, status, normal ? normal + at : body,
                 truth + at);
    }
    free(normal);
}

/* Ends early when the server is silent: one wait is enough. */
static inline void ask_all(trial *r, asker *a, tally *t) {
    *t = (tally){0};
    for (size_t i = 0; i < r->world->question_count; i++) {
        const question *q = &r->world->questions[i];
        const char *body;
        int status = question_ask(q, a, &body);
        tally_answer(t, q->path, status, body, q->answer);
        if (status == ANSWER_SILENT) came_to(r, OUTCOME_HANG, "%s has no answer", q->path);
        if (status <= 0) return;
    }
}

/* Waits while it is said to wait. */
static inline readiness await_word(trial *r, asker *a, char why[SENTENCE_MAX]) {
    int64_t behind, end_ms = now_ms() + r->patience_ms;
    readiness ready;
    while ((ready = ask_ready(a, &behind, why)) == WAITS && now_ms() < end_ms)
        usleep(3000);
    if (ready == WAITS) came_to(r, OUTCOME_HANG, "it is never ready: %s", why);
    if (ready == SILENT) came_to(r, OUTCOME_HANG, "/readyz has no answer");
    return ready;
}

/* Asks all; where something is not right, again until it is, or until it is said what is wrong. */
static inline readiness ask_and_judge(trial *r, asker *a) {
    int64_t end_ms = now_ms() + r->grace_ms;
    char why[SENTENCE_MAX];
    tally t;
    readiness ready;
    bool failed = false;
    for (;;) {
        ask_all(r, a, &t);
        ready = await_word(r, a, why);
        if (t.wrong) came_to(r, OUTCOME_WRONG, "%s%zu: %s", ready == READY ? "" : "not ready, and ", t.wrong, t.why);
        if (t.told) came_to(r, OUTCOME_REFUSED, "an answer says what is left out");
        failed = failed || t.errors;
        if (!t.errors || t.wrong || ready != READY || now_ms() >= end_ms) break;
        usleep(50000);
    }
    if (ready == RED) came_to(r, OUTCOME_UNREADY, "%zu errors; %s", t.errors, why);
    if (ready == READY && t.errors) came_to(r, OUTCOME_GREEN_ERRORS, "%zu: %s", t.errors, t.why);
    if (ready == READY && !t.errors && failed) came_to(r, OUTCOME_REPAIRED, "after errors");
    return ready;
}

static inline bool is_there(asker *a, unsigned batch, unsigned n, int *statusp) {
    char path[64];
    const char *body;
    snprintf(path, sizeof path, "/v1/vertices/payment/n%up%u", batch, PAYMENTS + n);
    *statusp = ask(a, path, &body);
    return *statusp == 200;
}

/* What is acknowledged is seen, or it is said why not. */
static inline bool await_visible(trial *r, asker *a, unsigned batch) {
    int64_t end_ms = now_ms() + r->grace_ms, behind = -1;
    char why[SENTENCE_MAX];
    int status = 0;
    readiness ready;
    for (;;) {
        unsigned seen = 0;
        ready = ask_ready(a, &behind, why);
        while (behind == 0 && seen < NEW_COUNT && is_there(a, batch, seen, &status))
            seen++;
        if (seen == NEW_COUNT) return true;
        if (ready != READY || now_ms() >= end_ms) break;
        usleep(2000);
    }
    if (ready == RED) came_to(r, OUTCOME_UNREADY, "after events came: %s", why);
    if (ready == SILENT) came_to(r, OUTCOME_HANG, "/readyz has no answer after events came");
    if (ready == READY && behind != 0)
        came_to(r, OUTCOME_LOST, "ready, and acknowledged events stay behind: %" PRId64, behind);
    if (ready == READY && behind == 0)
        came_to(r, status >= 500 ? OUTCOME_GREEN_ERRORS : OUTCOME_LOST, "an acknowledged payment is answered by %d",
                status);
    return false;
}

/* Batches of new payments, a seal each, so that the shards merge sorted files. Returns how many were taken and seen. */
static inline size_t send_new(trial *r, asker *a) {
    size_t seen = 0;
    for (unsigned b = 0; b < NEW_BATCHES; b++) {
        char prefix[8], why[SENTENCE_MAX];
        const char *body;
        int64_t behind;
        snprintf(prefix, sizeof prefix, "%c%u", NEW_PREFIX, b);
        char *text = payments_text(prefix, PAYMENTS, NEW_COUNT);
        int status = ask_post(a, "/v1/events?source=payments", "application/x-ndjson", text, &body);
        free(text);
        if (status != 200) {
            char said[200];
            snprintf(said, sizeof said, "%s", body);
            readiness ready = ask_ready(a, &behind, why);
            came_to(r,
                    ready == READY ? OUTCOME_GREEN_ERRORS
                    : ready == RED ? OUTCOME_UNREADY
                                   : OUTCOME_HANG,
                    "events are not taken: %d %s", status, said);
            return seen;
        }
        if (!await_visible(r, a, b)) return seen;
        seen += NEW_COUNT;
        await_sealed(a, 500);
    }
    return seen;
}

/* Whether it takes connections. If not, it has said why and ended. */
static inline bool server_up(trial *r, process *server, asker *a) {
    server_start(server, r->folder);
    *a = (asker){.port = server_port(server, r->patience_ms), .patience_ms = r->patience_ms, .fd = -1};
    if (a->port) return true;
    int status = process_wait(server, r->patience_ms);
    if (ended_well(r, "serve", status, in_folder(r, "serve.err")))
        came_to(r, OUTCOME_CRASH, "serve ends with 0 before it serves");
    return false;
}

static inline void server_down(trial *r, process *server, asker *a) {
    bool gone = process_has_ended(server);
    ask_free(a);
    kill(server->pid, SIGTERM);
    int status = process_wait(server, r->patience_ms);
    if (gone && status == 0) came_to(r, OUTCOME_CRASH, "serve has ended by itself");
    ended_well(r, gone ? "serve, which was not asked to end," : "serve after SIGTERM", status,
               in_folder(r, "serve.err"));
}

/* In each of its lives it is asked everything; the first one gets events, too. */
static inline void serve_and_ask(trial *r, bool live) {
    process server;
    asker a;
    char why[SENTENCE_MAX];
    size_t seen = 0;
    if (!live) r->damage(r);
    for (int life = 0; life < (live ? 2 : 1); life++) {
        if (!server_up(r, &server, &a)) return;
        readiness ready = await_word(r, &a, why);
        if (live && life == 0) {
            came_to(r, ready == READY ? OUTCOME_RIGHT : OUTCOME_WRONG, "it was not ready when it was whole: %s", why);
            r->damage(r);
        }
        ready = ask_and_judge(r, &a);
        if (life == 0 && ready == READY) {
            seen = send_new(r, &a);
            ask_and_judge(r, &a);
        }
        server_down(r, &server, &a);
    }
    if (r->outcome <= OUTCOME_REFUSED) compare_export(r, in_folder(r, "d/store"), seen);
}

static inline void read_by_server(trial *r) {
    serve_and_ask(r, false);
}
static inline void read_while_it_serves(trial *r) {
    serve_and_ask(r, true);
}

/* The store is made anew from the log. */
static inline void read_to_rebuild(trial *r) {
    assert_ok(weir_folder_remove(in_folder(r, "d/store")));
    serve_and_ask(r, false);
}

/* Nobody has more rights than before: a guest reads, and does not write. */
static inline void read_keys(trial *r) {
    process server;
    asker a;
    const char *body;
    r->damage(r);
    if (!server_up(r, &server, &a)) return;
    int boss = ask(&a, "/v1/status", &body);
    int stranger = ask_as(&a, "flips-nobody", "GET", "/v1/status", "application/json", "", &body);
    int guest = ask_as(&a, GUEST_KEY, "POST", "/v1/events?source=payments", "application/json", "{}", &body);
    if (boss == 401 || boss == 403)
        came_to(r, OUTCOME_REFUSED, "the key is refused");
    else if (boss != 200)
        came_to(r, OUTCOME_WRONG, "the key is answered by %d", boss);
    if (stranger != 401) came_to(r, OUTCOME_WRONG, "an unknown key is answered by %d", stranger);
    if (guest != 401 && guest != 403) came_to(r, OUTCOME_WRONG, "a reader who writes is answered by %d", guest);
    server_down(r, &server, &a);
}

#endif /* WEIR_CRASH_FLIPS_READERS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* truth.h - what the whole folder answers, held against what was sent, and what a damaged one answers to the same. */
#ifndef WEIR_CRASH_FLIPS_TRUTH_H
#define WEIR_CRASH_FLIPS_TRUTH_H

#include "world.h"

#define EVENT_COLUMN 6u /* of edges.csv, from 0 */

static inline question *question_add(world *w, const char *method) {
    assert_true(w->question_count < QUESTIONS_MAX);
    question *q = &w->questions[w->question_count++];
    *q = (question){.method = method};
    return q;
}

static inline void questions_make(world *w) {
    static const char *const types[] = {"account", "merchant", "device", "card"};
    static const unsigned counts[] = {ACCOUNTS, MERCHANTS, 30, ACCOUNTS};
    for (unsigned n = 0; n < PAYMENTS; n += 9) {
        question *q = question_add(w, "GET");
        snprintf(q->path, sizeof q->path, "/v1/vertices/payment/p%u", n);
    }
    for (unsigned t = 0; t < 4; t++)
        for (unsigned n = 0; n < counts[t]; n++) {
            question *q = question_add(w, "GET");
            snprintf(q->path, sizeof q->path, "/v1/neighbors/%s/%c%u?limit=1000", types[t], types[t][0], n);
        }
    for (unsigned n = 3; n < PAYMENTS; n += 100) {
        question *q = question_add(w, "POST");
        strcpy(q->path, "/v1/score");
        snprintf(q->body, sizeof q->body, "{\"targets\":[{\"type\":\"payment\",\"key\":\"p%u\"}],\"reasons\":3}", n);
        q = question_add(w, "GET");
        snprintf(q->path, sizeof q->path, "/v1/embeddings/payment/p%u", n);
    }
    strcpy(question_add(w, "GET")->path, "/v1/nightly");
}

static inline int question_ask(const question *q, asker *a, const char **bodyp) {
    return ask_as(a, BOSS_KEY, q->method, q->path, "application/json", q->body, bodyp);
}

/* What was sent is what is answered: the amounts, and as many edges. */
static inline void truth_hold(const world *w) {
    size_t vertices = 0, edges = 0, wanted = (PAYMENTS + 8) / 9;
    for (size_t i = 0; i < w->question_count; i++) {
        static const char payments[] = "/v1/vertices/payment/p";
        const char *path = w->questions[i].path;
        json_t *root = json_loads(w->questions[i].answer, 0, NULL), *edge;
        if (strncmp(path, payments, sizeof payments - 1) == 0) {
            const json_t *amount = json_object_get(json_object_get(root, "features"), "amount");
            unsigned n = (unsigned)strtoul(path + sizeof payments - 1, NULL, 10);
            assert_true(fabs(json_number_value(amount) - payment_amount(n)) < 1e-9);
            vertices++;
        }
        size_t at;
        json_array_foreach(json_object_get(root, "neighbors"), at, edge) {
            const char *relation = json_string_value(json_object_get(edge, "relation"));
            edges += strcmp(relation, "paid_by") == 0 || strcmp(relation, "paid_at") == 0;
        }
        json_decref(root);
    }
    assert_int_equal(vertices, wanted);
    assert_int_equal(edges, 2 * PAYMENTS);
}

/* --- commands whose output is a truth -----------------------------------------------------------------------*/

/* Of edges' lines, the numbers of their events are left out: they depend on the store's secret, and one that was made
 * anew has another. No key here has a comma or a quote. */
static inline void events_leave_out(char *edges) {
    char *kept = edges;
    unsigned column = 0;
    for (const char *at = edges; *at; at++) {
        column = *at == '\n' ? 0 : column + (*at == ',');
        if (column != EVENT_COLUMN || *at == ',') *kept++ = *at;
    }
    *kept = 0;
}

/* As a snapshot's export has it: the lines of nodes.csv and edges.csv in order. NULL: a status that is not 0 in
 * *statusp. *newp: how many lines of vertices were sent after the damage. */
static inline char *export_normal(const char *folder, int64_t patience_ms, const char *snapshot, int *statusp,
                                  size_t *newp) {
    char out[PATH_LENGTH], nodes[PATH_LENGTH + 16], edges[PATH_LENGTH + 16];
    snprintf(out, sizeof out, "%s/export", folder);
    snprintf(nodes, sizeof nodes, "%s/nodes.csv", out);
    snprintf(edges, sizeof edges, "%s/edges.csv", out);
    if (weir_path_exists(out)) assert_ok(weir_folder_remove(out));
    const char *const argv[] = {weir_test_program(), "snapshot", "export", snapshot, out, NULL};
    *statusp = command(folder, patience_ms, NULL, argv);
    if (*statusp) return NULL;
    char *n = file_text(nodes, NULL), *e = file_text(edges, NULL);
    assert_true(n && e);
    assert_ptr_equal(strstr(e, "src,dst,type,src_type,dst_type,timestamp,event_id"), e);
    events_leave_out(e);
    n = lines_normal(n, NEW_PREFIX, newp);
    e = lines_normal(e, NEW_PREFIX, NULL);
    char *both = malloc(strlen(n) + strlen(e) + 1);
    assert_non_null(both);
    strcpy(stpcpy(both, n), e);
    free(n);
    free(e);
    return both;
}

static inline int snapshot_build(const char *folder, int64_t patience_ms, const char *store, const char *snapshot) {
    if (weir_path_exists(snapshot)) assert_ok(weir_folder_remove(snapshot));
    const char *const argv[] = {weir_test_program(), "snapshot", "build", snapshot, "--path", store, NULL};
    return command(folder, patience_ms, NULL, argv);
}

/* What `weir WORDS… --path LOG --json` says of the folder's log; the words end with NULL. */
static inline int log_said(const char *folder, int64_t patience_ms, const char *const *words, char **textp) {
    char log[PATH_LENGTH], out[PATH_LENGTH];
    const char *argv[8] = {weir_test_program()};
    size_t count = 1;
    snprintf(log, sizeof log, "%s/d/eventlog", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    for (; words[count - 1]; count++)
        argv[count] = words[count - 1];
    argv[count++] = "--path";
    argv[count++] = log;
    argv[count++] = "--json";
    int status = command(folder, patience_ms, NULL, argv);
    *textp = file_text(out, NULL);
    return status;
}

static const char *const log_cat[] = {"log", "cat", "payments", NULL};
static const char *const letters_list[] = {"ingest", "dlq", "list", NULL};

/* What training says in its report. It goes on from the night's folder (resume), or begins anew in one of its own; from
 * the snapshot, or from its only part, which says the same. */
static inline int train_run(const char *folder, int64_t patience_ms, bool resume, bool on_part, char **textp) {
    char from[PATH_LENGTH], run[PATH_LENGTH], report[PATH_LENGTH + 16];
    const char *argv[20] = {weir_test_program(),
                            "train",
                            "--no-baselines",
                            "--hidden",
                            "4",
                            "--fanouts",
                            "3",
                            "--epochs",
                            resume ? "2" : "1",
                            "--folder",
                            run};
    size_t count = 11;
    snprintf(from, sizeof from, "%s/%s", folder, on_part ? "parts" : "d/nights/n/snapshot");
    snprintf(run, sizeof run, "%s/%s", folder, resume ? "d/nights/n/train" : "run");
    snprintf(report, sizeof report, "%s/report.json", run);
    if (resume) argv[count++] = "--resume";
    if (on_part) argv[count++] = "--parts";
    argv[count++] = from;
    if (!resume && weir_path_exists(run)) assert_ok(weir_folder_remove(run));
    int status = command(folder, patience_ms, NULL, argv);
    *textp = status ? NULL : file_text(report, NULL);
    return status;
}

/* What may be written is copied, not linked: a program that writes into a file must not reach the world. */
static inline void world_copy(const world *w, const char *const *folders, size_t count, const char *to) {
    char script[4 * PATH_LENGTH];
    int length =
        snprintf(script, sizeof script, "rm -rf '%s' && mkdir '%s' && cd '%s' && cp -a --parents", to, to, w->folder);
    for (size_t i = 0; i < count && folders[i]; i++)
        length += snprintf(script + length, sizeof script - (size_t)length, " %s", folders[i]);
    snprintf(script + length, sizeof script - (size_t)length, " '%s'", to);
    const char *const shell[] = {"sh", "-c", script, NULL};
    must(w->folder, NULL, shell);
}

static inline void truth_of_training(world *w, const char *folder) {
    assert_int_equal(train_run(folder, 60000, false, false, &w->trained), 0);
    assert_int_equal(train_run(folder, 60000, true, false, &w->resumed), 0);
    assert_true(w->trained && w->resumed);
}

static inline void truth_answers(world *w, const char *folder) {
    process server;
    const char *body;
    asker a = world_server(&server, folder);
    for (size_t i = 0; i < w->question_count; i++) {
        question *q = &w->questions[i];
        int status = question_ask(q, &a, &body);
        if (status != 200) fail_msg("%s: %d %s", q->path, status, body);
        q->answer = ask_normal(body);
    }
    world_server_end(&server, &a);
    truth_hold(w);
}

/* Of a copy, since a server that starts writes: what is damaged later, and once more to repeat it, stays as it is. */
static inline void truth_make(world *w) {
    static const char *const everything[] = {"d", "parts"};
    char copy[PATH_LENGTH - 32], store[PATH_LENGTH], snapshot[PATH_LENGTH];
    int status;
    size_t payments = 0;
    snprintf(copy, sizeof copy, "%s-copy", w->folder);
    snprintf(store, sizeof store, "%s/d/store", copy);
    snprintf(snapshot, sizeof snapshot, "%s/snapshot", copy);
    world_copy(w, everything, 2, copy);
    questions_make(w);
    truth_answers(w, copy);
    truth_of_training(w, copy);
    assert_int_equal(snapshot_build(copy, 60000, store, snapshot), 0);
    w->export = export_normal(copy, 60000, snapshot, &status, NULL);
    assert_non_null(w->export);
    for (const char *at = w->export; at; at = strstr(at + 1, ",payment,"))
        payments++;
    assert_true(payments > PAYMENTS); /* and those in edges */
    assert_int_equal(log_said(copy, 60000, log_cat, &w->log), 0);
    assert_int_equal(log_said(copy, 60000, letters_list, &w->letters), 0);
    assert_non_null(strstr(w->letters, "field 'time'"));
    assert_ok(weir_folder_remove(copy));
}

#endif /* WEIR_CRASH_FLIPS_TRUTH_H */

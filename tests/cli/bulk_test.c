/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk_test.c - `weir score` and `weir embed` as a user types them: scores are what the training printed of the same
 * targets; what cannot be is refused in a sentence; and what a full disk or kill -9 leaves.
 */
#include "cli_support.h"

#define CONFIG " --set models.require_signature=false"
#define SCORE  "weir score snap --model network/2*" CONFIG
#define EMBED  "weir embed snap --model network/2*" CONFIG

static const char schema[] =
    "version: 1\n"
    "name: t\n"
    "vertices: {p: {features: {x: {kind: number}}}, a: {}, b: {}}\n"
    "relations: {by: {from: p, to: a}, in: {from: a, to: b}}\n"
    "aggregates: {made: {vertex: a, relation: by, function: count, window: 1h, normalise: log-standard}}\n"
    "labels: {bad: {vertex: p, values: [no, yes], absent: no, lag: 1s}}\n"
    "tasks: {t: {kind: classify, label: bad, positive: yes}}\n"
    "sources:\n"
    "  s:\n"
    "    id: i\n"
    "    time: {field: t, format: s}\n"
    "    mutations:\n"
    "      - {put_vertex: p, key: i, features: {x: x}}\n"
    "      - {put_edge: by, from: i, to: a}\n"
    "      - {put_edge: in, from: a, to: b}\n"
    "      - {put_label: bad, key: i, when: {has: y}, value: y}\n";

/* Payments of accounts of a few banks, some with a key that CSV must quote; a snapshot of them. */
static void stream_make(void) {
    FILE *file = fopen(weir_test_path("s.yaml"), "w");
    assert_non_null(file);
    fputs(schema, file);
    assert_int_equal(fclose(file), 0);
    file = fopen(weir_test_path("s.jsonl"), "w");
    assert_non_null(file);
    for (int i = 0; i < 400; i++)
        fprintf(file, "{\"i\":\"p%s%d\",\"t\":%d,\"x\":%d,\"a\":\"a%d\",\"b\":\"b%d\"%s}\n",
                i % 50 ? "" : ", \\\"q\\\" ", i, 1000 + 7 * i, i * 31 % 100, i % 23, i % 23 % 4,
                i % 3 ? "" : ",\"y\":\"yes\"");
    assert_int_equal(fclose(file), 0);
    cli_must("weir load --schema s.yaml --data d s.jsonl >&2; weir snapshot build snap --path d/store",
             "^snap: 427 vertices");
}

/* A model of a kind in a folder of that name, and what the training said of its targets. */
static void model_make(const char *kind) {
    char line[512];
    snprintf(line, sizeof line,
             "weir train snap --model %s --models %s --predictions %s.csv --epochs 2 --batch 32 --hidden 8 --warm-up 0 "
             "--validation 0.2 --test 0.2",
             kind, kind, kind);
    cli_must(line, "^model 2");
}

/* The oracle is the trainer, which has batches of other targets. Columns: part,key,time,label,score,probability. */
static void b2_scores_are_the_trainings_predictions(void **state) {
    (void)state;
    static const char *const kinds[] = {"network", "trees", "blend"};
    stream_make();
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        char line[2048];
        model_make(kinds[k]);
        snprintf(line, sizeof line,
                 "weir score snap --model %s/2*" CONFIG " --out s.csv >&2; "
                 "sed -E 's/\"[^\"]*(\"\"[^\"]*)*\"/Q/' %s.csv | grep -v ',Q,' | tail -n +2 > p; "
                 "awk -F, -v exact=%d 'NR == FNR { s[$1,$2] = $3; q[$1,$2] = $4; next } "
                 "function off(a, b) { return exact ? a != b : (a - b) ^ 2 > 1e-10 * (1 + b * b) } "
                 "{ n[$1]++; if (off(s[$2,$3], $5) || off(q[$2,$3], $6)) bad[$1]++ } "
                 "END { print n[\"test\"], \"of the test,\", bad[\"test\"] + 0, \"differ;\", n[\"validation\"], "
                 "\"of validation,\", bad[\"validation\"] + 0 }' s.csv p",
                 kinds[k], kinds[k], k == 1);
        /* What was said of validation was said before it was learnt from. */
        cli_must(line, "^[1-9][0-9] of the test, 0 differ; [1-9][0-9] of validation, [1-9][0-9]*$");
    }
    cli_must(
        "weir train snap --learn once --models once --predictions once.csv --epochs 2 --hidden 8 --warm-up 0 "
        "--validation 0.2 --test 0.2 >&2; weir score snap --model once/2*" CONFIG " --out s.csv >&2; "
        "sed -E 's/\"[^\"]*(\"\"[^\"]*)*\"/Q/' once.csv | grep -v ',Q,' | tail -n +2 > p; "
        "awk -F, 'NR == FNR { s[$1,$2] = $3; next } { n++; if ((s[$2,$3] - $5) ^ 2 > 1e-10 * (1 + $5 * $5)) bad++ } "
        "END { print n, bad + 0, \"differ\" }' s.csv p",
        "^[0-9]* 0 differ$");
}

/* A data set without times, with a matrix and three classes: all as of the snapshot's time, as its training was. */
static void b2_classes_of_a_graph_without_times(void **state) {
    (void)state;
    cli_must(
        "{ echo id,label,matrix.x.2; for i in {0..299}; do echo $i,c$((i % 3)),$((i % 3)) $((i % 7)); done; } > n.csv; "
        "{ echo src,dst; for i in {0..299}; do echo $i,$(((i + 3) % 300)); echo $i,$((i * 7 % 300)); done; } > e.csv; "
        "weir snapshot import snap --nodes n.csv --edges e.csv --undirected",
        "^snap: 300 vertices");
    cli_must("weir train snap --per-class 30,30 --epochs 3 --hidden 8 --batch 16 --models network --predictions p.csv",
             "^model 2");
    cli_must(SCORE " --out s.csv && head -1 s.csv", "^s.csv: 300 scores of node\nkey,time,predicted,probability$");
    cli_must("awk -F, 'NR == FNR { s[$1] = $2 \",\" $3; next } FNR > 1 { n++; if (s[$2] != $3 \",\" $5) bad++ } "
             "END { print n, \"targets,\", bad + 0, \"differ\" }' s.csv p.csv",
             "^210 targets, 0 differ$");
    cli_must(EMBED " --out e.csv", "^e.csv: 300 embeddings of node$");
}

/* A task that judges at labels has no time of its own for what no label has come for: all as of the snapshot's time. */
static void a_task_at_labels_is_asked_as_of_the_end(void **state) {
    (void)state;
    stream_make();
    cli_must(
        "sed 's/positive: yes}/positive: yes, at: label}/; s/absent: no, //' s.yaml > l.yaml; rm -r d snap; "
        "sed -E "
        "'s/\"x\":([0-9]+),\"a\":\"([^\"]*)\",\"b\":\"b[0-9]+\"}/\"x\":\\1,\"a\":\"\\2\",\"b\":\"b\",\"y\":\"no\"}/' "
        "s.jsonl > l.jsonl; weir load --schema l.yaml --data d l.jsonl >&2; weir snapshot build snap --path d/store",
        "^snap: 4");
    model_make("network");
    cli_must(SCORE " --out s.csv >&2; tail -n +2 s.csv | grep -v '\"' | cut -d, -f2 | sort -u | wc -l", "^1$");
}

static void files_have_a_row_a_vertex(void **state) {
    (void)state;
    stream_make();
    model_make("network");
    cli_must(SCORE " --out s.csv && head -1 s.csv && wc -l < s.csv", "^s.csv: 400 scores of p\nkey,time,score,");
    cli_must("grep -c '^\"p, \"\"q\"\" ' s.csv", "^8$");
    cli_must(SCORE " --from 1970-01-01T00:30:00Z --to 1970-01-01T00:31:10Z --out few.csv", "^few.csv: 10 scores of p$");
    cli_must(SCORE " --as-of 1970-01-01T00:31:10Z --out then.csv && tail -n +2 then.csv | grep -v '\"' | "
                   "cut -d, -f2 | sort -u | tr '\n' ' '",
             "^1970-01-01T00:31:10.000000Z $");
    cli_must(EMBED " --out v && ls v | tr '\n' ' '", "^a.keys.csv a.npy p.keys.csv p.npy $");
    cli_must("tail -n +2 v/a.keys.csv | wc -l && head -c 128 v/a.npy | tr -d '\\0'",
             "^23\n.*'descr': '<f4', 'fortran_order': False, 'shape': \\(23, 8\\)");
    cli_must(EMBED " --type a --out a.csv && head -1 a.csv", "^key,time,e0,e1,e2,e3,e4,e5,e6,e7$");
    cli_must(SCORE " --threads 1 --out 1.csv >&2; " SCORE " --threads 3 --out 3.csv >&2; cmp 1.csv 3.csv && echo same",
             "^same$");
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {SCORE, "--out is missing"},
        {"weir score snap --out s.csv", "--model is missing"},
        {SCORE " --out s.parquet", "neither .csv nor .npy"},
        {SCORE " --out nowhere/s.csv", "nowhere/s.csv"},
        {SCORE " --out s.csv --as-of 1970-01-01T00:30:00Z --from 1970-01-01", "omit --as-of, or them"},
        {SCORE " --out s.csv --as-of 2099-01-01", "does not cover that time"},
        {SCORE " --out s.csv --threads 0", "threads"},
        {"weir score snap --model network/2* --out s.csv", "not signed|no key"},
        {"weir score nothing --model network/2*" CONFIG " --out s.csv", "nothing"},
        {"weir score other --model network/2*" CONFIG " --out s.csv", "schema"},
        {"weir embed other --model network/2*" CONFIG " --type p --out s.csv", "schema"},
        {"weir embed other --model network/2*" CONFIG " --out v", "schema"},
        {EMBED " --out s.csv", "embeddings of 2 types; name one by --type"},
        {EMBED " --type nothing --out s.csv", "no vertex type 'nothing'"},
        {EMBED " --type b --out s.csv", "no embedding of a b: its network meets that type at the last hop only"},
        {EMBED " --type p --out v", "--type is of one file"},
        {EMBED " --out s.parquet", "Parquet is not written"},
        {"weir embed snap --model trees/2*" CONFIG " --out v", "boosted trees"},
    };
    stream_make();
    model_make("network");
    model_make("trees");
    cli_must(
        "sed 's/^vertices: {p: {features: {x: {kind: number}}}/vertices: {p: {features: {x: {kind: category}}}/' "
        "s.yaml > o.yaml; weir load --schema o.yaml --data o s.jsonl >&2; weir snapshot build other --path o/store",
        "^other: ");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cli_refused(rows[i][0], rows[i][1]);
    cli_must("ls | grep -E '^(s\\.|v)|partial' || echo nothing is left", "^s.jsonl\ns.yaml\n");
    cli_must("ls | grep -c -E 'csv.partial|npy|^v$' || true", "^0$");
}

/* A file that may not grow stands for a disk that is full; what was there before stays. */
static void a_full_disk_is_said(void **state) {
    (void)state;
    stream_make();
    model_make("network");
    cli_must(SCORE " --out s.csv > /dev/null; cp s.csv before", "");
    cli_refused("trap '' XFSZ; ulimit -f 8; " SCORE " --out s.csv", "s.csv.partial");
    cli_refused("export WEIR_FAULT=write:2:ENOSPC:/s.csv; " SCORE " --out ./s.csv 2>&1 >&2 | grep -v armed >&2; exit 1",
                "free some space|full");
    cli_must("cmp s.csv before && ls | grep partial || echo whole", "^whole$");
}

/* Killed at its last steps, and at any moment: the old array with its keys, the new one with its keys, or none. */
static void b3_kill_9_leaves_no_half_file(void **state) {
    (void)state;
    static const char *const points[] = {"bulk.written", "bulk.named"};
    stream_make();
    model_make("network");
    cli_must(SCORE " --to 1970-01-01T00:31:10Z --out old.npy > /dev/null; " SCORE " --out new.npy > /dev/null", "");
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        char line[1024];
        snprintf(line, sizeof line,
                 "cp old.npy s.npy; cp old.keys.csv s.keys.csv; WEIR_KILL_AT=%s:1 " SCORE
                 " --out s.npy > /dev/null 2>&1 || echo status $?; ls | grep '^s[.][kn]' | tr '\n' ' '",
                 points[i]);
        cli_must(line, i ? "^s.keys.csv s.npy.partial $" : "^s.keys.csv s.keys.csv.partial s.npy s.npy.partial $");
        cli_must(i ? "cmp s.keys.csv new.keys.csv && echo whole" : "cmp s.npy old.npy && echo whole", "^whole$");
    }
    cli_must("for n in 1 2 3 4 5 6 7 8 9; do cp old.npy s.npy; cp old.keys.csv s.keys.csv; " SCORE
             " --out s.npy > /dev/null & sleep 0.0$n; kill -9 $! || true; wait $! || true; "
             "if test ! -e s.npy; then continue; fi; "
             "cmp -s s.npy old.npy && cmp -s s.keys.csv old.keys.csv || "
             "{ cmp -s s.npy new.npy && cmp -s s.keys.csv new.keys.csv; } || echo half; done > halves 2> /dev/null; "
             "wc -l < halves",
             "^0$");
    cli_must(SCORE " --out s.npy > /dev/null; cmp s.npy new.npy && cmp s.keys.csv new.keys.csv && ls | grep partial || "
                   "echo all is well",
             "^all is well$");
}

WEIR_TESTS(WEIR_CASE(b2_scores_are_the_trainings_predictions), WEIR_CASE(b2_classes_of_a_graph_without_times),
           WEIR_CASE(a_task_at_labels_is_asked_as_of_the_end), WEIR_CASE(files_have_a_row_a_vertex),
           WEIR_CASE(what_cannot_be_is_refused), WEIR_CASE(a_full_disk_is_said),
           WEIR_CASE(b3_kill_9_leaves_no_half_file))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edges_test.c - labels of edges as a user learns them: which ratings of Bitcoin OTC are distrust, judged on the last
 * fifth. Drawn anew among the ratings, the same labels are a coin, whatever else is known.
 */
#include "cli_support.h"

#define CONFIG " --set models.require_signature=false"

static const char declared[] =
    "aggregates:\n"
    "  given: {vertex: rates, end: rates_src, relation: rates_src, function: count, window: 2000d}\n"
    "  received: {vertex: rates, end: rates_dst, relation: rates_dst, function: count, window: 2000d}\n"
    "  gave: {vertex: user, relation: rates_src, function: count, label: rates_label, is: '1', window: 2000d}\n"
    "  got: {vertex: user, relation: rates_dst, function: count, label: rates_label, is: '1', window: 2000d}\n";

static void files_make(void) {
    FILE *file = fopen(weir_test_path("declared.yaml"), "w");
    assert_non_null(file);
    fputs(declared, file);
    assert_int_equal(fclose(file), 0);
    char line[8192];
    snprintf(line, sizeof line,
             "D=%s/tests/data/bitcoin_otc; cut -d, -f1,3 $D/nodes.csv > n.csv;"
             "awk -F, 'BEGIN {OFS=\",\"; print \"src,dst,type,timestamp,label\"}"
             " NR > 1 {print $1,$2,$3,$4,($5 < 0)}' $D/edges.csv > told.csv;"
             "awk -F, 'BEGIN {OFS=\",\"; srand(7)} NR == 1 {print; next}"
             " {$5 = rand() < 0.08 ? 1 : 0; print}' told.csv > coin.csv; wc -l < coin.csv",
             getenv("WEIR_SOURCE_DIR"));
    cli_must(line, "^8001$");
}

/* The average precision of the test part, in thousandths. */
static void learn(const char *labels, const char *pattern) {
    char line[2048];
    snprintf(line, sizeof line,
             "weir snapshot import %s --nodes n.csv --edges %s.csv --as-vertices rates --declare declared.yaml >&2 &&"
             " weir train %s --folder %s-run --models models --negatives 0 --test 0.2 --warm-up 0.05 --epochs 5"
             " --hidden 32 --no-baselines >&2 &&"
             " sed 's/.*\"test\"://' %s-run/report.json | grep -o '\"average_precision\":[0-9.]*' | cut -d: -f2",
             labels, labels, labels, labels, labels);
    cli_must(line, pattern);
}

static void labels_of_edges_are_learnt(void **state) {
    (void)state;
    files_make();
    learn("told", "^0\\.[2-9]"); /* of the last fifth 29 of 1,589 are distrust: 0.018 by chance */
    cli_must("weir score told --model models/2*" CONFIG
             " --out scores.csv >&2; head -n 1 scores.csv; wc -l < scores.csv;"
             "cut -d, -f1 scores.csv | sed 's,/.*,,' | sort | uniq -c",
             "8000 rates");
}

static void a_coin_on_edges_stays_a_coin(void **state) {
    (void)state;
    files_make();
    learn("coin", "^0\\.(0[4-9]|1[0-3])"); /* 0.08 by chance */
}

/* A split is told by masks and by nothing else: of vertices, and of edges that become some. */
static void splits_are_masks(void **state) {
    (void)state;
    cli_must("printf 'id,label,cut,timestamp\\na,x,train,0\\nb,y,dev,0\\nc,x,test,0\\nd,y,,0\\na,x,,5\\n' > n.csv;"
             "printf 'src,dst,type,timestamp,part\\na,b,met,1,val\\nb,c,met,2,test\\n' > e.csv;"
             "weir snapshot import s --nodes n.csv --edges e.csv --splits cut --skip part >&2;"
             "weir snapshot export s out >&2; head -n 1 out/nodes.csv; cat out/nodes.csv",
             "mask.cut_train,mask.cut_val,mask.cut_test");
    cli_must("cut -d, -f1,5- out/nodes.csv | sort -u | tr '\\n' ' '", "a,1,0,0.* b,0,1,0.* c,0,0,1.* d,0,0,0");
    cli_must("weir snapshot import t --nodes n.csv --edges e.csv --as-vertices met --splits part,cut >&2;"
             "weir snapshot export t tout >&2; head -qn 1 tout/nodes.csv tout/edges.csv",
             "mask.cut_test.*mask.part_train.*\nsrc,dst,type,src_type,dst_type,timestamp,event_id\n");
    cli_refused("weir snapshot import u --nodes n.csv --edges e.csv --splits cot",
                "'cot', which is no column of the nodes");
    cli_refused("weir snapshot import u --nodes n.csv --edges e.csv --splits label", "'x' is none of train, val");
    cli_refused("weir snapshot import u --npz a.npz --splits cut", "--splits is of columns in CSV");
    cli_refused("sed 's/label/mask.cut_val/;s/,[xy],/,1,/' n.csv > m.csv;"
                "weir snapshot import u --nodes m.csv --edges e.csv --splits cut",
                "would make a second mask 'cut_val'");
}

WEIR_TESTS(WEIR_CASE(splits_are_masks), WEIR_CASE(labels_of_edges_are_learnt), WEIR_CASE(a_coin_on_edges_stays_a_coin))

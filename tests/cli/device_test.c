/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_test.c - `weir train --device`: the library of kernels is found beside the program and fits it, or the
 * processor computes and a line says why. The library is the one whose device a processor plays.
 */
#include "cli_support.h"

#define TRAIN \
    "train snap --per-class 12,12 --epochs 1 --hidden 4 --batch 12 --fanouts 2,2 --no-baselines --predictions "

/* Of two files of predictions: log odds of how many targets, and how many of them differ, or are none. */
#define APART                                                                                                        \
    "-F, 'NR == FNR { s[$2] = $5; next } FNR > 1 { n++; bad += $5 == \"\" || (s[$2] - $5) ^ 2 > 1e-7 } END { print " \
    "n, "                                                                                                            \
    "\"targets,\", bad + 0, \"apart\" }'"

/* Open MPI leaks by itself. */
#define RANKS \
    "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "

/* Two types of vertices with a matrix, of which one has labels; and the program in a folder of its own, beside which
 * nothing lies. */
static void here_make(void) {
    cli_must("awk 'BEGIN { srand(7); print \"id,type,label,matrix.x.3\" >\"n.csv\"; print \"src,dst,type\" >\"e.csv\"; "
             "for (i = 0; i < 90; i++) { place[i] = i % 5 == 4; "
             "printf \"%d,%s,%s,%d %d %.3f\\n\", i, place[i] ? \"place\" : \"node\", "
             "place[i] ? \"\" : \"c\" int(2 * rand()), i % 4, i % 7, rand() >\"n.csv\" } "
             "for (i = 0; i < 300; i++) { a = int(90 * rand()); a -= place[a]; b = i % 90; "
             "if (a != b) print a \",\" b \",e\" place[b] >\"e.csv\" } }'; "
             "echo 'tasks: {odd: {kind: classify, label: node_label, positive: c1}}' >odd.yaml; "
             "weir snapshot import snap --nodes n.csv --edges e.csv --declare odd.yaml; "
             "mkdir -p here/bin here/lib; cp \"$(command -v weir-train)\" here/bin; weir " TRAIN
             "cpu.csv --device cpu >&2",
             "^snap: 90 vertices");
}

static void library_lay(const char *change) {
    char line[1024];
    snprintf(line, sizeof line, "cp '%s' here/lib/libweir_cuda.so; %s; echo laid", WEIR_TEST_CUDA, change);
    cli_must(line, "^laid$");
}

/* The same bits as ever, and one line more. */
static void falls_back_on(const char *why) {
    char pattern[256];
    snprintf(pattern, sizeof pattern, "^the processor computes in place of cuda: %s", why);
    cli_must("here/bin/weir-" TRAIN "again.csv --device cuda; cmp cpu.csv again.csv", pattern);
}

static void without_a_library_the_processor_computes(void **state) {
    (void)state;
    here_make();
    falls_back_on("there is no libweir_cuda.so for the GPU beside .*/here/bin; build weir with -DWEIR_CUDA=ON");
    cli_must("echo nothing >here/lib/libweir_cuda.so; echo laid", "^laid$");
    falls_back_on(".*libweir_cuda.so cannot be loaded: ");
    library_lay("sed -i 's/" WEIR_KERNELS_SUM "/0000000000000000/' here/lib/libweir_cuda.so");
    falls_back_on(".*libweir_cuda.so is of another version of weir");
}

static void what_a_device_learns_is_what_the_processor_learns(void **state) {
    (void)state;
    here_make();
    library_lay("true");
    cli_must("here/bin/weir-" TRAIN "cuda.csv --device cuda >out; grep -c 'in place of' out || true", "^0$");
    cli_must("awk " APART " cpu.csv cuda.csv", "^[0-9]{2} targets, 0 apart$");
    /* Two ranks share the one device. */
    cli_must("" RANKS "here/bin/weir-" TRAIN "two.csv --device cuda >out; grep -c 'in place of' out || true; "
             "awk " APART " cpu.csv two.csv",
             "^[0-9]{2} targets, 0 apart$");
    cli_must("mkdir -p whole cut; here/bin/weir-" TRAIN "a.csv --device cuda --folder cut >&2; "
             "here/bin/weir-" TRAIN "b.csv --device cuda --folder cut --resume --epochs 2 | grep -c ^epoch",
             "^1$");
}

/* By `weir score` and `weir embed`, of a model that a processor has learnt. */
static void what_is_asked_in_bulk_is_the_same(void **state) {
    (void)state;
    here_make();
    library_lay("cp \"$(command -v weir)\" here/bin");
    cli_must(
        "weir " TRAIN "m.csv --models models >&2; model=$(echo models/2*); "
        "set='--set models.require_signature=false'; for d in cpu cuda; do "
        "here/bin/weir score snap --model $model $set --set inference.device=$d --out s$d.csv >&2; "
        "here/bin/weir embed snap --type node --model $model $set --set inference.device=$d --out e$d.csv >&2; done; "
        "cmp -s ecpu.csv ecuda.csv || echo other bits; for f in s e; do "
        "paste -d, ${f}cpu.csv ${f}cuda.csv | awk -F, 'FNR > 1 { for (i = 1; i <= NF / 2; i++) { n++; "
        "d = $i - $(i + NF / 2); bad += $i == \"\" || d ^ 2 > 1e-8 } } END { print (n > 100), bad + 0 }'; done",
        "^other bits\n1 0\n1 0$");
}

/* Rows that stay, of all vertices or of those that are read most, have the bits of those that batches bring: alone, on
 * a device, beside embeddings of vertices and hidden entries, and on ranks with parts. */
static void rows_that_stay_change_nothing(void **state) {
    (void)state;
    here_make();
    library_lay("true");
    cli_must("for r in 0 0.3 1; do weir " TRAIN "$r.csv --resident $r >&2; done; cmp 0.csv 0.3.csv; cmp 0.csv 1.csv; "
             "cmp 0.csv cpu.csv; echo alike",
             "^alike$");
    cli_must("for r in 0 0.3; do here/bin/weir-" TRAIN "d$r.csv --device cuda --resident $r >&2; done; "
             "cmp d0.csv d0.3.csv; here/bin/weir-" TRAIN "d.csv --device cuda >&2; cmp d0.csv d.csv; echo alike",
             "^alike$");
    cli_must("for r in 0 0.5 1; do weir " TRAIN "e$r.csv --embed-vertices node --resident $r >&2; weir " TRAIN
             "h$r.csv --input-dropout 0.2 --resident $r >&2; done; cmp e0.csv e0.5.csv; cmp e0.csv e1.csv; "
             "cmp h0.csv h0.5.csv; cmp h0.csv h1.csv; cmp -s e0.csv cpu.csv || cmp -s h0.csv cpu.csv || echo alike",
             "^alike$");
    cli_must("weir partition snap --parts 2 --out p2 >&2; "
             "for r in 0 0.5 1; do " RANKS "\"$(dirname \"$(command -v weir)\")\"/weir-train "
             "--parts p2 --per-class 12,12 --epochs 3 --hidden 8 --batch 16 --fanouts 3,2 --no-baselines "
             "--resident $r | sed -nE 's/^(epoch +[0-9]+ +loss [0-9.]+ +validation [0-9.]+).*/\\1/p' >p$r; done; "
             "cmp p0 p0.5; cmp p0 p1; wc -l <p0",
             "^3$");
}

/* Calls, bytes and operations of a step follow from the network and the batches alone. */
static void a_step_takes_the_same_of_each_device(void **state) {
    (void)state;
    here_make();
    library_lay("cp \"$(command -v weir-bench)\" here/bin");
    cli_must("for d in cpu cuda; do here/bin/weir-bench gpu --quick --hidden 4 --targets 64 --device $d --json | "
             "sed -nE 's/.*(\"kernel.*),\"us\".*/\\1/p' > $d.jsonl; done; cmp cpu.jsonl cuda.jsonl; "
             "grep -cE '^\"kernel\":\"(gemm|segment_mean|adamw|to_device)\",\"calls\":[1-9]' cpu.jsonl",
             "^4$");
    /* What batches bring comes while others are computed on. */
    cli_must("awk -F'[:,]' '/to_device beside/ { beside = $6 } /to_device\"/ { own = $6 } "
             "END { print (own > 0 && own * 50 < beside ? \"beside\" : own \" of \" beside) }' cuda.jsonl",
             "^beside$");
    cli_must("here/bin/weir-bench gpu --quick --hidden 4 --targets 64 --device cuda",
             "measured on cuda: a step [0-9.]+ us; .*\n.*modelled, not measured: .*\n.*modelled: a step [0-9.]+ us: "
             "kernels [0-9.]+, of which ");
    cli_must("rm here/lib/*; here/bin/weir-bench gpu --quick --hidden 4 --targets 64",
             "processor computes in place of cuda: .*\n(.*\n)*.*measured on cpu: a step");
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    here_make();
    cli_refused("weir train snap --per-class 20,20 --device cuda --plan", "--device is of a training; omit it with");
    cli_refused("weir train snap --per-class 20,20 --resident 1.5", "--resident");
    cli_refused("weir train snap --per-class 20,20 --resident 1 --plan", "--resident is of a training; omit it with");
    cli_refused("weir train snap --per-class 20,20 --device gpu", "--device is 'gpu'.*cpu.*cuda|cpu\\|cuda|cpu, cuda");
}

WEIR_TESTS(WEIR_CASE(without_a_library_the_processor_computes),
           WEIR_CASE(what_a_device_learns_is_what_the_processor_learns), WEIR_CASE(rows_that_stay_change_nothing),
           WEIR_CASE(what_is_asked_in_bulk_is_the_same), WEIR_CASE(a_step_takes_the_same_of_each_device),
           WEIR_CASE(what_makes_no_sense_is_refused))

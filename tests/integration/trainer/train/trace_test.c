/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_test.c - weir-train --trace under mpirun: every stage of every batch is there, in its order, and what stages
 * took is what epochs.jsonl says; and what the order of events shows of the sums beside the way back.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/arena.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "learn_fixture.h"
#include "ranks.h"
#include "shell.h"

#define RANKS  2u
#define EPOCHS 2u
#define MAKERS 3u
#define TRACKS (2 + 2 * MAKERS) /* who computes; makers of learning; makers of judging; the sums */
#define SPANS  4096u            /* at most, of a track */

/* In the order of a batch: a maker's, those of who computes, and that of the sums. */
enum { SAMPLE, ASK, ANSWER, ENCODE, BRING, WAIT, PULL, COMPUTE, SUM, UPDATE, REDUCE, STAGES };
static const char *const stages[STAGES] = {"sample", "ask",     "answer", "encode", "bring", "wait",
                                           "pull",   "compute", "sum",    "update", "reduce"};

typedef struct span {
    size_t stage;
    int64_t begin, end, epoch, batch;
} span;

typedef struct track {
    span spans[SPANS];
    size_t count;
} track;

static struct {
    track tracks[RANKS][TRACKS];
    bool brings, pulls; /* there is a device; embeddings are shared out */
} trace;

/* --- training and reading ----------------------------------------------------------------------------------------- */

static void trace_read(void) {
    char *text = NULL;
    size_t length;
    const weir_json_node *root;
    weir_arena *arena;
    memset(trace.tracks, 0, sizeof trace.tracks);
    assert_ok(weir_arena_open(64u << 20, &arena));
    assert_ok(weir_file_load(weir_test_path("trace.json"), 8u << 20, &text, &length));
    assert_ok(weir_json_parse("trace", text, length, 8, arena, &root));
    for (const weir_json_node *e = weir_json_find(root, "traceEvents")->first; e; e = e->next) {
        int64_t rank, number;
        span s = {0};
        if (strcmp(weir_json_node_text(weir_json_find(e, "ph")), "X") != 0) continue;
        while (strcmp(stages[s.stage], weir_json_node_text(weir_json_find(e, "name"))) != 0)
            assert_true(++s.stage < STAGES);
        const weir_json_node *arguments = weir_json_find(e, "args");
        assert_ok(weir_json_node_i64(weir_json_find(e, "pid"), 0, RANKS - 1, &rank));
        assert_ok(weir_json_node_i64(weir_json_find(e, "tid"), 0, TRACKS - 1, &number));
        assert_ok(weir_json_node_i64(weir_json_find(e, "ts"), 0, INT64_MAX / 2, &s.begin));
        assert_ok(weir_json_node_i64(weir_json_find(e, "dur"), 0, INT64_MAX / 2, &s.end));
        assert_ok(weir_json_node_i64(weir_json_find(arguments, "epoch"), 1, EPOCHS + 1, &s.epoch));
        assert_ok(weir_json_node_i64(weir_json_find(arguments, "batch"), 0, SPANS, &s.batch));
        s.end += s.begin;
        track *t = &trace.tracks[rank][number];
        assert_true(t->count < SPANS);
        t->spans[t->count++] = s;
    }
    weir_arena_close(arena);
    weir_free(text);
}

/* first: the snapshot, or "--parts=FOLDER". more ends with NULL. */
static void trains(const char *program, const char *first, const char *const *more) {
    char run[4096], path[4096];
    weir_test_output output;
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    snprintf(path, sizeof path, "%s", weir_test_path("trace.json"));
    const char *const fixed[] = {first,  "--task",  "bad",  "--folder",     run,    "--trace",       path,   "--epochs",
                                 "2",    "--ahead", "3",    "--patience",   "0",    "--warm-up",     "0.05", "--test",
                                 "0.25", "--learn", "once", "--validation", "0.25", "--no-baselines"};
    const char *arguments[48];
    size_t count = sizeof fixed / sizeof *fixed;
    memcpy(arguments, fixed, sizeof fixed);
    while (*more)
        arguments[count++] = *more++;
    arguments[count] = NULL;
    ranks_run(RANKS, program, arguments, &output);
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    if (strstr(output.out, "in place of")) fail_msg("there was no device: %s", output.out);
    weir_test_output_free(&output);
    trace_read();
}

static void make_snapshot(uint64_t pays) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = pays, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
}

/* --- every stage -------------------------------------------------------------------------------------------------- */

static bool takes_place(size_t stage) {
    return (stage != BRING || trace.brings) && (stage != PULL || trace.pulls);
}

static size_t stage_behind(size_t stage) {
    do
        stage++;
    while (!takes_place(stage));
    return stage;
}

/* One after the other on a track, the stages of a batch in their order. Returns batches of which there are all from
 * `first` to `last`. */
static size_t whole_batches(const track *t, size_t first, size_t last) {
    size_t whole = 0;
    for (size_t i = 0; i < t->count; i++) {
        const span *s = &t->spans[i], *before = s - 1;
        assert_true(s->begin <= s->end && s->stage >= first && s->stage <= last);
        if (i > 0) assert_true(before->end <= s->begin);
        if (s->stage != first) {
            assert_true(i > 0 && s->stage == stage_behind(before->stage));
            assert_true(s->epoch == before->epoch && s->batch == before->batch);
        }
        whole += s->stage == last;
    }
    return whole;
}

/* What a maker has ended with before who computes has it. */
static void was_made_before(const track *makers, const span *wait) {
    for (size_t maker = 0; maker < MAKERS; maker++)
        for (size_t i = 0; i < makers[maker].count; i++) {
            const span *s = &makers[maker].spans[i];
            if (s->stage != (trace.brings ? BRING : ENCODE) || s->epoch != wait->epoch || s->batch != wait->batch)
                continue;
            if (s->end <= wait->end) return;
        }
    fail_msg("batch %lld of epoch %lld came from no maker", (long long)wait->batch, (long long)wait->epoch);
}

/* Of each batch that was learnt, as many pieces, before its update. Returns how many batches. */
static size_t sums_are(const track *sums, const track *computes) {
    size_t batches = 0, first = 0, at = 0;
    for (size_t i = 0, pieces = 0; i < sums->count; i++) {
        const span *s = &sums->spans[i];
        assert_true(s->stage == REDUCE && s->begin <= s->end);
        if (i > 0) assert_true(s[-1].end <= s->begin);
        pieces++;
        if (i + 1 < sums->count && s[1].epoch == s->epoch && s[1].batch == s->batch) continue;
        while (at < computes->count && (computes->spans[at].stage != UPDATE || computes->spans[at].batch != s->batch ||
                                        computes->spans[at].epoch != s->epoch))
            at++;
        assert_true(at < computes->count && s->end <= computes->spans[at].begin);
        if (batches++ == 0) first = pieces;
        assert_int_equal(pieces, first);
        pieces = 0;
    }
    assert_true(first >= 3); /* the head and two layers */
    return batches;
}

static void every_stage_of(unsigned rank) {
    const track *computes = &trace.tracks[rank][0], *makers = computes + 1;
    const size_t last = trace.brings ? BRING : ENCODE;
    size_t learnt = whole_batches(computes, WAIT, UPDATE), waited = 0, prepared = 0, judged = 0;
    for (size_t maker = 0; maker < MAKERS; maker++) {
        prepared += whole_batches(&makers[maker], SAMPLE, last);
        judged += whole_batches(&makers[MAKERS + maker], SAMPLE, last);
        if (makers[maker].count > 0) assert_int_equal(makers[maker].spans[makers[maker].count - 1].stage, last);
    }
    assert_true(learnt > 0 && judged > 0);
    assert_int_equal(learnt, prepared);
    assert_int_equal(learnt, sums_are(&makers[2 * MAKERS], computes));
    int64_t epoch = 1, batch = 0;
    for (size_t i = 0; i < computes->count; i++) {
        const span *s = &computes->spans[i];
        if (s->stage != WAIT) continue;
        waited++;
        bool learns = i + 1 < computes->count && computes->spans[i + 1].stage != WAIT;
        was_made_before(learns ? makers : makers + MAKERS, s);
        if (!learns) continue;
        if (s->epoch == epoch + 1) batch = 0;
        assert_true(s->epoch == epoch || s->epoch == epoch + 1);
        assert_int_equal(s->batch, batch++);
        epoch = s->epoch;
    }
    assert_int_equal(epoch, EPOCHS);
    assert_int_equal(waited, learnt + judged);
}

/* --- what they took ----------------------------------------------------------------------------------------------- */

/* Of all batches of an epoch that were learnt, on rank 0. */
static void took(int64_t epoch, int64_t us[STAGES]) {
    for (size_t number = 0; number <= MAKERS; number++) {
        const track *t = &trace.tracks[0][number];
        for (size_t i = 0; i < t->count; i++) {
            const span *s = &t->spans[i];
            bool judges = s->stage == WAIT && (i + 1 == t->count || s[1].stage == WAIT);
            if (s->epoch == epoch && !judges) us[s->stage] += s->end - s->begin;
        }
    }
}

/* The line of each epoch says of each stage what its spans say, and of what has none, 0. Who computes does nothing else
 * for longer than it learns. */
static void times_are_those_of_the_trace(void) {
    char *text = NULL, *line;
    size_t length;
    assert_ok(weir_file_load(weir_test_path("run/epochs.jsonl"), 1u << 20, &text, &length));
    line = text;
    for (int64_t epoch = 1; epoch <= (int64_t)EPOCHS; epoch++) {
        int64_t us[STAGES] = {0}, all = 0;
        took(epoch, us);
        const struct {
            const char *key;
            int64_t us;
        } of[] = {{"\"sample_seconds\":", us[SAMPLE]},   {"\"exchange_seconds\":", us[ASK] + us[ANSWER]},
                  {"\"encode_seconds\":", us[ENCODE]},   {"\"bring_seconds\":", us[BRING]},
                  {"\"exposed_seconds\":", us[WAIT]},    {"\"pull_seconds\":", us[PULL]},
                  {"\"compute_seconds\":", us[COMPUTE]}, {"\"sum_exposed_seconds\":", us[SUM]},
                  {"\"update_seconds\":", us[UPDATE]}};
        char *next = strchr(line, '\n');
        assert_non_null(next);
        *next = 0;
        for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
            const char *at = strstr(line, of[i].key);
            if (!at) fail_msg("no %s in %s", of[i].key, line);
            double seconds = strtod(at + strlen(of[i].key), NULL);
            if (!(fabs(seconds - (double)of[i].us * 1e-6) < 5e-7))
                fail_msg("epoch %lld: %s %g, and %lld us in the trace", (long long)epoch, of[i].key, seconds,
                         (long long)of[i].us);
        }
        for (size_t stage = WAIT; stage <= UPDATE; stage++)
            all += us[stage];
        const char *learning = strstr(line, "\"learning_seconds\":");
        assert_true((double)all * 1e-6 <= strtod(learning + strlen("\"learning_seconds\":"), NULL) + 5e-7);
        line = next + 1;
    }
    weir_free(text);
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* Each batch goes through the stages of its maker one after the other, and is computed on in the order of the list. */
static void e1_a_trace_has_every_stage_of_every_batch(void **state) {
    (void)state;
    char snapshot[4096];
    make_snapshot(600);
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    trains(ranks_train_program(), snapshot,
           (const char *const[]){"--batch", "64", "--hidden", "16", "--fanouts", "6,6", NULL});
    for (unsigned rank = 0; rank < RANKS; rank++)
        every_stage_of(rank);
    times_are_those_of_the_trace();
}

/* With all that there can be: parts whose edges end, embeddings that are shared out, and a device, which a processor
 * plays. */
static void e1_of_parts_embeddings_and_a_device(void **state) {
    (void)state;
    char parts[4200], program[4096];
    const char *device = "cpu";
    make_snapshot(400);
    shell("cd $folder && $weir partition snapshot --parts 2 --depth 0 --method random --out parts >/dev/null");
    snprintf(parts, sizeof parts, "--parts=%s", weir_test_path("parts"));
    snprintf(program, sizeof program, "%s", ranks_train_program());
    trace.pulls = true;
#ifdef WEIR_TEST_CUDA
    char line[8192];
    snprintf(line, sizeof line,
             "cd $folder && mkdir -p here/bin here/lib && cp '%s' here/bin/ && cp '%s' here/lib/libweir_cuda.so",
             program, WEIR_TEST_CUDA);
    shell(line);
    snprintf(program, sizeof program, "%s", weir_test_path("here/bin/weir-train"));
    device = "cuda";
    trace.brings = true;
#endif
    trains(program, parts,
           (const char *const[]){"--batch", "64", "--hidden", "8", "--fanouts", "4,4", "--embed-vertices", "who",
                                 "--device", device, NULL});
    for (unsigned rank = 0; rank < RANKS; rank++)
        every_stage_of(rank);
    times_are_those_of_the_trace();
}

/* What is finished on the way back has its sum begun on it, the encoders' behind it: products of matrices take long
 * here, and leave the processor to the thread that sums. When a thread that may begin does so is the system's affair,
 * so that in some batch some sum has to have begun; what may not begin has not in any. Without the overlap it is never
 * so. That each layer's may begin is in sums_test.c. */
static void sums_begin_before_the_way_back_ends(void **state) {
    (void)state;
    enum { FINISHED = 3 }; /* on the way back: the head and two layers */
    char snapshot[4096];
    size_t batches = 0, beside[FINISHED + 1] = {0}; /* how many batches had so many sums begun */
    make_snapshot(600);
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_BLAS, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_BLAS_US", "2000", 1), 0);
    trains(ranks_train_program(), snapshot,
           (const char *const[]){"--batch", "64", "--hidden", "8", "--fanouts", "4,4", NULL});
    for (unsigned rank = 0; rank < RANKS; rank++) {
        const track *computes = &trace.tracks[rank][0], *sums = &trace.tracks[rank][TRACKS - 1];
        for (size_t i = 0, at = 0; i < computes->count; i++) {
            const span *c = &computes->spans[i];
            size_t pieces = 0, begun = 0;
            if (c->stage != COMPUTE) continue;
            while (at < sums->count && (sums->spans[at].epoch != c->epoch || sums->spans[at].batch != c->batch))
                at++;
            for (; at < sums->count && sums->spans[at].epoch == c->epoch && sums->spans[at].batch == c->batch; at++) {
                assert_true(sums->spans[at].begin >= c->begin);
                if (pieces++ < FINISHED)
                    begun += sums->spans[at].begin < c->end;
                else
                    assert_true(sums->spans[at].begin >= c->end);
            }
            assert_true(pieces > FINISHED);
            batches++;
            beside[begun]++;
        }
    }
    print_message("of %zu batches %zu had all sums of layers begun on their way back, %zu none\n", batches,
                  beside[FINISHED], beside[0]);
    assert_true(beside[0] < batches);
}

WEIR_TESTS(WEIR_CASE(e1_a_trace_has_every_stage_of_every_batch), WEIR_CASE(e1_of_parts_embeddings_and_a_device),
           WEIR_CASE(sums_begin_before_the_way_back_ends))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * campaign_test.c - bits flipped in the files of a server that is read and fed: each answer is right, or an error that
 * /readyz tells of; and all by itself every file is whole again.
 *
 *   round:  readers and a writer begin ── bits are flipped ── red ── a shard is made anew ── green ── two scrubs
 *           find nothing ── they end ── every answer is right, what was acknowledged is there
 *   world:  so many rounds, then the store is what the log says, and as one that is made anew of it
 *
 * Before every fourth round a checkpoint is made, so that files come back out of it, or it is begun from. Half of the
 * rounds begin with a start, when nothing is in a cache. Every third damages a few bits of what nobody but
 * a start or a scrub reads, and a start follows. tests/crash/mended/run is the way to run it for long.
 */
#include "mended.h"

#include <sys/mman.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

#define FLIPS            200u
#define FLIPS_MAX        160u /* of a round */
#define FLIPS_FEW        3u   /* of every third */
#define READERS          3u
#define ROUNDS_OF_WORLD  20u
#define CHECKPOINT_EVERY 4u
#define SPREAD_US        100000
#define RED_TRIES        3

typedef struct totals {
    uint64_t seed, rounds, red_rounds, flips[FLIPPED_KINDS], events, repairs, restored, failures, reds;
    int64_t red_us, red_most_us;
    atomic_uint_fast64_t right, errors;
} totals;

static totals *sum; /* shared with the case's process */

typedef struct campaign {
    mended m;
    weir_rng rng;
    atomic_uint_fast64_t known; /* batches below this are applied */
    atomic_bool over;
    uint64_t left;   /* flips of the round that are still to come */
    flipped only;    /* in this kind of file; FLIPPED_KINDS: in any */
    int64_t red_us;  /* since when it is red; 0: green */
    uint64_t rounds; /* of this world */
} campaign;

static campaign all;

static int64_t now_us(void) {
    return weir_clock_mono_us(weir_clock_system());
}

/* --- the load ----------------------------------------------------------------------------------------------------- */

static verdict read_one(asker *a, weir_rng *rng, char path[128], int *statusp) {
    uint64_t known = atomic_load(&all.known);
    if (weir_rng_below(rng, 3) == 0) {
        uint64_t batch = weir_rng_below(rng, known);
        unsigned which = (unsigned)weir_rng_below(rng, 2 * BATCH);
        batch_path(batch, which, path);
        return ask_batch(&all.m, a, batch, which, statusp);
    }
    const question *q = &all.m.truth.questions[weir_rng_below(rng, all.m.truth.question_count)];
    snprintf(path, 128, "%s", q->path);
    return ask_and_compare(a, path, q->answer, UINT64_MAX, statusp);
}

/* After an answer that the server failed: /readyz says so, or what was damaged is mended. It may have been mended, and
 * other damage been met by the same question; not each time. */
static void is_told(asker *a, const char *path) {
    int status = 0;
    for (int i = 0; i < RED_TRIES; i++) {
        char why[SENTENCE_MAX];
        const char *body;
        int64_t behind;
        usleep(LOOK_AGAIN_US);
        if (ask_ready(a, &behind, why) != READY) return;
        status = ask(a, path, &body);
        if (status == 200) return;
    }
    fail_msg("%s is answered %d, and /readyz says yes each time", path, status);
}

static void reader_main(void *context) {
    weir_rng rng = weir_rng_stream(sum->seed, sum->rounds, 1 + *(const uint32_t *)context);
    asker a = asker_of(&all.m);
    while (!atomic_load(&all.over)) {
        char path[128];
        int status;
        verdict v = read_one(&a, &rng, path, &status);
        atomic_fetch_add(v == VERDICT_RIGHT ? &sum->right : &sum->errors, 1);
        if (v == VERDICT_ERROR && status == 500) is_told(&a, path);
        usleep((useconds_t)weir_rng_below(&rng, 2000));
    }
    ask_free(&a);
}

static void writer_main(void *context) {
    asker a = asker_of(&all.m);
    (void)context;
    while (!atomic_load(&all.over)) {
        if (mended_send(&all.m, &a) <= 0) fail_msg("events have no answer");
        usleep(40000);
    }
    ask_free(&a);
}

typedef struct load {
    weir_thread *threads[READERS + 1];
    uint32_t numbers[READERS];
} load;

static void load_begin(load *l) {
    atomic_store(&all.over, false);
    for (uint32_t i = 0; i < READERS; i++) {
        l->numbers[i] = i;
        assert_ok(weir_thread_start("reader", WEIR_ROLE_TEST, reader_main, &l->numbers[i], &l->threads[i]));
    }
    assert_ok(weir_thread_start("writer", WEIR_ROLE_TEST, writer_main, NULL, &l->threads[READERS]));
}

static void load_end(load *l) {
    atomic_store(&all.over, true);
    for (size_t i = 0; i <= READERS; i++)
        weir_thread_join(l->threads[i]);
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

/* Most in sorted files, which is where the bytes are. */
static flipped draw_kind(void) {
    uint64_t dice = weir_rng_below(&all.rng, 20);
    if (all.only != FLIPPED_KINDS) return all.only;
    return dice < 15 ? FLIPPED_SORTED : dice < 17 ? FLIPPED_MANIFEST : dice < 19 ? FLIPPED_CURRENT : FLIPPED_IDENTITY;
}

/* A shard that is being made is damaged, too. */
static void flip_one(void) {
    char folder[PATH_LENGTH - SHARE / 2], path[PATH_LENGTH];
    for (bool done = false; !done;) {
        unsigned shard = (unsigned)weir_rng_below(&all.rng, SHARDS);
        flipped kind = draw_kind();
        bool in_repair = weir_rng_below(&all.rng, 4) == 0 && there_is(&all.m, shard, ".repair");
        snprintf(folder, sizeof folder, "%s/d/store/shard-%03u%s", all.m.folder, shard, in_repair ? ".repair" : "");
        done = draw_file(folder, kind, &all.rng, path) && flip_bit(path, &all.rng, 0, UINT64_MAX);
        sum->flips[kind] += done;
    }
    all.left--;
}

static void say_red(bool green) {
    if (!green && !all.red_us) all.red_us = now_us();
    if (!green || !all.red_us) return;
    int64_t took_us = now_us() - all.red_us;
    all.red_us = 0;
    sum->reds++;
    sum->red_us += took_us;
    if (took_us > sum->red_most_us) sum->red_most_us = took_us;
}

/* The flips that are left come one by one meanwhile. */
static void await_whole(void) {
    watch w = {0};
    int64_t next_us = now_us();
    while (all.left || !watch_is_whole(&w)) {
        if (all.left && now_us() >= next_us) {
            flip_one();
            w.clean = 0;
            next_us += SPREAD_US;
        }
        say_red(watch_look(&w, &all.m));
    }
}

static uint64_t draw_flips(uint64_t most) {
    static const flipped few[] = {FLIPPED_CURRENT, FLIPPED_MANIFEST, FLIPPED_IDENTITY};
    bool is_few = sum->rounds % 3 == 1;
    all.only = is_few ? few[sum->rounds / 3 % 3] : FLIPPED_KINDS;
    uint64_t flips = 1 + weir_rng_below(&all.rng, is_few ? FLIPS_FEW : FLIPS_MAX);
    return flips < most ? flips : most;
}

/* Of a process: before each stop. */
static void count_repairs(void) {
    sum->repairs += mended_metric(&all.m, "weir_store_repairs_total");
    sum->restored += mended_metric(&all.m, "weir_store_restored_files_total");
    sum->failures += mended_metric(&all.m, "weir_store_repair_failures_total");
}

static void damage_under_load(uint64_t flips) {
    load l;
    bool cold = sum->rounds % 3 == 2 || weir_rng_below(&all.rng, 3) == 0, spread = weir_rng_below(&all.rng, 4) == 0;
    if (cold) {
        count_repairs();
        mended_stop(&all.m);
        mended_start(&all.m, NULL);
        mended_await_ready(&all.m);
    } else {
        load_begin(&l);
    }
    all.left = flips;
    while (all.left > (spread ? flips * 3 / 4 : 0))
        flip_one();
    if (cold) load_begin(&l);
    await_whole();
    load_end(&l);
}

static void round_of(uint64_t flips) {
    uint64_t known = atomic_load(&all.known), reds = sum->reds;
    if (all.rounds % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1) mended_checkpoint(&all.m, "one");
    damage_under_load(flips);
    sum->red_rounds += sum->reds > reds;
    mended_await_ready(&all.m);
    mended_ask_all(&all.m, known);
    if (something_is_left_over(&all.m)) fail_msg("the folder of a repair is left");
    atomic_store(&all.known, atomic_load(&all.m.batches));
    sum->rounds++;
    all.rounds++;
    fprintf(stderr, "round %" PRIu64 ": %" PRIu64 " bits, %" PRIu64 " batches\n", sum->rounds, flips,
            atomic_load(&all.known) - known);
}

/* --- the campaign ------------------------------------------------------------------------------------------------- */

static void world_begin(void) {
    mended_make(&all.m, weir_test_path("world"));
    atomic_store(&all.known, atomic_load(&all.m.batches));
    all.rounds = 0;
}

/* It comes up once more, for what only a start reads. */
static void world_end(void) {
    count_repairs();
    mended_stop(&all.m);
    mended_start(&all.m, NULL);
    mended_await_ready(&all.m);
    mended_ask_all(&all.m, 0);
    mended_stop(&all.m);
    mended_is_what_the_log_says(&all.m);
    sum->events += (PAYMENTS * 5) / 4 + atomic_load(&all.m.batches) * BATCH;
}

static void bits_are_flipped_under_load(void **state) {
    const char *given = getenv("WEIR_TEST_MENDED_FLIPS");
    uint64_t left = given && *given ? strtoull(given, NULL, 10) : weir_test_rounds(FLIPS);
    (void)state;
    sum->seed = weir_test_seed();
    all.rng = weir_rng_stream(sum->seed, 0, 0);
    share_id_key();
    world_begin();
    while (left) {
        uint64_t flips = draw_flips(left);
        if (all.rounds == ROUNDS_OF_WORLD) {
            world_end();
            world_begin();
        }
        round_of(flips);
        left -= flips;
    }
    world_end();
    assert_true(sum->repairs > 0 && sum->errors > 0);
    if (sum->rounds > ROUNDS_OF_WORLD) assert_true(sum->restored > 0);
}

static void say(void) {
    uint64_t flips = 0;
    for (int kind = 0; kind < FLIPPED_KINDS; kind++)
        flips += sum->flips[kind];
    for (int kind = 0; kind < FLIPPED_KINDS; kind++)
        printf("%s%" PRIu64 " in %s", kind ? ", " : "", sum->flips[kind], flipped_names[kind]);
    printf("\n%" PRIu64 " flips, %" PRIu64 " rounds, %" PRIu64 " of them red, %" PRIu64 " repairs, %" PRIu64
           " files out of checkpoints, %" PRIu64 " tries that failed, %" PRIu64 " events, %" PRIu64
           " right answers, %" PRIu64 " errors, red for %.1f s, at most %.1f s, seed %" PRIu64 "\n",
           flips, sum->rounds, sum->red_rounds, sum->repairs, sum->restored, sum->failures, sum->events,
           atomic_load(&sum->right), atomic_load(&sum->errors),
           sum->reds ? (double)sum->red_us / (double)sum->reds / 1e6 : 0, (double)sum->red_most_us / 1e6, sum->seed);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(bits_are_flipped_under_load)};
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "60", 0);
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sum == MAP_FAILED) return 2;
    int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    if (sum->rounds) say();
    return status;
}

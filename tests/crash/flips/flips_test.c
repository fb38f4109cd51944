/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flips_test.c - a flipped bit, or a cut, in a file of any kind: the right answer or a sentence, and nothing else.
 *
 *   the world, made once ──copy──► a round's folder ──damage──► its reader ──► one of nine outcomes, five of them bad
 *
 * A kind has its turn each so many rounds, whatever its size, and in it its readers theirs. A round is its kind, its
 * reader, a file, an offset and a bit, all drawn from the seed and the round's number; a bad one prints the command
 * that repeats it on the world that it leaves behind. tests/crash/flips/run is the way to run it for long.
 */
#include "kinds.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define ROUNDS     60
#define JOBS       2
#define CUTS_OF_10 2
#define CUT        8 /* in place of a bit */
#define BAD_SHOWN  3 /* of a kind, a reader and an outcome */

typedef struct board {
    atomic_uint_fast64_t next;
    uint64_t rounds, seed;
    atomic_uint_fast64_t counts[KINDS][OUTCOME_COUNT], shown[KINDS][READERS_MAX][OUTCOME_COUNT];
    bool left_out[KINDS];
} board;

static board *all; /* shared by the processes */
static int said;   /* standard error as it was: a case's own is shown when it has failed, and this may take hours */
static const char *const outcome_names[] = {
#define OUTCOME_TEXT(name, text) text,
    OUTCOMES(OUTCOME_TEXT)};

/* --- a round ------------------------------------------------------------------------------------------------------ */

static void damage(trial *r) {
    const char *path = in_folder(r, r->file);
    struct stat status;
    uint8_t byte;
    if (stat(path, &status) != 0) return; /* a live store has merged it meanwhile */
    if (r->bit == CUT) {
        if ((uint64_t)status.st_size > r->offset) assert_int_equal(truncate(path, (off_t)r->offset), 0);
        return;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    if (pread(fd, &byte, 1, (off_t)r->offset) == 1) {
        byte = (uint8_t)(byte ^ 1u << r->bit);
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)r->offset), 1);
    }
    close(fd);
}

static void say_bad(trial *r, size_t k, size_t reader) {
    for (char *at = r->why; (at = strchr(at, '\n'));)
        *at = ' ';
    if (atomic_fetch_add(&all->shown[k][reader][r->outcome], 1) >= BAD_SHOWN) return;
    dprintf(said,
            "%s: %s, read by %s: %s\n    tests/crash/flips/run --world %s --seed %" PRIu64 " --flip %zu:%zu:%s:%" PRIu64
            ":%d\n",
            outcome_names[r->outcome], kinds[k].name, kinds[k].readers[reader].name, r->why, r->world->folder,
            all->seed, k, reader, r->file, r->offset, r->bit);
}

static void run_trial(trial *r, size_t k, size_t reader) {
    world_copy(r->world, kinds[k].folders, FOLDERS_MAX, r->folder);
    r->outcome = OUTCOME_RIGHT;
    r->why[0] = 0;
    r->damage = damage;
    kinds[k].readers[reader].read(r);
    atomic_fetch_add(&all->counts[k][r->outcome], 1);
    if (r->outcome >= FIRST_BAD) say_bad(r, k, reader);
    if (getenv("WEIR_TEST_FLIP_SAY"))
        dprintf(said, "%s, %s, %s:%" PRIu64 ":%d: %s: %s\n", kinds[k].name, kinds[k].readers[reader].name, r->file,
                r->offset, r->bit, outcome_names[r->outcome], r->why);
}

static void draw(trial *r, size_t k, uint64_t number) {
    struct stat status;
    char path[PATH_LENGTH];
    weir_rng rng = weir_rng_stream(all->seed, number, 0);
    r->file = files[k].paths[weir_rng_below(&rng, files[k].count)];
    snprintf(path, sizeof path, "%s/%s", r->world->folder, r->file);
    assert_int_equal(stat(path, &status), 0);
    r->offset = weir_rng_below(&rng, (uint64_t)status.st_size);
    r->bit = weir_rng_below(&rng, 10) < CUTS_OF_10 ? CUT : (int)weir_rng_below(&rng, 8);
}

/* --- the campaign ------------------------------------------------------------------------------------------------- */

static void trial_begin(trial *r, const world *w, uint64_t job) {
    *r = (trial){.world = w,
                 .patience_ms = (int64_t)environment("WEIR_TEST_FLIP_PATIENCE_MS", 60000),
                 .grace_ms = (int64_t)environment("WEIR_TEST_FLIP_GRACE_MS", 15000)};
    snprintf(r->folder, sizeof r->folder, "%s/round-%" PRIu64, weir_test_folder(), job);
}

/* The kinds in turn, and each time that all had their turn, their next readers. */
static void work(const void *context, uint64_t job) {
    const world *w = context;
    uint64_t number, order[KINDS], count = 0;
    trial r;
    trial_begin(&r, w, job);
    for (size_t k = 0; k < KINDS; k++)
        if (!all->left_out[k]) order[count++] = k;
    while ((number = atomic_fetch_add(&all->next, 1)) < all->rounds) {
        size_t k = order[number % count];
        draw(&r, k, number);
        run_trial(&r, k, number / count % kind_readers(&kinds[k]));
    }
}

/* KIND:READER:FILE:OFFSET:BIT, as a bad round prints it. */
static void repeat(const world *w, const char *flip) {
    static char file[PATH_LENGTH];
    char n[4][20];
    trial r;
    trial_begin(&r, w, 0);
    if (sscanf(flip, "%19[0-9]:%19[0-9]:%1000[^:]:%19[0-9]:%9[0-9]", n[0], n[1], file, n[2], n[3]) != 5)
        fail_msg("'%s' is no KIND:READER:FILE:OFFSET:BIT", flip);
    size_t k = strtoull(n[0], NULL, 10), reader = strtoull(n[1], NULL, 10);
    r.offset = strtoull(n[2], NULL, 10);
    r.bit = (int)strtol(n[3], NULL, 10);
    assert_in_range(k, 0, KINDS - 1);
    assert_in_range(reader, 0, kind_readers(&kinds[k]) - 1);
    r.file = file;
    all->rounds = 1;
    run_trial(&r, k, reader);
}

static void choose_kinds(void) {
    const char *only = getenv("WEIR_TEST_FLIP_KIND");
    size_t chosen = 0;
    for (size_t k = 0; k < KINDS; k++) {
        all->left_out[k] = only && *only && !strstr(kinds[k].name, only);
        chosen += !all->left_out[k];
    }
    if (!chosen) fail_msg("no kind is called '%s'", only);
}

static void a_flipped_bit_or_a_cut_is_seen_or_harmless(void **state) {
    static world w;
    const char *given = getenv("WEIR_TEST_FLIP_WORLD"), *flip = getenv("WEIR_TEST_FLIP");
    (void)state;
    all->seed = weir_test_seed();
    all->rounds = environment("WEIR_TEST_FLIP_ROUNDS", weir_test_rounds(ROUNDS));
    choose_kinds();
    snprintf(w.folder, sizeof w.folder, "%s", given && *given ? given : weir_test_path("world"));
    if (!weir_path_exists(w.folder)) world_build(w.folder);
    truth_make(&w);
    kinds_find(w.folder);
    if (flip && *flip) {
        repeat(&w, flip);
    } else {
        side_by_side(environment("WEIR_TEST_FLIP_JOBS", JOBS), work, &w);
    }
    uint64_t bad = 0;
    for (size_t k = 0; k < KINDS; k++)
        for (int o = FIRST_BAD; o < OUTCOME_COUNT; o++)
            bad += all->counts[k][o];
    if (bad) fail_msg("%" PRIu64 " of %" PRIu64 " rounds ended badly", bad, all->rounds);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void say_row(const char *name, const uint64_t counts[OUTCOME_COUNT]) {
    uint64_t sum = 0;
    for (int o = 0; o < OUTCOME_COUNT; o++)
        sum += counts[o];
    printf("| %s | %" PRIu64 " |", name, sum);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        printf(" %" PRIu64 " |", counts[o]);
    printf("\n");
}

static void say_table(void) {
    uint64_t total[OUTCOME_COUNT] = {0};
    printf("| file | rounds |");
    for (int o = 0; o < OUTCOME_COUNT; o++)
        printf(" %s |", outcome_names[o]);
    printf("\n|---|---|");
    for (int o = 0; o < OUTCOME_COUNT; o++)
        printf("---|");
    printf("\n");
    for (size_t k = 0; k < KINDS; k++) {
        uint64_t counts[OUTCOME_COUNT];
        for (int o = 0; o < OUTCOME_COUNT; o++)
            total[o] += counts[o] = all->counts[k][o];
        if (!all->left_out[k]) say_row(kinds[k].name, counts);
    }
    say_row("all", total);
    uint64_t bad = 0;
    for (int o = FIRST_BAD; o < OUTCOME_COUNT; o++)
        bad += total[o];
    printf("%" PRIu64 " rounds, %" PRIu64 " bad, seed %" PRIu64 "\n", all->rounds, bad, all->seed);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(a_flipped_bit_or_a_cut_is_seen_or_harmless)};
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "60", 0);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* what is promised does not depend on a disk */
    said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 2;
    int status = weir_test_main(cases, 1, argc, argv);
    if (all->rounds) say_table();
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_test.c - each allocation of a load and of a server finds no memory, once.
 *
 *   a run that is watched ──► its sites ──► a round for each: the same run, in which the first allocation there fails,
 *   and then another in which none does ──► one of nine outcomes, five of them bad
 *
 * A site is the calls that lead to an allocation, whoever makes it: failing_malloc.c is preloaded. What the first run
 * says is held against the second, which begins with what the first left: 0 is the end of a load that has every record,
 * and what a server acknowledged is there. tests/crash/memory/run is the way to run it for long.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "failing_malloc.h"

#include "../flips/readers.h"

#define ROUNDS    24
#define FRAMES    12
#define JOBS      2
#define WATCHED   2 /* runs whose sites are put together: threads meet differently each time */
#define BAD_SHOWN 3 /* of a scenario and an outcome */

typedef struct scenario {
    const char *name, *command; /* of weir */
    void (*run)(trial *r);
} scenario;

typedef struct site {
    uint32_t scenario;
    uint64_t at, caller, turn;
} site;

typedef struct board {
    atomic_uint_fast64_t next, unmet;
    uint64_t rounds, seed, site_count;
    site sites[2 * FAILING_MALLOC_SITES];
    atomic_uint_fast64_t counts[2][OUTCOME_COUNT], shown[2][OUTCOME_COUNT];
} board;

static board *all; /* shared by the processes */
static int said;   /* standard error as it was: a case's own is shown when it has failed, and this may take hours */
static char *load_export; /* what a load of the file comes to */
static const char *const outcome_names[] = {
#define OUTCOME_TEXT(name, text) text,
    OUTCOMES(OUTCOME_TEXT)};

/* --- the program whose allocation fails --------------------------------------------------------------------------- */

/* Between these two, programs are started with it. */
static void preload_begin(const trial *r, const char *command) {
    setenv("WEIR_TEST_MALLOC", in_folder(r, "../malloc"), 1);
    setenv("WEIR_TEST_MALLOC_COMMAND", command, 1);
    setenv("LD_PRELOAD", WEIR_TEST_MALLOC_LIBRARY, 1);
}

static void preload_end(void) {
    unsetenv("LD_PRELOAD");
}

/* --- a load ------------------------------------------------------------------------------------------------------- */

static int load_command(trial *r) {
    char key[PATH_LENGTH + 32], file[PATH_LENGTH];
    snprintf(file, sizeof file, "%s/payments.jsonl", r->world->folder);
    snprintf(key, sizeof key, "store.id_key=%s/id_key", r->world->folder);
    const char *const load[] = {weir_test_program(),        "load",  file, "--schema", "payments",           "--data",
                                in_folder(r, "d"),          "--set", key,  "--set",    "store.memory=64MiB", "--set",
                                "store.seal_interval=20ms", NULL};
    return command(r->folder, r->patience_ms, NULL, load);
}

/* After a load that has refused, the next one goes on. */
static void load_through(trial *r) {
    world w = *r->world;
    w.export = load_export;
    assert_ok(weir_folder_create(r->folder));
    preload_begin(r, "load");
    int status = load_command(r);
    preload_end();
    if (!ended_well(r, "load", status, in_folder(r, "err")) && r->outcome <= OUTCOME_UNREADY && load_command(r) != 0)
        came_to(r, OUTCOME_LOST, "the load after it does not end well: %s", file_text(in_folder(r, "err"), NULL));
    if (r->outcome > OUTCOME_UNREADY) return;
    const world *whole = r->world;
    r->world = &w;
    compare_export(r, in_folder(r, "d/store"), 0);
    r->world = whole;
}

/* --- a server ----------------------------------------------------------------------------------------------------- */

/* Sends batches until each is taken, or it is said why not; what was acknowledged is a bit of *ackedp. */
static void send_each(trial *r, asker *a, unsigned *ackedp) {
    for (unsigned b = 0; b < NEW_BATCHES; b++) {
        char prefix[8], why[SENTENCE_MAX];
        const char *body;
        int64_t behind, end_ms = now_ms() + r->grace_ms;
        int status;
        snprintf(prefix, sizeof prefix, "%c%u", NEW_PREFIX, b);
        char *text = payments_text(prefix, PAYMENTS, NEW_COUNT);
        readiness ready = READY;
        while ((status = ask_post(a, "/v1/events?source=payments", "application/x-ndjson", text, &body)) != 200) {
            came_to(r, status >= 400 && status < 500 ? OUTCOME_WRONG : OUTCOME_REPAIRED,
                    "events are not taken at first: %d %.200s", status, body);
            if ((ready = ask_ready(a, &behind, why)) != READY || now_ms() >= end_ms) break;
            usleep(20000);
        }
        free(text);
        if (status == 200) *ackedp |= 1u << b;
        if (ready == RED) came_to(r, OUTCOME_UNREADY, "events are not taken: %s", why);
        if (ready == SILENT) came_to(r, OUTCOME_HANG, "/readyz has no answer");
        if (status != 200 && ready == READY) came_to(r, OUTCOME_GREEN_ERRORS, "events are not taken: %d", status);
        if (status != 200 || !await_visible(r, a, b)) return;
    }
}

/* What it leaves is whole: the next server says so, and has what was acknowledged. */
static void server_after(trial *r, unsigned acked) {
    process server;
    asker a;
    char why[SENTENCE_MAX];
    size_t wanted = 0;
    outcome allowed = r->outcome > OUTCOME_REPAIRED ? r->outcome : OUTCOME_REPAIRED;
    if (!server_up(r, &server, &a)) {
        came_to(r, OUTCOME_LOST, "the next server does not start");
        return;
    }
    if (await_word(r, &a, why) != READY) came_to(r, OUTCOME_LOST, "the next server is not ready: %s", why);
    for (unsigned b = 0; b < NEW_BATCHES; b++)
        if (acked & 1u << b && await_visible(r, &a, b)) wanted += NEW_COUNT;
    if (ask_and_judge(r, &a) != READY) came_to(r, OUTCOME_LOST, "the next server is not ready");
    server_down(r, &server, &a);
    snprintf(why, sizeof why, "%s", r->why);
    if (r->outcome > allowed) came_to(r, OUTCOME_LOST, "the next server: %s", why);
    compare_export(r, in_folder(r, "d/store"), wanted);
}

static void serve_through(trial *r) {
    static const char *const folders[] = SERVER_FOLDERS;
    process server;
    asker a;
    char why[SENTENCE_MAX];
    unsigned acked = 0;
    world_copy(r->world, folders, sizeof folders / sizeof folders[0], r->folder);
    preload_begin(r, "serve");
    bool up = server_up(r, &server, &a);
    preload_end();
    if (up) (void)await_word(r, &a, why);
    if (up && ask_and_judge(r, &a) == READY) {
        send_each(r, &a, &acked);
        ask_and_judge(r, &a);
    }
    if (up) server_down(r, &server, &a);
    if (r->outcome <= OUTCOME_UNREADY) server_after(r, acked);
}

static const scenario scenarios[] = {{"load", "load", load_through}, {"serve", "serve", serve_through}};
#define SCENARIOS (sizeof scenarios / sizeof scenarios[0])

/* --- a round ------------------------------------------------------------------------------------------------------ */

static void say_bad(trial *r, const site *one) {
    const char *name = scenarios[one->scenario].name;
    for (char *at = r->why; (at = strchr(at, '\n'));)
        *at = ' ';
    if (atomic_fetch_add(&all->shown[one->scenario][r->outcome], 1) >= BAD_SHOWN) return;
    dprintf(said, "%s: %s: %s\n    tests/crash/memory/run --site %s:%" PRIx64 "\n", outcome_names[r->outcome], name,
            r->why, name, one->at);
}

/* at: 0 to be watched. */
static void run_scenario(trial *r, uint32_t s, uint64_t at, failing_malloc *memory) {
    r->outcome = OUTCOME_RIGHT;
    r->why[0] = 0;
    if (weir_path_exists(r->folder)) assert_ok(weir_folder_remove(r->folder));
    memory->site = at;
    memory->met = 0;
    scenarios[s].run(r);
}

static void run_round(trial *r, const site *one, failing_malloc *memory) {
    run_scenario(r, one->scenario, one->at, memory);
    if (!memory->met) atomic_fetch_add(&all->unmet, 1);
    atomic_fetch_add(&all->counts[one->scenario][r->outcome], 1);
    if (r->outcome >= FIRST_BAD) say_bad(r, one);
    if (getenv("WEIR_TEST_MEMORY_SAY"))
        dprintf(said, "%s:%" PRIx64 "%s: %s: %s\n", scenarios[one->scenario].name, one->at,
                memory->met ? "" : ", not met", outcome_names[r->outcome], r->why);
}

/* A folder of its own, and the page that it shares with its programs. */
static failing_malloc *trial_begin(trial *r, const world *w, uint64_t job) {
    char path[PATH_LENGTH];
    *r = (trial){.world = w, .patience_ms = 60000, .grace_ms = 15000};
    snprintf(path, sizeof path, "%s/job-%" PRIu64, weir_test_folder(), job);
    assert_ok(weir_folder_create(path));
    snprintf(r->folder, sizeof r->folder, "%s/round", path);
    snprintf(path, sizeof path, "%s/job-%" PRIu64 "/malloc", weir_test_folder(), job);
    int fd = open_for(path, O_RDWR | O_CREAT | O_TRUNC);
    assert_int_equal(ftruncate(fd, sizeof(failing_malloc)), 0);
    void *page = mmap(NULL, sizeof(failing_malloc), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(page != MAP_FAILED);
    close(fd);
    ((failing_malloc *)page)->frames = environment("WEIR_TEST_MEMORY_FRAMES", FRAMES);
    return page;
}

/* --- the campaign ------------------------------------------------------------------------------------------------- */

static void sites_watch(trial *r, failing_malloc *memory) {
    for (uint32_t s = 0; s < SCENARIOS; s++) {
        uint64_t before = all->site_count;
        memset(memory->sites, 0, sizeof memory->sites);
        for (int run = 0; run < WATCHED; run++) {
            run_scenario(r, s, 0, memory);
            if (r->outcome > OUTCOME_REPAIRED) fail_msg("%s with all its memory: %s", scenarios[s].name, r->why);
        }
        for (size_t i = 0; i < FAILING_MALLOC_SITES; i++)
            if (memory->sites[i]) all->sites[all->site_count++] = (site){s, memory->sites[i], memory->callers[i], 0};
        assert_true(all->site_count > before + 100); /* it was preloaded */
    }
}

static void sites_shuffle(void) {
    weir_rng rng = weir_rng_stream(all->seed, 0, 0);
    for (uint64_t i = all->site_count; i > 1; i--) {
        uint64_t other = weir_rng_below(&rng, i);
        site kept = all->sites[i - 1];
        all->sites[i - 1] = all->sites[other];
        all->sites[other] = kept;
    }
}

static int turn_order(const void *a, const void *b) {
    const site *x = a, *y = b;
    return x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* Who allocates has a place before any has a second one: operator new has most of them, and those who call malloc by
 * themselves are who forget to look. */
static void sites_take_turns(void) {
    sites_shuffle();
    for (uint64_t i = 0; i < all->site_count; i++) {
        site *one = &all->sites[i];
        for (uint64_t before = i; before-- > 0 && !one->turn;)
            if (all->sites[before].caller == one->caller && all->sites[before].scenario == one->scenario)
                one->turn = all->sites[before].turn + 1;
        one->turn += !one->turn;
    }
    qsort(all->sites, all->site_count, sizeof *all->sites, turn_order);
}

static void work(const void *context, uint64_t job) {
    const world *w = context;
    uint64_t number;
    trial r;
    failing_malloc *memory = trial_begin(&r, w, job + 1); /* 0 has watched */
    while ((number = atomic_fetch_add(&all->next, 1)) < all->rounds)
        run_round(&r, &all->sites[number % all->site_count], memory);
}

/* SCENARIO:SITE, as a bad round prints it. */
static void repeat(trial *r, const char *text, failing_malloc *memory) {
    const char *colon = strchr(text, ':');
    site one = {.at = colon ? strtoull(colon + 1, NULL, 16) : 0};
    while (one.scenario < SCENARIOS && (!colon || strncmp(scenarios[one.scenario].name, text, (size_t)(colon - text))))
        one.scenario++;
    if (one.scenario == SCENARIOS || !one.at) fail_msg("'%s' is no SCENARIO:SITE", text);
    all->rounds = 1;
    run_round(r, &one, memory);
}

/* What is loaded, with a key of ids of its own, and what the load of it comes to. */
static void load_make(const world *w) {
    char file[PATH_LENGTH + 16], key[PATH_LENGTH + 16];
    char *text = payments_text("", 0, PAYMENTS);
    snprintf(file, sizeof file, "%s/payments.jsonl", w->folder);
    snprintf(key, sizeof key, "%s/id_key", w->folder);
    file_write(file, text, 0600);
    file_write(key, "00112233445566778899aabbccddeeff\n", 0600);
    free(text);
}

static void load_truth(trial *r) {
    char lines[32];
    int status;
    size_t payments = 0;
    assert_ok(weir_folder_create(r->folder));
    assert_int_equal(load_command(r), 0);
    assert_int_equal(snapshot_build(r->folder, r->patience_ms, in_folder(r, "d/store"), in_folder(r, "s")), 0);
    load_export = export_normal(r->folder, r->patience_ms, in_folder(r, "s"), &status, NULL);
    assert_non_null(load_export);
    for (unsigned n = 0; n < PAYMENTS; n++) {
        snprintf(lines, sizeof lines, "\np%u,payment,", n);
        payments += strstr(load_export, lines) != NULL;
    }
    assert_int_equal(payments, PAYMENTS);
}

static void an_allocation_that_fails_is_overcome_or_said(void **state) {
    static world w;
    const char *one = getenv("WEIR_TEST_MEMORY_SITE");
    uint64_t bad = 0;
    trial r;
    (void)state;
    all->seed = weir_test_seed();
    snprintf(w.folder, sizeof w.folder, "%s", weir_test_path("world"));
    world_build(w.folder);
    truth_make(&w);
    load_make(&w);
    failing_malloc *memory = trial_begin(&r, &w, 0);
    load_truth(&r);
    if (one && *one) {
        repeat(&r, one, memory);
    } else {
        sites_watch(&r, memory);
        sites_take_turns();
        all->rounds = environment("WEIR_TEST_MEMORY_ROUNDS", weir_test_rounds(ROUNDS));
        if (!all->rounds) all->rounds = all->site_count;
        side_by_side(environment("WEIR_TEST_MEMORY_JOBS", JOBS), work, &w);
    }
    if (all->unmet * 2 > all->rounds) /* threads meet differently in each run, but not in every place */
        fail_msg("%" PRIu64 " of %" PRIu64 " places were not met", all->unmet, all->rounds);
    for (size_t s = 0; s < SCENARIOS; s++)
        for (int o = FIRST_BAD; o < OUTCOME_COUNT; o++)
            bad += all->counts[s][o];
    if (bad) fail_msg("%" PRIu64 " of %" PRIu64 " rounds ended badly", bad, all->rounds);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void say_table(void) {
    uint64_t bad = 0;
    printf("| run | rounds |");
    for (int o = 0; o < OUTCOME_COUNT; o++)
        printf(" %s |", outcome_names[o]);
    printf("\n|---|---|");
    for (int o = 0; o < OUTCOME_COUNT; o++)
        printf("---|");
    for (size_t s = 0; s < SCENARIOS; s++) {
        uint64_t sum = 0;
        for (int o = 0; o < OUTCOME_COUNT; o++)
            sum += all->counts[s][o];
        printf("\n| %s | %" PRIu64 " |", scenarios[s].name, sum);
        for (int o = 0; o < OUTCOME_COUNT; o++) {
            printf(" %" PRIu64 " |", all->counts[s][o]);
            if (o >= FIRST_BAD) bad += all->counts[s][o];
        }
    }
    printf("\n%" PRIu64 " rounds of %" PRIu64 " sites, %" PRIu64 " not met, %" PRIu64 " bad, seed %" PRIu64 "\n",
           all->rounds, all->site_count, all->unmet, bad, all->seed);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(an_allocation_that_fails_is_overcome_or_said)};
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "60", 0);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* what is promised does not depend on a disk */
    said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 2;
    int status = weir_test_main(cases, 1, argc, argv);
    if (all->rounds) say_table();
    return status;
}

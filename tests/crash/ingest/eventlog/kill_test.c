/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_test.c - kill -9 at random moments and at every named point; nothing that was acknowledged is lost.
 *
 * A child appends and syncs with one thread a partition, and tells its parent through a pipe what it has appended and
 * what was acknowledged; the parent kills it, opens the log and compares with its own book. Every record has a number
 * that rises within its partition over the whole campaign, so a loss is a number that is not at its offset, a duplicate
 * one that does not rise. The next child goes on with the same log. The last line sums up and repeats the run.
 */
#include "eventlog_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/base/rng.h>

#include "eventlog_fixture.h"

enum {
    PARTITIONS_MAX = 3,
    OFFSETS_MAX = 1 << 20,
    LIFE_MAX_RECORDS = 40000,
    BATCH_MAX = 40,
    LIFE_MAX_MS = 60,
    LIFE_OF_POINT_MS = 2000,
    FRESH_EVERY = 12
};

/* Summed over all cases, which run in processes of their own. */
typedef struct totals {
    uint64_t cycles, events, lost, duplicated, seed;
} totals;

static totals *sum;

/* --- the child ------------------------------------------------------------------------------------------------ */

typedef struct message {
    uint32_t partition;
    uint32_t count; /* appended from first on, numbers from number on; 0: all below first are acknowledged */
    uint64_t first;
    uint64_t number;
} message;

/* A named place, and what it takes to come there. */
typedef struct kill_point {
    const char *name;
    uint64_t passes_max; /* it is passed so often at least in one life */
    bool fresh, torn;    /* only when the topic is created; only when a tail is torn */
    bool reached;
} kill_point;

typedef struct campaign {
    const char *folder;
    uint64_t seed, cycle;
    uint32_t partitions;
    uint64_t segment_bytes, retain_bytes;
    kill_point *point; /* NULL: at a random moment */
    uint64_t passes;   /* of the point */
} campaign;

typedef struct child_thread {
    const campaign *c;
    weir_eventlog *log;
    uint32_t partition;
    int pipe;
} child_thread;

static void tell(int pipe, message m) {
    if (write(pipe, &m, sizeof m) != sizeof m) _exit(0);
}

static size_t value_of(uint64_t number, uint8_t value[256]) {
    size_t length = 8 + number % 200;
    memset(value, (int)(number % 251), length);
    memcpy(value, &number, 8);
    return length;
}

static void append_batch(child_thread *t, weir_rng *rng, uint64_t *number) {
    static _Thread_local uint8_t values[BATCH_MAX][256];
    weir_record records[BATCH_MAX];
    message m = {.partition = t->partition, .count = 1 + (uint32_t)weir_rng_below(rng, BATCH_MAX), .number = *number};
    for (uint32_t i = 0; i < m.count; i++) {
        size_t length = value_of(*number + i, values[i]);
        records[i] = (weir_record){.time_us = (int64_t)(*number + i), .value = values[i], .value_length = length};
    }
    assert_ok(weir_eventlog_append(t->log, t->partition, records, m.count, &m.first));
    *number += m.count;
    tell(t->pipe, m);
}

static void child_work(void *context) {
    child_thread *t = context;
    weir_rng rng = weir_rng_stream(t->c->seed, t->c->cycle, t->partition + 1);
    uint64_t number = t->c->cycle << 24;
    while (number < (t->c->cycle << 24) + LIFE_MAX_RECORDS) {
        weir_eventlog_partition_stats stats;
        uint64_t removed;
        for (uint64_t batches = 1 + weir_rng_below(&rng, 4); batches; batches--)
            append_batch(t, &rng, &number);
        assert_ok(weir_eventlog_stats_get(t->log, t->partition, &stats));
        if (weir_rng_below(&rng, 2)) {
            assert_ok(weir_eventlog_sync(t->log));
        } else {
            assert_ok(weir_eventlog_sync_partition(t->log, t->partition));
        }
        tell(t->pipe, (message){.partition = t->partition, .first = stats.offset_end});
        if (t->partition == 0 && weir_rng_below(&rng, 8) == 0) assert_ok(weir_eventlog_retain(t->log, &removed));
    }
}

static weir_eventlog_opts opts_of(const campaign *c) {
    return (weir_eventlog_opts){
        .partitions = c->partitions, .segment_bytes = c->segment_bytes, .retain_bytes = c->retain_bytes};
}

_Noreturn static void child(const campaign *c, int pipe) {
    child_thread threads[PARTITIONS_MAX];
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = opts_of(c);
    char spec[128];
    signal(SIGPIPE, SIG_IGN);
    snprintf(spec, sizeof spec, "%s:%" PRIu64, c->point ? c->point->name : "", c->passes);
    if (c->point) assert_ok(weir_fault_kill_arm(spec));
    assert_ok(weir_eventlog_open(c->folder, "t", &opts, &log));
    for (uint32_t p = 0; p < c->partitions; p++) {
        weir_thread *thread;
        threads[p] = (child_thread){c, log, p, pipe};
        assert_ok(weir_thread_start("appender", WEIR_ROLE_TEST, child_work, &threads[p], &thread));
    }
    for (;;)
        pause();
}

/* --- the parent's book ---------------------------------------------------------------------------------------- */

typedef struct book {
    uint64_t *numbers[PARTITIONS_MAX]; /* by offset */
    uint64_t acknowledged[PARTITIONS_MAX];
} book;

static void book_message(book *b, const message *m) {
    assert_true(m->partition < PARTITIONS_MAX && m->first + m->count < OFFSETS_MAX);
    for (uint32_t i = 0; i < m->count; i++)
        b->numbers[m->partition][m->first + i] = m->number + i;
    if (m->count || m->first <= b->acknowledged[m->partition]) return;
    sum->events += m->first - b->acknowledged[m->partition];
    b->acknowledged[m->partition] = m->first;
}

/* Reads what the child says until it is dead and the pipe is empty. False: it had to be killed. */
static bool listen(book *b, int pipe, pid_t pid, int64_t life_us) {
    weir_clock *clock = weir_clock_system();
    int64_t end_us = weir_clock_mono_us(clock) + life_us;
    bool killed = false;
    message m;
    for (;;) {
        int64_t left_us = end_us - weir_clock_mono_us(clock);
        if (left_us <= 0 && !killed) {
            kill(pid, SIGKILL);
            killed = true;
        }
        struct pollfd wait = {.fd = pipe, .events = POLLIN};
        if (poll(&wait, 1, killed ? -1 : (int)(left_us / 1000)) == 0) continue;
        ssize_t got = read(pipe, &m, sizeof m);
        if (got == 0) return !killed;
        assert_int_equal(got, sizeof m);
        book_message(b, &m);
    }
}

/* Compares a partition with the book; what lies behind the acknowledged end is now durable and enters the book. */
static void compare(book *b, weir_eventlog *log, uint32_t p) {
    weir_eventlog_partition_stats stats = fixture_stats(log, p);
    weir_eventlog_reader *reader = NULL;
    weir_record records[128];
    uint64_t next = stats.offset_begin, last = 0;
    size_t count = 1;
    assert_ok(weir_eventlog_reader_open(log, p, next, &reader));
    while (count) {
        assert_ok(weir_eventlog_reader_next(reader, records, 128, &count));
        for (size_t i = 0; i < count; i++, next++) {
            uint8_t expected[256];
            uint64_t number = (uint64_t)records[i].time_us;
            assert_int_equal(records[i].offset, next);
            assert_int_equal(records[i].value_length, value_of(number, expected));
            assert_memory_equal(records[i].value, expected, records[i].value_length);
            if (next < b->acknowledged[p] && b->numbers[p][next] != number) sum->lost++;
            if (last && number <= last) sum->duplicated++;
            b->numbers[p][next] = last = number;
        }
    }
    if (next < b->acknowledged[p]) sum->lost += b->acknowledged[p] - next;
    b->acknowledged[p] = next;
    weir_eventlog_reader_close(reader);
}

static void check(book *b, const campaign *c) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = opts_of(c);
    assert_ok(weir_eventlog_open(c->folder, "t", &opts, &log));
    for (uint32_t p = 0; p < c->partitions; p++)
        compare(b, log, p);
    assert_ok(weir_eventlog_close(log));
}

/* --- the campaign --------------------------------------------------------------------------------------------- */

/* A tail as a process leaves it that dies inside a write. */
static void tear_tail(const campaign *c, const book *b, weir_rng *rng) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.read_only = true};
    uint32_t p = (uint32_t)weir_rng_below(rng, c->partitions);
    uint8_t torn[64];
    if (b->acknowledged[p] == 0 || weir_eventlog_open(c->folder, "t", &opts, &log)) return;
    const weir_elog_row *row = &log->partitions[p].row;
    int fd = open(fixture_segment(c->folder, p, row->segments[row->count - 1].first), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_ok(weir_eventlog_close(log));
    memset(torn, (int)weir_rng_below(rng, 256), sizeof torn);
    size_t length = 1 + (size_t)weir_rng_below(rng, sizeof torn);
    assert_int_equal(write(fd, torn, length), length);
    close(fd);
}

static void prepare(book *b, const campaign *c, weir_rng *rng) {
    bool fresh = c->point ? c->point->fresh : c->cycle % FRESH_EVERY == 0;
    if (fresh && weir_path_exists(c->folder)) {
        assert_ok(weir_folder_remove(c->folder));
        memset(b->acknowledged, 0, sizeof b->acknowledged);
    }
    if (c->point ? c->point->torn : weir_rng_below(rng, 4) == 0) tear_tail(c, b, rng);
}

static void cycle(book *b, const campaign *c, weir_rng *rng) {
    int pipe_fds[2], status;
    prepare(b, c, rng);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(pipe_fds[0]);
        child(c, pipe_fds[1]);
    }
    close(pipe_fds[1]);
    int64_t life_ms = c->point ? LIFE_OF_POINT_MS : (int64_t)weir_rng_below(rng, LIFE_MAX_MS);
    bool by_itself = listen(b, pipe_fds[0], pid, life_ms * 1000);
    if (c->point && by_itself) c->point->reached = true;
    close(pipe_fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check(b, c);
    sum->cycles++;
    assert_int_equal(sum->lost, 0);
    assert_int_equal(sum->duplicated, 0);
}

static void quiet(void) {
    weir_log_opts opts = weir_log_defaults();
    opts.level = WEIR_LOG_ERROR;
    weir_log_setup(&opts);
}

/* points: count of them in turn; or NULL for random moments. */
static void run(campaign c, uint64_t cycles, kill_point *points, size_t count) {
    book b = {0};
    quiet();
    c.folder = weir_test_path("log");
    c.seed = sum->seed = weir_test_seed();
    weir_rng rng = weir_rng_stream(c.seed, c.partitions, 0);
    for (uint32_t p = 0; p < c.partitions; p++)
        assert_non_null(b.numbers[p] = weir_calloc(OFFSETS_MAX, sizeof *b.numbers[p]));
    for (c.cycle = 1; c.cycle <= cycles; c.cycle++) {
        c.point = points ? &points[c.cycle % count] : NULL;
        c.passes = 1 + (c.point ? weir_rng_below(&rng, c.point->passes_max) : 0);
        cycle(&b, &c, &rng);
    }
    for (uint32_t p = 0; p < c.partitions; p++)
        weir_free(b.numbers[p]);
}

static void kill_at_random_moments_one_partition(void **state) {
    (void)state;
    run((campaign){.partitions = 1, .segment_bytes = 1u << 20}, weir_test_rounds(50), NULL, 0);
}

static void kill_at_random_moments_small_segments_and_retention(void **state) {
    (void)state;
    run((campaign){.partitions = 3, .segment_bytes = 2 * WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 200000},
        weir_test_rounds(50), NULL, 0);
}

/* In memory a child comes much further before it is killed. */
static void kill_at_random_moments_in_memory(void **state) {
    (void)state;
    fixture_in_memory();
    run((campaign){.partitions = 2, .segment_bytes = 3 * WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 100000},
        weir_test_rounds(40), NULL, 0);
}

static void kill_at_every_named_point(void **state) {
    (void)state;
    static kill_point points[] = {
        {"eventlog.written", 6, false, false, false},
        {"eventlog.synced", 6, false, false, false},
        {"eventlog.marked", 6, false, false, false},
        {"eventlog.roll", 3, false, false, false},
        {"eventlog.segment.created", 3, false, false, false},
        {"eventlog.segment.synced", 3, false, false, false},
        {"eventlog.cut", 1, false, true, false},
        {"eventlog.retained", 2, false, false, false},
        {"eventlog.create.marked", 1, true, false, false},
        {"eventlog.create.done", 1, true, false, false},
        {"eventlog.marks.replaced", 1, false, false, false},
    };
    size_t count = sizeof points / sizeof points[0];
    run((campaign){.partitions = 3, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 30000},
        weir_test_rounds(6 * count), points, count);
    for (size_t i = 0; i < count; i++) {
        if (!points[i].reached) fprintf(stderr, "never came to %s\n", points[i].name);
        assert_true(points[i].reached);
    }
}

static const weir_test_case cases[] = {
    WEIR_CASE(kill_at_random_moments_one_partition),
    WEIR_CASE(kill_at_random_moments_small_segments_and_retention),
    WEIR_CASE(kill_at_random_moments_in_memory),
    WEIR_CASE(kill_at_every_named_point),
};

/* One seed for all cases, so that the last line repeats them. */
static void choose_seed(void) {
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, weir_rng_fresh_seed());
    setenv("WEIR_TEST_SEED", seed, 0);
}

int main(int argc, char **argv) {
    choose_seed();
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sum == MAP_FAILED) return 2;
    int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    if (sum->cycles) {
        printf("%" PRIu64 " cycles, %" PRIu64 " events, %" PRIu64 " lost, %" PRIu64 " duplicated, seed %" PRIu64 "\n",
               sum->cycles, sum->events, sum->lost, sum->duplicated, sum->seed);
    }
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * living_test.c - a topic of a real broker that lives and a server that reads it, against a model of the truth.
 *
 * An epoch has a topic and a store of its own. Its steps are drawn: events through every codec, in transactions that
 * are committed, aborted or left open for a while, large ones and ones without a value; kills of the broker and of the
 * server, a broker that hangs, partitions that are added, records that retention removes, a topic that is compacted.
 * After each step that allows it the graph must be the model. An epoch ends well, or by what nobody may read on after:
 * the topic is made again, its log is cut back, retention passes the server. Then the server must have stopped with the
 * sentence that says so, with nothing lost, and nothing of the new log but what the sentence names.
 */
#include <sys/mman.h>

#include <weir/store/base/rng.h>

#include "../../integration/kafka/living.h"

#define STEPS       9u
#define HUGE_BYTES  (700u << 10)
#define EPOCH_MAX   (LIVING_EVENTS_MAX - 1000u) /* those above are for the log that comes after */
#define OTHER_FIRST EPOCH_MAX

typedef struct totals {
    uint64_t epochs, steps, events, kills, seed;
} totals;

static totals *sum; /* shared with the cases' processes */

typedef struct epoch {
    weir_rng rng;
    char topic[64];
    int partitions;
    bool compacted;
    uint64_t count;   /* events sent */
    rd_kafka_t *open; /* a transaction that is open; or NULL */
    uint64_t open_first, open_count;
    serve_child server;
} epoch;

static int32_t any_partition(epoch *e) {
    return (int32_t)weir_rng_below(&e->rng, (uint64_t)e->partitions);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* Compacted topics keep of each key the newest: no key twice in a step, so that all are read before they may go. */
static void send_event(epoch *e, rd_kafka_t *rk, int32_t partition, uint64_t n, size_t padding) {
    static char text[HUGE_BYTES + 512];
    char key[24];
    int length = living_text(n, text);
    snprintf(key, sizeof key, "k%" PRIu64, e->compacted ? n % 40 : n);
    if (padding) {
        length += snprintf(text + length - 1, 16, ",\"pad\":\"") - 1;
        memset(text + length, 'p', padding);
        length += (int)padding;
        length += snprintf(text + length, 8, "\"}");
    }
    living_put(rk, e->topic, partition, key, text, (size_t)length, 0);
}

static uint64_t how_many(epoch *e) {
    uint64_t most = e->compacted ? 40 : 300, left = EPOCH_MAX - e->count;
    uint64_t count = 1 + weir_rng_below(&e->rng, most);
    return count < left ? count : left;
}

static void flush_all(rd_kafka_t *rk) {
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
}

/* kill: the broker dies while they are on their way, and comes back. */
static void produce(epoch *e, bool kill_broker, bool large) {
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    const char *const settings[][2] = {{"enable.idempotence", "true"},
                                       {"message.max.bytes", "1000000"},
                                       {"compression.codec", codecs[weir_rng_below(&e->rng, 5)]},
                                       {NULL, NULL}};
    uint64_t count = large ? 3 : how_many(e), first = e->count;
    rd_kafka_t *rk = living_client(settings);
    if (first + count > EPOCH_MAX) count = 0;
    for (uint64_t n = first; n < first + count; n++)
        send_event(e, rk, any_partition(e), n, large ? 1 + weir_rng_below(&e->rng, HUGE_BYTES) : 0);
    if (kill_broker) {
        usleep((useconds_t)weir_rng_below(&e->rng, 30000));
        broker_kill();
        broker_start_again();
        sum->kills++;
    }
    flush_all(rk);
    rd_kafka_destroy(rk);
    living_add(truth, first, count);
    e->count += count;
    sum->events += count;
}

/* So many events, in each partition one at least. */
static void put_in_each(epoch *e, uint64_t count) {
    rd_kafka_t *rk = living_client(NULL);
    for (uint64_t i = 0; i < count; i++)
        send_event(e, rk, (int32_t)(i % (uint64_t)e->partitions), e->count + i, 0);
    flush_all(rk);
    rd_kafka_destroy(rk);
    living_add(truth, e->count, count);
    e->count += count;
    sum->events += count;
}

static void produce_null(epoch *e) {
    rd_kafka_t *rk = living_client(NULL);
    char key[] = "nothing";
    for (uint64_t i = 0; i < 5; i++)
        living_put(rk, e->topic, any_partition(e), key, NULL, 0, 0);
    flush_all(rk);
    rd_kafka_destroy(rk);
}

/* --- transactions ------------------------------------------------------------------------------------------------- */

static void begin_transaction(epoch *e) {
    char name[96];
    snprintf(name, sizeof name, "t-%s-%" PRIu64, e->topic, e->count);
    const char *const settings[][2] = {{"transactional.id", name}, {"transaction.timeout.ms", "600000"}, {NULL, NULL}};
    e->open = living_client(settings);
    assert_null(rd_kafka_init_transactions(e->open, LIVING_WAIT_MS));
    assert_null(rd_kafka_begin_transaction(e->open));
    e->open_first = e->count;
    e->open_count = how_many(e);
    e->count += e->open_count;
    for (uint64_t n = e->open_first; n < e->open_first + e->open_count; n++)
        send_event(e, e->open, any_partition(e), n, 0);
    flush_all(e->open);
}

/* What a broker that came back does not know any more is aborted. */
static bool commit(rd_kafka_t *rk) {
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_commit_transaction(rk, LIVING_WAIT_MS);
        if (!error) return true;
        bool again = rd_kafka_error_is_retriable(error), abort = rd_kafka_error_txn_requires_abort(error);
        if (!again && !abort) fail_msg("commit: %s", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        if (again) continue;
        assert_null(rd_kafka_abort_transaction(rk, LIVING_WAIT_MS));
        return false;
    }
}

static void end_transaction(epoch *e) {
    if (!e->open) return;
    bool committed = weir_rng_below(&e->rng, 3) != 0;
    if (committed)
        committed = commit(e->open);
    else
        assert_null(rd_kafka_abort_transaction(e->open, LIVING_WAIT_MS));
    if (committed) living_add(truth, e->open_first, e->open_count);
    sum->events += committed ? e->open_count : 0;
    rd_kafka_destroy(e->open);
    e->open = NULL;
}

/* --- what happens to broker, topic and server --------------------------------------------------------------------- */

static void restart_server(epoch *e, bool killed) {
    int status = serve_end(&e->server, killed ? SIGKILL : SIGTERM);
    assert_int_equal(status, killed ? 128 + SIGKILL : 0);
    sum->kills += killed;
    living_serve(&e->server, NULL);
}

static void restart_broker(epoch *e) {
    bool killed = weir_rng_below(&e->rng, 2);
    if (killed)
        broker_kill();
    else
        broker_do("down");
    if (weir_rng_below(&e->rng, 2)) usleep((useconds_t)weir_rng_below(&e->rng, 3000000)); /* the server sees it */
    broker_start_again();
    sum->kills += killed;
}

static void hang_broker(epoch *e) {
    pid_t broker = broker_pid(broker_folder);
    assert_int_equal(kill(broker, SIGSTOP), 0);
    usleep((useconds_t)weir_rng_below(&e->rng, 3000000));
    assert_int_equal(kill(broker, SIGCONT), 0);
}

static void widen(epoch *e) {
    if (e->partitions >= 8) return;
    e->partitions += 1 + (int)weir_rng_below(&e->rng, 2);
    living_widen(e->topic, (size_t)e->partitions);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void compare(epoch *e) {
    living_await_truth(&e->server, truth);
    serve_await(&e->server, "/readyz", NULL, 200, "\"behind\":0");
}

/* So many events, behind which no partition has anything. The mark of a transaction that was ended a moment ago may
 * come behind an event that was sent since; it is there once such an event can be read. */
static void end_with_events(epoch *e, uint64_t count) {
    put_in_each(e, (uint64_t)e->partitions);
    compare(e);
    put_in_each(e, count);
    compare(e);
}

/* Up to whatever each partition ends with, which may be the mark of a transaction: the second look at the ends has the
 * marks that came behind the first, because nothing is applied up to records whose mark is not written. A server that
 * is killed reads again what it had not sealed. */
static void retain_nothing(epoch *e) {
    compare(e);
    living_await_applied(&e->server, e->topic, e->partitions);
    living_seal(&e->server, e->topic, e->partitions);
    living_remove_records(e->topic, e->partitions);
}

/* Before the next step has newer records of the same keys. */
static void compare_and_seal(epoch *e) {
    compare(e);
    living_seal(&e->server, e->topic, e->partitions);
}

static void step(epoch *e) {
    static const char *const names[] = {"events",        "events and a killed broker",
                                        "large events",  "nulls",
                                        "transaction",   "restarted broker",
                                        "hung broker",   "more partitions",
                                        "killed server", "stopped server",
                                        "retention"};
    uint64_t dice = weir_rng_below(&e->rng, sizeof names / sizeof names[0]);
    fprintf(stderr, "  %s\n", names[dice]);
    sum->steps++;
    if (dice == 0) produce(e, false, false);
    if (dice == 1) produce(e, true, false);
    if (dice == 2) produce(e, false, true);
    if (dice == 3 && !e->compacted) produce_null(e);
    if (dice == 4 && !e->open && !e->compacted) begin_transaction(e);
    if (dice == 5) restart_broker(e);
    if (dice == 6) hang_broker(e);
    if (dice == 7) widen(e);
    if (dice == 8 || dice == 9) restart_server(e, dice == 8);
    if (e->open && weir_rng_below(&e->rng, 2)) end_transaction(e);
    if (e->open) return; /* hides what was produced behind it */
    bool compares = dice == 10 || e->compacted || weir_rng_below(&e->rng, 2);
    if (dice == 10 && !e->compacted) {
        retain_nothing(e);
    } else if (e->compacted) {
        compare_and_seal(e);
    } else if (compares) {
        compare(e);
    }
}

static void begin(epoch *e, uint64_t which, bool may_compact) {
    static const char *const compact[][2] = {{"cleanup.policy", "compact"},         {"segment.ms", "100"},
                                             {"min.cleanable.dirty.ratio", "0.01"}, {"max.compaction.lag.ms", "100"},
                                             {"delete.retention.ms", "0"},          {NULL, NULL}};
    *e = (epoch){.rng = weir_rng_stream(sum->seed, which, 0), .partitions = 1};
    e->partitions += (int)weir_rng_below(&e->rng, 3);
    e->compacted = may_compact && weir_rng_below(&e->rng, 3) == 0;
    snprintf(e->topic, sizeof e->topic, "living-%" PRIu64, which);
    fprintf(stderr, "%s: %d partitions%s\n", e->topic, e->partitions, e->compacted ? ", compacted" : "");
    memset(truth, 0, sizeof truth);
    if (weir_path_exists(weir_test_path("data"))) assert_ok(weir_folder_remove(weir_test_path("data")));
    living_make(e->topic, e->partitions, e->compacted ? compact : NULL);
    living_describe(e->topic, "");
    living_serve(&e->server, NULL);
    produce(e, false, false);
    if (e->compacted) compare_and_seal(e);
    for (uint64_t i = 0; i < STEPS; i++)
        step(e);
    end_transaction(e);
    compare(e);
}

static void end(epoch *e) {
    assert_int_equal(serve_end(&e->server, SIGTERM), 0);
    sum->epochs++;
}

static void run(void (*last)(epoch *e), uint64_t kind) {
    static epoch e;
    broker_needed();
    sum->seed = weir_test_seed();
    for (uint64_t i = 0; i < (weir_test_rounds(1) + 3) / 4; i++) { /* an epoch takes up to a minute on a busy machine */
        begin(&e, 1000 * kind + i, !last);
        if (last) last(&e);
        end(&e);
    }
}

/* --- the ends ----------------------------------------------------------------------------------------------------- */

/* With records in each partition, so that there is something to know it by. */
static void fill(epoch *e) {
    end_with_events(e, 40);
    living_await_known(&e->server, e->topic, e->partitions);
}

/* Perhaps while the server is stopped. */
static bool stop_perhaps(epoch *e) {
    bool stopped = weir_rng_below(&e->rng, 2), killed = weir_rng_below(&e->rng, 2);
    if (stopped) assert_int_equal(serve_end(&e->server, killed ? SIGKILL : SIGTERM), killed ? 128 + SIGKILL : 0);
    return stopped;
}

static void is_made_again(epoch *e) {
    fill(e);
    bool stopped = stop_perhaps(e);
    living_remove(e->topic);
    if (weir_rng_below(&e->rng, 2)) usleep((useconds_t)weir_rng_below(&e->rng, 4000000));
    living_make(e->topic, e->partitions, NULL);
    uint64_t count = weir_rng_below(&e->rng, 4) ? weir_rng_below(&e->rng, 900) : 0;
    for (int p = 0; count && p < e->partitions; p++)
        living_produce(e->topic, p, OTHER_FIRST + (uint64_t)p * 100, count < 100 ? count : 100);
    if (count > 400) living_produce(e->topic, 0, OTHER_FIRST, 900);
    if (stopped) living_serve(&e->server, NULL);
    living_is_found(&e->server, "created again");
}

static void is_cut_back(epoch *e) {
    fill(e);
    bool stopped = stop_perhaps(e);
    broker_kill();
    broker_do("down");
    int partition = (int)any_partition(e);
    living_cut(e->topic, partition, 0.3 + 0.6 * weir_rng_double(&e->rng));
    broker_start_again();
    sum->kills++;
    if (weir_rng_below(&e->rng, 2)) living_produce(e->topic, partition, OTHER_FIRST, 900);
    if (stopped) living_serve(&e->server, NULL);
    living_is_found(&e->server, "created again");
}

static void retention_passes(epoch *e) {
    char sentence[1024];
    uint64_t lost, extra;
    fill(e);
    assert_int_equal(serve_end(&e->server, SIGTERM), 0);
    living_produce(e->topic, any_partition(e), OTHER_FIRST, 50);
    living_remove_records(e->topic, e->partitions);
    living_serve(&e->server, NULL);
    living_await_failure(&e->server, "is gone", sentence);
    living_differ(&e->server, truth, &lost, &extra);
    assert_int_equal(lost + extra, 0);
}

static void a_living_topic_is_the_model(void **state) {
    (void)state;
    run(NULL, 1);
}
static void a_topic_made_again_stops_what_was_the_model(void **state) {
    (void)state;
    run(is_made_again, 2);
}
static void a_log_cut_back_stops_what_was_the_model(void **state) {
    (void)state;
    run(is_cut_back, 3);
}
static void retention_that_passes_stops_what_was_the_model(void **state) {
    (void)state;
    run(retention_passes, 4);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {
        WEIR_CASE(a_living_topic_is_the_model), WEIR_CASE(a_topic_made_again_stops_what_was_the_model),
        WEIR_CASE(a_log_cut_back_stops_what_was_the_model), WEIR_CASE(retention_that_passes_stops_what_was_the_model)};
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "30", 0);
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sum == MAP_FAILED) return 2;
    if (argc < 2 || strcmp(argv[1], "--list") != 0) broker_start();
    int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    broker_stop();
    if (sum->epochs)
        printf("%" PRIu64 " epochs, %" PRIu64 " steps, %" PRIu64 " events, %" PRIu64 " kills, seed %" PRIu64 "\n",
               sum->epochs, sum->steps, sum->events, sum->kills, sum->seed);
    return status;
}

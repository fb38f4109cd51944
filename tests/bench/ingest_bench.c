/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_bench.c - payments of 220 to 270 bytes of JSON, through mapper, pipeline and graph, until all is sealed.
 *
 *   event log (or Kafka) ──► map ──► claim ──► batches ──► shards ──► delta ──► sorted files
 *
 * Lines are records of the cold store in a second, 10 to 16 of which are one payment, so that all lines count the same
 * thing. The shards' content is read out of a store that was filled before the rounds; its counts say what the limits
 * write. Foreign payments (foreign.h) instead of the simulated ones say whether a ratio hangs on what is fed. Memory is
 * what the process grew by while ours ran, at its most, against the graph's budget and what else it may hold (queues of
 * batches, engines).
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/pipeline/pipeline.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>
#include <weir/store/base/rng.h>

#include "ingest_bench.h"

#define PAYMENTS       100000u
#define PAYMENTS_QUICK 500u
#define BUDGET_BYTES   (256ull << 20)
#define TOPIC          "payments"
#define TOPIC_KAFKA    "weir-bench-ingest"

weir_err weir_ingest_bench_fresh(const ingest_context *c, const char *name, char path[1024]) {
    int length = snprintf(path, 1024, "%s/%s", c->folder, name);
    if (length < 0 || length >= 1024) return WEIR_ERR(WEIR_ELIMIT, "the path of the bench's folder is too long");
    return weir_path_exists(path) ? weir_folder_remove(path) : WEIR_OK;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* What was freed before is given back first, so that it does not hide what is taken now. */
static uint64_t memory_mark(void) {
    malloc_trim(0);
    weir_bench_memory_mark();
    return weir_bench_memory("VmRSS:");
}

static void memory_peak(ingest_context *c, uint64_t before_bytes) {
    uint64_t peak_bytes = weir_bench_memory("VmHWM:");
    uint64_t grown_bytes = peak_bytes > before_bytes ? peak_bytes - before_bytes : 0;
    if (grown_bytes > c->peak_bytes) c->peak_bytes = grown_bytes;
}

/* --- ours --------------------------------------------------------------------------------------------------------- */

typedef struct running {
    weir_graph *graph;
    weir_pipeline *pipeline;
    char store[1024];
} running;

static weir_err start(const ingest_context *c, bool piles, running *r) {
    const weir_graph_opts graph_opts = {
        .shards = INGEST_SHARDS, .memory_bytes = c->budget_bytes, .create = true, .piles = piles};
    const weir_pipeline_source source = {.source =
                                             weir_schema_source_find(c->schema, weir_bench_stream_source(c->stream)),
                                         .stream = c->brokers ? WEIR_PIPELINE_KAFKA : WEIR_PIPELINE_EVENTLOG,
                                         .log = c->log};
    const weir_pipeline_opts opts = {
        .folder = r->store, .letter_folder = c->folder, .sources = &source, .source_count = 1, .brokers = c->brokers};
    weir_err err = weir_ingest_bench_fresh(c, "store", r->store);
    if (!err) err = weir_graph_open(r->store, c->schema, &graph_opts, &r->graph);
    weir_pipeline_opts with_graph = opts;
    with_graph.graph = r->graph;
    return err ? err : weir_pipeline_open(&with_graph, &r->pipeline);
}

static void stop(running *r, weir_err *errp) {
    weir_err_keep(errp, weir_pipeline_close(r->pipeline));
    weir_err_keep(errp, weir_graph_close(r->graph));
    *r = (running){0};
}

/* A broker tells of its end when it likes: what was sent is waited for. */
static weir_err wait_for_all(const ingest_context *c, running *r) {
    weir_pipeline_source_stats stats = {0};
    weir_err err = WEIR_OK;
    while (!err && stats.records < c->payments) {
        err = weir_pipeline_drain(r->pipeline, WEIR_PIPELINE_FOREVER);
        weir_pipeline_source_stats_get(r->pipeline, 0, &stats);
    }
    return err ? err : weir_graph_seal(r->graph);
}

static weir_err run_once(ingest_context *c, bool piles, weir_bench_sample *samplep) {
    running r = {0};
    uint64_t before_bytes = memory_mark();
    weir_err err = start(c, piles, &r);
    weir_bench_start(samplep);
    if (!err) err = weir_pipeline_start(r.pipeline);
    if (!err) err = wait_for_all(c, &r);
    weir_bench_stop(samplep, (double)c->records);
    memory_peak(c, before_bytes);
    stop(&r, &err);
    return err;
}

/* Two lines tell of it, each with a ratio: it runs once a round. */
static weir_err run_ingest(void *context, uint64_t round, weir_bench_sample *samplep) {
    ingest_context *c = context;
    if (c->ran && c->ran_round == round) {
        *samplep = c->ran_sample;
        return WEIR_OK;
    }
    weir_err err = run_once(c, false, samplep);
    c->ran = true;
    c->ran_round = round;
    c->ran_sample = *samplep;
    return err;
}

static weir_err run_piled(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return run_once(context, true, samplep);
}

/* --- before the rounds: the payments, and what they become -------------------------------------------------------- */

static weir_err fill_log(ingest_context *c) {
    const weir_eventlog_opts log_opts = {.partitions = 1};
    weir_err err = weir_eventlog_open(c->folder, TOPIC, &log_opts, &c->log);
    return err ? err : weir_bench_stream_append(c->stream, c->log, c->payments, NULL, NULL);
}

static weir_err keep_record(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    ingest_records *r = context;
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? r->capacity * 2 : 4096;
        ingest_record *grown = weir_realloc_array(r->of, capacity, sizeof *grown);
        if (!grown) return WEIR_NOMEM("for the bench's records");
        r->of = grown;
        r->capacity = capacity;
    }
    r->of[r->count++] = (ingest_record){r->bytes.length, (uint32_t)key_length, (uint32_t)value_length};
    weir_buf_append(&r->bytes, key, key_length);
    weir_buf_append(&r->bytes, value, value_length);
    return weir_buf_err(&r->bytes);
}

static int compare_keys(const void *a, const void *b, void *bytes) {
    const ingest_record *x = a, *y = b;
    const char *x_key = (const char *)bytes + x->at, *y_key = (const char *)bytes + y->at;
    size_t shared = x->key_length < y->key_length ? x->key_length : y->key_length;
    int order = memcmp(x_key, y_key, shared);
    return order ? order : (x->key_length > y->key_length) - (x->key_length < y->key_length);
}

/* Keys begin with hashes, so a stream of events meets them as a shuffle does. */
static weir_err shuffle(ingest_records *r) {
    weir_rng rng = weir_rng_stream(1, 0, 0);
    r->shuffled = weir_malloc(r->count * sizeof *r->shuffled);
    if (!r->shuffled) return WEIR_NOMEM("for the bench's records");
    for (size_t i = 0; i < r->count; i++) {
        size_t other = (size_t)weir_rng_below(&rng, i + 1);
        r->shuffled[i] = r->shuffled[other];
        r->shuffled[other] = (uint32_t)i;
    }
    return WEIR_OK;
}

static weir_err keep_records(ingest_context *c, weir_graph *graph) {
    weir_graph_stats stats;
    weir_err err = WEIR_OK;
    weir_graph_stats_get(graph, &stats);
    c->files = (stats.seals + INGEST_SHARDS - 1) / INGEST_SHARDS;
    for (uint32_t i = 0; !err && i < INGEST_SHARDS; i++) {
        err = weir_graph_scan(graph, i, keep_record, &c->shards[i]);
        if (err) break;
        ingest_records *r = &c->shards[i];
        if (r->count) qsort_r(r->of, r->count, sizeof *r->of, compare_keys, r->bytes.bytes);
        err = shuffle(r);
        c->records += c->shards[i].count;
    }
    return err;
}

static weir_err prepare(ingest_context *c) {
    running r = {0};
    weir_err err = weir_bench_folder(&c->folder);
    if (!err && !c->brokers) err = fill_log(c);
    if (!err && c->brokers) err = weir_ingest_bench_produce(c);
    if (!err) err = start(c, false, &r);
    if (!err) err = weir_pipeline_start(r.pipeline);
    if (!err) err = wait_for_all(c, &r);
    if (!err) err = keep_records(c, r.graph);
    stop(&r, &err);
    return err;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* In Kafka the topic is the bench's own: a person's `payments` are left alone. */
static weir_err open_schema(ingest_context *c) {
    if (!c->brokers) return weir_bench_stream_schema(c->stream, &c->schema);
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    static const char wanted[] = "topic: " TOPIC "\n";
    const char *at = strstr(shipped->text, wanted);
    weir_buf text = {0};
    if (!at) return weir_schema_parse(shipped->name, shipped->text, shipped->length, &c->schema);
    weir_buf_append(&text, shipped->text, (size_t)(at - shipped->text));
    weir_buf_text(&text, "topic: " TOPIC_KAFKA "\n");
    weir_buf_text(&text, at + sizeof wanted - 1);
    weir_err err = weir_buf_err(&text);
    if (!err) err = weir_schema_parse(shipped->name, (const char *)text.bytes, text.length, &c->schema);
    weir_buf_free(&text);
    return err;
}

static const char *name_of(const ingest_context *c) {
    return c->foreign ? "ingest-foreign" : "ingest";
}

static weir_err run_lines(weir_cli *cli, ingest_context *c) {
    const weir_bench_line from_log[] = {
        {"limit: RocksDB's sorted files of the same records", "krec/s", 1e-3, NULL, weir_ingest_bench_sorted, c},
        {"sorted files of the store's engine", "krec/s", 1e-3, "limit: RocksDB's sorted files of the same records",
         weir_ingest_bench_engine, c},
        {"plain: batches and memtables", "krec/s", 1e-3, NULL, weir_ingest_bench_memtable, c},
        {"payments to sealed records", "krec/s", 1e-3, "limit: RocksDB's sorted files of the same records", run_ingest,
         c},
        {"the same", "krec/s", 1e-3, "plain: batches and memtables", run_ingest, c},
        {"the same into a store that nobody reads yet", "krec/s", 1e-3,
         "limit: RocksDB's sorted files of the same records", run_piled, c},
    };
    const weir_bench_line from_kafka[] = {
        {"limit: polled and mapped, not stored", "krec/s", 1e-3, NULL, weir_ingest_bench_poll, c},
        {"payments from Kafka to sealed records", "krec/s", 1e-3, "limit: polled and mapped, not stored", run_ingest,
         c},
    };
    if (c->brokers) return weir_bench_run(cli, "ingest", from_kafka, sizeof from_kafka / sizeof from_kafka[0]);
    return weir_bench_run(cli, name_of(c), from_log, sizeof from_log / sizeof from_log[0]);
}

static weir_err print_memory(const weir_cli *cli, const ingest_context *c) {
    const double mib = 1 << 20, peak = (double)c->peak_bytes / mib, budget = (double)c->budget_bytes / mib;
    const double each = (double)c->records / (double)c->payments;
    weir_buf out = {0};
    if (weir_cli_given(cli, "json")) {
        weir_buf_printf(&out, "{\"bench\":\"%s\",\"what\":\"memory at its most\",\"unit\":\"MiB\",\"most\":%.1f",
                        name_of(c), peak);
        weir_buf_printf(&out, ",\"budget\":%.1f,\"records_a_payment\":%.2f}\n", budget, each);
    } else {
        weir_buf_printf(&out, "%-10s memory at its most: %.1f MiB, of a budget of %.1f; %.2f records a payment\n",
                        name_of(c), peak, budget, each);
    }
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static void close_context(ingest_context *c, weir_err *errp) {
    weir_err_keep(errp, weir_eventlog_close(c->log));
    for (uint32_t i = 0; i < INGEST_SHARDS; i++) {
        weir_buf_free(&c->shards[i].bytes);
        weir_free(c->shards[i].of);
        weir_free(c->shards[i].shuffled);
    }
    weir_schema_free(c->schema);
    weir_bench_stream_close(c->stream);
}

static weir_err run(weir_cli *cli) {
    ingest_context c = {.payments = weir_bench_quick(cli) ? PAYMENTS_QUICK : PAYMENTS, .budget_bytes = BUDGET_BYTES};
    bool from_kafka = weir_cli_given(cli, "kafka");
    if (from_kafka) c.brokers = weir_cli_text(cli, "brokers");
    if (from_kafka && !c.brokers)
        return WEIR_ERR(WEIR_EUSAGE, "--kafka needs --brokers; ops/kafka up starts one and prints it");
    const char *stream = weir_cli_text(cli, "stream");
    c.foreign = stream && strcmp(stream, "foreign") == 0;
    if (from_kafka && c.foreign)
        return WEIR_ERR(WEIR_EUSAGE, "--kafka is for the simulated stream; leave out --stream foreign");
    weir_err err = weir_cli_u64(cli, "payments", 100, 50000000, &c.payments);
    if (!err) err = weir_bench_stream_open(c.foreign ? "foreign" : "simulated", 0, &c.stream);
    if (!err) err = open_schema(&c);
    if (!err && c.brokers) weir_ingest_bench_remove_topic(&c);
    if (!err) err = prepare(&c);
    if (!err) err = run_lines(cli, &c);
    if (!err) err = print_memory(cli, &c);
    if (c.brokers) weir_ingest_bench_remove_topic(&c);
    close_context(&c, &err);
    return err;
}

static const weir_option options[] = {
    WEIR_BENCH_OPTIONS,
    {"kafka", 'k', NULL, "from a broker instead of the event log", NULL},
    {"brokers", 'b', "HOST:PORT", "the broker of --kafka", NULL},
    {"stream", 's', "NAME", "which payments (default simulated)", WEIR_BENCH_STREAMS},
    {"payments", 'p', "N", "payments in a round (default 100000; quick: 500)", NULL},
    {0},
};

const weir_command weir_bench_ingest = {
    .name = "ingest",
    .summary = "payments to sealed records, against sorted files and memtables",
    .description =
        "With --kafka, against a consumer that polls and maps; makes the topic weir-bench-ingest and removes it.",
    .example = "weir bench ingest --rounds 3",
    .options = options,
    .run = run,
};

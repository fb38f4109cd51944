/* SPDX-License-Identifier: Apache-2.0 */
/* produce_bench.c - payments into a topic that stays: what Weir and another program can both be measured on. */
#include <inttypes.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "bench.h"
#include "stream.h"

#define PAYMENTS       100000u
#define PAYMENTS_QUICK 500u
#define PARTITIONS     4u
#define TIMEOUT_US     (60 * WEIR_US_PER_S)

typedef struct producing {
    const char *brokers, *topic, *schema_path;
    weir_bench_stream *stream;
    weir_schema *schema;
    uint64_t payments, bytes;
} producing;

/* Payments behind those of somebody else would be counted with ours. */
static weir_err need_fresh_topic(const producing *p) {
    size_t count;
    weir_err err = weir_kafka_topic_stats_get(p->brokers, p->topic, TIMEOUT_US, NULL, 0, &count);
    if (!err) return WEIR_ERR(WEIR_EEXIST, "there is a topic %s already; remove it, or use another broker", p->topic);
    return weir_err_code(err) == WEIR_ENOTFOUND ? WEIR_OK : err;
}

static weir_err produce(producing *p) {
    const weir_kafka_producer_opts opts = {
        .brokers = p->brokers, .topic = p->topic, .partitions = PARTITIONS, .timeout_us = TIMEOUT_US};
    weir_kafka_producer *producer;
    uint64_t acknowledged;
    weir_err err = weir_kafka_producer_open(&opts, &producer);
    for (uint64_t sent = 0; !err && sent < p->payments; sent++) {
        weir_record record;
        weir_bench_stream_next(p->stream, &record);
        err = weir_kafka_produce(producer, record.time_us, NULL, 0, record.value, record.value_length);
        p->bytes += record.value_length;
    }
    if (!err) err = weir_kafka_flush(producer, &acknowledged);
    weir_kafka_producer_close(producer);
    return err;
}

static weir_err write_schema(const producing *p) {
    weir_buf text = {0};
    if (!p->schema_path) return WEIR_OK;
    weir_schema_print(p->schema, &text);
    weir_err err = weir_buf_err(&text);
    if (!err) err = weir_file_replace(p->schema_path, text.bytes, text.length);
    weir_buf_free(&text);
    return err;
}

static weir_err say(const producing *p) {
    weir_buf out = {0};
    weir_buf_printf(&out, "%" PRIu64 " payments, %" PRIu64 " bytes of JSON, in topic %s of %u partitions\n",
                    p->payments, p->bytes, p->topic, PARTITIONS);
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --quick without a broker shows that it runs, on librdkafka's mock, which keeps nothing. */
static weir_err produce_to_mock(producing *p) {
    char text[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof text);
    if (!rk) return WEIR_ERR(WEIR_EUNAVAILABLE, "the mock broker did not start: %s", text);
    rd_kafka_mock_cluster_t *mock = rd_kafka_mock_cluster_new(rk, 1);
    rd_kafka_mock_topic_create(mock, p->topic, PARTITIONS, 1);
    p->brokers = rd_kafka_mock_cluster_bootstraps(mock);
    weir_err err = produce(p);
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(rk);
    return err;
}

static weir_err produce_to(producing *p, bool quick) {
    if (!p->brokers && quick) return produce_to_mock(p);
    if (!p->brokers)
        return WEIR_ERR(WEIR_EUSAGE, "--brokers names the broker of the topic; ops/kafka up starts one and prints it");
    weir_err err = need_fresh_topic(p);
    return err ? err : produce(p);
}

static weir_err run(weir_cli *cli) {
    const char *stream = weir_cli_text(cli, "stream");
    bool quick = weir_bench_quick(cli);
    producing p = {.brokers = weir_cli_text(cli, "brokers"),
                   .schema_path = weir_cli_text(cli, "schema"),
                   .payments = quick ? PAYMENTS_QUICK : PAYMENTS};
    weir_err err = weir_cli_u64(cli, "payments", 1, 1000000000, &p.payments);
    if (!err) err = weir_bench_stream_open(stream ? stream : "foreign", 0, &p.stream);
    if (!err) err = weir_bench_stream_schema(p.stream, &p.schema);
    if (!err) {
        uint32_t source = weir_schema_source_find(p.schema, weir_bench_stream_source(p.stream));
        p.topic = weir_schema_source_at(p.schema, source)->topic;
        err = produce_to(&p, quick);
    }
    if (!err) err = write_schema(&p);
    if (!err) err = say(&p);
    weir_schema_free(p.schema);
    weir_bench_stream_close(p.stream);
    return err;
}

static const weir_option options[] = {
    {"brokers", 'b', "HOST:PORT", "the broker of the topic (quick: a mock)", NULL},
    {"stream", 's', "NAME", "which payments (default foreign)", WEIR_BENCH_STREAMS},
    {"payments", 'p', "N", "how many (default 100000; quick: 500)", NULL},
    {"schema", 'o', "FILE", "write their schema there, for `weir serve --schema FILE --kafka HOST:PORT`", NULL},
    {"quick", 'q', NULL, "least work that still runs", NULL},
    {0},
};

const weir_command weir_bench_produce = {
    .name = "produce",
    .summary = "payments into a topic of a broker, to be measured on",
    .description = "Makes the topic that their schema names, transfers or payments, which must not be there yet, and "
                   "leaves it.",
    .example = "weir bench produce --brokers 127.0.0.1:9092 --schema foreign.yaml",
    .options = options,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_eventlog.c - the partitions of an event log: one reader each, asked in turn. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "consumer.h"

typedef struct consumer_eventlog {
    weir_consumer consumer;
    weir_eventlog *log; /* borrowed */
    weir_eventlog_reader **readers;
    uint32_t partitions, turn;
    weir_record raw[WEIR_CONSUMER_RECORDS_MAX];
    weir_consumer_record records[WEIR_CONSUMER_RECORDS_MAX];
} consumer_eventlog;

/* From the partition after the last one that had something, so that a busy one does not starve the others. */
static weir_err consumer_eventlog_poll(weir_consumer *consumer, const weir_consumer_record **recordsp, size_t *countp,
                                       bool *emptyp) {
    consumer_eventlog *c = (consumer_eventlog *)consumer;
    *recordsp = c->records;
    *countp = 0;
    for (uint32_t tried = 0; *countp == 0 && tried < c->partitions; tried++) {
        uint32_t partition = c->turn;
        c->turn = (c->turn + 1) % c->partitions;
        weir_err err = weir_eventlog_reader_next(c->readers[partition], c->raw, WEIR_CONSUMER_RECORDS_MAX, countp);
        if (err) return err;
        WEIR_ASSERT(*countp <= WEIR_CONSUMER_RECORDS_MAX);
        for (size_t i = 0; i < *countp; i++) {
            const weir_record *r = &c->raw[i];
            c->records[i] = (weir_consumer_record){.partition = partition,
                                                   .offset = r->offset,
                                                   .time_us = r->time_us,
                                                   .key = r->key,
                                                   .key_length = r->key_length,
                                                   .value = r->value,
                                                   .value_length = r->value_length};
        }
    }
    *emptyp = *countp == 0;
    return WEIR_OK;
}

static uint64_t consumer_eventlog_end(weir_consumer *consumer, uint32_t partition) {
    weir_eventlog_partition_stats stats;
    weir_err err = weir_eventlog_stats_get(((consumer_eventlog *)consumer)->log, partition, &stats);
    return err ? 0 : stats.offset_durable;
}

static void consumer_eventlog_close(weir_consumer *consumer) {
    consumer_eventlog *c = (consumer_eventlog *)consumer;
    for (uint32_t i = 0; c->readers && i < c->partitions; i++)
        weir_eventlog_reader_close(c->readers[i]);
    weir_free(c->readers);
    weir_free(c);
}

weir_err weir_consumer_eventlog_open(weir_eventlog *log, weir_consumer_start_at start_at, void *context,
                                     weir_consumer **consumerp) {
    static const weir_consumer_ops ops = {
        .poll = consumer_eventlog_poll, .end = consumer_eventlog_end, .close = consumer_eventlog_close};
    *consumerp = NULL;
    consumer_eventlog *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("while reading the event log");
    c->consumer.ops = &ops;
    c->log = log;
    c->partitions = weir_eventlog_partitions(log);
    c->readers = weir_calloc(c->partitions, sizeof(weir_eventlog_reader *));
    weir_err err = c->readers ? WEIR_OK : WEIR_NOMEM("while reading the event log");
    for (uint32_t i = 0; !err && i < c->partitions; i++) {
        weir_eventlog_partition_stats stats;
        weir_consumer_start start = {0};
        err = weir_eventlog_stats_get(log, i, &stats);
        if (!err) err = start_at(context, i, stats.offset_begin, &start);
        if (!err) err = weir_eventlog_reader_open(log, i, start.offset, &c->readers[i]);
    }
    if (err) {
        consumer_eventlog_close(&c->consumer);
        return err;
    }
    *consumerp = &c->consumer;
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the records of one partition become one batch a shard.
 *
 *   record ──map──► mutations ──claim──► those that are needed ──by vertex──► batches ──full, or no more──► submit
 *                └── refused ──► letter                                        letters synced before ──┘
 *
 * What is submitted at once covers a span of offsets, good records and bad. All memory is kept from span to span. A
 * span ends when a batch has BATCH_BYTES: what waits in a shard's queue is so many times that, and no more.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "pipeline_private.h"

#define BATCH_BYTES (256u << 10)

struct weir_source_run {
    weir_worker *worker;
    weir_mapper *mapper;
    uint32_t shards;
    weir_buf *batches;  /* one a shard                */
    uint32_t *in_batch; /* mutations in each of them  */
    weir_buf scratch;   /* header of a letter         */
    weir_chosen chosen[WEIR_MAP_MUTATIONS_MAX];
    /* of the span in hand */
    weir_source_partition *part;
    uint64_t begin, next;
    uint64_t records, bytes, mutations, letters, repeated, tombstones;
    int64_t latest_us; /* no event may be later; asked for once a poll */
    int64_t event_time_us;
    bool full;
};

weir_err weir_source_run_open(weir_worker *worker, weir_source_run **runp) {
    *runp = NULL;
    weir_source_run *run = weir_calloc(1, sizeof *run);
    if (!run) return WEIR_NOMEM("while mapping events");
    run->worker = worker;
    run->shards = weir_graph_shards(worker->pipeline->graph);
    run->batches = weir_calloc(run->shards, sizeof *run->batches);
    run->in_batch = weir_calloc(run->shards, sizeof *run->in_batch);
    weir_err err = run->batches && run->in_batch ? WEIR_OK : WEIR_NOMEM("for %u batches", run->shards);
    const weir_graph *graph = worker->pipeline->graph;
    if (!err)
        err = weir_mapper_open(weir_graph_schema(graph), worker->from.source, weir_graph_id_key(graph), &run->mapper);
    if (err) {
        weir_source_run_close(run);
        return err;
    }
    *runp = run;
    return WEIR_OK;
}

void weir_source_run_close(weir_source_run *run) {
    if (!run) return;
    for (uint32_t i = 0; run->batches && i < run->shards; i++)
        weir_buf_free(&run->batches[i]);
    weir_buf_free(&run->scratch);
    weir_mapper_close(run->mapper);
    weir_free(run->batches);
    weir_free(run->in_batch);
    weir_free(run);
}

/* --- a record that is refused ----------------------------------------------------------------------------------- */

static weir_err source_run_set_aside(weir_source_run *run, const weir_consumer_record *record, weir_err why) {
    weir_worker *worker = run->worker;
    char reason[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(why, reason, sizeof reason);
    WEIR_LOG(WARN, "ingest.dead_letter", "a message was set aside; see weir ingest dlq list",
             WEIR_TEXT("source", worker->schema_source->name), WEIR_U64("partition", record->partition),
             WEIR_U64("offset", record->offset));
    const weir_dead_letter letter = {
        .source = worker->schema_source->name,
        .source_length = strlen(worker->schema_source->name),
        .topic = worker->schema_source->topic,
        .topic_length = strlen(worker->schema_source->topic),
        .stream = worker->from.stream == WEIR_PIPELINE_KAFKA  ? WEIR_DEAD_LETTER_KAFKA
                  : worker->from.stream == WEIR_PIPELINE_FILE ? WEIR_DEAD_LETTER_FILE
                                                              : WEIR_DEAD_LETTER_EVENTLOG,
        .reason = reason,
        .reason_length = strlen(reason),
        .identity = worker->identity,
        .offset = record->offset,
        .partition = record->partition,
        .cut = record->cut > 0,
        .time_us = record->time_us,
        .key = record->key,
        .key_length = record->key_length,
        .bytes = record->value,
        .length = record->value_length,
        .value_length = record->value_length + record->cut,
    };
    run->letters++;
    weir_err err;
    do
        err = weir_letters_add(worker->pipeline->letters, worker->graph_source, &letter, &run->scratch);
    while (weir_worker_waits(worker, err));
    return weir_err_prefix(err, "the dead letter of source '%s', partition %u, offset %llu", letter.source,
                           letter.partition, (unsigned long long)letter.offset);
}

/* --- an event --------------------------------------------------------------------------------------------------- */

static bool source_run_claim(void *graph, const weir_mutation *put) {
    return weir_graph_name_claim(graph, put);
}

static void source_run_add(weir_source_run *run, uint32_t shard, const weir_mutation *m) {
    WEIR_ASSERT(shard < run->shards && m->offset >= run->begin);
    weir_batch_add(&run->batches[shard], m, run->begin);
    run->in_batch[shard]++;
    if (run->batches[shard].length >= BATCH_BYTES) run->full = true;
}

/* Before names are claimed and counted as carried: nothing of the event can fail after this. */
static weir_err source_run_reserve(weir_source_run *run, const weir_mapped *event) {
    size_t bytes = WEIR_MUTATION_HEADER_BYTES; /* of the note */
    for (size_t i = 0; i < event->count; i++) {
        const weir_mutation *m = &event->mutations[i];
        bytes += WEIR_MUTATION_HEADER_BYTES + m->row_length + m->key_length;
    }
    for (uint32_t i = 0; i < run->shards; i++) {
        if (weir_buf_reserve(&run->batches[i], bytes)) continue;
        run->batches[i].failed = WEIR_CODE_OK; /* what is in it stays */
        return WEIR_NOMEM("for a batch of %zu bytes", run->batches[i].length + bytes);
    }
    return WEIR_OK;
}

/* *whyp: why it is refused; success when it is not. */
static weir_err source_run_take_event(weir_source_run *run, const weir_mapped *event, uint64_t offset, weir_err *whyp) {
    weir_graph *graph = run->worker->pipeline->graph;
    weir_repeats *repeats = run->part->repeats;
    weir_err err;
    if (event->event_id) {
        uint64_t first;
        weir_repeat repeat = weir_repeats_ask(repeats, event->event, event->content, offset, &first);
        if (repeat == WEIR_REPEAT_SAME) run->repeated++; /* GRAPH-S4: it would change nothing */
        if (repeat == WEIR_REPEAT_OTHER) {
            weir_metric_add(WEIR_METRIC_INGEST_CONFLICTS, 1);
            *whyp = WEIR_ERR(WEIR_EDATA,
                             "the event at offset %llu has the same id and other content; the first event of an id "
                             "stands: give this one an id of its own",
                             (unsigned long long)first);
        }
        if (repeat != WEIR_REPEAT_FIRST) return WEIR_OK;
    }
    do
        err = source_run_reserve(run, event);
    while (weir_worker_waits(run->worker, err));
    if (err) return err;
    do
        err = event->event_id ? weir_repeats_add(repeats, event->event, event->content, offset) : WEIR_OK;
    while (weir_worker_waits(run->worker, err));
    if (err) return err;

    /* Nothing of it can fail any more: names are claimed, and each mutation goes to its shard. */
    for (size_t i = 0; i < event->count; i++)
        if (event->mutations[i].kind == WEIR_PUT_VERTEX) weir_graph_name_ahead(graph, event->mutations[i].vertex);
    size_t chosen = weir_choose(event, source_run_claim, graph, run->chosen);
    WEIR_ASSERT(chosen <= event->count);
    for (size_t i = 0; i < chosen; i++) {
        const weir_mutation m = weir_chosen_mutation(event, run->chosen[i]);
        if (m.kind != WEIR_DELETE_VERTEX) {
            source_run_add(run, weir_shard_of(m.vertex, run->shards), &m);
            continue;
        }
        for (uint32_t shard = 0; shard < run->shards; shard++)
            source_run_add(run, shard, &m); /* any may hold an edge to it */
    }
    run->mutations += chosen;
    if (event->time_us > run->event_time_us) run->event_time_us = event->time_us;
    if (!event->event_id) return WEIR_OK;
    const weir_mutation note = weir_event_note_mutation(run->worker, run->part->partition, event, offset);
    source_run_add(run, weir_shard_of(note.vertex, run->shards), &note);
    return WEIR_OK;
}

/* Kafka's mark of a deleted key: what it means is the schema's to say, and a mark that means nothing is not set aside.
 * Its time is the record's, which its producer says. */
static weir_err source_run_map_tombstone(weir_source_run *run, const weir_consumer_record *record, weir_mapped *event) {
    bool timed = record->time_us != WEIR_KAFKA_NO_TIME;
    weir_err err = weir_mapper_tombstone(run->mapper, record->partition, record->offset, record->time_us,
                                         timed ? record->key : NULL, record->key_length, event);
    if (!err && event->count == 0) run->tombstones++;
    if (err || event->count == 0 || record->time_us <= run->latest_us) return err;
    weir_metric_add(WEIR_METRIC_INGEST_FUTURE, 1);
    return WEIR_ERR(WEIR_EDATA, "the record's time is further in the future than ingest.future_max allows; check the "
                                "producer's clock");
}

/* WEIR_EDATA: the record is to be set aside. */
static weir_err source_run_map(weir_source_run *run, const weir_consumer_record *record, weir_mapped *event) {
    weir_worker *worker = run->worker;
    const void *value = record->value ? record->value : "";
    if (record->cut > 0) return WEIR_ERR(WEIR_EDATA, "the line is longer than a message may be");
    if (!record->value && worker->from.stream == WEIR_PIPELINE_KAFKA)
        return source_run_map_tombstone(run, record, event);
    weir_err err;
    do
        err = weir_mapper_map(run->mapper, record->partition, record->offset, value, record->value_length, event);
    while (weir_err_is(err, WEIR_ENOMEM) && weir_worker_waits(worker, err));
    if (!err || weir_err_is(err, WEIR_EDATA)) weir_worker_waits(worker, WEIR_OK);
    if (err) return err;
    /* Whoever was told that the log has an event must not find it refused later because a clock went back: in our own
     * log a record bears the time at which it was taken. Records of other sources bear what their producers say. */
    int64_t latest_us = run->latest_us;
    if (event->time_us > latest_us && worker->from.stream == WEIR_PIPELINE_EVENTLOG)
        latest_us = weir_graph_latest(worker->pipeline->graph, record->time_us);
    err = weir_mapper_check_time(run->mapper, latest_us);
    if (err) weir_metric_add(WEIR_METRIC_INGEST_FUTURE, 1);
    return err;
}

/* A record is passed over, taken or set aside. */
static weir_err source_run_take_record(weir_source_run *run, const weir_consumer_record *record) {
    weir_source_partition *part = run->part;
    weir_mapped event;
    WEIR_ASSERT(record->partition == part->partition);
    run->records++;
    run->bytes += record->value_length;
    if (record->offset < part->had) return WEIR_OK; // PIPELINE-P2, P3: read again only to compare it
    weir_letters_origin letter = weir_letters_next(&part->known, &part->known_count, record->offset);
    if (letter == WEIR_LETTERS_OURS) return WEIR_OK; // PIPELINE-P2
    weir_err why = source_run_map(run, record, &event), err = WEIR_OK;
    if (why && !weir_err_is(why, WEIR_EDATA)) return why;            // PIPELINE-P4
    if (!why && event.count == 0 && !event.event_id) return WEIR_OK; /* it says nothing */
    if (!why) err = source_run_take_event(run, &event, record->offset, &why);
    if (err || !why || letter != WEIR_LETTERS_NONE) return err;
    return source_run_set_aside(run, record, why);
}

/* --- a span ----------------------------------------------------------------------------------------------------- */

static weir_err source_run_begin_span(weir_source_run *run, uint64_t begin) {
    run->begin = run->next = begin;
    run->records = run->bytes = run->mutations = run->letters = run->repeated = run->tombstones = 0;
    run->event_time_us = INT64_MIN;
    run->full = false;
    weir_err err;
    do {
        err = WEIR_OK;
        for (uint32_t i = 0; !err && i < run->shards; i++) {
            weir_batch_begin(&run->batches[i]);
            err = weir_buf_err(&run->batches[i]);
            run->in_batch[i] = 0;
        }
    } while (weir_worker_waits(run->worker, err));
    return err;
}

static weir_err source_run_hand_over(weir_source_run *run) {
    weir_worker *worker = run->worker;
    const weir_batch_span span = {worker->graph_source, run->part->partition, run->begin, run->next};
    weir_err err = WEIR_OK;
    WEIR_ASSERT(run->begin == run->part->next && run->begin <= run->next); // PIPELINE-P1
    if (run->begin == run->next) return WEIR_OK;
    do
        err = run->letters ? weir_letters_sync(worker->pipeline->letters) : WEIR_OK; // PIPELINE-P3
    while (weir_worker_waits(worker, err));
    weir_kill_point("pipeline.letters_synced");
    for (uint32_t i = 0; !err && i < run->shards; i++) {
        weir_batch_end(&run->batches[i], &span, run->in_batch[i]);
        err = weir_buf_err(&run->batches[i]);
    }
    if (err) return err;
    /* Again and again the same batches: a shard that has its own already passes over it (GRAPH-S4). */
    do
        err = weir_graph_submit(worker->pipeline->graph, run->batches);
    while ((!err || weir_err_is(err, WEIR_ENOMEM)) && weir_worker_waits(worker, err));
    weir_kill_point("pipeline.submitted");
    if (err) return err;
    run->part->next = run->next;
    weir_repeats_forget(run->part->repeats, run->next);
    return WEIR_OK;
}

/* What others may look at, once the span is handed over. */
static void source_run_account(weir_source_run *run) {
    weir_worker *worker = run->worker;
    weir_mutex_lock(&worker->mutex);
    run->part->read = run->next;
    if (run->part->end < run->next) run->part->end = run->next;
    if (run->event_time_us > run->part->event_time_us) run->part->event_time_us = run->event_time_us;
    worker->records += run->records;
    worker->bytes += run->bytes;
    worker->mutations += run->mutations;
    worker->dead_letters += run->letters;
    worker->tombstones += run->tombstones;
    weir_mutex_unlock(&worker->mutex);
    weir_metric_add(WEIR_METRIC_INGEST_RECORDS, run->records);
    weir_metric_add(WEIR_METRIC_INGEST_BYTES, run->bytes);
    weir_metric_add(WEIR_METRIC_INGEST_MUTATIONS, run->mutations);
    weir_metric_add(WEIR_METRIC_INGEST_REPEATED, run->repeated);
    weir_metric_add(WEIR_METRIC_INGEST_TOMBSTONES, run->tombstones);
}

weir_err weir_source_run_records(weir_source_run *run, weir_source_partition *part, const weir_consumer_record *records,
                                 const uint32_t *indices, size_t count) {
    WEIR_ON_ROLE(INGEST);
    const weir_consumer_ops *ops = run->worker->consumer->ops;
    run->part = part;
    run->latest_us = weir_graph_latest(run->worker->pipeline->graph, INT64_MIN);
    weir_err err = source_run_begin_span(run, part->next);
    for (size_t i = 0; !err && i < count; i++) {
        const weir_consumer_record *record = &records[indices[i]];
        WEIR_ASSERT(record->offset >= run->next); /* consumers go forwards */
        err = source_run_take_record(run, record);
        run->next = record->offset + 1;
        if (err || (!run->full && i + 1 < count)) continue;
        err = source_run_hand_over(run);
        if (err) break;
        source_run_account(run);
        part->newest = (weir_mark){part->next, ops->check ? ops->check(record) : 0};
        if (ops->check) weir_marks_add(&part->marks, part->newest.offset, part->newest.check);
        err = source_run_begin_span(run, run->next);
    }
    return err;
}

weir_err weir_source_run_clear(weir_source_run *run, weir_source_partition *part, uint64_t clear) {
    WEIR_ON_ROLE(INGEST);
    WEIR_ASSERT(clear > part->next);
    bool quiet = part->quiet_at == part->next;
    run->part = part;
    weir_err err = source_run_begin_span(run, part->next);
    run->next = clear;
    if (!err) err = source_run_hand_over(run);
    if (err) return err;
    if (quiet) part->quiet_at = part->next; /* it brought no event */
    /* Said once the graph has it in hand: a seal that is asked for after that holds it. */
    weir_mutex_lock(&run->worker->mutex);
    part->clear = run->next;
    if (part->end < run->next) part->end = run->next;
    weir_mutex_unlock(&run->worker->mutex);
    return WEIR_OK;
}

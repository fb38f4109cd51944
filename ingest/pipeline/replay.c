/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - what a shard is made of, read from the logs once more, while the pipeline goes on.
 *
 * Nothing is decided anew: an offset below the sealed one is a dead letter of this store, or its event was taken. So
 * letters are passed over, and everything else is mapped without asking what time it is: the clock that let it in may
 * have been another. A letter of an earlier store says nothing of this one, which has not written it again if it
 * refused the event too: there the note that an event leaves is asked for. Of the events of one id the first stands, as
 * ever; which one that is depends on all before it, so reading begins where the store did, or where the checkpoint ends
 * that the repair begins with, whose notes tell; and what a later call of run must know of the ids is kept. What a
 * message says under today's schema is what counts; if that is less than it was, the repair finds out (GRAPH-R1).
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "pipeline_private.h"

#define BUFFER_BYTES (8u << 20)           /* fetched ahead of a topic, beside the pipeline's own reader */
#define SILENT_US    (30 * WEIR_US_PER_S) /* a broker that brings nothing for so long is away */
#define NOTE_BYTES   (64u << 10)

/* A source partition, and what is wanted of it. */
typedef struct replay_part {
    uint32_t source, partition;
    uint64_t from, until; /* nothing is wanted: they are the same */
    uint64_t next;        /* where its reading is, at most until */
    bool begun;
    const weir_letters_place *letters; /* borrowed; those not passed yet */
    size_t letter_count;
    weir_repeats *repeats; /* of all that was read */
} replay_part;

struct weir_replay {
    weir_pipeline *pipeline;
    weir_graph_repair *repair;
    replay_part *parts; /* of all sources, rising by source, then partition */
    size_t part_count, part_capacity;
    weir_letters_place *letters;
    size_t letter_count;
    uint64_t read, wanted;
    weir_replay_counted counted;
    void *context;
    /* of the source in hand */
    weir_worker *worker;
    weir_mapper *mapper;
    weir_chosen chosen[WEIR_MAP_MUTATIONS_MAX];
    weir_mutation mutations[WEIR_MAP_MUTATIONS_MAX + 1];
};

/* --- what is wanted --------------------------------------------------------------------------------------------- */

/* The first that is not below. */
static size_t replay_place(const weir_replay *r, uint32_t source, uint32_t partition) {
    size_t low = 0, high = r->part_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const replay_part *p = &r->parts[middle];
        if (p->source < source || (p->source == source && p->partition < partition))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static replay_part *replay_find(const weir_replay *r, uint32_t source, uint32_t partition) {
    size_t at = replay_place(r, source, partition);
    bool found = at < r->part_count && r->parts[at].source == source && r->parts[at].partition == partition;
    return found ? &r->parts[at] : NULL;
}

static weir_err replay_want(void *context, uint32_t source, uint32_t partition, uint64_t covered, uint64_t sealed) {
    weir_replay *r = context;
    replay_part *part = replay_find(r, source, partition);
    WEIR_ASSERT(covered <= sealed);
    if (!part && r->part_count == r->part_capacity) {
        size_t capacity = r->part_capacity ? r->part_capacity * 2 : 16;
        replay_part *grown = weir_realloc_array(r->parts, capacity, sizeof *grown);
        if (!grown) return WEIR_NOMEM("while replaying %zu partitions", capacity);
        r->parts = grown;
        r->part_capacity = capacity;
    }
    if (!part) {
        size_t at = replay_place(r, source, partition);
        part = &r->parts[at];
        memmove(part + 1, part, (r->part_count++ - at) * sizeof *part);
        *part = (replay_part){.source = source, .partition = partition};
    }
    part->from = covered;
    part->until = sealed;
    return WEIR_OK;
}

static weir_err replay_find_worker(const weir_replay *r, uint32_t source, weir_worker **workerp) {
    for (size_t i = 0; i < r->pipeline->worker_count; i++) {
        weir_worker *worker = *workerp = &r->pipeline->workers[i];
        if (worker->graph_source != source || worker->from.stream == WEIR_PIPELINE_FILE) continue;
        /* One that has failed may read another log than the one that the store was made of. */
        weir_mutex_lock(&worker->mutex);
        weir_err err = worker->status == WEIR_PIPELINE_FAILED ? weir_err_kept_get(&worker->err) : WEIR_OK;
        weir_mutex_unlock(&worker->mutex);
        return weir_err_prefix(err, "source '%s' has failed", worker->schema_source->name);
    }
    return WEIR_ERR(WEIR_ENOTFOUND,
                    "it was also made from files, or from a source that is not read now: no log has that any more. "
                    "Bring the damaged file back from a copy, or restore a checkpoint");
}

/* Of the source in hand; NULL: nothing is wanted of it. */
static replay_part *replay_part_of(const weir_replay *r, uint32_t partition) {
    replay_part *part = replay_find(r, r->worker->graph_source, partition);
    return part && part->from < part->until ? part : NULL;
}

/* --- where to begin --------------------------------------------------------------------------------------------- */

typedef struct replay_notes {
    weir_event_note *notes; /* the newest first */
    size_t count, capacity;
} replay_notes;

static weir_err replay_take_note(void *context, const weir_event_note *note) {
    replay_notes *all = context;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? all->capacity * 2 : 1024;
        weir_event_note *grown = weir_realloc_array(all->notes, capacity, sizeof *grown);
        if (!grown) return WEIR_NOMEM("for the notes of %zu events", capacity);
        all->notes = grown;
        all->capacity = capacity;
    }
    all->notes[all->count++] = *note;
    return WEIR_OK;
}

/* Which ids were first before `from`, where a checkpoint ends: it has the notes itself, or they are of another shard.
 * WEIR_ECORRUPT: that one is damaged, too. */
static weir_err replay_load_ids(const weir_replay *r, replay_part *part) {
    weir_graph *graph = r->pipeline->graph;
    const uint64_t window = weir_graph_event_window(graph);
    const weir_mutation note = {.kind = WEIR_NOTE_EVENT,
                                .vertex = weir_graph_source_vertex(graph, part->source, part->partition)};
    replay_notes all = {0};
    if (!weir_graph_repair_wants(r->repair, &note))
        return weir_repeats_load(part->repeats, graph, part->source, part->partition, part->from);
    weir_err err = weir_graph_repair_notes(r->repair, note.vertex, part->from > window ? part->from - window : 0,
                                           replay_take_note, &all);
    while (!err && all.count--)
        err = weir_repeats_add(part->repeats, all.notes[all.count].event, all.notes[all.count].content,
                               all.notes[all.count].offset);
    weir_free(all.notes);
    return err;
}

/* What retention had removed before the store was begun the store has never had. */
static weir_err replay_start(void *context, uint32_t partition, uint64_t begin, weir_consumer_start *startp) {
    const weir_replay *r = context;
    const weir_worker *worker = r->worker;
    replay_part *part = replay_part_of(r, partition);
    weir_position position = {0};
    *startp = (weir_consumer_start){.known = UINT64_MAX};
    if (!part) { /* others are read along */
        uint64_t sealed = weir_graph_offset_sealed(worker->pipeline->graph, worker->graph_source, partition);
        startp->offset = sealed > begin ? sealed : begin;
        return WEIR_OK;
    }
    weir_positions_get(worker->pipeline->positions, worker->graph_source, partition, &position);
    weir_err err =
        part->repeats ? WEIR_OK : weir_repeats_open(weir_graph_event_window(worker->pipeline->graph), &part->repeats);
    if (err) return err;
    uint64_t first = part->begun ? part->from : position.begin;
    if (!part->begun && part->from > first) {
        err = replay_load_ids(r, part);
        if (err && !weir_err_is(err, WEIR_ECORRUPT)) return err;
        if (err) weir_repeats_undo(part->repeats, 0); /* the log tells, if it has its beginning */
        if (!err) first = part->from;
    }
    if (begin > first)
        return WEIR_ERR(WEIR_ENOTFOUND,
                        "source '%s', partition %u, begins at offset %llu now, and offsets from %llu on are wanted: "
                        "retention has removed them. Restore a checkpoint",
                        worker->schema_source->name, partition, (unsigned long long)begin, (unsigned long long)first);
    part->begun = true;
    startp->offset = part->next = first;
    /* Its letters: a row of those that are sorted by place. */
    size_t at = 0;
    while (at < r->letter_count &&
           (r->letters[at].source != part->source || r->letters[at].partition != part->partition))
        at++;
    part->letters = r->letters + at;
    for (part->letter_count = 0; at < r->letter_count; at++, part->letter_count++)
        if (r->letters[at].source != part->source || r->letters[at].partition != part->partition) break;
    return WEIR_OK;
}

static bool replay_stops(void *context) {
    return weir_pipeline_stopping(((weir_replay *)context)->pipeline);
}

/* --- an event --------------------------------------------------------------------------------------------------- */

/* Names of other shards are not this one's to carry. */
static bool replay_claim(void *context, const weir_mutation *put) {
    weir_replay *r = context;
    return weir_graph_repair_wants(r->repair, put) && weir_graph_repair_claim(r->repair, put->vertex);
}

/* Of what was a letter of an earlier store, and could be taken. Where the note cannot be read, or there is none because
 * events have no ids, or there may be none any more, what decides is whether it would be taken now. */
static weir_err replay_was_taken(const weir_replay *r, const weir_consumer_record *record, const weir_mapped *event,
                                 bool *takenp) {
    weir_graph *graph = r->pipeline->graph;
    const weir_event_note *notes;
    weir_arena *arena = NULL;
    uint32_t source = r->worker->graph_source, partition = record->partition, count;
    int64_t arrived_us = r->worker->from.stream == WEIR_PIPELINE_EVENTLOG ? record->time_us : INT64_MIN;
    *takenp = event->time_us <= weir_graph_latest(graph, arrived_us);
    if (!event->event_id) return WEIR_OK;
    weir_err err = weir_arena_open(NOTE_BYTES, &arena);
    if (!err)
        err = weir_graph_events(graph, source, partition, record->offset, record->offset + 1, arena, &notes, &count);
    /* A trim keeps notes for as long as ids are compared with them. */
    uint32_t shard = weir_shard_of(weir_graph_source_vertex(graph, source, partition), weir_graph_shards(graph));
    bool maybe_gone =
        weir_graph_whole_from_us(graph, shard) != INT64_MIN &&
        record->offset + weir_graph_event_window(graph) < weir_graph_offset_sealed(graph, source, partition);
    if (!err && (count || !maybe_gone)) *takenp = count > 0;
    weir_arena_close(arena);
    return weir_err_is(err, WEIR_ECORRUPT) ? WEIR_OK : err;
}

static weir_err replay_event(weir_replay *r, const replay_part *part, const weir_mapped *event, uint64_t offset) {
    size_t chosen = weir_choose(event, replay_claim, r, r->chosen), count = 0;
    for (size_t i = 0; i < chosen; i++) {
        const weir_mutation m = weir_chosen_mutation(event, r->chosen[i]);
        if (weir_graph_repair_wants(r->repair, &m)) r->mutations[count++] = m;
    }
    WEIR_ASSERT(count <= WEIR_MAP_MUTATIONS_MAX);
    const weir_mutation note = weir_event_note_mutation(r->worker, part->partition, event, offset);
    if (event->event_id && weir_graph_repair_wants(r->repair, &note)) r->mutations[count++] = note;
    return count ? weir_graph_repair_add(r->repair, r->mutations, count) : WEIR_OK;
}

/* Whether it stands: it can be mapped, and is the first of its id. */
static weir_err replay_stands(weir_replay *r, replay_part *part, const weir_consumer_record *record, weir_mapped *event,
                              bool *standsp) {
    weir_letters_origin letter = weir_letters_next(&part->letters, &part->letter_count, record->offset);
    uint64_t first;
    *standsp = false;
    if (letter == WEIR_LETTERS_OURS) return WEIR_OK; // PIPELINE-P2
    bool timed = record->time_us != WEIR_KAFKA_NO_TIME;
    weir_err err = record->value || r->worker->from.stream != WEIR_PIPELINE_KAFKA
                       ? weir_mapper_map(r->mapper, record->partition, record->offset,
                                         record->value ? record->value : "", record->value_length, event)
                       : weir_mapper_tombstone(r->mapper, record->partition, record->offset, record->time_us,
                                               timed ? record->key : NULL, record->key_length, event);
    if (weir_err_is(err, WEIR_EDATA)) return WEIR_OK; /* a letter of an earlier store, mapped anew, and refused again */
    if (err || (event->count == 0 && !event->event_id)) return err;
    *standsp = true;
    if (letter == WEIR_LETTERS_EARLIER) err = replay_was_taken(r, record, event, standsp);
    if (err || !*standsp || !event->event_id) return err;
    *standsp =
        weir_repeats_ask(part->repeats, event->event, event->content, record->offset, &first) == WEIR_REPEAT_FIRST;
    return *standsp ? weir_repeats_add(part->repeats, event->event, event->content, record->offset) : WEIR_OK;
}

static weir_err replay_take_record(weir_replay *r, const weir_consumer_record *record) {
    replay_part *part = replay_part_of(r, record->partition);
    weir_mapped event;
    bool stands;
    if (!part || part->next >= part->until) return WEIR_OK;
    bool wanted = record->offset < part->until;
    part->next = wanted ? record->offset + 1 : part->until;
    if (!wanted) return WEIR_OK;
    WEIR_ASSERT(part->begun && part->next <= part->until);
    r->read += record->offset >= part->from;
    weir_err err = replay_stands(r, part, record, &event, &stands);
    return err || !stands || record->offset < part->from ? err : replay_event(r, part, &event, record->offset);
}

/* --- a source --------------------------------------------------------------------------------------------------- */

/* All that is wanted was read. Offsets after the last record of a partition may be of what is not a record. */
static bool replay_is_through(const weir_replay *r, weir_consumer *consumer) {
    bool through = true;
    for (size_t i = 0; i < r->part_count; i++) {
        replay_part *part = &r->parts[i];
        bool done = part->from == part->until || (part->begun && part->next >= part->until);
        if (part->source != r->worker->graph_source || done) continue;
        uint64_t clear = consumer->ops->clear ? consumer->ops->clear(consumer, part->partition) : 0;
        if (part->begun && clear >= part->until) part->next = part->until;
        through = through && part->next >= part->until;
    }
    return through;
}

static weir_err replay_read(weir_replay *r, weir_consumer *consumer) {
    int64_t moved_us = weir_clock_mono_us(weir_clock_system());
    weir_err err = WEIR_OK;
    while (!err && !replay_is_through(r, consumer)) {
        const weir_consumer_record *records;
        size_t count;
        bool empty;
        err = consumer->ops->poll(consumer, &records, &count, &empty);
        for (size_t i = 0; !err && i < count; i++)
            err = replay_take_record(r, &records[i]);
        for (size_t i = 0; i < r->part_count; i++)
            if (r->parts[i].repeats) weir_repeats_forget(r->parts[i].repeats, r->parts[i].next);
        int64_t now_us = weir_clock_mono_us(weir_clock_system());
        if (count) moved_us = now_us;
        if (!err && !r->counted(r->context, r->read, r->wanted)) err = WEIR_ERR(WEIR_ECLOSED, "the pipeline stops");
        if (!err && !count && (now_us - moved_us > SILENT_US || !consumer->ops->clear))
            err =
                WEIR_ERR(WEIR_ETIMEOUT, "source '%s' does not deliver records that were read before; check its brokers",
                         r->worker->schema_source->name);
    }
    return err;
}

static weir_err replay_source(weir_replay *r, weir_worker *worker) {
    const weir_pipeline *pipeline = r->pipeline;
    const weir_kafka_consumer_opts kafka = {.brokers = pipeline->brokers,
                                            .topic = worker->schema_source->topic,
                                            .timeout_us = pipeline->kafka_timeout_us,
                                            .buffer_bytes = BUFFER_BYTES,
                                            .start_at = replay_start,
                                            .stop = replay_stops,
                                            .context = r};
    weir_consumer *consumer = NULL;
    r->worker = worker;
    weir_err err = weir_mapper_open(weir_graph_schema(pipeline->graph), worker->from.source,
                                    weir_graph_id_key(pipeline->graph), &r->mapper);
    if (!err)
        err = worker->from.stream == WEIR_PIPELINE_KAFKA
                  ? weir_consumer_kafka_open(&kafka, &consumer)
                  : weir_consumer_eventlog_open(worker->from.log, replay_start, r, &consumer);
    if (!err) err = replay_read(r, consumer);
    if (consumer) consumer->ops->close(consumer);
    weir_mapper_close(r->mapper);
    r->mapper = NULL;
    return weir_err_prefix(err, "source '%s'", worker->schema_source->name);
}

weir_err weir_replay_open(weir_pipeline *pipeline, weir_graph_repair *repair, weir_replay_counted counted,
                          void *context, weir_replay **replayp) {
    weir_replay *r = *replayp = weir_calloc(1, sizeof *r);
    if (!r) return WEIR_NOMEM("while replaying a log");
    r->pipeline = pipeline;
    r->repair = repair;
    r->counted = counted;
    r->context = context;
    return WEIR_OK;
}

void weir_replay_close(weir_replay *r) {
    if (!r) return;
    for (size_t i = 0; i < r->part_count; i++)
        weir_repeats_close(r->parts[i].repeats);
    weir_free(r->parts);
    weir_free(r);
}

static weir_err replay_sources(weir_replay *r) {
    weir_worker *last = NULL;
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < r->part_count; i++) { /* those of a source stand together */
        weir_worker *worker;
        if (r->parts[i].from == r->parts[i].until) continue;
        err = replay_find_worker(r, r->parts[i].source, &worker);
        if (!err && worker != last) err = replay_source(r, worker);
        last = worker;
    }
    for (size_t i = 0; !err && i < r->part_count; i++) {
        replay_part *part = &r->parts[i];
        err = weir_graph_repair_covered(r->repair, part->source, part->partition, part->until);
        part->from = part->until;
    }
    return err;
}

weir_err weir_replay_run(weir_replay *r) {
    uint64_t born = weir_positions_letters_get(r->pipeline->positions).born;
    weir_err err = weir_graph_repair_missing(r->repair, replay_want, r);
    r->wanted = 0;
    for (size_t i = 0; i < r->part_count; i++)
        r->wanted += r->parts[i].until - r->parts[i].from;
    r->read = 0;
    if (err || !r->wanted) return err;
    /* After it is known what is sealed: the letters of that are in the log (PIPELINE-P3). */
    err = weir_letters_all(r->pipeline->letters, born, weir_pipeline_letter_source, r->pipeline, &r->letters,
                           &r->letter_count);
    if (!err) err = replay_sources(r);
    weir_free(r->letters);
    r->letters = NULL;
    r->letter_count = 0;
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow_reads.c - how long reads take, of what was fed at any time before.
 *
 * A sample of messages is kept while they are made. To read, each is mapped once more: its mutations say which lists
 * and which features it went to. So nothing need be known of a stream, and a vertex is as likely to be read as it is to
 * be paid with. Each step reads another part of the sample: what the step before has read lies in the window cache.
 * Scores are of payments of that part, as of when they came, and of the newest ones, for which a score is asked most.
 * Reads follow each other on one thread, on a store that has nothing else to do.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>

#include "grow_bench.h"

#define EDGES       10u
#define ARENA_BYTES (16u << 20)
#define STEPS       16u /* until what was read is read again */
#define SCORED      4u  /* one payment of each kind is scored for so many that are read */

/* One list of edges, or the features of a vertex, as of a time. */
typedef struct question {
    weir_vertex vertex;
    int64_t before_us;
    uint16_t relation;
    weir_direction direction;
} question;

struct grow_sample {
    weir_rng rng;
    uint32_t reads, scores;   /* messages that a step reads; that it scores, and so many of the newest */
    uint32_t capacity, count; /* messages that are kept     */
    uint32_t *order;          /* of them, any; the next step begins at `next` */
    uint32_t next;
    uint64_t offered;
    weir_buf *messages;
    weir_buf *newest;    /* in a ring                        */
    grow_scorer *scorer; /* borrowed, while a step reads     */
    uint64_t edges;      /* of the trees of what was scored  */
    question *payments;  /* to be scored: of any age         */
    question *newest_payments;
    uint32_t payment_count, newest_count;
    question *lists;    /* one of each message that is read, any of its edges  */
    question *features; /* one of each of them that puts features              */
    question *hub;      /* the hottest list of all, as of each of them         */
    uint32_t list_count, feature_count, hub_count;
    double *took_us;
    weir_arena *arena;
};

weir_err weir_grow_sample_open(uint32_t reads, grow_sample **samplep) {
    grow_sample *s = weir_calloc(1, sizeof *s);
    *samplep = s;
    if (!s) return WEIR_NOMEM("for a sample of payments");
    s->rng = weir_rng_stream(2, 0, 0);
    s->reads = reads;
    s->scores = reads / SCORED;
    s->capacity = (s->reads + s->scores) * STEPS;
    s->messages = weir_calloc(s->capacity, sizeof *s->messages);
    s->order = weir_calloc(s->capacity, sizeof *s->order);
    s->newest = weir_calloc(s->scores, sizeof *s->newest);
    s->payments = weir_calloc(s->scores, sizeof *s->payments);
    s->newest_payments = weir_calloc(s->scores, sizeof *s->newest_payments);
    s->lists = weir_calloc(reads, sizeof *s->lists);
    s->features = weir_calloc(reads, sizeof *s->features);
    s->hub = weir_calloc(reads, sizeof *s->hub);
    s->took_us = weir_calloc(reads, sizeof *s->took_us);
    weir_err err = weir_arena_open(ARENA_BYTES, &s->arena);
    if (!err && !(s->messages && s->newest && s->order && s->payments && s->newest_payments && s->lists &&
                  s->features && s->hub && s->took_us))
        err = WEIR_NOMEM("for a sample of payments");
    for (uint32_t i = 0; !err && i < s->capacity; i++) {
        uint32_t other = (uint32_t)weir_rng_below(&s->rng, i + 1);
        s->order[i] = s->order[other];
        s->order[other] = i;
    }
    return err;
}

void weir_grow_sample_close(grow_sample *sample) {
    if (!sample) return;
    for (uint32_t i = 0; sample->messages && i < sample->count; i++)
        weir_buf_free(&sample->messages[i]);
    for (uint32_t i = 0; sample->newest && i < sample->scores; i++)
        weir_buf_free(&sample->newest[i]);
    weir_free(sample->messages);
    weir_free(sample->newest);
    weir_free(sample->payments);
    weir_free(sample->newest_payments);
    weir_free(sample->order);
    weir_free(sample->lists);
    weir_free(sample->features);
    weir_free(sample->hub);
    weir_free(sample->took_us);
    weir_arena_close(sample->arena);
    weir_free(sample);
}

void weir_grow_sample_offer(void *sample, const weir_record *record) {
    grow_sample *s = sample;
    uint64_t at = s->offered++;
    weir_buf *newest = &s->newest[at % s->scores];
    weir_buf_clear(newest);
    weir_buf_append(newest, record->value, record->value_length);
    if (at >= s->capacity) at = weir_rng_below(&s->rng, s->offered);
    if (at >= s->capacity) return;
    if (s->count < s->capacity) s->count++;
    weir_buf_clear(&s->messages[at]);
    weir_buf_append(&s->messages[at], record->value, record->value_length);
}

/* --- what to read ------------------------------------------------------------------------------------------------- */

static int compare_lists(const void *a, const void *b) {
    const question *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    if (x->relation != y->relation) return x->relation < y->relation ? -1 : 1;
    return (int)x->direction - (int)y->direction;
}

/* All of its edges, to look for the hottest; of one that is read any edge, its first features, and its time. */
static weir_err take_message(grow_sample *s, const weir_mapped *m, bool read, weir_buf *edges) {
    uint32_t seen = 0;
    bool has_features = false;
    for (size_t i = 0; i < m->count; i++) {
        const weir_mutation *mutation = &m->mutations[i];
        question q = {mutation->vertex, WEIR_BEFORE_ALL, mutation->type, mutation->direction};
        if (mutation->kind == WEIR_PUT_EDGE) {
            weir_buf_append(edges, &q, sizeof q);
            if (read && weir_rng_below(&s->rng, ++seen) == 0) s->lists[s->list_count] = q;
        } else if (read && mutation->kind == WEIR_PUT_VERTEX && mutation->row_length && !has_features) {
            has_features = true;
            s->features[s->feature_count++] = q;
        }
    }
    s->list_count += seen > 0;
    if (read) s->hub[s->hub_count++].before_us = m->time_us;
    return weir_buf_err(edges);
}

static question hottest(weir_buf *edges) {
    question *all = (question *)(void *)edges->bytes;
    size_t count = edges->length / sizeof *all, best = 0, most = 0;
    qsort(all, count, sizeof *all, compare_lists);
    for (size_t i = 0, run = 0; i < count; i++) {
        run = i > 0 && compare_lists(&all[i - 1], &all[i]) == 0 ? run + 1 : 1;
        if (run <= most) continue;
        most = run;
        best = i;
    }
    return all[best];
}

/* The payment that a message puts. */
static void take_payment(const grow_sample *s, const weir_mapped *m, question *to, uint32_t *countp) {
    for (size_t i = 0; i < m->count; i++) {
        const weir_mutation *mutation = &m->mutations[i];
        if (mutation->kind != WEIR_PUT_VERTEX || mutation->type != weir_grow_scorer_target(s->scorer)) continue;
        to[(*countp)++] = (question){.vertex = mutation->vertex};
        return;
    }
}

static weir_err choose(grow_sample *s, weir_graph *graph, uint32_t source) {
    weir_mapper *mapper;
    weir_buf edges = {0};
    uint32_t taken = 0;
    s->list_count = s->feature_count = s->hub_count = s->payment_count = s->newest_count = 0;
    weir_err err = weir_mapper_open(weir_graph_schema(graph), source, weir_graph_id_key(graph), &mapper);
    if (err) return err;
    for (uint32_t i = 0; !err && i < s->capacity; i++) {
        const weir_buf *message = &s->messages[s->order[(s->next + i) % s->capacity]];
        weir_mapped mapped = {0};
        if (!message->length) continue;
        err = weir_buf_err(message);
        if (!err) err = weir_mapper_map(mapper, 0, 0, message->bytes, message->length, &mapped);
        if (!err) err = take_message(s, &mapped, taken < s->reads, &edges);
        if (!err && taken >= s->reads && taken < s->reads + s->scores)
            take_payment(s, &mapped, s->payments, &s->payment_count);
        taken++;
    }
    for (uint32_t i = 0; !err && i < s->scores; i++) {
        weir_mapped mapped = {0};
        if (!s->newest[i].length) continue;
        err = weir_buf_err(&s->newest[i]);
        if (!err) err = weir_mapper_map(mapper, 0, 0, s->newest[i].bytes, s->newest[i].length, &mapped);
        if (!err) take_payment(s, &mapped, s->newest_payments, &s->newest_count);
    }
    s->next = (s->next + s->reads + s->scores) % s->capacity;
    if (!err && !s->list_count) err = WEIR_ERR(WEIR_EINVAL, "no edge was fed, so there is none to read");
    if (!err) {
        question hub = hottest(&edges);
        for (uint32_t i = 0; i < s->hub_count; i++)
            s->hub[i] = (question){hub.vertex, s->hub[i].before_us, hub.relation, hub.direction};
    }
    weir_mapper_close(mapper);
    weir_buf_free(&edges);
    return err;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static weir_err read_list(grow_sample *s, weir_graph *graph, const question *q, bool *foundp) {
    const weir_edge *edges;
    uint32_t count = 0;
    weir_err err = weir_graph_neighbors(graph, q->vertex, q->relation, q->direction, q->before_us, EDGES, s->arena,
                                        &edges, &count);
    *foundp = count > 0;
    return err;
}

static weir_err read_features(grow_sample *s, weir_graph *graph, const question *q, bool *foundp) {
    weir_row_view view = {0};
    weir_err err = weir_graph_features(graph, q->vertex, q->before_us, s->arena, &view);
    *foundp = view.row != NULL;
    return err;
}

static weir_err read_score(grow_sample *s, weir_graph *graph, const question *q, bool *foundp) {
    (void)graph;
    uint32_t edges = 0;
    weir_err err = weir_grow_scorer_run(s->scorer, q->vertex, s->arena, &edges);
    s->edges += edges;
    *foundp = !err;
    return err;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

grow_latency weir_grow_latency(double *took_us, uint32_t count) {
    qsort(took_us, count, sizeof *took_us, compare_doubles);
    return (grow_latency){took_us[count / 2], took_us[count - 1 - count / 100]};
}

typedef weir_err (*read_one)(grow_sample *s, weir_graph *graph, const question *q, bool *foundp);

static weir_err time_all(grow_sample *s, weir_graph *graph, const question *questions, uint32_t count, read_one read,
                         grow_latency *latencyp) {
    weir_err err = WEIR_OK;
    uint32_t found_count = 0;
    for (uint32_t i = 0; !err && i < count; i++) {
        bool found = false;
        weir_arena_reset(s->arena);
        int64_t begin_ns = weir_clock_mono_ns(weir_clock_system());
        err = read(s, graph, &questions[i], &found);
        s->took_us[i] = (double)(weir_clock_mono_ns(weir_clock_system()) - begin_ns) / 1000;
        found_count += found;
    }
    if (err || !count) return err;
    if (found_count <= count / 2)
        return WEIR_ERR(WEIR_EDATA, "of %u reads of what was fed only %u found something", count, found_count);
    *latencyp = weir_grow_latency(s->took_us, count);
    return WEIR_OK;
}

weir_err weir_grow_sample_read(grow_sample *sample, weir_graph *graph, grow_scorer *scorer, uint32_t source,
                               grow_row *row) {
    grow_sample *s = sample;
    s->scorer = scorer;
    weir_err err = choose(s, graph, source);
    if (!err) err = time_all(s, graph, s->lists, s->list_count, read_list, &row->first);
    if (!err) err = time_all(s, graph, s->lists, s->list_count, read_list, &row->again);
    if (!err) err = time_all(s, graph, s->hub, s->hub_count, read_list, &row->hub);
    if (!err) err = time_all(s, graph, s->features, s->feature_count, read_features, &row->features);
    s->edges = 0;
    if (!err) err = time_all(s, graph, s->newest_payments, s->newest_count, read_score, &row->newest);
    row->newest_edges = s->newest_count ? (double)s->edges / s->newest_count : 0;
    if (!err) err = time_all(s, graph, s->payments, s->payment_count, read_score, &row->scores);
    return err;
}

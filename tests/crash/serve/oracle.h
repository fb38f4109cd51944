/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - what a server must answer, from the client's own book: neither the mapper nor the store has a part in it.
 *
 * A deletion hides what is as old as it is or older, in whatever order they come. Of rows the newest counts that says
 * something; of several at the same time, any. An edge is told by its ends, its time and its feature: ids of events are
 * the store's own.
 */
#ifndef WEIR_CRASH_SERVE_ORACLE_H
#define WEIR_CRASH_SERVE_ORACLE_H

#include <jansson.h>
#include <math.h>
#include <time.h>

#include "book.h"

typedef struct oracle {
    const book *book;
    int64_t gone_us[BOOK_ACCOUNTS]; /* the newest deletion; INT64_MIN: none */
    int64_t back_us[BOOK_ACCOUNTS]; /* the oldest put behind that; INT64_MAX: none */
    int64_t put_us[BOOK_ACCOUNTS];  /* the oldest put of all */
    int64_t lost_us[BOOK_ACCOUNTS][BOOK_CARDS];
} oracle;

typedef struct oracle_edge {
    int64_t time_us;
    unsigned other;
    int rank; /* -1: none */
} oracle_edge;

static inline bool oracle_counts(const book_event *event) {
    return event->acknowledged && !event->broken;
}

static inline void oracle_begin(oracle *o, const book *b) {
    o->book = b;
    for (unsigned a = 0; a < BOOK_ACCOUNTS; a++) {
        o->gone_us[a] = INT64_MIN;
        o->back_us[a] = o->put_us[a] = INT64_MAX;
        for (unsigned c = 0; c < BOOK_CARDS; c++)
            o->lost_us[a][c] = INT64_MIN;
    }
    for (size_t i = 0; i < b->count; i++) {
        const book_event *e = &b->events[i];
        int64_t *last_us = e->gone ? &o->gone_us[e->account] : e->lost ? &o->lost_us[e->account][e->card] : NULL;
        if (oracle_counts(e) && last_us && e->time_us > *last_us) *last_us = e->time_us;
    }
    for (size_t i = 0; i < b->count; i++) {
        const book_event *e = &b->events[i];
        int64_t *back_us = &o->back_us[e->account], *put_us = &o->put_us[e->account];
        if (!oracle_counts(e) || !(e->puts_edge || e->has_age)) continue;
        if (e->time_us < *put_us) *put_us = e->time_us;
        if (e->time_us > o->gone_us[e->account] && e->time_us < *back_us) *back_us = e->time_us;
    }
}

static inline bool oracle_lives(const oracle *o, const book_event *e) {
    return oracle_counts(e) && e->time_us > o->gone_us[e->account];
}

static inline bool oracle_shows(const oracle *o, const book_event *e) {
    return e->puts_edge && oracle_lives(o, e) && e->time_us > o->lost_us[e->account][e->card];
}

/* Whether anything that was put, a vertex or an edge at it, is not deleted. An edge that is deleted was put, too. */
static inline bool oracle_is_known(const oracle *o, bool is_account, unsigned number) {
    for (size_t i = 0; i < o->book->count; i++) {
        const book_event *e = &o->book->events[i];
        bool puts = e->puts_edge || (is_account && e->has_age);
        if (puts && (is_account ? e->account : e->card) == number && oracle_lives(o, e)) return true;
    }
    return false;
}

/* --- edges --------------------------------------------------------------------------------------------------*/

static inline int oracle_order(const void *x, const void *y) {
    const oracle_edge *a = x, *b = y;
    if (a->time_us != b->time_us) return a->time_us > b->time_us ? -1 : 1;
    if (a->other != b->other) return a->other < b->other ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Newest first; free *edgesp. */
static inline size_t oracle_edges(const oracle *o, bool of_account, unsigned number, oracle_edge **edgesp) {
    size_t count = 0;
    oracle_edge *edges = malloc((o->book->count + 1) * sizeof *edges);
    assert_non_null(edges);
    for (size_t i = 0; i < o->book->count; i++) {
        const book_event *e = &o->book->events[i];
        if ((of_account ? e->account : e->card) != number || !oracle_shows(o, e)) continue;
        edges[count++] = (oracle_edge){e->time_us, of_account ? e->card : e->account, e->has_rank ? (int)e->rank : -1};
    }
    qsort(edges, count, sizeof *edges, oracle_order);
    *edgesp = edges;
    return count;
}

/* "1970-01-12T13:46:40.123Z" */
static inline int64_t json_time_us(const json_t *time) {
    struct tm tm = {0};
    const char *rest = strptime(json_string_value(time), "%Y-%m-%dT%H:%M:%S", &tm);
    assert_non_null(rest);
    double fraction = *rest == '.' ? strtod(rest, NULL) : 0;
    return (int64_t)timegm(&tm) * 1000000 + llround(fraction * 1e6);
}

/* As answered, put into the oracle's order; free *edgesp. */
static inline size_t answered_edges(const json_t *list, oracle_edge **edgesp) {
    size_t count = json_array_size(list), i;
    oracle_edge *edges = malloc((count + 1) * sizeof *edges);
    json_t *edge;
    assert_non_null(edges);
    json_array_foreach(list, i, edge) {
        const char *key = json_string_value(json_object_get(edge, "key"));
        const json_t *rank = json_object_get(json_object_get(edge, "features"), "rank");
        assert_non_null(key);
        edges[i] = (oracle_edge){json_time_us(json_object_get(edge, "time")), (unsigned)strtoul(key + 1, NULL, 10),
                                 json_is_number(rank) ? (int)json_number_value(rank) : -1};
        assert_true(i == 0 || edges[i].time_us <= edges[i - 1].time_us); /* newest first */
    }
    qsort(edges, count, sizeof *edges, oracle_order);
    *edgesp = edges;
    return count;
}

/* --- rows ---------------------------------------------------------------------------------------------------*/

typedef enum oracle_fact { FACT_AGE, FACT_LIMIT, FACT_RISK } oracle_fact;

static inline bool oracle_says(const book_event *e, oracle_fact fact, int *valuep) {
    *valuep = (int)(fact == FACT_AGE ? e->age : fact == FACT_LIMIT ? e->limit : !e->risk_is_low);
    return fact == FACT_AGE ? e->has_age : fact == FACT_LIMIT ? e->has_limit : e->has_risk;
}

/* A label of an account that was deleted counts if the account was put again before it, or never before. */
static inline bool oracle_is_of_life(const oracle *o, const book_event *label) {
    unsigned account = label->account;
    if (o->gone_us[account] == INT64_MIN) return true;
    if (o->back_us[account] == INT64_MAX) return false;
    return label->time_us > o->back_us[account] || o->put_us[account] == o->back_us[account];
}

/* Whether a server may answer value; -1: that nothing is known. */
static inline bool oracle_allows(const oracle *o, unsigned account, oracle_fact fact, int value) {
    int64_t newest_us = INT64_MIN;
    bool allowed = value == -1;
    for (size_t i = 0; i < o->book->count; i++) {
        const book_event *e = &o->book->events[i];
        int said;
        if (e->account != account || !oracle_lives(o, e) || !oracle_says(e, fact, &said)) continue;
        if (fact == FACT_RISK && !oracle_is_of_life(o, e)) continue;
        if (e->time_us < newest_us) continue;
        if (e->time_us > newest_us) allowed = false;
        newest_us = e->time_us;
        allowed = allowed || said == value;
    }
    return allowed;
}

#endif /* WEIR_CRASH_SERVE_ORACLE_H */

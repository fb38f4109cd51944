/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book.h - what the client of the crash campaign sends, and its own record of what was acknowledged.
 *
 * Events are about accounts and cards: late ones, deletions, labels, and through Kafka broken ones. Event times are
 * all different, so that the graph does not depend on which partition an event came through. Some are more than a year
 * ahead of all others, though edges expire after a month: nothing may vanish for that. Broken ones may be of the year
 * 9999.
 */
#ifndef WEIR_CRASH_SERVE_BOOK_H
#define WEIR_CRASH_SERVE_BOOK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/rng.h>
#include <weir/store/id.h>

#include "weir_test.h"

#define BOOK_ACCOUNTS 60u
#define BOOK_CARDS    90u
#define BOOK_TEXT_MAX 160u

#define BOOK_YEAR_S     (400ull * 86400)
#define BOOK_FAR_AWAY_S 253402300000ull /* of the year 9999 */

static const char book_schema[] = "version: 1\n"
                                  "name: cards\n"
                                  "vertices:\n"
                                  "  account: {features: {age: {kind: number}, limit: {kind: number}}}\n"
                                  "  card: {expire: 60d}\n"
                                  "relations:\n"
                                  "  holds: {from: account, to: card, expire: 30d, features: {rank: {kind: number}}}\n"
                                  "labels:\n"
                                  "  risk: {vertex: account, values: [low, high]}\n"
                                  "sources:\n"
                                  "  cards:\n"
                                  "    id: id\n"
                                  "    topic: %s\n"
                                  "    time: {field: t, format: ms}\n"
                                  "    mutations:\n"
                                  "      - put_vertex: account\n"
                                  "        key: account\n"
                                  "        when: {has: age}\n"
                                  "        features: {age: {field: age}, limit: {field: limit, optional: true}}\n"
                                  "      - put_edge: holds\n"
                                  "        from: account\n"
                                  "        to: card\n"
                                  "        when: {has: card}\n"
                                  "        features: {rank: {field: rank, optional: true}}\n"
                                  "      - put_label: risk\n"
                                  "        key: account\n"
                                  "        when: {has: risk}\n"
                                  "        value: risk\n"
                                  "      - delete_vertex: account\n"
                                  "        key: account\n"
                                  "        when: {has: gone}\n"
                                  "      - delete_edge: holds\n"
                                  "        from: account\n"
                                  "        to: lost\n"
                                  "        when: {has: lost}\n";

/* One event: its number is its place in the book and in its id. */
typedef struct book_event {
    char text[BOOK_TEXT_MAX];
    unsigned account;
    bool broken, acknowledged;
    uint32_t partition; /* as the acknowledgement says */
    uint64_t offset;
} book_event;

typedef struct book {
    book_event *events;
    size_t count, capacity;
    size_t acknowledged, broken; /* of them */
    bool deleted[BOOK_ACCOUNTS]; /* ever */
} book;

static inline void book_clear(book *b) {
    b->count = b->acknowledged = b->broken = 0;
    memset(b->deleted, 0, sizeof b->deleted);
}

static inline void book_body(weir_rng *rng, book_event *event, bool broken_too, char body[64]) {
    unsigned card = (unsigned)weir_rng_below(rng, BOOK_CARDS), age = (unsigned)weir_rng_below(rng, 80);
    uint64_t dice = weir_rng_below(rng, broken_too ? 100 : 93);
    if (dice < 50) {
        snprintf(body, 64, "\"card\":\"c%u\",\"rank\":%u", card, age);
    } else if (dice < 62) {
        snprintf(body, 64, "\"card\":\"c%u\",\"age\":%u", card, age);
    } else if (dice < 70) {
        snprintf(body, 64, "\"age\":%u,\"limit\":%u", age, card);
    } else if (dice < 80) {
        snprintf(body, 64, "\"risk\":\"%s\"", card & 1 ? "low" : "high");
    } else if (dice < 85) {
        snprintf(body, 64, "\"gone\":true");
    } else if (dice < 93) {
        snprintf(body, 64, "\"lost\":\"c%u\"", card);
    } else {
        snprintf(body, 64, "\"risk\":\"none\"");
        event->broken = true;
    }
}

/* The next event, not acknowledged yet. Times wander back by up to 500 s; the last digits make each its own. */
static inline book_event *book_next(book *b, weir_rng *rng, bool broken_too) {
    char body[64];
    if (b->count == b->capacity) {
        b->capacity = b->capacity ? b->capacity * 2 : 4096;
        b->events = weir_realloc_array(b->events, b->capacity, sizeof *b->events);
        assert_non_null(b->events);
    }
    size_t number = b->count++;
    book_event *event = &b->events[number];
    *event = (book_event){.account = (unsigned)weir_rng_below(rng, BOOK_ACCOUNTS)};
    book_body(rng, event, broken_too, body);
    if (strstr(body, "gone")) b->deleted[event->account] = true;
    bool wild = strstr(body, "rank") && weir_rng_below(rng, 40) == 0, far_away = wild && broken_too && number % 2;
    uint64_t time_s = 1000000 + number - weir_rng_below(rng, 500);
    if (wild) time_s = far_away ? BOOK_FAR_AWAY_S : 1000000 + BOOK_YEAR_S + number;
    event->broken = event->broken || far_away;
    uint64_t time_ms = time_s * 1000 + number % 1000;
    snprintf(event->text, sizeof event->text, "{\"id\":\"e%zu\",\"t\":%" PRIu64 ",\"account\":\"a%u\",%s}", number,
             time_ms, event->account, body);
    return event;
}

static inline void book_acknowledge(book *b, size_t number, uint32_t partition, uint64_t offset) {
    book_event *event = &b->events[number];
    assert_false(event->acknowledged);
    event->acknowledged = true;
    event->partition = partition;
    event->offset = offset;
    b->acknowledged++;
    b->broken += event->broken;
}

/* The number in a message's id. */
static inline size_t book_number(const void *message, size_t length) {
    static const char begin[] = "{\"id\":\"e";
    assert_true(length > sizeof begin && memcmp(message, begin, sizeof begin - 1) == 0);
    return strtoull((const char *)message + sizeof begin - 1, NULL, 10);
}

#endif /* WEIR_CRASH_SERVE_BOOK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book.h - what the client of the crash campaign sends, and its own record of what was acknowledged.
 *
 * Events are about accounts and cards: late ones, many at the same time, deletions, late labels, and through Kafka
 * broken ones. Some edges are more than a year ahead of all others, though edges expire after a month: nothing may
 * vanish for that; broken ones may be of the year 9999. What an event says is kept beside its text, so that nobody has
 * to read it again: oracle.h answers from that alone.
 */
#ifndef WEIR_CRASH_SERVE_BOOK_H
#define WEIR_CRASH_SERVE_BOOK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/id.h>

#include "weir_test.h"

#define BOOK_ACCOUNTS 60u
#define BOOK_CARDS    90u
#define BOOK_TEXT_MAX 160u

#define BOOK_YEAR_S     (400ull * 86400)
#define BOOK_FAR_AWAY_S 253402300000ull /* of the year 9999 */

static const char book_schema[] =
    "version: 1\n"
    "name: cards\n"
    "vertices:\n"
    "  account: {%sfeatures: {age: {kind: number}, limit: {kind: number}}}\n"
    "  card: {%sexpire: 60d}\n"
    "relations:\n"
    "  holds: {%sfrom: account, to: card, expire: 30d, features: {rank: {kind: number}}}\n"
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
    int64_t time_us;
    unsigned account, card; /* of an edge that is put, or deleted */
    unsigned age, limit, rank;
    bool puts_edge, has_rank, has_age, has_limit, has_risk, risk_is_low, gone, lost; /* what it says */
    bool broken, acknowledged;
    uint32_t copies, losers; /* records with its id that came after it: with its bytes, and with others */
    uint32_t partition;      /* as the acknowledgement says */
    uint64_t offset;
} book_event;

typedef struct book {
    book_event *events;
    size_t count, capacity;
    size_t acknowledged, records; /* of them; and how many records the log has of them */
} book;

static inline void book_clear(book *b) {
    b->count = b->acknowledged = b->records = 0;
}

static inline void book_body(weir_rng *rng, book_event *event, bool broken_too, char body[64]) {
    unsigned card = (unsigned)weir_rng_below(rng, BOOK_CARDS), age = (unsigned)weir_rng_below(rng, 80);
    uint64_t dice = weir_rng_below(rng, broken_too ? 100 : 93);
    event->card = card;
    event->age = event->rank = age;
    event->limit = card;
    if (dice < 50) {
        event->puts_edge = event->has_rank = true;
        snprintf(body, 64, "\"card\":\"c%u\",\"rank\":%u", card, age);
    } else if (dice < 62) {
        event->puts_edge = event->has_age = true;
        snprintf(body, 64, "\"card\":\"c%u\",\"age\":%u", card, age);
    } else if (dice < 70) {
        event->has_age = event->has_limit = true;
        snprintf(body, 64, "\"age\":%u,\"limit\":%u", age, card);
    } else if (dice < 80) {
        event->has_risk = true;
        event->risk_is_low = card & 1;
        snprintf(body, 64, "\"risk\":\"%s\"", card & 1 ? "low" : "high");
    } else if (dice < 85) {
        event->gone = true;
        snprintf(body, 64, "\"gone\":true");
    } else if (dice < 93) {
        event->lost = true;
        snprintf(body, 64, "\"lost\":\"c%u\"", card);
    } else {
        event->broken = true;
        snprintf(body, 64, "\"risk\":\"none\"");
    }
}

/* Times wander back by up to 500 s. Half of them are of one in ten seconds and so shared by many events; a third of the
 * labels come an hour after what they are about. */
static inline uint64_t book_time_ms(weir_rng *rng, const book_event *event, size_t number) {
    uint64_t second = 1000000 + number - weir_rng_below(rng, 500);
    if (event->has_risk && weir_rng_below(rng, 3) == 0) second += 3600;
    return weir_rng_below(rng, 2) ? second / 10 * 10000 : second * 1000 + number % 1000;
}

/* The next event, not acknowledged yet. */
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
    uint64_t time_ms = book_time_ms(rng, event, number);
    bool wild = event->puts_edge && event->has_rank && weir_rng_below(rng, 40) == 0;
    bool far_away = wild && broken_too && number % 2;
    if (wild) time_ms = (far_away ? BOOK_FAR_AWAY_S : 1000000 + BOOK_YEAR_S + number) * 1000 + number % 1000;
    event->broken = event->broken || far_away;
    event->time_us = (int64_t)time_ms * 1000;
    snprintf(event->text, sizeof event->text, "{\"id\":\"e%zu\",\"t\":%" PRIu64 ",\"account\":\"a%u\",%s}", number,
             time_ms, event->account, body);
    return event;
}

/* Another message with the id of an event, about the same account: it must change nothing. */
static inline void book_other_bytes(const book *b, size_t number, char text[BOOK_TEXT_MAX]) {
    snprintf(text, BOOK_TEXT_MAX,
             "{\"id\":\"e%zu\",\"t\":%" PRIu64 ",\"account\":\"a%u\",\"card\":\"c1\",\"age\":1000,\"limit\":1000}",
             number, (uint64_t)9000000000 + number, b->events[number].account);
}

static inline void book_acknowledge(book *b, size_t number, uint32_t partition, uint64_t offset) {
    book_event *event = &b->events[number];
    assert_false(event->acknowledged);
    event->acknowledged = true;
    event->partition = partition;
    event->offset = offset;
    b->acknowledged++;
    b->records++;
}

/* The number in a message's id. */
static inline size_t book_number(const void *message, size_t length) {
    static const char begin[] = "{\"id\":\"e";
    assert_true(length > sizeof begin && memcmp(message, begin, sizeof begin - 1) == 0);
    return strtoull((const char *)message + sizeof begin - 1, NULL, 10);
}

#endif /* WEIR_CRASH_SERVE_BOOK_H */

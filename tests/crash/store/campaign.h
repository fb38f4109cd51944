/* SPDX-License-Identifier: Apache-2.0 */
/*
 * campaign.h - what the crash campaign streams: messages about accounts and cards, some late, some twice, some broken;
 * and the parent's own book of those that were acknowledged.
 */
#ifndef WEIR_CRASH_CAMPAIGN_H
#define WEIR_CRASH_CAMPAIGN_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/hash.h>

#include "../../unit/ingest/pipeline/fixture.h"

#define CAMPAIGN_PARTITIONS 2u
#define CAMPAIGN_TEXT_MAX   160u
#define CAMPAIGN_RECENT     256u
#define CAMPAIGN_YEAR_S     (400ull * 86400)

static const char campaign_schema[] = "version: 1\n"
                                      "name: cards\n"
                                      "vertices:\n"
                                      "  account: {features: {age: {kind: number}, limit: {kind: number}}}\n"
                                      "  card: {expire: 60d}\n"
                                      "relations:\n"
                                      "  holds: {from: account, to: card, expire: 30d, "
                                      "features: {rank: {kind: number}}}\n"
                                      "labels:\n"
                                      "  risk: {vertex: account, values: [low, high]}\n"
                                      "sources:\n"
                                      "  cards:\n"
                                      "    id: id\n"
                                      "    time: {field: t, format: s}\n"
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

/* What was acknowledged, by partition and offset. */
typedef struct book {
    uint64_t *hashes[CAMPAIGN_PARTITIONS];
    size_t counts[CAMPAIGN_PARTITIONS], capacities[CAMPAIGN_PARTITIONS];
} book;

typedef struct stream {
    weir_rng rng;
    uint64_t number;
    char recent[CAMPAIGN_PARTITIONS][CAMPAIGN_RECENT][CAMPAIGN_TEXT_MAX];
    uint64_t recent_count[CAMPAIGN_PARTITIONS];
} stream;

static inline uint64_t campaign_hash(const void *bytes, size_t length) {
    return weir_xxh3(bytes, length, 0);
}

static inline void book_add(book *b, uint32_t partition, const char *text) {
    if (b->counts[partition] == b->capacities[partition]) {
        b->capacities[partition] = b->capacities[partition] ? b->capacities[partition] * 2 : 1024;
        b->hashes[partition] =
            weir_realloc_array(b->hashes[partition], b->capacities[partition], sizeof *b->hashes[partition]);
        assert_non_null(b->hashes[partition]);
    }
    b->hashes[partition][b->counts[partition]++] = campaign_hash(text, strlen(text));
}

static inline void campaign_body(weir_rng *rng, char body[96]) {
    unsigned card = (unsigned)weir_rng_below(rng, 90), age = (unsigned)weir_rng_below(rng, 80);
    uint64_t dice = weir_rng_below(rng, 100);
    if (dice < 50) {
        snprintf(body, 96, "\"card\":\"c%u\",\"rank\":%u", card, age);
    } else if (dice < 62) {
        snprintf(body, 96, "\"card\":\"c%u\",\"age\":%u", card, age);
    } else if (dice < 70) {
        snprintf(body, 96, "\"age\":%u,\"limit\":%u", age, card);
    } else if (dice < 80) {
        snprintf(body, 96, "\"risk\":\"%s\"", card & 1 ? "low" : "high");
    } else if (dice < 85) {
        snprintf(body, 96, "\"gone\":true");
    } else if (dice < 93) {
        snprintf(body, 96, "\"lost\":\"c%u\"", card);
    } else {
        snprintf(body, 96, "\"risk\":\"none\"");
    }
}

/* One in ten is a message again that came before; event times wander back by up to 500 s, deletions too, and an
 * account's messages are in all partitions: so puts and deletions of an account come in any order. A few edges are more
 * than a year ahead of all others, though edges expire after a month: nothing may vanish for that. */
static inline const char *campaign_next(stream *s, uint32_t partition) {
    uint64_t *count = &s->recent_count[partition];
    if (*count > CAMPAIGN_RECENT && weir_rng_below(&s->rng, 10) == 0)
        return s->recent[partition][weir_rng_below(&s->rng, CAMPAIGN_RECENT)];
    char *text = s->recent[partition][(*count)++ % CAMPAIGN_RECENT], body[96];
    campaign_body(&s->rng, body);
    uint64_t time_s = 1000000 + s->number - weir_rng_below(&s->rng, 500);
    if (strstr(body, "rank") && weir_rng_below(&s->rng, 40) == 0) time_s += CAMPAIGN_YEAR_S;
    uint64_t account = weir_rng_below(&s->rng, 60);
    snprintf(text, CAMPAIGN_TEXT_MAX, "{\"id\":\"e%" PRIu64 "\",\"t\":%" PRIu64 ",\"account\":\"a%" PRIu64 "\",%s}",
             s->number++, time_s, account, body);
    return text;
}

/* Appends, makes durable, and only then enters it into the book. */
static inline void campaign_append(stream *s, book *b, weir_eventlog *log, size_t count) {
    static char texts[512][CAMPAIGN_TEXT_MAX];
    uint32_t partition = (uint32_t)weir_rng_below(&s->rng, CAMPAIGN_PARTITIONS);
    weir_record records[512] = {0};
    uint64_t first;
    assert_true(count > 0 && count <= 512);
    for (size_t i = 0; i < count; i++) {
        strcpy(texts[i], campaign_next(s, partition));
        records[i] = (weir_record){.value = texts[i], .value_length = strlen(texts[i])};
    }
    assert_ok(weir_eventlog_append(log, partition, records, count, &first));
    assert_ok(weir_eventlog_sync_partition(log, partition));
    assert_int_equal(first, b->counts[partition]);
    for (size_t i = 0; i < count; i++)
        book_add(b, partition, texts[i]);
}

#endif /* WEIR_CRASH_CAMPAIGN_H */

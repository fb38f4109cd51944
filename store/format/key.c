/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the only code that knows the bytes of a key. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>

static void key_put_be16(uint8_t *at, uint16_t v) {
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static void key_put_be32(uint8_t *at, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(at, &v, 4);
}

static void key_put_be64(uint8_t *at, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(at, &v, 8);
}

static void key_put_vertex(uint8_t *at, weir_vertex v) {
    key_put_be64(at, weir_vertex_high(v));
    key_put_be64(at + 8, weir_vertex_low(v));
}

static uint16_t key_get_be16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t key_get_be32(const uint8_t *at) {
    uint32_t v;
    memcpy(&v, at, 4);
    return __builtin_bswap32(v);
}

static uint64_t key_get_be64(const uint8_t *at) {
    uint64_t v;
    memcpy(&v, at, 8);
    return __builtin_bswap64(v);
}

static weir_vertex key_get_vertex(const uint8_t *at) {
    return weir_vertex_make(key_get_be64(at), key_get_be64(at + 8));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the swaps above take a little-endian machine");

#define SIGN (1ull << 63)

/* Flipping the sign bit sorts negative before positive; the complement turns that around: newest first. */
static uint64_t key_time_descending(int64_t time_us) {
    return ~((uint64_t)time_us ^ SIGN);
}

static int64_t key_time_of(uint64_t descending) {
    return (int64_t)(~descending ^ SIGN);
}

void weir_edge_key_write(const weir_edge_key *key, uint8_t bytes[WEIR_EDGE_KEY_BYTES]) {
    uint8_t *at = bytes + WEIR_EDGE_PREFIX_BYTES;
    bytes[0] = 'E';
    key_put_vertex(bytes + 1, key->vertex);
    key_put_be16(bytes + 17, key->relation);
    bytes[19] = (uint8_t)key->direction;
    key_put_be64(at, key_time_descending(key->time_us));
    at[8] = key->deletion ? 0 : 1;
    key_put_vertex(at + 9, key->neighbor);
    key_put_be64(at + 25, key->event);
    key_put_be32(at + 33, key->content);
}

bool weir_edge_key_read(const void *bytes, size_t length, weir_edge_key *keyp) {
    const uint8_t *b = bytes;
    if (length != WEIR_EDGE_KEY_BYTES || b[0] != 'E' || b[19] > 1 || b[28] > 1) return false;
    *keyp = (weir_edge_key){
        .vertex = key_get_vertex(b + 1),
        .relation = key_get_be16(b + 17),
        .direction = b[19] ? WEIR_IN : WEIR_OUT,
        .time_us = key_time_of(key_get_be64(b + 20)),
        .deletion = b[28] == 0,
        .neighbor = key_get_vertex(b + 29),
        .event = key_get_be64(b + 45),
        .content = key_get_be32(b + 53),
    };
    return true;
}

/* 'F' and 'I' are alike, and 'L' has the label in between. */
static void key_version_write(const weir_version_key *key, uint8_t *at) {
    key_put_be64(at, key_time_descending(key->time_us));
    key_put_be64(at + 8, key->event);
    key_put_be32(at + 16, key->content);
}

static weir_version_key key_version_read(const uint8_t *bytes, const uint8_t *at) {
    return (weir_version_key){.vertex = key_get_vertex(bytes + 1),
                              .time_us = key_time_of(key_get_be64(at)),
                              .event = key_get_be64(at + 8),
                              .content = key_get_be32(at + 16)};
}

void weir_feature_key_write(const weir_version_key *key, uint8_t bytes[WEIR_FEATURE_KEY_BYTES]) {
    bytes[0] = 'F';
    key_put_vertex(bytes + 1, key->vertex);
    key_version_write(key, bytes + 17);
}

bool weir_feature_key_read(const void *bytes, size_t length, weir_version_key *keyp) {
    const uint8_t *b = bytes;
    if (length != WEIR_FEATURE_KEY_BYTES || b[0] != 'F') return false;
    *keyp = key_version_read(b, b + 17);
    return true;
}

void weir_event_key_write(const weir_version_key *key, uint8_t bytes[WEIR_EVENT_KEY_BYTES]) {
    bytes[0] = 'I';
    key_put_vertex(bytes + 1, key->vertex);
    key_version_write(key, bytes + 17);
}

bool weir_event_key_read(const void *bytes, size_t length, weir_version_key *keyp) {
    const uint8_t *b = bytes;
    if (length != WEIR_EVENT_KEY_BYTES || b[0] != 'I') return false;
    *keyp = key_version_read(b, b + 17);
    return true;
}

void weir_label_key_write(const weir_version_key *key, uint16_t label, uint8_t bytes[WEIR_LABEL_KEY_BYTES]) {
    bytes[0] = 'L';
    key_put_vertex(bytes + 1, key->vertex);
    key_put_be16(bytes + 17, label);
    key_version_write(key, bytes + 19);
}

bool weir_label_key_read(const void *bytes, size_t length, weir_version_key *keyp, uint16_t *labelp) {
    const uint8_t *b = bytes;
    if (length != WEIR_LABEL_KEY_BYTES || b[0] != 'L') return false;
    *keyp = key_version_read(b, b + 19);
    *labelp = key_get_be16(b + 17);
    return true;
}

void weir_name_key_write(weir_vertex vertex, uint8_t bytes[WEIR_NAME_KEY_BYTES]) {
    bytes[0] = 'N';
    key_put_vertex(bytes + 1, vertex);
}

bool weir_name_key_read(const void *bytes, size_t length, weir_vertex *vertexp) {
    const uint8_t *b = bytes;
    if (length != WEIR_NAME_KEY_BYTES || b[0] != 'N') return false;
    *vertexp = key_get_vertex(b + 1);
    return true;
}

void weir_newest_key_write(uint8_t bytes[WEIR_NEWEST_KEY_BYTES]) {
    memset(bytes, 0, WEIR_NEWEST_KEY_BYTES);
    bytes[0] = 'P';
}

bool weir_newest_key_read(const void *bytes, size_t length) {
    uint8_t key[WEIR_NEWEST_KEY_BYTES];
    weir_newest_key_write(key);
    return length == sizeof key && memcmp(bytes, key, sizeof key) == 0;
}

void weir_offset_key_write(uint32_t source, uint32_t partition, uint8_t bytes[WEIR_OFFSET_KEY_BYTES]) {
    bytes[0] = 'O';
    key_put_be32(bytes + 1, source);
    key_put_be32(bytes + 5, partition);
    key_put_be64(bytes + 9, 0);
}

bool weir_offset_key_read(const void *bytes, size_t length, uint32_t *sourcep, uint32_t *partitionp) {
    const uint8_t *b = bytes;
    if (length != WEIR_OFFSET_KEY_BYTES || b[0] != 'O' || key_get_be64(b + 9)) return false;
    *sourcep = key_get_be32(b + 1);
    *partitionp = key_get_be32(b + 5);
    return true;
}

/* 'K' and 'T' are alike: a vertex and a time. */
_Static_assert(WEIR_PUT_KEY_BYTES == 25 && WEIR_DELETED_KEY_BYTES == 25, "a kind and three words");

static void key_vertex_time_write(char kind, weir_vertex vertex, int64_t time_us, uint8_t *bytes) {
    bytes[0] = (uint8_t)kind;
    key_put_vertex(bytes + 1, vertex);
    key_put_be64(bytes + 17, key_time_descending(time_us));
}

static bool key_vertex_time_read(uint8_t kind, const uint8_t *b, size_t length, weir_vertex *vertexp,
                                 int64_t *time_usp) {
    if (length != WEIR_PUT_KEY_BYTES || b[0] != kind) return false;
    *vertexp = key_get_vertex(b + 1);
    *time_usp = key_time_of(key_get_be64(b + 17));
    return true;
}

void weir_put_key_write(weir_vertex vertex, int64_t time_us, uint8_t bytes[WEIR_PUT_KEY_BYTES]) {
    key_vertex_time_write('K', vertex, time_us, bytes);
}

bool weir_put_key_read(const void *bytes, size_t length, weir_vertex *vertexp, int64_t *time_usp) {
    return key_vertex_time_read('K', bytes, length, vertexp, time_usp);
}

void weir_deleted_key_write(weir_vertex vertex, int64_t time_us, uint8_t bytes[WEIR_DELETED_KEY_BYTES]) {
    key_vertex_time_write('T', vertex, time_us, bytes);
}

bool weir_deleted_key_read(const void *bytes, size_t length, weir_vertex *vertexp, int64_t *time_usp) {
    return key_vertex_time_read('T', bytes, length, vertexp, time_usp);
}

size_t weir_record_key_write(weir_vertex vertex, weir_list list, const weir_entry *e,
                             uint8_t bytes[WEIR_EDGE_KEY_BYTES]) {
    const weir_version_key version = {vertex, e->time_us, e->event, e->content};
    switch (WEIR_LIST_KIND(list)) {
    case WEIR_LIST_KIND_EDGES:
        weir_edge_key_write(&(weir_edge_key){.vertex = vertex,
                                             .relation = (uint16_t)(list >> 1),
                                             .direction = list & 1 ? WEIR_IN : WEIR_OUT,
                                             .deletion = e->deletion,
                                             .time_us = e->time_us,
                                             .neighbor = e->neighbor,
                                             .event = e->event,
                                             .content = e->content},
                            bytes);
        return WEIR_EDGE_KEY_BYTES;
    case WEIR_LIST_KIND_FEATURES:
        weir_feature_key_write(&version, bytes);
        return WEIR_FEATURE_KEY_BYTES;
    case WEIR_LIST_KIND_EVENTS:
        weir_event_key_write(&version, bytes);
        return WEIR_EVENT_KEY_BYTES;
    case WEIR_LIST_KIND_PUTS:
        weir_put_key_write(vertex, e->time_us, bytes);
        return WEIR_PUT_KEY_BYTES;
    default:
        WEIR_ASSERT(WEIR_LIST_KIND(list) == WEIR_LIST_KIND_LABEL);
        weir_label_key_write(&version, (uint16_t)list, bytes);
        return WEIR_LABEL_KEY_BYTES;
    }
}

uint64_t weir_bundle_rank(int64_t newest_us) {
    return key_time_descending(newest_us);
}

void weir_bundle_key_write(const weir_bundle_key *key, uint8_t bytes[WEIR_BUNDLE_KEY_BYTES]) {
    bytes[0] = WEIR_BUNDLE_KIND;
    key_put_vertex(bytes + 1, key->vertex);
    key_put_be32(bytes + 17, key->part);
    bytes[21] = key->span;
    key_put_be64(bytes + WEIR_BUNDLE_NEWEST_AT, key_time_descending(key->newest_us));
    key_put_be32(bytes + 30, key->turn);
    key_put_be64(bytes + 34, key->hash);
}

bool weir_bundle_key_read(const void *bytes, size_t length, weir_bundle_key *keyp) {
    const uint8_t *b = bytes;
    if (length != WEIR_BUNDLE_KEY_BYTES || b[0] != WEIR_BUNDLE_KIND || b[21] >= WEIR_BUNDLE_SPANS) return false;
    *keyp = (weir_bundle_key){.vertex = key_get_vertex(b + 1),
                              .part = key_get_be32(b + 17),
                              .span = b[21],
                              .newest_us = key_time_of(key_get_be64(b + WEIR_BUNDLE_NEWEST_AT)),
                              .turn = key_get_be32(b + 30),
                              .hash = key_get_be64(b + 34)};
    return true;
}

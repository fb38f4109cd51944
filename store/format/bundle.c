/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - the only code that knows the bytes of a bundle's value. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/stored.h>

enum { DELETION = 1, ROW = 2, SAME_TIME = 4, SAME_EVENT = 8, FLAGS = 15 };

#define NUMBER_BYTES 10u /* of a number with seven bits a byte, at most */
#define SPAN_BITS    2u  /* a span is so many bits longer than the one before it; the last has no bound */
#define SPAN_FIRST   12u /* about four milliseconds */
_Static_assert(WEIR_BUNDLE_KEY_BYTES >= 1 + WEIR_VERTEX_BYTES, "filters are made of kind and vertex");

#define ENTRY_BYTES (1u + NUMBER_BYTES + WEIR_VERTEX_BYTES + 8u + 4u + NUMBER_BYTES) /* at most, but its row */

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static uint8_t *bundle_write_number(uint8_t *at, uint64_t number) {
    for (; number >= 128; number >>= 7)
        *at++ = (uint8_t)(number | 128);
    *at++ = (uint8_t)number;
    return at;
}

/* NULL: cut short, or longer than a number is. */
static const uint8_t *bundle_read_number(const uint8_t *at, const uint8_t *end, uint64_t *numberp) {
    *numberp = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (at == end) return NULL;
        *numberp |= (uint64_t)(*at & 127) << shift;
        if (*at++ < 128) return at;
    }
    return NULL;
}

/* Within a list a step goes back, which is positive; from one list of a bundle to the next it may go either way. */
static uint64_t bundle_fold(int64_t step) {
    return (uint64_t)step << 1 ^ (step < 0 ? UINT64_MAX : 0);
}

static int64_t bundle_unfold(uint64_t number) {
    return (int64_t)(number >> 1 ^ (0 - (number & 1)));
}

/* --- spans -------------------------------------------------------------------------------------------------------- */

static uint64_t bundle_span_us(uint8_t span) {
    WEIR_ASSERT(span + 1u < WEIR_BUNDLE_SPANS);
    return 1ull << (SPAN_FIRST + span * SPAN_BITS);
}

uint8_t weir_bundle_span(int64_t newest_us, int64_t oldest_us) {
    uint64_t apart_us = (uint64_t)newest_us - (uint64_t)oldest_us;
    uint8_t span = 0;
    while (span + 1u < WEIR_BUNDLE_SPANS && apart_us >= bundle_span_us(span))
        span++;
    return span;
}

int64_t weir_bundle_reach(uint8_t span, int64_t time_us) {
    int64_t reach_us;
    if (span + 1u >= WEIR_BUNDLE_SPANS || __builtin_add_overflow(time_us, (int64_t)bundle_span_us(span) - 1, &reach_us))
        return INT64_MAX;
    return reach_us;
}

/* What is not the key of a bundle may hold entries of any time. Notes of events have offsets in the place of times: by
 * those, every file that has notes would reach back to 1970. */
uint64_t weir_bundle_last_rank(const void *key, size_t length, const void *value, size_t value_length) {
    weir_bundle_key of;
    uint64_t older_us, last;
    if (!weir_bundle_key_read(key, length, &of)) return UINT64_MAX;
    if (of.part == WEIR_BUNDLE_PART(WEIR_LIST_EVENTS)) return 0;
    if (!bundle_read_number(value, (const uint8_t *)value + value_length, &older_us)) return UINT64_MAX;
    return __builtin_add_overflow(weir_bundle_rank(of.newest_us), older_us, &last) ? UINT64_MAX : last;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

void weir_bundle_begin(weir_bundle_writer *writer, int64_t newest_us, int64_t oldest_us) {
    WEIR_ASSERT(newest_us >= oldest_us);
    weir_buf_clear(&writer->value);
    writer->newest_us = writer->time_us = newest_us;
    writer->oldest_us = oldest_us;
    writer->event = 0;
    writer->content = 0;
    uint8_t *at = (uint8_t *)weir_buf_reserve(&writer->value, NUMBER_BYTES);
    if (at)
        weir_buf_commit(&writer->value,
                        (size_t)(bundle_write_number(at, (uint64_t)newest_us - (uint64_t)oldest_us) - at));
}

void weir_bundle_put_name(weir_bundle_writer *writer, const weir_name *name) {
    WEIR_ASSERT(name->key_length <= WEIR_KEY_MAX);
    uint8_t *at = (uint8_t *)weir_buf_reserve(&writer->value, NUMBER_BYTES + WEIR_STORED_NAME_MAX);
    if (!at) return;
    uint8_t *name_at = bundle_write_number(at, WEIR_STORED_NAME_PREFIX + name->key_length);
    size_t length = weir_stored_name_write(name->vertex_type, name->time_us, name->key, name->key_length, name_at);
    weir_buf_commit(&writer->value, (size_t)(name_at - at) + length);
}

void weir_bundle_put_list(weir_bundle_writer *writer, weir_list list, uint32_t count) {
    uint8_t *at = (uint8_t *)weir_buf_reserve(&writer->value, 2 * (size_t)NUMBER_BYTES);
    if (!at) return;
    uint8_t *end = bundle_write_number(bundle_write_number(at, list), count);
    weir_buf_commit(&writer->value, (size_t)(end - at));
}

void weir_bundle_put(weir_bundle_writer *writer, weir_list list, const weir_entry *e) {
    uint8_t *begin = (uint8_t *)weir_buf_reserve(&writer->value, ENTRY_BYTES + e->row_length), *at = begin;
    if (!at) return;
    bool same_time = e->time_us == writer->time_us;
    bool same_event = e->event == writer->event && e->content == writer->content;
    *at++ = (uint8_t)((e->deletion ? DELETION : 0) | (e->row_length ? ROW : 0) | (same_time ? SAME_TIME : 0) |
                      (same_event ? SAME_EVENT : 0));
    if (!same_time)
        at = bundle_write_number(at, bundle_fold((int64_t)((uint64_t)writer->time_us - (uint64_t)e->time_us)));
    if (WEIR_LIST_KIND(list) == WEIR_LIST_KIND_EDGES) {
        weir_put_u64(at, weir_vertex_high(e->neighbor));
        weir_put_u64(at + 8, weir_vertex_low(e->neighbor));
        at += WEIR_VERTEX_BYTES;
    }
    if (!same_event) {
        weir_put_u64(at, e->event);
        weir_put_u32(at + 8, e->content);
        at += 12;
    }
    if (e->row_length) {
        at = bundle_write_number(at, e->row_length);
        memcpy(at, e->row, e->row_length);
        at += e->row_length;
    }
    WEIR_ASSERT((size_t)(at - begin) <= ENTRY_BYTES + e->row_length);
    weir_buf_commit(&writer->value, (size_t)(at - begin));
    writer->time_us = e->time_us;
    writer->event = e->event;
    writer->content = e->content;
}

/* Of the value, and of the key in front of it. */
static uint64_t bundle_hash(const weir_bundle_key *key, const void *value, size_t length) {
    uint8_t bytes[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key_write(key, bytes);
    return weir_xxh3(value, length, weir_xxh3(bytes, sizeof bytes - sizeof key->hash, 0));
}

weir_err weir_bundle_end(weir_bundle_writer *writer, weir_bundle_key of, uint8_t key[WEIR_BUNDLE_KEY_BYTES]) {
    uint8_t span = weir_bundle_span(writer->newest_us, writer->oldest_us);
    if (of.span < span) of.span = span;
    WEIR_ASSERT(of.span < WEIR_BUNDLE_SPANS);
    of.newest_us = writer->newest_us;
    of.hash = bundle_hash(&of, writer->value.bytes, writer->value.length);
    weir_bundle_key_write(&of, key);
    return weir_buf_err(&writer->value);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool bundle_is_list(uint64_t list) {
    if (list > UINT32_MAX) return false;
    uint32_t low = (uint32_t)list & 0xffffffu;
    switch (WEIR_LIST_KIND((weir_list)list)) {
    case WEIR_LIST_KIND_EDGES:
        return low < 1u << 17; /* relation and direction */
    case WEIR_LIST_KIND_LABEL:
        return low <= UINT16_MAX;
    default:
        return WEIR_LIST_KIND((weir_list)list) < WEIR_LIST_KINDS && low == 0;
    }
}

static bool bundle_read_name(weir_bundle_reader *r) {
    uint64_t length;
    size_t key_length;
    r->at = bundle_read_number(r->at, r->end, &length);
    if (!r->at || length > (uint64_t)(r->end - r->at)) return false;
    if (!weir_stored_name_read(r->at, (size_t)length, &r->name.vertex_type, &r->name.time_us, &r->name.key,
                               &key_length))
        return false;
    r->name.key_length = (uint16_t)key_length;
    r->at += length;
    r->has_name = true;
    return true;
}

bool weir_bundle_open(weir_bundle_reader *r, const weir_bundle_key *key, const void *value, size_t length) {
    uint64_t older_us;
    *r = (weir_bundle_reader){.time_us = key->newest_us, .of_named = key->part == WEIR_BUNDLE_NAMED};
    r->end = (const uint8_t *)value + length;
    r->at = bundle_read_number(value, r->end, &older_us);
    if (!r->at) return false;
    r->oldest_us = (int64_t)((uint64_t)key->newest_us - older_us);
    if (r->of_named) return bundle_read_name(r);
    r->list = key->part - 1u;
    r->left = UINT32_MAX;
    return bundle_is_list(r->list) && r->at < r->end;
}

/* Of the next list of several. */
static weir_bundle_step bundle_read_list(weir_bundle_reader *r) {
    uint64_t list = 0, count = 0;
    if (r->at == r->end) return WEIR_BUNDLE_END;
    const uint8_t *at = bundle_read_number(r->at, r->end, &list);
    if (at) at = bundle_read_number(at, r->end, &count);
    if (!at || !bundle_is_list(list) || count == 0 || count > UINT32_MAX) return WEIR_BUNDLE_DAMAGED;
    r->at = at;
    r->list = (weir_list)list;
    r->left = (uint32_t)count;
    return WEIR_BUNDLE_ENTRY;
}

static bool bundle_read_row(weir_bundle_reader *r, weir_entry *e) {
    uint64_t length;
    uint32_t kind = WEIR_LIST_KIND(r->list);
    if (e->deletion || kind == WEIR_LIST_KIND_PUTS || kind == WEIR_LIST_KIND_EVENTS) return false; /* have none */
    const uint8_t *at = bundle_read_number(r->at, r->end, &length);
    if (!at || length == 0 || length > (uint64_t)(r->end - at) || length > INT32_MAX) return false;
    e->row = at;
    e->row_length = (uint32_t)length & INT32_MAX;
    r->at = at + length;
    return true;
}

weir_bundle_step weir_bundle_next(weir_bundle_reader *r, weir_entry *e) {
    if (r->of_named && r->left == 0) {
        weir_bundle_step step = bundle_read_list(r);
        if (step != WEIR_BUNDLE_ENTRY) return step;
    }
    if (r->at == r->end) return r->of_named ? WEIR_BUNDLE_DAMAGED : WEIR_BUNDLE_END;
    uint8_t flags = *r->at++;
    bool edges = WEIR_LIST_KIND(r->list) == WEIR_LIST_KIND_EDGES;
    if (flags > FLAGS || (flags & DELETION && !edges)) return WEIR_BUNDLE_DAMAGED;
    if (!(flags & SAME_TIME)) {
        uint64_t step;
        r->at = bundle_read_number(r->at, r->end, &step);
        if (!r->at) return WEIR_BUNDLE_DAMAGED;
        r->time_us = (int64_t)((uint64_t)r->time_us - (uint64_t)bundle_unfold(step));
    }
    *e = (weir_entry){.time_us = r->time_us, .deletion = (flags & DELETION) != 0};
    if (edges) {
        if (r->end - r->at < WEIR_VERTEX_BYTES) return WEIR_BUNDLE_DAMAGED;
        e->neighbor = weir_vertex_make(weir_get_u64(r->at), weir_get_u64(r->at + 8));
        r->at += WEIR_VERTEX_BYTES;
    }
    if (!(flags & SAME_EVENT)) {
        if (r->end - r->at < 12) return WEIR_BUNDLE_DAMAGED;
        r->event = weir_get_u64(r->at);
        r->content = weir_get_u32(r->at + 8);
        r->at += 12;
    }
    e->event = r->event;
    e->content = r->content;
    if (flags & ROW && !bundle_read_row(r, e)) return WEIR_BUNDLE_DAMAGED;
    WEIR_ASSERT(r->left > 0 && r->at <= r->end);
    r->left--;
    return WEIR_BUNDLE_ENTRY;
}

bool weir_bundle_is_as_written(const weir_bundle_key *key, const void *value, size_t length) {
    return key->hash == bundle_hash(key, value, length);
}

bool weir_bundle_check(const weir_bundle_key *key, const void *value, size_t length) {
    weir_bundle_reader reader;
    weir_entry last = {0}, e;
    weir_list list = UINT32_MAX;
    int64_t newest_us = INT64_MIN, oldest_us = INT64_MAX;
    weir_bundle_step step;
    if (!weir_bundle_is_as_written(key, value, length) || !weir_bundle_open(&reader, key, value, length)) return false;
    while ((step = weir_bundle_next(&reader, &e)) == WEIR_BUNDLE_ENTRY) {
        if (list != UINT32_MAX && reader.list < list) return false;
        if (list == reader.list && weir_entry_order(&last, &e) >= 0) return false;
        list = reader.list;
        last = e;
        if (e.time_us > newest_us) newest_us = e.time_us;
        if (e.time_us < oldest_us) oldest_us = e.time_us;
    }
    if (step == WEIR_BUNDLE_DAMAGED) return false;
    if (list == UINT32_MAX) newest_us = oldest_us = reader.name.time_us; /* a name and nothing else */
    return key->newest_us == newest_us && reader.oldest_us == oldest_us &&
           key->span >= weir_bundle_span(newest_us, oldest_us);
}

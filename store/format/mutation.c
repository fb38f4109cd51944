/* SPDX-License-Identifier: Apache-2.0 */
/* mutation.c - the only code that knows the bytes of a batch. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/format/mutation.h>
#include <weir/store/format/row.h>

void weir_batch_begin(weir_buf *buf) {
    static const uint8_t header[WEIR_BATCH_HEADER_BYTES];
    weir_buf_clear(buf);
    weir_buf_append(buf, header, sizeof header);
}

void weir_batch_add(weir_buf *buf, const weir_mutation *m, uint64_t offset_begin) {
    uint8_t header[WEIR_MUTATION_HEADER_BYTES];
    uint64_t distance = m->offset - offset_begin;
    WEIR_ASSERT(m->offset >= offset_begin && distance >> 48 == 0);
    WEIR_ASSERT(m->row_length <= WEIR_ROW_BYTES_MAX && m->key_length <= WEIR_KEY_MAX);
    header[0] = (uint8_t)m->kind;
    header[1] = (uint8_t)m->direction;
    weir_put_u16(header + 2, m->type);
    weir_put_u32(header + 4, m->row_length);
    weir_put_u16(header + 8, m->key_length);
    weir_put_u16(header + 10, (uint16_t)distance);
    weir_put_u32(header + 12, (uint32_t)(distance >> 16));
    weir_put_u64(header + 16, weir_vertex_low(m->vertex));
    weir_put_u64(header + 24, weir_vertex_high(m->vertex));
    weir_put_u64(header + 32, weir_vertex_low(m->neighbor));
    weir_put_u64(header + 40, weir_vertex_high(m->neighbor));
    weir_put_u64(header + 48, (uint64_t)m->time_us);
    weir_put_u64(header + 56, m->event);
    weir_put_u32(header + 64, m->content);
    weir_buf_append(buf, header, sizeof header);
    if (m->row_length) weir_buf_append(buf, m->row, m->row_length);
    if (m->key_length) weir_buf_append(buf, m->key, m->key_length);
}

void weir_batch_end(weir_buf *buf, const weir_batch_span *span, uint32_t mutations) {
    uint8_t *header = (uint8_t *)buf->bytes;
    if (buf->failed) return;
    WEIR_ASSERT(buf->length >= WEIR_BATCH_HEADER_BYTES && buf->length <= WEIR_BATCH_BYTES_MAX);
    weir_put_u32(header + 4, (uint32_t)buf->length);
    weir_put_u32(header + 8, span->source);
    weir_put_u32(header + 12, span->partition);
    weir_put_u64(header + 16, span->offset_begin);
    weir_put_u64(header + 24, span->offset_end);
    weir_put_u32(header + 32, mutations);
    weir_put_u32(header + 36, 0);
    weir_put_u32(header, weir_crc32c(0, header + 4, buf->length - 4));
}

static uint64_t batch_distance(const uint8_t *at) {
    return (uint64_t)weir_get_u16(at + 10) | (uint64_t)weir_get_u32(at + 12) << 16;
}

static size_t batch_mutation_bytes(const uint8_t *at) {
    return WEIR_MUTATION_HEADER_BYTES + (size_t)weir_get_u32(at + 4) + weir_get_u16(at + 8);
}

/* NULL: whole. *atp is where the fault is. */
static const char *batch_fault(const uint8_t *bytes, size_t length, const weir_batch_span *span, uint32_t mutations,
                               size_t *atp) {
    uint64_t events = span->offset_end - span->offset_begin, last = 0;
    size_t at = WEIR_BATCH_HEADER_BYTES;
    for (uint32_t i = 0; i < mutations; i++) {
        const uint8_t *m = bytes + at;
        size_t left = length - at;
        *atp = at;
        if (left < WEIR_MUTATION_HEADER_BYTES) return "ends inside a mutation";
        if (m[0] < WEIR_PUT_VERTEX || m[0] > WEIR_NOTE_EVENT) return "has a mutation of an unknown kind";
        if (m[1] > WEIR_IN) return "has a mutation of an unknown direction";
        if (weir_get_u32(m + 4) > WEIR_ROW_BYTES_MAX || weir_get_u16(m + 8) > WEIR_KEY_MAX)
            return "has a mutation that is too long";
        if (batch_mutation_bytes(m) > left) return "ends inside a mutation's row or key";
        if (batch_distance(m) >= events) return "has a mutation from outside its span";
        if (batch_distance(m) < last) return "has events out of order";
        last = batch_distance(m);
        at += batch_mutation_bytes(m);
    }
    *atp = at;
    return at == length ? NULL : "has bytes behind its last mutation";
}

weir_err weir_batch_open(const void *batch, size_t length, weir_batch_cursor *cursorp) {
    const uint8_t *bytes = batch;
    size_t at = 0;
    memset(cursorp, 0, sizeof *cursorp);
    if (length < WEIR_BATCH_HEADER_BYTES || length > WEIR_BATCH_BYTES_MAX || weir_get_u32(bytes + 4) != length) {
        return WEIR_ERR(WEIR_ECORRUPT, "a batch of %zu bytes is cut or padded", length);
    }
    if (weir_get_u32(bytes) != weir_crc32c(0, bytes + 4, length - 4)) {
        return WEIR_ERR(WEIR_ECORRUPT, "a batch of %zu bytes does not have its checksum", length);
    }
    weir_batch_span span = {weir_get_u32(bytes + 8), weir_get_u32(bytes + 12), weir_get_u64(bytes + 16),
                            weir_get_u64(bytes + 24)};
    uint32_t mutations = weir_get_u32(bytes + 32);
    const char *fault = NULL;
    if (span.offset_end <= span.offset_begin) fault = "covers no event";
    if (!fault && mutations > WEIR_BATCH_MUTATIONS_MAX) fault = "has too many mutations";
    if (!fault) fault = batch_fault(bytes, length, &span, mutations, &at);
    if (fault) return WEIR_ERR(WEIR_ECORRUPT, "a batch %s, at byte %zu", fault, at);
    *cursorp = (weir_batch_cursor){bytes + WEIR_BATCH_HEADER_BYTES, bytes + length, span, mutations};
    return WEIR_OK;
}

static void batch_pass(weir_batch_cursor *cursor) {
    WEIR_ASSERT(cursor->left > 0 && batch_mutation_bytes(cursor->next) <= (size_t)(cursor->end - cursor->next));
    cursor->next += batch_mutation_bytes(cursor->next);
    cursor->left--;
}

bool weir_batch_next(weir_batch_cursor *cursor, weir_mutation *mutationp) {
    const uint8_t *at = cursor->next;
    if (cursor->left == 0) return false;
    WEIR_ASSERT(at + WEIR_MUTATION_HEADER_BYTES <= cursor->end);
    *mutationp = (weir_mutation){
        .kind = (weir_mutation_kind)at[0],
        .direction = (weir_direction)at[1],
        .type = weir_get_u16(at + 2),
        .row_length = weir_get_u32(at + 4),
        .key_length = weir_get_u16(at + 8),
        .offset = cursor->span.offset_begin + batch_distance(at),
        .vertex = weir_vertex_make(weir_get_u64(at + 24), weir_get_u64(at + 16)),
        .neighbor = weir_vertex_make(weir_get_u64(at + 40), weir_get_u64(at + 32)),
        .time_us = (int64_t)weir_get_u64(at + 48),
        .event = weir_get_u64(at + 56),
        .content = weir_get_u32(at + 64),
        .row = at + WEIR_MUTATION_HEADER_BYTES,
    };
    mutationp->key = (const char *)mutationp->row + mutationp->row_length;
    batch_pass(cursor);
    return true;
}

bool weir_batch_next_event(weir_batch_cursor *cursor, weir_batch_event *eventp) {
    while (cursor->left && cursor->next[0] == WEIR_NOTE_EVENT)
        batch_pass(cursor);
    if (!cursor->left) return false;
    uint64_t distance = batch_distance(cursor->next);
    *eventp = (weir_batch_event){cursor->span.offset_begin + distance, (int64_t)weir_get_u64(cursor->next + 48)};
    do
        batch_pass(cursor);
    while (cursor->left && batch_distance(cursor->next) == distance);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - the only functions that know the bytes of eventlog.h's tables. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>

#include "eventlog_private.h"

#define KEY_NONE     0xFFFFFFFFu
#define LAG_MAX      0xFFFFFFFFu
#define MAGIC_LENGTH 8u

static const char magic_segment[MAGIC_LENGTH + 1] = "WEIRLOG1";
static const char magic_topic[MAGIC_LENGTH + 1] = "WEIRTOP1";

_Static_assert(ELOG_VERSION == 1, "the digit in the magics");
_Static_assert(ELOG_SEGMENT_HEADER == MAGIC_LENGTH + 8 + 8 + 4 + 4, "segment header");
_Static_assert(ELOG_TOPIC_BYTES == MAGIC_LENGTH + 8 + 4 + 4, "topic file");
_Static_assert(ELOG_MARK_BYTES == 4 + 4 + 8, "mark");
_Static_assert(ELOG_RECORD_HEADER == 4 + 4 + 8 + 8 + 4 + 4, "record header");

weir_elog_origin weir_elog_origin_of(const char *topic_folder, uint64_t creation_id, uint32_t partition) {
    uint8_t bytes[12];
    weir_put_u64(bytes, creation_id);
    weir_put_u32(bytes + 8, partition);
    return (weir_elog_origin){topic_folder, creation_id, partition, weir_crc32c(0, bytes, sizeof bytes)};
}

/* A digit other than ours after our name means another version, whatever the rest of the bytes means there. */
static weir_elog_header elog_check_magic(const uint8_t *in, const char *magic) {
    if (memcmp(in, magic, MAGIC_LENGTH) == 0) return ELOG_HEADER_OURS;
    bool ours_but_version = memcmp(in, magic, MAGIC_LENGTH - 1) == 0;
    bool digit = in[MAGIC_LENGTH - 1] >= '0' && in[MAGIC_LENGTH - 1] <= '9';
    return ours_but_version && digit ? ELOG_HEADER_VERSION : ELOG_HEADER_BAD;
}

void weir_elog_segment_header_encode(uint8_t out[ELOG_SEGMENT_HEADER], const weir_elog_origin *origin, uint64_t first) {
    memcpy(out, magic_segment, MAGIC_LENGTH);
    weir_put_u64(out + 8, origin->creation_id);
    weir_put_u64(out + 16, first);
    weir_put_u32(out + 24, origin->partition);
    weir_put_u32(out + 28, weir_crc32c(0, out, 28));
}

weir_elog_header weir_elog_segment_header_check(const uint8_t in[ELOG_SEGMENT_HEADER], const weir_elog_origin *origin,
                                                uint64_t first) {
    weir_elog_header magic = elog_check_magic(in, magic_segment);
    if (magic != ELOG_HEADER_OURS) return magic;
    if (weir_get_u32(in + 28) != weir_crc32c(0, in, 28)) return ELOG_HEADER_BAD;
    bool ours = weir_get_u64(in + 8) == origin->creation_id && weir_get_u64(in + 16) == first &&
                weir_get_u32(in + 24) == origin->partition;
    return ours ? ELOG_HEADER_OURS : ELOG_HEADER_FOREIGN;
}

void weir_elog_topic_encode(uint8_t out[ELOG_TOPIC_BYTES], uint64_t creation_id, uint32_t partitions) {
    memcpy(out, magic_topic, MAGIC_LENGTH);
    weir_put_u64(out + 8, creation_id);
    weir_put_u32(out + 16, partitions);
    weir_put_u32(out + 20, weir_crc32c(0, out, 20));
}

weir_elog_header weir_elog_topic_decode(const uint8_t in[ELOG_TOPIC_BYTES], uint64_t *creation_idp,
                                        uint32_t *partitionsp) {
    *creation_idp = weir_get_u64(in + 8);
    *partitionsp = weir_get_u32(in + 16);
    weir_elog_header magic = elog_check_magic(in, magic_topic);
    if (magic != ELOG_HEADER_OURS) return magic;
    bool whole = weir_get_u32(in + 20) == weir_crc32c(0, in, 20) && *partitionsp > 0 &&
                 *partitionsp <= WEIR_EVENTLOG_PARTITIONS_MAX;
    return whole ? ELOG_HEADER_OURS : ELOG_HEADER_BAD;
}

void weir_elog_mark_encode(uint8_t out[ELOG_MARK_BYTES], const weir_elog_origin *origin, uint64_t durable) {
    weir_put_u32(out + 4, origin->partition);
    weir_put_u64(out + 8, durable);
    weir_put_u32(out, weir_crc32c(origin->salt, out + 4, ELOG_MARK_BYTES - 4));
}

bool weir_elog_mark_decode(const uint8_t in[ELOG_MARK_BYTES], uint64_t creation_id, uint32_t partitions,
                           uint32_t *partitionp, uint64_t *durablep) {
    *partitionp = weir_get_u32(in + 4);
    *durablep = weir_get_u64(in + 8);
    if (*partitionp >= partitions) return false;
    weir_elog_origin origin = weir_elog_origin_of(NULL, creation_id, *partitionp);
    return weir_get_u32(in) == weir_crc32c(origin.salt, in + 4, ELOG_MARK_BYTES - 4);
}

size_t weir_elog_record_bytes(const weir_record *record) {
    return ELOG_RECORD_HEADER + (record->key ? record->key_length : 0) + record->value_length;
}

void weir_elog_record_encode(uint8_t *out, const weir_elog_origin *origin, const weir_record *record, uint64_t offset,
                             uint64_t durable) {
    size_t length = weir_elog_record_bytes(record);
    size_t key_length = record->key ? record->key_length : 0;
    WEIR_ASSERT(length <= WEIR_EVENTLOG_RECORD_MAX && durable <= offset);
    uint64_t lag = offset - durable;
    weir_put_u32(out + 4, (uint32_t)length);
    weir_put_u64(out + 8, offset);
    weir_put_u64(out + 16, (uint64_t)record->time_us);
    weir_put_u32(out + 24, record->key ? (uint32_t)key_length : KEY_NONE);
    weir_put_u32(out + 28, lag < LAG_MAX ? (uint32_t)lag : LAG_MAX);
    if (key_length) memcpy(out + ELOG_RECORD_HEADER, record->key, key_length);
    if (record->value_length) memcpy(out + ELOG_RECORD_HEADER + key_length, record->value, record->value_length);
    weir_put_u32(out, weir_crc32c(origin->salt, out + 4, length - 4));
}

size_t weir_elog_record_length(const uint8_t *header) {
    uint32_t length = weir_get_u32(header + 4);
    return length >= ELOG_RECORD_HEADER && length <= WEIR_EVENTLOG_RECORD_MAX ? length : 0;
}

uint64_t weir_elog_record_offset(const uint8_t *header) {
    return weir_get_u64(header + 8);
}

int64_t weir_elog_record_time(const uint8_t *header) {
    return (int64_t)weir_get_u64(header + 16);
}

/* A lag of LAG_MAX or more claims nothing: which offset was durable is no longer known. */
uint64_t weir_elog_record_claim(const uint8_t *header) {
    uint64_t offset = weir_elog_record_offset(header);
    uint32_t lag = weir_get_u32(header + 28);
    return lag < LAG_MAX && lag <= offset ? offset - lag : 0;
}

bool weir_elog_record_decode(const uint8_t *bytes, size_t length, const weir_elog_origin *origin,
                             weir_record *recordp) {
    WEIR_ASSERT(length >= ELOG_RECORD_HEADER && length <= WEIR_EVENTLOG_RECORD_MAX); /* weir_elog_record_length */
    if (weir_get_u32(bytes) != weir_crc32c(origin->salt, bytes + 4, length - 4)) return false;
    uint32_t key_field = weir_get_u32(bytes + 24);
    size_t key_length = key_field == KEY_NONE ? 0 : key_field;
    if (key_length > length - ELOG_RECORD_HEADER) return false;
    const uint8_t *key = bytes + ELOG_RECORD_HEADER;
    *recordp = (weir_record){
        .offset = weir_elog_record_offset(bytes),
        .time_us = weir_elog_record_time(bytes),
        .key = key_field == KEY_NONE ? NULL : key,
        .key_length = key_length,
        .value = key + key_length,
        .value_length = length - ELOG_RECORD_HEADER - key_length,
    };
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - a message becomes mutations, as the schema's source says; or a reason why not.
 *
 * A mapper is compiled from one source of a schema: field paths, conditions and feature columns are resolved once, so
 * that a message costs one pass over its bytes. Messages are hostile: each is validated whole before a mutation comes
 * out, and a bad one gives a reason, which names field and byte where it has them, never a half-applied event.
 */
#ifndef WEIR_INGEST_MAP_MAP_H
#define WEIR_INGEST_MAP_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/format/mutation.h>
#include <weir/store/schema/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MESSAGE_BYTES_MAX (1u << 20)
#define WEIR_MESSAGE_DEPTH_MAX 32u
#define WEIR_MAP_MUTATIONS_MAX WEIR_EVENT_MUTATIONS_MAX

typedef struct weir_mapper weir_mapper;

/* The result of one message: valid until the mapper is given another one, or a tombstone, and as long as the message's
 * bytes (of a tombstone, its key's) stay: texts without escapes are not copied. */
typedef struct weir_mapped {
    const weir_mutation *mutations; /* NULL when refused, and of a tombstone that means nothing */
    size_t count;
    uint64_t event;
    uint32_t content; /* a hash of what it says: two messages with one id are the same event if it is the same */
    int64_t time_us;
    const char *event_id; /* as the message spells it; borrowed; NULL: of a tombstone, which names none */
    size_t event_id_length;
} weir_mapped;

/* source_index: as weir_schema numbers its sources. The schema is borrowed. id_key: that of the store that the
 * mutations are for (weir_graph_id_key), or weir_id_key_public where they are for none; copied.  WEIR_ENOMEM.
 * [owner] */
weir_err weir_mapper_open(const weir_schema *schema, size_t source_index, const weir_id_key *id_key,
                          weir_mapper **mapperp);
/* One message. The offset stands in the mutations; a message that does not name its event is refused.  [owner]
 * WEIR_EDATA the sentence is the dead letter's reason: "field 'amount' (byte 120): not a number".  WEIR_ENOMEM. */
weir_err weir_mapper_map(weir_mapper *mapper, uint32_t partition, uint64_t offset, const void *message, size_t length,
                         weir_mapped *mappedp);
/* Of the message that was mapped last: an event of a later time than latest_us is refused, with the sentence of its
 * dead letter. The event's time is the only one: it is that of all its mutations; a feature that is a time is data.
 * [owner]  WEIR_EDATA. */
weir_err weir_mapper_check_time(const weir_mapper *mapper, int64_t latest_us);
/* A record without a value (see `tombstone` of weir_schema_source); topic, partition and offset are the event's
 * identity. No mutation: it is to be passed over.  [owner]
 * WEIR_EDATA as above; WEIR_ENOMEM. */
weir_err weir_mapper_tombstone(weir_mapper *mapper, uint32_t partition, uint64_t offset, int64_t time_us,
                               const void *key, size_t key_length, weir_mapped *mappedp);
void weir_mapper_close(weir_mapper *mapper); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_MAP_MAP_H */

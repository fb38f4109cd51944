/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_private.h - a source as the mapper has compiled it.
 *
 * A message names each of its vertices several times: a payment is an end of five edges. So each pair of a key and a
 * vertex type that the rules speak of is one `weir_end`, worked out once a message.
 */
#ifndef WEIR_INGEST_MAP_PRIVATE_H
#define WEIR_INGEST_MAP_PRIVATE_H

#include <weir/ingest/map/map.h>
#include <weir/store/format/row.h>

#include "value.h"

#define WEIR_RULES_ENDS_MAX (2u * WEIR_SCHEMA_MUTATIONS_MAX)

typedef struct weir_end {
    const weir_schema_key *parts;
    const char *type_name;
    uint16_t type;
    bool integer;
    /* of the message in hand */
    uint64_t message; /* the one that the rest is of                 */
    bool put;         /* the message has a mutation that puts it     */
    uint16_t key_length;
    const char *key;
    weir_vertex vertex;
} weir_end;

/* A mutation of the schema with its ends and the kinds of its features resolved. */
typedef struct weir_rule {
    const weir_schema_mutation *schema;
    weir_end *from, *to; /* the vertex's own key is `from`; NULL where there is none */
    weir_value_kind *kinds;
    uint32_t kind_count;
} weir_rule;

struct weir_mapper {
    const weir_schema *schema;
    const weir_schema_source *source;
    weir_id_key id_key;
    weir_paths *paths;         /* JSON */
    uint32_t *field_of_column; /* CSV; as many as columns */
    weir_rule *rules;          /* as many as mutations    */
    weir_end ends[WEIR_RULES_ENDS_MAX];
    weir_end gone; /* what a tombstone deletes */
    uint32_t end_count;
    weir_value *values; /* of the widest row */
    weir_arena *arena;  /* of one message    */
    weir_cell *cells;   /* one a field       */
    weir_mutation mutations[WEIR_MAP_MUTATIONS_MAX];
    size_t count;
    /* of the message in hand */
    uint64_t message; /* counts them */
    uint64_t offset, event;
    uint32_t content;
    int64_t time_us;
};

/* key.c: the text of a key: 1 to WEIR_KEY_MAX bytes, borrowed from the message or the arena.  WEIR_EDATA,
 * WEIR_ENOMEM. */
weir_err weir_map_key(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp);
/* Works the end out, unless the message has already. */
weir_err weir_map_end(weir_mapper *mapper, weir_end *end);

/* Works the end out of the text that names it. */
weir_err weir_map_end_named(weir_mapper *mapper, weir_end *end, const char *text, size_t length);

/* row.c: the row that a rule assigns; NULL when it assigns nothing, or all that it assigns is optional and absent. */
weir_err weir_map_row(weir_mapper *mapper, const weir_rule *rule, weir_mutation *m);
/* The row of a label: its one value, which must be one of the label's. */
weir_err weir_map_label_row(weir_mapper *mapper, const weir_rule *rule, const weir_schema_label *label,
                            weir_mutation *m);

/* rules.c */
weir_err weir_map_rules_open(weir_mapper *mapper);
void weir_map_rules_close(weir_mapper *mapper);

weir_err weir_map_no_memory(void);
static inline const char *weir_map_path(const weir_mapper *mapper, uint32_t field) {
    return mapper->source->fields[field].path;
}

#endif /* WEIR_INGEST_MAP_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - what the graph is made of, and how messages become it.
 *
 * One YAML text declares vertex types, relations, their features, streaming aggregates, labels, tasks and sources.
 * The language is explained in store/schema/README.md. Parsing checks everything: what the accessors hand out
 * needs no further check.
 *
 * INVARIANTS
 *   SCHEMA-H1  parse(print(s)) prints the same text: the canonical form is a fixed point, with every default in it but
 *              `history: all`, which is younger than the hashes. So are `label` and `is` of an aggregate, which have
 *              no default.
 *   SCHEMA-H2  The hash is that of the canonical text: comments, layout, quoting, spelled-out defaults and the order of
 *              keys within a definition do not change it. The order of definitions does: it is their numbering.
 *   SCHEMA-H3  An id is the place of a definition in its section, a feature's index its place in its owner. Hot paths
 *              use only these; names are for people.
 *   SCHEMA-H4  If weir_schema_compatible(stored, offered), every id that stored data can hold means the same in both.
 *
 * OWNERSHIP: accessors return borrowed values that live as long as the handle.
 * THREADS:   a schema is read-only after parse, then [any].
 */
#ifndef WEIR_STORE_SCHEMA_SCHEMA_H
#define WEIR_STORE_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/format/row.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SCHEMA_LANGUAGE 1u         /* the `version` that this program reads */
#define WEIR_SCHEMA_NONE     UINT32_MAX /* an id that there is not               */

/* Limits; each is an error one past it, with its place. */
#define WEIR_SCHEMA_NAME_BYTES_MAX       64u
#define WEIR_SCHEMA_TEXT_BYTES_MAX       WEIR_ROW_TEXT_MAX /* a listed value, a path, a default: rows hold no more */
#define WEIR_SCHEMA_TOPIC_BYTES_MAX      249u              /* Kafka's own limit                       */
#define WEIR_SCHEMA_VERTICES_MAX         256u
#define WEIR_SCHEMA_RELATIONS_MAX        256u
#define WEIR_SCHEMA_FEATURES_MAX         256u /* of one vertex type or relation          */
#define WEIR_SCHEMA_AGGREGATES_MAX       256u
#define WEIR_SCHEMA_LABELS_MAX           64u
#define WEIR_SCHEMA_TASKS_MAX            64u
#define WEIR_SCHEMA_SOURCES_MAX          64u
#define WEIR_SCHEMA_MUTATIONS_MAX        64u  /* of one source                           */
#define WEIR_SCHEMA_FIELDS_MAX           512u /* of one source's messages                */
#define WEIR_SCHEMA_PATH_NAMES_MAX       8u   /* "user.address.country" has 3            */
#define WEIR_SCHEMA_KEY_PARTS_MAX        4u
#define WEIR_SCHEMA_CONDITIONS_MAX       8u /* of one mutation                           */
#define WEIR_SCHEMA_VALUES_MAX           4096u
#define WEIR_SCHEMA_LABEL_VALUES_MAX     256u
#define WEIR_SCHEMA_CATEGORY_BUCKETS_MAX (1u << 24)
#define WEIR_SCHEMA_WINDOW_BUCKETS_MAX   1024u                           /* window / resolution of an aggregate    */
#define WEIR_SCHEMA_DURATION_US_MAX      (36525ll * 86400ll * 1000000ll) /* 100 years    */

typedef struct weir_schema weir_schema;

/* --- values, all borrowed ------------------------------------------------------------------------------------ */

/* Listed texts: their index is their number, in the order of the schema. */
typedef struct weir_schema_values {
    const char *const *texts;
    const uint32_t *sorted; /* indices in byte order of the texts, for weir_schema_values_find */
    uint32_t count;
} weir_schema_values;

typedef enum weir_schema_feature_kind {
    WEIR_SCHEMA_NUMBER,   /* a float                                                 */
    WEIR_SCHEMA_CATEGORY, /* a slot: see weir_schema_category                        */
    WEIR_SCHEMA_TIME      /* microseconds since 1970; seen as age by whoever looks   */
} weir_schema_feature_kind;

/* How a model scales a number; what it needs for that is learnt in training and stored in the model. */
typedef enum weir_schema_normalise {
    WEIR_SCHEMA_NORMALISE_NONE,
    WEIR_SCHEMA_NORMALISE_STANDARD,     /* (x - mean) / deviation                        */
    WEIR_SCHEMA_NORMALISE_LOG_STANDARD, /* the same, of sign(x) * log(1 + |x|)           */
    WEIR_SCHEMA_NORMALISE_MIN_MAX       /* (x - min) / (max - min)                       */
} weir_schema_normalise;

typedef struct weir_schema_feature {
    const char *name;
    weir_schema_feature_kind kind;
    weir_schema_normalise normalise; /* numbers                                                    */
    uint32_t buckets;                /* categories: hashed into so many; 0: looked up in values    */
    weir_schema_values values;       /* categories that are looked up                              */
} weir_schema_feature;

typedef enum weir_schema_key_kind {
    WEIR_SCHEMA_KEY_TEXT,
    WEIR_SCHEMA_KEY_INTEGER /* 64-bit signed; 7, "7" and "007" are one vertex. Never of several parts */
} weir_schema_key_kind;

typedef struct weir_schema_vertex {
    const char *name;
    weir_schema_key_kind key;
    int64_t expire_us;  /* forgotten so long after it was last put; 0: never           */
    int64_t history_us; /* how far back it can be asked about; 0: any time             */
    const weir_schema_feature *features;
    uint32_t feature_count;
} weir_schema_vertex;

typedef struct weir_schema_relation {
    const char *name;
    uint32_t from, to;  /* vertex types                                                */
    int64_t expire_us;  /* an edge of this age is gone; 0: never                       */
    int64_t history_us; /* how far back its edges can be asked for; 0: any time        */
    const weir_schema_feature *features;
    uint32_t feature_count;
} weir_schema_relation;

typedef enum weir_schema_direction {
    WEIR_SCHEMA_OUT, /* edges that start at the vertex */
    WEIR_SCHEMA_IN   /* edges that end at it           */
} weir_schema_direction;

typedef enum weir_schema_function {
    WEIR_SCHEMA_COUNT,
    WEIR_SCHEMA_SUM,
    WEIR_SCHEMA_MEAN,
    WEIR_SCHEMA_MAX,
    WEIR_SCHEMA_DISTINCT, /* how many different neighbours, or values of a category */
    WEIR_SCHEMA_MIN,
    WEIR_SCHEMA_DEVIATION,
    WEIR_SCHEMA_SINCE_LAST,  /* seconds from the newest edge to t; without one, the window's */
    WEIR_SCHEMA_SINCE_FIRST, /* seconds from the oldest edge to t; without one, 0            */
    WEIR_SCHEMA_DEPTH,       /* of a walk: how many steps in a row meet anybody, the edges of the last among them */
    WEIR_SCHEMA_NEWEST       /* the number of the newest edge that has one */
} weir_schema_function;

#define WEIR_SCHEMA_THROUGH_MAX 8u
#define WEIR_SCHEMA_CROWD       16u /* if the schema does not say */
#define WEIR_SCHEMA_CROWD_MAX   48u

/* From a vertex to its neighbours. */
typedef struct weir_schema_walk {
    uint32_t relation;
    weir_schema_direction direction;
} weir_schema_walk;

/* Of an ordered walk: of an edge's number, how much the edge of the same relation has by which the walk came to it. The
 * relation is the aggregate's; its edges lead on where that is from `least` to `most`, and where there was none yet. */
typedef struct weir_schema_share {
    uint32_t of; /* feature of the relation; NONE: all lead on */
    double least, most;
} weir_schema_share;

/* A function of (vertex, relation, time t): over the edges with t - window <= time < t, of very many of them over the
 * newest (aggregate.h). With a label, over those of them whose neighbour was told before t to be one of `is`. */
typedef struct weir_schema_aggregate {
    const char *name;
    uint32_t vertex; /* type */
    /* Of a pair: two relations whose edges lead from the vertex to the two ends, and edges of `relation` are those
     * between the ends, in the direction as seen from the first. Of an end: the second is NONE, and the edges are those
     * of the first end. Both NONE: edges of the vertex itself. */
    uint32_t between[2];
    /* The edges are those of the vertices that a walk from the first end meets, instead of those of the end itself. A
     * vertex with more than `crowd` different neighbours leads the walk nowhere. */
    weir_schema_walk through[WEIR_SCHEMA_THROUGH_MAX];
    uint32_t through_count; /* 0: no walk */
    /* Edges of a step are not newer than the one by which their vertex was met, and at most a window older. */
    bool ordered;
    weir_schema_share share;
    uint32_t crowd;
    uint32_t relation;
    weir_schema_direction direction;
    weir_schema_function function;
    uint32_t of;        /* feature of the relation; NONE for count, and for distinct neighbours */
    uint32_t ratio;     /* feature of between[0]: the edge's number is divided by what the function gives; or NONE */
    uint32_t label;     /* of the type at the other end of the relation; NONE: every edge counts */
    const uint32_t *is; /* rising indices of the label's values; none without a label */
    uint32_t is_count;
    int64_t window_us;
    int64_t
        resolution_us; /* 0: exact. Else the window begins at a multiple of this since 1970, at or before t - window */
    weir_schema_normalise normalise;
} weir_schema_aggregate;

typedef struct weir_schema_label {
    const char *name;
    bool on_relation; /* target is a relation, else a vertex type */
    uint32_t target;
    weir_schema_values values;
    uint32_t absent; /* index of the value of a target that got no label in time; NONE: such a target is unlabelled */
    int64_t lag_us;  /* how long after its target a label may come */
} weir_schema_label;

typedef enum weir_schema_task_kind { WEIR_SCHEMA_CLASSIFY, WEIR_SCHEMA_RECOMMEND } weir_schema_task_kind;

typedef enum weir_schema_moment {
    WEIR_SCHEMA_AT_PUT,  /* a target is judged as of when it was first put */
    WEIR_SCHEMA_AT_LABEL /* … as of each of its labels                     */
} weir_schema_moment;

typedef struct weir_schema_task {
    const char *name;
    weir_schema_task_kind kind;
    /* classify */
    uint32_t label;
    const uint32_t *positive; /* rising indices of the label's values: a yes-or-no question; none: one class a value */
    uint32_t positive_count;
    weir_schema_moment moment;
    int64_t maturity_us; /* a target is trained on only when so old; AT_PUT only */
    /* recommend: vertices at `to` of the relation for vertices at `from` */
    uint32_t relation;
    bool repeat; /* may recommend what the vertex has already */
    /* what must come within this time of the moment (a label; an edge) to count; 0: at any time; not AT_LABEL */
    int64_t horizon_us;
} weir_schema_task;

typedef enum weir_schema_format { WEIR_SCHEMA_JSON, WEIR_SCHEMA_CSV } weir_schema_format;

typedef enum weir_schema_time_format {
    WEIR_SCHEMA_RFC3339,
    WEIR_SCHEMA_S, /* this and those below: since 1970; fractions are allowed, what is below a microsecond is dropped */
    WEIR_SCHEMA_MS,
    WEIR_SCHEMA_US
} weir_schema_time_format;

/* One place in the messages of a source. Ingest reads all fields of a message once; the rest names them by index. */
typedef struct weir_schema_field {
    const char *path;         /* "user.address.country"; a dot inside a name is written \.       */
    const char *const *names; /* its names, unescaped                                            */
    uint32_t name_count;
    uint32_t column; /* of a CSV line; NONE for JSON */
} weir_schema_field;

/* Several parts are joined by '|', with '\' put before each '|' and '\' of a part; one part is taken as it is. */
typedef struct weir_schema_key {
    uint32_t fields[WEIR_SCHEMA_KEY_PARTS_MAX];
    uint32_t count; /* 0: not given */
} weir_schema_key;

typedef enum weir_schema_presence {
    WEIR_SCHEMA_REQUIRED, /* a message without the field is a dead letter      */
    WEIR_SCHEMA_OPTIONAL, /* the feature is left as it is                      */
    WEIR_SCHEMA_DEFAULT,  /* the constant stands in                            */
    WEIR_SCHEMA_CONSTANT  /* there is no field                                 */
} weir_schema_presence;

typedef struct weir_schema_assignment {
    uint32_t feature; /* of the vertex type or relation; NONE for the value of a label */
    uint32_t field;   /* NONE: a constant                                              */
    weir_schema_presence presence;
    weir_schema_time_format time_format; /* time features */
    const char *text;                    /* the constant of a category or a label */
    double number;                       /* the constant of a number                             */
    uint32_t slot; /* the constant of a category (see weir_schema_category); of a label: its value's index */
} weir_schema_assignment;

typedef enum weir_schema_test {
    WEIR_SCHEMA_HAS,   /* the field is there: in JSON not null, in CSV not empty */
    WEIR_SCHEMA_LACKS, /* it is not                                              */
    WEIR_SCHEMA_IS,    /* it is there and its text is one of values              */
    WEIR_SCHEMA_IS_NOT /* not IS                                                 */
} weir_schema_test;

typedef struct weir_schema_condition {
    weir_schema_test test;
    uint32_t field;
    weir_schema_values values;
} weir_schema_condition;

typedef enum weir_schema_verb {
    WEIR_SCHEMA_PUT_VERTEX,
    WEIR_SCHEMA_PUT_EDGE,
    WEIR_SCHEMA_PUT_LABEL,
    WEIR_SCHEMA_DELETE_VERTEX,
    WEIR_SCHEMA_DELETE_EDGE
} weir_schema_verb;

typedef struct weir_schema_mutation {
    weir_schema_verb verb;
    uint32_t subject;             /* vertex type, relation or label, as the verb says                          */
    weir_schema_key key;          /* of the vertex; of a label's vertex                                        */
    weir_schema_key from, to;     /* of the edge; of a label's edge                                            */
    weir_schema_key event;        /* id of the event that put the edge; delete_edge without it: all from .. to */
    weir_schema_assignment value; /* put_label                                          */
    const weir_schema_condition *conditions;   /* all must hold                                      */
    const weir_schema_assignment *assignments; /* rising by feature                                  */
    uint32_t condition_count;
    uint32_t assignment_count;
} weir_schema_mutation;

typedef struct weir_schema_source {
    const char *name;
    const char *topic;
    weir_schema_format format;
    char separator;             /* CSV */
    weir_schema_values columns; /* CSV */
    const weir_schema_field *fields;
    uint32_t field_count;
    weir_schema_key id; /* of the event */
    uint32_t time_field;
    weir_schema_time_format time_format;
    const weir_schema_mutation *mutations; /* in the order in which they are applied */
    uint32_t mutation_count;
    uint32_t tombstone; /* vertex type: a record of Kafka without a value deletes the one that its key names; or
                           WEIR_SCHEMA_NONE: it is passed over */
} weir_schema_source;

/* --- the handle ---------------------------------------------------------------------------------------------- */

/* Parses and checks; name stands for the file in messages.
 * WEIR_ECONFIG "name:line:column: what; what to do", at the first fault; but "name: what" if it is too large only once
 * its defaults are spelled out; WEIR_ENOMEM.  [any] */
weir_err weir_schema_parse(const char *name, const char *text, size_t length, weir_schema **schemap);
/* The same, of a file.  WEIR_ENOTFOUND and the like from file.h besides.  Blocks on the disk.  [any] */
weir_err weir_schema_load(const char *path, weir_schema **schemap);
/* The operand of a command: the name of a shipped schema, or else the path of a file; a file of the same name as a
 * shipped schema goes by "./payments". As the two above; WEIR_ENOTFOUND names the nearest shipped one.  Blocks on the
 * disk.  [any] */
weir_err weir_schema_load_named(const char *operand, weir_schema **schemap);
/* NULL is allowed.  [owner] */
void weir_schema_free(weir_schema *schema);

/* Whether a definition may have this name: a letter, then letters, digits, _ and -, all in ASCII, at most
 * WEIR_SCHEMA_NAME_BYTES_MAX.  [any] */
bool weir_schema_is_name(const char *text);
const char *weir_schema_name(const weir_schema *schema);
/* XXH3-64 of the canonical text (SCHEMA-H2). */
uint64_t weir_schema_hash(const weir_schema *schema);
/* The canonical text (SCHEMA-H1); a failure is in the buffer's own error. */
void weir_schema_print(const weir_schema *schema, weir_buf *out);

/* How many there are; the one of this id, which must be below that; the id of this name, or WEIR_SCHEMA_NONE.  [any] */
uint32_t weir_schema_vertex_count(const weir_schema *schema);
const weir_schema_vertex *weir_schema_vertex_at(const weir_schema *schema, uint32_t id);
uint32_t weir_schema_vertex_find(const weir_schema *schema, const char *name);
uint32_t weir_schema_relation_count(const weir_schema *schema);
const weir_schema_relation *weir_schema_relation_at(const weir_schema *schema, uint32_t id);
uint32_t weir_schema_relation_find(const weir_schema *schema, const char *name);
uint32_t weir_schema_aggregate_count(const weir_schema *schema);
const weir_schema_aggregate *weir_schema_aggregate_at(const weir_schema *schema, uint32_t id);
uint32_t weir_schema_aggregate_find(const weir_schema *schema, const char *name);
uint32_t weir_schema_label_count(const weir_schema *schema);
const weir_schema_label *weir_schema_label_at(const weir_schema *schema, uint32_t id);
uint32_t weir_schema_label_find(const weir_schema *schema, const char *name);
uint32_t weir_schema_task_count(const weir_schema *schema);
const weir_schema_task *weir_schema_task_at(const weir_schema *schema, uint32_t id);
uint32_t weir_schema_task_find(const weir_schema *schema, const char *name);
uint32_t weir_schema_source_count(const weir_schema *schema);
const weir_schema_source *weir_schema_source_at(const weir_schema *schema, uint32_t id);
uint32_t weir_schema_source_find(const weir_schema *schema, const char *name);

/* Whether an aggregate counts by this label.  [any] */
bool weir_schema_label_counts(const weir_schema *schema, uint32_t label);
/* Index in features, or WEIR_SCHEMA_NONE.  [any] */
uint32_t weir_schema_feature_find(const weir_schema_feature *features, uint32_t count, const char *name);
/* Index of this text, or WEIR_SCHEMA_NONE; logarithmic.  [any] */
uint32_t weir_schema_values_find(const weir_schema_values *values, const char *text, size_t length);
/* The slot of a category's text: 0 for a text that is not listed (a missing feature uses it too), 1 + its index when
 * listed, 1 + XXH3-64 modulo buckets when hashed. The same in ingest, training and serving.  [any] */
uint32_t weir_schema_category(const weir_schema_feature *feature, const char *text, size_t length);
/* Slots of a category, the 0th included.  [any] */
uint32_t weir_schema_category_slots(const weir_schema_feature *feature);

/* --- two schemas --------------------------------------------------------------------------------------------- */

/* Whether data stored under one schema can be opened under another (SCHEMA-H4): nothing removed, renumbered or of
 * changed meaning; new definitions, features and listed values at the end of theirs. Tasks, normalisation, expiry,
 * history, the `absent` and `lag` of a label and how messages are mapped may change freely, but neither the schema's
 * name nor a source's topic.
 * WEIR_EVERSION the first difference that breaks it, and what to do; WEIR_ENOMEM.  [any] */
weir_err weir_schema_compatible(const weir_schema *stored, const weir_schema *offered);

/* sentence is one difference, borrowed for the call; breaks: stored data does not survive it. */
typedef weir_err (*weir_schema_difference)(void *context, bool breaks, const char *sentence);
/* Calls visit for each difference until it returns an error, which is passed on. Settings on which stored data does not
 * depend, but for the normalisation of features, are one difference a definition, told only where it has no other.
 * WEIR_ENOMEM.  [any] */
weir_err weir_schema_compare(const weir_schema *stored, const weir_schema *offered, weir_schema_difference visit,
                             void *context);

/* --- shipped with the program -------------------------------------------------------------------------------- */

typedef struct weir_schema_shipped {
    const char *name;
    const char *text; /* as written, with its comments; ended by 0 */
    size_t length;
} weir_schema_shipped;

size_t weir_schema_shipped_count(void);
const weir_schema_shipped *weir_schema_shipped_at(size_t index);       /* sorted by name */
const weir_schema_shipped *weir_schema_shipped_find(const char *name); /* NULL: none */
/* The sentence for a name that weir_schema_shipped_find does not find: WEIR_ENOTFOUND "no WHAT 'NAME'", with the
 * nearest shipped one. */
weir_err weir_schema_shipped_missing(const char *what, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SCHEMA_SCHEMA_H */

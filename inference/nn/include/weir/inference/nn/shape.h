/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h - what a network is made for: its inputs, its steps and its sizes, and how an input becomes floats.
 *
 * Made once from a schema and options; training learns the scales; then it is written into the model folder as JSON and
 * read back by whoever serves. What is read needs no schema: names and numbers are in it. weir_nn_shape_fits says
 * whether a schema still means the same by them.
 *
 *   numbers of a vertex type or relation, in columns:
 *     each number feature    [value, scaled | 1 when missing]                        missing: also when not finite
 *     each time feature      [log(1 + age in seconds), scaled | 1 when missing]      age: at the target's time
 *     each aggregate         [value, scaled]                                         vertex types only; 0 when missing
 *     each matrix            [its columns, of an import's arrays]                    vertex types only; no learnt scale
 *   slots of a vertex type: one a category feature, and the last one for the vertex itself, where some of its type are
 *     KNOWN: each of them has an embedding of its own. Any other vertex has none: WEIR_NO_SLOT
 *
 * INVARIANTS
 *   NN-N1  read(print(shape)) prints the same bytes, and encodes to the same floats.
 *   NN-N2  A stored row and its values, each by its own way, are the same floats.
 *   NN-N3  A scale is learnt in double and in the order of the values: the same order, the same scale.
 *
 * THREADS: a shape is read-only once its scales are set, then [any].
 */
#ifndef WEIR_INFERENCE_NN_SHAPE_H
#define WEIR_INFERENCE_NN_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/base/json.h>
#include <weir/store/format/row.h>
#include <weir/store/sample/block.h>
#include <weir/store/schema/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_NN_LANGUAGE       1u /* of the JSON */
#define WEIR_NN_HIDDEN_MAX     1024u
#define WEIR_NN_LAYERS_MAX     WEIR_SAMPLE_HOPS_MAX
#define WEIR_NN_OUTPUTS_MAX    WEIR_SCHEMA_LABEL_VALUES_MAX
#define WEIR_NN_PARAMETERS_MAX ((uint64_t)1 << 30)
#define WEIR_NN_MATRICES_MAX   16u                 /* of one vertex type */
#define WEIR_NN_COLUMNS_MAX    ((uint32_t)1 << 20) /* of one matrix */

typedef struct weir_nn_shape weir_nn_shape;

/* An array beside a vertex type, which only imported snapshots have. A plain value. */
typedef struct weir_nn_matrix {
    const char *name;
    uint32_t columns;
    bool unit;       /* each row is divided by its length: long and short ones weigh the same */
    uint32_t column; /* of the numbers, where it begins; the shape says */
} weir_nn_matrix;

/* Which type has it. */
typedef struct weir_nn_matrix_of {
    uint32_t type;
    weir_nn_matrix matrix;
} weir_nn_matrix_of;

/* Which vertices of a type have embeddings of their own. A plain value. */
typedef struct weir_nn_known {
    uint32_t type;
    const uint64_t *ids; /* low halves, ascending, each once */
    uint64_t count;      /* at least 1 */
} weir_nn_known;

/* How the children of a step become what their parent gets of them; nn.h has the formulas. */
typedef enum weir_nn_network {
    WEIR_NN_MEAN,      /* GraphSAGE with means                                  */
    WEIR_NN_ATTENTION, /* GATv2, with what is known of the edges in the scores  */
    WEIR_NN_GAT,       /* as GAT scores                                         */
    WEIR_NN_GCN,       /* sums, normalised by degrees                           */
    WEIR_NN_MAX,       /* the most of each column                               */
    WEIR_NN_GIN,       /* sums, and two layers of what they say                 */
    WEIR_NN_PNA,       /* mean, most and deviation, each scaled by how many     */
    WEIR_NN_NETWORKS
} weir_nn_network;

#define WEIR_NN_HEADS_DEFAULT 4u

/* What the head sees of a target, of the layers' rows of it. */
typedef enum weir_nn_jump {
    WEIR_NN_JUMP_NONE,   /* the last layer's                     */
    WEIR_NN_JUMP_CONCAT, /* all, one behind the other            */
    WEIR_NN_JUMP_MAX,    /* of each column the most of any layer */
    WEIR_NN_JUMPS
} weir_nn_jump;

/* Where the layer norms stand. */
typedef enum weir_nn_norm {
    WEIR_NN_NORM_LAYER,  /* behind what a layer makes                                                    */
    WEIR_NN_NORM_STREAM, /* behind what residual layers add up, which goes on to the next one without it */
    WEIR_NN_NORM_NONE,   /* nowhere                                                                      */
    WEIR_NN_NORMS
} weir_nn_norm;

typedef struct weir_nn_opts {
    uint32_t task;                 /* of the schema: a classification of vertices             */
    uint32_t hidden;               /* width; 0: 64                                            */
    const weir_sample_step *steps; /* of the sampler; their hops are the layers; copied       */
    uint32_t step_count;
    uint32_t window;                   /* of the sampler; 0: WEIR_SAMPLE_WINDOW                                 */
    const weir_nn_matrix_of *matrices; /* by rising type; copied                              */
    uint32_t matrix_count;
    const weir_nn_known *known; /* at most one a type; copied                                  */
    uint32_t known_count;
    bool bare;         /* no encoder where none is needed: types that have numbers, and nothing that is looked up    */
    bool residual;     /* a layer adds to what it saw of a vertex, from the second one on */
    bool feed_forward; /* a layer that does not answer has a second dense layer behind its relu */
    bool headless;     /* the last layer says the logits: as wide as these, one head, nothing behind its bias */
    weir_nn_norm norm;
    weir_nn_jump jump;
    weir_nn_network network;
    uint32_t heads; /* of a network with attention: parts of the width with scores of their own; 0: 4 */
} weir_nn_opts;

typedef enum weir_nn_number_kind {
    WEIR_NN_VALUE,    /* a number feature */
    WEIR_NN_AGE,      /* a time feature   */
    WEIR_NN_AGGREGATE /* of the schema    */
} weir_nn_number_kind;

/* What the normalisation needs; {0, 1, 0, 1} before anything was learnt. A plain value. */
typedef struct weir_nn_scale {
    double mean, deviation, min, max;
} weir_nn_scale;

typedef struct weir_nn_number {
    const char *name;
    weir_nn_number_kind kind;
    weir_schema_normalise normalise; /* an age: standard */
    uint32_t source;                 /* index of the feature; id of the aggregate */
    uint32_t column;                 /* the flag of a missing value or age stands in the next */
    weir_nn_scale scale;
} weir_nn_number;

typedef struct weir_nn_category {
    const char *name;
    uint32_t feature; /* WEIR_SCHEMA_NONE: it is the vertex itself, behind all features */
    uint32_t slots;
} weir_nn_category;

/* Inputs of one vertex type or relation. A plain value. */
typedef struct weir_nn_inputs {
    const char *name;
    const weir_nn_number *numbers; /* features in their order, then aggregates */
    const weir_nn_category *categories;
    const weir_nn_matrix *matrices; /* behind the numbers, in their columns */
    const weir_value_kind *kinds;   /* of every feature, as store/format/row.h wants them */
    /* Low halves of ids, ascending; the place of one is its slot. NULL: none, or not told yet. */
    const uint64_t *known;
    uint32_t number_count, category_count, feature_count, aggregate_count, matrix_count, known_count;
    uint32_t width; /* columns of the numbers and matrices */
    bool timed;     /* ages or aggregates: the floats of a vertex differ from time to time */
    bool bare;      /* layer 1 sees these columns as they are, and no encoder's            */
} weir_nn_inputs;

/* WEIR_EINVAL options out of range; WEIR_ECONFIG this network cannot learn the task: says why and what to do;
 * WEIR_EDATA ids of known vertices do not ascend; WEIR_ELIMIT more than WEIR_NN_PARAMETERS_MAX parameters, counting
 * those of types and steps that are out of reach, and an id of a known vertex as two; WEIR_ENOMEM.  [any] */
weir_err weir_nn_shape_open(const weir_schema *schema, const weir_nn_opts *opts, weir_nn_shape **shapep);
/* As one JSON object; a failure is in the buffer's own error.  [any] */
void weir_nn_shape_print(const weir_nn_shape *shape, weir_json *json);
/* From text that nobody trusts: everything is checked, down to the last column. name stands for the file in messages.
 * WEIR_EDATA with the place; WEIR_ELIMIT very many values; WEIR_ENOMEM.  [any] */
weir_err weir_nn_shape_read(const char *name, const char *text, size_t length, weir_nn_shape **shapep);
/* The same, of an object inside a document.  WEIR_EDATA; WEIR_ENOMEM. */
weir_err weir_nn_shape_read_node(const weir_json_node *root, weir_nn_shape **shapep);
/* What the text of a shape does not hold: its known vertices, of which it has the number alone. To be told before the
 * type is encoded.  WEIR_EDATA it is another number of ids, or they do not ascend; WEIR_ENOMEM.  [owner] */
weir_err weir_nn_shape_know(weir_nn_shape *shape, const weir_nn_known *known);
void weir_nn_shape_free(weir_nn_shape *shape); /* NULL is allowed */

/* Whether rows stored under this schema are what the shape was made for.  WEIR_EVERSION names the first difference and
 * what to do.  [any] */
weir_err weir_nn_shape_fits(const weir_nn_shape *shape, const weir_schema *schema);

/* Whether the shape has no matrices, which a living graph lacks.  WEIR_EVERSION names one.  [any] */
weir_err weir_nn_shape_serves(const weir_nn_shape *shape);

/* What is returned by address is borrowed.  [any] */
uint32_t weir_nn_hidden(const weir_nn_shape *shape);
uint32_t weir_nn_layers(const weir_nn_shape *shape);
bool weir_nn_residual(const weir_nn_shape *shape);
weir_nn_norm weir_nn_norm_of(const weir_nn_shape *shape);
const char *weir_nn_norm_word(weir_nn_norm norm); /* in the JSON and in commands */
/* Whether the layer says the logits; columns of the rows that it makes; and the heads by which it mixes. */
bool weir_nn_answers(const weir_nn_shape *shape, uint32_t layer);
uint32_t weir_nn_width(const weir_nn_shape *shape, uint32_t layer);
uint32_t weir_nn_layer_heads(const weir_nn_shape *shape, uint32_t layer);
weir_nn_jump weir_nn_jump_of(const weir_nn_shape *shape);
const char *weir_nn_jump_word(weir_nn_jump jump);       /* in the JSON and in commands */
uint32_t weir_nn_head_rows(const weir_nn_shape *shape); /* 0: no head */
weir_nn_network weir_nn_network_of(const weir_nn_shape *shape);
uint32_t weir_nn_heads(const weir_nn_shape *shape); /* 0: the network has none */
/* The word for it in the JSON and in commands; and whether it has heads. */
const char *weir_nn_network_word(weir_nn_network network);
bool weir_nn_network_has_heads(weir_nn_network network);
uint32_t weir_nn_outputs(const weir_nn_shape *shape);     /* 1: a yes-or-no question */
uint32_t weir_nn_target_type(const weir_nn_shape *shape); /* vertex type of the targets */
const char *weir_nn_task(const weir_nn_shape *shape);
uint32_t weir_nn_window(const weir_nn_shape *shape);
const weir_sample_step *weir_nn_steps(const weir_nn_shape *shape, uint32_t *countp);
uint32_t weir_nn_types(const weir_nn_shape *shape);
const weir_nn_inputs *weir_nn_vertex(const weir_nn_shape *shape, uint32_t type);
const weir_nn_inputs *weir_nn_edge(const weir_nn_shape *shape, uint32_t relation);
/* The vertex types that a step leaves and leads to. */
uint32_t weir_nn_parent_of(const weir_nn_shape *shape, uint32_t step);
uint32_t weir_nn_child_of(const weir_nn_shape *shape, uint32_t step);
/* Columns of what layer 1 sees of a vertex of the type: an encoder's, or the type's own. */
uint32_t weir_nn_below(const weir_nn_shape *shape, uint32_t type);
/* Whether nodes of the type can be seen at all; rows of a type that cannot need no encoding. */
bool weir_nn_sees(const weir_nn_shape *shape, uint32_t type);
/* How many hops from a target a type is met first, 0 for the targets' own; UINT32_MAX: never. */
uint32_t weir_nn_hop_of(const weir_nn_shape *shape, uint32_t type);

/* --- one input becomes floats ------------------------------------------------------------------------------------ */

/* One vertex or edge. features are the schema's, of the same type; values one a feature of it (NULL: all missing);
 * aggregates one an aggregate of the type, by id (NULL: none; NaN: missing). numbers has room for width, of which the
 * columns of matrices are left as they are; slots for category_count (NULL: not wanted, as of an edge).  [any] */
void weir_nn_encode(const weir_nn_inputs *inputs, const weir_schema_feature *features, const weir_value *values,
                    const double *aggregates, int64_t before_us, weir_real *numbers, uint32_t *slots);
/* The same of a checked row (store/format/row.h), which may be NULL and 0 long.  [any] */
void weir_nn_encode_row(const weir_nn_inputs *inputs, const weir_schema_feature *features, const uint8_t *row,
                        size_t length, const double *aggregates, int64_t before_us, weir_real *numbers,
                        uint32_t *slots);

/* And back: the number, the aggregate, or the age in seconds that a scaled one stands for, as far as a float is exact;
 * of a number that was always the same where it was learnt, that.  [any] */
double weir_nn_decode(const weir_nn_number *number, double scaled);

/* The slot of the vertex itself, by the low half of its id. The encoders, which do not know it, leave WEIR_NO_SLOT.
 * [any] */
uint32_t weir_nn_slot_of(const weir_nn_inputs *inputs, uint64_t id);

/* One row of a matrix into its columns of the vertex's numbers; NULL, and what is not finite: zeros.  [any] */
void weir_nn_encode_matrix(const weir_nn_matrix *matrix, const float *row, weir_real *numbers);

/* --- what training learns about the inputs ----------------------------------------------------------------------- */

typedef struct weir_nn_learner weir_nn_learner;

/* Count, mean, sum of squared distances from it, least and most of one number. A plain value that can travel between
 * ranks. */
typedef struct weir_nn_moments {
    double count, mean, squares, min, max;
} weir_nn_moments;

/* Borrows the shape.  WEIR_ENOMEM.  [owner] */
weir_err weir_nn_learner_open(weir_nn_shape *shape, weir_nn_learner **learnerp);
void weir_nn_learner_close(weir_nn_learner *learner);
/* Looks at the numbers of one vertex or edge of the shape, as weir_nn_encode would read them; missing ones are passed
 * over. */
void weir_nn_learn(weir_nn_learner *learner, const weir_nn_inputs *inputs, const weir_value *values,
                   const double *aggregates, int64_t before_us);
/* All moments as one array, to be merged with those of others in a fixed order (Chan's formula). */
weir_nn_moments *weir_nn_learner_moments(weir_nn_learner *learner, uint32_t *countp);
void weir_nn_moments_merge(weir_nn_moments *into, const weir_nn_moments *from);
/* Sets the shape's scales. A number that was always missing keeps the scale it had; one that is always the same has a
 * deviation of 1. */
void weir_nn_learner_finish(weir_nn_learner *learner);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_NN_SHAPE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form.h - a row on its way between ranks: the columns that hold as long as nothing new is known of the vertex, then
 * those that move with time. Private to this folder.
 *
 *   fixed    values, whether they are missing, matrices, and the slots of categories
 *   moving   ages and aggregates, which are others as of every moment
 *
 * Where all targets have one time nothing moves. Each of the two is packed by itself, so that a row has the same bits
 * whether it came at once, or its fixed part was kept (cache.h) or came with another time of the vertex.
 */
#ifndef WEIR_TRAINER_TRAIN_FORM_H
#define WEIR_TRAINER_TRAIN_FORM_H

#include <stdbool.h>

#include <weir/inference/nn/nn.h>
#include <weir/store/base/table.h>
#include <weir/trainer/train/wire.h>

/* What is asked of a row. */
enum {
    WEIR_TRAIN_FIXED = 1,
    WEIR_TRAIN_MOVING = 2,
    WEIR_TRAIN_ROW = WEIR_TRAIN_FIXED | WEIR_TRAIN_MOVING,
    WEIR_TRAIN_SPAN = 4, /* since when, and until when, its fixed part is as it is: two int64_t */
    WEIR_TRAIN_AGAIN = 8 /* the fixed part, unless it is that of the asker's last one for this vertex: answers.h */
};

/* Of one type. */
typedef struct weir_train_form_type {
    uint32_t *columns; /* the fixed ones, then those that move */
    uint32_t fixed, moving, categories;
} weir_train_form_type;

/* A plain value, of one thread. */
typedef struct weir_train_form {
    weir_train_wire wire;
    bool timed; /* targets have several times */
    uint32_t type_count;
    weir_train_form_type *types;
    weir_real *gathered; /* columns of a row at hand */
} weir_train_form;

/* What was noted of a vertex last, in a table: of the asker a place, of who answers a time. */
typedef struct weir_train_last {
    uint32_t tag;
    uint32_t type;
    uint64_t vertex;
    int64_t what;
} weir_train_last;

/* Finds or adds it, until the table is asked again; *newp: it was added, and `what` is the caller's to set.  NULL: no
 * memory. */
weir_train_last *weir_train_last_of(weir_table *table, uint32_t type, uint64_t vertex, bool *newp);

/* Of a row in memory: numbers, then slots. */
static inline size_t weir_train_row_bytes(const weir_nn_inputs *inputs) {
    return inputs->width * sizeof(weir_real) + inputs->category_count * sizeof(uint32_t);
}

/* WEIR_ENOMEM. */
weir_err weir_train_form_open(const weir_nn_shape *shape, weir_train_wire wire, bool timed, weir_train_form *form);
void weir_train_form_close(weir_train_form *form);
/* Of these parts of a row. */
size_t weir_train_form_bytes(const weir_train_form *form, uint32_t type, unsigned parts);
/* numbers and slots: of the whole row. bytes has room for the parts. A span is the caller's. */
void weir_train_form_pack(const weir_train_form *form, uint32_t type, unsigned parts, const weir_real *numbers,
                          const uint32_t *slots, char *bytes);
void weir_train_form_unpack(const weir_train_form *form, uint32_t type, unsigned parts, const char *bytes,
                            weir_real *numbers, uint32_t *slots);
/* The fixed part of one row into another of the type. */
void weir_train_form_copy(const weir_train_form *form, uint32_t type, const weir_real *numbers, const uint32_t *slots,
                          weir_real *to_numbers, uint32_t *to_slots);

#endif /* WEIR_TRAINER_TRAIN_FORM_H */

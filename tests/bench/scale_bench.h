/* SPDX-License-Identifier: Apache-2.0 */
/* scale_bench.h - what a training step is for so many ranks: measured on this machine, and said by a model. */
#ifndef WEIR_SCALE_BENCH_H
#define WEIR_SCALE_BENCH_H

#include <stdbool.h>

#include <weir/store/base/buf.h>

/* Of one run, a rank and a step. */
typedef struct scale_row {
    uint32_t ranks;
    double messages;        /* to others: asks, answers and edges */
    double rounds;          /* exchanges of all ranks             */
    double row_bytes;       /* to others: asks and answers of rows and edges */
    double embedding_bytes; /* to others: rows of embeddings that are shared out, and their gradients */
    double sums;            /* over the ranks, and tellings of rows          */
    double sum_floats;      /* gradients, summed over the ranks              */
    double told_bytes;      /* which rows of embeddings                      */
    double step_ms, compute_ms, exposed_ms;
    double peak_mib;   /* of the largest rank                           */
    double part_bytes; /* of a part, on average; of one rank, the snapshot */
} scale_row;

/* What the model is told. A plain value. */
typedef struct scale_model {
    double latency_us;      /* of a message                                     */
    double overhead_us;     /* of a message, in which its sender does no other  */
    double gigabits;        /* of a rank's wire, a second                       */
    double ahead;           /* batches whose rounds are under way side by side  */
    double edges;           /* of the graph                                     */
    double compute_ms;      /* of a rank's share of a batch, alone              */
    double rounds;          /* exchanges a step                                 */
    double remote_bytes;    /* of rows, edges and embeddings, if all were of other ranks */
    double sums;            /* of a step, one after the other                   */
    double sum_bytes;       /* gradients                                        */
    double told_bytes;      /* by each rank to all                              */
    double part_bytes_edge; /* of a part, for each edge of the snapshot divided by ranks */
    double targets_edge;    /* for each edge of the snapshot                    */
    double judged_edge;     /* of those, for validation and for test            */
    double memory_gib;      /* that a rank may have                             */
} scale_model;

/* Milliseconds of a step by what takes them. */
typedef struct scale_step {
    double exchange, compute, sum;
} scale_step;

/* What a rank has in memory, in GiB, and the largest graphs that this lets so many ranks train on, in edges. */
typedef struct scale_memory {
    double part;          /* the more ranks, the less                              */
    double targets;       /* what each rank knows of all targets: it stays         */
    double target_count;  /* of all ranks                                          */
    double edges_memory;  /* that a rank's memory holds its share of               */
    double edges_targets; /* that have fewer targets than weir_targets_open refuses */
} scale_memory;

scale_step scale_step_of(const scale_model *model, uint32_t ranks);
/* Of a step: exchanges are made ahead, beside what computes and then sums. */
double scale_longest(const scale_step *step);
const char *scale_bound(const scale_step *step);
scale_memory scale_memory_of(const scale_model *model, uint32_t ranks);
/* "memory" or "targets": what ends a graph that grows, of so many ranks. */
const char *scale_end(const scale_memory *memory);
bool scale_fits(const scale_model *model, const scale_memory *memory);

#define SCALE_VERDICT 3u
/* What bounds a step's time, what a rank needs, and what ends it, in a line each. */
void scale_verdict(const scale_model *model, uint32_t ranks, char lines[SCALE_VERDICT][160]);
/* Steps by ranks up to `most`, and what was measured. */
void scale_plot(const scale_model *model, uint32_t most, const scale_row *rows, size_t count, weir_buf *svg);

#endif /* WEIR_SCALE_BENCH_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_private.h - what the files of bulk share. */
#ifndef WEIR_INFERENCE_BULK_PRIVATE_H
#define WEIR_INFERENCE_BULK_PRIVATE_H

#include <weir/inference/bulk/bulk.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/sample/sampler.h>
#include <weir/store/schema/schema.h>

/* What all threads share, and none changes. */
typedef struct weir_bulk_plan {
    const weir_bulk_opts *opts;
    const weir_schema *schema;
    const weir_snapshot_vertices *vertices;
    weir_pack_contents of; /* without a recommender */
    uint32_t type;
    uint32_t hop;                     /* of embeddings: how far from a target the type stands */
    uint32_t columns;                 /* numbers of a row */
    uint32_t batch;                   /* lives of a chunk */
    bool own_time;                    /* each as of its put; else all as of as_of_us */
    bool living;                      /* of lives as of their put only those that last until the snapshot's end */
    bool items;                       /* of a recommender: the type is what it recommends */
    bool npy;                         /* else CSV */
    int64_t as_of_us;                 /* where not own_time */
    const weir_schema_values *values; /* of several classes: the label's; else NULL */
} weir_bulk_plan;

/* What is said of one target. A plain value. */
typedef struct weir_bulk_score {
    double score, probability;
    uint32_t label; /* of several classes: the likeliest */
} weir_bulk_score;

/* --- lives.c: which lives have rows, and as of when --------------------------------------------------------------- */

/* Of lives [begin, end), those that have rows; targets: end - begin.  WEIR_ECORRUPT lists. */
weir_err weir_bulk_list(const weir_bulk_plan *plan, uint64_t begin, uint64_t end, weir_target *targets,
                        uint32_t *countp);
/* Of all of them, how many; and how many are left out.  WEIR_ECORRUPT. */
weir_err weir_bulk_count(const weir_bulk_plan *plan, weir_bulk_stats *statsp);

/* --- pass.c: what a network, trees, or both say ------------------------------------------------------------------- */

typedef struct weir_bulk_pass weir_bulk_pass;

/* How many lives a chunk has, at most `batch`: fewer where the sampler refuses so large a block.  WEIR_ELIMIT; errors
 * of a sampler. */
weir_err weir_bulk_pass_fit(weir_bulk_plan *plan);
/* Of one thread.  WEIR_EVERSION; WEIR_ENOMEM. */
weir_err weir_bulk_pass_open(const weir_bulk_plan *plan, weir_bulk_pass **passp);
void weir_bulk_pass_close(weir_bulk_pass *pass); /* NULL is allowed */
/* At most plan->batch targets: scores, or rows of plan->columns floats; borrowed until the next run.  WEIR_EDATA,
 * WEIR_ECORRUPT, WEIR_ENOMEM, WEIR_ELIMIT. */
weir_err weir_bulk_pass_run(weir_bulk_pass *pass, const weir_target *targets, uint32_t count,
                            const weir_bulk_score **scoresp, const float **rowsp);

/* --- write.c: rows become bytes, and bytes files ------------------------------------------------------------------ */

/* What one chunk adds to the files. */
typedef struct weir_bulk_text {
    weir_buf table;   /* CSV; of .npy its keys */
    weir_buf numbers; /* of .npy */
} weir_bulk_text;

weir_err weir_bulk_print(const weir_bulk_plan *plan, const weir_target *targets, uint32_t count,
                         const weir_bulk_score *scores, const float *rows, weir_bulk_text *text);

typedef struct weir_bulk_files weir_bulk_files;

/* Of so many rows. */
weir_err weir_bulk_files_open(const weir_bulk_plan *plan, uint64_t rows, weir_bulk_files **filesp);
weir_err weir_bulk_files_add(weir_bulk_files *files, const weir_bulk_text *text);
/* Gives the files their names; after an error of the caller's or its own removes them. Returns the first error. NULL is
 * allowed. */
weir_err weir_bulk_files_end(weir_bulk_files *files, weir_err err);

#endif /* WEIR_INFERENCE_BULK_PRIVATE_H */

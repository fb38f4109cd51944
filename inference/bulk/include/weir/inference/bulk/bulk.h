/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk.h - what a model says of every vertex of a snapshot, as a file: scores, or embeddings.
 *
 *   lives of the type ─► chunks ─┬► [worker] sample, encode, forward, print ─┬► file
 *                                └► [worker] the same                        ┘
 *
 * The caller writes chunks in their order. At most two a thread are made and not written: memory does not grow with the
 * number of rows.
 *
 *   FILE.csv   of scores        key,time,score,probability      log odds, and what they are calibrated to
 *              of classes       key,time,predicted,probability  the likeliest value of the label
 *              of embeddings    key,time,e0,e1,…
 *   FILE.npy   of scores        float64, rows x 2: the same two; of classes the number of the value
 *              of embeddings    float32, rows x width
 *              beside it FILE.keys.csv: key,time of each row
 *
 * A row is a LIFE of a vertex (snapshot.h), in the order of the snapshot: of vertices by id, of lives by time.
 *
 *   as of one time       each vertex that lives then, without an event of its own
 *   as of its own time   scores: each life that was put from `from_us` until before `to_us`, as of its put and with its
 *                        event; of a task that judges at labels, and of a graph whose edges have no times, as of the
 *                        snapshot's time: what training and serving do
 *                        embeddings: what lives at the snapshot's end; targets as scores are, others as of that end
 *
 * A recommender's vectors have one number more than its width, so that score(u, i) is the product of two of them.
 *
 * INVARIANTS: each is cited where the code keeps it and by a test of the same name: b1_…
 *
 *   BULK-B1  The same bytes with any number of threads.
 *   BULK-B2  A score is that of `weir train --predictions` for the same target and time, and what a server says of the
 *            vertex: of boosted trees the same bits, of a network within 1e-5, because the order in which a GEMM sums
 *            depends on who else is in the chunk (NN-N5). So are embeddings what a server says. But what a training's
 *            trees said of its validation, they said before they learnt from it.
 *   BULK-B3  A file under its final name is whole, and FILE.npy is there only beside the keys of its rows.
 *
 * THREADS: [owner]; it starts workers of its own.
 */
#ifndef WEIR_INFERENCE_BULK_BULK_H
#define WEIR_INFERENCE_BULK_BULK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/inference/pack/pack.h>
#include <weir/inference/recommend/recommend.h>
#include <weir/store/base/err.h>
#include <weir/store/snapshot/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BULK_THREADS_MAX 64u

/* A plain value; all is borrowed. */
typedef struct weir_bulk_opts {
    const weir_snapshot *snapshot;
    const weir_pack *pack;                   /* one of the two */
    const weir_recommend_model *recommender; /* it has embeddings alone */
    bool scores;                             /* else embeddings */
    uint32_t type;                           /* of embeddings */
    bool at_once;                            /* as of as_of_us, else each as of its own time */
    int64_t as_of_us;
    int64_t from_us, to_us; /* of scores as of their own time */
    uint32_t threads;       /* 1 to WEIR_BULK_THREADS_MAX; 0: one a core */
    uint32_t batch;         /* lives of a chunk; 0: as many as are fast, fewer where a block would be too large */
    const char *path;       /* ends in .csv or .npy; what is there is replaced, and PATH.partial removed */
} weir_bulk_opts;

typedef struct weir_bulk_stats {
    uint64_t rows;
    uint64_t old;     /* left out: they are from before the history that the snapshot covers */
    uint64_t unknown; /* left out: items that a recommender does not know, which it cannot score */
} weir_bulk_stats;

/* Whether the model has embeddings of a type.  WEIR_ENOTFOUND it has none, and why; WEIR_EVERSION it was made for
 * another schema.  [any] */
weir_err weir_bulk_embeds(const weir_bulk_opts *opts, uint32_t type);
/* WEIR_EUSAGE the path has another ending, or the snapshot does not cover the time; WEIR_ENOTFOUND as above;
 * WEIR_EVERSION the model was made for another schema, or for matrices that the snapshot lacks; WEIR_EBUSY another
 * process writes this file; WEIR_EDATA what the model says is not a finite number; WEIR_ELIMIT a block of one target is
 * too large; WEIR_ECORRUPT lists of the snapshot; WEIR_EUNAVAILABLE no thread could be started; errors of files;
 * WEIR_ENOMEM. After an error nothing that is half written is left; an array may be missing.  Blocks. */
weir_err weir_bulk_run(const weir_bulk_opts *opts, weir_bulk_stats *statsp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_BULK_BULK_H */

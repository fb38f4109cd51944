/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - when each stage of each batch began and ended, on all ranks, as Chrome's trace format: for chrome://tracing
 * and ui.perfetto.dev. Private to this folder.
 *
 * Tracks: 0 is the thread that computes, then come the makers of the stream that is learnt from, those of the one that
 * is judged, and the thread that sums gradients beside the way back.
 *
 * THREADS: spans may be added by any thread.
 */
#ifndef WEIR_TRAINER_TRAIN_TRACE_H
#define WEIR_TRAINER_TRAIN_TRACE_H

#include <weir/trainer/comm/comm.h>

typedef enum weir_train_stage {
    WEIR_STAGE_SAMPLE,
    WEIR_STAGE_ASK,
    WEIR_STAGE_ANSWER,
    WEIR_STAGE_ENCODE,
    WEIR_STAGE_BRING, /* to the memory of a device */
    WEIR_STAGE_WAIT,  /* of the thread that computes, for a batch */
    WEIR_STAGE_PULL,  /* of embeddings that other ranks have */
    WEIR_STAGE_COMPUTE,
    WEIR_STAGE_SUM,
    WEIR_STAGE_UPDATE,
    WEIR_STAGE_REDUCE, /* beside the way back: a layer's sum begins, until the next one's does, or all have ended */
    WEIR_STAGES
} weir_train_stage;

/* One batch in one stage; times of the system's monotonic clock. A plain value. */
typedef struct weir_train_span {
    uint32_t track;
    weir_train_stage stage;
    uint32_t epoch;
    uint64_t batch; /* of its epoch */
    int64_t begin_us, end_us;
} weir_train_span;

typedef struct weir_train_trace weir_train_trace;

/* All ranks together: time 0 is when all have come here. path: rank 0 writes a file without spans there, so that one
 * that cannot be written is known before the work; borrowed. makers: of each stream. After an error, too, *tracep is to
 * be closed. Errors of the file; WEIR_ENOMEM.  [main] */
weir_err weir_train_trace_open(weir_comm *comm, const char *path, uint32_t makers, weir_train_trace **tracep);
/* What does not fit is counted.  trace may be NULL.  [any] */
void weir_train_trace_add(weir_train_trace *trace, const weir_train_span *span);
/* The last track, where there are so many makers. */
uint32_t weir_train_trace_sums(uint32_t makers);
/* All ranks together: rank 0 writes what all have seen. Errors of the file; WEIR_ELIMIT and WEIR_ENOMEM, which end all
 * ranks where there are more.  [main] */
weir_err weir_train_trace_write(weir_train_trace *trace);
void weir_train_trace_close(weir_train_trace *trace); /* NULL is allowed */

#endif /* WEIR_TRAINER_TRAIN_TRACE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far a long job is: a bar with rate and time left on a terminal.
 *
 * Draws nothing in the first two seconds; on a terminal redraws one line at most ten times a second; elsewhere
 * logs at most one "progress" line every 30 s. Whoever adds draws: where nothing is added, nothing is drawn.
 * THREADS: add is [any], the rest [owner].
 */
#ifndef WEIR_STORE_BASE_PROGRESS_H
#define WEIR_STORE_BASE_PROGRESS_H

#include <stdint.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_progress weir_progress;

typedef struct weir_progress_opts {
    const char *what;  /* "payments"; borrowed                                  */
    uint64_t total;    /* 0: unknown, so no bar and no time left               */
    int fd;            /* where to draw; 2 is stderr                            */
    weir_clock *clock; /* borrowed; NULL is the system's                        */
} weir_progress_opts;

/* WEIR_ENOMEM. */
weir_err weir_progress_open(const weir_progress_opts *opts, weir_progress **progressp);
void weir_progress_add(weir_progress *progress, uint64_t n);
/* Draws the last state and a newline if anything was drawn, logs a "progress.end" if anything was logged; NULL is
 * allowed. */
void weir_progress_close(weir_progress *progress);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_PROGRESS_H */

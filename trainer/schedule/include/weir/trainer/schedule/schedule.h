/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - times of a cron expression, and a program that is started at them.
 *
 *   "15 2 * * mon-fri"    minute, hour, day of the month, month, day of the week; UTC
 *   lists 1,15; ranges 8-18; steps of a range or of all, 8-18/2; names jan-dec and sun-sat; 7 is sunday
 *
 * When both days are restricted (neither begins with '*'), either will do, as cron has it.
 *
 * INVARIANTS
 *   C1  The next time is the first full minute after the given moment that matches.
 *   C2  A scheduler has at most one program running; a time that comes meanwhile is passed over.
 *   C3  Times that were missed while nobody ran are made up for by one start, not by many.
 *   C4  A clock that goes back takes the plan back with it: one that was in 2036 for a minute costs one start, not the
 *       nights of ten years. Small steps back, as of a clock that is being set, start nothing twice.
 */
#ifndef WEIR_TRAINER_SCHEDULE_SCHEDULE_H
#define WEIR_TRAINER_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_CRON_TEXT_MAX 256u

/* A plain value: a bit for each that matches. */
typedef struct weir_cron {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* days from bit 1, months from bit 1, weekdays from bit 0, sunday */
    bool either_day;
} weir_cron;

/* WEIR_EDATA names the field, what is wrong with it and what it may be.  [any] */
weir_err weir_cron_parse(const char *text, weir_cron *cronp);
/* The first match after wall_us (C1).  WEIR_ENOTFOUND there is none, as on 30 February.  [any] */
weir_err weir_cron_next(const weir_cron *cron, int64_t wall_us, int64_t *nextp);

/* --- the scheduler ------------------------------------------------------------------------------------------------ */

typedef struct weir_scheduler weir_scheduler;

typedef struct weir_scheduler_opts {
    const char *cron;             /* borrowed                                                              */
    const char *const *arguments; /* of the program, NULL-ended; the first is its path; borrowed           */
    const char *file;             /* where the last start is kept, for C3; borrowed                        */
    weir_clock *clock;            /* borrowed; NULL: the system's. Times are its wall clock's              */
} weir_scheduler_opts;

typedef struct weir_scheduler_stats {
    int64_t next_us;      /* 0: never                           */
    int64_t last_us;      /* of the last start; 0: none yet     */
    int64_t due_us;       /* the first time that no run has ended well after; 0: none */
    bool running;         /* gauge                              */
    int last_status;      /* of the last that ended; -1: none   */
    uint64_t starts;      /* counter                            */
    uint64_t failures;    /* counter: ended with another status */
    uint64_t passed_over; /* counter: C2                        */
} weir_scheduler_stats;

/* Starts a thread.  WEIR_EDATA the expression; WEIR_ENOMEM, WEIR_EUNAVAILABLE; what the file says.  [owner] */
weir_err weir_scheduler_open(const weir_scheduler_opts *opts, weir_scheduler **schedulerp);
const char *weir_scheduler_cron(const weir_scheduler *scheduler);
void weir_scheduler_stats_get(weir_scheduler *scheduler, weir_scheduler_stats *statsp); /* [any] */
/* Ends the program that runs, by SIGTERM, and waits for it. NULL is allowed.  [owner] */
void weir_scheduler_close(weir_scheduler *scheduler);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_SCHEDULE_SCHEDULE_H */

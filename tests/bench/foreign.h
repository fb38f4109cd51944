/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - payments of another make than the simulator's: what a store must not be tuned to.
 *
 * Another schema (five types, four relations), nested JSON, escapes and UTF-8 in keys, random ids of 36 bytes, payers
 * that are new for ever beside payees of which the hottest has a twentieth of all, and times that are not in order.
 * About 9.75 records of the cold store each. A pure function of the seed; half a microsecond a message, so that it may
 * run beside what is measured.  THREADS: [owner].
 */
#ifndef WEIR_BENCH_FOREIGN_H
#define WEIR_BENCH_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

typedef struct weir_bench_foreign weir_bench_foreign;

/* The schema of its messages, and the name of its only source. */
extern const char weir_bench_foreign_schema[];
#define WEIR_BENCH_FOREIGN_SOURCE "transfers"

/* WEIR_ENOMEM. */
weir_err weir_bench_foreign_open(uint64_t seed, weir_bench_foreign **foreignp);
/* The next message, borrowed until the next call; never fails and never ends. *arrived_usp rises; the time in the
 * message is up to an hour before it. */
void weir_bench_foreign_next(weir_bench_foreign *foreign, const char **valuep, size_t *lengthp, int64_t *arrived_usp);
/* NULL is allowed. */
void weir_bench_foreign_close(weir_bench_foreign *foreign);

#endif /* WEIR_BENCH_FOREIGN_H */

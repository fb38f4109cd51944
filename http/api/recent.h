/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recent.h - the last N events of a source by their id, and where in the log they are.
 *
 * An id is kept as 128 bits of two independent hashes, the second of them keyed afresh in each process: to have one
 * event taken for another, a sender would have to know a key that never leaves it.  THREADS: [owner].
 */
#ifndef WEIR_HTTP_API_RECENT_H
#define WEIR_HTTP_API_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>

typedef struct weir_recent weir_recent;

typedef struct weir_recent_id {
    uint64_t event, check;
} weir_recent_id;

typedef struct weir_recent_place {
    uint64_t offset;
    uint32_t partition;
} weir_recent_place;

/* capacity may be 0: then nothing is remembered.  WEIR_ENOMEM; WEIR_ELIMIT above 2^24. */
weir_err weir_recent_open(uint32_t capacity, weir_recent **recentp);
weir_recent_id weir_recent_id_of(const weir_recent *recent, uint64_t event, const char *id, size_t length);
/* NULL: not there. Valid until the next put or undo. */
weir_recent_place *weir_recent_find(weir_recent *recent, weir_recent_id id);
/* The oldest one goes when there is no room. An id that is there already keeps its first place. */
void weir_recent_put(weir_recent *recent, weir_recent_id id, weir_recent_place place);
/* Takes back the newest one: as if it had not been put, except for the one that went for it. */
void weir_recent_undo(weir_recent *recent);
uint32_t weir_recent_count(const weir_recent *recent);
uint32_t weir_recent_capacity(const weir_recent *recent);
void weir_recent_close(weir_recent *recent);

#endif /* WEIR_HTTP_API_RECENT_H */

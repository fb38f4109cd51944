/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.h - what a seal has of a vertex, several records in one value of the cold store.
 *
 * A record a key costs a sorted file the same whatever is in it, and most of what a vertex gets comes together: a
 * payment's name, row and edges by one event, a merchant's edges by the hundred in each seal. So a seal writes one
 * bundle of each list, or a few of a long one; and of a vertex that it names, which most have never been met before,
 * one of all of its lists that are short. Bundles never change: a merge of files carries them along, or puts fewer in
 * their place that say the same (joining.h of the graph).
 *
 *   key     'V' | vertex 16 | part 4 | span 1 | ~newest 8 | turn 4 | hash 8 = 42
 *   value   how much older the oldest entry is 1 to 10 |
 *           part 0:     name: length 1 to 2, as in stored.h | of each list: its id 1 to 5, entries 1 to 5, those
 *           else:       the entries of one list
 *   entry   flags 1 | time before the last one's 1 to 10 | neighbour 16, of an edge | event 8, content 4 | row: length
 *           1 to 5, bytes; what flags say is the same as of the entry before, or not there, is left out
 *
 * Numbers of no fixed length have seven bits a byte, low ones first. A time before the last one's is below 0 where a
 * list begins with what is newer: n is written as 2n, and -n as 2n - 1. Entries of a list stand newest first
 * (weir_entry_order).
 *
 * `newest` is the time of the newest entry, and `span` says how much older the oldest may be (weir_bundle_reach): up to
 * 4 ms, 16 ms and so on, four times as much each, to 12.7 days; or without bound. So a reader as of a time seeks,
 * within each span, the first bundle that may have an older entry, and is done when what it has is newer than the next
 * bundle. However far back it looks, it passes few bundles in vain, and those by their first number; an entry that came
 * years late makes one bundle wide, which has a span of its own. `turn` counts the bundles of a list and a span that
 * were made at once. The hash is of key and value: two seals may have bundles that are alike in all else, and none may
 * take the other's place.
 *
 * Every function is [any].
 */
#ifndef WEIR_STORE_FORMAT_BUNDLE_H
#define WEIR_STORE_FORMAT_BUNDLE_H

#include <weir/store/base/buf.h>
#include <weir/store/format/entry.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BUNDLE_KIND        'V' /* the first byte of the key */
#define WEIR_BUNDLE_KEY_BYTES   42u
#define WEIR_BUNDLE_NEWEST_AT   22u /* where a key has it */
#define WEIR_BUNDLE_SPANS       16u
#define WEIR_BUNDLE_ENTRIES_MAX 64u   /* of one list */
#define WEIR_BUNDLE_ROWS_MAX    4096u /* bytes of their rows, after which a bundle is full         */
#define WEIR_BUNDLE_NAMED       0u    /* the part of a name, and of short lists beside it         */
#define WEIR_BUNDLE_PART(list)  ((uint32_t)(list) + 1u)
#define WEIR_BUNDLE_SHORT       4u   /* entries of a list that goes beside the name … */
#define WEIR_BUNDLE_SHORT_ROWS  512u /* … and bytes of its rows                       */

typedef struct weir_bundle_key {
    weir_vertex vertex;
    uint32_t part;
    uint8_t span;
    int64_t newest_us;
    uint32_t turn;
    uint64_t hash;
} weir_bundle_key;

void weir_bundle_key_write(const weir_bundle_key *key, uint8_t bytes[WEIR_BUNDLE_KEY_BYTES]);
/* false: not such a key. */
bool weir_bundle_key_read(const void *bytes, size_t length, weir_bundle_key *keyp);
/* The eight bytes of a key that say its newest time, as a number: what is newer has less. */
uint64_t weir_bundle_rank(int64_t newest_us);
/* The rank of the oldest entry of a bundle; of notes of events, which nobody looks for by rank, 0; of what is not the
 * key of a bundle, or damaged, UINT64_MAX. */
uint64_t weir_bundle_last_rank(const void *key, size_t length, const void *value, size_t value_length);
/* The least span that a bundle with these times may have. */
uint8_t weir_bundle_span(int64_t newest_us, int64_t oldest_us);
/* The latest time that the newest entry of a bundle of this span may have, if it has one of time_us. */
int64_t weir_bundle_reach(uint8_t span, int64_t time_us);

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* A value that is being written. Its bytes are the caller's to free, and serve one bundle after the other. */
typedef struct weir_bundle_writer {
    weir_buf value;
    int64_t newest_us, oldest_us; /* of all entries; of a name alone, its own */
    int64_t time_us;              /* of the entry before */
    uint64_t event;
    uint32_t content;
} weir_bundle_writer;

void weir_bundle_begin(weir_bundle_writer *writer, int64_t newest_us, int64_t oldest_us);
/* Part 0 only, and first of all. */
void weir_bundle_put_name(weir_bundle_writer *writer, const weir_name *name);
/* Part 0 only: so many entries of this list follow. */
void weir_bundle_put_list(weir_bundle_writer *writer, weir_list list, uint32_t count);
void weir_bundle_put(weir_bundle_writer *writer, weir_list list, const weir_entry *entry);
/* The key of what was written, to which vertex, part, turn and the least span that it may have are given.  WEIR_ENOMEM
 * if any of it found no memory. */
weir_err weir_bundle_end(weir_bundle_writer *writer, weir_bundle_key of, uint8_t key[WEIR_BUNDLE_KEY_BYTES]);

/* --- reading ------------------------------------------------------------------------------------------------------ */

typedef enum weir_bundle_step { WEIR_BUNDLE_ENTRY, WEIR_BUNDLE_END, WEIR_BUNDLE_DAMAGED } weir_bundle_step;

/* A plain value; rows and the name's key are borrowed from the bundle's value. */
typedef struct weir_bundle_reader {
    const uint8_t *at, *end;
    weir_list list; /* of the entry that was read last */
    uint32_t left;  /* entries of that list; counts down from UINT32_MAX, where the bundle has no other */
    bool of_named, has_name;
    weir_name name;
    int64_t oldest_us;
    int64_t time_us; /* of the last entry */
    uint64_t event;
    uint32_t content;
} weir_bundle_reader;

/* false: damaged. */
bool weir_bundle_open(weir_bundle_reader *reader, const weir_bundle_key *key, const void *value, size_t length);
weir_bundle_step weir_bundle_next(weir_bundle_reader *reader, weir_entry *entryp);
/* Whether key and value belong together, in every byte. */
bool weir_bundle_is_as_written(const weir_bundle_key *key, const void *value, size_t length);
/* The same, and what they say is what a bundle may say. */
bool weir_bundle_check(const weir_bundle_key *key, const void *value, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_BUNDLE_H */

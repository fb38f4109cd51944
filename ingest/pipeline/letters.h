/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letters.h - writing dead letters, each position once.
 *
 * The letters of a span are durable before the span is handed over (PIPELINE-P3), so a crash between the two leaves
 * letters of offsets that will be read again. They are remembered from the topic at open. What this store wrote itself
 * is passed over, whatever the mapping would say of it now (PIPELINE-P2). What was there before the store was begun, or
 * restored, is from an earlier store: such an offset is mapped anew, because the schema may have been corrected since,
 * and only not written a second time.
 *
 * THREADS: [owner] opens, loads and closes; all else is [any].
 */
#ifndef WEIR_INGEST_PIPELINE_LETTERS_H
#define WEIR_INGEST_PIPELINE_LETTERS_H

#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/store/graph/graph.h>

typedef struct weir_letters weir_letters;

/* Opens the topic for appending, creating it.  Errors are those of weir_eventlog_open. */
weir_err weir_letters_open(const char *folder, weir_clock *clock, weir_letters **lettersp);
/* WEIR_EFULL, WEIR_EIO: letters of spans that were never handed over. NULL is allowed. */
weir_err weir_letters_close(weir_letters *letters);
uint64_t weir_letters_end(weir_letters *letters); /* the number that the next one gets  [any] */
/* Reads those of this number and above; below `born` they are from an earlier store. source_of gives the graph's number
 * of a source, or UINT32_MAX. Once.  [owner] */
typedef uint32_t (*weir_letters_source_of)(void *context, const char *source, size_t length, uint64_t identity);
weir_err weir_letters_load(weir_letters *letters, uint64_t from, uint64_t born, weir_letters_source_of source_of,
                           void *context);

typedef struct weir_letters_place {
    uint32_t source, partition;
    uint64_t offset, number;
    bool ours; /* not from an earlier store */
} weir_letters_place;

/* The places in a source partition that were loaded, rising by offset, from this one on; borrowed until close.
 * [any] */
void weir_letters_known(const weir_letters *letters, uint32_t source, uint32_t partition, uint64_t from,
                        const weir_letters_place **placesp, size_t *countp);
/* Whether a letter has this offset, and from which store. The list is sorted by offset and asked with rising offsets;
 * what is passed is taken off it.  [any] */
typedef enum weir_letters_origin { WEIR_LETTERS_NONE, WEIR_LETTERS_EARLIER, WEIR_LETTERS_OURS } weir_letters_origin;
weir_letters_origin weir_letters_next(const weir_letters_place **placesp, size_t *countp, uint64_t offset);
/* All that the topic has now, sorted by place; free with weir_free, also after an error.  [any] */
weir_err weir_letters_all(weir_letters *letters, uint64_t born, weir_letters_source_of source_of, void *context,
                          weir_letters_place **placesp, size_t *countp);
/* Appends; not durable until sync. source: the graph's number.  [any]  Errors are those of weir_eventlog_append. */
weir_err weir_letters_add(weir_letters *letters, uint32_t source, const weir_dead_letter *letter, weir_buf *scratch);
weir_err weir_letters_sync(weir_letters *letters); /* [any] */
/* After WEIR_EPOISONED: weir_eventlog_resume; what was appended stays.  [any] */
weir_err weir_letters_resume(weir_letters *letters);
/* All letters below *numberp are of offsets that their partitions have sealed. false: cannot be told just now.
 * [any] */
bool weir_letters_passed(weir_letters *letters, weir_graph *graph, uint64_t *numberp);

#endif /* WEIR_INGEST_PIPELINE_LETTERS_H */

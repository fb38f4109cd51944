/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_letter.h - a record that could not become mutations: where it was, why, and its bytes as they came.
 *
 * Dead letters are records of a topic of the built-in event log; a letter's number is its offset there. The value is
 * the original value, or its beginning; the key of the record says the rest, little-endian:
 *
 *   offset size  meaning                                   offset size  meaning
 *      0     1   version, 1                                   32     8   offset
 *      1     1   1: the value or the key was cut; 2: there    40     2   bytes of the source's name
 *                 was no key; 4: there was no value           42     2   bytes of the topic's name
 *      2     1   stream: 0 event log, 1 Kafka, 2 file         44     2   bytes of the reason
 *      3     1   0                                            46     2   0
 *      4     4   partition                                    48     4   bytes of the key, as kept
 *      8     8   identity of the source                       52     4   0
 *     16     8   time of the record, us                       56     …   source, topic, reason, key
 *     24     8   bytes of the original value
 *
 * A letter that was replayed has a record in a second topic, whose key is the letter's number (8 bytes), whose time is
 * when and whose value says where to; the letter itself is never changed or removed.
 */
#ifndef WEIR_INGEST_PIPELINE_DEAD_LETTER_H
#define WEIR_INGEST_PIPELINE_DEAD_LETTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DEAD_LETTER_TOPIC        "dead-letters"
#define WEIR_DEAD_LETTER_REPLAY_TOPIC "dead-letters-replayed"
#define WEIR_DEAD_LETTER_BYTES_MAX    (WEIR_EVENTLOG_RECORD_MAX / 2) /* of a value; of a key half of it; more is cut */

/* What the source is: see weir_pipeline_stream. */
typedef enum weir_dead_letter_stream {
    WEIR_DEAD_LETTER_EVENTLOG,
    WEIR_DEAD_LETTER_KAFKA,
    WEIR_DEAD_LETTER_FILE /* the offset is the number of the line, from 0 on */
} weir_dead_letter_stream;

/* A plain value; all it points to is borrowed. Texts have no NUL at their end. */
typedef struct weir_dead_letter {
    const char *source; /* of the schema */
    size_t source_length;
    const char *topic;
    size_t topic_length;
    const char *reason; /* one sentence */
    size_t reason_length;
    uint64_t identity;
    uint64_t offset;
    uint32_t partition;
    weir_dead_letter_stream stream;
    bool cut;        /* bytes or key are incomplete: it cannot be replayed as it is */
    int64_t time_us; /* of the record                                         */
    const void *key; /* NULL: none                                            */
    size_t key_length;
    const void *bytes; /* NULL: no value      */
    size_t length;
    uint64_t value_length; /* before a cut        */
} weir_dead_letter;

/* Writes the letter's header into key, and sets *recordp to what is appended: it borrows from the letter and from key.
 * WEIR_ENOMEM.  [any] */
weir_err weir_dead_letter_write(const weir_dead_letter *letter, weir_buf *key, weir_record *recordp);
/* The letter borrows from the record.  WEIR_ECORRUPT; WEIR_EVERSION.  [any] */
weir_err weir_dead_letter_read(const weir_record *record, weir_dead_letter *letterp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_PIPELINE_DEAD_LETTER_H */

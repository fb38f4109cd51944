/* SPDX-License-Identifier: Apache-2.0 */
/* dlq.c - reading dead letters: all that pass a filter, or one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/thread.h>

#include "dlq_private.h"

#define READ_RECORDS 256u

/* --- which were replayed, and when ------------------------------------------------------------------------------ */

typedef struct dlq_replayed {
    uint64_t number;
    int64_t time_us;
} dlq_replayed;

struct weir_cmd_replays {
    dlq_replayed *items; /* rising by number, then by time */
    size_t count, capacity;
};

/* A record of the topic that says what was replayed. */
static weir_err dlq_replays_add(void *context, const weir_record *record) {
    struct weir_cmd_replays *replays = context;
    if (record->key_length != sizeof(uint64_t)) {
        return WEIR_ERR(WEIR_ECORRUPT, "record %" PRIu64 " of topic %s is damaged", record->offset,
                        WEIR_DEAD_LETTER_REPLAY_TOPIC);
    }
    if (!WEIR_GROW(replays->items, replays->capacity, replays->count))
        return WEIR_NOMEM("for %zu replayed letters", replays->count + 1);
    replays->items[replays->count++] = (dlq_replayed){weir_get_u64(record->key), record->time_us};
    return WEIR_OK;
}

static int dlq_compare_replays(const void *a, const void *b) {
    const dlq_replayed *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* The newest time, or 0. */
static int64_t dlq_replayed_at(const struct weir_cmd_replays *replays, uint64_t number) {
    size_t low = 0, high = replays->count;
    while (low < high) { /* the first above number */
        size_t middle = low + (high - low) / 2;
        if (replays->items[middle].number <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && replays->items[low - 1].number == number ? replays->items[low - 1].time_us : 0;
}

/* --- reading a topic of one partition --------------------------------------------------------------------------- */

typedef weir_err (*dlq_record_visit)(void *context, const weir_record *record);

static weir_err dlq_walk(weir_eventlog *log, uint64_t from, uint64_t count_max, dlq_record_visit visit, void *context) {
    weir_record records[READ_RECORDS];
    weir_eventlog_reader *reader;
    size_t count;
    weir_err err = weir_eventlog_reader_open(log, 0, from, &reader);
    if (err) return err;
    do {
        size_t capacity = count_max < READ_RECORDS ? (size_t)count_max : READ_RECORDS;
        err = weir_eventlog_reader_next(reader, records, capacity, &count);
        for (size_t i = 0; !err && i < count; i++)
            err = visit(context, &records[i]);
        WEIR_ASSERT(count <= count_max);
        count_max -= count;
    } while (!err && count && count_max);
    weir_eventlog_reader_close(reader);
    return err;
}

static weir_err dlq_begin(weir_eventlog *log, uint64_t *beginp) {
    weir_eventlog_partition_stats stats;
    weir_err err = weir_eventlog_stats_get(log, 0, &stats);
    *beginp = err ? 0 : stats.offset_begin;
    return err;
}

/* *logp NULL: there is no such topic. */
static weir_err dlq_open_topic(const char *folder, const char *topic, weir_eventlog **logp) {
    const weir_eventlog_opts opts = {.read_only = true};
    weir_err err = weir_eventlog_open(folder, topic, &opts, logp);
    return weir_err_is(err, WEIR_ENOTFOUND) ? WEIR_OK : err;
}

static weir_err dlq_load_replays(weir_cmd_letters *letters) {
    struct weir_cmd_replays *replays = letters->replays = weir_calloc(1, sizeof *replays);
    weir_eventlog *log = NULL;
    uint64_t begin;
    if (!replays) return WEIR_NOMEM("for the replayed letters");
    weir_err err = dlq_open_topic(letters->folder, WEIR_DEAD_LETTER_REPLAY_TOPIC, &log);
    if (err || !log) return err;
    err = dlq_begin(log, &begin);
    if (!err) err = dlq_walk(log, begin, UINT64_MAX, dlq_replays_add, replays);
    weir_err_keep(&err, weir_eventlog_close(log));
    if (replays->count) qsort(replays->items, replays->count, sizeof *replays->items, dlq_compare_replays);
    return err;
}

/* --- letters ---------------------------------------------------------------------------------------------------- */

weir_err weir_cmd_letters_open(const weir_cli *cli, weir_cmd_letters *letters) {
    const char *path = weir_cli_text(cli, "path");
    WEIR_ON_ROLE(MAIN);
    *letters = (weir_cmd_letters){.partition = UINT64_MAX, .since_us = INT64_MIN};
    letters->folder = path ? path : weir_config_text(weir_cli_config(cli), WEIR_CONFIG_EVENTLOG_PATH);
    weir_err err = dlq_open_topic(letters->folder, WEIR_DEAD_LETTER_TOPIC, &letters->log);
    if (!err) err = dlq_load_replays(letters);
    if (err) weir_cmd_letters_close(letters);
    return err;
}

weir_err weir_cmd_letters_filter(const weir_cli *cli, weir_cmd_letters *letters) {
    letters->source = weir_cli_text(cli, "source");
    letters->reason = weir_cli_text(cli, "reason");
    weir_err err = weir_cli_u64(cli, "partition", 0, UINT32_MAX, &letters->partition);
    return err ? err : weir_cli_time(cli, "since", &letters->since_us);
}

void weir_cmd_letters_close(weir_cmd_letters *letters) {
    (void)weir_eventlog_close(letters->log); /* read only: nothing can be lost */
    if (letters->replays) weir_free(letters->replays->items);
    weir_free(letters->replays);
    *letters = (weir_cmd_letters){0};
}

typedef struct dlq_walking {
    const weir_cmd_letters *letters;
    weir_cmd_letter_visit visit;
    void *context;
    bool filtered;
} dlq_walking;

static bool dlq_passes(const weir_cmd_letters *f, const weir_cmd_letter *l) {
    const weir_dead_letter *d = &l->letter;
    if (f->source && (strlen(f->source) != d->source_length || memcmp(f->source, d->source, d->source_length) != 0))
        return false;
    if (f->reason && !memmem(d->reason, d->reason_length, f->reason, strlen(f->reason))) return false;
    return (f->partition == UINT64_MAX || f->partition == d->partition) && l->put_us >= f->since_us;
}

static weir_err dlq_visit_record(void *context, const weir_record *record) {
    const dlq_walking *w = context;
    weir_cmd_letter letter = {.number = record->offset, .put_us = record->time_us};
    weir_err err = weir_dead_letter_read(record, &letter.letter);
    if (err || (w->filtered && !dlq_passes(w->letters, &letter))) return err;
    letter.replayed_us = dlq_replayed_at(w->letters->replays, letter.number);
    return w->visit(w->context, &letter);
}

weir_err weir_cmd_letters_walk(weir_cmd_letters *letters, weir_cmd_letter_visit visit, void *context) {
    dlq_walking w = {letters, visit, context, true};
    uint64_t begin;
    if (!letters->log) return WEIR_OK;
    weir_err err = dlq_begin(letters->log, &begin);
    return err ? err : dlq_walk(letters->log, begin, UINT64_MAX, dlq_visit_record, &w);
}

weir_err weir_cmd_letters_one(weir_cmd_letters *letters, uint64_t number, weir_cmd_letter_visit visit, void *context) {
    dlq_walking w = {letters, visit, context, false};
    weir_eventlog_partition_stats stats = {0};
    weir_err err = letters->log ? weir_eventlog_stats_get(letters->log, 0, &stats) : WEIR_OK;
    if (err) return err;
    if (number < stats.offset_begin || number >= stats.offset_durable) {
        return WEIR_ERR(WEIR_ENOTFOUND, "there is no dead letter %" PRIu64 " in %s; `weir ingest dlq list` names them",
                        number, letters->folder);
    }
    return dlq_walk(letters->log, number, 1, dlq_visit_record, &w);
}

/* --- arguments -------------------------------------------------------------------------------------------------- */

weir_err weir_cmd_letter_number(const weir_cli *cli, size_t index, uint64_t *numberp) {
    const char *text = weir_cli_positional(cli, index);
    char *end;
    *numberp = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && end - text < 20) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "'%.64s' is not the number of a dead letter; `weir ingest dlq list` names them", text);
}

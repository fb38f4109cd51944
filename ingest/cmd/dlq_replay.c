/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlq_replay.c - `weir ingest dlq replay`: letters go back to the topic that they came from, as they were or put right.
 *
 * A letter is marked as replayed only when its record is durable. A crash between the two makes the next replay send it
 * again, which is harmless: an event that comes twice is one event.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/ingest/map/map.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>

#include "dlq_private.h"

#define GROUP_LETTERS 1024u /* made durable, then marked, together */

typedef struct replay_context {
    const weir_cli *cli;
    weir_cmd_letters letters;
    weir_schema *schema; /* NULL: not checked */
    bool again, all;
    char *corrected; /* NULL: as it was */
    size_t corrected_length;
    /* where to: one topic at a time */
    char topic[WEIR_KAFKA_TOPIC_MAX + 1];
    weir_dead_letter_stream stream;
    weir_eventlog *log;
    weir_kafka_producer *producer;
    weir_eventlog *marks;
    uint64_t group[GROUP_LETTERS];
    size_t group_count;
    uint64_t replayed, passed_over;
} replay_context;

/* --- the other side --------------------------------------------------------------------------------------------- */

static weir_err open_log(replay_context *r) {
    const weir_eventlog_opts opts = {0};
    weir_err err = weir_eventlog_open(r->letters.folder, r->topic, &opts, &r->log);
    if (!weir_err_is(err, WEIR_EBUSY)) return err;
    return weir_err_prefix(err, "the server has the log: stop it, or send the message to its POST /v1/events");
}

static weir_err open_kafka(replay_context *r) {
    const weir_config *config = weir_cli_config(r->cli);
    const char *brokers = weir_cli_text(r->cli, "kafka");
    const weir_kafka_producer_opts opts = {.brokers =
                                               brokers ? brokers : weir_config_text(config, WEIR_CONFIG_KAFKA_BROKERS),
                                           .topic = r->topic,
                                           .timeout_us = weir_config_us(config, WEIR_CONFIG_KAFKA_TIMEOUT)};
    return weir_kafka_producer_open(&opts, &r->producer);
}

static weir_err open_marks(replay_context *r) {
    const weir_eventlog_opts opts = {.partitions = 1};
    return r->marks ? WEIR_OK : weir_eventlog_open(r->letters.folder, WEIR_DEAD_LETTER_REPLAY_TOPIC, &opts, &r->marks);
}

static weir_err sync_topic(replay_context *r) {
    uint64_t acknowledged;
    if (r->log) return weir_eventlog_sync(r->log);
    return r->producer ? weir_kafka_flush(r->producer, &acknowledged) : WEIR_OK;
}

static weir_err mark_one(replay_context *r, uint64_t number) {
    uint8_t key[8];
    uint64_t offset;
    weir_put_u64(key, number);
    const weir_record record = {.time_us = weir_clock_wall_us(weir_clock_system()),
                                .key = key,
                                .key_length = sizeof key,
                                .value = r->topic,
                                .value_length = strlen(r->topic)};
    return weir_eventlog_append(r->marks, 0, &record, 1, &offset);
}

/* What was sent is made durable, then marked. */
static weir_err settle(replay_context *r) {
    if (r->group_count == 0) return WEIR_OK;
    weir_err err = sync_topic(r);
    for (size_t i = 0; !err && i < r->group_count; i++)
        err = mark_one(r, r->group[i]);
    if (!err) err = weir_eventlog_sync(r->marks);
    if (err) return err;
    r->replayed += r->group_count;
    r->group_count = 0;
    return WEIR_OK;
}

static weir_err close_topic(replay_context *r) {
    weir_err err = weir_eventlog_close(r->log);
    weir_kafka_producer_close(r->producer);
    r->log = NULL;
    r->producer = NULL;
    r->topic[0] = '\0';
    return err;
}

static weir_err open_topic(replay_context *r, const weir_dead_letter *letter) {
    bool kafka = letter->stream == WEIR_DEAD_LETTER_KAFKA || weir_cli_given(r->cli, "kafka");
    weir_dead_letter_stream stream = kafka ? WEIR_DEAD_LETTER_KAFKA : WEIR_DEAD_LETTER_EVENTLOG;
    bool same = strlen(r->topic) == letter->topic_length && memcmp(r->topic, letter->topic, letter->topic_length) == 0;
    if ((r->log || r->producer) && same && stream == r->stream) return WEIR_OK;
    if (letter->topic_length > WEIR_KAFKA_TOPIC_MAX) return WEIR_ERR(WEIR_ECORRUPT, "a letter's topic is too long");
    weir_err err = settle(r);
    weir_err_keep(&err, close_topic(r));
    memcpy(r->topic, letter->topic, letter->topic_length);
    r->topic[letter->topic_length] = '\0';
    r->stream = stream;
    if (!err) err = open_marks(r);
    return err ? err : kafka ? open_kafka(r) : open_log(r);
}

/* --- a letter --------------------------------------------------------------------------------------------------- */

/* The same partition, so that the order of a key's messages is kept where it can be. */
static weir_err send_to_log(replay_context *r, const weir_record *record, uint32_t partition) {
    uint32_t partitions = weir_eventlog_partitions(r->log);
    uint64_t offset;
    return weir_eventlog_append(r->log, partition < partitions ? partition : partition % partitions, record, 1,
                                &offset);
}

static weir_err send(replay_context *r, const weir_dead_letter *letter) {
    const weir_record record = {.time_us = weir_clock_wall_us(weir_clock_system()),
                                .key = letter->key,
                                .key_length = letter->key_length,
                                .value = r->corrected    ? r->corrected
                                         : letter->bytes ? letter->bytes
                                                         : "",
                                .value_length = r->corrected ? r->corrected_length : letter->length};
    if (r->log) return send_to_log(r, &record, letter->partition);
    return weir_kafka_produce(r->producer, record.time_us, record.key, record.key_length, record.value,
                              record.value_length);
}

static weir_err map(const weir_schema *schema, uint32_t source, const void *bytes, size_t length) {
    weir_mapper *mapper;
    weir_mapped mapped;
    weir_err err = weir_mapper_open(schema, source, &weir_id_key_public, &mapper);
    if (!err) err = weir_mapper_map(mapper, 0, 0, bytes, length, &mapped);
    weir_mapper_close(mapper);
    return err;
}

/* Whether the schema would take it now. */
static weir_err check(const replay_context *r, const weir_cmd_letter *l) {
    char name[WEIR_SCHEMA_NAME_BYTES_MAX + 1] = "";
    const weir_dead_letter *d = &l->letter;
    if (!r->schema) return WEIR_OK;
    if (d->source_length < sizeof name) memcpy(name, d->source, d->source_length);
    uint32_t source = weir_schema_source_find(r->schema, name);
    if (source == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EDATA, "the schema has no source '%s', which letter %" PRIu64 " is of", name, l->number);
    weir_err err = map(r->schema, source,
                       r->corrected ? r->corrected
                       : d->bytes   ? d->bytes
                                    : "",
                       r->corrected ? r->corrected_length : d->length);
    return weir_err_prefix(err, "letter %" PRIu64 " would be set aside again", l->number);
}

static weir_err may_go(const replay_context *r, const weir_cmd_letter *l) {
    char text[WEIR_TIME_TEXT_MAX];
    if (l->replayed_us && !r->again) {
        weir_time_format(l->replayed_us, text);
        return WEIR_ERR(WEIR_EEXIST, "letter %" PRIu64 " was replayed at %s; --again sends it once more", l->number,
                        text);
    }
    if (l->letter.cut && !r->corrected)
        return WEIR_ERR(WEIR_EDATA, "letter %" PRIu64 " was too large to be kept whole; give it with --file",
                        l->number);
    return check(r, l);
}

/* With --all, what may not go is said and passed over. */
static weir_err replay(void *context, const weir_cmd_letter *l) {
    replay_context *r = context;
    if (r->all && l->replayed_us && !r->again) return WEIR_OK;
    weir_err err = may_go(r, l);
    if (err && r->all && !weir_err_is(err, WEIR_ENOMEM)) {
        weir_log_error("dlq.passed_over", err);
        r->passed_over++;
        return WEIR_OK;
    }
    if (!err) err = open_topic(r, &l->letter);
    if (!err) err = send(r, &l->letter);
    if (err) return err;
    r->group[r->group_count++] = l->number;
    return r->group_count == GROUP_LETTERS ? settle(r) : WEIR_OK;
}

/* --- the command ------------------------------------------------------------------------------------------------ */

static weir_err read_input(weir_buf *bytes) {
    for (;;) {
        char *room = weir_buf_reserve(bytes, 65536);
        if (!room) return weir_buf_err(bytes);
        ssize_t got = read(STDIN_FILENO, room, 65536);
        if (got < 0) return WEIR_ERR(WEIR_EIO, "cannot read the corrected message from the input");
        if (got == 0) return WEIR_OK;
        weir_buf_commit(bytes, (size_t)got);
    }
}

/* An editor's newline at the end is not the message's. */
static weir_err load_corrected(replay_context *r, const char *path) {
    weir_buf input = {.length_max = WEIR_EVENTLOG_RECORD_MAX / 2};
    weir_err err;
    if (strcmp(path, "-") == 0) {
        err = read_input(&input);
        r->corrected = input.bytes;
        r->corrected_length = input.length;
    } else {
        err = weir_file_load(path, WEIR_EVENTLOG_RECORD_MAX / 2, &r->corrected, &r->corrected_length);
    }
    if (!err && r->corrected_length == 0) return WEIR_ERR(WEIR_EDATA, "the corrected message %s is empty", path);
    if (!err && r->corrected[r->corrected_length - 1] == '\n') r->corrected_length--;
    return err;
}

static weir_err read_options(replay_context *r) {
    const char *file = weir_cli_text(r->cli, "file"), *schema = weir_cli_text(r->cli, "schema");
    size_t numbers = weir_cli_positional_count(r->cli);
    r->all = weir_cli_given(r->cli, "all");
    r->again = weir_cli_given(r->cli, "again");
    if (r->all == (numbers > 0)) return WEIR_ERR(WEIR_EUSAGE, "give the numbers of letters, or --all");
    if (file && numbers != 1) return WEIR_ERR(WEIR_EUSAGE, "--file corrects one letter: give one number");
    weir_err err = file ? load_corrected(r, file) : WEIR_OK;
    if (!err && schema) err = weir_schema_load_named(schema, &r->schema);
    if (!err) err = weir_cmd_letters_open(r->cli, &r->letters);
    return err ? err : weir_cmd_letters_filter(r->cli, &r->letters);
}

static weir_err replay_all(replay_context *r) {
    if (r->all) return weir_cmd_letters_walk(&r->letters, replay, r);
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < weir_cli_positional_count(r->cli); i++) {
        uint64_t number;
        err = weir_cmd_letter_number(r->cli, i, &number);
        if (!err) err = weir_cmd_letters_one(&r->letters, number, replay, r);
    }
    return err;
}

static weir_err print_count(const replay_context *r) {
    char line[96];
    int length = snprintf(line, sizeof line, "%" PRIu64 " replayed", r->replayed);
    if (r->passed_over) {
        length += snprintf(line + length, sizeof line - (size_t)length, ", %" PRIu64 " passed over", r->passed_over);
    }
    line[length++] = '\n';
    return weir_cli_output(line, (size_t)length);
}

static weir_err run(weir_cli *cli) {
    replay_context r = {.cli = cli};
    weir_err err = read_options(&r);
    if (!err) err = replay_all(&r);
    weir_err_keep(&err, settle(&r)); /* what went before an error has gone */
    weir_err_keep(&err, close_topic(&r));
    weir_err_keep(&err, weir_eventlog_close(r.marks));
    if (!err || r.replayed) weir_err_keep(&err, print_count(&r));
    weir_cmd_letters_close(&r.letters);
    weir_schema_free(r.schema);
    weir_free(r.corrected);
    return err;
}

static const weir_option options[] = {
    WEIR_CMD_DLQ_PATH,
    WEIR_CMD_DLQ_FILTERS,
    {"all", 'a', NULL, "all that pass the filters and were not replayed yet", NULL},
    {"again", 0, NULL, "also what was replayed already", NULL},
    {"file", 'f', "FILE", "send the content of this file instead, '-' for the input; for one number", NULL},
    {"schema", 'S', "FILE|NAME", "send only what this schema takes", NULL},
    {"kafka", 'k', "[BROKERS]", "to Kafka, wherever they came from (default: where they came from; kafka.brokers)",
     NULL},
    {0},
};

const weir_command weir_cmd_dlq_replay = {
    .name = "replay",
    .summary = "send messages to their topic again, as they were or corrected",
    .positional = "[NUMBER...]",
    .positional_max = 256,
    .description =
        "For when the schema was put right, or the message was. A message goes to the end of its partition; event "
        "time is what it says itself, so nothing is late. Sending one twice changes nothing.",
    .example = "weir ingest dlq replay --all --schema payments.yaml\n"
               "weir ingest dlq show 12 | sed 's/,}/}/' | weir ingest dlq replay 12 --file - --schema payments",
    .options = options,
    .run = run,
};

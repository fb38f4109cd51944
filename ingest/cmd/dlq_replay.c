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
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>
#include <weir/store/cmd/store.h>

#include "dlq_private.h"

#define GROUP_LETTERS 1024u /* made durable, then marked, together */

typedef struct resend {
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
} resend;

/* --- the other side --------------------------------------------------------------------------------------------- */

/* What was sent is made durable, then marked. */
static weir_err resend_settle(resend *r) {
    uint64_t acknowledged, offset;
    weir_err err = WEIR_OK;
    if (r->group_count == 0) return WEIR_OK;
    if (r->log) err = weir_eventlog_sync(r->log);
    if (r->producer) err = weir_kafka_flush(r->producer, &acknowledged);
    for (size_t i = 0; !err && i < r->group_count; i++) {
        uint8_t key[8];
        weir_put_u64(key, r->group[i]);
        const weir_record mark = {.time_us = weir_clock_wall_us(weir_clock_system()),
                                  .key = key,
                                  .key_length = sizeof key,
                                  .value = r->topic,
                                  .value_length = strlen(r->topic)};
        err = weir_eventlog_append(r->marks, 0, &mark, 1, &offset);
    }
    if (!err) err = weir_eventlog_sync(r->marks);
    if (err) return err;
    r->replayed += r->group_count;
    r->group_count = 0;
    return WEIR_OK;
}

static weir_err resend_close_topic(resend *r) {
    weir_err err = weir_eventlog_close(r->log);
    weir_kafka_producer_close(r->producer);
    r->log = NULL;
    r->producer = NULL;
    r->topic[0] = '\0';
    return err;
}

static weir_err resend_open_topic(resend *r, const weir_dead_letter *letter) {
    bool kafka = letter->stream == WEIR_DEAD_LETTER_KAFKA || weir_cli_given(r->cli, "kafka");
    weir_dead_letter_stream stream = kafka ? WEIR_DEAD_LETTER_KAFKA : WEIR_DEAD_LETTER_EVENTLOG;
    bool same = strlen(r->topic) == letter->topic_length && memcmp(r->topic, letter->topic, letter->topic_length) == 0;
    if ((r->log || r->producer) && same && stream == r->stream) return WEIR_OK;
    if (letter->topic_length > WEIR_KAFKA_TOPIC_MAX) return WEIR_ERR(WEIR_ECORRUPT, "a letter's topic is too long");
    weir_err err = resend_settle(r);
    weir_err_keep(&err, resend_close_topic(r));
    memcpy(r->topic, letter->topic, letter->topic_length);
    r->topic[letter->topic_length] = '\0';
    r->stream = stream;
    const weir_eventlog_opts marks = {.partitions = 1};
    if (!err && !r->marks)
        err = weir_eventlog_open(r->letters.folder, WEIR_DEAD_LETTER_REPLAY_TOPIC, &marks, &r->marks);
    if (err) return err;
    if (kafka) {
        const weir_config *config = weir_cli_config(r->cli);
        const char *brokers = weir_cli_text(r->cli, "kafka");
        const weir_kafka_producer_opts opts = {.brokers = brokers ? brokers
                                                                  : weir_config_text(config, WEIR_CONFIG_KAFKA_BROKERS),
                                               .topic = r->topic,
                                               .timeout_us = weir_config_us(config, WEIR_CONFIG_KAFKA_TIMEOUT)};
        return weir_kafka_producer_open(&opts, &r->producer);
    }
    err = weir_eventlog_open(r->letters.folder, r->topic, &(weir_eventlog_opts){0}, &r->log);
    if (!weir_err_is(err, WEIR_EBUSY)) return err;
    return weir_err_prefix(err, "the server has the log: stop it, or send the message to its POST /v1/events");
}

/* --- a letter --------------------------------------------------------------------------------------------------- */

static weir_err resend_send(resend *r, const weir_dead_letter *letter) {
    const weir_record record = {.time_us = weir_clock_wall_us(weir_clock_system()),
                                .key = letter->key,
                                .key_length = letter->key_length,
                                .value = r->corrected    ? r->corrected
                                         : letter->bytes ? letter->bytes
                                                         : "",
                                .value_length = r->corrected ? r->corrected_length : letter->length};
    if (r->log) {
        /* The same partition, so that the order of a key's messages is kept where it can be. */
        uint64_t offset;
        return weir_eventlog_append(r->log, letter->partition % weir_eventlog_partitions(r->log), &record, 1, &offset);
    }
    return weir_kafka_produce(r->producer, record.time_us, record.key, record.key_length, record.value,
                              record.value_length);
}

/* Whether the schema would take it now. */
static weir_err resend_check(const resend *r, const weir_cmd_letter *l) {
    char name[WEIR_SCHEMA_NAME_BYTES_MAX + 1] = "";
    const weir_dead_letter *d = &l->letter;
    if (!r->schema) return WEIR_OK;
    if (d->source_length < sizeof name) memcpy(name, d->source, d->source_length);
    uint32_t source = weir_schema_source_find(r->schema, name);
    if (source == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EDATA, "the schema has no source '%s', which letter %" PRIu64 " is of", name, l->number);
    const void *bytes = r->corrected ? r->corrected : d->bytes ? d->bytes : "";
    weir_mapper *mapper;
    weir_mapped mapped;
    weir_err err = weir_mapper_open(r->schema, source, &weir_id_key_public, &mapper);
    if (!err) err = weir_mapper_map(mapper, 0, 0, bytes, r->corrected ? r->corrected_length : d->length, &mapped);
    weir_mapper_close(mapper);
    return weir_err_prefix(err, "letter %" PRIu64 " would be set aside again", l->number);
}

static weir_err resend_may_go(const resend *r, const weir_cmd_letter *l) {
    char text[WEIR_TIME_TEXT_MAX];
    if (l->replayed_us && !r->again) {
        weir_time_format(l->replayed_us, text);
        return WEIR_ERR(WEIR_EEXIST, "letter %" PRIu64 " was replayed at %s; --again sends it once more", l->number,
                        text);
    }
    if (l->letter.cut && !r->corrected)
        return WEIR_ERR(WEIR_EDATA, "letter %" PRIu64 " was too large to be kept whole; give it with --file",
                        l->number);
    return resend_check(r, l);
}

/* Sends one letter. With --all, one that may not go is logged and passed over. */
static weir_err resend_letter(void *context, const weir_cmd_letter *l) {
    resend *r = context;
    if (r->all && l->replayed_us && !r->again) return WEIR_OK;
    weir_err err = resend_may_go(r, l);
    if (err && r->all && !weir_err_is(err, WEIR_ENOMEM)) {
        weir_log_error("dlq.passed_over", err);
        r->passed_over++;
        return WEIR_OK;
    }
    if (!err) err = resend_open_topic(r, &l->letter);
    if (!err) err = resend_send(r, &l->letter);
    if (err) return err;
    WEIR_ASSERT(r->group_count < GROUP_LETTERS);
    r->group[r->group_count++] = l->number;
    return r->group_count == GROUP_LETTERS ? resend_settle(r) : WEIR_OK;
}

/* --- the command ------------------------------------------------------------------------------------------------ */

/* A newline at the end comes from the editor and is not part of the message. */
static weir_err resend_load_corrected(resend *r, const char *path) {
    weir_buf input = {.length_max = WEIR_EVENTLOG_RECORD_MAX / 2};
    weir_err err;
    if (strcmp(path, "-") == 0) {
        char piece[65536];
        ssize_t got;
        while ((got = read(STDIN_FILENO, piece, sizeof piece)) > 0 && !input.failed)
            weir_buf_append(&input, piece, (size_t)got);
        err = got < 0 ? WEIR_ERR(WEIR_EIO, "cannot read the corrected message from the input") : weir_buf_err(&input);
        r->corrected = input.bytes;
        r->corrected_length = input.length;
    } else {
        err = weir_file_load(path, WEIR_EVENTLOG_RECORD_MAX / 2, &r->corrected, &r->corrected_length);
    }
    if (!err && r->corrected_length == 0) return WEIR_ERR(WEIR_EDATA, "the corrected message %s is empty", path);
    if (!err && r->corrected[r->corrected_length - 1] == '\n') r->corrected_length--;
    return err;
}

static weir_err resend_read_options(resend *r) {
    const char *file = weir_cli_text(r->cli, "file"), *schema = weir_cli_text(r->cli, "schema");
    size_t numbers = weir_cli_positional_count(r->cli);
    r->all = weir_cli_given(r->cli, "all");
    r->again = weir_cli_given(r->cli, "again");
    if (r->all == (numbers > 0)) return WEIR_ERR(WEIR_EUSAGE, "give the numbers of letters, or --all");
    if (file && numbers != 1) return WEIR_ERR(WEIR_EUSAGE, "--file corrects one letter: give one number");
    weir_err err = file ? resend_load_corrected(r, file) : WEIR_OK;
    if (!err && schema) err = weir_schema_load_named(schema, &r->schema);
    if (!err) err = weir_cmd_letters_open(r->cli, &r->letters);
    return err ? err : weir_cmd_letters_filter(r->cli, &r->letters);
}

static weir_err resend_run(weir_cli *cli) {
    resend r = {.cli = cli};
    weir_buf line = {0};
    weir_err err = resend_read_options(&r);
    if (!err && r.all) err = weir_cmd_letters_walk(&r.letters, resend_letter, &r);
    for (size_t i = 0; !err && i < weir_cli_positional_count(cli); i++) {
        uint64_t number;
        err = weir_cmd_letter_number(cli, i, &number);
        if (!err) err = weir_cmd_letters_one(&r.letters, number, resend_letter, &r);
    }
    weir_err_keep(&err, resend_settle(&r)); /* what went before an error has gone */
    weir_err_keep(&err, resend_close_topic(&r));
    weir_err_keep(&err, weir_eventlog_close(r.marks));
    if (!err || r.replayed) {
        weir_buf_printf(&line, "%" PRIu64 " replayed", r.replayed);
        if (r.passed_over) weir_buf_printf(&line, ", %" PRIu64 " passed over", r.passed_over);
        weir_buf_byte(&line, '\n');
        weir_err_keep(&err, weir_cmd_print(&line));
    }
    weir_cmd_letters_close(&r.letters);
    weir_schema_free(r.schema);
    weir_free(r.corrected);
    return err;
}

static const weir_option resend_options[] = {
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
    .options = resend_options,
    .run = resend_run,
};

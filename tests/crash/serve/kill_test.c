/* SPDX-License-Identifier: Apache-2.0 */
/* kill_test.c - the campaign with events over HTTP, into the built-in event log. */
#include "campaign.h"

#define SEND_MAX 128u

/* --- sending ------------------------------------------------------------------------------------------------*/

static bool post(campaign *c, const char *body, http_answer *answer) {
    char head[256];
    snprintf(head, sizeof head,
             "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
             "Content-Length: %zu\r\n\r\n",
             strlen(body));
    *answer = (http_answer){0};
    if (!client_text(&c->client, head) || !client_text(&c->client, body)) return false;
    client_read(&c->client, answer);
    return answer->status != 0;
}

/* The answer's places are entered, or, for what was acknowledged before, held against the book. */
static void enter(campaign *c, const json_t *root, const size_t *numbers, size_t count) {
    const json_t *events = json_object_get(root, "events");
    assert_int_equal(json_array_size(events), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *said = json_array_get(events, i);
        uint32_t partition = (uint32_t)json_integer_value(json_object_get(said, "partition"));
        uint64_t offset = (uint64_t)json_integer_value(json_object_get(said, "offset"));
        const book_event *event = &c->book.events[numbers[i]];
        if (!event->acknowledged) {
            book_acknowledge(&c->book, numbers[i], partition, offset);
        } else if (event->partition != partition || event->offset != offset) {
            doubled("event", numbers[i]);
        }
    }
}

static bool send_numbers(campaign *c, const size_t *numbers, size_t count) {
    static char body[SEND_MAX * BOOK_TEXT_MAX];
    size_t length = 0;
    http_answer answer;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(body + length, sizeof body - length, "%s\n", c->book.events[numbers[i]].text);
    json_t *root = post(c, body, &answer) ? json_loads(answer.body, 0, NULL) : NULL;
    bool answered = root != NULL; /* a cut one is none */
    if (answered && answer.status != 200) fail_msg("%d: %s", answer.status, answer.body);
    if (answered) enter(c, root, numbers, count);
    json_decref(root);
    answer_free(&answer);
    return answered;
}

/* The id of an event that is there, and other bytes: refused, or answered by the first one's place; never taken. */
static bool send_other_bytes(campaign *c) {
    char text[BOOK_TEXT_MAX];
    http_answer answer;
    size_t number = weir_rng_below(&c->rng, c->book.acknowledged);
    const book_event *event = &c->book.events[number];
    book_other_bytes(&c->book, number, text);
    if (!post(c, text, &answer)) return false;
    if (answer.status == 200) {
        json_t *root = json_loads(answer.body, 0, NULL);
        const json_t *said = json_array_get(json_object_get(root, "events"), 0);
        uint64_t offset = (uint64_t)json_integer_value(json_object_get(said, "offset"));
        if (!json_is_true(json_object_get(said, "duplicate")) || offset != event->offset)
            doubled("with other bytes: event", number);
        json_decref(root);
    } else {
        assert_int_equal(answer.status, 409);
    }
    answer_free(&answer);
    return true;
}

/* What had no answer, then new events; one in ten is an old one again. */
static bool send_events(campaign *c, const serve_child *server, size_t count) {
    size_t numbers[SEND_MAX], n = 0;
    (void)server;
    for (size_t i = c->book.acknowledged; i < c->sent; i++)
        numbers[n++] = i;
    for (size_t i = 0; i < count; i++) {
        bool again = c->book.acknowledged && weir_rng_below(&c->rng, 10) == 0;
        if (!again) book_next(&c->book, &c->rng, false);
        numbers[n++] = again ? weir_rng_below(&c->rng, c->book.acknowledged) : c->book.count - 1;
    }
    c->sent = c->book.count;
    if (n && !send_numbers(c, numbers, n)) return false;
    return !c->book.acknowledged || weir_rng_below(&c->rng, 6) || send_other_bytes(c);
}

/* --- the log ------------------------------------------------------------------------------------------------*/

static void see_record(campaign *c, uint32_t partition, const weir_record *record, uint8_t *seen) {
    size_t number = book_number(record->value, record->value_length);
    assert_in_range(number, 0, c->book.count - 1);
    const book_event *event = &c->book.events[number];
    if (seen[number]++) doubled("in the log: event", number);
    if (strlen(event->text) != record->value_length || memcmp(event->text, record->value, record->value_length) != 0)
        lose("in the log: the bytes of event", number);
    if (event->acknowledged && (event->partition != partition || event->offset != record->offset))
        lose("in the log: the place of event", number);
}

static void walk_partition(campaign *c, weir_eventlog *log, uint32_t partition, uint8_t *seen) {
    weir_eventlog_reader *reader;
    weir_record records[256];
    size_t count = 1;
    assert_ok(weir_eventlog_reader_open(log, partition, 0, &reader));
    while (count) {
        assert_ok(weir_eventlog_reader_next(reader, records, 256, &count));
        for (size_t i = 0; i < count; i++)
            see_record(c, partition, &records[i], seen);
    }
    weir_eventlog_reader_close(reader);
}

/* As the kill left it: what was acknowledged is at its place, and nothing is there twice. */
static void compare_log(campaign *c) {
    const weir_eventlog_opts opts = {.read_only = true};
    weir_eventlog *log;
    if (!c->book.acknowledged) return; /* it may not even be there */
    uint8_t *seen = weir_calloc(c->book.count, 1);
    assert_non_null(seen);
    assert_ok(weir_eventlog_open(weir_test_path("log"), c->topic, &opts, &log));
    for (uint32_t p = 0; p < weir_eventlog_partitions(log); p++)
        walk_partition(c, log, p, seen);
    for (size_t i = 0; i < c->book.count; i++)
        if (c->book.events[i].acknowledged && !seen[i]) lose("in the log: event", i);
    assert_ok(weir_eventlog_close(log));
    weir_free(seen);
}

/* --- the campaign -------------------------------------------------------------------------------------------*/

static void begin(campaign *c) {
    (void)c;
}

static kill_point points[] = {
    {"seal.begin", 9, 0},         {"seal.half_written", 9, 0}, {"engine.finished", 9, 0},  {"engine.ingested", 9, 0},
    {"seal.ingested", 9, 0},      {"seal.end", 9, 0},          {"serve.opened", 1, 0},     {"serve.ready", 1, 0},
    {"pipeline.submitted", 9, 0}, {"shard.applied", 30, 0},    {"events.appended", 20, 0}, {"events.synced", 20, 0},
    {"eventlog.marked", 20, 0},   {"trim.begun", 3, 0},        {"trim.written", 3, 0},     {"trim.whole", 3, 0},
    {"trim.replaced", 3, 0},      {"checkpoint.shard", 3, 0},  {"checkpoint.whole", 1, 0},
};

static void kill_at_random_moments_and_at_every_named_point(void **state) {
    static const stream http = {.life_max_ms = 400,
                                .points = points,
                                .point_count = sizeof points / sizeof points[0],
                                .begin = begin,
                                .send = send_events,
                                .compare_log = compare_log};
    (void)state;
    run_campaign(&http, cycles_wanted(26));
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(kill_at_random_moments_and_at_every_named_point)};
    if (!campaign_share()) return 2;
    int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    campaign_say();
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Producer and consumer against a real broker: every record once, in order, also when the broker dies in between. */
#include <inttypes.h>

#include <librdkafka/rdkafka.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>

#include "broker.h"

#define TIMEOUT_US 300000000          /* longer than a broker on a busy machine needs to come back */
#define TIME_US    1700000000123000ll /* years ago: see k2_killed_broker_loses_and_doubles_nothing */
#define WAIT_US    100000
#define KEYS       97u
#define PARTITIONS 4u
#define POLLS_MAX  6000 /* of 100 ms: a broker that never answers fails the case by its own limit */

static weir_kafka_producer *open_producer(const char *topic, uint32_t partitions) {
    const weir_kafka_producer_opts opts = {
        .brokers = broker_needed(), .topic = topic, .partitions = partitions, .timeout_us = TIMEOUT_US};
    weir_kafka_producer *producer;
    assert_ok(weir_kafka_producer_open(&opts, &producer));
    return producer;
}

static weir_err try_consumer(const char *topic, const weir_kafka_start *starts, size_t count,
                             weir_kafka_consumer **consumerp) {
    const weir_kafka_consumer_opts opts = {.brokers = broker_needed(),
                                           .topic = topic,
                                           .starts = starts,
                                           .start_count = count,
                                           .buffer_bytes = 1 << 20,
                                           .timeout_us = TIMEOUT_US};
    return weir_kafka_consumer_open(&opts, consumerp);
}

static weir_kafka_consumer *open_consumer(const char *topic, const weir_kafka_start *starts, size_t count) {
    weir_kafka_consumer *consumer;
    assert_ok(try_consumer(topic, starts, count, &consumer));
    return consumer;
}

/* Record number i: its key is one of KEYS, its value says i, padded to a length that i decides. */
static void produce_numbered(weir_kafka_producer *producer, uint32_t i) {
    char key[16], value[400];
    int key_length = snprintf(key, sizeof key, "key-%" PRIu32, i % KEYS);
    int length = snprintf(value, sizeof value, "%-*" PRIu32, (int)(20 + i % 300), i);
    assert_ok(weir_kafka_produce(producer, TIME_US + i * 1000, key, (size_t)key_length, value, (size_t)length));
}

/* What a reader has seen of the records 0..count. */
typedef struct seen_records {
    uint32_t count;
    uint8_t *times;      /* each record was seen */
    uint64_t next_of[8]; /* offset by partition */
    int64_t last_of_key[KEYS];
} seen_records;

static void see(seen_records *seen, const weir_kafka_record *record) {
    char text[16] = "";
    assert_in_range(record->partition, 0, PARTITIONS - 1);
    assert_int_equal(record->offset, seen->next_of[record->partition]++);
    memcpy(text, record->value, 12);
    uint32_t i = (uint32_t)strtoul(text, NULL, 10);
    assert_in_range(i, 0, seen->count - 1);
    assert_int_equal(record->time_us, TIME_US + (int64_t)i * 1000);
    assert_int_equal(record->value_length, 20 + i % 300);
    memcpy(text, record->key, record->key_length < 15 ? record->key_length : 15);
    text[record->key_length] = 0;
    assert_int_equal(strtoul(text + 4, NULL, 10), i % KEYS);
    assert_true(seen->last_of_key[i % KEYS] < (int64_t)i); // in the order in which they were produced
    seen->last_of_key[i % KEYS] = i;
    seen->times[i]++;
}

/* Reads all of a topic from its beginning: each of count records must be there once. */
static void read_numbered(const char *topic, uint32_t count) {
    weir_kafka_start starts[PARTITIONS] = {{0}};
    weir_kafka_record records[500];
    seen_records seen = {.count = count, .times = weir_calloc(count, 1)};
    for (uint32_t p = 0; p < PARTITIONS; p++)
        starts[p].partition = p;
    memset(seen.last_of_key, 0xff, sizeof seen.last_of_key);
    weir_kafka_consumer *consumer = open_consumer(topic, starts, PARTITIONS);
    for (int polls = 0; polls < POLLS_MAX && !weir_kafka_consumer_at_end(consumer); polls++) {
        size_t got;
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, records, 500, &got));
        for (size_t i = 0; i < got; i++)
            see(&seen, &records[i]);
    }
    assert_true(weir_kafka_consumer_at_end(consumer));
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(seen.times[i], 1);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        weir_kafka_position_stats position;
        assert_ok(weir_kafka_consumer_position(consumer, p, &position));
        assert_int_equal(position.offset_next, seen.next_of[p]);
        assert_int_equal(position.offset_end, seen.next_of[p]);
    }
    weir_kafka_consumer_close(consumer);
    weir_free(seen.times);
}

static void k3_ten_thousand_keyed_records_come_back(void **state) {
    (void)state;
    const uint32_t count = 10000;
    weir_kafka_producer *producer = open_producer("back", PARTITIONS);
    for (uint32_t i = 0; i < count; i++)
        produce_numbered(producer, i);
    uint64_t acknowledged = 0;
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, count);
    weir_kafka_producer_close(producer);
    read_numbered("back", count);
}

/* Killed with records on their way that it has stored and not acknowledged: these are sent again. The events are years
 * old, and a broker that took that for the age of the producer would store them twice. */
static void k2_killed_broker_loses_and_doubles_nothing(void **state) {
    (void)state;
    const uint32_t count = 30000;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = 0; round < weir_test_rounds(1); round++) {
        char topic[32];
        snprintf(topic, sizeof topic, "killed-%" PRIu64, round);
        weir_kafka_producer *producer = open_producer(topic, PARTITIONS);
        const uint32_t killed_at = (uint32_t)weir_rng_below(&rng, count / 3);
        const useconds_t wait_us = (useconds_t)weir_rng_below(&rng, 60000);
        for (uint32_t i = 0; i < count; i++) {
            if (i == killed_at) {
                usleep(wait_us);
                broker_kill();
            }
            if (i == killed_at + count / 3) broker_start_again();
            produce_numbered(producer, i);
        }
        uint64_t acknowledged = 0;
        assert_ok(weir_kafka_flush(producer, &acknowledged));
        assert_int_equal(acknowledged, count);
        weir_kafka_producer_close(producer);
        read_numbered(topic, count);
    }
}

/* Two values are told apart from none, and so are two keys. */
static void empty_and_missing_keys_and_values(void **state) {
    (void)state;
    weir_kafka_producer *producer = open_producer("empty", 1);
    uint64_t acknowledged;
    assert_ok(weir_kafka_produce(producer, TIME_US, NULL, 0, "v", 1));
    assert_ok(weir_kafka_produce(producer, TIME_US, "", 0, "v", 1));
    assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, NULL, 0));
    assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, "", 0));
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    weir_kafka_producer_close(producer);
    const weir_kafka_start start = {0};
    weir_kafka_consumer *consumer = open_consumer("empty", &start, 1);
    weir_kafka_record records[4];
    uint64_t checks[4] = {0};
    size_t have = 0;
    while (have < 4) {
        size_t got;
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &records[have], 1, &got));
        if (got) checks[have] = weir_kafka_record_check(&records[have]);
        if (got && have == 0) assert_null(records[have].key);
        if (got && have == 1) assert_non_null(records[have].key);
        if (got && have == 2) assert_null(records[have].value);
        if (got && have == 3) assert_non_null(records[have].value);
        have += got;
    }
    assert_true(checks[0] != checks[1] && checks[2] != checks[3]);
    weir_kafka_consumer_close(consumer);
}

static void k5_missing_topic_stays_missing(void **state) {
    (void)state;
    size_t partitions = 7;
    weir_kafka_producer *producer;
    weir_kafka_consumer *consumer;
    const weir_kafka_start start = {0};
    const weir_kafka_producer_opts opts = {.brokers = broker_needed(), .topic = "nowhere", .timeout_us = TIMEOUT_US};
    assert_err(weir_kafka_producer_open(&opts, &producer), WEIR_ENOTFOUND, "ops/kafka topic create nowhere");
    assert_null(producer);
    assert_err(try_consumer("nowhere", &start, 1, &consumer), WEIR_ENOTFOUND, "no topic 'nowhere'");
    assert_null(consumer);
    assert_err(weir_kafka_topic_stats_get(broker_needed(), "nowhere", TIMEOUT_US, NULL, 0, &partitions), WEIR_ENOTFOUND,
               "nowhere");
    assert_int_equal(partitions, 0);
    // Topics are made one after the other: were that one on its way, it would be there before this one.
    broker_do("topic", "create", "somewhere");
    weir_test_output output;
    broker_tool((const char *const[]){"topic", "ls", "--dir", broker_folder, NULL}, NULL, &output);
    assert_non_null(strstr(output.out, "somewhere"));
    assert_null(strstr(output.out, "nowhere"));
    weir_test_output_free(&output);
}

static void created_topic_keeps_all_records(void **state) {
    (void)state;
    weir_kafka_producer_close(open_producer("kept", 3));
    weir_kafka_partition_stats stats[3];
    size_t partitions;
    assert_ok(weir_kafka_topic_stats_get(broker_needed(), "kept", TIMEOUT_US, stats, 2, &partitions));
    assert_int_equal(partitions, 3);
    weir_test_output output;
    broker_tool((const char *const[]){"topic", "show", "kept", "--dir", broker_folder, NULL}, NULL, &output);
    assert_non_null(strstr(output.out, "retention.ms=-1"));
    assert_non_null(strstr(output.out, "retention.bytes=-1"));
    assert_non_null(strstr(output.out, "cleanup.policy=delete"));
    weir_test_output_free(&output);
    // One that is there keeps the partitions that it has.
    weir_kafka_producer_close(open_producer("kept", 5));
    assert_ok(weir_kafka_topic_stats_get(broker_needed(), "kept", TIMEOUT_US, NULL, 0, &partitions));
    assert_int_equal(partitions, 3);
}

/* The limit is the topic's own, and full batches stay below it as well. */
static void record_at_the_limit_and_one_past_it(void **state) {
    (void)state;
    enum { LIMIT = 20000, OVERHEAD = 160 };
    static char value[LIMIT];
    broker_needed();
    broker_do("topic", "create", "small", "--partitions", "1", "--config", "max.message.bytes=20000");
    weir_kafka_producer *producer = open_producer("small", 0);
    memset(value, 'v', sizeof value);
    assert_err(weir_kafka_produce(producer, TIME_US, "k", 1, value, LIMIT - OVERHEAD), WEIR_ELIMIT,
               "max.message.bytes, which is 20000");
    uint64_t acknowledged;
    for (int i = 0; i < 2000; i++)
        assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, value, 100));
    assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, value, LIMIT - OVERHEAD - 1));
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, 2001);
    weir_kafka_producer_close(producer);
}

/* A client of somebody else. */
static rd_kafka_t *open_another(void) {
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", broker_address, text, sizeof text), 0);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(rk);
    return rk;
}

static void produce_by_another(const char *topic, int64_t time_ms) {
    rd_kafka_t *rk = open_another();
    const rd_kafka_vu_t parts[] = {{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
                                   {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = time_ms}};
    assert_null(rd_kafka_produceva(rk, parts, 2));
    assert_int_equal(rd_kafka_flush(rk, TIMEOUT_US / 1000), 0);
    rd_kafka_destroy(rk);
}

/* To the microsecond, of now, of long ago, and before 1970; of the records of others in Kafka's milliseconds. */
static void times_come_back(void **state) {
    (void)state;
    const int64_t now_us = weir_clock_wall_us(weir_clock_system()), ms = now_us - now_us % 1000, hour = 3600000000;
    const int64_t times[] = {ms,          now_us,  ms - 1, ms - hour, ms - 13 * hour, ms + 1000,    ms + hour,
                             TIME_US + 1, TIME_US, 0,      -1,        INT64_MAX,      INT64_MIN + 1};
    const size_t count = sizeof times / sizeof times[0];
    weir_kafka_producer *producer = open_producer("times", 1);
    uint64_t acknowledged;
    for (size_t i = 0; i < count; i++)
        assert_ok(weir_kafka_produce(producer, times[i], "k", 1, "v", 1));
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    weir_kafka_producer_close(producer);
    produce_by_another("times", TIME_US / 1000);
    weir_kafka_consumer *consumer = open_consumer("times", &(weir_kafka_start){0}, 1);
    for (size_t have = 0; have <= count;) {
        weir_kafka_record record;
        size_t got;
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got));
        if (got) assert_true(record.time_us == (have < count ? times[have] : TIME_US));
        have += got;
    }
    weir_kafka_consumer_close(consumer);
}

/* --- a record that is refused --- */

/* One poll; the records must be *nextp, *nextp + 1, …, by offset and by value. */
static weir_err read_on(weir_kafka_consumer *consumer, uint64_t *nextp) {
    weir_kafka_record records[64];
    size_t got;
    weir_err err = weir_kafka_consumer_poll(consumer, WAIT_US, records, 64, &got);
    for (size_t i = 0; i < got; i++) {
        assert_int_equal(records[i].offset, *nextp);
        assert_int_equal(strtoul((const char *)records[i].value, NULL, 10), *nextp);
        (*nextp)++;
    }
    return err;
}

static weir_err read_until_error(weir_kafka_consumer *consumer, uint64_t *nextp) {
    weir_err err = WEIR_OK;
    for (int polls = 0; polls < POLLS_MAX && !err; polls++)
        err = read_on(consumer, nextp);
    return err;
}

/* The topic takes less from now on: what the producer knows is the limit of when it was opened. */
static void lower_the_limit(const char *topic, const char *bytes) {
    rd_kafka_t *rk = open_another();
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_ConfigResource_set_config(resource, "max.message.bytes", bytes);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_AlterConfigs(rk, &resource, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_US / 1000);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_destroy(rk);
}

/* Record `number`, of so many bytes. */
static weir_err produce_sized(weir_kafka_producer *producer, uint64_t number, size_t bytes) {
    static char value[1 << 20];
    memset(value, 'v', sizeof value);
    int length = snprintf(value, sizeof value, "%08" PRIu64, number);
    value[length] = 'v';
    return weir_kafka_produce(producer, TIME_US, "k", 1, value, bytes);
}

static void produce_small(weir_kafka_producer *producer, uint64_t *numberp) {
    for (int i = 0; i < 100; i++)
        if (produce_sized(producer, (*numberp)++, 100)) return; // the caller sees it at its flush
}

/* The broker refuses a record that we thought it takes. Those behind it are on their way or wait, in a batch that it
 * would take; they must not be stored. */
static void k1_nothing_is_stored_behind_a_refused_record(void **state) {
    (void)state;
    const size_t alone = 990000; /* leaves no room for another in its batch */
    weir_kafka_producer *producer = open_producer("refused", 1);
    uint64_t number = 0, refused = 0, acknowledged = 0, next = 0;
    produce_small(producer, &number);
    weir_err err = weir_kafka_flush(producer, &acknowledged);
    assert_ok(err);
    lower_the_limit("refused", "100000");
    for (int tries = 0; tries < 1000 && !err; tries++) { // until the broker knows
        refused = number;
        assert_ok(produce_sized(producer, number++, alone));
        produce_small(producer, &number);
        err = weir_kafka_flush(producer, &acknowledged);
    }
    assert_err(err, WEIR_ELIMIT, "Kafka refused a record");
    assert_int_equal(acknowledged, refused);
    weir_kafka_producer_close(producer);
    weir_kafka_consumer *consumer = open_consumer("refused", &(weir_kafka_start){0}, 1);
    while (!weir_kafka_consumer_at_end(consumer))
        assert_ok(read_on(consumer, &next));
    weir_kafka_consumer_close(consumer);
    assert_int_equal(next, refused);
}

/* --- offsets that are not there --- */

static void delete_records_below(const char *topic, int64_t offset) {
    rd_kafka_t *rk = open_another();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = offset;
    rd_kafka_DeleteRecords_t *request = rd_kafka_DeleteRecords_new(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteRecords(rk, &request, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_US / 1000);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
}

/* One partition with `count` records of about 1 KiB; the value begins with the offset. */
static void fill(const char *topic, uint32_t count, char pad) {
    char value[1024];
    uint64_t acknowledged;
    weir_kafka_producer *producer = open_producer(topic, 1);
    memset(value, pad, sizeof value);
    for (uint32_t i = 0; i < count; i++) {
        int length = snprintf(value, sizeof value, "%08" PRIu32, i);
        value[length] = pad;
        assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, value, sizeof value));
    }
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, count);
    weir_kafka_producer_close(producer);
}

static void k4_offset_that_is_gone_or_not_there_yet(void **state) {
    (void)state;
    weir_kafka_consumer *consumer;
    fill("gone", 100, 'a');
    delete_records_below("gone", 40);
    assert_err(try_consumer("gone", &(weir_kafka_start){.offset = 39}, 1, &consumer), WEIR_EDATA,
               "offset 39 is gone; the earliest that the broker still has is 40");
    assert_err(try_consumer("gone", &(weir_kafka_start){.offset = 101}, 1, &consumer), WEIR_ECORRUPT,
               "ends at 100, before offset 101");
    assert_err(try_consumer("gone", &(weir_kafka_start){.partition = 1}, 1, &consumer), WEIR_ENOTFOUND,
               "1 partitions, numbered from 0; there is no partition 1");
    assert_err(try_consumer("gone", (const weir_kafka_start[]){{.offset = 40}, {.offset = 40}}, 2, &consumer),
               WEIR_EINVAL, "read twice");
    consumer = open_consumer("gone", &(weir_kafka_start){.offset = 100}, 1);
    weir_kafka_record record;
    size_t got;
    for (int polls = 0; polls < POLLS_MAX && !weir_kafka_consumer_at_end(consumer); polls++) {
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got));
        assert_int_equal(got, 0);
    }
    weir_kafka_consumer_close(consumer);
}

static void k4_retention_passes_a_slow_reader(void **state) {
    (void)state;
    const uint32_t count = 8000; /* 8 MB: more than the reader buffers ahead */
    fill("slow", count, 'a');
    weir_kafka_consumer *consumer = open_consumer("slow", &(weir_kafka_start){0}, 1);
    weir_kafka_record record;
    size_t got = 0;
    while (got == 0)
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got));
    delete_records_below("slow", count - 1);
    uint64_t next = 1;
    weir_err err = read_until_error(consumer, &next);
    assert_err(err, WEIR_EDATA, "the earliest that the broker still has is 7999");
    assert_in_range(next, 1, count - 2);
    assert_err(weir_kafka_consumer_poll(consumer, 0, &record, 1, &got), WEIR_EDATA, "7999"); // and says so again
    assert_int_equal(got, 0);
    weir_kafka_consumer_close(consumer);
}

static void created_again_is_another_log(void **state) {
    (void)state;
    weir_kafka_start start = {.offset = 50};
    weir_kafka_record record = {0};
    size_t got = 0;
    fill("again", 100, 'a');
    weir_kafka_consumer *consumer = open_consumer("again", &(weir_kafka_start){.offset = 49}, 1);
    while (got == 0)
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got));
    start.mark_count = 1;
    start.marks[0] = (weir_kafka_mark){50, weir_kafka_record_check(&record)};
    weir_kafka_consumer_close(consumer);

    // The same log: the record that was compared is not handed out again.
    consumer = open_consumer("again", &start, 1);
    weir_kafka_position_stats position;
    assert_ok(weir_kafka_consumer_position(consumer, 0, &position));
    assert_int_equal(position.offset_next, 50);
    for (got = 0; got == 0;)
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got));
    assert_int_equal(record.offset, 50);
    weir_kafka_consumer_close(consumer);

    broker_do("topic", "rm", "again");
    fill("again", 100, 'b');
    assert_err(try_consumer("again", &start, 1, &consumer), WEIR_ECORRUPT, "the record at offset 49 is not the one");
}

/* --- a byte that turned on the broker's disk --- */

/* Turns one byte of the value of record `number` in the only segment of the topic. */
static void damage(const char *topic, uint32_t number) {
    static char bytes[4 << 20];
    char path[PATH_MAX], mark[16];
    snprintf(path, sizeof path, "%s/data/%s-0/00000000000000000000.log", broker_folder, topic);
    FILE *file = fopen(path, "r+be");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    int mark_length = snprintf(mark, sizeof mark, "%08" PRIu32 "a", number);
    char *found = memmem(bytes, length, mark, (size_t)mark_length);
    assert_non_null(found);
    assert_int_equal(fseek(file, (long)(found - bytes) + mark_length + 10, SEEK_SET), 0);
    assert_int_equal(fputc('A', file), 'A');
    assert_int_equal(fclose(file), 0);
}

static void k3_nothing_behind_a_damaged_batch(void **state) {
    (void)state;
    // One flush a record, so that each is a batch of its own and the others stay whole.
    uint64_t acknowledged;
    weir_kafka_producer *producer = open_producer("damaged", 1);
    for (uint32_t i = 0; i < 20; i++) {
        char value[64];
        int length = snprintf(value, sizeof value, "%08" PRIu32 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i);
        assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, value, (size_t)length));
        assert_ok(weir_kafka_flush(producer, &acknowledged));
    }
    weir_kafka_producer_close(producer);
    broker_do("down");
    damage("damaged", 7);
    broker_start_again();
    weir_kafka_consumer *consumer = open_consumer("damaged", &(weir_kafka_start){0}, 1);
    uint64_t next = 0;
    assert_err(read_until_error(consumer, &next), WEIR_ECORRUPT, "CRC");
    assert_int_equal(next, 7);
    weir_kafka_consumer_close(consumer);
}

/* --- far behind --------------------------------------------------------------------------------------------------- */

#define FAR_RECORDS 40000u
#define FAR_BYTES   1000u /* of random ones, which no codec makes fewer: 10 MB in each partition */
#define FAR_OFFSET  9u

static void produce_random(const char *topic) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_kafka_producer *producer = open_producer(topic, PARTITIONS);
    uint64_t acknowledged, words[FAR_BYTES / sizeof(uint64_t)];
    for (uint32_t i = 0; i < FAR_RECORDS; i++) {
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            words[k] = weir_rng_u64(&rng);
        assert_ok(weir_kafka_produce(producer, TIME_US, &words[0], sizeof words[0], words, sizeof words));
    }
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, FAR_RECORDS);
    weir_kafka_producer_close(producer);
}

/* A reader that was stopped soon after the beginning knows one record of each partition, which the broker shows again
 * though much lies behind each of them. */
static void far_behind_is_known_again(void **state) {
    (void)state;
    weir_kafka_start starts[PARTITIONS] = {{0}};
    weir_kafka_record records[500];
    weir_kafka_consumer *consumer;
    uint32_t marked = 0;
    produce_random("far");
    for (uint32_t p = 0; p < PARTITIONS; p++)
        starts[p].partition = p;
    consumer = open_consumer("far", starts, PARTITIONS);
    for (int polls = 0; polls < POLLS_MAX && marked < PARTITIONS; polls++) {
        size_t got;
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, records, 500, &got));
        for (size_t i = 0; i < got; i++) {
            if (records[i].offset != FAR_OFFSET) continue;
            starts[records[i].partition] =
                (weir_kafka_start){.partition = records[i].partition,
                                   .offset = FAR_OFFSET + 1,
                                   .known = FAR_OFFSET + 1,
                                   .mark_count = 1,
                                   .marks = {{FAR_OFFSET + 1, weir_kafka_record_check(&records[i])}}};
            marked++;
        }
    }
    weir_kafka_consumer_close(consumer);
    assert_int_equal(marked, PARTITIONS);
    const weir_kafka_consumer_opts opts = {.brokers = broker_needed(),
                                           .topic = "far",
                                           .starts = starts,
                                           .start_count = PARTITIONS,
                                           .timeout_us = 20 * WEIR_US_PER_S};
    assert_ok(weir_kafka_consumer_open(&opts, &consumer));
    weir_kafka_consumer_close(consumer);
}

WEIR_BROKER_TESTS(broker_start, WEIR_CASE(k3_ten_thousand_keyed_records_come_back),
                  WEIR_CASE(empty_and_missing_keys_and_values), WEIR_CASE(k5_missing_topic_stays_missing),
                  WEIR_CASE(created_topic_keeps_all_records), WEIR_CASE(record_at_the_limit_and_one_past_it),
                  WEIR_CASE(times_come_back), WEIR_CASE(k1_nothing_is_stored_behind_a_refused_record),
                  WEIR_CASE(k4_offset_that_is_gone_or_not_there_yet), WEIR_CASE(k4_retention_passes_a_slow_reader),
                  WEIR_CASE(created_again_is_another_log), WEIR_CASE(far_behind_is_known_again),
                  WEIR_CASE(k2_killed_broker_loses_and_doubles_nothing), WEIR_CASE(k3_nothing_behind_a_damaged_batch))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - a thread that asks once a second whether the topic is still the one that is read, and how far it goes.
 *
 *   leaders ──► ends ──► what is committed of them ──► the anchors, read again ──► told
 *      └ more partitions, another leader, no topic: the consumer is to be opened again, which compares everything
 *
 * An anchor is a record that was handed out before the look began. If the log still has it, the log is the one that it
 * came from, so the newest record that was handed out by then is of that log, too, and becomes the next anchor. A topic
 * that is created again over a standing connection is found so; KAFKA-K6 finds all that needs another connection or
 * leader.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/log.h>

#include "consumer_private.h"

#define ROUND_US       WEIR_US_PER_S
#define ASK_US         (2 * WEIR_US_PER_S)
#define ODD_ROUNDS_MAX 3u /* a broker that has just started may tell of the past */
#define SILENT_MAX     3u /* rounds without all answers; then a new client is tried, which says what is wrong */
#define KEEP_OLD_EVERY 8u /* of so many new anchors one goes on to the older ones */

/* --- opening ---------------------------------------------------------------------------------------------------- */

weir_err weir_kafka_watch_open(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *from) {
    static const weir_kafka_setting settings[] = {
        {"enable.auto.commit", "false"},         {"auto.offset.reset", "error"}, {"check.crcs", "true"},
        {"isolation.level", "read_uncommitted"}, /* a record of another log shows before it is committed, too */
        {"enable.partition.eof", "true"},        {"queued.min.messages", "1"},   {"queued.max.messages.kbytes", "1024"},
        {"fetch.message.max.bytes", "65536"},    {"fetch.wait.max.ms", "20"},
    };
    const weir_kafka_client_opts opts = {
        .type = RD_KAFKA_CONSUMER,
        .brokers = from->brokers,
        .topic = from->topic,
        .timeout_us = from->timeout_us,
        .stop = from->stop,
        .context = from->context,
        .settings = settings,
        .setting_count = sizeof settings / sizeof settings[0],
    };
    return weir_kafka_client_open(&opts, &consumer->watch_client);
}

weir_err weir_kafka_watch_first(weir_kafka_consumer *consumer) {
    weir_kafka_client *client = consumer->watch_client;
    uint32_t count, again;
    weir_err err = weir_kafka_client_topic(client, false, &count);
    if (err) return err;
    consumer->partition_count = count;
    consumer->begins = weir_calloc(count, sizeof *consumer->begins);
    consumer->ends = weir_calloc(count, sizeof *consumer->ends);
    consumer->stables = weir_calloc(count, sizeof *consumer->stables);
    consumer->leaders = weir_calloc(count, sizeof *consumer->leaders);
    consumer->part_of = weir_calloc(count, sizeof *consumer->part_of);
    consumer->parts = weir_calloc(count, sizeof *consumer->parts);
    consumer->news = weir_calloc(count, sizeof *consumer->news);
    consumer->newest = weir_calloc(count, sizeof *consumer->newest);
    consumer->handed = weir_calloc(count, sizeof *consumer->handed);
    if (!consumer->begins || !consumer->ends || !consumer->stables || !consumer->leaders || !consumer->part_of ||
        !consumer->parts || !consumer->news || !consumer->newest || !consumer->handed)
        return WEIR_NOMEM("for %" PRIu32 " partitions of topic '%s'", count, client->topic);
    err = weir_kafka_client_leaders(client, client->timeout_us, consumer->leaders, count, &again);
    if (!err) err = weir_kafka_client_topic(consumer->client, false, &again);
    if (!err && again != count)
        err = WEIR_ERR(WEIR_EUNAVAILABLE, "topic '%s' is being changed: %" PRIu32 " partitions, then %" PRIu32,
                       client->topic, count, again);
    if (!err)
        err = weir_kafka_client_ends(client, count, RD_KAFKA_OFFSET_BEGINNING, client->timeout_us, consumer->begins);
    if (!err) err = weir_kafka_client_ends(client, count, RD_KAFKA_OFFSET_END, client->timeout_us, consumer->ends);
    /* This also connects the main client with every leader: KAFKA-K6 counts from here. */
    if (!err)
        err =
            weir_kafka_client_ends(consumer->client, count, RD_KAFKA_OFFSET_END, client->timeout_us, consumer->stables);
    return err;
}

weir_err weir_kafka_watch_ends_again(weir_kafka_consumer *consumer, uint32_t partition, uint64_t offset) {
    weir_kafka_client *client = consumer->watch_client;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < ODD_ROUNDS_MAX && consumer->ends[partition] < offset; i++) {
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + ROUND_US / 2);
        err = weir_kafka_client_ends(client, consumer->partition_count, RD_KAFKA_OFFSET_END, client->timeout_us,
                                     consumer->ends);
    }
    return err;
}

/* --- the same log? ---------------------------------------------------------------------------------------------- */

weir_err weir_kafka_other_log(const weir_kafka_consumer *consumer, uint32_t partition, const weir_kafka_mark *mark) {
    return WEIR_ERR(WEIR_ECORRUPT,
                    "topic '%s' partition %" PRIu32 ": the record at offset %" PRIu64
                    " is not the one that was read there before: the topic was created again, or lost records and "
                    "took new ones. Fill a new store from this one: weir serve --rebuild",
                    consumer->client->topic, partition, mark->offset - 1);
}

static void kafka_watch_warn_unchecked(const weir_kafka_consumer *consumer, uint32_t partition, uint64_t offset) {
    WEIR_LOG(WARN, "kafka.unchecked",
             "all records that this log could be known by are gone, so it is not known whether it is the same one",
             WEIR_TEXT("topic", consumer->client->topic), WEIR_U64("partition", partition), WEIR_U64("offset", offset));
}

/* The rank-th marks of up to WEIR_KAFKA_PROBES_MAX parts from *ip on, of those that need one more. */
static size_t kafka_watch_gather(const weir_kafka_consumer *consumer, const weir_kafka_start *starts, uint32_t rank,
                                 size_t *ip, weir_kafka_probe *probes, size_t *parts) {
    size_t count = 0;
    for (; *ip < consumer->part_count && count < WEIR_KAFKA_PROBES_MAX; (*ip)++) {
        const weir_kafka_start *start = &starts[*ip];
        if (rank >= start->mark_count || start->marks[rank].check == 0 || start->marks[rank].offset == 0) continue;
        const kafka_part *part = &consumer->parts[*ip];
        if (part->anchor_count && part->anchors[part->anchor_count - 1].offset <= start->known) continue;
        parts[count] = *ip;
        probes[count++] = (weir_kafka_probe){.partition = start->partition, .mark = start->marks[rank]};
    }
    return count;
}

/* The newest mark that is there, and the newest of those that were known to be of the log before. */
weir_err weir_kafka_watch_compare(weir_kafka_consumer *consumer, const weir_kafka_start *starts) {
    weir_kafka_client *client = consumer->watch_client;
    weir_kafka_probe probes[WEIR_KAFKA_PROBES_MAX];
    size_t parts[WEIR_KAFKA_PROBES_MAX], count;
    for (uint32_t rank = 0; rank < WEIR_KAFKA_MARKS_MAX; rank++) {
        size_t i = 0;
        while ((count = kafka_watch_gather(consumer, starts, rank, &i, probes, parts)) > 0) {
            weir_err err = weir_kafka_probe_all(client, probes, count, client->timeout_us);
            for (size_t k = 0; !err && k < count; k++) {
                kafka_part *part = &consumer->parts[parts[k]];
                if (probes[k].result == WEIR_KAFKA_PROBE_OTHER)
                    err = weir_kafka_other_log(consumer, part->partition, &probes[k].mark);
                if (probes[k].result != WEIR_KAFKA_PROBE_SAME) continue;
                WEIR_ASSERT(part->anchor_count < WEIR_KAFKA_MARKS_MAX);
                part->anchors[part->anchor_count++] = probes[k].mark;
            }
            if (err) return err;
        }
    }

    for (size_t i = 0; i < consumer->part_count; i++) {
        kafka_part *part = &consumer->parts[i];
        if (part->anchor_count) part->newest = part->anchors[0];
        if (!part->anchor_count && starts[i].mark_count)
            kafka_watch_warn_unchecked(consumer, part->partition, part->next);
        for (uint32_t k = 0; part->anchor_count && k < starts[i].mark_count; k++) {
            const weir_kafka_mark *mark = &starts[i].marks[k];
            if (mark->offset >= part->anchors[part->anchor_count - 1].offset || !mark->offset) continue;
            WEIR_ASSERT(part->anchor_count < WEIR_KAFKA_MARKS_MAX);
            part->anchors[part->anchor_count++] = *mark;
        }
        part->verified = part->looked = part->next;
    }
    return WEIR_OK;
}

/* --- a round ---------------------------------------------------------------------------------------------------- */

/* Keeps the first one. */
static void kafka_watch_give_verdict(weir_kafka_consumer *consumer, weir_err err) {
    weir_mutex_lock(&consumer->mutex);
    if (!consumer->verdict.err) weir_err_kept_set(&consumer->verdict, err);
    weir_mutex_unlock(&consumer->mutex);
}

/* Counts rounds in which something was seen that may be a broker's stale word. */
static bool kafka_watch_is_odd_for_long(weir_kafka_consumer *consumer) {
    return ++consumer->odd_rounds >= ODD_ROUNDS_MAX;
}

/* False: nothing more can be asked in this round. */
static bool kafka_watch_see_partitions(weir_kafka_consumer *consumer) {
    const char *topic = consumer->client->topic;
    int32_t leaders[WEIR_KAFKA_PARTITIONS_MAX];
    uint32_t count;
    weir_err err =
        weir_kafka_client_leaders(consumer->watch_client, ASK_US, leaders, WEIR_KAFKA_PARTITIONS_MAX, &count);
    if (err) {
        bool missing = weir_err_is(err, WEIR_ENOTFOUND);
        consumer->missing = consumer->missing || missing;
        if (missing ? kafka_watch_is_odd_for_long(consumer) : weir_err_is(err, WEIR_EPERM))
            kafka_watch_give_verdict(consumer, err);
        return false;
    }
    if (consumer->missing) {
        kafka_watch_give_verdict(consumer, WEIR_ERR(WEIR_ECLOSED, "topic '%s' was not there for a moment", topic));
        return false;
    }
    if (count > consumer->partition_count) {
        kafka_watch_give_verdict(consumer,
                                 WEIR_ERR(WEIR_ECLOSED, "topic '%s' has %" PRIu32 " partitions now", topic, count));
        return false;
    }
    if (count < consumer->partition_count) {
        if (kafka_watch_is_odd_for_long(consumer))
            kafka_watch_give_verdict(consumer,
                                     WEIR_ERR(WEIR_ECORRUPT,
                                              "topic '%s' has %" PRIu32 " partitions and had %" PRIu32
                                              ": it was created again. Fill a new store from this one: weir serve "
                                              "--rebuild",
                                              topic, count, consumer->partition_count));
        return false;
    }
    for (size_t i = 0; i < consumer->part_count; i++) {
        const kafka_part *part = &consumer->parts[i];
        if (leaders[part->partition] == consumer->leaders[part->partition]) continue;
        kafka_watch_give_verdict(consumer, WEIR_ERR(WEIR_ECLOSED, "topic '%s' partition %" PRIu32 " has another leader",
                                                    topic, part->partition));
        return false;
    }
    return true;
}

static void kafka_watch_push_anchor(weir_kafka_consumer *consumer, kafka_part *part, weir_kafka_mark mark) {
    if (mark.check == 0 || (part->anchor_count && mark.offset <= part->anchors[0].offset)) return;
    uint32_t moved = part->anchor_count < WEIR_KAFKA_MARKS_MAX ? part->anchor_count : WEIR_KAFKA_MARKS_MAX - 1;
    /* The last one stays: the older a record, the more it says of the log's creation. */
    if (part->anchor_count == WEIR_KAFKA_MARKS_MAX) moved = consumer->turn % KEEP_OLD_EVERY == 0 ? moved - 1 : 1;
    WEIR_ASSERT(moved < WEIR_KAFKA_MARKS_MAX);
    memmove(&part->anchors[1], &part->anchors[0], moved * sizeof part->anchors[0]);
    part->anchors[0] = mark;
    if (part->anchor_count < WEIR_KAFKA_MARKS_MAX) part->anchor_count++;
}

/* What the second look at an anchor says; newest was handed out before it. */
static weir_err kafka_watch_judge(weir_kafka_consumer *consumer, kafka_part *part, const weir_kafka_probe *probe,
                                  const weir_kafka_mark *newest, uint64_t handed) {
    switch (probe->result) {
    case WEIR_KAFKA_PROBE_SAME:
        part->verified = newest->offset > part->verified ? newest->offset : part->verified;
        part->looked = handed;
        kafka_watch_push_anchor(consumer, part, *newest);
        return WEIR_OK;
    case WEIR_KAFKA_PROBE_OTHER:
        return weir_kafka_other_log(consumer, part->partition, &probe->mark);
    case WEIR_KAFKA_PROBE_GONE: /* the next older one is asked in the next round */
        WEIR_ASSERT(part->anchor_count > 0);
        part->anchor_count--;
        memmove(&part->anchors[0], &part->anchors[1], part->anchor_count * sizeof part->anchors[0]);
        if (part->anchor_count) return WEIR_OK;
        kafka_watch_warn_unchecked(consumer, part->partition, handed);
        part->verified = newest->offset > part->verified ? newest->offset : part->verified;
        kafka_watch_push_anchor(consumer, part, *newest);
        return WEIR_OK;
    case WEIR_KAFKA_PROBE_OPEN:
        break;
    }
    return WEIR_OK;
}

/* All that moved, and of the others as many as fit, in turn: a topic may be created again as long as it was. */
static size_t kafka_watch_choose(weir_kafka_consumer *consumer, bool moved, size_t *ip, weir_kafka_probe *probes,
                                 size_t *parts) {
    size_t count = 0;
    for (; *ip < consumer->part_count && count < WEIR_KAFKA_PROBES_MAX; (*ip)++) {
        size_t at = moved ? *ip : (consumer->turn + *ip) % consumer->part_count;
        kafka_part *part = &consumer->parts[at];
        if ((part->looked != consumer->handed[at]) != moved) continue;
        if (part->anchor_count) {
            parts[count] = at;
            probes[count++] = (weir_kafka_probe){.partition = part->partition, .mark = part->anchors[0]};
        } else {
            kafka_watch_push_anchor(consumer, part, consumer->newest[at]); /* to be found again in the next round */
        }
    }
    return count;
}

static weir_err kafka_watch_probe(weir_kafka_consumer *consumer, bool moved) {
    weir_kafka_probe probes[WEIR_KAFKA_PROBES_MAX];
    size_t parts[WEIR_KAFKA_PROBES_MAX], i = 0, count;
    weir_err err = WEIR_OK;
    while (!err && (count = kafka_watch_choose(consumer, moved, &i, probes, parts)) > 0) {
        err = weir_kafka_probe_all(consumer->watch_client, probes, count, ASK_US);
        if (err) break;
        for (size_t k = 0; !err && k < count; k++) {
            err = kafka_watch_judge(consumer, &consumer->parts[parts[k]], &probes[k], &consumer->newest[parts[k]],
                                    consumer->handed[parts[k]]);
            if (err) kafka_watch_give_verdict(consumer, err);
        }
        if (!moved) break;
    }
    if (!moved) consumer->turn += (uint32_t)i;
    return err;
}

static void kafka_watch_tell(weir_kafka_consumer *consumer, int64_t contact_us) {
    weir_mutex_lock(&consumer->mutex);
    for (size_t i = 0; i < consumer->part_count; i++) {
        kafka_part *part = &consumer->parts[i];
        uint64_t end = consumer->ends[part->partition], stable = consumer->stables[part->partition];
        if (end < stable) end = stable; /* it was asked later */
        part->end = end;
        WEIR_ASSERT(part->partition < consumer->partition_count && stable <= end);
        consumer->news[i] = (weir_kafka_told){part->partition, end, stable, part->verified};
    }
    weir_mutex_unlock(&consumer->mutex);
    if (consumer->told) consumer->told(consumer->context, consumer->news, consumer->part_count, contact_us);
}

/* True: all was answered, and nothing is odd. */
static bool kafka_watch_look(weir_kafka_consumer *consumer) {
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    uint32_t count = consumer->partition_count;
    bool below = true, waiting = false;
    WEIR_ON_ROLE(WATCH);
    if (!kafka_watch_see_partitions(consumer)) return false;
    if (weir_kafka_client_ends(consumer->watch_client, count, RD_KAFKA_OFFSET_END, ASK_US, consumer->ends))
        return false;

    /* All that was handed out so far must be below the ends. */
    weir_mutex_lock(&consumer->mutex);
    for (size_t i = 0; i < consumer->part_count; i++) {
        const kafka_part *part = &consumer->parts[i];
        consumer->newest[i] = part->newest;
        consumer->handed[i] = part->handed;
        below = below && consumer->ends[part->partition] >= part->handed;
        waiting = waiting || consumer->ends[part->partition] > part->handed;
    }
    weir_mutex_unlock(&consumer->mutex);
    if (!below) {
        if (kafka_watch_is_odd_for_long(consumer))
            kafka_watch_give_verdict(consumer, WEIR_ERR(WEIR_ECLOSED, "topic '%s' ends before what was read of it",
                                                        consumer->client->topic));
        return false;
    }
    consumer->odd_rounds = 0;

    memcpy(consumer->stables, consumer->ends, count * sizeof *consumer->stables);
    if (waiting && weir_kafka_client_ends(consumer->client, count, RD_KAFKA_OFFSET_END, ASK_US, consumer->stables))
        return false;
    weir_err err = kafka_watch_probe(consumer, true);
    if (!err) err = kafka_watch_probe(consumer, false);
    if (!err) kafka_watch_tell(consumer, now_us);
    return !err;
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

static void kafka_watch_main(void *context) {
    weir_kafka_consumer *consumer = context;
    const weir_kafka_client *client = consumer->client;
    for (uint32_t silent = 0;;) {
        const int64_t until_us = weir_clock_mono_us(weir_clock_system()) + ROUND_US;
        weir_mutex_lock(&consumer->mutex);
        while (!consumer->stopping && weir_cond_wait_until(&consumer->stopped, &consumer->mutex, until_us)) {
        }
        bool over = consumer->stopping || consumer->verdict.err;
        weir_mutex_unlock(&consumer->mutex);
        if (over) return;
        silent = kafka_watch_look(consumer) ? 0 : silent + 1;
        if (silent < SILENT_MAX) continue;
        kafka_watch_give_verdict(consumer,
                                 WEIR_ERR(WEIR_ECLOSED, "topic '%s': the brokers at %.128s do not answer all questions",
                                          client->topic, client->brokers));
    }
}

weir_err weir_kafka_watch_start(weir_kafka_consumer *consumer) {
    kafka_watch_tell(consumer, weir_clock_mono_us(weir_clock_system()));
    return weir_thread_start("kafka-watch", WEIR_ROLE_WATCH, kafka_watch_main, consumer, &consumer->thread);
}

void weir_kafka_watch_close(weir_kafka_consumer *consumer) {
    weir_mutex_lock(&consumer->mutex);
    consumer->stopping = true;
    weir_cond_broadcast(&consumer->stopped);
    weir_mutex_unlock(&consumer->mutex);
    if (consumer->thread) weir_thread_join(consumer->thread);
    consumer->thread = NULL;
    weir_kafka_client_close(consumer->watch_client);
}

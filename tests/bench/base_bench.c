/* SPDX-License-Identifier: Apache-2.0 */
/* base_bench.c - the parts of the base library that sit on hot paths, each against its own limit. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#include "bench.h"

typedef struct base_context {
    uint8_t *bytes;
    size_t length;
    uint64_t items;
} base_context;

static volatile uint64_t sink; /* keeps the optimiser from dropping the work */

static weir_err run_read(void *context, uint64_t round, weir_bench_sample *samplep) {
    const base_context *c = context;
    uint64_t sum = round;
    weir_bench_start(samplep);
    for (size_t i = 0; i + 8 <= c->length; i += 8) {
        uint64_t word;
        memcpy(&word, c->bytes + i, 8);
        sum += word;
    }
    weir_bench_stop(samplep, (double)c->length);
    sink = sum;
    return WEIR_OK;
}

static weir_err run_crc(void *context, uint64_t round, weir_bench_sample *samplep) {
    const base_context *c = context;
    weir_bench_start(samplep);
    sink = weir_crc32c((uint32_t)round, c->bytes, c->length);
    weir_bench_stop(samplep, (double)c->length);
    return WEIR_OK;
}

static weir_err run_xxh3(void *context, uint64_t round, weir_bench_sample *samplep) {
    const base_context *c = context;
    weir_bench_start(samplep);
    sink = weir_xxh3(c->bytes, c->length, round);
    weir_bench_stop(samplep, (double)c->length);
    return WEIR_OK;
}

static weir_err run_rng(void *context, uint64_t round, weir_bench_sample *samplep) {
    const base_context *c = context;
    weir_rng rng = weir_rng_stream(1, round, 0);
    uint64_t sum = 0;
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < c->items; i++)
        sum += weir_rng_u32(&rng);
    weir_bench_stop(samplep, (double)c->items);
    sink = sum;
    return WEIR_OK;
}

enum { QUEUE_BATCH = 64 };

static void consume(void *context) {
    uint64_t items[QUEUE_BATCH], sum = 0;
    size_t count;
    while (!weir_queue_pop(context, items, QUEUE_BATCH, WEIR_QUEUE_FOREVER, &count)) {
        for (size_t i = 0; i < count; i++)
            sum += items[i];
    }
    sink = sum;
}

static weir_err run_queue(void *context, uint64_t round, weir_bench_sample *samplep) {
    const base_context *c = context;
    weir_queue *queue = NULL;
    weir_thread *consumer = NULL;
    weir_err err = weir_queue_open(1024, sizeof(uint64_t), &queue);
    if (!err) err = weir_thread_start("bench-consumer", WEIR_ROLE_WORKER, consume, queue, &consumer);
    if (err) goto end;
    weir_bench_start(samplep);
    for (uint64_t i = 0; !err && i < c->items; i++) {
        uint64_t item = i + round;
        err = weir_queue_push(queue, &item, WEIR_QUEUE_FOREVER);
    }
    weir_queue_close(queue);
    weir_thread_join(consumer);
    weir_bench_stop(samplep, (double)c->items);
end:
    weir_queue_free(queue);
    return err;
}

static weir_err run(weir_cli *cli) {
    bool quick = weir_bench_quick(cli);
    base_context bytes = {.length = quick ? 1u << 16 : 1u << 26};
    base_context draws = {.items = quick ? 1000 : 50000000};
    base_context items = {.items = quick ? 1000 : 1000000};
    bytes.bytes = weir_calloc(bytes.length, 1);
    if (!bytes.bytes) return WEIR_NOMEM("for the bench's buffer");
    const weir_bench_line lines[] = {
        {"read and add", "GB/s", 1e-9, NULL, run_read, &bytes},
        {"CRC-32C", "GB/s", 1e-9, "read and add", run_crc, &bytes},
        {"XXH3", "GB/s", 1e-9, "read and add", run_xxh3, &bytes},
        {"Philox draws of 32 bits", "M/s", 1e-6, NULL, run_rng, &draws},
        {"queue, one producer, one consumer", "M items/s", 1e-6, NULL, run_queue, &items},
    };
    weir_err err = weir_bench_run(cli, "base", lines, sizeof lines / sizeof lines[0]);
    weir_free(bytes.bytes);
    return err;
}

const weir_command weir_bench_base = {
    .name = "base",
    .summary = "checksums, random numbers and queues of the base library",
    .example = "weir bench base --rounds 5",
    .options = weir_bench_options,
    .run = run,
};

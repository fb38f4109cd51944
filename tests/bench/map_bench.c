/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_bench.c - messages into mutations, against looking at each of their bytes once (XXH3).
 *
 * What is mapped are payments as the simulator makes them, under the shipped schema: 9 conditions, 14 keys, 13 to 16
 * mutations a message.
 */
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/hash.h>

#include "bench.h"

typedef struct map_context {
    weir_buf bytes;
    size_t *ends; /* of each message in bytes */
    size_t count, repeats;
    weir_mapper *mapper;
} map_context;

static volatile uint64_t sink; /* keeps the optimiser from dropping the work */

static weir_err run_hash(void *context, uint64_t round, weir_bench_sample *samplep) {
    const map_context *c = context;
    uint64_t sum = round;
    weir_bench_start(samplep);
    for (size_t r = 0; r < c->repeats; r++) {
        for (size_t i = 0, begin = 0; i < c->count; begin = c->ends[i++])
            sum += weir_xxh3(c->bytes.bytes + begin, c->ends[i] - begin, 0);
    }
    weir_bench_stop(samplep, (double)(c->count * c->repeats));
    sink = sum;
    return WEIR_OK;
}

static weir_err run_map(void *context, uint64_t round, weir_bench_sample *samplep) {
    const map_context *c = context;
    uint64_t sum = round;
    weir_err err = WEIR_OK;
    weir_bench_start(samplep);
    for (size_t r = 0; r < c->repeats; r++) {
        for (size_t i = 0, begin = 0; !err && i < c->count; begin = c->ends[i++]) {
            weir_mapped mapped;
            err = weir_mapper_map(c->mapper, 0, i, c->bytes.bytes + begin, c->ends[i] - begin, &mapped);
            sum += mapped.count;
        }
    }
    weir_bench_stop(samplep, (double)(c->count * c->repeats));
    sink = sum;
    return err;
}

static weir_err fill(map_context *c) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    weir_simulate *sim;
    weir_err err = weir_simulate_payments_open(&opts, &sim);
    if (err) return err;
    for (size_t i = 0; i < c->count;) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        if (m.topic != WEIR_SIMULATE_PAYMENTS) continue;
        weir_buf_append(&c->bytes, m.value, m.value_length);
        c->ends[i++] = c->bytes.length;
    }
    weir_simulate_close(sim);
    return weir_buf_err(&c->bytes);
}

static weir_err run(weir_cli *cli) {
    bool quick = weir_bench_quick(cli);
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    map_context c = {.count = quick ? 10 : 20000, .repeats = quick ? 1 : 20};
    weir_schema *schema = NULL;
    weir_err err = weir_schema_parse(shipped->name, shipped->text, shipped->length, &schema);
    if (!err)
        err = weir_mapper_open(schema, weir_schema_source_find(schema, "payments"), &weir_id_key_public, &c.mapper);
    c.ends = weir_calloc(c.count, sizeof *c.ends);
    if (!err && !c.ends) err = WEIR_NOMEM("for the bench's messages");
    if (!err) err = fill(&c);
    const weir_bench_line lines[] = {
        {"XXH3 of each message", "M/s", 1e-6, NULL, run_hash, &c},
        {"payments into mutations, one core", "M/s", 1e-6, "XXH3 of each message", run_map, &c},
    };
    if (!err) err = weir_bench_run(cli, "map", lines, sizeof lines / sizeof lines[0]);
    weir_mapper_close(c.mapper);
    weir_schema_free(schema);
    weir_buf_free(&c.bytes);
    weir_free(c.ends);
    return err;
}

const weir_command weir_bench_map = {
    .name = "map",
    .summary = "messages into mutations",
    .example = "weir bench map --rounds 5",
    .options = weir_bench_options,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* vip_reads.c - a part's epochs are sampled as a training samples them, and the rows of other parts are written down.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>

#include "soonest.h"
#include "vip_bench.h"

#define READS_SEED      1u
#define READS_NO_MEMORY "for what the bench's batches read"

/* --- sampling ---------------------------------------------------------------------------------------------------- */

static void reads_shuffle(weir_target *targets, uint64_t count, weir_rng *rng) {
    for (uint64_t i = count; i > 1; i--) {
        uint64_t other = weir_rng_below(rng, i);
        weir_target swapped = targets[i - 1];
        targets[i - 1] = targets[other];
        targets[other] = swapped;
    }
}

static weir_err reads_take_block(const weir_block_view *view, uint64_t own, vip_reads *r) {
    r->rows += view->inputs;
    for (uint32_t row = 0; row < view->inputs; row++) {
        uint64_t vertex = view->vertices[view->input_nodes[row]];
        if (vertex < own) {
            r->own[vertex]++;
            continue;
        }
        if (!WEIR_GROW(r->log, r->capacity, r->count)) return WEIR_NOMEM(READS_NO_MEMORY);
        r->log[r->count++] = (uint32_t)(vertex - own);
        r->times[vertex - own]++;
    }
    r->ends[r->batches++] = r->count;
    return WEIR_OK;
}

/* A training draws by another seed in each epoch, and so does this. */
static weir_err reads_sample_epoch(const vip_sampling *s, weir_sample_source *source, uint32_t epoch,
                                   const weir_target *targets, uint64_t own, vip_reads *r) {
    weir_sampler *sampler = NULL;
    weir_block *block = NULL;
    weir_sample_opts opts = {.targets_max = s->batch,
                             .seed = READS_SEED + epoch * 0x9E3779B97F4A7C15u,
                             .window = weir_nn_window(s->shape),
                             .shared = true};
    opts.steps = weir_nn_steps(s->shape, &opts.step_count);
    weir_err err = weir_sampler_open(&opts, source, &sampler);
    if (!err) err = weir_block_open(sampler, &block);
    for (uint64_t at = 0; !err && at < s->count; at += s->batch) {
        uint64_t left = s->count - at;
        err = weir_sample(sampler, targets + at, left < s->batch ? (uint32_t)left : s->batch, block);
        if (err) break;
        weir_block_inputs(sampler, block, true);
        err = reads_take_block(weir_block_look(block), own, r);
    }
    weir_block_close(block);
    weir_sampler_close(sampler);
    return err;
}

weir_err weir_vip_reads_make(const weir_part *part, const vip_sampling *s, vip_reads *r) {
    const weir_snapshot *snapshot = weir_part_snapshot(part);
    const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(snapshot, 0);
    weir_rng rng = weir_rng_stream(READS_SEED, weir_part_index(part), 0);
    weir_sample_source *source = NULL;
    uint64_t batches = (s->count + s->batch - 1) / s->batch * s->epochs;
    *r = (vip_reads){.foreign = (uint32_t)(vertices->count - vertices->own)};
    weir_target *targets = weir_calloc(s->count + 1, sizeof *targets);
    r->ends = weir_calloc(batches + 1, sizeof *r->ends);
    r->times = weir_calloc((size_t)r->foreign + 1, sizeof *r->times);
    r->own = weir_calloc(vertices->own + 1, sizeof *r->own);
    weir_err err = targets && r->ends && r->times && r->own ? WEIR_OK : WEIR_NOMEM(READS_NO_MEMORY);
    if (!err) err = weir_sample_over_snapshot(snapshot, &source);
    if (!err) memcpy(targets, s->targets, s->count * sizeof *targets);
    for (uint32_t epoch = 0; !err && epoch < s->epochs; epoch++) {
        reads_shuffle(targets, s->count, &rng);
        err = reads_sample_epoch(s, source, epoch, targets, vertices->own, r);
    }
    weir_sample_source_close(source);
    weir_free(targets);
    return err;
}

void weir_vip_reads_free(vip_reads *r) {
    weir_free(r->log);
    weir_free(r->ends);
    weir_free(r->times);
    weir_free(r->own);
    *r = (vip_reads){0};
}

/* --- a cache that knows what comes -------------------------------------------------------------------------------- */

weir_err weir_vip_reads_ahead(const vip_reads *r, uint64_t size, uint64_t *askedp) {
    weir_train_soonest *soonest = NULL;
    weir_buf reads = {0};
    uint32_t places = size < r->foreign ? (uint32_t)size : r->foreign;
    *askedp = 0;
    weir_err err = weir_train_soonest_open(r->foreign, places, r->batches, &soonest);
    for (uint32_t b = 0; !err && b < r->batches; b++) {
        size_t begin = b ? r->ends[b - 1] : 0;
        err = weir_train_soonest_list(soonest, r->log + begin, r->ends[b] - begin);
    }
    for (uint32_t b = 0; !err && b < r->batches; b++) {
        weir_buf_clear(&reads);
        err = weir_train_soonest_take(soonest, &reads);
        for (size_t at = 0; !err && at < reads.length; at += sizeof(weir_train_read)) {
            weir_train_read read;
            memcpy(&read, reads.bytes + at, sizeof read);
            *askedp += !read.there;
        }
    }
    weir_train_soonest_close(soonest);
    weir_buf_free(&reads);
    return err;
}

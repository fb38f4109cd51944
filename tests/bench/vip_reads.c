/* SPDX-License-Identifier: Apache-2.0 */
/* vip_reads.c - a part's epochs are sampled as a training samples them, and the rows of other parts are written down.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>

#include "vip_bench.h"

#define READS_SEED      1u
#define READS_NO_MEMORY "for what the bench's batches read"
#define READS_NEVER     UINT32_MAX

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

typedef struct reads_ahead {
    uint32_t *next;   /* of each entry of the log: the batch that reads that vertex again */
    uint32_t *use_of; /* of each vertex that is kept: the batch that reads it next        */
    bool *is_kept;
    uint32_t *kept;
    size_t count;
    size_t *uses; /* of each batch: how many of the kept it reads next */
} reads_ahead;

static void reads_ahead_close(reads_ahead *a) {
    weir_free(a->next);
    weir_free(a->use_of);
    weir_free(a->is_kept);
    weir_free(a->kept);
    weir_free(a->uses);
}

static weir_err reads_ahead_open(const vip_reads *r, reads_ahead *a) {
    *a = (reads_ahead){.next = weir_calloc(r->count + 1, sizeof *a->next),
                       .use_of = weir_calloc((size_t)r->foreign + 1, sizeof *a->use_of),
                       .is_kept = weir_calloc((size_t)r->foreign + 1, sizeof *a->is_kept),
                       .kept = weir_calloc((size_t)r->foreign + 1, sizeof *a->kept),
                       .uses = weir_calloc((size_t)r->batches + 1, sizeof *a->uses)};
    if (!a->next || !a->use_of || !a->is_kept || !a->kept || !a->uses) return WEIR_NOMEM(READS_NO_MEMORY);
    for (uint32_t v = 0; v < r->foreign; v++)
        a->use_of[v] = READS_NEVER;
    for (uint32_t b = r->batches; b-- > 0;) {
        for (size_t i = b ? r->ends[b - 1] : 0; i < r->ends[b]; i++) {
            a->next[i] = a->use_of[r->log[i]];
            a->use_of[r->log[i]] = b;
        }
    }
    return WEIR_OK;
}

/* Leaves those that are read soonest: all of the batches up to one, and of that as many as there is room for. */
static void reads_ahead_trim(reads_ahead *a, uint32_t batch, uint32_t batches, uint64_t size) {
    size_t room = size, left = 0;
    uint32_t last = batch;
    memset(a->uses, 0, batches * sizeof *a->uses);
    for (size_t i = 0; i < a->count; i++)
        if (a->use_of[a->kept[i]] != READS_NEVER) a->uses[a->use_of[a->kept[i]]]++;
    while (last + 1 < batches && a->uses[last + 1] <= room)
        room -= a->uses[++last];
    for (size_t i = 0; i < a->count; i++) {
        uint32_t v = a->kept[i], use = a->use_of[v];
        bool stays = use <= last || (use == last + 1 && room > 0);
        if (stays && use == last + 1) room--;
        a->is_kept[v] = stays;
        if (stays) a->kept[left++] = v;
    }
    a->count = left;
    WEIR_ASSERT(left <= size);
}

weir_err weir_vip_reads_ahead(const vip_reads *r, uint64_t size, uint64_t *askedp) {
    reads_ahead a;
    *askedp = 0;
    weir_err err = reads_ahead_open(r, &a);
    for (uint32_t b = 0; !err && b < r->batches; b++) {
        for (size_t i = b ? r->ends[b - 1] : 0; i < r->ends[b]; i++) {
            uint32_t v = r->log[i];
            a.use_of[v] = a.next[i];
            if (a.is_kept[v]) continue;
            a.is_kept[v] = true;
            a.kept[a.count++] = v;
            ++*askedp;
        }
        reads_ahead_trim(&a, b, r->batches, size);
    }
    reads_ahead_close(&a);
    return err;
}

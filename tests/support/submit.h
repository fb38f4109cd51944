/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - mutations that a test has made go into a graph, each to the shards that it belongs to. */
#ifndef WEIR_TEST_SUBMIT_H
#define WEIR_TEST_SUBMIT_H

#include <weir/store/base/buf.h>
#include <weir/store/graph/graph.h>

#define SUBMIT_SHARDS_MAX 8u

static inline void submit_add(weir_buf *batches, uint32_t *counts, uint32_t shards, const weir_mutation *m,
                              uint64_t begin) {
    for (uint32_t s = 0; s < shards; s++) {
        if (m->kind != WEIR_DELETE_VERTEX && weir_shard_of(m->vertex, shards) != s) continue;
        weir_batch_add(&batches[s], m, begin);
        counts[s]++;
    }
}

/* As one event of partition 0; fills the mutations' offsets in. */
static inline weir_err submit_event(weir_graph *graph, uint32_t source, uint64_t offset, weir_mutation *mutations,
                                    size_t count) {
    weir_buf batches[SUBMIT_SHARDS_MAX] = {{0}};
    uint32_t counts[SUBMIT_SHARDS_MAX] = {0}, shards = weir_graph_shards(graph);
    const weir_batch_span span = {source, 0, offset, offset + 1};
    weir_err err = shards <= SUBMIT_SHARDS_MAX ? WEIR_OK : WEIR_ERR(WEIR_EINVAL, "a test has %u shards", shards);
    for (uint32_t s = 0; !err && s < shards; s++)
        weir_batch_begin(&batches[s]);
    for (size_t i = 0; !err && i < count; i++) {
        mutations[i].offset = offset;
        submit_add(batches, counts, shards, &mutations[i], offset);
    }
    for (uint32_t s = 0; !err && s < shards; s++) {
        weir_batch_end(&batches[s], &span, counts[s]);
        err = weir_buf_err(&batches[s]);
    }
    if (!err) err = weir_graph_submit(graph, batches);
    for (uint32_t s = 0; s < SUBMIT_SHARDS_MAX; s++)
        weir_buf_free(&batches[s]);
    return err;
}

#endif /* WEIR_TEST_SUBMIT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* puts.c - of a snapshot's vertices: what they are called, and the event that put them. */
#include <inttypes.h>

#include <weir/store/schema/schema.h>
#include <weir/store/snapshot/snapshot.h>

weir_err weir_snapshot_check_list(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, const char *of,
                                  const int64_t *indptr, uint64_t count) {
    const int64_t begin = indptr[vertex], end = indptr[vertex + 1];
    if (begin >= 0 && begin <= end && (uint64_t)end <= count) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the snapshot says that vertex %llu of type '%s' has %s %lld to %lld of %llu; take another copy",
                    (unsigned long long)vertex, weir_schema_vertex_at(weir_snapshot_schema(snapshot), type)->name, of,
                    (long long)begin, (long long)end, (unsigned long long)count);
}

weir_err weir_snapshot_event_of_put(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, int64_t time_us,
                                    uint64_t *eventp) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    *eventp = 0;
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
        if (weir_schema_relation_at(schema, r)->from != type) continue;
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, r, WEIR_OUT);
        weir_err err = weir_snapshot_check_list(snapshot, type, vertex, "edges", e->indptr, e->edges);
        if (err) return err;
        for (int64_t i = e->indptr[vertex]; i < e->indptr[vertex + 1] && e->times[i] >= time_us; i++) {
            if (e->times[i] != time_us) continue;
            *eventp = e->events[i];
            return WEIR_OK;
        }
    }
    return WEIR_OK;
}

weir_err weir_snapshot_csv_key(const weir_snapshot_vertices *v, uint64_t vertex, weir_buf *out) {
    const int64_t from = v->key_offsets[vertex], to = v->key_offsets[vertex + 1];
    if (from < 0 || from > to || to > v->key_offsets[v->count]) /* the file is not trusted */
        return WEIR_ERR(WEIR_ECORRUPT, "the keys of the snapshot are damaged at vertex %" PRIu64 "; build it again",
                        vertex);
    weir_buf_csv(out, (const char *)v->key_bytes + from, (size_t)(to - from));
    if (from == to) weir_buf_printf(out, "#%016" PRIx64 "%016" PRIx64, v->ids[vertex].high, v->ids[vertex].low);
    return WEIR_OK;
}

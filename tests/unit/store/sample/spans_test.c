/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans_test.c - for how long a source says that a vertex stays as it is, where it has a matrix, is put anew, is
 * deleted and comes again: at each microsecond of a small world, what is there and what its number is are asked for.
 */
#include <weir/store/sample/source.h>

#include "learn_fixture.h"

#define VERTICES 3u
#define MOMENTS  40
#define FIRST_US (LEARN_START_US - 3)
#define WORLDS   6u
#define UNKNOWN  (-1)

static weir_err add_matrix(void *context, weir_snapshot_draft *draft) {
    static const float rows[VERTICES] = {1, 2, 3};
    uint64_t count;
    (void)context;
    weir_snapshot_draft_ids(draft, LEARN_WHO, &count);
    assert_true(count > 0 && count <= VERTICES);
    return weir_snapshot_draft_matrix(draft, LEARN_WHO, "m", rows, 1);
}

static void delete_at(learn_world *w, uint64_t n, int64_t time_us) {
    weir_mutation m = {.kind = WEIR_DELETE_VERTEX, .type = LEARN_WHO, .vertex = learn_vertex(LEARN_WHO, n)};
    m.time_us = time_us;
    m.event = w->offset + 1;
    learn_submit(w, &m, 1);
}

/* Of each vertex some puts and deletions, at moments in their order, of which some are the same. */
static weir_snapshot *make_world(unsigned world) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 31, world);
    learn_world w;
    weir_snapshot *snapshot;
    char out[4096];
    learn_open(&w, learn_schema_text, 1);
    for (uint64_t n = 0; n < VERTICES; n++) {
        int64_t at_us = LEARN_START_US;
        for (unsigned i = 0; at_us < LEARN_START_US + MOMENTS - 6; i++, at_us += (int64_t)weir_rng_below(&rng, 5)) {
            const double number = (double)weir_rng_below(&rng, 3);
            if (i && weir_rng_below(&rng, 3) == 0)
                delete_at(&w, n, at_us);
            else
                learn_put(&w, LEARN_WHO, n, at_us, weir_rng_below(&rng, 4) ? &number : NULL);
        }
    }
    assert_ok(weir_graph_drain(w.graph));
    assert_ok(weir_graph_close(w.graph));
    assert_ok(weir_graph_open(w.store, w.schema, &(weir_graph_opts){.read_only = true}, &w.graph));
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    const weir_snapshot_build_opts build = {.out = out, .as_of_us = LEARN_START_US + MOMENTS, .extend = add_matrix};
    weir_snapshot_stats stats;
    assert_ok(weir_snapshot_build(w.graph, &build, &stats));
    assert_ok(weir_graph_close(w.graph));
    weir_schema_free(w.schema);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){.load = false}, &snapshot));
    return snapshot;
}

typedef struct known {
    bool there;
    int number; /* all are small */
} known;

static known known_at(weir_sample_source *source, uint64_t vertex, int64_t before_us, bool targets) {
    const weir_sample_vertices of = {
        .vertices = &vertex, .before_us = &before_us, .count = 1, .type = LEARN_WHO, .targets = targets};
    weir_value value;
    known is;
    assert_ok(source->features(source, &of, &value));
    source->there(source, &of, &is.there);
    is.number = value.present ? (int)value.number : UNKNOWN;
    return is;
}

static bool same_known(known x, known y) {
    return x.there == y.there && x.number == y.number;
}

/* Within the span nothing differs; and it is no shorter than it has to be where something differs on both sides. */
static void check_vertex(weir_sample_source *source, uint64_t vertex, bool targets, unsigned *longp) {
    for (int64_t at_us = FIRST_US; at_us < FIRST_US + MOMENTS; at_us++) {
        const weir_sample_vertices of = {
            .vertices = &vertex, .before_us = &at_us, .count = 1, .type = LEARN_WHO, .targets = targets};
        const known now = known_at(source, vertex, at_us, targets);
        int64_t since_us, until_us;
        assert_ok(source->spans(source, &of, &since_us, &until_us));
        assert_true(since_us <= at_us && at_us < until_us);
        for (int64_t t = FIRST_US; t < FIRST_US + MOMENTS; t++) {
            const known then = known_at(source, vertex, t, targets);
            if (since_us <= t && t < until_us && !same_known(now, then))
                fail_msg("vertex %llu before %lld, from %lld until %lld: otherwise before %lld",
                         (unsigned long long)vertex, (long long)at_us, (long long)since_us, (long long)until_us,
                         (long long)t);
            *longp += t != at_us && since_us <= t && t < until_us;
        }
    }
}

static void nothing_changes_within_a_span(void **state) {
    (void)state;
    for (unsigned world = 0; world < WORLDS; world++) {
        unsigned same = 0;
        weir_sample_source *source;
        weir_snapshot *snapshot = make_world(world);
        assert_ok(weir_sample_over_snapshot(snapshot, &source));
        assert_true(weir_snapshot_vertices_of(snapshot, LEARN_WHO)->extra_count == 1);
        for (uint64_t v = 0; v < weir_snapshot_vertices_of(snapshot, LEARN_WHO)->count; v++)
            for (unsigned targets = 0; targets < 2; targets++)
                check_vertex(source, v, targets, &same);
        assert_true(same > MOMENTS); /* spans are not each a microsecond long */
        weir_sample_source_close(source);
        weir_snapshot_close(snapshot);
    }
}

WEIR_TESTS(WEIR_CASE(nothing_changes_within_a_span))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends_test.c - what parts bring of aggregates that look further than they do, against the whole snapshot asked one
 * vertex at a time; and parts that lie about it.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/trust/trust.h>

#include "parts_fixture.h"

#define AGGREGATES 6u /* of the first type */

/* Of the first type, from 0 to 9 hops; of the second, one that counts a label, so that parts have lives of others. */
static const char ends_schema_text[] = PARTS_SCHEMA_WITH(
    "aggregates:\n"
    "  own: {vertex: a, relation: fading, direction: out, function: count, window: 4ms}\n"
    "  of_end: {vertex: a, end: fading, relation: fading, direction: out, function: sum, of: w, window: 4ms}\n"
    "  near: {vertex: a, end: lasting, through: [lasting], relation: fading, direction: in, function: distinct, "
    "window: "
    "4ms}\n"
    "  far: {vertex: a, end: lasting, through: [lasting, {relation: fading, direction: out}, lasting],\n"
    "        crowd: 20, relation: lasting, function: count, window: 4ms}\n"
    "  chain: {vertex: a, end: fading, through: [{relation: fading, direction: in}, lasting, lasting,\n"
    "          {relation: fading, direction: in}, {relation: fading, direction: in}, lasting, lasting,\n"
    "          {relation: fading, direction: in}], crowd: 40, ordered: true, relation: fading, direction: in,\n"
    "          function: depth, window: 3ms}\n"
    "  kept: {vertex: a, end: fading, through: [{relation: fading, direction: in}, {relation: fading, direction: in},\n"
    "         lasting, lasting, {relation: fading, direction: in}], crowd: 40, ordered: true,\n"
    "         share: {of: w, least: 0.2, most: 2}, relation: fading, direction: in, function: depth, window: 4ms}\n"
    "  yes: {vertex: b, relation: lasting, function: count, label: l, is: yes, window: 4ms}\n");

static const uint32_t hops[AGGREGATES] = {0, 1, 2, 4, 9, 6};

/* What a snapshot or a part says of one vertex as of a put of its own. */
static weir_err say(const weir_snapshot *snapshot, uint64_t vertex, int64_t put_us, double values[AGGREGATES]) {
    uint64_t event = 0;
    weir_sample_source *source = NULL;
    weir_aggregates *aggregates = NULL;
    assert_ok(weir_snapshot_event_of_put(snapshot, 0, vertex, put_us, &event));
    assert_ok(weir_sample_over_snapshot(snapshot, &source));
    assert_ok(weir_aggregates_open(weir_snapshot_schema(snapshot), source, &aggregates));
    const weir_sample_vertices of = {
        .vertices = &vertex, .before_us = &put_us, .events = &event, .count = 1, .targets = true};
    weir_err err = weir_aggregates_read(aggregates, &of, values);
    weir_aggregates_close(aggregates);
    weir_sample_source_close(source);
    return err;
}

/* Every vertex that the part owns, in every life. Returns how many of what it brings say anything. */
static uint64_t part_says_the_same(const parts_world *w, const parts_cutting *c, uint32_t p) {
    const weir_snapshot *part = weir_part_snapshot(c->of[p]);
    const weir_snapshot_vertices *here = weir_snapshot_vertices_of(part, 0),
                                 *all = weir_snapshot_vertices_of(w->snapshot, 0);
    const int64_t first = weir_part_starts(c->of[p], 0)[p];
    uint64_t told = 0;
    for (uint64_t v = 0; v < all->count; v++) {
        const int64_t place = c->new_of[0][v] - first;
        if (place < 0 || place >= (int64_t)here->own) continue;
        for (int64_t life = here->lives.indptr[place]; life < here->lives.indptr[place + 1]; life++) {
            double wanted[AGGREGATES], got[AGGREGATES];
            assert_ok(say(w->snapshot, v, here->lives.times[life], wanted));
            assert_ok(say(part, (uint64_t)place, here->lives.times[life], got));
            for (uint32_t i = 0; i < AGGREGATES; i++) {
                const bool brought = weir_snapshot_has_precomputed(part, i);
                uint64_t found;
                double said;
                assert_int_equal(brought, hops[i] > c->depth);
                assert_memory_equal(&got[i], &wanted[i], sizeof got[i]);
                told += brought && wanted[i] > 0;
                if (!brought) continue;
                assert_ok(weir_snapshot_life_of_put(part, 0, (uint64_t)place, here->lives.times[life], &found));
                assert_int_equal(found, life);
                assert_ok(weir_snapshot_precomputed(part, i, (uint64_t)life, &said));
                assert_memory_equal(&said, &wanted[i], sizeof wanted[i]);
            }
        }
    }
    return told;
}

/* Lives that the part has because a label counts, of vertices that it does not own: their numbers are not there. */
static uint64_t part_says_nothing_of_others(const parts_cutting *c, uint32_t p) {
    const weir_snapshot *part = weir_part_snapshot(c->of[p]);
    const weir_snapshot_vertices *here = weir_snapshot_vertices_of(part, 0);
    const uint64_t own = (uint64_t)here->lives.indptr[here->own];
    for (uint64_t life = own; life < here->lives.count; life++) {
        for (uint32_t i = 0; i < AGGREGATES; i++) {
            double said = 0;
            if (!weir_snapshot_has_precomputed(part, i)) continue;
            assert_ok(weir_snapshot_precomputed(part, i, life, &said));
            assert_true(isnan(said));
        }
    }
    return here->lives.count - own;
}

static void p6_what_a_part_cannot_see_it_brings(void **state) {
    (void)state;
    parts_world w;
    parts_world_open_with(&w, ends_schema_text, 2000, 4000);
    for (uint32_t depth = 0; depth <= 4; depth += 2) {
        parts_cutting c;
        char name[16];
        uint64_t told = 0, others = 0;
        snprintf(name, sizeof name, "d%u", depth);
        parts_cut(&w, name, 3, depth, WEIR_PARTS_RANDOM, parts_below(&w, 1000), &c);
        for (uint32_t p = 0; p < c.parts; p++)
            told += part_says_the_same(&w, &c, p), others += part_says_nothing_of_others(&c, p);
        printf("depth %u: %llu numbers above 0, %llu lives of others\n", depth, (unsigned long long)told,
               (unsigned long long)others);
        assert_true(told > 3 && others > 3);
        parts_uncut(&c);
    }
    parts_world_close(&w);
}

/* The first vertex of the part that was put, which is its own; *put_usp: when. */
static uint64_t first_put(const weir_snapshot *part, int64_t *put_usp) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part, 0);
    uint64_t vertex = 0;
    while (v->lives.indptr[vertex] == v->lives.indptr[vertex + 1])
        vertex++;
    assert_true(vertex < v->own);
    *put_usp = v->lives.times[v->lives.indptr[vertex]];
    return vertex;
}

/* As of another time nobody knows it: an error, and no number. */
static void p6_as_of_another_time_it_is_not_known(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    double values[AGGREGATES];
    parts_world_open_with(&w, ends_schema_text, 400, 3000);
    parts_cut(&w, "p", 3, 0, WEIR_PARTS_RANDOM, 1, &c);
    const weir_snapshot *part = weir_part_snapshot(c.of[0]);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part, 0);
    int64_t put_us;
    const uint64_t vertex = first_put(part, &put_us);
    assert_true(v->own < v->count);
    assert_ok(say(part, vertex, put_us, values));
    assert_err(say(part, vertex, put_us + 1, values), WEIR_EDATA, "make parts that reach further");
    assert_err(say(part, v->own, put_us, values), WEIR_EDATA, "one of its own vertices");
    parts_uncut(&c);
    parts_world_close(&w);
}

/* What becomes shorter while a training reads, or another, is an error that names the file, and no number. */
static void a_part_that_changes_while_it_is_read_is_damaged(void **state) {
    (void)state;
    static const char *const files[] = {"aggregate.far", "first", "indptr"};
    const int64_t far = INT64_MAX;
    parts_world w;
    parts_world_open_with(&w, ends_schema_text, 400, 3000);
    for (uint32_t i = 0; i < sizeof files / sizeof files[0] + 1; i++) {
        const bool shorter = i > 0;
        parts_cutting c;
        char name[16], path[128], sentence[128];
        double values[AGGREGATES];
        const char *array = shorter ? files[i - 1] : "indptr";
        snprintf(name, sizeof name, "p%u", i);
        snprintf(path, sizeof path, "%s/part-0/vertices/a/lives/%s.npy", name, array);
        snprintf(sentence, sizeof sentence, shorter ? "%s.npy has become shorter" : "%s.npy leads outside", array);
        parts_cut(&w, name, 3, 0, WEIR_PARTS_RANDOM, 1, &c);
        const weir_snapshot *part = weir_part_snapshot(c.of[0]);
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(part, 0);
        int64_t put_us;
        const uint64_t vertex = first_put(part, &put_us);
        assert_ok(say(part, vertex, put_us, values));
        const uint64_t numbers = shorter && i < 3 ? v->lives.count : v->count + 1;
        FILE *file = fopen(weir_test_path(path), "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, 0, SEEK_END), 0);
        const long begin = ftell(file) - (long)(numbers * sizeof far);
        if (shorter) {
            assert_int_equal(ftruncate(fileno(file), begin), 0);
        } else {
            assert_int_equal(fseek(file, begin + (long)((vertex + 1) * sizeof far), SEEK_SET), 0);
            assert_int_equal(fwrite(&far, sizeof far, 1, file), 1);
        }
        assert_int_equal(fclose(file), 0);
        assert_err(say(part, vertex, put_us, values), WEIR_ECORRUPT, sentence);
        parts_uncut(&c);
    }
    parts_world_close(&w);
}

/* --- parts that lie ---------------------------------------------------------------------------------------------- */

static void write_over(const char *file, const char *bytes, size_t length) {
    char path[128];
    snprintf(path, sizeof path, "p/part-0/%s", file);
    assert_ok(weir_file_replace(weir_test_path(path), bytes, length));
    assert_ok(weir_manifest_write(weir_test_path("p/part-0")));
}

/* Once in the manifest of part 0. */
static void refused_where(const char *text, const char *instead, weir_code code, const char *sentence) {
    weir_part *part = NULL;
    weir_buf changed = {0};
    size_t length = 0;
    char *kept = NULL;
    assert_ok(weir_file_load(weir_test_path("p/part-0/manifest.json"), 1u << 20, &kept, &length));
    assert_non_null(strstr(kept, text));
    const size_t at = (size_t)(strstr(kept, text) - kept), behind = at + strlen(text);
    weir_buf_append(&changed, kept, at);
    weir_buf_text(&changed, instead);
    weir_buf_append(&changed, kept + behind, length - behind);
    assert_ok(weir_buf_err(&changed));
    write_over("manifest.json", changed.bytes, changed.length);
    assert_err(weir_part_open(weir_test_path("p/part-0"), &(weir_part_opts){.verify = true}, &part), code, sentence);
    write_over("manifest.json", kept, length);
    weir_buf_free(&changed);
    weir_free(kept);
}

static void parts_that_lie_about_it_are_refused(void **state) {
    (void)state;
    static const char *const listed = "\"aggregates\":[\"of_end\",\"near\",\"far\",\"chain\",\"kept\"]";
    parts_world w;
    parts_cutting c;
    weir_part *part = NULL;
    size_t length = 0;
    parts_world_open_with(&w, ends_schema_text, 64, 400);
    parts_cut(&w, "p", 2, 0, WEIR_PARTS_RANDOM, 1, &c);
    parts_uncut(&c);
    refused_where(listed, "\"aggregates\":[\"own\"]", WEIR_EDATA,
                  "something else than an aggregate of the type's ends");
    refused_where(listed, "\"aggregates\":[\"../near\"]", WEIR_EDATA, "something else than an aggregate");
    refused_where(listed, "\"aggregates\":[7]", WEIR_EDATA, "something else than an aggregate");
    refused_where(listed, "\"aggregates\":{}", WEIR_EDATA, "is not an array");
    refused_where(listed, "\"old\":[]", WEIR_EDATA, "'aggregates'");
    refused_where(listed, "\"aggregates\":[\"near\",\"far\",\"chain\",\"kept\"]", WEIR_EDATA,
                  "'aggregates' lacks aggregate 'of_end'");
    char *kept = parts_slurp(weir_test_path("p/part-0/vertices/a/lives/aggregate.far.npy"), &length);
    write_over("vertices/a/lives/aggregate.far.npy", kept, length - 8);
    assert_err(weir_part_open(weir_test_path("p/part-0"), &(weir_part_opts){0}, &part), WEIR_EDATA,
               "aggregate.far.npy");
    weir_free(kept);
    parts_world_close(&w);
}

/* What a part sees itself it computes: nobody would look at what it brought. */
static void parts_that_bring_too_much_are_refused(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    size_t length = 0;
    parts_world_open_with(&w, ends_schema_text, 64, 400);
    parts_cut(&w, "p", 2, 4, WEIR_PARTS_RANDOM, 1, &c);
    parts_uncut(&c);
    char *brought = parts_slurp(weir_test_path("p/part-0/vertices/a/lives/aggregate.chain.npy"), &length);
    write_over("vertices/a/lives/aggregate.far.npy", brought, length);
    refused_where("\"aggregates\":[\"chain\",\"kept\"]", "\"aggregates\":[\"far\",\"chain\",\"kept\"]", WEIR_EDATA,
                  "'aggregates' has aggregate 'far', which looks 4 hops far in a part of depth 4");
    weir_free(brought);
    parts_world_close(&w);
}

/* The only part has all edges, and brings nothing: it answers as of any time. */
static void p6_the_only_part_brings_nothing(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    double wanted[AGGREGATES], got[AGGREGATES];
    parts_world_open_with(&w, ends_schema_text, 64, 400);
    parts_cut(&w, "p", 1, 0, WEIR_PARTS_RANDOM, 1, &c);
    const weir_snapshot *part = weir_part_snapshot(c.of[0]);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(w.snapshot, 0);
    for (uint64_t vertex = 0; vertex < v->count; vertex++) {
        for (int64_t life = v->lives.indptr[vertex]; life < v->lives.indptr[vertex + 1]; life++) {
            const int64_t later_us = v->lives.times[life] + 500;
            assert_ok(say(w.snapshot, vertex, later_us, wanted));
            assert_ok(say(part, (uint64_t)c.new_of[0][vertex], later_us, got));
            assert_memory_equal(got, wanted, sizeof got);
        }
    }
    parts_uncut(&c);
    parts_world_close(&w);
}

WEIR_TESTS(WEIR_CASE(p6_what_a_part_cannot_see_it_brings), WEIR_CASE(p6_as_of_another_time_it_is_not_known),
           WEIR_CASE(a_part_that_changes_while_it_is_read_is_damaged), WEIR_CASE(parts_that_lie_about_it_are_refused),
           WEIR_CASE(parts_that_bring_too_much_are_refused), WEIR_CASE(p6_the_only_part_brings_nothing))

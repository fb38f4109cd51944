/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_test.c - parts whose files lie, with a MANIFEST that fits them: refused, by the name of the file; and what is
 * no part at all.
 */
#include <string.h>
#include <unistd.h>

#include <weir/store/base/bytes.h>
#include <weir/store/trust/trust.h>

#include "parts_fixture.h"

#define HOSTILE "p/part-0"

static void write_over(const char *file, const char *bytes, size_t length) {
    char path[128];
    snprintf(path, sizeof path, HOSTILE "/%s", file);
    assert_ok(weir_file_replace(weir_test_path(path), bytes, length));
    assert_ok(weir_manifest_write(weir_test_path(HOSTILE)));
}

static char *read_of_part(const char *file, size_t *lengthp) {
    char path[128];
    snprintf(path, sizeof path, HOSTILE "/%s", file);
    return parts_slurp(weir_test_path(path), lengthp);
}

static void refused(bool verify, weir_code code, const char *text) {
    weir_part *part = NULL;
    assert_err(weir_part_open(weir_test_path(HOSTILE), &(weir_part_opts){.verify = verify}, &part), code, text);
    assert_null(part);
}

/* The 8 bytes at `back` from the end of a file of part 0 are changed and its MANIFEST is made to fit; refused, and put
 * back. */
static void refused_with(bool verify, const char *file, size_t back, uint64_t number, const char *text) {
    size_t length = 0;
    char *kept = read_of_part(file, &length), *bytes = read_of_part(file, &length);
    assert_true(length >= back);
    weir_put_u64((uint8_t *)bytes + length - back, number);
    write_over(file, bytes, length);
    refused(verify, WEIR_ECORRUPT, text);
    write_over(file, kept, length);
    weir_free(kept);
    weir_free(bytes);
}

static void hostile_parts_are_refused_by_name(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    parts_world_open(&w, 1000, 1200);
    parts_cut(&w, "p", 2, 0, WEIR_PARTS_RANDOM, 1, &c);
    uint64_t first_of_others = (uint64_t)weir_part_starts(c.of[0], 1)[1];
    uint64_t own = parts_vertices_of(c.of[0], 0)->own, without_rows = parts_vertices_of(c.of[0], 0)->count - own;
    uint64_t smallest = (uint64_t)parts_vertices_of(c.of[0], 0)->by_id[0];
    parts_uncut(&c);
    refused_with(false, "numbers/b.npy", 8, 1u << 30, "numbers/b.npy: number");
    refused_with(false, "numbers/b.npy", 8, UINT64_MAX, "points outside");
    refused_with(false, "numbers/b.npy", 8, 0, "is one of the part's own");
    refused_with(false, "numbers/b.npy", 8, first_of_others, "does not rise within its step");
    refused_with(false, "relations/fading/in/indptr.npy", 8, 7, "indptr.npy does not lead from 0 to");
    refused_with(false, "vertices/a/rows/indptr.npy", 8, 1u << 30, "rows/indptr.npy does not lead from 0 to");
    refused_with(false, "vertices/a/feature.c.text_offsets.npy", 16, 1u << 20, "text_offsets.npy: number");
    refused_with(true, "relations/lasting/out/neighbors.npy", 8, UINT64_MAX, "out/neighbors.npy: number");
    refused_with(true, "relations/lasting/out/neighbors.npy", 8, 1u << 30, "is not a vertex");
    refused_with(true, "relations/fading/in/indptr.npy", 16, 1u << 30, "is less than the one before it");
    refused_with(true, "labels/l/targets.npy", 8, 1u << 30, "labels/l/: number");
    refused_with(true, "labels/l/targets.npy", 8, own, "has no target"); /* a vertex that is here, but not owned */
    refused_with(true, "labels/l/values.npy", 8, 9, "has no value of the schema");
    refused_with(true, "vertices/a/ids.npy", without_rows * 16 + 8, 0, "is not above the one before it");
    refused_with(true, "vertices/a/by_id.npy", 8, 1u << 30, "by_id.npy: number");
    refused_with(true, "vertices/a/by_id.npy", 8, UINT64_MAX, "is not a vertex of the part's own");
    refused_with(true, "vertices/a/by_id.npy", 8, smallest, "is not above the one before it");
    refused_with(true, "vertices/a/lives/indptr.npy", 16, 1u << 30, "is less than the one before it");
    refused_with(true, "vertices/a/lives/indptr.npy", (without_rows + 1) * 8, 0, "is less than the one before it");
    refused_with(true, "vertices/a/key_offsets.npy", 16, 1u << 30, "is less than the one before it");
    refused_with(true, "vertices/a/feature.c.npy", 8, 0x7000000070000000ull, "has no text");
    refused_with(true, "vertices/a/lives/until.npy", 8, 0, "is not after its beginning");
    parts_world_close(&w);
}

/* A vertex that others own has nothing but edges: nobody would look there for more, so it is more than was promised. */
static void a_life_of_another_part_is_refused(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    size_t length = 0;
    parts_world_open(&w, 1000, 1200);
    parts_cut(&w, "p", 2, 0, WEIR_PARTS_RANDOM, 1, &c);
    const weir_snapshot_vertices *v = parts_vertices_of(c.of[0], 1);
    uint64_t own = v->own, behind = v->count - own, last = v->lives.count - 1;
    parts_uncut(&c);
    assert_true(own && behind);
    char *bytes = read_of_part("vertices/b/lives/indptr.npy", &length);
    weir_put_u64((uint8_t *)bytes + length - (behind + 1) * 8, last); /* the last life of its own is the next one's */
    write_over("vertices/b/lives/indptr.npy", bytes, length);
    refused(true, WEIR_ECORRUPT, "is not a vertex of the part, but has more than edges");
    weir_free(bytes);
    parts_world_close(&w);
}

/* Once in a file of part 0. */
static void refused_where(bool verify, const char *text, const char *instead, weir_code code, const char *sentence) {
    size_t length = 0;
    weir_buf changed = {0};
    char *kept = read_of_part("manifest.json", &length);
    char *at = strstr(kept, text);
    assert_non_null(at);
    weir_buf_append(&changed, kept, (size_t)(at - kept));
    weir_buf_text(&changed, instead);
    weir_buf_text(&changed, at + strlen(text));
    assert_ok(weir_buf_err(&changed));
    write_over("manifest.json", changed.bytes, changed.length);
    refused(verify, code, sentence);
    write_over("manifest.json", kept, length);
    weir_buf_free(&changed);
    weir_free(kept);
}

static void hostile_manifests_are_refused_by_name(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    char starts[64], own[64], rows[256], more_rows[256];
    parts_world_open(&w, 64, 400);
    parts_cut(&w, "p", 2, 1, WEIR_PARTS_RANDOM, 1, &c);
    const int64_t *a = weir_part_starts(c.of[0], 0);
    snprintf(starts, sizeof starts, "[0,%lld,", (long long)a[1]);
    snprintf(own, sizeof own, "\"own\":%lld,", (long long)a[1]);
    const int64_t *b = weir_part_starts(c.of[0], 1);
    snprintf(rows, sizeof rows, "\"starts\":[[0,%lld,%lld],[0,%lld,%lld]],\"listed\":[", (long long)a[1],
             (long long)a[2], (long long)b[1], (long long)b[2]);
    snprintf(more_rows, sizeof more_rows, "\"starts\":[[0,0,0],[0,%lld,%lld],[0,%lld,%lld]],\"listed\":[0,",
             (long long)a[1], (long long)a[2], (long long)b[1], (long long)b[2]);
    parts_uncut(&c);
    refused_where(false, "\"part\":{\"format\":6", "\"part\":{\"format\":9", WEIR_EVERSION,
                  "the part has format 9, this program reads 6; cut the snapshot again with weir partition");
    refused_where(false, "\"part\":{", "\"format\":2,\"part\":1,\"old\":{", WEIR_EDATA, "'format'");
    refused_where(false, "\"part\":{", "\"part\":1,\"old\":{", WEIR_EVERSION,
                  "the part has format 3, this program reads 6");
    refused_where(false, "\"part\":{", "\"old\":{", WEIR_EDATA, "is that of a whole snapshot, not of a part");
    refused_where(false, "\"part\":{", "\"part\":[],\"old\":{", WEIR_EDATA, "manifest.json");
    refused_where(false, "\"part\":0", "\"part\":2", WEIR_EDATA, "'part'");
    refused_where(false, "\"parts\":2", "\"parts\":1025", WEIR_EDATA, "'parts'");
    refused_where(false, "\"depth\":1", "\"depth\":8", WEIR_EDATA, "'depth'");
    refused_where(false, "\"cutting\":\"", "\"cutting\":\"x", WEIR_EDATA, "'cutting' is not 64 hex digits");
    refused_where(false, "\"order\":\"reads\"", "\"order\":\"ids\"", WEIR_EDATA, "'order' is not 'reads'");
    refused_where(false, "\"order\":", "\"old\":", WEIR_EDATA, "'order'");
    refused_where(false, starts, "[0,", WEIR_EDATA, "a row of 'starts' does not have one number a part and one more");
    refused_where(false, starts, "[1,1,", WEIR_EDATA, "manifest.json");
    refused_where(false, starts, "[0,9223372036854775807,", WEIR_EDATA, "manifest.json");
    refused_where(false, starts, "[0,0,", WEIR_EDATA,
                  "vertices of type 'a' of its own, but its numbers are 0 to before 0");
    refused_where(false, rows, more_rows, WEIR_EDATA, "'starts' has rows for 3 vertex types");
    refused_where(false, "\"starts\":[", "\"starts\":[[0,0,0],", WEIR_EDATA,
                  "'listed' does not have one number a vertex type");
    refused_where(false, "\"listed\":[", "\"listed\":[1,", WEIR_EDATA,
                  "'listed' does not have one number a vertex type");
    refused_where(false, "\"listed\":[", "\"old\":[", WEIR_EDATA, "'listed'");
    refused_where(false, "\"listed\":[", "\"listed\":[-", WEIR_EDATA, "manifest.json");
    refused_where(false, "\"listed\":[", "\"listed\":[9", WEIR_EDATA, "vertices of type 'a' have lists, but only");
    refused_where(false, own, "\"own\":4611686018427387904,", WEIR_EDATA, "'own'");
    parts_world_close(&w);
}

/* A part that says so of too many, or of too few, would leave out edges without a word. */
static void vertices_without_their_lists_are_refused(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    char listed[64], more[64], less[64];
    parts_world_open(&w, 1000, 1200);
    parts_cut(&w, "p", 2, 1, WEIR_PARTS_RANDOM, 1, &c);
    uint64_t here = weir_part_listed(c.of[0], 0), count = parts_vertices_of(c.of[0], 0)->count;
    assert_true(here > parts_vertices_of(c.of[0], 0)->own && here < count);
    parts_uncut(&c);
    snprintf(listed, sizeof listed, "\"listed\":[%llu,", (unsigned long long)here);
    snprintf(more, sizeof more, "\"listed\":[%llu,", (unsigned long long)here + 1);
    snprintf(less, sizeof less, "\"listed\":[%llu,", (unsigned long long)here - 1);
    refused_where(true, listed, more, WEIR_ECORRUPT, "'listed' is wrong about vertex");
    refused_where(true, listed, less, WEIR_ECORRUPT, "'listed' is wrong about vertex");
    parts_world_close(&w);
}

static void what_is_no_part_is_said(void **state) {
    (void)state;
    parts_world w;
    parts_cutting c;
    weir_part *part;
    weir_snapshot *snapshot;
    const weir_part_opts opts = {.verify = false};
    parts_world_open(&w, 64, 400);
    parts_cut(&w, "p", 2, 1, WEIR_PARTS_RANDOM, 1, &c);
    parts_uncut(&c);
    assert_err(weir_part_open(weir_test_path("p"), &opts, &part), WEIR_ENOTFOUND, "is not a part: it has no manifest");
    assert_err(weir_part_open(weir_test_path("snapshot"), &opts, &part), WEIR_EDATA,
               "is that of a whole snapshot, not of a part; weir partition makes parts");
    assert_err(weir_snapshot_open(weir_test_path(HOSTILE), &(weir_snapshot_opts){0}, &snapshot), WEIR_EDATA,
               "is a part of a snapshot");
    assert_err(weir_snapshot_open(weir_test_path("snapshot"), &(weir_snapshot_opts){.part = true}, &snapshot),
               WEIR_EDATA, "is a whole snapshot");

    assert_int_equal(truncate(weir_test_path(HOSTILE "/vertices/b/lives/first.npy"), 130), 0);
    refused(false, WEIR_EDATA, "first.npy: ");
    refused(true, WEIR_ECORRUPT, "MANIFEST");
    assert_ok(weir_file_remove(weir_test_path(HOSTILE "/vertices/b/lives/first.npy")));
    refused(false, WEIR_ECORRUPT, "first.npy is missing");
    parts_world_close(&w);
}

WEIR_TESTS(WEIR_CASE(hostile_parts_are_refused_by_name), WEIR_CASE(a_life_of_another_part_is_refused),
           WEIR_CASE(hostile_manifests_are_refused_by_name), WEIR_CASE(vertices_without_their_lists_are_refused),
           WEIR_CASE(what_is_no_part_is_said))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_test.c - a random archive becomes the snapshot that the same rows give by way of CSV and a store, byte by
 * byte; and what the archive says, looked up row by row. Arrays that are wrong are refused, and nothing is left.
 *
 * Parallel edges, loops, isolated nodes, hubs, negative keys and times, numbers that are missing, any type of number.
 */
#include "weir_test.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/sample/sampler.h>
#include <weir/store/snapshot/snapshot.h>

#include "npy_private.h"

#define NODES_MAX   60u
#define EDGES_MAX   300u
#define WIDTH_MAX   3u
#define SPLIT_PARTS 3u
#define NUMBERS     2u /* features of nodes, and of edges */

typedef struct world {
    weir_rng rng;
    uint64_t nodes, edges, width;
    bool keyed, node_timed, edge_timed, labelled, masked, apart; /* apart: src and dst, not edge_index */
    bool repeated;                                               /* a key stands in several rows */
    bool undirected, split;
    const char *skip;
    const char *prefix; /* of keys, in rows only */
    bool bits;          /* a column of them, in rows only */
    uint32_t node_numbers, edge_numbers;
    int64_t keys[NODES_MAX], node_us[NODES_MAX], labels[NODES_MAX];
    int64_t src[EDGES_MAX], dst[EDGES_MAX], edge_us[EDGES_MAX];
    float of_nodes[NUMBERS][NODES_MAX], of_edges[NUMBERS][EDGES_MAX], matrix[NODES_MAX * WIDTH_MAX];
    uint8_t mask[NODES_MAX], parts[NODES_MAX]; /* parts: of the split, SPLIT_PARTS for none */
    weir_npz_writer *archive;
    uint32_t arrays;
} world;

static uint64_t below(world *w, uint64_t bound) {
    return weir_rng_below(&w->rng, bound);
}

/* --- the archive ------------------------------------------------------------------------------------------------- */

static void put_number(weir_npy_writer *writer, weir_npy_type type, const int64_t *whole, const float *real) {
    union {
        int64_t whole;
        float f32;
        double f64;
    } n = {.whole = whole ? *whole : 0}; /* the lower bytes of it are those of shorter numbers */
    if (type == WEIR_NPY_F32) n.f32 = real ? *real : (float)*whole;
    if (type == WEIR_NPY_F64) n.f64 = real ? (double)*real : (double)*whole;
    assert_ok(weir_npy_write(writer, &n, 1));
}

/* One of the two sources; they are the numbers of an array of this shape, row by row. */
static void put_array(world *w, const char *name, weir_npy_type type, uint64_t rows, uint64_t columns,
                      const int64_t *whole, const float *real) {
    const weir_npy_array shape = {.type = type, .dims = columns ? 2 : 1, .shape = {rows, columns}};
    char path[64];
    weir_npy_writer *writer;
    snprintf(path, sizeof path, "array.%u", w->arrays++);
    assert_ok(weir_npy_writer_open_shape(weir_test_path(path), &shape, &writer));
    for (uint64_t i = 0; i < rows * (columns ? columns : 1); i++)
        put_number(writer, type, whole ? &whole[i] : NULL, real ? &real[i] : NULL);
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npz_add(w->archive, name, weir_test_path(path)));
}

static void open_archive(world *w) {
    w->arrays = 0;
    if (weir_path_exists(weir_test_path("a.npz"))) assert_ok(weir_file_remove(weir_test_path("a.npz")));
    assert_ok(weir_npz_writer_open(weir_test_path("a.npz"), &w->archive));
}

static void close_archive(world *w) {
    char path[64];
    assert_ok(weir_npz_writer_close(w->archive));
    while (w->arrays > 0) {
        snprintf(path, sizeof path, "array.%u", --w->arrays);
        assert_ok(weir_file_remove(weir_test_path(path)));
    }
}

static weir_npy_type some_whole(world *w, bool small) {
    static const weir_npy_type types[] = {WEIR_NPY_I64, WEIR_NPY_F64, WEIR_NPY_I32, WEIR_NPY_U64, WEIR_NPY_U32,
                                          WEIR_NPY_I16, WEIR_NPY_U8,  WEIR_NPY_I8,  WEIR_NPY_F32};
    return types[below(w, small ? 9 : 2)];
}

static weir_npy_type some_real(world *w) {
    return below(w, 2) ? WEIR_NPY_F32 : WEIR_NPY_F64;
}

static void write_archive(world *w) {
    static const char *const split_masks[SPLIT_PARTS] = {"mask.s_train", "mask.s_val", "mask.s_test"};
    static const char *const node_names[] = {"node.a", "node.b"}, *const edge_names[] = {"edge.u", "edge.v"};
    int64_t both[2 * EDGES_MAX], mask[NODES_MAX];
    open_archive(w);
    if (w->apart) {
        put_array(w, "src", some_whole(w, true), w->edges, 0, w->src, NULL);
        put_array(w, "dst", some_whole(w, true), w->edges, 0, w->dst, NULL);
    } else {
        memcpy(both, w->src, w->edges * sizeof both[0]);
        memcpy(both + w->edges, w->dst, w->edges * sizeof both[0]);
        put_array(w, "edge_index", some_whole(w, true), 2, w->edges, both, NULL);
    }
    if (w->keyed) put_array(w, "node_id", some_whole(w, false), w->nodes, 0, w->keys, NULL);
    if (w->node_timed) put_array(w, "node_time", some_whole(w, false), w->nodes, 0, w->node_us, NULL);
    if (w->edge_timed) put_array(w, "edge_time", some_whole(w, false), w->edges, 0, w->edge_us, NULL);
    for (uint32_t i = 0; i < w->node_numbers; i++)
        put_array(w, node_names[i], some_real(w), w->nodes, 0, NULL, w->of_nodes[i]);
    for (uint32_t i = 0; i < w->edge_numbers; i++)
        put_array(w, edge_names[i], some_real(w), w->edges, 0, NULL, w->of_edges[i]);
    if (w->width) put_array(w, "x", some_real(w), w->nodes, w->width, NULL, w->matrix);
    for (uint64_t i = 0; i < w->nodes; i++)
        mask[i] = w->mask[i];
    if (w->masked) put_array(w, "train_mask", below(w, 2) ? WEIR_NPY_BOOL : WEIR_NPY_F32, w->nodes, 0, mask, NULL);
    for (uint8_t part = 0; w->split && part < SPLIT_PARTS; part++) {
        for (uint64_t i = 0; i < w->nodes; i++)
            mask[i] = w->parts[i] == part;
        put_array(w, split_masks[part], WEIR_NPY_BOOL, w->nodes, 0, mask, NULL);
    }
    /* a type that has negative numbers */
    if (w->labelled || !(w->keyed || w->node_timed || w->width))
        put_array(w, "y", below(w, 2) ? WEIR_NPY_I16 : WEIR_NPY_F64, w->nodes, 0, w->labels, NULL);
    close_archive(w);
}

/* --- the same as rows -------------------------------------------------------------------------------------------- */

static void put_real(FILE *file, float number) {
    fputc(',', file);
    if (!isnan(number)) fprintf(file, "%.9g", (double)number);
}

static void put_seconds(FILE *file, int64_t time_us) {
    unsigned long long apart = time_us < 0 ? -(unsigned long long)time_us : (unsigned long long)time_us;
    fprintf(file, ",%s%llu.%06llu", time_us < 0 ? "-" : "", apart / 1000000, apart % 1000000);
}

static void write_nodes(const world *w, int digits) {
    static const char *const parts[] = {"train", "val", "test", ""};
    static const char *const val[] = {"val", "valid", "validation", "dev"};
    FILE *file = fopen(weir_test_path("n.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,timestamp,label%s%s", w->node_numbers > 0 ? ",number.a" : "",
            w->node_numbers > 1 ? ",number.b" : "");
    if (w->width) fprintf(file, ",matrix.x.%llu", (unsigned long long)w->width);
    fprintf(file, "%s%s%s\n", w->masked ? ",mask.train_mask" : "", w->split ? ",split.s" : "",
            w->bits ? ",bits.f.9" : "");
    for (uint64_t i = 0; i < w->nodes; i++) {
        fprintf(file, "%s%lld", w->prefix, (long long)w->keys[i]);
        put_seconds(file, w->node_us[i]);
        fputc(',', file);
        if (w->labels[i] >= 0) fprintf(file, "%0*lld", digits, (long long)w->labels[i]);
        for (uint32_t k = 0; k < w->node_numbers; k++)
            put_real(file, w->of_nodes[k][i]);
        if (w->width) fputc(',', file);
        for (uint64_t c = 0; c < w->width && !isnan(w->matrix[i * w->width]); c++)
            fprintf(file, "%s%.9g", c ? " " : "", (double)w->matrix[i * w->width + c]);
        if (w->masked) fprintf(file, ",%d", w->mask[i] != 0);
        if (w->split) fprintf(file, ",%s", w->parts[i] == 1 ? val[i % 4] : parts[w->parts[i]]);
        if (w->bits) fprintf(file, i % 3 ? ",%d %d" : ",", (int)(i % 9), (int)(i % 7));
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
}

static void write_edges(const world *w) {
    FILE *file = fopen(weir_test_path("e.csv"), "w");
    assert_non_null(file);
    fprintf(file, "src,dst,timestamp%s%s\n", w->edge_numbers > 0 ? ",number.u" : "",
            w->edge_numbers > 1 ? ",number.v" : "");
    for (uint64_t i = 0; i < w->edges; i++) {
        fprintf(file, "%s%lld,%s%lld", w->prefix, (long long)w->keys[w->src[i]], w->prefix,
                (long long)w->keys[w->dst[i]]);
        put_seconds(file, w->edge_us[i]);
        for (uint32_t k = 0; k < w->edge_numbers; k++)
            put_real(file, w->of_edges[k][i]);
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
}

static void write_rows(const world *w) {
    int64_t largest = 0;
    int digits = 1;
    for (uint64_t i = 0; i < w->nodes; i++)
        if (w->labels[i] > largest) largest = w->labels[i];
    for (; largest >= 10; largest /= 10)
        digits++;
    write_nodes(w, digits);
    write_edges(w);
}

/* --- a world ----------------------------------------------------------------------------------------------------- */

static float some_number(world *w, uint64_t missing) {
    static const float special[] = {0.0f, -0.0f, 1.0f, 3.4e38f, -1e-40f, 0.1f};
    if (below(w, 100) < missing) return NAN;
    return below(w, 4) ? (float)(weir_rng_double(&w->rng) * 2000 - 1000) : special[below(w, 6)];
}

static void draw_nodes(world *w) {
    static const uint64_t steps[] = {1, 7, 1000003, 1ull << 44};
    int64_t step = (int64_t)steps[below(w, 4)];
    uint64_t missing = below(w, 3) * 50; /* all of them, too */
    for (uint64_t i = 0; i < w->nodes; i++) {
        w->keys[i] = w->keyed ? ((int64_t)i - 20) * step : (int64_t)i;
        if (w->repeated) w->keys[i] = (int64_t)(i / 2) * step;
        w->node_us[i] = w->node_timed ? (int64_t)below(w, 3000000) - 1000000 : 0;
        if (w->repeated) w->node_us[i] = (int64_t)i * 1500000;
        w->labels[i] = w->labelled ? (int64_t)below(w, 13) - 2 : -1;
        w->mask[i] = (uint8_t)below(w, 2);
        /* There is one: a column of nothing is none. An empty field of a later row says nothing, which rows of an
         * archive cannot. */
        w->parts[i] = (uint8_t)below(w, i > 0 ? SPLIT_PARTS + !w->repeated : 1);
        for (uint32_t k = 0; k < NUMBERS; k++)
            w->of_nodes[k][i] = some_number(w, k ? missing : 30);
        bool none = below(w, 4) == 0;
        for (uint64_t c = 0; c < w->width; c++)
            w->matrix[i * w->width + c] = none ? NAN : some_number(w, 0);
    }
    for (uint64_t i = w->nodes; w->keyed && !w->repeated && i-- > 1;) { /* no order */
        uint64_t other = below(w, i + 1);
        int64_t key = w->keys[i];
        w->keys[i] = w->keys[other];
        w->keys[other] = key;
    }
}

static void draw_edges(world *w) {
    uint64_t missing = below(w, 3) * 50, kinds = 1 + below(w, 3), times = 1 + below(w, 2000000);
    for (uint64_t i = 0; i < w->edges; i++) {
        uint64_t kind = below(w, kinds);
        w->src[i] = (int64_t)below(w, kind == 1 ? 1 : w->nodes);
        w->dst[i] = (int64_t)below(w, kind == 2 ? 1 + w->nodes / 8 : w->nodes);
        w->edge_us[i] = w->edge_timed ? (int64_t)below(w, times) - 700000 : 0;
        for (uint32_t k = 0; k < NUMBERS; k++)
            w->of_edges[k][i] = some_number(w, k ? missing : 30);
    }
}

static void draw(world *w, uint64_t round) {
    static const char *const skips[] = {NULL, NULL, NULL, "timestamp", "label,number.u", "number.a,mask.train_mask"};
    *w = (world){.rng = weir_rng_stream(weir_test_seed(), round, 0), .prefix = ""};
    w->nodes = 1 + below(w, below(w, 4) ? NODES_MAX : 2);
    w->edges = below(w, 8) ? 1 + below(w, EDGES_MAX) : below(w, 2);
    w->repeated = below(w, 6) == 0;
    w->keyed = w->repeated || below(w, 2);
    w->node_timed = w->repeated || below(w, 2);
    w->edge_timed = below(w, 2);
    w->labelled = below(w, 2);
    w->masked = below(w, 2);
    w->split = below(w, 2);
    w->apart = w->edges == 0 || below(w, 2); /* of one dimension */
    w->undirected = below(w, 3) == 0;
    w->width = below(w, WIDTH_MAX + 1);
    w->node_numbers = (uint32_t)below(w, NUMBERS + 1);
    w->edge_numbers = (uint32_t)below(w, NUMBERS + 1);
    w->skip = w->repeated ? NULL : skips[below(w, 6)];
    draw_nodes(w);
    draw_edges(w);
    write_archive(w);
    write_rows(w);
}

/* --- against CSV ------------------------------------------------------------------------------------------------- */

static weir_err import_archive(const world *w, const char *out, weir_snapshot_stats *statsp) {
    const weir_snapshot_import_opts opts = {.out = weir_test_path(out),
                                            .npz = weir_test_path("a.npz"),
                                            .skip = w->skip,
                                            .undirected = w->undirected,
                                            .seed = 3};
    return weir_snapshot_import(&opts, statsp);
}

static weir_err import_rows(const world *w, const char *out, bool by_store, bool nodes, weir_snapshot_stats *statsp) {
    const weir_snapshot_import_opts opts = {.out = weir_test_path(out),
                                            .nodes = nodes ? weir_test_path("n.csv") : NULL,
                                            .edges = weir_test_path("e.csv"),
                                            .skip = w->skip,
                                            .undirected = w->undirected,
                                            .seed = 3,
                                            .by_store = by_store};
    return weir_snapshot_import(&opts, statsp);
}

/* From `begin` up to `end`, both of which are there. */
static void cut_out(char *text, const char *begin, const char *end) {
    char *from = strstr(text, begin);
    assert_non_null(from);
    char *to = strstr(from, end);
    assert_non_null(to);
    memmove(from, to, strlen(to) + 1);
}

/* MANIFEST has the SHA-256 of every file; manifest.json differs in where the data comes from only. */
static void same_folders(const char *a, const char *b) {
    static const char *const files[] = {"MANIFEST", "manifest.json"};
    char path[64], *texts[2];
    size_t lengths[2];
    for (int file = 0; file < 2; file++) {
        for (int side = 0; side < 2; side++) {
            snprintf(path, sizeof path, "%s/%s", side ? b : a, files[file]);
            assert_ok(weir_file_load(weir_test_path(path), 1u << 20, &texts[side], &lengths[side]));
            if (file == 1) cut_out(texts[side], "\"origin\"", "\"as_of_us\"");
            char *name = file == 0 ? strstr(texts[side], "manifest.json") : NULL, *line = name;
            while (line && line > texts[side] && line[-1] != '\n')
                line--;
            if (name) memmove(line, name, strlen(name) + 1);
        }
        assert_string_equal(texts[0], texts[1]);
        weir_free(texts[0]);
        weir_free(texts[1]);
    }
}

/* --- against the archive ----------------------------------------------------------------------------------------- */

/* The row of each vertex: by its key, looked for among all. */
static void find_rows(const world *w, const weir_snapshot_vertices *v, uint64_t *rows) {
    for (uint64_t i = 0; i < v->count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%.*s", (int)(v->key_offsets[i + 1] - v->key_offsets[i]),
                 (const char *)v->key_bytes + v->key_offsets[i]);
        for (rows[i] = 0; rows[i] < w->nodes && w->keys[rows[i]] != strtoll(key, NULL, 10);)
            rows[i]++;
        assert_true(rows[i] < w->nodes);
    }
}

/* Each edge of a list is taken out of the archive's: of those that fit, the first, as the features stand in rows. */
static void same_list(const world *w, const weir_snapshot_edges *e, const uint64_t *rows, uint64_t v,
                      weir_direction direction, uint8_t *taken) {
    for (int64_t at = e->indptr[v]; at < e->indptr[v + 1]; at++) {
        int64_t own = (int64_t)rows[v], other = (int64_t)rows[e->neighbors[at]];
        uint64_t i = 0;
        for (;; i++) {
            assert_true(i < w->edges);
            int64_t a = direction == WEIR_OUT ? w->src[i] : w->dst[i], b = w->src[i] + w->dst[i] - a;
            int64_t time_us = w->skip && strcmp(w->skip, "timestamp") == 0 ? 0 : w->edge_us[i];
            if (e->times[at] != time_us) continue;
            if (a == own && b == other && !(taken[i] & 1)) break;
            if (w->undirected && a == other && b == own && a != b && !(taken[i] & 2)) break;
        }
        int64_t a = direction == WEIR_OUT ? w->src[i] : w->dst[i];
        taken[i] |= a == own && !(taken[i] & 1) ? 1 : 2;
        if (e->column_count == w->edge_numbers && e->column_count == 1) {
            float wanted = w->of_edges[0][i], number = e->columns[0].numbers[at];
            assert_true(isnan(wanted) ? isnan(number) : wanted == number);
        }
    }
}

static uint64_t bytes_of_files;

static int count_file(const char *path, const struct stat *status, int type, struct FTW *at) {
    (void)path, (void)at;
    if (type == FTW_F) bytes_of_files += (uint64_t)status->st_size;
    return 0;
}

/* Arrays that are 0 throughout, and left out, are no files. */
static void takes_no_more_than_its_files(const weir_snapshot *s, const char *out) {
    bytes_of_files = 0;
    assert_int_equal(nftw(weir_test_path(out), count_file, 16, FTW_PHYS), 0);
    assert_true(weir_snapshot_bytes(s) > 0 && weir_snapshot_bytes(s) <= bytes_of_files);
}

/* Looked up one by one, and by the source, which does not look where all lives are alike. */
static void who_is_there_is_found_either_way(world *w, const weir_snapshot *s) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(s, 0);
    weir_sample_source *source;
    uint64_t vertices[NODES_MAX], life;
    int64_t before_us[NODES_MAX];
    bool there[NODES_MAX];
    assert_ok(weir_sample_over_snapshot(s, &source));
    assert_true(weir_snapshot_lives_alike(s, 0) || w->node_timed || w->edge_timed);
    for (unsigned round = 0; round < 4; round++) {
        const bool targets = below(w, 2);
        for (uint64_t i = 0; i < v->count; i++) {
            const int64_t near_us = v->lives.times[below(w, v->lives.count)] + (int64_t)below(w, 3) - 1;
            vertices[i] = below(w, v->count);
            before_us[i] = below(w, 4) ? near_us : WEIR_BEFORE_ALL;
        }
        source->there(source,
                      &(weir_sample_vertices){
                          .vertices = vertices,
                          .before_us = before_us,
                          .count = (uint32_t)v->count,
                          .targets = targets,
                      },
                      there);
        for (uint64_t i = 0; i < v->count; i++) {
            const int64_t seen_us = before_us[i] + (targets && before_us[i] < INT64_MAX); /* a target sees its put */
            assert_int_equal(there[i], weir_snapshot_span(&v->lives, vertices[i], seen_us, &life));
        }
    }
    weir_sample_source_close(source);
}

static void same_as_archive(world *w, const char *out) {
    const weir_snapshot_opts opts = {.verify = true, .load = below(w, 2)};
    weir_snapshot *s;
    uint64_t rows[NODES_MAX];
    assert_ok(weir_snapshot_open(weir_test_path(out), &opts, &s));
    assert_ok(weir_snapshot_check(s));
    takes_no_more_than_its_files(s, out);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(s, 0);
    assert_int_equal(v->count, w->nodes);
    find_rows(w, v, rows);
    if (v->count) who_is_there_is_found_either_way(w, s);
    for (uint64_t i = 0; i < v->count && v->extra_count && v->extras[0].matrix; i++) {
        for (uint64_t c = 0; c < w->width; c++) {
            float number = w->matrix[rows[i] * w->width + c];
            assert_true(v->extras[0].matrix[i * w->width + c] == (isnan(number) ? 0 : number));
        }
    }
    for (int direction = WEIR_OUT; w->edges && direction <= WEIR_IN; direction++) {
        const weir_snapshot_edges *e = weir_snapshot_edges_of(s, 0, (weir_direction)direction);
        uint8_t taken[EDGES_MAX] = {0};
        for (uint64_t i = 0; i < v->count; i++)
            same_list(w, e, rows, i, (weir_direction)direction, taken);
        for (uint64_t i = 0; i < w->edges; i++)
            assert_int_equal(taken[i], w->undirected && w->src[i] != w->dst[i] ? 3 : 1);
        assert_false(e->has_events);
        bool zero = true;
        for (uint64_t i = 0; i < e->edges; i++)
            zero = zero && e->times[i] == 0;
        assert_true(e->has_times == !zero);
    }
    weir_snapshot_close(s);
}

static void nothing_is_left(const char *out) {
    static const char *const ends[] = {"", ".partial", ".spill", ".csv", ".store"};
    char name[64];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", out, ends[i]);
        assert_false(weir_path_exists(weir_test_path(name)));
    }
}

static void an_archive_is_as_its_rows(void **state) {
    weir_snapshot_stats of_archive, of_rows;
    world *w = malloc(sizeof *w);
    (void)state;
    assert_non_null(w);
    for (uint64_t round = 0; round < weir_test_rounds(8); round++) {
        draw(w, round);
        weir_err err = import_archive(w, "a", &of_archive);
        if (err) { /* a label of one value, which no schema takes, is refused in rows too */
            assert_err(err, WEIR_ECONFIG, "at least 2");
            assert_err(import_rows(w, "b", true, true, &of_rows), WEIR_ECONFIG, "at least 2");
            nothing_is_left("a");
            continue;
        }
        assert_ok(import_rows(w, "b", true, true, &of_rows));
        assert_true(of_archive.vertices == of_rows.vertices && of_archive.edges == of_rows.edges);
        assert_int_equal(of_archive.labels, of_rows.labels);
        same_folders("a", "b");
        assert_ok(import_rows(w, "c", false, true, &of_rows));
        same_folders("c", "b");
        if (!w->repeated) same_as_archive(w, "a");
        assert_ok(weir_folder_remove(weir_test_path("a")));
        assert_ok(weir_folder_remove(weir_test_path("b")));
        assert_ok(weir_folder_remove(weir_test_path("c")));
        nothing_is_left("a");
        nothing_is_left("c");
    }
    free(w);
}

/* By arrays alone and, where keys are repeated, by way of rows and a store. */
static void a_matrix_without_numbers_is_left_out(void **state) {
    weir_snapshot_stats of_archive, of_rows;
    world *w = malloc(sizeof *w);
    uint64_t round = 2000;
    (void)state;
    assert_non_null(w);
    for (int repeated = 0; repeated < 2; repeated++) {
        do {
            draw(w, round++);
        } while (w->repeated != repeated || w->width < 2 || w->skip || w->edges == 0 || w->labelled);
        for (uint64_t i = 0; i < w->nodes * w->width; i++)
            w->matrix[i] = NAN;
        write_archive(w);
        write_rows(w);
        assert_ok(import_archive(w, "a", &of_archive));
        assert_false(weir_path_exists(weir_test_path("a/vertices/node/matrix.x.npy")));
        assert_ok(import_rows(w, "b", true, true, &of_rows));
        same_folders("a", "b");
        assert_ok(import_rows(w, "c", false, true, &of_rows));
        same_folders("c", "b");
        for (const char *name = "abc"; *name; name++)
            assert_ok(weir_folder_remove(weir_test_path((char[]){*name, 0})));
    }
    free(w);
}

/* Rows that are as plain as arrays need no store either, and give the same: keys of text, bits, edges alone. */
static void plain_rows_are_as_by_a_store(void **state) {
    weir_snapshot_stats stats;
    world *w = malloc(sizeof *w);
    (void)state;
    assert_non_null(w);
    for (uint64_t round = 0; round < weir_test_rounds(6); round++) {
        bool nodes = round % 2;
        draw(w, 500 + round);
        w->prefix = round % 3 ? "k " : "";
        w->bits = true;
        write_rows(w);
        weir_err err = import_rows(w, "b", true, nodes, &stats);
        if (err) { /* no edge, or a label of one value */
            weir_code code = weir_err_code(err);
            assert_err(import_rows(w, "c", false, nodes, &stats), code, NULL);
            continue;
        }
        assert_ok(import_rows(w, "c", false, nodes, &stats));
        same_folders("c", "b");
        assert_ok(weir_folder_remove(weir_test_path("b")));
        assert_ok(weir_folder_remove(weir_test_path("c")));
        nothing_is_left("c");
    }
    free(w);
}

/* --- what is wrong ----------------------------------------------------------------------------------------------- */

/* Three nodes, two edges; one array more, or in place of one of these. */
static void refused(const char *name, weir_npy_type type, uint64_t rows, uint64_t columns, const int64_t *whole,
                    const float *real, weir_code code, const char *why) {
    static const int64_t ends[] = {0, 1, 1, 2}, labels[] = {0, 1, 0};
    world *w = calloc(1, sizeof *w);
    weir_snapshot_stats stats;
    assert_non_null(w);
    open_archive(w);
    if (strcmp(name, "edge_index") != 0 && strcmp(name, "src") != 0)
        put_array(w, "edge_index", WEIR_NPY_I64, 2, 2, ends, NULL);
    if (strcmp(name, "src") == 0) put_array(w, "dst", WEIR_NPY_I64, 2, 0, ends, NULL);
    if (strcmp(name, "y") != 0) put_array(w, "y", WEIR_NPY_I64, 3, 0, labels, NULL);
    put_array(w, name, type, rows, columns, whole, real);
    close_archive(w);
    assert_err(import_archive(w, "a", &stats), code, why);
    nothing_is_left("a");
    free(w);
}

static void wrong_arrays_are_refused(void **state) {
    const int64_t beyond[] = {0, 1, 1, 3}, negative[] = {0, 1, -1, 2}, far[] = {0, INT64_MAX}, twice[] = {4, 5, 4};
    const float half[] = {1, 1, 0.5f, 2}, nan[] = {1, 1, NAN, 2}, big[] = {1, 1, 1e30f, 2},
                hole[] = {1, 2, 3, NAN, 5, 6};
    const float infinite[] = {1, INFINITY, 2};
    (void)state;
    refused("edge_index", WEIR_NPY_I64, 2, 2, beyond, NULL, WEIR_EDATA, "an edge ends at node 3, and there are 3");
    refused("edge_index", WEIR_NPY_I8, 2, 2, negative, NULL, WEIR_EDATA, "an edge ends at node -1");
    refused("edge_index", WEIR_NPY_U64, 2, 2, negative, NULL, WEIR_EDATA, "is not a whole number of 64 bits");
    refused("edge_index", WEIR_NPY_F32, 2, 2, NULL, half, WEIR_EDATA, "is not a whole number of 64 bits");
    refused("edge_index", WEIR_NPY_F64, 2, 2, NULL, nan, WEIR_EDATA, "is not a whole number of 64 bits");
    refused("edge_index", WEIR_NPY_F32, 2, 2, NULL, big, WEIR_EDATA, "is not a whole number of 64 bits");
    refused("edge_index", WEIR_NPY_I64, 4, 0, beyond, NULL, WEIR_EDATA, "is not an array of (2, edges)");
    refused("edge_index", WEIR_NPY_I64, 4, 1, beyond, NULL, WEIR_EDATA, "is not an array of (2, edges)");
    refused("src", WEIR_NPY_I64, 3, 0, beyond, NULL, WEIR_EDATA, "src and dst differ in length");
    refused("node_id", WEIR_NPY_F32, 3, 0, NULL, half, WEIR_EDATA, "is not a whole number");
    refused("node_id", WEIR_NPY_I64, 3, 0, twice, NULL, WEIR_EDATA, "the id '4' is there twice");
    refused("node_id", WEIR_NPY_I64, 4, 0, beyond, NULL, WEIR_EDATA, "differ in length");
    refused("edge_time", WEIR_NPY_I64, 2, 0, far, NULL, WEIR_EDATA, "is not a time");
    refused("edge_time", WEIR_NPY_I64, 4, 0, beyond, NULL, WEIR_EDATA, "edge_time and the edges differ in length");
    refused("y", WEIR_NPY_F32, 3, 0, NULL, half + 1, WEIR_EDATA, "is not a whole number");
    refused("x", WEIR_NPY_F32, 3, 2, NULL, hole, WEIR_EDATA, "row 1 of the matrix 'x' lacks 1 of its 2 numbers");
    refused("node.n", WEIR_NPY_F64, 3, 0, NULL, infinite, WEIR_EDATA, "number 1 of 'n' is infinite");
    refused("edge.n", WEIR_NPY_F64, 2, 0, NULL, infinite, WEIR_EDATA, "number 1 of 'n' is infinite");
}

/* Fortran order, another machine's bytes and texts are refused by their headers; an archive that is cut, wherever. */
static void wrong_bytes_are_refused(void **state) {
    static const char *const headers[][2] = {{"'fortran_order': False", "'fortran_order': True "},
                                             {"'descr': '<i8'", "'descr': '>i8'"},
                                             {"'descr': '<i8'", "'descr': '<U2'"},
                                             {"'shape': (2, 2)", "'shape': (2, 3)"}};
    static const int64_t ends[] = {0, 1, 1, 2};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 7, 0);
    world *w = calloc(1, sizeof *w);
    weir_snapshot_stats stats;
    char *bytes;
    size_t length;
    (void)state;
    assert_non_null(w);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) { /* the checksum is that of the wrong bytes */
        open_archive(w);
        put_array(w, "edge_index", WEIR_NPY_I64, 2, 2, ends, NULL);
        assert_ok(weir_file_load(weir_test_path("array.0"), 4096, &bytes, &length));
        for (size_t at = 0; at + strlen(headers[i][0]) <= length; at++)
            if (memcmp(bytes + at, headers[i][0], strlen(headers[i][0])) == 0)
                memcpy(bytes + at, headers[i][1], strlen(headers[i][1]));
        assert_ok(weir_file_replace(weir_test_path("array.0"), bytes, length));
        weir_free(bytes);
        close_archive(w);
        assert_err(import_archive(w, "a", &stats), WEIR_EDATA, NULL);
        nothing_is_left("a");
    }
    open_archive(w);
    put_array(w, "edge_index", WEIR_NPY_I64, 2, 2, ends, NULL);
    close_archive(w);
    assert_ok(weir_file_load(weir_test_path("a.npz"), 1u << 20, &bytes, &length));
    for (int i = 0; i < 40; i++) {
        assert_ok(weir_file_replace(weir_test_path("a.npz"), bytes, weir_rng_below(&rng, length)));
        assert_err(import_archive(w, "a", &stats), WEIR_EDATA, NULL);
        nothing_is_left("a");
    }
    weir_free(bytes);
    free(w);
}

/* What fails as the last folder is removed leaves it, beside a snapshot that is whole; else there is none. */
static void whole_or_not_there(const char *out) {
    static const char *const ends[] = {".partial", ".spill", ".csv", ".store"};
    const weir_snapshot_opts opts = {.verify = true};
    char name[64];
    weir_snapshot *s;
    if (weir_path_exists(weir_test_path(out))) {
        assert_ok(weir_snapshot_open(weir_test_path(out), &opts, &s));
        weir_snapshot_close(s);
        assert_ok(weir_folder_remove(weir_test_path(out)));
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", out, ends[i]);
        if (weir_path_exists(weir_test_path(name))) assert_ok(weir_folder_remove(weir_test_path(name)));
    }
}

static weir_err open_loaded(void *context) {
    const weir_snapshot_opts opts = {.load = true};
    weir_snapshot *snapshot;
    weir_err err = weir_snapshot_open(context, &opts, &snapshot);
    if (!err) weir_snapshot_close(snapshot);
    return err;
}

static void memory_may_end_while_it_is_loaded(void **state) {
    weir_snapshot_stats stats;
    world *w = malloc(sizeof *w);
    (void)state;
    assert_non_null(w);
    uint64_t round = 0;
    do {
        draw(w, 2000 + round++);
    } while (w->repeated || w->skip || w->nodes < 2 || w->edges == 0 || !w->width || !w->masked || w->labelled);
    assert_ok(import_archive(w, "a", &stats));
    weir_test_every_allocation(open_loaded, (void *)(uintptr_t)weir_test_path("a"));
    free(w);
}

/* Some of the allocations of an import fail, one a time. */
static void memory_may_end_anywhere(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 8, 0);
    weir_snapshot_stats stats;
    weir_alloc_stats before, after;
    world *w = malloc(sizeof *w);
    (void)state;
    assert_non_null(w);
    uint64_t round = 0;
    do {
        draw(w, 1000 + round++);
    } while (w->repeated || w->nodes < 20 || w->edges == 0 || !w->width || !w->edge_numbers || !w->node_numbers);
    assert_ok(import_archive(w, "a", &stats));
    assert_ok(weir_folder_remove(weir_test_path("a")));
    for (uint64_t i = 0, nth = 1; i < weir_test_rounds(40); i++, nth += 1 + weir_rng_below(&rng, 20)) {
        weir_alloc_stats_get(&before);
        weir_alloc_fail_nth(nth);
        weir_err err = import_archive(w, "a", &stats);
        int failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        if (!failed) {
            assert_ok(err);
            break;
        }
        assert_err(err, WEIR_ENOMEM, NULL);
        weir_alloc_stats_get(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
        whole_or_not_there("a");
    }
    free(w);
}

WEIR_TESTS(WEIR_CASE(an_archive_is_as_its_rows), WEIR_CASE(a_matrix_without_numbers_is_left_out),
           WEIR_CASE(plain_rows_are_as_by_a_store), WEIR_CASE(wrong_arrays_are_refused),
           WEIR_CASE(wrong_bytes_are_refused), WEIR_CASE(memory_may_end_while_it_is_loaded),
           WEIR_CASE(memory_may_end_anywhere))

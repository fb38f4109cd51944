/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_bench.c - archives and files of rows into snapshots, in edges a second of one processor: this is about work,
 * and what a disk takes to sync is the disk's.
 *
 * The limit is what no import can do without: it sorts the same pairs by radix once from each end, in one word a pair,
 * and writes as many bytes as the snapshot has. It makes no ids, follows none, and checks nothing.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/snapshot/snapshot.h>

#include "bench.h"

#define DEGREE     25u /* edges a vertex */
#define WIDTH      100u
#define DIGITS     2048u /* of the limit's radix: 11 bits */
#define PIECE      (256u << 10)
#define CLASSES    8u
#define ROWS_SHARE 10u /* of the edges so few are read as rows of text */

typedef struct import_context {
    const char *folder;
    uint64_t vertices, edges, bytes; /* bytes: of the snapshot */
} import_context;

static weir_err import_path(const import_context *c, const char *name, char path[PATH_MAX]) {
    return weir_path_join(path, PATH_MAX, c->folder, name);
}

static int64_t import_cpu_ns(void) {
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (int64_t)spent.tv_sec * 1000000000 + spent.tv_nsec;
}

/* --- data -------------------------------------------------------------------------------------------------------- */

/* R-MAT: a quadrant of the matrix a bit, by 0.57, 0.19, 0.19 and 0.05. Numbers are spread over the vertices. */
static void import_draw(const import_context *c, bool skewed, weir_rng *rng, int64_t *srcp, int64_t *dstp) {
    uint64_t src = weir_rng_below(rng, c->vertices), dst = weir_rng_below(rng, c->vertices), room = 1;
    if (skewed) {
        for (src = dst = 0; room < c->vertices; room *= 2) {
            uint32_t dice = weir_rng_u32(rng) % 100;
            src = 2 * src + (dice >= 76);
            dst = 2 * dst + ((dice >= 57 && dice < 76) || dice >= 95);
        }
    }
    *srcp = (int64_t)(src * 0x9e3779b1u % c->vertices);
    *dstp = (int64_t)(dst * 0x9e3779b1u % c->vertices);
}

static weir_err import_put_ends(const import_context *c, bool skewed, weir_npy_writer *writer) {
    int64_t ends[2];
    weir_err err = WEIR_OK;
    for (int end = 0; !err && end < 2; end++) {
        weir_rng rng = weir_rng_stream(1, skewed, 0); /* the same edges, for their other end */
        for (uint64_t i = 0; !err && i < c->edges; i++) {
            import_draw(c, skewed, &rng, &ends[0], &ends[1]);
            err = weir_npy_write_i64(writer, ends[end]);
        }
    }
    return err;
}

static weir_err import_put_nodes(const import_context *c, weir_npy_writer *x, weir_npy_writer *y) {
    weir_rng rng = weir_rng_stream(2, 0, 0);
    float row[WIDTH];
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < c->vertices; i++) {
        for (size_t k = 0; k < WIDTH; k++)
            row[k] = (float)weir_rng_double(&rng);
        err = weir_npy_write(x, row, WIDTH);
        if (!err) err = weir_npy_write_i64(y, (int64_t)weir_rng_below(&rng, CLASSES));
    }
    return err;
}

static weir_err import_make_archive(const import_context *c, bool skewed, const char *name) {
    static const char *const arrays[] = {"edge_index", "x", "y"};
    char paths[3][PATH_MAX], path[PATH_MAX];
    weir_npy_writer *writers[3] = {NULL};
    weir_npz_writer *archive = NULL;
    weir_err err = import_path(c, name, path);
    for (size_t i = 0; !err && i < 3; i++)
        err = import_path(c, arrays[i], paths[i]);
    if (!err) err = weir_npy_writer_open(paths[0], WEIR_NPY_I64, 2, c->edges, &writers[0]);
    if (!err) err = weir_npy_writer_open(paths[1], WEIR_NPY_F32, c->vertices, WIDTH, &writers[1]);
    if (!err) err = weir_npy_writer_open(paths[2], WEIR_NPY_I64, c->vertices, 0, &writers[2]);
    if (!err) err = import_put_ends(c, skewed, writers[0]);
    if (!err) err = import_put_nodes(c, writers[1], writers[2]);
    for (size_t i = 0; i < 3; i++)
        err = weir_npy_writer_end(writers[i], err);
    if (!err) err = weir_npz_writer_open(path, &archive);
    for (size_t i = 0; !err && i < 3; i++)
        err = weir_npz_add(archive, arrays[i], paths[i]);
    if (err) {
        weir_npz_writer_cancel(archive);
        return err;
    }
    err = weir_npz_writer_close(archive);
    for (size_t i = 0; i < 3; i++)
        weir_err_keep(&err, weir_file_remove(paths[i]));
    return err;
}

static weir_err import_make_rows(const import_context *c) {
    char path[PATH_MAX];
    weir_rng rng = weir_rng_stream(1, 1, 0);
    weir_err err = import_path(c, "edges.csv", path);
    FILE *file = err ? NULL : fopen(path, "we");
    if (!err && !file) err = WEIR_ERR(WEIR_EIO, "cannot write %s", path);
    if (err) return err;
    fputs("src,dst\n", file);
    for (uint64_t i = 0; i < c->edges / ROWS_SHARE; i++) {
        int64_t src, dst;
        import_draw(c, true, &rng, &src, &dst);
        fprintf(file, "%lld,%lld\n", (long long)src, (long long)dst);
    }
    bool good = !ferror(file);
    return fclose(file) || !good ? WEIR_ERR(WEIR_EIO, "cannot write %s", path) : WEIR_OK;
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static weir_err import_sort_pairs(uint64_t *pairs, uint64_t *other, uint64_t count) {
    size_t *counts = weir_calloc(DIGITS, sizeof *counts);
    if (!counts) return WEIR_NOMEM("for the limit of the bench");
    for (uint32_t shift = 0; shift < 44;
         shift += 11) { /* 40 bits of a million vertices, twice; an even number of passes */
        size_t sum = 0;
        memset(counts, 0, DIGITS * sizeof *counts);
        for (uint64_t i = 0; i < count; i++)
            counts[pairs[i] >> shift & (DIGITS - 1)]++;
        for (size_t digit = 0; digit < DIGITS; digit++) {
            size_t here = counts[digit];
            counts[digit] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < count; i++)
            other[counts[pairs[i] >> shift & (DIGITS - 1)]++] = pairs[i];
        uint64_t *sorted = other;
        other = pairs;
        pairs = sorted;
    }
    weir_free(counts);
    return WEIR_OK;
}

static weir_err import_write_bytes(const import_context *c, const void *bytes, size_t length) {
    char path[PATH_MAX];
    weir_file *file = NULL;
    weir_err err = import_path(c, "plain", path);
    if (!err) err = weir_file_open(path, WEIR_FILE_CREATE, &file);
    for (uint64_t done = 0; !err && done < c->bytes; done += PIECE)
        err = weir_file_append(file, (const uint8_t *)bytes + done % (length - PIECE), PIECE);
    if (!err) err = weir_file_sync(file);
    weir_err_keep(&err, weir_file_close(file));
    weir_err_keep(&err, weir_file_remove(path));
    return err;
}

static weir_err run_limit(void *context, uint64_t round, weir_bench_sample *samplep) {
    const import_context *c = context;
    size_t room = (size_t)c->edges + PIECE;
    uint64_t *pairs = weir_calloc(room, sizeof *pairs), *other = weir_calloc(room, sizeof *other);
    weir_err err = pairs && other ? WEIR_OK : WEIR_NOMEM("for the limit of the bench");
    weir_rng rng = weir_rng_stream(3, round, 0);
    for (int direction = 0; !err && direction < 2; direction++) {
        for (uint64_t i = 0; i < c->edges; i++)
            pairs[i] = weir_rng_below(&rng, c->vertices) << 20 | weir_rng_below(&rng, c->vertices);
        int64_t begin_ns = import_cpu_ns();
        err = import_sort_pairs(pairs, other, c->edges);
        samplep->elapsed_ns += import_cpu_ns() - begin_ns;
    }
    int64_t begin_ns = import_cpu_ns();
    if (!err) err = import_write_bytes(c, pairs, room * sizeof *pairs);
    samplep->elapsed_ns += import_cpu_ns() - begin_ns;
    samplep->units = (double)c->edges;
    weir_free(pairs);
    weir_free(other);
    return err;
}

static weir_err import_one(import_context *c, const char *npz, const char *rows, weir_bench_sample *samplep) {
    char from[PATH_MAX], out[PATH_MAX];
    weir_snapshot_stats stats;
    weir_snapshot_import_opts opts = {.out = out};
    weir_err err = import_path(c, npz ? npz : rows, from);
    if (!err) err = import_path(c, "out", out);
    *(npz ? &opts.npz : &opts.edges) = from;
    int64_t begin_ns = import_cpu_ns();
    if (!err) err = weir_snapshot_import(&opts, &stats);
    samplep->elapsed_ns = import_cpu_ns() - begin_ns;
    if (err) return err;
    samplep->units = (double)stats.edges;
    if (npz) c->bytes = stats.bytes;
    return weir_folder_remove(out);
}

static weir_err run_skewed(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return import_one(context, "skewed.npz", NULL, samplep);
}

static weir_err run_even(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return import_one(context, "even.npz", NULL, samplep);
}

static weir_err run_rows(void *context, uint64_t round, weir_bench_sample *samplep) {
    (void)round;
    return import_one(context, NULL, "edges.csv", samplep);
}

static weir_err print_bytes(const weir_cli *cli, const import_context *c) {
    const double features = (double)c->vertices * WIDTH * sizeof(float);
    const double each = ((double)c->bytes - features) / (double)c->edges;
    weir_buf out = {0};
    if (weir_cli_given(cli, "json")) {
        weir_buf_printf(&out, "{\"bench\":\"import\",\"what\":\"bytes of all but the matrix\",\"unit\":\"an edge\"");
        weir_buf_printf(&out, ",\"most\":%.2f}\n", each);
    } else {
        weir_buf_printf(&out, "%-10s %.1f MB; without the matrix %.2f bytes an edge, both directions together\n",
                        "import", (double)c->bytes * 1e-6, each);
    }
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err run(weir_cli *cli) {
    static const char limit[] = "limit: pairs sorted, bytes written";
    uint64_t edges = weir_bench_quick(cli) ? 50000 : 2500000;
    weir_bench_sample first = {0};
    weir_err err = weir_cli_u64(cli, "edges", DEGREE, (uint64_t)DEGREE << 20, &edges);
    import_context c = {.vertices = edges / DEGREE, .edges = edges};
    if (!err) err = weir_bench_folder(&c.folder);
    if (!err) err = import_make_archive(&c, true, "skewed.npz");
    if (!err) err = import_make_archive(&c, false, "even.npz");
    if (!err) err = import_make_rows(&c);
    if (!err) err = import_one(&c, "skewed.npz", NULL, &first); /* how many bytes the limit writes */
    const weir_bench_line lines[] = {
        {limit, "M edges/CPU-s", 1e-6, NULL, run_limit, &c},
        {"archive, R-MAT", "M edges/CPU-s", 1e-6, limit, run_skewed, &c},
        {"archive, uniform", "M edges/CPU-s", 1e-6, limit, run_even, &c},
        {"plain rows of text, R-MAT, a tenth", "M edges/CPU-s", 1e-6, limit, run_rows, &c},
    };
    if (!err) err = print_bytes(cli, &c);
    if (!err) return weir_bench_run(cli, "import", lines, sizeof lines / sizeof lines[0]);
    weir_bench_folder_remove(&err);
    return err;
}

extern const weir_command weir_bench_import;

static const weir_option options[] = {
    {"edges", 'e', "N", "edges; a vertex for each 25 of them (default 2500000; quick: 50000)", NULL},
    WEIR_BENCH_OPTIONS,
    {0}};

const weir_command weir_bench_import = {
    .name = "import",
    .summary = "archives and files of rows into snapshots, against sorting the pairs and writing the bytes",
    .example = "weir bench import --edges 25000000 --rounds 1",
    .options = options,
    .run = run,
};

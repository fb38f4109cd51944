/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_test.c - a part that is checked to its last byte takes the memory of a piece of it, and when it is open none:
 * what the kernel says of this process is the oracle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define VERTICES 20000u
#define EDGES    300000u
#define PARTS    2u

/* Each direction of each is a piece that is checked by itself. */
#define RELATIONS 4u

/* A line of a file of /proc/self, in bytes. */
static uint64_t status_line(const char *name) {
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (!kib && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) kib = strtoull(line + strlen(name), NULL, 10);
    fclose(file);
    assert_true(kib > 0);
    return kib << 10;
}

/* From now on VmHWM counts anew. */
static void forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    assert_non_null(file);
    assert_true(fputs("5", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* How much of the files below a folder is in this process' memory. */
static uint64_t resident_of(const char *folder) {
    char line[4096];
    uint64_t kib = 0;
    bool ours = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *space = strchr(line, ' ');
        if (space && space[-1] != ':') ours = strstr(line, folder) != NULL; /* the first line of a mapping */
        if (ours && !strncmp(line, "Rss:", 4)) kib += strtoull(line + 4, NULL, 10);
    }
    fclose(file);
    return kib << 10;
}

/* Vertices with edges to anywhere. */
static void cut_some_graph(void) {
    char nodes[4096], edges[4096], snapshot[4096];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_buf n = {0}, e = {0};
    weir_snapshot_stats stats;
    weir_parts_report report;
    weir_snapshot *whole;
    weir_buf_text(&n, "id,label,type,x\n");
    weir_buf_text(&e, "src,dst,type,timestamp\n");
    for (unsigned i = 0; i < VERTICES; i++)
        weir_buf_printf(&n, "%u,%u,person,%u\n", i, i % 2, i % 7);
    for (unsigned i = 0; i < EDGES; i++)
        weir_buf_printf(&e, "%u,%u,r%u,%u\n", (unsigned)weir_rng_below(&rng, VERTICES),
                        (unsigned)weir_rng_below(&rng, VERTICES), i % RELATIONS, 1700000000 + i);
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    assert_ok(weir_file_replace(nodes, n.bytes, n.length));
    assert_ok(weir_file_replace(edges, e.bytes, e.length));
    const weir_snapshot_import_opts import = {.out = snapshot, .nodes = nodes, .edges = edges};
    assert_ok(weir_snapshot_import(&import, &stats));
    assert_ok(weir_snapshot_open(snapshot, &(weir_snapshot_opts){.verify = false}, &whole));
    const weir_parts_opts opts = {.out = weir_test_path("parts"),
                                  .parts = PARTS,
                                  .depth = 1,
                                  .method = WEIR_PARTS_RANDOM,
                                  .seed = 1,
                                  .clock = weir_clock_system()};
    assert_ok(weir_parts_write(whole, &opts, &report));
    weir_snapshot_close(whole);
    weir_buf_free(&n);
    weir_buf_free(&e);
}

static void a_checked_part_leaves_no_page_behind(void **state) {
    (void)state;
    char folder[4096];
    weir_part *part;
    if (SANITIZED) weir_test_skip("a sanitizer keeps memory of its own");
    cut_some_graph();
    snprintf(folder, sizeof folder, "%s", weir_test_path("parts/part-0"));
    forget_peak();
    uint64_t before = status_line("VmRSS:");
    assert_ok(weir_part_open(folder, &(weir_part_opts){.verify = true}, &part));
    uint64_t peak = status_line("VmHWM:") - before, bytes = weir_snapshot_bytes(weir_part_snapshot(part));
    assert_true(bytes > 8u << 20);
    if (peak > bytes / 2)
        fail_msg("%llu bytes in memory while %llu are checked", (unsigned long long)peak, (unsigned long long)bytes);
    assert_int_equal(resident_of(folder), 0);

    /* What is read comes back, and goes again. */
    const weir_snapshot_edges *e = weir_snapshot_edges_of(weir_part_snapshot(part), 0, WEIR_OUT);
    const uint64_t last = (uint64_t)e->indptr[e->vertices];
    assert_true(last == e->edges && resident_of(folder) > 0);
    weir_snapshot_give_back(weir_part_snapshot(part));
    assert_int_equal(resident_of(folder), 0);
    assert_true((uint64_t)e->indptr[e->vertices] == last);
    weir_part_close(part);
}

WEIR_TESTS(WEIR_CASE(a_checked_part_leaves_no_page_behind))

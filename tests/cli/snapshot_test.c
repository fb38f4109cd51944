/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_test.c - `weir snapshot` as a user has it: NumPy reads what it wrote, and damage is named. */
#include "cli_support.h"

#include <weir/store/base/rng.h>

static const char schema[] =
    "version: 1\n"
    "name: shop\n"
    "vertices:\n"
    "  user: {key: integer, features: {age: {kind: number}, city: {kind: category, buckets: 9}}}\n"
    "  item: {features: {price: {kind: number}}}\n"
    "relations:\n"
    "  follows: {from: user, to: user}\n"
    "  buys: {from: user, to: item, features: {n: {kind: number}, by: {kind: category, buckets: 9}}}\n"
    "labels:\n"
    "  mood: {vertex: user, values: [good, bad]}\n"
    "sources:\n"
    "  shop:\n"
    "    id: id\n"
    "    time: {field: t, format: s}\n"
    "    mutations:\n"
    "      - {put_vertex: user, key: u, features: {age: {field: age, optional: true},"
    " city: {field: city, optional: true}}}\n"
    "      - {put_vertex: item, key: i, when: {has: i}, features: {price: {field: price,"
    " optional: true}}}\n"
    "      - {put_edge: follows, from: u, to: v, when: {has: v}}\n"
    "      - {put_edge: buys, from: u, to: i, when: {has: i}, features: {n: {field: n,"
    " optional: true}, by: {field: by, optional: true}}}\n"
    "      - {put_label: mood, key: u, when: {has: mood}, value: mood}\n";

static void put_file(const char *name, const char *text) {
    FILE *file = fopen(weir_test_path(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_events(uint64_t count) {
    static const char *const cities[] = {"Köln", "", "Rome", "Aarhus"};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    FILE *file = fopen(weir_test_path("shop.jsonl"), "w");
    assert_non_null(file);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t dice = weir_rng_below(&rng, 10);
        fprintf(file, "{\"id\":\"%llu\",\"t\":%llu,\"u\":%llu", (unsigned long long)i,
                1000 + (unsigned long long)weir_rng_below(&rng, 3000), (unsigned long long)weir_rng_below(&rng, 60));
        if (dice < 3) fprintf(file, ",\"age\":%.2f", weir_rng_double(&rng) * 90);
        if (dice == 1) fprintf(file, ",\"city\":\"%s\"", cities[weir_rng_below(&rng, 4)]);
        if (dice == 4) fprintf(file, ",\"mood\":\"%s\"", weir_rng_below(&rng, 2) ? "good" : "bad");
        if (dice >= 5)
            fprintf(file, ",\"i\":\"i%llu\",\"n\":%llu", (unsigned long long)weir_rng_below(&rng, 40),
                    (unsigned long long)weir_rng_below(&rng, 5));
        if (dice == 6) fprintf(file, ",\"price\":%.3f,\"by\":\"card\"", weir_rng_double(&rng));
        if (dice == 7) fprintf(file, ",\"v\":%llu", (unsigned long long)weir_rng_below(&rng, 60));
        fputs("}\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static void make_snapshot(void) {
    put_file("shop.yaml", schema);
    put_events(3000);
    cli_must("weir load --schema shop.yaml --data d shop.jsonl", "^3000 records");
    cli_must("weir snapshot build out --path d/store --as-of 1970-01-01T00:50:00Z",
             "^out: [0-9]+ vertices, [0-9]+ edges");
    cli_must("weir snapshot check out", "every file is as its MANIFEST says");
}

static void numpy_reads_every_array(void **state) {
    char line[4096];
    weir_test_output output;
    (void)state;
    cli_bash(weir_test_folder(),
             "for p in python3 /usr/bin/python3; do"
             " if $p -c 'import numpy' 2> none; then echo $p; exit; fi; done",
             &output);
    size_t length = strcspn(output.out, "\n");
    if (length == 0) weir_test_skip("NumPy is not installed; apt-get install python3-numpy");
    make_snapshot();
    snprintf(line, sizeof line, "%.*s %s/tests/cli/snapshot_numpy.py out d/store 1970-01-01T00:50:00Z", (int)length,
             output.out, getenv("WEIR_SOURCE_DIR"));
    cli_must(line, "^[0-9]+ edges are the same$");
    weir_test_output_free(&output);
}

static void damage_is_named(void **state) {
    (void)state;
    make_snapshot();
    cli_refused("weir snapshot build out --path d/store", "out is there already; name a new folder");
    cli_refused("weir snapshot show nowhere", "nowhere is not a snapshot: it has no manifest.json");
    cli_refused("weir snapshot build no/where --path d/store", "cannot write into no");
    cli_must("cp -r out cut; truncate -s -8 cut/relations/buys/out/times.npy; weir snapshot show out",
             "^schema    shop$");
    cli_refused("weir snapshot show cut",
                "relations/buys/out/times.npy: the array's shape and its .* bytes do not fit");
    cli_must(
        "cp -r out flip; printf x | dd of=flip/relations/buys/out/neighbors.npy bs=1 seek=135 conv=notrunc; echo ok",
        "ok");
    cli_refused("weir snapshot check flip", "flip/relations/buys/out/neighbors.npy is not as its MANIFEST says");
    /* a number that is another one looks as sound as before: it was exported without a word */
    cli_must(
        "cp -r out other; printf x | dd of=other/relations/buys/out/feature.n.npy bs=1 seek=135 conv=notrunc; echo ok",
        "ok");
    cli_refused("weir snapshot export other other.csv", "feature.n.npy is not as its MANIFEST says");
    cli_must("test ! -e out.partial && test ! -e out.spill && test ! -e no && echo clean", "^clean$");
}

WEIR_TESTS(WEIR_CASE(numpy_reads_every_array), WEIR_CASE(damage_is_named))

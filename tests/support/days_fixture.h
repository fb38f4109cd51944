/* SPDX-License-Identifier: Apache-2.0 */
/* days_fixture.h - ten days of payments, of which some turn out to be bad: a snapshot that is soon learnt from. */
#ifndef WEIR_DAYS_FIXTURE_H
#define WEIR_DAYS_FIXTURE_H

#include <weir/store/base/rng.h>

#include "../cli/cli_support.h"

#define DAYS_COUNT   10
#define DAYS_EACH    120 /* payments of a day */
#define DAYS_FIRST   1728000000ll
#define DAYS_SECONDS 86400ll

static const char days_schema[] = "version: 1\n"
                                  "name: t\n"
                                  "vertices: {p: {features: {x: {kind: number}}}, a: {}}\n"
                                  "relations: {by: {from: p, to: a}}\n"
                                  "labels: {bad: {vertex: p, values: [no, yes], absent: no, lag: 2d}}\n"
                                  "tasks: {t: {kind: classify, label: bad, positive: yes}}\n"
                                  "sources:\n"
                                  "  s:\n"
                                  "    id: i\n"
                                  "    time: {field: t, format: s}\n"
                                  "    mutations:\n"
                                  "      - {put_vertex: p, key: n, features: [x], when: {has: x}}\n"
                                  "      - {put_edge: by, from: n, to: a, when: {has: x}}\n"
                                  "      - {put_label: bad, key: n, when: {has: y}, value: y}\n";

/* A high x is likely bad, which is told an hour later; one more payment says that two more days have passed. */
static inline void days_snapshot(void) {
    FILE *schema = fopen(weir_test_path("s.yaml"), "w"), *events = fopen(weir_test_path("s.jsonl"), "w");
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    assert_non_null(schema);
    assert_non_null(events);
    fputs(days_schema, schema);
    for (int n = 0; n < DAYS_COUNT * DAYS_EACH; n++) {
        const long long t = DAYS_FIRST + n * DAYS_SECONDS / DAYS_EACH;
        const double x = weir_rng_normal(&rng);
        fprintf(events, "{\"i\":\"p%d\",\"n\":\"n%d\",\"t\":%lld,\"x\":%.6f,\"a\":\"a%llu\"}\n", n, n, t, x,
                (unsigned long long)weir_rng_below(&rng, 40));
        if (x + 0.5 * weir_rng_normal(&rng) > 0.8)
            fprintf(events, "{\"i\":\"l%d\",\"n\":\"n%d\",\"t\":%lld,\"y\":\"yes\"}\n", n, n, t + 3600);
    }
    fprintf(events, "{\"i\":\"end\",\"n\":\"end\",\"t\":%lld,\"x\":0,\"a\":\"a0\"}\n",
            DAYS_FIRST + (DAYS_COUNT + 2) * DAYS_SECONDS);
    assert_int_equal(fclose(schema) | fclose(events), 0);
    cli_must("weir load --schema s.yaml --data d s.jsonl && weir snapshot build snap --path d/store",
             "^snap: [0-9]+ vertices");
}

#endif /* WEIR_DAYS_FIXTURE_H */

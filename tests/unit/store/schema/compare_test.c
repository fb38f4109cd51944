/* SPDX-License-Identifier: Apache-2.0 */
/* compare_test.c - which changes stored data survives (SCHEMA-H4), each said in words. */
#include <stdio.h>
#include <string.h>

#include <weir/store/schema/schema.h>

#include "weir_test.h"

#define HEAD "version: 1\nname: t\n"
#define V                                                                                                          \
    "vertices: {a: {features: {n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: category}}}, b: " \
    "{}}\n"
#define R    "relations: {r: {from: a, to: b, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, to: a}}\n"
#define A    "aggregates: {g: {vertex: a, relation: r, function: sum, of: s, window: 1d, resolution: 1h}}\n"
#define L    "labels: {l: {vertex: a, values: [no, yes], lag: 1d}}\n"
#define T    "tasks: {k: {kind: classify, label: l}, e: {kind: recommend, relation: r, horizon: 1d}}\n"
#define S    "sources: {s: {id: id, time: t, mutations: [{put_vertex: a, key: k}]}}\n"
#define BASE HEAD V R A L T S

static weir_schema *parse(const char *text) {
    weir_schema *schema = NULL;
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &schema));
    return schema;
}

typedef struct gathered {
    unsigned fits, breaks;
    char text[4096];
} gathered;

static weir_err gather(void *context, bool breaks, const char *sentence) {
    gathered *g = context;
    breaks ? g->breaks++ : g->fits++;
    size_t used = strlen(g->text);
    snprintf(g->text + used, sizeof g->text - used, "%s\n", sentence);
    return WEIR_OK;
}

static void check_from(const char *stored_text, const char *offered_text, bool breaks, const char *says) {
    weir_schema *stored = parse(stored_text), *offered = parse(offered_text);
    gathered g = {.fits = 0};
    assert_ok(weir_schema_compare(stored, offered, gather, &g));
    if (!strstr(g.text, says)) fail_msg("wanted '%s', got:\n%s", says, g.text);
    assert_int_not_equal(weir_schema_hash(stored), weir_schema_hash(offered));
    weir_err err = weir_schema_compatible(stored, offered);
    if (breaks) {
        assert_true(g.breaks > 0);
        assert_err(err, WEIR_EVERSION,
                   "stored data does not survive that; undo it and add what is new at the end, or fill "
                   "a new data folder from the log");
    } else {
        if (g.breaks > 0) fail_msg("broke though it should fit:\n%s", g.text);
        assert_true(g.fits > 0);
        assert_ok(err);
    }
    weir_schema_free(stored);
    weir_schema_free(offered);
}

static void check(const char *offered_text, bool breaks, const char *says) {
    check_from(BASE, offered_text, breaks, says);
}

static void h4_itself_has_no_difference(void **state) {
    (void)state;
    weir_schema *schema = parse(BASE);
    gathered g = {.fits = 0};
    assert_ok(weir_schema_compare(schema, schema, gather, &g));
    assert_int_equal(g.fits + g.breaks, 0);
    assert_ok(weir_schema_compatible(schema, schema));
    weir_schema_free(schema);
}

static void h4_names_and_numbers(void **state) {
    (void)state;
    check("version: 1\nname: u\n" V R A L T S, true, "the schema was 't' and is 'u'");
    check(HEAD
          "vertices: {a: {features: {n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: category}}}}\n"
          "relations: {r: {from: a, to: a, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, to: a}}\n",
          true, "vertex type 'b' is gone");
    check(HEAD "vertices: {z: {}, a: {features: {n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: "
               "category}}}, b: {}}\n" R A L T S,
          true, "vertex type 'a' was number 1 and is number 2");
    check(HEAD V "relations: {q: {from: a, to: a}, r: {from: a, to: b, features: {s: {kind: number}, m: {kind: "
                 "number}}}}\n" A L T S,
          true, "relation 'r' was number 1 and is number 2");
    check(HEAD V R L T S, true, "aggregate 'g' is gone");
    check(HEAD V R A "tasks: {e: {kind: recommend, relation: r, horizon: 1d}}\n" S, true, "label 'l' is gone");
    check(HEAD V R A L T, true, "source 's' is gone");
}

static void h4_meanings(void **state) {
    (void)state;
    check(HEAD
          "vertices: {a: {key: integer, features: {n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: "
          "category}}}, b: {}}\n" R A L T S,
          true, "'key' of vertex type 'a' was 'text' and is 'integer'");
    check(HEAD V
          "relations: {r: {from: b, to: b, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, to: a}}\n",
          true, "'from' of relation 'r' was 'a' and is 'b'");
    check(HEAD V
          "relations: {r: {from: a, to: a, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, to: a}}\n",
          true, "'to' of relation 'r' was 'b' and is 'a'");
    check(HEAD V R A "labels: {l: {vertex: b, values: [no, yes], lag: 1d}}\n" T S, true,
          "'vertex' of label 'l' was 'a' and is 'b'");
    check(HEAD V R A "labels: {l: {relation: r, values: [no, yes], lag: 1d}}\n" T S, true,
          "label 'l' was on a vertex type and is on a relation");
    check(HEAD V R A "labels: {l: {vertex: a, values: [yes, no], lag: 1d}}\n" T S, true,
          "value 'no' of label 'l' was number 1 and is number 2");
    check(HEAD V R A L T "sources: {s: {topic: other, id: id, time: t, mutations: [{put_vertex: a, key: k}]}}\n", true,
          "'topic' of source 's' was 's' and is 'other'");
}

#define A_WITH(text) "aggregates: {g: {" text "}}\n"

static void h4_aggregates(void **state) {
    (void)state;
    check(HEAD V R A_WITH("vertex: b, relation: r, function: sum, of: s, window: 1d, resolution: 1h") L T S, true,
          "'vertex' of aggregate 'g' was 'a' and is 'b'");
    check(HEAD V R A_WITH("vertex: a, relation: q, direction: out, function: count, window: 1d, resolution: 1h") L T S,
          true, "'relation' of aggregate 'g' was 'r' and is 'q'");
    check(HEAD V R A_WITH("vertex: a, between: [q, r], relation: r, function: sum, of: s, window: 1d, resolution: 1h")
              L T S,
          true, "'between' of aggregate 'g' was 'nothing' and is 'q'");
    check(HEAD V R A_WITH(
              "vertex: a, end: q, through: [r], relation: r, function: sum, of: s, window: 1d, resolution: 1h") L T S,
          true, "'through', 'crowd', 'ordered' or 'share' of aggregate 'g' leads elsewhere");
    static const char *const shares[] = {"{of: s, least: 0.5, most: 1}", "{of: m, least: 0.5, most: 1}",
                                         "{of: s, least: 0.25, most: 1}", "{of: s, least: 0.5, most: 2}"};
    for (unsigned i = 1; i < 4; i++) {
        char stored[1024], offered[1024];
        static const char *const way =
            HEAD V R "aggregates: {g: {vertex: a, end: r, through: [r], ordered: true, share: %s, relation: r, "
                     "function: depth, window: 1d}}\n" L T S;
        snprintf(stored, sizeof stored, way, shares[0]);
        snprintf(offered, sizeof offered, way, shares[i]);
        check_from(stored, offered, true, "'through', 'crowd', 'ordered' or 'share' of aggregate 'g' leads elsewhere");
    }
    check(HEAD V R A_WITH("vertex: a, relation: r, function: mean, of: s, window: 1d, resolution: 1h") L T S, true,
          "'function' of aggregate 'g' was 'sum' and is 'mean'");
    check(HEAD V R A_WITH("vertex: a, relation: r, function: sum, of: m, window: 1d, resolution: 1h") L T S, true,
          "'of' of aggregate 'g' was 's' and is 'm'");
    check(HEAD V R A_WITH("vertex: a, relation: r, function: count, window: 1d, resolution: 1h") L T S, true,
          "'of' of aggregate 'g' was 's' and is 'nothing'");
    check_from(HEAD V R A_WITH("vertex: a, end: r, ratio: s, relation: r, function: newest, of: s, window: 1d") L T S,
               HEAD V R A_WITH("vertex: a, end: r, ratio: m, relation: r, function: newest, of: s, window: 1d") L T S,
               true, "'ratio' of aggregate 'g' was 's' and is 'm'");
    check(HEAD V R A_WITH("vertex: a, relation: r, function: sum, of: s, window: 2d, resolution: 1h") L T S, true,
          "'window' of aggregate 'g' was '1d' and is '2d'");
    check(HEAD V R A_WITH("vertex: a, relation: r, function: sum, of: s, window: 1d") L T S, true,
          "'resolution' of aggregate 'g' was '1h' and is 'exact'");
    check(HEAD V R A_WITH("vertex: a, relation: r, function: sum, of: s, window: 1d, resolution: 1h, normalise: none")
              L T S,
          false, "aggregate 'g' has other settings, on which stored data does not depend");
}

#define A_LABELLED(text) A_WITH("vertex: b, relation: r, function: count, window: 1d, " text)
#define L_TWO            "labels: {l: {vertex: a, values: [no, yes], lag: 1d}, k: {vertex: a, values: [no, yes]}}\n"

static void h4_labelled_aggregates(void **state) {
    (void)state;
    check_from(HEAD V R A_LABELLED("label: l, is: yes") L_TWO T S, HEAD V R A_LABELLED("") L_TWO T S, true,
               "'label' of aggregate 'g' was 'l' and is 'nothing'");
    check_from(HEAD V R A_LABELLED("") L_TWO T S, HEAD V R A_LABELLED("label: l, is: yes") L_TWO T S, true,
               "'label' of aggregate 'g' was 'nothing' and is 'l'");
    check_from(HEAD V R A_LABELLED("label: l, is: yes") L_TWO T S, HEAD V R A_LABELLED("label: k, is: yes") L_TWO T S,
               true, "'label' of aggregate 'g' was 'l' and is 'k'");
    check_from(HEAD V R A_LABELLED("label: l, is: yes") L_TWO T S, HEAD V R A_LABELLED("label: l, is: no") L_TWO T S,
               true, "'is' of aggregate 'g' lists other values");
    check_from(HEAD V R A_LABELLED("label: l, is: yes") L_TWO T S,
               HEAD V R A_LABELLED("label: l, is: [yes, no]") L_TWO T S, true,
               "'is' of aggregate 'g' lists other values");
    check_from(HEAD V R A_LABELLED("label: l, is: yes") L_TWO T S,
               HEAD V R A_LABELLED("label: l, is: yes, normalise: none") L_TWO T S, false,
               "aggregate 'g' has other settings, on which stored data does not depend");
    check_from(HEAD V R A L T S,
               HEAD V R "aggregates: {g: {vertex: a, relation: r, function: sum, of: s, window: 1d, resolution: 1h}, "
                        "h: {vertex: b, relation: r, function: count, label: l, is: yes, window: 1d}}\n" L T S,
               false, "aggregate 'h' is new");
}

#define V_WITH(text) "vertices: {a: {features: {" text "}}, b: {}}\n"

static void h4_features(void **state) {
    (void)state;
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, values: [x, y]}") R A L T S, true,
          "feature 'h' of vertex type 'a' is gone");
    check(HEAD V_WITH("c: {kind: category, values: [x, y]}, n: {kind: number}, h: {kind: category}") R A L T S, true,
          "feature 'n' of vertex type 'a' was number 1 and is number 2");
    check(HEAD V_WITH("n: {kind: time}, c: {kind: category, values: [x, y]}, h: {kind: category}") R A L T S, true,
          "feature 'n' of vertex type 'a' was a number and is a time");
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, buckets: 2}, h: {kind: category}") R A L T S, true,
          "feature 'c' of vertex type 'a' was looked up and is hashed");
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: category, buckets: 9}")
              R A L T S,
          true, "feature 'h' of vertex type 'a' had 1024 buckets and has 9");
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, values: [x]}, h: {kind: category}") R A L T S, true,
          "value 'y' of feature 'c' of vertex type 'a' is gone");
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, values: [z, x, y]}, h: {kind: category}") R A L T S, true,
          "value 'x' of feature 'c' of vertex type 'a' was number 1 and is number 2");
    check(HEAD V "relations: {r: {from: a, to: b, features: {s: {kind: number}}}, q: {from: a, to: a}}\n" A L T S, true,
          "feature 'm' of relation 'r' is gone");
}

static void additions_fit(void **state) {
    (void)state;
    check(HEAD
          "vertices: {a: {features: {n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: category}}}, b: "
          "{}, z: {}}\n" R A L T S,
          false, "vertex type 'z' is new");
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, values: [x, y]}, h: {kind: category}, z: {kind: time}")
              R A L T S,
          false, "feature 'z' of vertex type 'a' is new");
    check(HEAD V_WITH("n: {kind: number}, c: {kind: category, values: [x, y, z]}, h: {kind: category}") R A L T S,
          false, "value 'z' of feature 'c' of vertex type 'a' is new");
    check(HEAD V
          "relations: {r: {from: a, to: b, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, to: a}, z: "
          "{from: b, to: a}}\n" A L T S,
          false, "relation 'z' is new");
    check(HEAD V R A "labels: {l: {vertex: a, values: [no, yes, perhaps], lag: 1d}}\n" T S, false,
          "value 'perhaps' of label 'l' is new");
    check(HEAD V R A L T "sources: {s: {id: id, time: t, mutations: [{put_vertex: a, key: k}]}, z: {id: id, time: t, "
                         "mutations: [{put_vertex: a, key: k}]}}\n",
          false, "source 'z' is new");
}

static void settings_of_no_consequence_fit(void **state) {
    (void)state;
    check(HEAD V_WITH("n: {kind: number, normalise: none}, c: {kind: category, values: [x, y]}, h: {kind: category}")
              R A L T S,
          false, "feature 'n' of vertex type 'a' was normalised by 'standard' and is by 'none'");
    check(HEAD V
          "relations: {r: {from: a, to: b, expire: 9d, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, "
          "to: a}}\n" A L T S,
          false, "relation 'r' has other settings, on which stored data does not depend");
    check(
        HEAD V
        "relations: {r: {from: a, to: b, history: 9d, features: {s: {kind: number}, m: {kind: number}}}, q: {from: a, "
        "to: a}}\n" A L T S,
        false, "relation 'r' has other settings, on which stored data does not depend");
    check(HEAD V R A "labels: {l: {vertex: a, values: [no, yes], lag: 2d, absent: no}}\n" T S, false,
          "label 'l' has other settings");
    check(HEAD V R A L "tasks: {k: {kind: classify, label: l, positive: yes}}\n" S, false, "task 'e' is gone");
    check(HEAD V R A L "tasks: {k: {kind: classify, label: l, positive: yes}}\n" S, false,
          "task 'k' has other settings");
    check(HEAD V R A L "tasks: {e: {kind: recommend, relation: r, horizon: 1d}, k: {kind: classify, label: l}}\n" S,
          false, "task 'k' was number 1 and is number 2");
    check(HEAD V R A L T "sources: {s: {id: other, time: t, mutations: [{delete_vertex: a, key: k}]}}\n", false,
          "source 's' has other settings");
}

static weir_err refuse(void *context, bool breaks, const char *sentence) {
    unsigned *calls = context;
    (void)breaks, (void)sentence;
    ++*calls;
    return WEIR_ERR(WEIR_ECANCELLED, "enough");
}

static void a_visit_that_fails_ends_the_comparison(void **state) {
    (void)state;
    weir_schema *stored = parse(BASE), *offered = parse("version: 1\nname: u\nvertices: {z: {}}\n");
    unsigned calls = 0;
    assert_err(weir_schema_compare(stored, offered, refuse, &calls), WEIR_ECANCELLED, "enough");
    assert_int_equal(calls, 1);
    weir_schema_free(stored);
    weir_schema_free(offered);
}

WEIR_TESTS(WEIR_CASE(h4_itself_has_no_difference), WEIR_CASE(h4_names_and_numbers), WEIR_CASE(h4_meanings),
           WEIR_CASE(h4_aggregates), WEIR_CASE(h4_labelled_aggregates), WEIR_CASE(h4_features),
           WEIR_CASE(additions_fit), WEIR_CASE(settings_of_no_consequence_fit),
           WEIR_CASE(a_visit_that_fails_ends_the_comparison))

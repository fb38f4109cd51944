/* SPDX-License-Identifier: Apache-2.0 */
/* rules_test.c - every rule of the language: what breaks it is refused, at its line, in words that say what to do. */
#include <stdio.h>
#include <string.h>

#include <weir/store/schema/schema.h>

#include "weir_test.h"

#define HEAD "version: 1\nname: t\n"
/* Three lines, so that what follows begins in line 4 and 5. */
#define VERTICES                                                                                    \
    HEAD "vertices: {acc: {features: {num: {kind: number}, cat: {kind: category, values: [x, y]}, " \
         "at: {kind: time}, hashed: {kind: category}}}, shop: {key: integer}, card: }\n"
#define GRAPH                                                                                       \
    VERTICES "relations: {paid: {from: acc, to: shop, expire: 7d, features: {sum: {kind: number}, " \
             "cat: {kind: category}, at: {kind: time}}}, sent: {from: acc, to: acc}}\n"
#define LABELS                                                                                                  \
    GRAPH "labels: {fraud: {vertex: acc, values: [no, yes], lag: 30d}, odd: {relation: paid, values: [a, b]}, " \
          "due: {vertex: shop, values: [a, b]}}\n"
/* Six lines. */
#define SOURCE LABELS "sources: {src: {id: id, time: time, mutations: [\n"
#define END    "]}}\n"

typedef struct rule {
    const char *text;
    const char *place;
    const char *says;
} rule;

static void check_rules(const rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) {
        weir_schema *schema = NULL;
        weir_err err = weir_schema_parse("t.yaml", rules[i].text, strlen(rules[i].text), &schema);
        char sentence[WEIR_ERR_SENTENCE_MAX], place[64];
        weir_err_sentence(err, sentence, sizeof sentence);
        snprintf(place, sizeof place, "t.yaml:%s:", rules[i].place);
        if (!err || !strstr(sentence, rules[i].says) || strncmp(sentence, place, strlen(place)) != 0)
            fail_msg("rule %zu: wanted '%s … %s', got '%s' for:\n%s", i, place, rules[i].says, sentence, rules[i].text);
        assert_int_equal(weir_err_code(err), WEIR_ECONFIG);
        assert_null(schema);
    }
}

#define CHECK_RULES(rules) check_rules((rules), sizeof(rules) / sizeof(rules)[0])

/* What the rules' common texts declare is valid: else a rule could pass for another's fault. */
static void common_texts_are_valid(void **state) {
    (void)state;
    static const char *const texts[] = {
        VERTICES, GRAPH, LABELS,
        SOURCE "{put_edge: paid, from: a, to: b, features: {sum: x, cat: {field: y, default: z}, at: w}}" END};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weir_schema *schema = NULL;
        assert_ok(weir_schema_parse("t.yaml", texts[i], strlen(texts[i]), &schema));
        weir_schema_free(schema);
    }
}

static void head(void **state) {
    (void)state;
    static const rule rules[] = {
        {"", "1:1", "the schema is empty; `weir schema show payments`"},
        {"# nothing\n", "1:1", "the schema is empty"},
        {"~\n", "1:1", "the schema is empty"},
        {"[a]\n", "1", "mapping"},
        {"name: t\nvertices: {a: {}}\n", "1", "the schema needs 'version'; add it"},
        {"version: 2\nname: t\n", "1:10", "this is version 2 of the schema language; this program reads version 1"},
        {"version: one\nname: t\n", "1:10", "one"},
        {"version: 1\nvertices: {a: {}}\n", "1", "the schema needs 'name'; add it"},
        {"version: 1\nname: [t]\n", "2:7", "the name of a schema is a word; write no list or mapping here"},
        {"version: 1\nname: 1t\n", "2:7",
         "'1t' cannot name a schema; begin with a letter and use letters, digits, _ and -"},
        {"version: 1\nname: a.b\n", "2:7", "'a.b' cannot name a schema"},
        {"version: 1\nname: ''\n", "2:7", "'' cannot name a schema"},
        {HEAD, "1", "the schema needs 'vertices'; add it"},
        {HEAD "vertices: {}\n", "3:11", "'vertices' is empty; a graph has at least one vertex type"},
        {HEAD "vertices:\n", "3", "'vertices' is empty"},
        {HEAD "vertices: [a]\n", "3:11", "'vertices' holds vertex types by their names; write it as a mapping"},
        {HEAD "vertices: {a: {}}\nrelation: {}\n", "4:1", "did you mean 'relations'?"},
        {HEAD "vertices: {a: {}, a: {}}\n", "3", "a"},
        {VERTICES "tasks: 5\n", "4:8", "'tasks' holds tasks by their names; write it as a mapping"},
    };
    CHECK_RULES(rules);
}

static void vertices_and_features(void **state) {
    (void)state;
    static const rule rules[] = {
        {HEAD "vertices:\n  9a: {}\n", "4:3", "'9a' cannot name a vertex type"},
        {HEAD "vertices:\n  a: {features: {}, expires: 3d}\n", "4", "did you mean 'expire'?"},
        {HEAD "vertices:\n  a: text\n", "4:6", "vertex type 'a'"},
        {HEAD "vertices:\n  a: {key: number}\n", "4:12",
         "vertex type 'a': 'key' is 'number'; it may be text or integer"},
        {HEAD "vertices:\n  a: {key: intger}\n", "4:12", "did you mean 'integer'?"},
        {HEAD "vertices:\n  a: {key: [text]}\n", "4:12", "'key' is ''; it may be text or integer"},
        {HEAD "vertices:\n  a: {expire: soon}\n", "4:15",
         "'expire' is 'soon'; write never, or a whole number and us, ms, s, m, h or d (more than 0), as in 36h"},
        {HEAD "vertices:\n  a: {expire: 0s}\n", "4:15", "'expire' is '0s'; write never, or"},
        {HEAD "vertices:\n  a: {expire: [1d]}\n", "4:15", "'expire' is ''"},
        {HEAD "vertices:\n  a: {expire: 36526d}\n", "4:15", "'expire' is '36526d'"},
        {HEAD "vertices:\n  a: {history: never}\n", "4:16",
         "'history' is 'never'; write all, or a whole number and us, ms, s, m, h or d (more than 0), as in 36h"},
        {HEAD "vertices:\n  a: {history: 0s}\n", "4:16", "'history' is '0s'; write all, or"},
        {HEAD "vertices:\n  a: {features: [n]}\n", "4:17",
         "'features' holds features by their names; write it as a mapping"},
        {HEAD "vertices:\n  a:\n    features:\n      x.y: {kind: number}\n", "6:7", "'x.y' cannot name a feature"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {normalise: none}\n", "6:7",
         "feature 'n' of vertex type 'a' needs 'kind'; add it"},
        {HEAD "vertices:\n  a:\n    features:\n      n:\n", "6:7",
         "feature 'n' of vertex type 'a' needs 'kind'; add it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: numbr}\n", "6:17",
         "'kind' is 'numbr'; it may be number, category or time; did you mean 'number'?"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: number, normalize: none}\n", "6",
         "did you mean 'normalise'?"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: number, normalise: log}\n", "6:36",
         "it may be none, standard, log-standard or min-max"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: number, buckets: 4}\n", "6:34",
         "'buckets' has no meaning for a number; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: number, values: [a]}\n", "6:33",
         "'values' has no meaning for a number; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: time, normalise: none}\n", "6:34",
         "'normalise' has no meaning for a time; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: time, buckets: 2}\n", "6:32",
         "'buckets' has no meaning for a time; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: time, values: [a]}\n", "6:31",
         "'values' has no meaning for a time; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, normalise: none}\n", "6:38",
         "'normalise' has no meaning for a category; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: [a], buckets: 2}\n", "6:49",
         "'buckets' has no meaning beside 'values'; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, buckets: 0}\n", "6:36", "0"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: {a: b}}\n", "6:35",
         "'values' is a list of texts; write it as [a, b]"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: []}\n", "6:35",
         "'values' lists 0; at least 1 are needed"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: [a, b, a]}\n", "6:42",
         "'values' lists 'a' twice; remove one"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: [a, [b]]}\n", "6:39",
         "'values' is one text; write no list or mapping here"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: [a, '']}\n", "6:39",
         "'values' is empty; write its value"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: [\"a\\tb\"]}\n", "6:36",
         "'values' holds a character that cannot be printed; remove it"},
        {HEAD "vertices:\n  a:\n    features:\n      n: {kind: category, values: [\"a\\u2028b\"]}\n", "6:36",
         "'values' holds a character that cannot be printed; remove it"},
    };
    CHECK_RULES(rules);
}

static void relations(void **state) {
    (void)state;
    static const rule rules[] = {
        {VERTICES "relations:\n  r: {to: acc}\n", "5:3", "relation 'r' needs 'from'; add it"},
        {VERTICES "relations:\n  r:\n", "5:3", "relation 'r' needs 'from'; add it"},
        {VERTICES "relations:\n  r: {from: acc}\n", "5:3", "relation 'r' needs 'to'; add it"},
        {VERTICES "relations:\n  r: {from: acct, to: shop}\n", "5:13",
         "relation 'r': 'from' is 'acct', but no such vertex type is declared under 'vertices'; did you mean 'acc'?"},
        {VERTICES "relations:\n  r: {from: acc, to: zzzzzzz}\n", "5:22",
         "relation 'r': 'to' is 'zzzzzzz', but no such vertex type is declared under 'vertices'"},
        {VERTICES "relations:\n  r: {from: [acc], to: shop}\n", "5:13",
         "'from' names one vertex type; write no list or mapping here"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, expire: 1w}\n", "5:36", "'expire' is '1w'; write never, or"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, history: never}\n", "5:37",
         "'history' is 'never'; write all, or a whole number and us, ms, s, m, h or d (more than 0), as in 36h"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, history: 0d}\n", "5:37", "'history' is '0d'; write all, or"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, history: -1d}\n", "5:37", "'history' is '-1d'"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, history: 36526d}\n", "5:37", "'history' is '36526d'"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, history: [1d]}\n", "5:37", "'history' is ''"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, histroy: 1d}\n", "5", "did you mean 'history'?"},
        {VERTICES "relations:\n  r: {from: acc, to: shop, fetures: {}}\n", "5", "did you mean 'features'?"},
    };
    CHECK_RULES(rules);
}

#define AGGREGATE GRAPH "aggregates:\n  g: "
#define SHARE     "{vertex: acc, end: paid, through: [paid], ordered: true, share: "
#define KEPT      "relation: paid, function: depth, window: 1h}\n"

static void aggregates(void **state) {
    (void)state;
    static const rule rules[] = {
        {AGGREGATE "{vertx: acc}\n", "6", "did you mean 'vertex'?"},
        {AGGREGATE "{relation: paid}\n", "6:3", "aggregate 'g' needs 'vertex'; add it"},
        {AGGREGATE "{vertex: acc}\n", "6:3", "aggregate 'g' needs 'relation'; add it"},
        {AGGREGATE "{vertex: acc, relation: payd}\n", "6:30",
         "'relation' is 'payd', but no such relation is declared under 'relations'; did you mean 'paid'?"},
        {AGGREGATE "{vertex: card, relation: paid, function: count, window: 1h}\n", "6:31",
         "no edge of relation 'paid' touches a 'card'; name a relation that begins or ends there"},
        {AGGREGATE "{vertex: acc, relation: sent, function: count, window: 1h}\n", "6:3",
         "aggregate 'g' needs 'direction': relation 'sent' begins and ends at a 'acc'"},
        {AGGREGATE "{vertex: acc, relation: paid, direction: in, function: count, window: 1h}\n", "6:47",
         "relation 'paid' does not end at a 'acc'; leave 'direction' out"},
        {AGGREGATE "{vertex: shop, relation: paid, direction: out, function: count, window: 1h}\n", "6:48",
         "relation 'paid' does not begin at a 'shop'; leave 'direction' out"},
        {AGGREGATE "{vertex: acc, relation: paid, direction: up, function: count, window: 1h}\n", "6:47",
         "'direction' is 'up'; it may be out or in"},
        {AGGREGATE "{vertex: acc, relation: paid, window: 1h}\n", "6:3", "aggregate 'g' needs 'function'; add it"},
        {AGGREGATE "{vertex: acc, relation: paid, function: average, window: 1h}\n", "6:46",
         "it may be count, sum, mean, max, distinct, min, deviation, since_last, since_first, depth or newest"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, of: sum, window: 1h}\n", "6:57",
         "'of' has no meaning for a count; remove it"},
        {AGGREGATE "{vertex: acc, relation: paid, function: since_first, of: sum, window: 1h}\n", "6:63",
         "'of' has no meaning for a time since an edge; remove it"},
        {AGGREGATE "{vertex: acc, relation: paid, function: deviation, of: cat, window: 1h}\n", "6:61",
         "'cat' of relation 'paid' is a category; 'deviation' takes a number"},
        {AGGREGATE "{vertex: acc, relation: paid, function: sum, window: 1h}\n", "6:3",
         "aggregate 'g' needs 'of'; add it"},
        {AGGREGATE "{vertex: acc, relation: paid, function: sum, of: sun, window: 1h}\n", "6:55",
         "'of' has 'sun', but 'paid' declares no such feature; did you mean 'sum'?"},
        {AGGREGATE "{vertex: acc, relation: paid, function: mean, of: cat, window: 1h}\n", "6:56",
         "'cat' of relation 'paid' is a category; 'mean' takes a number"},
        {AGGREGATE "{vertex: acc, relation: paid, function: max, of: at, window: 1h}\n", "6:55",
         "'at' of relation 'paid' is a time; 'max' takes a number"},
        {AGGREGATE "{vertex: acc, relation: paid, function: distinct, of: sum, window: 1h}\n", "6:60",
         "'sum' of relation 'paid' is a number; 'distinct' takes a category"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count}\n", "6:3", "aggregate 'g' needs 'window'; add it"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, window: 0s}\n", "6:61",
         "'window' is '0s'; write a whole"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, window: 8d}\n", "6:61",
         "'window' is longer than edges of relation 'paid' live; shorten it, or raise their 'expire'"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, window: 1h, resolution: fine}\n", "6:77",
         "'resolution' is 'fine'; write exact, or a whole number"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, window: 1h, resolution: 7m}\n", "6:77",
         "'window' is not a multiple of 'resolution'; make it one"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, window: 1h, resolution: 1s}\n", "6:77",
         "'window' is over 1024 times 'resolution'; make 'resolution' coarser, or 'exact'"},
        {AGGREGATE "{vertex: acc, relation: paid, function: count, window: 1h, normalise: log}\n", "6:76",
         "'normalise' is 'log'"},
        {GRAPH "aggregates:\n  num: {vertex: acc, relation: paid, function: count, window: 1h}\n", "6:3",
         "aggregate 'num': vertex type 'acc' has a feature of this name; choose another"},
    };
    CHECK_RULES(rules);
}

static void aggregates_of_pairs(void **state) {
    (void)state;
    static const rule rules[] = {
        {AGGREGATE "{vertex: acc, between: paid, relation: paid, function: count, window: 1h}\n", "6:29",
         "'between' is a list of two relations that join a 'acc' to the two ends"},
        {AGGREGATE "{vertex: acc, between: [paid, sent, paid], relation: paid, function: count, window: 1h}\n", "6:29",
         "'between' is a list of two relations that join a 'acc' to the two ends"},
        {AGGREGATE "{vertex: acc, between: [paid, payd], relation: paid, function: count, window: 1h}\n", "6:36",
         "'between' names two relations, and there is no relation 'payd'"},
        {AGGREGATE "{vertex: card, between: [paid, sent], relation: paid, function: count, window: 1h}\n", "6:31",
         "no edge of relation 'paid' begins at a 'card'; name a relation that does"},
        {AGGREGATE "{vertex: shop, between: [paid, paid], relation: paid, function: count, window: 1h}\n", "6:31",
         "no edge of relation 'paid' begins at a 'shop'; name a relation that does"},
        {AGGREGATE "{vertex: acc, between: [paid, paid], relation: paid, function: count, window: 1h}\n", "6:53",
         "relation 'paid' does not join a 'shop' and a 'shop', to which 'between' leads; name one that does"},
        {AGGREGATE "{vertex: acc, between: [sent, paid], direction: out, relation: paid, function: count, "
                   "window: 1h}\n",
         "6:54", "'direction' has no meaning beside 'between', which says which end is the first; remove it"},
        {AGGREGATE "{vertex: acc, between: [sent, paid], relation: paid, function: distinct, window: 1h}\n", "6:3",
         "aggregate 'g' needs 'of'; add it"},
    };
    CHECK_RULES(rules);
}

static void aggregates_through_others(void **state) {
    (void)state;
    static const rule rules[] = {
        {AGGREGATE "{vertex: acc, end: payd, relation: paid, function: count, window: 1h}\n", "6:25",
         "'end' names a relation, and there is no relation 'payd'"},
        {AGGREGATE "{vertex: shop, end: paid, relation: paid, function: count, window: 1h}\n", "6:26",
         "no edge of relation 'paid' begins at a 'shop'; name a relation that does"},
        {AGGREGATE "{vertex: acc, end: paid, between: [paid, sent], relation: paid, function: count, window: 1h}\n",
         "6:25", "'end' has no meaning beside 'between', which names two; remove it"},
        {AGGREGATE "{vertex: acc, end: paid, relation: sent, function: count, window: 1h}\n", "6:41",
         "no edge of relation 'sent' touches a 'shop'"},
        {AGGREGATE "{vertex: acc, through: [paid], relation: paid, function: count, window: 1h}\n", "6:29",
         "'through' begins at an end of the vertex; name that by 'end', or two by 'between'"},
        {AGGREGATE "{vertex: acc, end: paid, through: paid, relation: paid, function: count, window: 1h}\n", "6:40",
         "'through' is a list of 1 to 8 relations"},
        {AGGREGATE
         "{vertex: acc, end: paid, through: [paid, paid, paid, paid, paid, paid, paid, paid, paid], relation: paid, "
         "function: count, window: 1h}\n",
         "6:40", "'through' is a list of 1 to 8 relations"},
        {AGGREGATE "{vertex: acc, end: paid, through: [payd], relation: paid, function: count, window: 1h}\n", "6:41",
         "'through' names relations, and there is no relation 'payd'"},
        {AGGREGATE "{vertex: acc, end: paid, through: [sent], relation: paid, function: count, window: 1h}\n", "6:41",
         "no edge of relation 'sent' touches a 'shop'"},
        {AGGREGATE "{vertex: acc, end: sent, through: [sent], relation: paid, function: count, window: 1h}\n", "6:41",
         "relation 'sent' begins and ends at a 'acc'; write {relation: sent, direction: out} here, or in"},
        {AGGREGATE "{vertex: acc, end: sent, through: [{relation: sent, direction: up}], relation: paid, "
                   "function: count, window: 1h}\n",
         "6:69", "'direction' is 'up'"},
        {AGGREGATE "{vertex: acc, end: sent, through: [{relation: sent, way: in}], relation: paid, "
                   "function: count, window: 1h}\n",
         "6:58", "'way'"},
        {AGGREGATE "{vertex: acc, end: paid, crowd: 3, relation: paid, function: count, window: 1h}\n", "6:38",
         "'crowd' has no meaning without 'through', along which it is asked; remove it"},
        {AGGREGATE "{vertex: acc, end: paid, ordered: true, relation: paid, function: count, window: 1h}\n", "6:40",
         "'ordered' has no meaning without 'through', whose steps it puts in order; remove it"},
        {AGGREGATE "{vertex: acc, end: paid, through: [paid], ordered: true, relation: paid, function: count, "
                   "window: 1h, resolution: 1m}\n",
         "6:120", "'resolution' has no meaning beside 'ordered', where each edge has a window of its own; remove it"},
        {AGGREGATE "{vertex: acc, end: paid, relation: paid, function: depth, window: 1h}\n", "6:57",
         "'depth' is of a walk; say by 'through' where it goes"},
        {AGGREGATE "{vertex: acc, end: paid, through: [paid], relation: paid, function: depth, of: num, window: 1h}\n",
         "6:85", "'of' has no meaning for a depth; remove it"},
        {AGGREGATE "{vertex: acc, end: paid, through: [paid, paid], ordered: true, relation: paid, function: count, "
                   "window: 3d}\n",
         "6:110", "'window' is longer than edges of relation 'paid' live, as every step goes as far back; shorten it"},
        {AGGREGATE
         "{vertex: acc, end: paid, through: [paid], crowd: 49, relation: paid, function: count, window: 1h}\n",
         "6:55", "'crowd'"},
        {AGGREGATE "{vertex: acc, between: [paid, sent], through: [paid], relation: paid, function: count, "
                   "window: 1h}\n",
         "6:70", "relation 'paid' does not join a 'acc' and a 'acc', to which 'through' leads; name one that does"},
        {AGGREGATE "{vertex: acc, end: paid, relation: paid, function: distinct, of: num, window: 1h}\n", "6:71",
         "'of' has 'num', but 'paid' declares no such feature"},
        {AGGREGATE "{vertex: acc, ratio: num, relation: paid, function: count, window: 1h}\n", "6:27",
         "'ratio' names a number of the edge to an end; name that by 'end', or two by 'between'"},
        {AGGREGATE "{vertex: acc, end: paid, ratio: num, relation: paid, function: count, window: 1h}\n", "6:38",
         "'ratio' divides by a number of edges; 'count' is of none, 'mean' is of one"},
        {AGGREGATE
         "{vertex: acc, end: sent, ratio: num, relation: sent, direction: in, function: newest, window: 1h}\n",
         "6:3", "aggregate 'g' needs 'of'; add it"},
        {AGGREGATE "{vertex: acc, end: paid, ratio: cat, relation: paid, function: max, of: sum, window: 1h}\n", "6:38",
         "'cat' of relation 'paid' is a category; 'ratio' takes a number"},
        {AGGREGATE "{vertex: acc, end: paid, ratio: suum, relation: paid, function: max, of: sum, window: 1h}\n",
         "6:38", "'ratio' has 'suum', but 'paid' declares no such feature"},
        {LABELS "aggregates:\n  g: {vertex: acc, end: paid, relation: paid, function: count, window: 1h, "
                "label: fraud, is: yes}\n",
         "7:25", "'end' has no meaning beside 'label', which chooses among the neighbours of a vertex; remove it"},
    };
    CHECK_RULES(rules);
}

static void aggregates_of_what_is_handed_on_in_part(void **state) {
    (void)state;
    static const rule rules[] = {
        {AGGREGATE "{vertex: acc, end: paid, share: {of: sum, least: 0, most: 1}, relation: paid, function: count, "
                   "window: 1h}\n",
         "6:38", "'share' has no meaning without 'through', along which edges are compared; remove it"},
        {AGGREGATE "{vertex: acc, end: paid, through: [paid], share: {of: sum, least: 0, most: 1}, relation: paid, "
                   "function: count, window: 1h}\n",
         "6:55", "'share' has no meaning without 'ordered: true', which says what comes before what; remove it"},
        {AGGREGATE SHARE "0.5, " KEPT, "6:70", "'share' is {of: NUMBER, least: X, most: Y}"},
        {AGGREGATE SHARE "{of: sum, least: 1}, " KEPT, "6:70", "aggregate 'g' needs 'most'; add it"},
        {AGGREGATE SHARE "{of: sum, least: 1, most: x}, " KEPT, "6:96", "'x'"},
        {AGGREGATE SHARE "{of: sum, least: 1, most: 0.5}, " KEPT, "6:87",
         "'least' of a 'share' is 0 or more, and 'most' not less than that"},
        {AGGREGATE SHARE "{of: sum, least: -1, most: 0.5}, " KEPT, "6:87",
         "'least' of a 'share' is 0 or more, and 'most' not less than that"},
        {AGGREGATE SHARE "{of: cat, least: 0, most: 1}, " KEPT, "6:75",
         "'cat' of relation 'paid' is a category; 'share' takes a number"},
        {AGGREGATE SHARE "{of: suum, least: 0, most: 1}, " KEPT, "6:75",
         "'of' has 'suum', but 'paid' declares no such feature"},
        {AGGREGATE SHARE "{of: sum, least: 0, mist: 1}, " KEPT, "6:90", "'mist'"},
        {AGGREGATE "{vertex: acc, end: sent, through: [{relation: sent, direction: in}], ordered: true, "
                   "share: {of: sum, least: 0, most: 1}, relation: paid, function: depth, window: 1h}\n",
         "6:97", "'share' compares edges of relation 'paid' with each other, along which 'through' does not go"},
    };
    CHECK_RULES(rules);
}

#define LABELLED LABELS "aggregates:\n  g: {vertex: shop, relation: paid, function: count, window: 1h, "

static void aggregates_with_labels(void **state) {
    (void)state;
    static const rule rules[] = {
        {LABELLED "label: frauds, is: yes}\n", "7:73",
         "'label' is 'frauds', but no such label is declared under 'labels'; did you mean 'fraud'?"},
        {LABELLED "label: odd, is: a}\n", "7:73",
         "label 'odd' is on a relation; name one that is on vertex type 'acc'"},
        {LABELLED "label: due, is: a}\n", "7:73",
         "label 'due' is on a 'shop', but relation 'paid' leads to a 'acc'; name a label of that"},
        {LABELLED "label: fraud}\n", "7:3", "aggregate 'g' needs 'is'; add it"},
        {LABELLED "is: yes}\n", "7:70", "'is' has no meaning without 'label', whose values it lists; remove it"},
        {LABELLED "label: fraud, is: yess}\n", "7:84",
         "'is' is 'yess', which is not one of the listed values; did you mean 'yes'?"},
        {LABELLED "label: fraud, is: [yes, maybe]}\n", "7:90", "'is' is 'maybe', which is not one of the listed"},
        {LABELLED "label: fraud, is: []}\n", "7:84", "'is' lists nothing; name at least one value of label 'fraud'"},
        {LABELLED "label: fraud, is: {yes: no}}\n", "7:84", "'is' is ''"},
        {LABELLED "label: [fraud], is: yes}\n", "7:73", "'label' names one label; write no list or mapping here"},
        {LABELS "aggregates:\n  g: {vertex: acc, between: [sent, paid], relation: paid, function: count, window: 1h, "
                "label: due, is: a}\n",
         "7:29", "'between' has no meaning beside 'label', which chooses among the neighbours of a vertex; remove it"},
        {LABELS "aggregates:\n  g: {vertex: acc, relation: sent, direction: in, function: count, window: 1h, "
                "label: due, is: a}\n",
         "7:87", "label 'due' is on a 'shop', but relation 'sent' leads to a 'acc'; name a label of that"},
    };
    CHECK_RULES(rules);
}

static void labels(void **state) {
    (void)state;
    static const rule rules[] = {
        {GRAPH "labels:\n  l: {values: [a, b]}\n", "6:3", "label 'l' needs 'vertex' or 'relation': what it is put on"},
        {GRAPH "labels:\n  l: {vertex: acc, relation: paid, values: [a, b]}\n", "6:15",
         "'vertex' has no meaning beside 'relation'; remove it"},
        {GRAPH "labels:\n  l: {vertex: paid, values: [a, b]}\n", "6:15", "no such vertex type is declared"},
        {GRAPH "labels:\n  l: {relation: acc, values: [a, b]}\n", "6:17", "no such relation is declared"},
        {GRAPH "labels:\n  l: {vertex: acc}\n", "6:3", "label 'l' needs 'values'; add it"},
        {GRAPH "labels:\n  l: {vertex: acc, values: [a]}\n", "6:28", "'values' lists 1; at least 2 are needed"},
        {GRAPH "labels:\n  l: {vertex: acc, values: a}\n", "6:28", "'values' lists 1; at least 2 are needed"},
        {GRAPH "labels:\n  l: {vertex: acc, values: [good, bad], absent: goood}\n", "6:49",
         "'absent' is 'goood', which is not one of the listed values; did you mean 'good'?"},
        {GRAPH "labels:\n  l: {vertex: acc, values: [a, b], lag: -1d}\n", "6:41",
         "'lag' is '-1d'; write a whole number"},
        {GRAPH "labels:\n  l: {vertex: acc, values: [a, b], lags: 1d}\n", "6", "did you mean 'lag'?"},
    };
    CHECK_RULES(rules);
}

static void tasks(void **state) {
    (void)state;
    static const rule rules[] = {
        {LABELS "tasks:\n  k: {label: fraud}\n", "7:3", "task 'k' needs 'kind'; add it"},
        {LABELS "tasks:\n  k: {kind: cluster}\n", "7:13", "'kind' is 'cluster'; it may be classify or recommend"},
        {LABELS "tasks:\n  k: {kind: classify}\n", "7:3", "task 'k' needs 'label'; add it"},
        {LABELS "tasks:\n  k: {kind: classify, label: frauds}\n", "7:30",
         "'label' is 'frauds', but no such label is declared under 'labels'; did you mean 'fraud'?"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, relation: paid}\n", "7", "relation"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, positive: yess}\n", "7:47",
         "'positive' is 'yess', which is not one of the listed values; did you mean 'yes'?"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, positive: [yes, maybe]}\n", "7:53",
         "'positive' is 'maybe'"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, positive: {yes: no}}\n", "7:47", "'positive' is ''"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, positive: [yes, no]}\n", "7:47",
         "'positive' lists every value of label 'fraud'; leave at least one negative"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, at: birth}\n", "7:41",
         "'at' is 'birth'; it may be put or label"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, at: label, maturity: 1d}\n", "7:58",
         "'maturity' has no meaning with 'at: label'; remove it"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, at: label, horizon: 1d}\n", "7:57",
         "'horizon' has no meaning with 'at: label'; remove it"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, maturity: soon}\n", "7:47", "'maturity' is 'soon'"},
        {LABELS "tasks:\n  k: {kind: classify, label: fraud, horizon: 31d}\n", "7:46",
         "'horizon' is longer than 'maturity', so a label could still come after training; raise 'maturity'"},
        {LABELS "tasks:\n  k: {kind: recommend, horizon: 7d}\n", "7:3", "task 'k' needs 'relation'; add it"},
        {LABELS "tasks:\n  k: {kind: recommend, relation: sold, horizon: 7d}\n", "7:34",
         "no such relation is declared"},
        {LABELS "tasks:\n  k: {kind: recommend, relation: paid}\n", "7:3", "task 'k' needs 'horizon'; add it"},
        {LABELS "tasks:\n  k: {kind: recommend, relation: paid, horizon: 0s}\n", "7:49", "'horizon' is '0s'"},
        {LABELS "tasks:\n  k: {kind: recommend, relation: paid, horizon: 7d, repeat: often}\n", "7:61", "often"},
        {LABELS "tasks:\n  k: {kind: recommend, relation: paid, horizon: 7d, label: fraud}\n", "7", "label"},
    };
    CHECK_RULES(rules);
}

#define PUT "mutations: [{put_edge: paid, from: a, to: b}]"

static void sources(void **state) {
    (void)state;
    static const rule rules[] = {
        {LABELS "sources:\n  s: {time: t, " PUT "}\n", "7:3", "source 's' needs 'id'; add it"},
        {LABELS "sources:\n  s: {id: i, " PUT "}\n", "7:3", "source 's' needs 'time'; add it"},
        {LABELS "sources:\n  s: {id: i, time: t}\n", "7:3", "source 's' needs 'mutations'; add it"},
        {LABELS "sources:\n  s: {id: i, time: t, mutations: []}\n", "7:34", "'mutations' is a list of at least one"},
        {LABELS "sources:\n  s: {id: i, time: t, mutations: {put_edge: paid}}\n", "7:34", "'mutations' is a list of"},
        {LABELS "sources:\n  s: {id: i, time: t, " PUT ", tombstone: gone}\n", "7",
         "'tombstone' of source 's' is a mapping: {delete_vertex: TYPE}"},
        {LABELS "sources:\n  s: {id: i, time: t, " PUT ", tombstone: {}}\n", "7", "needs 'delete_vertex'; add it"},
        {LABELS "sources:\n  s: {id: i, time: t, " PUT ", tombstone: {delete_vertex: nobody}}\n", "7", "'nobody'"},
        {LABELS "sources:\n  s: {id: i, time: t, " PUT ", tombstone: {delete_edge: paid}}\n", "7", "'delete_edge'"},
        {LABELS "sources:\n  s: {topik: x, id: i, time: t, " PUT "}\n", "7", "did you mean 'topic'?"},
        {LABELS "sources:\n  s: {topic: a b, id: i, time: t, " PUT "}\n", "7:14",
         "'a b' cannot name a topic; use letters"},
        {LABELS "sources:\n  s: {topic: .., id: i, time: t, " PUT "}\n", "7:14", "'..' cannot name a topic"},
        {LABELS "sources:\n  s: {topic: [x], id: i, time: t, " PUT "}\n", "7:14", "'topic' is one text"},
        {LABELS "sources:\n  s: {id: i, time: t, " PUT "}\n  u: {topic: s, id: i, time: t, " PUT "}\n", "8:14",
         "source 'u': source 's' reads topic 's' already; put the mutations there, under 'when'"},
        {LABELS "sources:\n  s: {topic: u, id: i, time: t, " PUT "}\n  u: {id: i, time: t, " PUT "}\n", "8:3",
         "source 's' reads topic 'u' already"},
        {LABELS "sources:\n  s: {format: xml, id: i, time: t, " PUT "}\n", "7:15",
         "'format' is 'xml'; it may be json or csv"},
        {LABELS "sources:\n  s: {columns: [a], id: i, time: t, " PUT "}\n", "7:16",
         "'columns' has no meaning for JSON"},
        {LABELS "sources:\n  s: {separator: tab, id: i, time: t, " PUT "}\n", "7:18",
         "'separator' has no meaning for JSON"},
        {LABELS "sources:\n  s: {format: csv, id: i, time: t, " PUT "}\n", "7:3", "source 's' needs 'columns'; add it"},
        {LABELS "sources:\n  s: {format: csv, columns: [i, t, a, b], separator: ',', id: i, time: t, " PUT "}\n",
         "7:54", "it may be comma, semicolon, tab or pipe"},
        {LABELS "sources:\n  s: {format: csv, columns: [i, i], id: i, time: t, " PUT "}\n", "7:33", "lists 'i' twice"},
        {LABELS "sources:\n  s: {format: csv, columns: [event, t, a, b], id: evnt, time: t, " PUT "}\n", "7:51",
         "source 's': 'id' is 'evnt', which is not one of 'columns'; did you mean 'event'?"},
        {LABELS "sources:\n  s: {id: [], time: t, " PUT "}\n", "7:11", "'id' has 0 parts; a key has 1 to 4"},
        {LABELS "sources:\n  s: {id: {field: i}, time: t, " PUT "}\n", "7:11", "'id' is one text"},
        {LABELS "sources:\n  s: {id: a..b, time: t, " PUT "}\n", "7:11",
         "'id' is the path 'a..b', which has an empty name"},
        {LABELS "sources:\n  s: {id: a., time: t, " PUT "}\n", "7:11",
         "'id' is the path 'a.', which has an empty name"},
        {LABELS "sources:\n  s: {id: .a, time: t, " PUT "}\n", "7:11",
         "'id' is the path '.a', which has an empty name"},
        {LABELS "sources:\n  s: {id: 'a\\b', time: t, " PUT "}\n", "7:11",
         "where \\ stands before neither a dot nor a \\; double it"},
        {LABELS "sources:\n  s: {id: 'a\\', time: t, " PUT "}\n", "7:11", "where \\ stands before neither"},
        {LABELS "sources:\n  s: {id: i, time: {field: t, unit: s}, " PUT "}\n", "7", "'time' of source 's'"},
        {LABELS "sources:\n  s: {id: i, time: {format: s}, " PUT "}\n", "7",
         "'time' of source 's' needs 'field'; add it"},
        {LABELS "sources:\n  s: {id: i, time: {field: t, format: ns}, " PUT "}\n", "7:39",
         "'format' is 'ns'; it may be rfc3339, s, ms or us"},
        {LABELS "sources:\n  s: {id: i, time: [t], " PUT "}\n", "7:20", "'time' is one text"},
    };
    CHECK_RULES(rules);
}

static void verbs(void **state) {
    (void)state;
    static const rule rules[] = {
        {SOURCE "5" END, "7:1", "mutation 1 of source 'src'"},
        {SOURCE "{key: a}" END, "7:1",
         "mutation 1 of source 'src' does not say what it does; begin it with put_vertex"},
        {SOURCE "{put_egde: paid}" END, "7", "did you mean 'put_edge'?"},
        {SOURCE "{put_edge: paid, put_vertex: acc}" END, "7", "has 'put_vertex' and 'put_edge'; make it two mutations"},
        {SOURCE "{put_vertex: acc, key: a},\n{put_vertex: ac, key: a}" END, "8:14",
         "mutation 2 of source 'src': 'put_vertex' is 'ac', but no such vertex type is declared under 'vertices'; did "
         "you "
         "mean 'acc'?"},
        {SOURCE "{put_edge: payd, from: a, to: b}" END, "7:12", "no such relation is declared"},
        {SOURCE "{put_label: paid, key: a, value: b}" END, "7:13", "no such label is declared"},
        {SOURCE "{delete_vertex: paid, key: a}" END, "7:17", "no such vertex type is declared"},
        {SOURCE "{delete_edge: acc, from: a, to: b}" END, "7:15", "no such relation is declared"},
        {SOURCE "{put_vertex: acc}" END, "7:1", "mutation 1 of source 'src' needs 'key'; add it"},
        {SOURCE "{put_vertex: acc, from: a}" END, "7", "from"},
        {SOURCE "{delete_vertex: acc}" END, "7:1", "needs 'key'; add it"},
        {SOURCE "{delete_vertex: acc, key: a, features: {num: n}}" END, "7", "features"},
        {SOURCE "{put_edge: paid, to: b}" END, "7:1", "needs 'from'; add it"},
        {SOURCE "{put_edge: paid, from: b}" END, "7:1", "needs 'to'; add it"},
        {SOURCE "{put_edge: paid, from: a, to: b, event: c}" END, "7", "event"},
        {SOURCE "{delete_edge: paid, from: a, to: b, features: [sum]}" END, "7", "features"},
        {SOURCE "{delete_edge: paid, from: a}" END, "7:1", "needs 'to'; add it"},
        {SOURCE "{put_label: fraud, value: v}" END, "7:1", "needs 'key'; add it"},
        {SOURCE "{put_label: fraud, key: a}" END, "7:1", "needs 'value'; add it"},
        {SOURCE "{put_label: fraud, key: a, value: v, event: e}" END, "7", "event"},
        {SOURCE "{put_label: odd, from: a, to: b, value: v}" END, "7:1", "needs 'event'; add it"},
        {SOURCE "{put_label: odd, key: a, value: v}" END, "7", "key"},
        {SOURCE "{put_label: fraud, key: a, value: {constant: ye}}" END, "7:46",
         "'constant' is 'ye', which is not one of the listed values; did you mean 'yes'?"},
        {SOURCE "{put_label: fraud, key: a, value: {field: v}}" END, "7", "field"},
        {SOURCE "{put_vertex: acc, key: [a, b, c, d, e]}" END, "7:24", "'key' has 5 parts; a key has 1 to 4"},
        {SOURCE "{put_vertex: shop, key: [a, b]}" END, "7:25",
         "'key' has 2 parts, and vertex type 'shop' has 'key: integer'; give one field"},
        {SOURCE "{delete_vertex: shop, key: [a, b]}" END, "7:28", "'key' has 2 parts, and vertex type 'shop'"},
        {SOURCE "{put_edge: paid, from: [a, c], to: [a, b, c]}" END, "7:36",
         "'to' has 3 parts, and vertex type 'shop'"},
        {SOURCE "{delete_edge: paid, from: a, to: [a, b]}" END, "7:34", "'to' has 2 parts, and vertex type 'shop'"},
        {SOURCE "{put_label: odd, from: a, to: [a, b], event: e, value: v}" END, "7:31",
         "'to' has 2 parts, and vertex type 'shop'"},
        {SOURCE "{put_label: due, key: [a, b], value: v}" END, "7:23", "'key' has 2 parts, and vertex type 'shop'"},
    };
    CHECK_RULES(rules);
}

#define WHEN SOURCE "{put_vertex: acc, key: a, when: "

static void conditions(void **state) {
    (void)state;
    static const rule rules[] = {
        {WHEN "5}" END, "7:33", "'when' of mutation 1 of source 'src'"},
        {WHEN "{hass: x}}" END, "7", "did you mean 'has'?"},
        {WHEN "{has: x, lacks: y}}" END, "7", "lacks"},
        {WHEN "{lacks: x, field: y}}" END, "7", "field"},
        {WHEN "{has: [x]}}" END, "7:39", "'has' is one text"},
        {WHEN "{}}" END, "7:33", "needs 'field'; add it"},
        {WHEN "{is: x}}" END, "7:33", "needs 'field'; add it"},
        {WHEN "{field: x}}" END, "7:33", "needs 'is_not'; add it"},
        {WHEN "{field: x, is: a, is_not: b}}" END, "7", "is_not"},
        {WHEN "{field: x, is: []}}" END, "7:48", "'is' lists 0; at least 1 are needed"},
        {WHEN "{field: x, is_not: [a, a]}}" END, "7:56", "'is_not' lists 'a' twice; remove one"},
        {WHEN "[{has: x}, {field: y}]}" END, "7:44", "needs 'is_not'; add it"},
    };
    CHECK_RULES(rules);
}

#define FEATURES SOURCE "{put_vertex: acc, key: a, features: "

static void assignments(void **state) {
    (void)state;
    static const rule rules[] = {
        {FEATURES "num}" END, "7:37", "'features' is a mapping of features to fields, or a list of features"},
        {FEATURES "{nun: x}}" END, "7:38",
         "mutation 1 of source 'src': 'features' has 'nun', but 'acc' declares no such feature; did you mean 'num'?"},
        {FEATURES "[num, nun]}" END, "7:43", "'features' has 'nun', but 'acc' declares no such feature"},
        {FEATURES "[num, [cat]]}" END, "7:43", "'features' has ''"},
        {FEATURES "[num, num]}" END, "7:43", "'features' lists 'num' twice; remove one"},
        {FEATURES "{num: [x]}}" END, "7:43", "'num' is one text"},
        {FEATURES "{num: }}" END, "7", "'num' is empty; write its value"},
        {FEATURES "{num: {feild: x}}}" END, "7", "did you mean 'field'?"},
        {FEATURES "{num: {optional: true}}}" END, "7:43", "'num' in mutation 1 of source 'src' needs 'field'; add it"},
        {FEATURES "{num: {field: x, optional: maybe}}}" END, "7:64", "maybe"},
        {FEATURES "{num: {field: x, optional: true, default: 1}}}" END, "7:79",
         "'default' has no meaning beside 'optional: true'; remove it"},
        {FEATURES "{num: {field: x, default: one}}}" END, "7:63", "one"},
        {FEATURES "{num: {field: x, default: .inf}}}" END, "7:63", "inf"},
        {FEATURES "{num: {field: x, default: [1]}}}" END, "7:63", ""},
        {FEATURES "{num: {field: x, format: s}}}" END, "7:62",
         "'format' has no meaning for a feature that is not a time; remove it"},
        {FEATURES "{num: {constant: 1, field: x}}}" END, "7", "field"},
        {FEATURES "{cat: {field: x, default: z}}}" END, "7:63",
         "'default' is 'z', which is not one of the listed values"},
        {FEATURES "{cat: {constant: z}}}" END, "7:54", "'constant' is 'z', which is not one of the listed values"},
        {FEATURES "{hashed: {constant: ''}}}" END, "7:57", "'constant' is empty; write its value"},
        {FEATURES "{at: {field: x, default: 2026-01-01}}}" END, "7:62", "a time has no 'default'; make it 'optional'"},
        {FEATURES "{at: {constant: 2026-01-01}}}" END, "7:53", "a time has no 'constant'; make it 'optional'"},
        {FEATURES "{at: {field: x, format: min}}}" END, "7:61", "'format' is 'min'; it may be rfc3339, s, ms or us"},
    };
    CHECK_RULES(rules);
}

/* The first fault in the order of the sections is named, wherever the sections stand. */
static void order_of_sections_is_free(void **state) {
    (void)state;
    static const char text[] = "relations: {r: {from: acc, to: acc}}\nvertices: {acc: {}}\nname: t\nversion: 1\n";
    weir_schema *schema = NULL;
    assert_ok(weir_schema_parse("t.yaml", text, sizeof text - 1, &schema));
    assert_int_equal(weir_schema_relation_count(schema), 1);
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(common_texts_are_valid), WEIR_CASE(head), WEIR_CASE(vertices_and_features), WEIR_CASE(relations),
           WEIR_CASE(aggregates), WEIR_CASE(aggregates_of_pairs), WEIR_CASE(aggregates_through_others),
           WEIR_CASE(aggregates_of_what_is_handed_on_in_part), WEIR_CASE(aggregates_with_labels), WEIR_CASE(labels),
           WEIR_CASE(tasks), WEIR_CASE(sources), WEIR_CASE(verbs), WEIR_CASE(conditions), WEIR_CASE(assignments),
           WEIR_CASE(order_of_sections_is_free))

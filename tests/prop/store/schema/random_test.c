/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_test.c - random valid schemas, each written twice in different ways.
 *
 * A schema is made as a tree of mappings whose order has a meaning or none, and of entries that are defaults or not.
 * Each rendering shuffles what has no order, leaves out or spells out what is a default, mixes block and flow style,
 * quotes and comments. All renderings must have one canonical text and one hash.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/rng.h>
#include <weir/store/schema/schema.h>

#include "weir_test.h"

#define CHILDREN_MAX 24u

typedef enum node_kind { SCALAR, MAP, LIST } node_kind;

typedef struct node {
    node_kind kind;
    const char *text;
    bool ordered; /* a mapping of definitions */
    unsigned count;
    struct {
        const char *key;
        struct node *value;
        bool is_default;
    } children[CHILDREN_MAX];
} node;

typedef struct maker {
    weir_arena *arena;
    weir_rng rng;
    unsigned names;
} maker;

static unsigned below(maker *m, unsigned bound) {
    return (unsigned)weir_rng_below(&m->rng, bound);
}

static bool chance(maker *m, unsigned percent) {
    return below(m, 100) < percent;
}

/* --- the tree ------------------------------------------------------------------------------------------------ */

static node *make_node(maker *m, node_kind kind) {
    node *n = weir_arena_calloc(m->arena, 1, sizeof *n);
    assert_non_null(n);
    n->kind = kind;
    return n;
}

static node *scalar(maker *m, const char *text) {
    node *n = make_node(m, SCALAR);
    n->text = text;
    return n;
}

static void add(node *map, const char *key, node *value) {
    assert_true(map->count < CHILDREN_MAX);
    map->children[map->count].key = key;
    map->children[map->count++].value = value;
}

static void add_text(maker *m, node *map, const char *key, const char *text) {
    add(map, key, scalar(m, text));
}

static void add_default(maker *m, node *map, const char *key, const char *text) {
    add_text(m, map, key, text);
    map->children[map->count - 1].is_default = true;
}

/* A default half of the time, else the other text. */
static void add_either(maker *m, node *map, const char *key, const char *normal, const char *other) {
    if (chance(m, 50)) {
        add_default(m, map, key, normal);
    } else {
        add_text(m, map, key, other);
    }
}

static node *definitions(maker *m) {
    node *n = make_node(m, MAP);
    n->ordered = true;
    return n;
}

static const char *pick_key(maker *m, const node *map) {
    return map->children[below(m, map->count)].key;
}

static const char *new_name(maker *m) {
    static const char *const stems[] = {"a", "Null", "no", "x-y", "true", "n_1", "longer-name", "e5"};
    return weir_arena_printf(m->arena, "%s%u", stems[below(m, 8)], m->names++);
}

static const char *new_text(maker *m) {
    static const char *const stems[] = {"plain",  "with blank ", "K\xc3\xb6ln", "\"q\" \\", "# no comment", "5411",
                                        "{a: b}", "- ",          "null",        "~",        "0.5",          "'"};
    return weir_arena_printf(m->arena, "%s%u", stems[below(m, 12)], m->names++);
}

/* A number in a unit, in a smaller unit with the same meaning when two renderings are wanted. */
static const char *duration(maker *m, unsigned days_max) {
    return weir_arena_printf(m->arena, "%uh", 1 + below(m, 24 * days_max));
}

static node *texts(maker *m, unsigned count) {
    node *list = make_node(m, LIST);
    for (unsigned i = 0; i < count; i++)
        add(list, NULL, scalar(m, new_text(m)));
    return list;
}

/* --- a random schema ----------------------------------------------------------------------------------------- */

static void add_normalise(maker *m, node *map) {
    static const char *const words[] = {"none", "log-standard", "min-max"};
    add_either(m, map, "normalise", "standard", words[below(m, 3)]);
}

static node *make_feature(maker *m) {
    node *feature = make_node(m, MAP);
    switch (below(m, 4)) {
    case 0:
        add_text(m, feature, "kind", "category");
        add(feature, "values", texts(m, 1 + below(m, 5)));
        break;
    case 1:
        add_text(m, feature, "kind", "category");
        add_either(m, feature, "buckets", "1024", "16");
        break;
    case 2:
        add_text(m, feature, "kind", "time");
        break;
    default:
        add_text(m, feature, "kind", "number");
        add_normalise(m, feature);
    }
    return feature;
}

static node *make_features(maker *m) {
    node *features = definitions(m);
    for (unsigned i = below(m, 6); i > 0; i--)
        add(features, new_name(m), make_feature(m));
    return features;
}

static node *make_vertices(maker *m) {
    node *vertices = definitions(m);
    for (unsigned i = 1 + below(m, 5); i > 0; i--) {
        node *vertex = make_node(m, MAP);
        add_either(m, vertex, "key", "text", "integer");
        add_either(m, vertex, "expire", "never", duration(m, 500));
        add_either(m, vertex, "history", "all", duration(m, 500));
        add(vertex, "features", make_features(m));
        add(vertices, new_name(m), vertex);
    }
    return vertices;
}

static node *make_relations(maker *m, const node *vertices) {
    node *relations = definitions(m);
    for (unsigned i = below(m, 6); i > 0; i--) {
        node *relation = make_node(m, MAP);
        add_text(m, relation, "from", pick_key(m, vertices));
        add_text(m, relation, "to", pick_key(m, vertices));
        add_either(m, relation, "expire", "never", weir_arena_printf(m->arena, "%ud", 40 + below(m, 400)));
        add_either(m, relation, "history", "all", duration(m, 500));
        add(relation, "features", make_features(m));
        add(relations, new_name(m), relation);
    }
    return relations;
}

static const node *get(const node *map, const char *key) {
    for (unsigned i = 0; i < map->count; i++)
        if (strcmp(map->children[i].key, key) == 0) return map->children[i].value;
    return NULL;
}

static const char *feature_of_kind(maker *m, const node *owner, const char *kind) {
    const node *features = get(owner, "features");
    if (features->count == 0) return NULL;
    const char *name = pick_key(m, features);
    return strcmp(get(get(features, name), "kind")->text, kind) == 0 ? name : NULL;
}

static void add_function(maker *m, node *aggregate, const node *relation, bool pair) {
    static const char *const words[] = {"sum", "mean", "max", "min", "deviation", "newest"};
    static const char *const words_alone[] = {"count", "since_last", "since_first"};
    const char *number = feature_of_kind(m, relation, "number"), *category = feature_of_kind(m, relation, "category");
    if (number) {
        add_text(m, aggregate, "function", words[below(m, 6)]);
        add_text(m, aggregate, "of", number);
        if (pair && chance(m, 50)) add_text(m, aggregate, "ratio", number);
    } else if (chance(m, 50) && (category || !pair)) {
        add_text(m, aggregate, "function", "distinct");
        if (category) add_text(m, aggregate, "of", category);
    } else {
        add_text(m, aggregate, "function", words_alone[below(m, 3)]);
    }
}

/* Of one that is on the neighbours, if a try finds one. */
static void add_label(maker *m, node *aggregate, const node *labels, const char *neighbor) {
    if (labels->count == 0) return;
    const char *name = pick_key(m, labels);
    const node *vertex = get(get(labels, name), "vertex"), *values = get(get(labels, name), "values");
    if (!vertex || strcmp(vertex->text, neighbor) != 0) return;
    node *is = make_node(m, LIST);
    for (unsigned i = 0; i < values->count; i++)
        if (i == 0 || chance(m, 50)) add(is, NULL, values->children[i].value);
    add_text(m, aggregate, "label", name);
    add(aggregate, "is", is);
}

static node *make_aggregates(maker *m, const node *relations, const node *labels) {
    node *aggregates = definitions(m);
    for (unsigned i = relations->count ? below(m, 5) : 0; i > 0; i--) {
        const char *name = pick_key(m, relations);
        const node *relation = get(relations, name);
        const char *from = get(relation, "from")->text, *to = get(relation, "to")->text;
        bool out = chance(m, 50), loop = strcmp(from, to) == 0, pair = loop && chance(m, 50);
        node *aggregate = make_node(m, MAP);
        add_text(m, aggregate, "vertex", out ? from : to);
        add_text(m, aggregate, "relation", name);
        if (pair) {
            node *ends = make_node(m, LIST);
            for (unsigned end = 0; end < 2; end++)
                add(ends, NULL, scalar(m, name));
            add(aggregate, "between", ends);
        } else if (loop) {
            add_text(m, aggregate, "direction", out ? "out" : "in");
        } else {
            add_default(m, aggregate, "direction", out ? "out" : "in");
        }
        add_function(m, aggregate, relation, pair);
        if (!pair) add_label(m, aggregate, labels, out ? to : from);
        add_text(m, aggregate, "window", weir_arena_printf(m->arena, "%uh", 1 + below(m, 900)));
        add_either(m, aggregate, "resolution", "exact", "1h");
        add_normalise(m, aggregate);
        add(aggregates, new_name(m), aggregate);
    }
    return aggregates;
}

static node *make_labels(maker *m, const node *vertices, const node *relations) {
    node *labels = definitions(m);
    for (unsigned i = below(m, 4); i > 0; i--) {
        node *label = make_node(m, MAP), *values = texts(m, 2 + below(m, 4));
        bool on_relation = relations->count && chance(m, 40);
        add_text(m, label, on_relation ? "relation" : "vertex", pick_key(m, on_relation ? relations : vertices));
        add(label, "values", values);
        if (chance(m, 50)) add_text(m, label, "absent", values->children[below(m, values->count)].value->text);
        add_either(m, label, "lag", "0s", duration(m, 90));
        add(labels, new_name(m), label);
    }
    return labels;
}

static void make_classify(maker *m, node *task, const node *labels) {
    const char *name = pick_key(m, labels);
    const node *values = get(get(labels, name), "values");
    add_text(m, task, "kind", "classify");
    add_text(m, task, "label", name);
    if (chance(m, 60)) {
        node *positive = make_node(m, LIST);
        for (unsigned i = 1; i < values->count; i++)
            if (i == 1 || chance(m, 50)) add(positive, NULL, values->children[i].value);
        add(task, "positive", positive);
    }
    add_either(m, task, "at", "put", "label");
    if (strcmp(get(task, "at")->text, "label") == 0) return;
    add_text(m, task, "maturity", "60d");
    add_either(m, task, "horizon", "60d", duration(m, 60));
}

static node *make_tasks(maker *m, const node *relations, const node *labels) {
    node *tasks = definitions(m);
    for (unsigned i = below(m, 4); i > 0; i--) {
        node *task = make_node(m, MAP);
        if (labels->count && chance(m, 60)) {
            make_classify(m, task, labels);
        } else if (relations->count) {
            add_text(m, task, "kind", "recommend");
            add_text(m, task, "relation", pick_key(m, relations));
            add_text(m, task, "horizon", duration(m, 30));
            add_either(m, task, "repeat", "false", "true");
        } else {
            continue;
        }
        add(tasks, new_name(m), task);
    }
    return tasks;
}

static const char *new_path(maker *m) {
    static const char *const paths[] = {"id",         "time", "meta.id", "user.address.country", "a\\.b", "x\\\\y",
                                        "with blank", "f1",   "f2",      "K\xc3\xb6ln.n"};
    return paths[below(m, 10)];
}

static node *make_key(maker *m) {
    if (chance(m, 70)) return scalar(m, new_path(m));
    node *parts = make_node(m, LIST);
    for (unsigned i = 1 + below(m, 4); i > 0; i--)
        add(parts, NULL, scalar(m, new_path(m)));
    return parts;
}

/* What names a vertex: an integer is one field. */
static node *make_name(maker *m, const node *vertex) {
    return strcmp(get(vertex, "key")->text, "integer") == 0 ? scalar(m, new_path(m)) : make_key(m);
}

static void add_ends(maker *m, node *mutation, const node *vertices, const node *relation) {
    add(mutation, "from", make_name(m, get(vertices, get(relation, "from")->text)));
    add(mutation, "to", make_name(m, get(vertices, get(relation, "to")->text)));
}

static node *make_condition(maker *m) {
    node *condition = make_node(m, MAP);
    if (chance(m, 50)) {
        add_text(m, condition, chance(m, 50) ? "has" : "lacks", new_path(m));
        return condition;
    }
    add_text(m, condition, "field", new_path(m));
    add(condition, chance(m, 50) ? "is" : "is_not", chance(m, 50) ? scalar(m, new_text(m)) : texts(m, 1 + below(m, 3)));
    return condition;
}

static void add_conditions(maker *m, node *mutation) {
    if (chance(m, 40)) return;
    node *list = make_node(m, LIST);
    for (unsigned i = below(m, 4); i > 0; i--)
        add(list, NULL, make_condition(m));
    bool single = list->count == 1 && chance(m, 50);
    add(mutation, "when", single ? list->children[0].value : list);
}

static const char *constant_for(maker *m, const node *feature) {
    if (strcmp(get(feature, "kind")->text, "number") == 0)
        return weir_arena_printf(m->arena, "%.17g", weir_rng_normal(&m->rng) * (chance(m, 50) ? 1 : 1e12));
    const node *values = get(feature, "values");
    return values ? values->children[below(m, values->count)].value->text : new_text(m);
}

static node *make_assignment(maker *m, const node *feature) {
    bool time = strcmp(get(feature, "kind")->text, "time") == 0;
    if (chance(m, 30)) return scalar(m, new_path(m));
    node *assignment = make_node(m, MAP);
    if (!time && chance(m, 20)) {
        add_text(m, assignment, "constant", constant_for(m, feature));
        return assignment;
    }
    add_text(m, assignment, "field", new_path(m));
    if (time) add_either(m, assignment, "format", "rfc3339", chance(m, 50) ? "s" : "us");
    if (!time && chance(m, 30)) {
        add_text(m, assignment, "default", constant_for(m, feature));
    } else {
        add_either(m, assignment, "optional", "false", "true");
    }
    return assignment;
}

static void add_assignments(maker *m, node *mutation, const node *owner) {
    const node *features = get(owner, "features");
    node *assignments = make_node(m, MAP);
    for (unsigned i = 0; i < features->count; i++)
        if (chance(m, 70)) add(assignments, features->children[i].key, make_assignment(m, features->children[i].value));
    add(mutation, "features", assignments);
}

static void add_label_target(maker *m, node *mutation, const node *vertices, const node *relations, const node *label) {
    const node *relation = get(label, "relation"), *values = get(label, "values");
    if (relation) {
        add_ends(m, mutation, vertices, get(relations, relation->text));
        add(mutation, "event", make_key(m));
    } else {
        add(mutation, "key", make_name(m, get(vertices, get(label, "vertex")->text)));
    }
    if (chance(m, 50)) {
        add_text(m, mutation, "value", new_path(m));
        return;
    }
    node *constant = make_node(m, MAP);
    add(constant, "constant", values->children[below(m, values->count)].value);
    add(mutation, "value", constant);
}

static node *make_mutation(maker *m, const node *vertices, const node *relations, const node *labels) {
    node *mutation = make_node(m, MAP);
    bool put = chance(m, 70);
    if (labels->count && chance(m, 30)) {
        const char *label = pick_key(m, labels);
        add_text(m, mutation, "put_label", label);
        add_label_target(m, mutation, vertices, relations, get(labels, label));
    } else if (relations->count && chance(m, 60)) {
        const char *relation = pick_key(m, relations);
        add_text(m, mutation, put ? "put_edge" : "delete_edge", relation);
        add_ends(m, mutation, vertices, get(relations, relation));
        if (put) add_assignments(m, mutation, get(relations, relation));
        if (!put && chance(m, 50)) add(mutation, "event", make_key(m));
    } else {
        const char *vertex = pick_key(m, vertices);
        add_text(m, mutation, put ? "put_vertex" : "delete_vertex", vertex);
        add(mutation, "key", make_name(m, get(vertices, vertex)));
        if (put) add_assignments(m, mutation, get(vertices, vertex));
    }
    add_conditions(m, mutation);
    return mutation;
}

static node *csv_columns(maker *m) {
    static const char *const paths[] = {"id",         "time", "meta.id", "user.address.country", "a\\.b", "x\\\\y",
                                        "with blank", "f1",   "f2",      "K\xc3\xb6ln.n"};
    node *columns = make_node(m, LIST);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        add(columns, NULL, scalar(m, paths[i]));
    return columns;
}

static node *make_source(maker *m, const char *name, const node *vertices, const node *relations, const node *labels) {
    static const char *const formats[] = {"s", "ms", "us"};
    node *source = make_node(m, MAP), *time = make_node(m, MAP), *mutations = make_node(m, LIST);
    add_either(m, source, "topic", name, new_name(m));
    add_either(m, source, "format", "json", "csv");
    if (strcmp(get(source, "format")->text, "csv") == 0) {
        add(source, "columns", csv_columns(m));
        add_either(m, source, "separator", "comma", "pipe");
    }
    add(source, "id", make_key(m));
    add_text(m, time, "field", new_path(m));
    add_either(m, time, "format", "rfc3339", formats[below(m, 3)]);
    add(source, "time", time);
    for (unsigned i = 1 + below(m, 5); i > 0; i--)
        add(mutations, NULL, make_mutation(m, vertices, relations, labels));
    add(source, "mutations", mutations);
    return source;
}

static node *make_schema(maker *m) {
    node *root = make_node(m, MAP), *vertices = make_vertices(m), *relations = make_relations(m, vertices);
    node *labels = make_labels(m, vertices, relations), *sources = definitions(m);
    add_text(m, root, "version", "1");
    add_text(m, root, "name", new_name(m));
    add(root, "vertices", vertices);
    add(root, "relations", relations);
    add(root, "aggregates", make_aggregates(m, relations, labels));
    add(root, "labels", labels);
    add(root, "tasks", make_tasks(m, relations, labels));
    for (unsigned i = below(m, 4); i > 0; i--) {
        const char *name = new_name(m);
        add(sources, name, make_source(m, name, vertices, relations, labels));
    }
    add(root, "sources", sources);
    return root;
}

/* --- rendering ----------------------------------------------------------------------------------------------- */

static bool is_plain(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return strspn(text, letters) > 0 && text[strspn(text, more)] == 0;
}

static bool is_digits(const char *text) {
    return text[strspn(text, "0123456789.+-e")] == 0;
}

static void write_text(maker *m, weir_buf *out, const char *text) {
    bool typed = is_digits(text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0; // quoted, it is a text
    if (typed || (is_plain(text) && chance(m, 70))) {
        weir_buf_text(out, text);
        return;
    }
    bool single = chance(m, 50);
    weir_buf_text(out, single ? "'" : "\"");
    for (const char *at = text; *at; at++) {
        if (single && *at == '\'') weir_buf_text(out, "'");
        if (!single && (*at == '"' || *at == '\\')) weir_buf_text(out, "\\");
        weir_buf_append(out, at, 1);
    }
    weir_buf_text(out, single ? "'" : "\"");
}

/* The children in the order to write, without defaults that are left out. */
static unsigned arrange(maker *m, const node *n, unsigned *order) {
    unsigned count = 0;
    for (unsigned i = 0; i < n->count; i++)
        if (!n->children[i].is_default || chance(m, 50)) order[count++] = i;
    for (unsigned i = count; n->kind == MAP && !n->ordered && i > 1; i--) {
        unsigned j = below(m, i), swapped = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swapped;
    }
    return count;
}

static void write_flow(maker *m, weir_buf *out, const node *n) {
    if (n->kind == SCALAR) {
        write_text(m, out, n->text);
        return;
    }
    unsigned order[CHILDREN_MAX], count = arrange(m, n, order);
    weir_buf_text(out, n->kind == MAP ? "{" : "[");
    for (unsigned i = 0; i < count; i++) {
        if (i > 0) weir_buf_text(out, chance(m, 50) ? ", " : " ,\n            ");
        if (n->kind == MAP) {
            write_text(m, out, n->children[order[i]].key);
            weir_buf_text(out, ": ");
        }
        write_flow(m, out, n->children[order[i]].value);
    }
    weir_buf_text(out, n->kind == MAP ? "}" : "]");
}

static void indent(weir_buf *out, unsigned depth) {
    for (unsigned i = 0; i < depth; i++)
        weir_buf_text(out, " ");
}

static void write_block(maker *m, weir_buf *out, const node *n, unsigned depth) {
    unsigned order[CHILDREN_MAX], count = arrange(m, n, order);
    for (unsigned i = 0; i < count; i++) {
        const node *value = n->children[order[i]].value;
        if (chance(m, 10)) weir_buf_text(out, "# a comment: [not read\n\n");
        indent(out, depth);
        if (n->kind == LIST) weir_buf_text(out, "- ");
        if (n->kind == MAP) write_text(m, out, n->children[order[i]].key);
        if (n->kind == MAP) weir_buf_text(out, ": ");
        bool block = value->kind != SCALAR && value->count > 0 && n->kind == MAP && chance(m, 70);
        for (unsigned j = 0; block && j < value->count; j++)
            block = !value->children[j].is_default; // a block whose entries are all left out would be empty
        if (block) {
            weir_buf_text(out, chance(m, 20) ? "# behind\n" : "\n");
            write_block(m, out, value, depth + 1 + below(m, 4));
        } else {
            write_flow(m, out, value);
            weir_buf_text(out, chance(m, 10) ? " # behind\n" : "\n");
        }
    }
}

/* --- the properties ------------------------------------------------------------------------------------------ */

static weir_schema *parse(const weir_buf *text) {
    weir_schema *schema = NULL;
    assert_ok(weir_buf_err(text));
    weir_err err = weir_schema_parse("random.yaml", text->bytes, text->length, &schema);
    if (err) fprintf(stderr, "%s\n", text->bytes);
    assert_ok(err);
    return schema;
}

static void assert_same_fields(const weir_schema *a, const weir_schema *b) {
    for (uint32_t id = 0; id < weir_schema_source_count(a); id++) {
        const weir_schema_source *x = weir_schema_source_at(a, id), *y = weir_schema_source_at(b, id);
        assert_int_equal(x->field_count, y->field_count);
        for (uint32_t i = 0; i < x->field_count; i++)
            assert_string_equal(x->fields[i].path, y->fields[i].path);
    }
}

static void assert_one_schema(const weir_buf *first_text, const weir_buf *second_text) {
    weir_schema *first = parse(first_text), *second = parse(second_text);
    weir_buf canonical = {0}, again = {0};
    weir_schema_print(first, &canonical);
    weir_schema_print(second, &again);
    assert_string_equal(canonical.bytes, again.bytes); // SCHEMA-H2
    assert_int_equal(weir_schema_hash(first), weir_schema_hash(second));
    assert_same_fields(first, second); // SCHEMA-H3
    assert_ok(weir_schema_compatible(first, second));
    weir_schema *third = parse(&canonical);
    weir_buf_clear(&again);
    weir_schema_print(third, &again);
    assert_string_equal(canonical.bytes, again.bytes); // SCHEMA-H1
    assert_int_equal(weir_schema_hash(first), weir_schema_hash(third));
    assert_same_fields(first, third);
    weir_buf_free(&canonical);
    weir_buf_free(&again);
    weir_schema_free(first);
    weir_schema_free(second);
    weir_schema_free(third);
}

static void h1_h2_h3_hold_for_random_schemas(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed(), rounds = weir_test_rounds(400);
    weir_arena *arena = NULL;
    weir_buf texts_of[2] = {{0}, {0}};
    assert_ok(weir_arena_open(64u << 20, &arena));
    for (uint64_t round = 0; round < rounds; round++) {
        maker m = {.arena = arena, .rng = weir_rng_stream(seed, round, 0)};
        node *schema = make_schema(&m);
        for (size_t i = 0; i < 2; i++) {
            weir_buf_clear(&texts_of[i]);
            write_block(&m, &texts_of[i], schema, 0);
        }
        assert_one_schema(&texts_of[0], &texts_of[1]);
        weir_arena_reset(arena);
    }
    weir_buf_free(&texts_of[0]);
    weir_buf_free(&texts_of[1]);
    weir_arena_close(arena);
}

/* One byte of a valid text changed: refused with a place, or a schema for which the promises hold. */
static void damaged_texts_are_read_or_refused(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed(), rounds = weir_test_rounds(800);
    weir_arena *arena = NULL;
    weir_buf text = {0};
    assert_ok(weir_arena_open(64u << 20, &arena));
    for (uint64_t round = 0; round < rounds; round++) {
        maker m = {.arena = arena, .rng = weir_rng_stream(seed, round, 1)};
        weir_schema *schema = NULL;
        weir_buf_clear(&text);
        write_block(&m, &text, make_schema(&m), 0);
        text.bytes[below(&m, (unsigned)text.length)] = (char)below(&m, 256);
        weir_err err = weir_schema_parse("random.yaml", text.bytes, text.length, &schema);
        if (err) {
            assert_err(err, WEIR_ECONFIG, "random.yaml:");
        } else {
            weir_schema_free(schema);
            assert_one_schema(&text, &text);
        }
        weir_arena_reset(arena);
    }
    weir_buf_free(&text);
    weir_arena_close(arena);
}

WEIR_TESTS(WEIR_CASE(h1_h2_h3_hold_for_random_schemas), WEIR_CASE(damaged_texts_are_read_or_refused))

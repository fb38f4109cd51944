/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - libyaml's events become a tree in one arena.
 *
 * Events, not libyaml's documents: a document has its aliases resolved before they could be refused, keeps the
 * last of two equal keys without a word, and is built without a bound. The stack is an array, so that the depth of
 * a file cannot become the depth of our calls.
 *
 * INVARIANTS
 *   CONF-Y1  A tree has at most WEIR_YAML_NODES_MAX nodes and WEIR_YAML_DEPTH_MAX nested collections.
 *   CONF-Y2  A mapping's children are key, value, key, value; a key is a scalar with a text.
 *   CONF-Y3  A mapping's `sorted` holds its keys in strcmp's order, no two equal; key->next is the value.
 */
#include <weir/store/conf/yaml.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/arena.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/suggest.h>

/* Nodes, their arrays and texts at the limits above come to 10 MiB. */
#define ARENA_BYTES_MAX ((size_t)24 << 20)

struct weir_yaml_node {
    const weir_yaml *yaml;
    const char *key;                 /* of a value in a mapping: its name in messages; else NULL */
    const char *text;                /* of a scalar                                              */
    const weir_yaml_node **children; /* CONF-Y2                                                       */
    const weir_yaml_node **sorted;   /* CONF-Y3                                                       */
    weir_yaml_node *first;
    weir_yaml_node *next;
    uint32_t child_count;
    uint32_t line, column; /* from 1 */
    weir_yaml_kind kind;
    bool quoted;
};

struct weir_yaml {
    weir_arena *arena;
    const char *name;
    const weir_yaml_node *root;
    size_t node_count;
};

typedef struct yaml_builder {
    yaml_parser_t parser;
    weir_yaml *yaml;
    const char *text;
    size_t length;
    size_t documents;
    size_t depth;
    struct {
        weir_yaml_node *node, *last;
    } stack[WEIR_YAML_DEPTH_MAX];
} yaml_builder;

/* --- errors ------------------------------------------------------------------------------------------------- */

weir_err weir_yaml_err_make(const weir_err_site *site, const weir_yaml_node *node, const char *format, ...) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (char *c = sentence; *c; c++) /* a hostile file must not control the reader's terminal */
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    return weir_err_make(site, WEIR_ECONFIG, "%s:%u:%u: %s", node->yaml->name, node->line, node->column, sentence);
}

weir_err weir_yaml_err_at(const weir_yaml_node *node, weir_err err) {
    return err ? weir_err_prefix(err, "%s:%u:%u", node->yaml->name, node->line, node->column) : WEIR_OK;
}

/* Something to hang an error on where there is no node (yet). */
static weir_yaml_node yaml_node_at(const yaml_builder *build, yaml_mark_t mark) {
    return (weir_yaml_node){.yaml = build->yaml, .line = (uint32_t)mark.line + 1, .column = (uint32_t)mark.column + 1};
}

static yaml_mark_t yaml_mark_of_offset(const yaml_builder *build, size_t offset) {
    yaml_mark_t mark = {.index = offset};
    for (size_t i = 0; i < offset && i < build->length; i++) {
        bool newline = build->text[i] == '\n';
        mark.line += newline;
        mark.column = newline ? 0 : mark.column + 1;
    }
    return mark;
}

static const char *yaml_syntax_advice(const char *problem) {
    static const struct {
        const char *problem, *advice;
    } known[] = {
        {"cannot start any token", "indent with spaces, not tabs, and quote a value that begins with @, ` or %"},
        {"tab character", "indent with spaces, not tabs"},
        {"mapping values are not allowed", "quote a value that contains ': ', and check the indentation"},
        {"could not find expected ':'", "write 'key: value', with a space after the colon"},
        {"did not find expected key", "indent it as the lines beside it"},
        {"did not find expected '-' indicator", "begin it with '- ' as the lines beside it"},
        {"unexpected end of stream", "close the quote"},
        {"did not find expected ',' or", "close the bracket, or put a comma between the items"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(problem, known[i].problem)) return known[i].advice;
    return "check indentation, quotes and brackets there";
}

/* What libyaml has to say about text that is not YAML. */
static weir_err yaml_syntax_err(const yaml_builder *build) {
    const yaml_parser_t *parser = &build->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return WEIR_NOMEM("while reading %s; free some and try again", build->yaml->name);
    if (parser->error == YAML_READER_ERROR) {
        weir_yaml_node at = yaml_node_at(build, yaml_mark_of_offset(build, parser->problem_offset));
        return WEIR_YAML_ERR(&at, "not a text file in UTF-8 (%s); save it as UTF-8", parser->problem);
    }
    weir_yaml_node at = yaml_node_at(build, parser->problem_mark);
    const char *problem = parser->problem ? parser->problem : "it cannot be read";
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        return WEIR_YAML_ERR(&at, "not valid YAML: %s %s that begins on line %zu; %s", problem, parser->context,
                             parser->context_mark.line + 1, yaml_syntax_advice(problem));
    return WEIR_YAML_ERR(&at, "not valid YAML: %s; %s", problem, yaml_syntax_advice(problem));
}

/* --- from events to nodes ----------------------------------------------------------------------------------- */

/* Puts the node behind the last child of the collection that is open. */
static weir_err yaml_attach(yaml_builder *build, weir_yaml_node *node) {
    if (build->depth == 0) {
        build->yaml->root = node;
        return WEIR_OK;
    }
    weir_yaml_node *parent = build->stack[build->depth - 1].node;
    weir_yaml_node **lastp = &build->stack[build->depth - 1].last;
    if (parent->kind == WEIR_YAML_MAPPING) {
        bool is_key = parent->child_count % 2 == 0;
        if (is_key && node->kind != WEIR_YAML_SCALAR) // CONF-Y2
            return WEIR_YAML_ERR(node, "a key may not be a list or a mapping; write a plain word before the colon");
        if (is_key && !*node->text) return WEIR_YAML_ERR(node, "a key is empty; write a word before the colon");
        if (!is_key) node->key = (*lastp)->text;
    }
    if (*lastp)
        (*lastp)->next = node;
    else
        parent->first = node;
    *lastp = node;
    parent->child_count++;
    return WEIR_OK;
}

static weir_err yaml_new_node(yaml_builder *build, const yaml_event_t *event, weir_yaml_node **nodep) {
    *nodep = NULL;
    weir_yaml *yaml = build->yaml;
    weir_yaml_node at = yaml_node_at(build, event->start_mark);
    if (yaml->node_count >= WEIR_YAML_NODES_MAX) // CONF-Y1
        return WEIR_YAML_ERR(&at, "more than %u keys and values; split the file", WEIR_YAML_NODES_MAX);
    weir_yaml_node *node = weir_arena_calloc(yaml->arena, 1, sizeof *node);
    if (!node) return WEIR_NOMEM("while reading %s; free some and try again", yaml->name);
    *node = at;
    yaml->node_count++;
    WEIR_ASSERT(yaml->node_count <= WEIR_YAML_NODES_MAX && node->line > 0 && node->column > 0);
    *nodep = node;
    return WEIR_OK;
}

/* Anchors and tags are refused wherever libyaml tells of them. */
static weir_err yaml_check_plain(const yaml_builder *build, const yaml_event_t *event, const yaml_char_t *anchor,
                                 const yaml_char_t *tag) {
    weir_yaml_node at = yaml_node_at(build, event->start_mark);
    if (anchor) return WEIR_YAML_ERR(&at, "anchors (&%.60s) are not read; write the value where it is needed", anchor);
    if (tag) return WEIR_YAML_ERR(&at, "tags (%.60s) are not read; remove it, and quote a value that is a text", tag);
    return WEIR_OK;
}

static weir_err yaml_take_scalar(yaml_builder *build, const yaml_event_t *event) {
    weir_err err = yaml_check_plain(build, event, event->data.scalar.anchor, event->data.scalar.tag);
    weir_yaml_node *node;
    if (!err) err = yaml_new_node(build, event, &node);
    if (err) return err;
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, 0, length)) return WEIR_YAML_ERR(node, "a value contains a NUL character (\\0); remove it");
    node->kind = WEIR_YAML_SCALAR;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    static const char *const nothing[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; !node->quoted && i < sizeof nothing / sizeof nothing[0]; i++)
        if (!strcmp(text, nothing[i])) length = 0;
    node->text = weir_arena_strndup(build->yaml->arena, text, length);
    if (!node->text) return WEIR_NOMEM("while reading %s; free some and try again", build->yaml->name);
    return yaml_attach(build, node);
}

static weir_err yaml_open_collection(yaml_builder *build, const yaml_event_t *event, bool mapping) {
    weir_err err =
        yaml_check_plain(build, event, mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
                         mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag);
    weir_yaml_node *node;
    if (!err) err = yaml_new_node(build, event, &node);
    if (err) return err;
    node->kind = mapping ? WEIR_YAML_MAPPING : WEIR_YAML_SEQUENCE;
    err = yaml_attach(build, node);
    if (err) return err;
    if (build->depth >= WEIR_YAML_DEPTH_MAX) // CONF-Y1
        return WEIR_YAML_ERR(node, "nested deeper than %u levels; make it flatter", WEIR_YAML_DEPTH_MAX);
    build->stack[build->depth].node = node;
    build->stack[build->depth++].last = NULL;
    return WEIR_OK;
}

/* By text, then by place, so that of two equal keys the later one is the duplicate. */
static int yaml_compare_keys(const void *left, const void *right) {
    const weir_yaml_node *a = *(const weir_yaml_node *const *)left, *b = *(const weir_yaml_node *const *)right;
    int order = strcmp(a->text, b->text);
    if (order == 0) order = (a->line > b->line) - (a->line < b->line);
    return order ? order : (a->column > b->column) - (a->column < b->column);
}

/* The list of children becomes an array, now that its length is known. */
static weir_err yaml_close_collection(yaml_builder *build) {
    WEIR_ASSERT(build->depth > 0);
    weir_yaml_node *node = build->stack[--build->depth].node;
    size_t count = node->child_count;
    bool mapping = node->kind == WEIR_YAML_MAPPING;
    WEIR_ASSERT(!mapping || count % 2 == 0); // CONF-Y2
    node->children = weir_arena_calloc(build->yaml->arena, count + 1, sizeof *node->children);
    if (mapping) node->sorted = weir_arena_calloc(build->yaml->arena, count / 2 + 1, sizeof *node->sorted);
    if (!node->children || (mapping && !node->sorted))
        return WEIR_NOMEM("while reading %s; free some and try again", build->yaml->name);
    size_t i = 0;
    for (const weir_yaml_node *child = node->first; child; child = child->next)
        node->children[i++] = child;
    WEIR_ASSERT(i == count);
    if (!mapping) return WEIR_OK;

    size_t keys = count / 2; // CONF-Y3
    for (i = 0; i < keys; i++)
        node->sorted[i] = node->children[2 * i];
    if (keys > 1) qsort(node->sorted, keys, sizeof *node->sorted, yaml_compare_keys);
    for (i = 1; i < keys; i++) {
        const weir_yaml_node *one = node->sorted[i - 1], *two = node->sorted[i];
        if (!strcmp(one->text, two->text))
            return WEIR_YAML_ERR(two, "key '%s' is given twice, first on line %u; remove one of the two", two->text,
                                 one->line);
    }
    return WEIR_OK;
}

static weir_err yaml_take_event(yaml_builder *build, const yaml_event_t *event) {
    weir_yaml_node at = yaml_node_at(build, event->start_mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (build->documents++ > 0)
            return WEIR_YAML_ERR(&at, "a second document begins here; keep one document in a file");
        if (event->data.document_start.version_directive ||
            event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
            return WEIR_YAML_ERR(&at, "directives (%%YAML, %%TAG) are not read; remove the lines that begin with %%");
        return WEIR_OK;
    case YAML_SCALAR_EVENT:
        return yaml_take_scalar(build, event);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_open_collection(build, event, false);
    case YAML_MAPPING_START_EVENT:
        return yaml_open_collection(build, event, true);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return yaml_close_collection(build);
    case YAML_ALIAS_EVENT:
        return WEIR_YAML_ERR(&at, "aliases (*%.60s) are not read; write the value where it is needed",
                             event->data.alias.anchor);
    default:
        return WEIR_OK;
    }
}

static weir_err yaml_check_bytes(const yaml_builder *build) {
    if (build->length > WEIR_YAML_BYTES_MAX) {
        weir_yaml_node at = yaml_node_at(build, (yaml_mark_t){0});
        return WEIR_YAML_ERR(&at, "the file has %zu bytes, more than the %u that are read; split it", build->length,
                             WEIR_YAML_BYTES_MAX);
    }
    const char *nul = memchr(build->text, 0, build->length);
    if (!nul) return WEIR_OK;
    weir_yaml_node at = yaml_node_at(build, yaml_mark_of_offset(build, (size_t)(nul - build->text)));
    return WEIR_YAML_ERR(&at, "not a text file: it contains a NUL byte; is it the right file?");
}

weir_err weir_yaml_parse(const char *name, const char *text, size_t length, weir_yaml **yamlp) {
    *yamlp = NULL;
    weir_arena *arena;
    weir_err err = weir_arena_open(ARENA_BYTES_MAX, &arena);
    if (err) return err;
    weir_yaml *yaml = weir_arena_calloc(arena, 1, sizeof *yaml);
    if (yaml) yaml->name = weir_arena_strndup(arena, name, strlen(name));
    if (!yaml || !yaml->name) {
        weir_arena_close(arena);
        return WEIR_NOMEM("while reading %s; free some and try again", name);
    }
    yaml->arena = arena;
    yaml_builder build = {.yaml = yaml, .text = text, .length = length};
    err = yaml_check_bytes(&build);
    if (err) goto done;
    if (!yaml_parser_initialize(&build.parser)) {
        err = WEIR_NOMEM("while reading %s; free some and try again", name);
        goto done;
    }
    yaml_parser_set_encoding(&build.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&build.parser, (const unsigned char *)text, length);
    for (bool ended = false; !err && !ended;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&build.parser, &event)) {
            err = yaml_syntax_err(&build);
            break;
        }
        err = yaml_take_event(&build, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&build.parser);
    WEIR_ASSERT(err || build.depth == 0);
    const weir_yaml_node *root = yaml->root;
    if (!err && root && root->kind == WEIR_YAML_SCALAR && !root->quoted && !*root->text) yaml->root = NULL;
done:
    if (err) {
        weir_arena_close(arena);
    } else {
        *yamlp = yaml;
    }
    return err;
}

weir_err weir_yaml_load(const char *path, weir_yaml **yamlp) {
    *yamlp = NULL;
    char *text;
    size_t length;
    weir_err err = weir_file_load(path, WEIR_YAML_BYTES_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ELIMIT))
        return WEIR_ERR(WEIR_ECONFIG, "%s:1:1: the file has more than the %u bytes that are read; split it", path,
                        WEIR_YAML_BYTES_MAX);
    if (err) return err;
    err = weir_yaml_parse(path, text, length, yamlp);
    weir_free(text);
    return err;
}

void weir_yaml_free(weir_yaml *yaml) {
    if (yaml) weir_arena_close(yaml->arena);
}

/* --- reading the tree --------------------------------------------------------------------------------------- */

const weir_yaml_node *weir_yaml_root(const weir_yaml *yaml) {
    return yaml->root;
}

weir_yaml_kind weir_yaml_node_kind(const weir_yaml_node *node) {
    return node->kind;
}

unsigned weir_yaml_line(const weir_yaml_node *node) {
    return node->line;
}

size_t weir_yaml_count(const weir_yaml_node *node) {
    return node->kind == WEIR_YAML_MAPPING ? node->child_count / 2 : node->child_count;
}

const weir_yaml_node *weir_yaml_item(const weir_yaml_node *sequence, size_t index) {
    WEIR_ASSERT(sequence->kind == WEIR_YAML_SEQUENCE && index < sequence->child_count);
    return sequence->children[index];
}

const weir_yaml_node *weir_yaml_entry_key_node(const weir_yaml_node *mapping, size_t index) {
    WEIR_ASSERT(mapping->kind == WEIR_YAML_MAPPING && index < mapping->child_count / 2);
    return mapping->children[2 * index];
}

const weir_yaml_node *weir_yaml_entry_value(const weir_yaml_node *mapping, size_t index) {
    return weir_yaml_entry_key_node(mapping, index)->next;
}

const weir_yaml_node *weir_yaml_find(const weir_yaml_node *mapping, const char *key) {
    WEIR_ASSERT(mapping->kind == WEIR_YAML_MAPPING);
    size_t low = 0, high = mapping->child_count / 2;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(mapping->sorted[middle]->text, key);
        if (order == 0) return mapping->sorted[middle]->next;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *weir_yaml_text(const weir_yaml_node *scalar) {
    WEIR_ASSERT(scalar->kind == WEIR_YAML_SCALAR);
    return scalar->text;
}

bool weir_yaml_quoted(const weir_yaml_node *scalar) {
    return scalar->quoted;
}

/* --- typed reads -------------------------------------------------------------------------------------------- */

/* "'window' must be a whole number …; it is 'many'". */
static weir_err yaml_wrong_value(const weir_yaml_node *node, const char *wanted) {
    const char *open = node->key ? "'" : "", *name = node->key ? node->key : "this item";
    if (node->kind != WEIR_YAML_SCALAR)
        return WEIR_YAML_ERR(node, "%s%.60s%s must be %s; it is a %s", open, name, open, wanted,
                             node->kind == WEIR_YAML_MAPPING ? "mapping" : "list");
    return WEIR_YAML_ERR(node, "%s%.60s%s must be %s; it is %s'%.60s'", open, name, open, wanted,
                         node->quoted ? "the quoted text " : "", node->text);
}

static bool yaml_is_plain_number(const weir_yaml_node *node) {
    if (node->kind != WEIR_YAML_SCALAR || node->quoted) return false;
    const char *digits = node->text + (*node->text == '-' || *node->text == '+');
    return *digits >= '0' && *digits <= '9';
}

weir_err weir_yaml_i64(const weir_yaml_node *node, int64_t min, int64_t max, int64_t *valuep) {
    *valuep = 0;
    if (yaml_is_plain_number(node)) {
        char *end;
        errno = 0;
        long long value = strtoll(node->text, &end, 10);
        if (!*end && errno == 0 && value >= min && value <= max) {
            *valuep = value;
            return WEIR_OK;
        }
    }
    char wanted[96];
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)min, (long long)max);
    return yaml_wrong_value(node, wanted);
}

weir_err weir_yaml_f64(const weir_yaml_node *node, double *valuep) {
    *valuep = 0;
    /* The set keeps out strtod's hexadecimal forms, which no reader of the file expects. */
    if (yaml_is_plain_number(node) && !node->text[strspn(node->text, "0123456789+-.eE")]) {
        char *end;
        double value = strtod(node->text, &end);
        if (!*end && isfinite(value)) {
            *valuep = value;
            return WEIR_OK;
        }
    }
    return yaml_wrong_value(node, "a number such as 0.5 or 1e-3");
}

weir_err weir_yaml_bool(const weir_yaml_node *node, bool *valuep) {
    *valuep = false;
    if (node->kind != WEIR_YAML_SCALAR || node->quoted || (strcmp(node->text, "true") && strcmp(node->text, "false")))
        return yaml_wrong_value(node, "true or false");
    *valuep = node->text[0] == 't';
    return WEIR_OK;
}

static weir_err yaml_unknown_key(const weir_yaml_node *key, const char *what, const char *const *allowed) {
    weir_suggest suggest = weir_suggest_for(key->text);
    char list[256] = "", nearest[128];
    size_t used = 0;
    for (size_t i = 0; allowed[i]; i++) {
        weir_suggest_offer(&suggest, allowed[i]);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", allowed[i]);
    }
    weir_suggest_text(&suggest, nearest, sizeof nearest);
    if (*nearest) return WEIR_YAML_ERR(key, "%s has no key '%.60s'%s", what, key->text, nearest);
    return WEIR_YAML_ERR(key, "%s has no key '%.60s'; it may have: %s", what, key->text, list);
}

weir_err weir_yaml_only_keys(const weir_yaml_node *mapping, const char *what, const char *const *allowed) {
    if (mapping->kind != WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(mapping, "%s must be a mapping; write its settings below it as 'key: value'", what);
    for (size_t i = 0; i < weir_yaml_count(mapping); i++) {
        const weir_yaml_node *key = weir_yaml_entry_key_node(mapping, i);
        size_t known = 0;
        while (allowed[known] && strcmp(allowed[known], key->text))
            known++;
        if (!allowed[known]) return yaml_unknown_key(key, what, allowed);
    }
    return WEIR_OK;
}

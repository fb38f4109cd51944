/* SPDX-License-Identifier: Apache-2.0 */
/* json_tree.c - all of a text as nodes in an arena. */
#include <weir/store/base/json.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_FEW_MEMBERS 16u /* of so many each is compared with each */
#define JSON_NUMBER_MAX  64u

typedef struct weir_json_document {
    const char *name, *text;
} weir_json_document;

typedef struct json_tree {
    weir_json_reader reader;
    weir_arena *arena;
    const weir_json_document *document;
    bool full;         /* the arena */
    const char *twice; /* the name that came before; NULL: none */
} json_tree;

static bool json_tree_full(json_tree *tree) {
    tree->full = true;
    return false;
}

/* What a string or name means, ended by 0; NULL: a fault. */
static const char *json_tree_text(json_tree *tree, const weir_json_token *token) {
    char *text = weir_arena_alloc_aligned(tree->arena, 1, token->length + 1);
    if (!text) {
        json_tree_full(tree);
        return NULL;
    }
    size_t length = weir_json_unescape(token, text);
    text[length] = '\0';
    if (memchr(text, '\0', length)) {
        weir_json_fail(&tree->reader, token->bytes, "a string with U+0000 in it");
        return NULL;
    }
    return text;
}

static int json_tree_by_name(const void *x, const void *y) {
    const weir_json_node *const *a = x, *const *b = y;
    int order = strcmp((*a)->name, (*b)->name);
    return order ? order : ((*a)->name_at > (*b)->name_at) - ((*a)->name_at < (*b)->name_at);
}

static bool json_tree_twice(json_tree *tree, const weir_json_node *member) {
    tree->twice = member->name;
    return weir_json_fail(&tree->reader, member->name_at, "a name that came before in the same object");
}

/* A request may have an object of very many members: those are sorted. */
static bool json_tree_names_differ(json_tree *tree, const weir_json_node *object) {
    if (object->count <= JSON_FEW_MEMBERS) {
        for (const weir_json_node *a = object->first; a; a = a->next) {
            for (const weir_json_node *b = a->next; b; b = b->next) {
                if (strcmp(a->name, b->name) == 0) return json_tree_twice(tree, b);
            }
        }
        return true;
    }
    const weir_json_node **nodes = weir_arena_calloc(tree->arena, object->count, sizeof *nodes);
    size_t count = 0;
    if (!nodes) return json_tree_full(tree);
    for (const weir_json_node *node = object->first; node; node = node->next)
        nodes[count++] = node;
    qsort(nodes, count, sizeof *nodes, json_tree_by_name);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(nodes[i - 1]->name, nodes[i]->name) == 0) return json_tree_twice(tree, nodes[i]);
    }
    return true;
}

static bool json_tree_read(json_tree *tree, weir_json_node *node) {
    weir_json_reader *r = &tree->reader;
    weir_json_token name;
    node->document = tree->document;
    node->text = "";
    if (!weir_json_read(r, &node->token)) return false;
    if (node->token.kind == WEIR_JSON_STRING && !(node->text = json_tree_text(tree, &node->token))) return false;
    bool object = node->token.kind == WEIR_JSON_OBJECT;
    if (object || node->token.kind == WEIR_JSON_ARRAY) {
        weir_json_node **link = &node->first;
        while (object ? weir_json_read_name(r, &name) : weir_json_read_item(r)) {
            weir_json_node *inner = *link = weir_arena_calloc(tree->arena, 1, sizeof *inner);
            if (!inner) return json_tree_full(tree);
            if (object) {
                inner->name_at = name.bytes;
                inner->name = json_tree_text(tree, &name);
                if (!inner->name) return false;
            }
            if (!json_tree_read(tree, inner)) return false;
            link = &inner->next;
            node->count++;
        }
    }
    if (r->fault) return false;
    node->span = (size_t)(r->next - node->token.bytes);
    return !object || json_tree_names_differ(tree, node);
}

/* A hostile file shall not steer the terminal of whoever reads the error. */
static void json_printable(char *text) {
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

static weir_err json_not(const char *name, const weir_json_reader *r, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s is not %s: byte %zu: %s", name, what, weir_json_byte(r, r->next), r->fault);
}

weir_err weir_json_parse(const char *name, const char *text, size_t length, unsigned depth_max, weir_arena *arena,
                         const weir_json_node **rootp) {
    json_tree tree = {.reader = weir_json_reader_of(text, length, depth_max), .arena = arena};
    weir_json_document *document = weir_arena_alloc(arena, sizeof *document);
    weir_json_node *root = weir_arena_calloc(arena, 1, sizeof *root);
    *rootp = NULL;
    tree.full = !document || !root;
    if (!tree.full) {
        *document = (weir_json_document){name, text};
        tree.document = document;
        if (json_tree_read(&tree, root) && weir_json_read_end(&tree.reader)) {
            *rootp = root;
            return WEIR_OK;
        }
    }
    if (tree.full) return WEIR_ARENA_ERR(arena, "%s has more in it than can be read", name);
    if (!tree.twice) return json_not(name, &tree.reader, "JSON");
    char twice[65];
    snprintf(twice, sizeof twice, "%s", tree.twice);
    json_printable(twice);
    return WEIR_ERR(WEIR_EDATA, "%s is not JSON: byte %zu: '%s' came before in the same object", name,
                    weir_json_byte(&tree.reader, tree.reader.next), twice);
}

weir_err weir_json_check_object(const char *name, const char *text, size_t length, unsigned depth_max) {
    weir_json_reader r = weir_json_reader_of(text, length, depth_max);
    const weir_json_token object = {.kind = WEIR_JSON_OBJECT};
    if (weir_json_enter(&r, "it does not begin with '{'") && weir_json_skip(&r, &object) && weir_json_read_end(&r))
        return WEIR_OK;
    return json_not(name, &r, "a JSON object");
}

/* --- walking ---------------------------------------------------------------------------------------------------- */

const weir_json_node *weir_json_find(const weir_json_node *object, const char *name) {
    if (!object || object->token.kind != WEIR_JSON_OBJECT) return NULL;
    const weir_json_node *node = object->first;
    while (node && strcmp(node->name, name) != 0)
        node = node->next;
    return node;
}

const char *weir_json_node_text(const weir_json_node *node) {
    return node ? node->text : "";
}

weir_err weir_json_err_make(const weir_err_site *site, const weir_json_node *node, const char *format, ...) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    json_printable(sentence);
    return weir_err_make(site, WEIR_EDATA, "%s, byte %zu: %s", node->document->name,
                         (size_t)(node->token.bytes - node->document->text) + 1, sentence);
}

weir_err weir_json_need(const weir_json_node *object, const char *name, weir_json_kind kind,
                        const weir_json_node **nodep) {
    static const char *const kinds[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
    *nodep = weir_json_find(object, name);
    if (!*nodep) return WEIR_JSON_ERR(object, "'%s' is missing", name);
    return (*nodep)->token.kind == kind ? WEIR_OK : WEIR_JSON_ERR(*nodep, "'%s' is not %s", name, kinds[kind]);
}

weir_err weir_json_node_i64(const weir_json_node *node, int64_t min, int64_t max, int64_t *valuep) {
    if (weir_json_token_i64(&node->token, min, max, valuep)) return WEIR_OK;
    return WEIR_JSON_ERR(node, "'%s' is not a whole number from %lld to %lld", node->name ? node->name : "the item",
                         (long long)min, (long long)max);
}

weir_err weir_json_node_f64(const weir_json_node *node, double *valuep) {
    char number[JSON_NUMBER_MAX];
    const weir_json_token *token = &node->token;
    *valuep = 0;
    if (token->kind == WEIR_JSON_NUMBER && token->length < sizeof number) {
        memcpy(number, token->bytes, token->length);
        number[token->length] = '\0';
        double value = strtod(number, NULL);
        if (isfinite(value)) {
            *valuep = value;
            return WEIR_OK;
        }
    }
    return WEIR_JSON_ERR(node, "'%s' is not a number such as 0.5 or 1e-3", node->name ? node->name : "the item");
}

weir_err weir_json_need_i64(const weir_json_node *object, const char *name, int64_t min, int64_t max, int64_t *valuep) {
    const weir_json_node *node;
    *valuep = min;
    weir_err err = weir_json_need(object, name, WEIR_JSON_NUMBER, &node);
    return err ? err : weir_json_node_i64(node, min, max, valuep);
}

weir_err weir_json_only(const weir_json_node *object, const char *what, const char *const *names) {
    if (object->token.kind != WEIR_JSON_OBJECT) return WEIR_JSON_ERR(object, "%s must be an object", what);
    for (const weir_json_node *node = object->first; node; node = node->next) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], node->name) != 0)
            i++;
        if (!names[i]) return WEIR_JSON_ERR(node, "%s has an unknown member '%.64s'", what, node->name);
    }
    return WEIR_OK;
}

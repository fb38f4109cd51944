/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_fuzz.c - any bytes as JSON: what the reader takes jansson takes too, and it means the same; what it refuses has
 * a place in the text.
 *
 * Only what jansson is known to judge otherwise is left out: numbers that no 64 bits or no double hold, depth, and a
 * byte 0 between values, where it stops reading.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/store/base/json.h>

#define DEPTH_MAX 32u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition) {
    if (!condition) abort();
}

static void same(const weir_json_node *node, const json_t *other) {
    size_t index = 0;
    int64_t number;
    switch (node->token.kind) {
    case WEIR_JSON_NULL:
        must(json_is_null(other));
        break;
    case WEIR_JSON_BOOL:
        must(json_is_boolean(other) && json_is_true(other) == (*node->token.bytes == 't'));
        break;
    case WEIR_JSON_NUMBER:
        must(json_is_number(other));
        if (weir_json_token_i64(&node->token, INT64_MIN, INT64_MAX, &number))
            must(json_is_integer(other) && json_integer_value(other) == number);
        break;
    case WEIR_JSON_STRING:
        must(json_is_string(other) && strcmp(json_string_value(other), node->text) == 0);
        break;
    case WEIR_JSON_ARRAY:
        must(json_is_array(other) && json_array_size(other) == node->count);
        for (const weir_json_node *item = node->first; item; item = item->next)
            same(item, json_array_get(other, index++));
        break;
    case WEIR_JSON_OBJECT:
        must(json_is_object(other) && json_object_size(other) == node->count);
        for (const weir_json_node *member = node->first; member; member = member->next)
            same(member, json_object_get(other, member->name));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    const weir_json_node *root;
    weir_json_token value;
    json_error_t error = {0};
    weir_arena *arena;
    if (weir_arena_open(64u << 20, &arena)) abort();
    weir_err err = weir_json_parse("it", text, size, DEPTH_MAX, arena, &root);
    json_t *other = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    bool apart = json_error_code(&error) == json_error_numeric_overflow || memchr(text, 0, size);
    if (!err && !apart) {
        must(other != NULL);
        same(root, other);
    }
    if (err) {
        weir_json_reader r = weir_json_reader_of(text, size, DEPTH_MAX);
        bool taken = weir_json_read(&r, &value) && weir_json_skip(&r, &value) && weir_json_read_end(&r);
        must(taken ? !r.fault : r.fault && r.next >= text && r.next <= text + size);
        if (taken || strstr(r.fault, "too deep")) apart = true; /* doubled names and U+0000: the tree refuses those */
        must(!other || apart);
    }
    json_decref(other);
    weir_arena_close(arena);
    return 0;
}

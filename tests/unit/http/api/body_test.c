/* SPDX-License-Identifier: Apache-2.0 */
/* What a body says of itself, and what it is told when there is no memory to read it. */
#include <string.h>

#include <weir/store/base/alloc.h>

#include "body.h"
#include "weir_test.h"

static const char good[] = "{\"targets\":[{\"type\":\"payment\",\"key\":\"p1\"}],\"deadline_ms\":50}";

static weir_err read_good(void *context) {
    const weir_json_node *root = NULL;
    weir_arena *arena = NULL;
    (void)context;
    weir_err err = weir_arena_open(65536, &arena);
    if (!err) err = weir_json_parse("the body", good, sizeof good - 1, 8, arena, &root);
    assert_true(!err == (root != NULL));
    weir_arena_close(arena);
    return err;
}

/* A sender must not repeat what is bad, and shall repeat what there was no memory for. */
static void no_memory_is_not_bad_json(void **state) {
    (void)state;
    weir_test_every_allocation(read_good, NULL);
}

static void bad_json_is_bad_also_after_a_want_of_memory(void **state) {
    (void)state;
    const weir_json_node *root;
    weir_arena *arena;
    assert_ok(weir_arena_open(65536, &arena));
    weir_alloc_fail_nth(1);
    assert_err(read_good(NULL), WEIR_ENOMEM, "out of memory");
    assert_err(weir_json_parse("the body", "{\"a\":", 5, 8, arena, &root), WEIR_EDATA, "is not JSON");
    assert_null(root);
    assert_err(weir_json_parse("the body", "{\"a\":1,\"a\":2}", 13, 8, arena, &root), WEIR_EDATA,
               "byte 9: 'a' came before");
    assert_err(weir_json_parse("the body", "[[[[]]]]", 8, 3, arena, &root), WEIR_EDATA, "too deep");
    weir_arena_close(arena);
}

WEIR_TESTS(WEIR_CASE(no_memory_is_not_bad_json), WEIR_CASE(bad_json_is_bad_also_after_a_want_of_memory))

/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a category get numbers in the order in which they are met. */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>

#include <weir/store/base/hash.h>

#include "columns.h"

enum { TEXTS = 300000 };

static size_t text_of(int n, char text[16]) {
    return (size_t)snprintf(text, 16, "%x", n * 7);
}

static int compare_tags(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of so many, a few have one tag in the table: they are other texts all the same. */
static void each_text_has_a_code_of_its_own(void **state) {
    (void)state;
    static uint32_t tags[TEXTS];
    weir_texts texts = {.count = 0};
    uint64_t alike = 0;
    char text[16];
    for (int32_t n = 0, code; n < TEXTS; n++) {
        size_t length = text_of(n, text);
        tags[n] = weir_table_tag(weir_xxh3(text, length, 0));
        assert_int_equal(weir_texts_find(&texts, text, length), -1);
        assert_ok(weir_texts_code(&texts, text, length, &code));
        assert_int_equal(code, n);
    }
    qsort(tags, TEXTS, sizeof tags[0], compare_tags);
    for (int n = 1; n < TEXTS; n++)
        alike += tags[n] == tags[n - 1];
    assert_true(alike > 0);
    for (int32_t n = 0, code; n < TEXTS; n++) {
        size_t length = text_of(n, text);
        assert_int_equal(weir_texts_find(&texts, text, length), n);
        assert_ok(weir_texts_code(&texts, text, length, &code));
        assert_int_equal(code, n);
        assert_int_equal(texts.offsets[n + 1] - texts.offsets[n], length);
    }
    assert_int_equal(texts.count, TEXTS);
    weir_texts_free(&texts);
}

static weir_err code_many(void *context) {
    weir_texts texts = {.count = 0};
    weir_err err = WEIR_OK;
    char text[16];
    (void)context;
    for (int32_t n = 0, code; !err && n < 300; n++) {
        err = weir_texts_code(&texts, text, text_of(n, text), &code);
        assert_int_equal(code, err ? -1 : n);
        if (n) assert_int_equal(weir_texts_find(&texts, "0", 1), 0);
    }
    weir_texts_free(&texts);
    return err;
}

static void every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(code_many, NULL);
}

WEIR_TESTS(WEIR_CASE(each_text_has_a_code_of_its_own), WEIR_CASE(every_allocation))

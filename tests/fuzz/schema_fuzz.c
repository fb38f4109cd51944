/* SPDX-License-Identifier: Apache-2.0 */
/* schema_fuzz.c - any text is refused with a place, or is a schema that prints, reads back and compares as itself. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/schema/schema.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_valid(const weir_schema *schema) {
    weir_buf text = {0}, again = {0};
    weir_schema *back = NULL;
    weir_schema_print(schema, &text);
    WEIR_ASSERT(weir_buf_err(&text) == WEIR_OK);
    WEIR_ASSERT(weir_schema_parse("canonical", text.bytes, text.length, &back) == WEIR_OK);
    weir_schema_print(back, &again);
    WEIR_ASSERT(text.length == again.length && memcmp(text.bytes, again.bytes, text.length) == 0); // SCHEMA-H1
    WEIR_ASSERT(weir_schema_hash(schema) == weir_schema_hash(back));                               // SCHEMA-H2
    WEIR_ASSERT(weir_schema_compatible(schema, back) == WEIR_OK);                                  // SCHEMA-H4
    weir_schema_free(back);
    weir_buf_free(&text);
    weir_buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_schema *schema = NULL;
    weir_err err = weir_schema_parse("f", (const char *)data, size, &schema);
    if (err) {
        char sentence[WEIR_ERR_SENTENCE_MAX];
        weir_err_sentence(err, sentence, sizeof sentence);
        WEIR_ASSERT(weir_err_is(err, WEIR_ECONFIG) && strncmp(sentence, "f:", 2) == 0);
        WEIR_ASSERT(!schema);
        return 0;
    }
    check_valid(schema);
    weir_schema_free(schema);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - JSON read where it stands: first the whole text is checked, then it is walked without a copy.
 *
 * Strict (RFC 8259): one value, UTF-8, no more than WEIR_MODEL_JSON_DEPTH_MAX deep. A name with an escape in it is
 * never found: two spellings of one name are what two programs disagree about.  THREADS: all functions are [any].
 */
#ifndef WEIR_INFERENCE_MODEL_JSON_H
#define WEIR_INFERENCE_MODEL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#define WEIR_MODEL_JSON_DEPTH_MAX 32u

/* Bytes of somebody else's; not ended by 0. */
typedef struct weir_span {
    const char *bytes;
    size_t length;
} weir_span;

/* WEIR_EDATA: the text is not one JSON object; name stands for it in the sentence, which has the byte. */
weir_err weir_model_json_check(const char *name, weir_span text);

/* What follows is for values inside a text that was checked. */

/* Walks an object: the span becomes what is left. name is without its quotes; false at the end. */
bool weir_model_json_member(weir_span *object, weir_span *namep, weir_span *valuep);
/* The same for an array. */
bool weir_model_json_item(weir_span *array, weir_span *valuep);
/* The first member of this name. */
bool weir_model_json_find(weir_span object, const char *name, weir_span *valuep);
/* false: it is no text, or one with an escape. */
bool weir_model_json_text(weir_span value, weir_span *textp);
/* false: it is no whole number from 0 to 2^63 - 1 in plain digits. */
bool weir_model_json_u64(weir_span value, uint64_t *numberp);
bool weir_span_is(weir_span span, const char *text);

#endif /* WEIR_INFERENCE_MODEL_JSON_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - what answers have in common: rows, times and events as JSON. */
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>

#include "private.h"

/* As text: many readers of JSON keep only 53 bits of a number. */
void weir_api_json_event(weir_json *json, const char *key, uint64_t event) {
    char text[16];
    weir_hex_put_u64(text, event);
    weir_json_key_text(json, key, text, sizeof text);
}

void weir_api_json_key_or_null(weir_json *json, const char *key, size_t length) {
    weir_json_key(json, "key");
    if (key)
        weir_json_text(json, key, length);
    else
        weir_json_null(json);
}

void weir_api_json_answer(weir_api *api, uint32_t thread, weir_json *json, weir_http_request *request) {
    weir_api_fresh_member(api, thread, json);
    weir_json_object_end(json);
    weir_buf_byte(json->buf, '\n');
    weir_http_reply(request, 200, "application/json");
}

void weir_api_json_features(weir_json *json, const weir_schema_feature *features, const weir_value_kind *kinds,
                            size_t count, const uint8_t *row, uint32_t row_length) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    WEIR_ASSERT(count <= WEIR_ROW_FEATURES_MAX);
    weir_json_key(json, "features");
    weir_json_object(json);
    if (row && row_length) {
        weir_row_read(kinds, count, row, row_length, values);
        for (size_t i = 0; i < count; i++) {
            const weir_value *value = &values[i];
            if (!value->present) continue;
            switch (kinds[i]) {
            case WEIR_VALUE_NUMBER:
                weir_json_key_f64(json, features[i].name, value->number);
                break;
            case WEIR_VALUE_TIME:
                weir_json_key_time(json, features[i].name, value->time_us);
                break;
            case WEIR_VALUE_CATEGORY:
                weir_json_key_text(json, features[i].name, value->text, value->text_length);
                break;
            }
        }
    }
    weir_json_object_end(json);
}

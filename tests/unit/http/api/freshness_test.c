/* SPDX-License-Identifier: Apache-2.0 */
/* What of freshness could not be written whole is in no answer. */
#include "private.h"
#include "weir_test.h"

static void a_part_of_a_member_fails_the_answer(void **state) {
    (void)state;
    weir_api_fresh fresh = {.made_us = 1};
    weir_api api = {.fresh = &fresh, .fresh_count = 1};
    for (int whole = 0; whole < 2; whole++) {
        weir_buf out = {0};
        weir_json json = weir_json_begin(&out);
        weir_buf_clear(&fresh.member);
        weir_buf_text(&fresh.member, whole ? "{\"payments\":{}}" : "{\"paym");
        if (!whole) fresh.member.failed = WEIR_ENOMEM;
        weir_json_object(&json);
        weir_api_fresh_member(&api, 0, &json);
        weir_json_object_end(&json);
        if (whole)
            assert_string_equal(out.bytes, "{\"freshness\":{\"payments\":{}}}");
        else
            assert_err(weir_buf_err(&out), WEIR_ENOMEM, "");
        weir_buf_free(&out);
    }
    weir_api_fresh_free(&fresh);
}

WEIR_TESTS(WEIR_CASE(a_part_of_a_member_fails_the_answer))

/* SPDX-License-Identifier: Apache-2.0 */
/* masks_test.c - the masks that split vertices, as they are named on a command line. */
#include <string.h>

#include <weir/store/snapshot/snapshot.h>

#include "weir_test.h"

static void names_are(const char *given, const char *first, const char *second, const char *third) {
    char text[WEIR_SNAPSHOT_MASKS_BYTES];
    const char *masks[3];
    assert_ok(weir_snapshot_read_masks(given, text, masks));
    assert_string_equal(masks[0], first);
    assert_string_equal(masks[1], second);
    assert_string_equal(masks[2], third);
}

static void a_split_has_three_masks(void **state) {
    (void)state;
    names_are("split", "split_train", "split_val", "split_test");
    names_are("a,b,c", "a", "b", "c");
}

static void anything_else_is_no_split(void **state) {
    (void)state;
    static const char *const wrong[] = {"", ",", "a,b", "a,b,", ",b,c", "a,,c", "a,b,c,d", "a,b,c,"};
    char text[WEIR_SNAPSHOT_MASKS_BYTES], longest[2 * WEIR_SNAPSHOT_MASKS_BYTES];
    const char *masks[3];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_err(weir_snapshot_read_masks(wrong[i], text, masks), WEIR_EUSAGE,
                   "--masks is the name of a split, or three");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_err(weir_snapshot_read_masks(longest, text, masks), WEIR_EUSAGE, "--masks is the name of a split, or three");
    longest[WEIR_SNAPSHOT_MASKS_BYTES / 3] = 0; /* three times, with their endings, it is too long */
    assert_err(weir_snapshot_read_masks(longest, text, masks), WEIR_EUSAGE, "--masks is the name of a split, or three");
}

WEIR_TESTS(WEIR_CASE(a_split_has_three_masks), WEIR_CASE(anything_else_is_no_split))

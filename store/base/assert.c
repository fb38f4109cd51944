/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/base/assert.h>

_Noreturn void weir_assert_fail(const char *condition, const char *file, int line, const char *function) {
    fprintf(stderr, "weir: assertion failed: %s, in %s at %s:%d\n", condition, function, file, line);
    abort();
}

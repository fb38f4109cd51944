/* SPDX-License-Identifier: Apache-2.0 */
/* assert.c - the last words of a process: one write, nothing that could allocate or take a lock. */
#include <weir/store/base/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void weir_assert_fail(const char *condition, const char *file, int line, const char *function) {
    char text[1024];
    int length =
        snprintf(text, sizeof text, "%s:%d: %s: assertion failed: %s; this is a defect of Weir, please report it\n",
                 file, line, function, condition);
    size_t bytes = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    ssize_t written = write(STDERR_FILENO, text, bytes);
    (void)written; /* a failure cannot be reported any more */
    abort();
}

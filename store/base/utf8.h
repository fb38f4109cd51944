/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - reading bytes of any origin as UTF-8; for json.c and log.c. */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR_UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* The bytes of the first character of text, whose length is not 0. *validp false: they are none, but the longest
 * beginning of one, or a single byte, which together stand for one replacement character. */
size_t weir_utf8_take(const char *text, size_t length, bool *validp);

#endif /* WEIR_BASE_UTF8_H */

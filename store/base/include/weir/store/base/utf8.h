/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - bytes of any origin as UTF-8 (RFC 3629): the one place that says what a character is.
 *
 * Overlong forms, surrogates and what lies above U+10FFFF are not characters.  THREADS: all functions are [any].
 */
#ifndef WEIR_STORE_BASE_UTF8_H
#define WEIR_STORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define WEIR_UTF8_BYTES_MAX   4u             /* of a character */

/* The bytes of the first character of text, whose length is not 0. *validp false: they are not a character, but the
 * longest beginning of one, or a single byte, which together stand for one replacement character. */
size_t weir_utf8_take(const char *text, size_t length, bool *validp);
/* The bytes of the first character of text, whose length is not 0, and its code point; 0: not a character. */
size_t weir_utf8_decode(const char *text, size_t length, uint32_t *codep);
/* Writes a character, at most WEIR_UTF8_BYTES_MAX bytes, and returns the place behind it. */
char *weir_utf8_encode(char *to, uint32_t code);
bool weir_utf8_valid(const char *text, size_t length);
/* Of characters, on one line: no controls, no ends of lines, no marks of byte order, and no last two code points of a
 * plane, which stand for no character. */
bool weir_utf8_printable(const char *text);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_UTF8_H */

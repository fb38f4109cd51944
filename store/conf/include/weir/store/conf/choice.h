/* SPDX-License-Identifier: Apache-2.0 */
/* choice.h - a closed set of words, written "a|b|c" in a table: of settings and of options alike. */
#ifndef WEIR_STORE_CONF_CHOICE_H
#define WEIR_STORE_CONF_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_CHOICES_MAX       32u  /* words in a set                                  */
#define WEIR_CHOICES_BYTES_MAX 256u /* of its text, and of its sentence; ends included */

/* Not to be copied: names point into text. */
typedef struct weir_choices {
    char text[WEIR_CHOICES_BYTES_MAX];
    const char *names[WEIR_CHOICES_MAX];
    size_t count;
} weir_choices;

/* Aborts on a set over the limits: tables are ours.  [any] */
void weir_choices_split(const char *bars, weir_choices *choices);
bool weir_choices_have(const weir_choices *choices, const char *word);
/* "a, b or c"; returns buffer. */
const char *weir_choices_sentence(const weir_choices *choices, char buffer[WEIR_CHOICES_BYTES_MAX]);
/* "; did you mean 'b'?" or nothing; returns buffer. */
const char *weir_choices_nearest(const weir_choices *choices, const char *wrong, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_CONF_CHOICE_H */

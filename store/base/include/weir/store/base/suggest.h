/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - "did you mean": the nearest of the names that are allowed. */
#ifndef WEIR_STORE_BASE_SUGGEST_H
#define WEIR_STORE_BASE_SUGGEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collects the nearest name offered, by edit distance with transpositions; at most a third of the letters
 * may differ, and names of more than 64 bytes are passed over. A plain value.  [owner] */
typedef struct weir_suggest {
    const char *wrong;
    const char *best; /* borrowed from the offer; NULL while nothing is near */
    size_t distance;
} weir_suggest;

weir_suggest weir_suggest_for(const char *wrong);
void weir_suggest_offer(weir_suggest *suggest, const char *name);
/* Writes "; did you mean 'name'?" or nothing; returns buffer. */
const char *weir_suggest_text(const weir_suggest *suggest, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_SUGGEST_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h - a vertex's place among the rising ids of its type. */
#ifndef WEIR_STORE_IDS_H
#define WEIR_STORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/format/id.h>

/* Safe over ids that do not rise, as a damaged file may have them: then what is there may not be found. */
bool weir_ids_find(const weir_vertex_pair *ids, uint64_t count, weir_vertex id, uint64_t *indexp);

#endif /* WEIR_STORE_IDS_H */

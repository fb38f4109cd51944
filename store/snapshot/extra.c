/* SPDX-License-Identifier: Apache-2.0 */
/* extra.c - arrays beside the schema's: matrices and masks, a row a vertex. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "draft.h"
#include "snapshot_private.h"

const weir_vertex_pair *weir_snapshot_draft_ids(const weir_snapshot_draft *draft, uint32_t type, uint64_t *countp) {
    WEIR_ASSERT(type < weir_schema_vertex_count(draft->schema));
    *countp = draft->ids[type].shape[0];
    return draft->ids[type].data;
}

weir_err weir_draft_extra_open(weir_snapshot_draft *draft, uint32_t type, const char *name, uint64_t columns,
                               weir_npy_writer **writerp) {
    *writerp = NULL;
    if (!weir_snapshot_extra_name(name)) {
        return WEIR_ERR(WEIR_EDATA, "'%.64s' cannot name an array; use at most %u letters, digits, _ and -", name,
                        WEIR_SNAPSHOT_EXTRA_NAME_MAX);
    }
    uint32_t others = 0;
    for (uint32_t i = 0; i < draft->extra_count; i++)
        others += draft->extras[i].type == type;
    if (others == WEIR_SNAPSHOT_EXTRAS_MAX)
        return WEIR_ERR(WEIR_ELIMIT,
                        "'%s' is one array too many: vertices of a type have at most %u arrays of matrices and masks; "
                        "leave some out",
                        name, WEIR_SNAPSHOT_EXTRAS_MAX);
    weir_draft_extra *grown = weir_realloc_array(draft->extras, draft->extra_count + 1, sizeof *grown);
    if (grown) draft->extras = grown;
    char *copy = grown ? weir_strdup(name) : NULL;
    if (!copy) return WEIR_NOMEM("for the array %s", name);
    draft->extras[draft->extra_count++] = (weir_draft_extra){copy, type, columns};
    return weir_draft_array(draft, columns ? WEIR_NPY_F32 : WEIR_NPY_BOOL, draft->ids[type].shape[0], columns, writerp,
                            "vertices/%s/%s.%s.npy", weir_schema_vertex_at(draft->schema, type)->name,
                            columns ? "matrix" : "mask", name);
}

static weir_err draft_extra_write(weir_snapshot_draft *draft, uint32_t type, const char *name, uint64_t columns,
                                  const void *rows) {
    weir_npy_writer *writer;
    weir_err err = weir_draft_extra_open(draft, type, name, columns, &writer);
    if (!err) err = weir_npy_write(writer, rows, draft->ids[type].shape[0] * (columns ? columns : 1));
    return weir_npy_writer_end(writer, err);
}

weir_err weir_snapshot_draft_matrix(weir_snapshot_draft *draft, uint32_t type, const char *name, const float *rows,
                                    uint64_t columns) {
    if (columns == 0) return WEIR_ERR(WEIR_EINVAL, "the matrix %s has no column; leave it out", name);
    return draft_extra_write(draft, type, name, columns, rows);
}

weir_err weir_snapshot_draft_mask(weir_snapshot_draft *draft, uint32_t type, const char *name, const uint8_t *rows) {
    return draft_extra_write(draft, type, name, 0, rows);
}

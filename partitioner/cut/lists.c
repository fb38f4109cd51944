/* SPDX-License-Identifier: Apache-2.0 */
/* lists.c - ends of edges as they come, into memory or into files. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cut_private.h"

static const uint32_t lists_none = 0;

weir_err weir_cut_lists_open(uint64_t room, const char *scratch, weir_cut_lists *lists) {
    weir_err err = WEIR_OK;
    *lists = (weir_cut_lists){.room = room};
    for (int i = 0; !err && i < 2; i++) {
        if (scratch) {
            err = weir_scratch_open(scratch, &lists->scratch[i]);
            continue;
        }
        lists->memory[i] = weir_calloc(room + 1, sizeof *lists->memory[i]);
        if (!lists->memory[i]) err = WEIR_NOMEM("for %llu ends of edges", (unsigned long long)room);
    }
    if (err) weir_cut_lists_close(lists);
    return err;
}

weir_err weir_cut_lists_put(weir_cut_lists *lists, uint32_t neighbor, uint32_t weight) {
    WEIR_ASSERT(lists->count < lists->room);
    const uint64_t at = lists->count++;
    if (lists->memory[0]) {
        lists->memory[0][at] = neighbor;
        lists->memory[1][at] = weight;
        return WEIR_OK;
    }
    weir_err err = weir_scratch_write(lists->scratch[0], &neighbor, sizeof neighbor);
    return err ? err : weir_scratch_write(lists->scratch[1], &weight, sizeof weight);
}

weir_err weir_cut_lists_end(weir_cut_lists *lists) {
    const void *mapped[2] = {lists->memory[0], lists->memory[1]};
    weir_err err = WEIR_OK;
    for (int i = 0; !err && i < 2; i++) {
        if (lists->scratch[i]) {
            err = weir_scratch_map(lists->scratch[i], &mapped[i]);
        } else if (lists->count < lists->room) {
            uint32_t *shorter = weir_realloc_array(lists->memory[i], lists->count + 1, sizeof *shorter);
            if (shorter) mapped[i] = lists->memory[i] = shorter; /* else it stays as long as it is */
        }
    }
    /* Of no ends nothing is mapped, and METIS takes NULL for weights that are all 1. */
    lists->neighbors = mapped[0] ? mapped[0] : &lists_none;
    lists->edge_weights = mapped[1] ? mapped[1] : &lists_none;
    return err;
}

void weir_cut_lists_in_order(const weir_cut_lists *lists, bool in_order) {
    for (int i = 0; i < 2; i++)
        if (lists->scratch[i]) weir_scratch_in_order(lists->scratch[i], in_order);
}

void weir_cut_lists_close(weir_cut_lists *lists) {
    for (int i = 0; i < 2; i++) {
        weir_free(lists->memory[i]);
        weir_scratch_close(lists->scratch[i]);
    }
    *lists = (weir_cut_lists){0};
}

const char *weir_cut_scratch_for(const weir_cut_opts *opts, uint64_t ends) {
    weir_alloc_stats stats;
    if (!opts->scratch) return NULL;
    weir_alloc_stats_get(&stats);
    return stats.live_bytes + ends * WEIR_CUT_END_BYTES > opts->live_bytes ? opts->scratch : NULL;
}

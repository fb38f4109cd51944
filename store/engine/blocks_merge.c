/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_merge.c - see blocks_merge.h. The fronts of the runs are the leaves of a tree of which each inner node keeps
 * the loser of the two that met there: the next record takes one comparison a level, from its leaf to the root.
 */
#include "blocks_merge.h"

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>

#include "blocks.h"

typedef struct merge_run {
    const weir_blocks_merge_file *next, *end; /* files that it has not been in */
    const weir_blocks_merge_file *file;       /* the one that it is in         */
    weir_blocks *blocks;
    weir_blocks_walk walk;
    uint64_t begin; /* the first bytes of the key as a number, in the order of keys; all ones at the end, too */
    uint64_t sequence;
} merge_run;

struct weir_blocks_merge {
    merge_run *runs;
    size_t count;
    size_t *losers; /* of each inner node; [0] is the winner of all */
    bool begun, has_last;
    size_t last_length;
    uint8_t last[WEIR_BLOCKS_KEY_MAX];
};

static bool merge_is_over(const merge_run *run) {
    return !run->walk.at.valid;
}

/* Whether a's record comes before b's: of the same key the one that was written last. */
static bool merge_is_before(const merge_run *a, const merge_run *b) {
    if (a->begin != b->begin) return a->begin < b->begin;
    if (merge_is_over(a) || merge_is_over(b)) return !merge_is_over(a);
    const weir_blocks_cursor *x = &a->walk.at, *y = &b->walk.at;
    int order = weir_blocks_compare(x->key, x->key_length, y->key, y->key_length);
    return order ? order < 0 : a->sequence > b->sequence;
}

static weir_err merge_next_file(merge_run *run) {
    weir_blocks_close(run->blocks);
    run->blocks = NULL;
    run->file = run->next++;
    weir_err err = weir_blocks_open(run->file->path, run->file->in_parts, &run->blocks);
    if (!err) weir_blocks_walk_enter(&run->walk, run->blocks);
    return err;
}

static weir_err merge_step(merge_run *run) {
    weir_err err = run->blocks ? weir_blocks_walk_next(&run->walk) : WEIR_OK;
    while (!err && !run->walk.at.valid && run->next < run->end) {
        err = merge_next_file(run);
        if (!err) err = weir_blocks_walk_next(&run->walk);
    }
    run->begin = UINT64_MAX;
    if (err || merge_is_over(run)) return err;
    const weir_blocks_cursor *at = &run->walk.at;
    run->begin = weir_blocks_begin_of(at->key, at->key_length);
    run->sequence = run->file->has_sequence ? run->file->sequence : weir_get_u64(at->key + at->key_length) >> 8;
    return WEIR_OK;
}

/* From a leaf, whose front is new, to the root. */
static void merge_play(weir_blocks_merge *merge, size_t leaf) {
    size_t winner = leaf;
    for (size_t node = (leaf + merge->count) / 2; node > 0; node /= 2) {
        if (!merge_is_before(&merge->runs[merge->losers[node]], &merge->runs[winner])) continue;
        size_t loser = winner;
        winner = merge->losers[node];
        merge->losers[node] = loser;
    }
    merge->losers[0] = winner;
}

/* The winner of the leaves under a node; those below it are played first. */
static size_t merge_play_all(weir_blocks_merge *merge, size_t node) {
    if (node >= merge->count) return node - merge->count;
    size_t left = merge_play_all(merge, 2 * node), right = merge_play_all(merge, 2 * node + 1);
    bool is_left = merge_is_before(&merge->runs[left], &merge->runs[right]);
    merge->losers[node] = is_left ? right : left;
    return is_left ? left : right;
}

static weir_err merge_begin(weir_blocks_merge *merge) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < merge->count; i++)
        err = merge_step(&merge->runs[i]);
    if (!err) merge->losers[0] = merge->count > 1 ? merge_play_all(merge, 1) : 0;
    merge->begun = true;
    return err;
}

weir_err weir_blocks_merge_open(const weir_blocks_merge_file *files, size_t count, weir_blocks_merge **mergep) {
    *mergep = NULL;
    WEIR_ASSERT(count > 0 && files[0].run == 0);
    weir_blocks_merge *merge = weir_calloc(1, sizeof *merge);
    if (!merge) return WEIR_NOMEM("while merging %s", files[0].path);
    merge->count = files[count - 1].run + 1;
    merge->runs = weir_calloc(merge->count, sizeof *merge->runs);
    merge->losers = weir_calloc(merge->count, sizeof *merge->losers);
    if (!merge->runs || !merge->losers) {
        weir_blocks_merge_close(merge);
        return WEIR_NOMEM("while merging %s", files[0].path);
    }
    for (size_t i = 0; i < count; i++) {
        merge_run *run = &merge->runs[files[i].run];
        if (!run->next) run->next = files + i;
        run->end = files + i + 1;
    }
    *mergep = merge;
    return WEIR_OK;
}

weir_err weir_blocks_merge_next(weir_blocks_merge *merge, weir_engine_record *recordp, bool *foundp) {
    weir_err err = merge->begun ? WEIR_OK : merge_begin(merge);
    *foundp = false;
    while (!err && !*foundp) {
        merge_run *run = &merge->runs[merge->losers[0]];
        const weir_blocks_cursor *at = &run->walk.at;
        if (merge->has_last) { /* it still stands where it was told of */
            err = merge_step(run);
            if (!err) merge_play(merge, merge->losers[0]);
            run = &merge->runs[merge->losers[0]];
            at = &run->walk.at;
        }
        if (err || merge_is_over(run)) break;
        int order = merge->has_last ? weir_blocks_compare(at->key, at->key_length, merge->last, merge->last_length) : 1;
        if (order < 0) err = WEIR_ERR(WEIR_ECORRUPT, "the keys of %s are not in order", run->file->path);
        *foundp = order > 0;
        merge->has_last = true;
        if (!*foundp) continue;
        memcpy(merge->last, at->key, at->key_length);
        merge->last_length = at->key_length;
        *recordp = (weir_engine_record){at->key, at->value, at->key_length, at->value_length, run->sequence};
    }
    return err;
}

void weir_blocks_merge_close(weir_blocks_merge *merge) {
    if (!merge) return;
    for (size_t i = 0; merge->runs && i < merge->count; i++) {
        weir_blocks_walk_end(&merge->runs[i].walk);
        weir_blocks_close(merge->runs[i].blocks);
    }
    weir_free(merge->runs);
    weir_free(merge->losers);
    weir_free(merge);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - a user's vector from what it has met, and the items that its product with is largest. */
#include <math.h>
#include <string.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/assert.h>

#include "model_private.h"

bool weir_recommend_query(const weir_recommend_shape *shape, const weir_recommend_tables *tables,
                          const weir_recommend_user *user, double *sums, float *query) {
    const uint32_t width = shape->width;
    double degree = 0, square = 0;
    for (uint32_t c = 0; c < width; c++)
        sums[c] = 0;
    for (uint32_t i = 0; i < user->count; i++) { // RECOMMEND-R1
        const float *sum = tables->item_sums + user->items[i] * width;
        degree += user->weights[i];
        for (uint32_t c = 0; c < width; c++)
            sums[c] += user->weights[i] * (double)sum[c];
    }
    for (uint32_t c = 0; c < width; c++) {
        if (degree > 0) sums[c] /= sqrt(degree);
        if (user->own) sums[c] += (double)user->own[c];
        sums[c] /= shape->layers + 1;
        square += sums[c] * sums[c];
    }
    /* So short a vector says nothing, and its length could not be divided by. */
    const bool known = square > 1e-30;
    const double scale = !known ? 0 : shape->cosine ? 1 / sqrt(square) : 1;
    for (uint32_t c = 0; c < width; c++)
        query[c] = (float)(sums[c] * scale);
    return known;
}

/* --- the best ----------------------------------------------------------------------------------------------------- */

/* Whether a is to stand behind b: RECOMMEND-R3. */
static bool top_is_worse(const weir_recommend_best *a, const weir_recommend_best *b) {
    return a->score < b->score || (a->score == b->score && a->item > b->item);
}

/* heap[0] is the worst of those kept. */
static void top_sift_down(weir_recommend_best *heap, uint32_t count, uint32_t at) {
    const weir_recommend_best moved = heap[at];
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && top_is_worse(&heap[child + 1], &heap[child])) child++;
        if (!top_is_worse(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

void weir_recommend_top_offer(weir_recommend_best *heap, uint32_t limit, uint32_t *countp,
                              const weir_recommend_best *one) {
    if (*countp == limit) {
        if (!top_is_worse(&heap[0], one)) return;
        heap[0] = *one;
        top_sift_down(heap, limit, 0);
        return;
    }
    uint32_t at = (*countp)++;
    for (; at > 0 && top_is_worse(one, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = *one;
}

/* Takes the worst off the heap again and again, to the end of what is left. */
void weir_recommend_top_sort(weir_recommend_best *heap, uint32_t count) {
    for (uint32_t left = count; left > 1; left--) {
        const weir_recommend_best worst = heap[0];
        heap[0] = heap[left - 1];
        top_sift_down(heap, left - 1, 0);
        heap[left - 1] = worst;
    }
}

void weir_recommend_top(const weir_recommend_search *s, weir_recommend_best *best, uint32_t *best_counts) {
    const weir_kernels *kernels = weir_kernels_cpu();
    WEIR_ASSERT(s->count > 0 && s->limit > 0);
    memset(best_counts, 0, s->count * sizeof *best_counts);
    for (uint64_t begin = 0; begin < s->item_count; begin += WEIR_RECOMMEND_PIECE) {
        const uint64_t left = s->item_count - begin;
        const uint32_t items = left < WEIR_RECOMMEND_PIECE ? (uint32_t)left : WEIR_RECOMMEND_PIECE;
        if (s->count == 1)
            kernels->row_products(kernels, items, s->width, s->items + begin * s->width, s->queries, s->scores);
        else
            kernels->gemm(kernels, &(weir_gemm){.m = s->count,
                                                .n = items,
                                                .k = s->width,
                                                .b_transposed = true,
                                                .a = s->queries,
                                                .lda = s->width,
                                                .b = s->items + begin * s->width,
                                                .ldb = s->width,
                                                .c = s->scores,
                                                .ldc = items});
        for (uint32_t q = 0; q < s->count; q++) {
            weir_recommend_best *heap = best + (size_t)q * s->limit;
            const float *scores = s->scores + (size_t)q * items;
            const uint64_t *skipped = s->skipped[q];
            uint32_t low = 0, high = s->skipped_counts[q];
            while (low < high) { /* the first that is not before this piece */
                uint32_t middle = low + (high - low) / 2;
                if (skipped[middle] < begin)
                    low = middle + 1;
                else
                    high = middle;
            }
            for (uint32_t i = 0; i < items; i++) {
                const weir_recommend_best one = {begin + i, scores[i] + s->trend_weights[q] * s->trends[begin + i]};
                if (low < s->skipped_counts[q] && skipped[low] == begin + i) { // RECOMMEND-R4
                    low++;
                    continue;
                }
                weir_recommend_top_offer(heap, s->limit, &best_counts[q], &one);
            }
        }
    }
    for (uint32_t q = 0; q < s->count; q++)
        weir_recommend_top_sort(best + (size_t)q * s->limit, best_counts[q]);
}

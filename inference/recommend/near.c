/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.c - see near.h.
 *
 *   layer 2        a ─────────────── b            few items, far apart: where a walk begins
 *   layer 1        a ─── c ───────── b ─── d
 *   layer 0        every item, each linked to at most 32 near ones in different directions
 */
#include "near.h"

#include <math.h>
#include <string.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#define NEAR_LINKS       16u /* of an item and layer; twice as many in layer 0 */
#define NEAR_LAYERS      16u
#define NEAR_BUILD_LOOK  100u /* items that an insertion keeps in sight */
#define NEAR_SEARCH_LOOK 300u /* that a search keeps, at least          */
#define NEAR_ABREAST     64u  /* that a walk in the layers above keeps */
#define NEAR_BETWEEN     64u  /* items between two looks whether to stop */
#define NEAR_NO_MEMORY   "for an index of items to recommend"

typedef struct near_found {
    float score;
    uint32_t row;
} near_found;

struct weir_near {
    weir_near_items of;
    float *lengthening;         /* of each item the number that makes all equally long */
    uint32_t *lowest;           /* layer 0: of each item how many links, then room for 2 * NEAR_LINKS */
    uint32_t *upper;            /* layers above it: the same with NEAR_LINKS, layer after layer of an item */
    size_t *upper_at;           /* where an item's begin */
    uint8_t *layers;            /* the highest that an item is in */
    uint32_t entry, top, count; /* count: that are in it */
};

struct weir_near_searcher {
    uint32_t *seen, stamp; /* of the search that saw an item last */
    uint32_t items, look_max;
    near_found *open, *kept;
};

/* --- scores ------------------------------------------------------------------------------------------------------ */

static const float *near_row(const weir_near *n, uint32_t row) {
    return n->of.items + (size_t)row * n->of.width;
}

static float near_product(const weir_near *n, const float *query, uint32_t row) {
    float product;
    weir_kernels_cpu()->row_products(weir_kernels_cpu(), 1, n->of.width, near_row(n, row), query, &product);
    return product;
}

/* What is sought is a query, or an item that is being put in. */
typedef struct near_sought {
    const float *query;
    float trend, lengthening; /* of a query 1 and 0 */
} near_sought;

static near_sought near_item(const weir_near *n, uint32_t row) {
    return (near_sought){near_row(n, row), n->of.trend_weight * n->of.trends[row], n->lengthening[row]};
}

static float near_score(const weir_near *n, const near_sought *sought, uint32_t row) {
    return near_product(n, sought->query, row) + sought->trend * n->of.trend_weight * n->of.trends[row] +
           sought->lengthening * n->lengthening[row];
}

/* --- heaps: with sign 1 the highest score is on top, with -1 the lowest ------------------------------------------ */

static bool near_above(const near_found *a, const near_found *b, int sign) {
    return sign > 0 ? a->score > b->score : a->score < b->score;
}

static void near_push(near_found *heap, uint32_t *countp, near_found one, int sign) {
    uint32_t at = (*countp)++;
    for (; at > 0 && near_above(&one, &heap[(at - 1) / 2], sign); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = one;
}

static near_found near_pop(near_found *heap, uint32_t *countp, int sign) {
    const near_found top = heap[0], moved = heap[--*countp];
    uint32_t at = 0;
    for (uint32_t child = 1; child < *countp; child = 2 * at + 1) {
        if (child + 1 < *countp && near_above(&heap[child + 1], &heap[child], sign)) child++;
        if (!near_above(&heap[child], &moved, sign)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return top;
}

/* --- walks ------------------------------------------------------------------------------------------------------- */

/* An item's links in a layer: how many, and then they. */
static uint32_t *near_links(const weir_near *n, uint32_t row, uint32_t layer) {
    if (layer == 0) return n->lowest + (size_t)row * (2 * NEAR_LINKS + 1);
    return n->upper + n->upper_at[row] + (size_t)(layer - 1) * (NEAR_LINKS + 1);
}

/* The best `look` items that a walk in this layer meets stay in searcher->kept, the lowest on top; returns how many. It
 * begins at those that are there, and ends where nothing that is still to be looked at could be one of the best. */
static uint32_t near_walk(const weir_near *n, weir_near_searcher *s, const near_sought *sought, uint32_t kept,
                          uint32_t layer, uint32_t look) {
    uint32_t open = 0;
    if (++s->stamp == 0) {
        memset(s->seen, 0, s->items * sizeof *s->seen);
        s->stamp = 1;
    }
    WEIR_ASSERT(kept > 0 && kept <= look && look <= s->look_max && n->of.count <= s->items);
    for (uint32_t i = 0; i < kept; i++) {
        s->seen[s->kept[i].row] = s->stamp;
        near_push(s->open, &open, s->kept[i], 1);
    }
    while (open) {
        const near_found one = near_pop(s->open, &open, 1);
        if (kept == look && one.score < s->kept[0].score) break;
        const uint32_t *links = near_links(n, one.row, layer);
        for (uint32_t i = 1; i <= links[0]; i++) {
            if (s->seen[links[i]] == s->stamp) continue;
            s->seen[links[i]] = s->stamp;
            const near_found next = {near_score(n, sought, links[i]), links[i]};
            if (kept == look && next.score <= s->kept[0].score) continue;
            if (kept == look) (void)near_pop(s->kept, &kept, -1);
            near_push(s->kept, &kept, next, -1);
            near_push(s->open, &open, next, 1);
        }
    }
    return kept;
}

/* From the entry down to the layer above `to`, several items abreast: one alone may come to stand among items that are
 * near each other and far from the best. Returns how many are kept to go on from. */
static uint32_t near_descend(const weir_near *n, weir_near_searcher *s, const near_sought *sought, uint32_t to) {
    uint32_t kept = 1;
    s->kept[0] = (near_found){near_score(n, sought, n->entry), n->entry};
    for (uint32_t layer = n->top; layer > to; layer--)
        kept = near_walk(n, s, sought, kept, layer, NEAR_ABREAST);
    return kept;
}

/* --- building ---------------------------------------------------------------------------------------------------- */

/* Of found items, the highest first, those that are nearer to the item than to any that was chosen before: links in
 * different directions. Returns how many, at most `most`; they are in found's first places. */
static uint32_t near_choose(const weir_near *n, near_found *found, uint32_t count, uint32_t most) {
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < count && chosen < most; i++) {
        const near_sought one = near_item(n, found[i].row);
        bool apart = true;
        for (uint32_t c = 0; apart && c < chosen; c++)
            apart = near_score(n, &one, found[c].row) <= found[i].score;
        if (apart) found[chosen++] = found[i];
    }
    return chosen;
}

/* Sorts a heap whose lowest is on top: the highest first. */
static void near_sort(near_found *heap, uint32_t count) {
    for (uint32_t left = count; left > 1;) {
        const near_found lowest = near_pop(heap, &left, -1);
        heap[left] = lowest;
    }
}

/* Adds a link from `row` to `to`; if it has as many as it may, the ones that are chosen stay. */
static void near_link(const weir_near *n, uint32_t row, uint32_t to, float score, uint32_t layer) {
    const uint32_t most = layer ? NEAR_LINKS : 2 * NEAR_LINKS;
    uint32_t *links = near_links(n, row, layer), count = 0;
    near_found found[2 * NEAR_LINKS + 1];
    if (links[0] < most) {
        links[++links[0]] = to;
        return;
    }
    const near_sought own = near_item(n, row);
    near_push(found, &count, (near_found){score, to}, -1);
    for (uint32_t i = 1; i <= links[0]; i++)
        near_push(found, &count, (near_found){near_score(n, &own, links[i]), links[i]}, -1);
    near_sort(found, count);
    links[0] = near_choose(n, found, count, most);
    for (uint32_t i = 0; i < links[0]; i++)
        links[i + 1] = found[i].row;
}

static void near_insert(weir_near *n, weir_near_searcher *s, uint32_t row) {
    const near_sought sought = near_item(n, row);
    if (n->count++ == 0) {
        n->entry = row;
        n->top = n->layers[row];
        return;
    }
    uint32_t kept = near_descend(n, s, &sought, n->layers[row]);
    for (uint32_t layer = n->layers[row] < n->top ? n->layers[row] : n->top;; layer--) {
        near_found found[NEAR_BUILD_LOOK];
        uint32_t *links = near_links(n, row, layer);
        kept = near_walk(n, s, &sought, kept, layer, NEAR_BUILD_LOOK);
        memcpy(found, s->kept, kept * sizeof *found);
        near_sort(found, kept);
        links[0] = near_choose(n, found, kept, NEAR_LINKS);
        for (uint32_t i = 0; i < links[0]; i++) {
            links[i + 1] = found[i].row;
            near_link(n, found[i].row, row, found[i].score, layer);
        }
        if (layer == 0) break;
    }
    if (n->layers[row] <= n->top) return;
    n->entry = row;
    n->top = n->layers[row];
}

static weir_err near_unwanted(void) {
    return WEIR_ERR(WEIR_ECANCELLED, "an index of items is not wanted any more");
}

/* How high each item stands, one of 16 in layer 1 and one of 256 in layer 2; and what it lacks of the longest one. */
static weir_err near_prepare(weir_near *n, bool (*stopped)(void *context), void *context) {
    const uint32_t count = n->of.count;
    size_t upper = 0;
    float longest = 0;
    n->layers = weir_calloc((size_t)count + 1, sizeof *n->layers);
    n->upper_at = weir_calloc((size_t)count + 1, sizeof *n->upper_at);
    n->lengthening = weir_calloc((size_t)count + 1, sizeof *n->lengthening);
    n->lowest = weir_calloc((size_t)count + 1, (2 * NEAR_LINKS + 1) * sizeof *n->lowest);
    if (!n->layers || !n->upper_at || !n->lengthening || !n->lowest) return WEIR_NOMEM(NEAR_NO_MEMORY);
    for (uint32_t i = 0; i < count; i++) {
        if (i % NEAR_BETWEEN == 0 && stopped(context)) return near_unwanted();
        weir_rng rng = weir_rng_stream(1, i, 0);
        const double layer = -log(1 - weir_rng_double(&rng)) / log(NEAR_LINKS);
        const float trend = n->of.trend_weight * n->of.trends[i];
        n->layers[i] = (uint8_t)fmin(layer, NEAR_LAYERS - 1);
        n->upper_at[i] = upper;
        upper += (size_t)n->layers[i] * (NEAR_LINKS + 1);
        n->lengthening[i] = near_product(n, near_row(n, i), i) + trend * trend;
        if (n->lengthening[i] > longest) longest = n->lengthening[i];
    }
    for (uint32_t i = 0; i < count; i++)
        n->lengthening[i] = sqrtf(longest - n->lengthening[i]);
    n->upper = weir_calloc(upper + 1, sizeof *n->upper);
    return n->upper ? WEIR_OK : WEIR_NOMEM(NEAR_NO_MEMORY);
}

weir_err weir_near_build(const weir_near_items *items, bool (*stopped)(void *context), void *context,
                         weir_near **nearp) {
    weir_near_searcher *searcher = NULL;
    *nearp = NULL;
    weir_near *n = weir_calloc(1, sizeof *n);
    if (!n) return WEIR_NOMEM(NEAR_NO_MEMORY);
    n->of = *items;
    weir_err err = near_prepare(n, stopped, context);
    if (!err) err = weir_near_searcher_open(items->count, NEAR_BUILD_LOOK, &searcher);
    for (uint32_t i = 0; !err && i < items->count; i++) {
        if (i % NEAR_BETWEEN == 0 && stopped(context))
            err = near_unwanted();
        else
            near_insert(n, searcher, i);
    }
    weir_near_searcher_close(searcher);
    if (err) {
        weir_near_free(n);
        return err;
    }
    *nearp = n;
    return WEIR_OK;
}

void weir_near_free(weir_near *near) {
    if (!near) return;
    weir_free(near->lengthening);
    weir_free(near->lowest);
    weir_free(near->upper);
    weir_free(near->upper_at);
    weir_free(near->layers);
    weir_free(near);
}

/* --- searching --------------------------------------------------------------------------------------------------- */

weir_err weir_near_searcher_open(uint32_t items, uint32_t wanted_max, weir_near_searcher **searcherp) {
    *searcherp = NULL;
    weir_near_searcher *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(NEAR_NO_MEMORY);
    s->items = items;
    s->look_max = wanted_max > NEAR_SEARCH_LOOK ? wanted_max : NEAR_SEARCH_LOOK;
    s->seen = weir_calloc((size_t)items + 1, sizeof *s->seen);
    /* What is open was kept when it was met, but can be more than what is kept now: an item is met once. */
    s->open = weir_calloc((size_t)items + 1, sizeof *s->open);
    s->kept = weir_calloc((size_t)s->look_max + 1, sizeof *s->kept);
    if (!s->seen || !s->open || !s->kept) {
        weir_near_searcher_close(s);
        return WEIR_NOMEM(NEAR_NO_MEMORY);
    }
    *searcherp = s;
    return WEIR_OK;
}

void weir_near_searcher_close(weir_near_searcher *searcher) {
    if (!searcher) return;
    weir_free(searcher->seen);
    weir_free(searcher->open);
    weir_free(searcher->kept);
    weir_free(searcher);
}

uint32_t weir_near_search(const weir_near *n, weir_near_searcher *s, const float *query, uint32_t wanted,
                          uint64_t *rows) {
    const near_sought sought = {query, 1, 0};
    const uint32_t look = wanted > NEAR_SEARCH_LOOK ? wanted : NEAR_SEARCH_LOOK;
    if (n->count == 0) return 0;
    uint32_t kept = near_descend(n, s, &sought, 0);
    kept = near_walk(n, s, &sought, kept, 0, look);
    while (kept > wanted)
        (void)near_pop(s->kept, &kept, -1);
    for (uint32_t i = 0; i < kept; i++)
        rows[i] = s->kept[i].row;
    return kept;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundling.c - which entries of a vertex lie in one bundle.
 *
 *   named    one bundle: the name, and every list that is short
 *   else     each list in bundles of about the same size, newest first within each span
 */
#include "bundling.h"

#include <weir/store/base/assert.h>

/* Lists that are one bundle, as most are in a seal and many in a merged file, are of all widths: they share few spans,
 * because a reader seeks once for each, and passing some bundles in vain costs less. */
#define LONE_SPANS      2u /* only each second span … */
#define LONE_SPAN_LEAST 4u /* … from about a second on */
#define SPANS_BOUNDED   (WEIR_BUNDLE_SPANS - 1u)
#define FEW_BUNDLES     4u /* that a reader of the past may have to pass in vain */
#define SPANS_ALIKE     2u /* a bundle may be so many spans wider than the least of its list, and yet have its span */

static weir_err bundling_end(weir_bundling *b, weir_bundle_key of) {
    uint8_t key[WEIR_BUNDLE_KEY_BYTES];
    weir_err err = weir_bundle_end(&b->bundle, of, key);
    return err ? err : b->visit(b->context, key, sizeof key, (uint8_t *)b->bundle.value.bytes, b->bundle.value.length);
}

static bool bundling_is_short(const weir_bundling_list *l) {
    size_t row_bytes = 0;
    for (uint32_t i = 0; l->count <= WEIR_BUNDLE_SHORT && i < l->count; i++)
        row_bytes += l->entries[i].row_length;
    return l->count <= WEIR_BUNDLE_SHORT && row_bytes <= WEIR_BUNDLE_SHORT_ROWS;
}

static uint8_t bundling_lone_span(uint8_t span) {
    unsigned lone = (span + LONE_SPANS - 1) / LONE_SPANS * LONE_SPANS;
    if (lone < LONE_SPAN_LEAST) return LONE_SPAN_LEAST;
    return (uint8_t)(lone < WEIR_BUNDLE_SPANS ? lone : WEIR_BUNDLE_SPANS - 1);
}

static weir_err bundling_name(weir_bundling *b, weir_vertex vertex, const weir_name *name,
                              const weir_bundling_list *lists, size_t count) {
    int64_t newest_us = INT64_MIN, oldest_us = INT64_MAX;
    for (const weir_bundling_list *l = lists; l < lists + count; l++) {
        if (l->count == 0 || !bundling_is_short(l)) continue;
        if (l->entries[l->count - 1].time_us > newest_us) newest_us = l->entries[l->count - 1].time_us;
        if (l->entries[0].time_us < oldest_us) oldest_us = l->entries[0].time_us;
    }
    if (newest_us < oldest_us) newest_us = oldest_us = name->time_us;
    weir_bundle_begin(&b->bundle, newest_us, oldest_us);
    weir_bundle_put_name(&b->bundle, name);
    for (const weir_bundling_list *l = lists; l < lists + count; l++) {
        if (l->count == 0 || !bundling_is_short(l)) continue;
        weir_bundle_put_list(&b->bundle, l->id, l->count);
        for (uint32_t i = l->count; i > 0; i--)
            weir_bundle_put(&b->bundle, l->id, &l->entries[i - 1]);
    }
    const uint8_t span = bundling_lone_span(weir_bundle_span(newest_us, oldest_us));
    return bundling_end(b, (weir_bundle_key){.vertex = vertex, .part = WEIR_BUNDLE_NAMED, .span = span});
}

static uint8_t bundling_span_at(const weir_bundling_list *l, uint32_t begin, uint32_t end) {
    return weir_bundle_span(l->entries[end - 1].time_us, l->entries[begin].time_us);
}

/* Where the bundle begins that ends before `end`: of what lies there, oldest first, the newest. Of a long list none is
 * wider than the last span that has a bound: a reader of the past would have to pass all that are newer. */
static uint32_t bundling_begin(const weir_bundling_list *l, uint32_t end) {
    WEIR_ASSERT(end > 0);
    const bool is_long = l->count > FEW_BUNDLES * WEIR_BUNDLE_ENTRIES_MAX;
    uint32_t bundles = (end + WEIR_BUNDLE_ENTRIES_MAX - 1) / WEIR_BUNDLE_ENTRIES_MAX, begin = end - 1;
    uint32_t share = (end + bundles - 1) / bundles;
    size_t row_bytes = l->entries[begin].row_length;
    while (begin > 0 && end - begin < share && row_bytes < WEIR_BUNDLE_ROWS_MAX &&
           (!is_long || bundling_span_at(l, begin - 1, end) < SPANS_BOUNDED))
        row_bytes += l->entries[--begin].row_length;
    return begin;
}

uint32_t weir_bundling_count(const weir_bundling_list *list) {
    uint32_t count = 0;
    for (uint32_t end = list->count; end > 0; end = bundling_begin(list, end))
        count++;
    return count;
}

/* A reader seeks once for each span, so bundles about as wide as each other have one; a wide one, of an entry that came
 * late, keeps its own, for that says how far ahead a reader of the past must begin. */
static uint8_t bundling_common_span(const weir_bundling_list *l) {
    uint8_t least = WEIR_BUNDLE_SPANS, common = 0;
    for (uint32_t begin, end = l->count; end > 0; end = begin) {
        begin = bundling_begin(l, end);
        if (bundling_span_at(l, begin, end) < least) least = bundling_span_at(l, begin, end);
    }
    for (uint32_t begin, end = l->count; end > 0; end = begin) {
        begin = bundling_begin(l, end);
        uint8_t span = bundling_span_at(l, begin, end);
        if (span <= least + SPANS_ALIKE && span > common) common = span;
    }
    return l->count <= WEIR_BUNDLE_ENTRIES_MAX ? bundling_lone_span(common) : common;
}

/* Bundles sort by span: each that the list has is a pass over it, but nearly all lists are one bundle. */
static weir_err bundling_list(weir_bundling *b, weir_vertex vertex, const weir_bundling_list *l) {
    const uint8_t common = bundling_common_span(l);
    weir_err err = WEIR_OK;
    uint32_t left = l->count;
    for (uint8_t span = common, next; !err && left > 0; span = next) {
        weir_bundle_key of = {.vertex = vertex, .part = WEIR_BUNDLE_PART(l->id), .span = span};
        next = WEIR_BUNDLE_SPANS;
        for (uint32_t begin, end = l->count; !err && end > 0; end = begin) {
            begin = bundling_begin(l, end);
            uint8_t wide = bundling_span_at(l, begin, end);
            if (wide > span && wide < next) next = wide;
            if ((wide > common ? wide : common) != span) continue;
            weir_bundle_begin(&b->bundle, l->entries[end - 1].time_us, l->entries[begin].time_us);
            for (uint32_t i = end; i > begin; i--) /* newest first */
                weir_bundle_put(&b->bundle, l->id, &l->entries[i - 1]);
            err = bundling_end(b, of);
            of.turn++;
            WEIR_ASSERT(begin < end && end - begin <= left);
            left -= end - begin;
        }
    }
    return err;
}

weir_err weir_bundling_vertex(weir_bundling *bundling, weir_vertex vertex, const weir_name *name,
                              const weir_bundling_list *lists, size_t count) {
    weir_err err = name ? bundling_name(bundling, vertex, name, lists, count) : WEIR_OK;
    for (const weir_bundling_list *l = lists; !err && l < lists + count; l++)
        if (!name || !bundling_is_short(l)) err = bundling_list(bundling, vertex, l);
    return err;
}

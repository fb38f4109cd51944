/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - see blocks.h. Every length comes from a file, so each is held against what is there before it is used. */
#include "blocks.h"

#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/poison.h>

#include "blocks_format.h"

#define INDEX_BLOCK_MAX (64u << 20)
#define BLOCK_BYTES_MAX (1u << 24) /* so that place and length are one number */
#define OFFSET_MAX      ((uint64_t)1 << 40)
#define ROOM_SPARE      4u /* blocks differ a little in size */

#define GUESSES     4u /* of where a key lies: each leaves twice the square root of what was left before */
#define NEAR_BLOCKS 8u /* whose numbers lie in one line of memory, or two */

struct weir_blocks {
    weir_file *file;
    uint64_t file_bytes;
    /* Of each block the first eight bytes of its last key as a number in the order of keys, where the whole key ends
     * among the keys, and offset << 24 | bytes. The key may be a little more than the last one, if less than the first
     * of the next block. */
    uint64_t *begins, *places;
    uint32_t *key_ends;
    weir_buf keys;
    size_t count, begins_room, places_room, ends_room;
};

/* --- what lies in a file ------------------------------------------------------------------------------------------ */

static weir_err blocks_damaged(const weir_blocks *b, const char *what, uint64_t offset) {
    return WEIR_ERR(WEIR_ECORRUPT, "%s in %s offset %llu", what, weir_file_path(b->file), (unsigned long long)offset);
}

static bool blocks_take_number(const uint8_t **atp, const uint8_t *end, uint64_t *numberp) {
    *numberp = 0;
    for (unsigned shift = 0; *atp < end && shift < 64; shift += 7) {
        uint64_t byte = *(*atp)++;
        *numberp |= (byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* One that is less than 128 most of the time. */
static inline bool blocks_take_short(const uint8_t **atp, const uint8_t *end, uint64_t *numberp) {
    if (*atp < end && **atp < 0x80) {
        *numberp = *(*atp)++;
        return true;
    }
    return blocks_take_number(atp, end, numberp);
}

bool weir_blocks_take_place(const uint8_t **atp, const uint8_t *end, uint64_t file_bytes, weir_blocks_place *placep) {
    return blocks_take_number(atp, end, &placep->offset) && blocks_take_number(atp, end, &placep->bytes) &&
           placep->offset <= file_bytes && placep->bytes <= file_bytes - placep->offset;
}

bool weir_blocks_is_as_written(const uint8_t *block, size_t bytes) {
    uint32_t sum = (uint32_t)weir_xxh3(block, bytes, 0) ^ block[bytes] * WEIR_BLOCKS_LAST_BYTE_FACTOR;
    return sum == weir_get_u32(block + bytes + 1);
}

bool weir_blocks_take_footer(const uint8_t footer[WEIR_BLOCKS_FOOTER_BYTES], uint64_t file_bytes,
                             weir_blocks_footer *footerp) {
    const uint8_t *at = footer + 1, *end = footer + WEIR_BLOCKS_PLACES_END;
    *footerp = (weir_blocks_footer){0};
    if (weir_get_u64(footer + WEIR_BLOCKS_MARK_AT) != WEIR_BLOCKS_FOOTER_MARK) return false;
    footerp->is_read_here = weir_get_u32(footer + WEIR_BLOCKS_VERSION_AT) == WEIR_BLOCKS_FORMAT_VERSION &&
                            footer[0] == WEIR_BLOCKS_CHECKSUM_XXH3;
    footerp->is_whole = weir_blocks_take_place(&at, end, file_bytes, &footerp->names) &&
                        weir_blocks_take_place(&at, end, file_bytes, &footerp->index);
    return true;
}

/* A block and its trailer. */
static weir_err blocks_check(const weir_blocks *b, weir_blocks_place place, const uint8_t *bytes) {
    if (!weir_blocks_is_as_written(bytes, place.bytes))
        return blocks_damaged(b, "a block has another checksum than it was written with", place.offset);
    if (bytes[place.bytes]) return blocks_damaged(b, "a block says that it is compressed", place.offset);
    return WEIR_OK;
}

static weir_err blocks_read(const weir_blocks *b, weir_blocks_place place, uint8_t *to) {
    const size_t bytes = place.bytes + WEIR_BLOCKS_TRAILER_BYTES;
    size_t got;
    weir_err err = weir_file_read_at(b->file, place.offset, to, bytes, &got);
    if (!err && got < bytes) err = blocks_damaged(b, "a block is cut short", place.offset);
    return err ? err : blocks_check(b, place, to);
}

/* What a block says of itself at its end: entries end where it lists those that have their keys whole. */
static bool blocks_take_restarts(const uint8_t *block, size_t bytes, uint32_t *restartsp, size_t *entry_bytesp) {
    if (bytes < 2 * sizeof(uint32_t)) return false;
    uint32_t restarts = weir_get_u32(block + bytes - sizeof restarts);
    if (restarts == 0 || restarts > bytes / sizeof restarts - 1) return false;
    *restartsp = restarts;
    *entry_bytesp = bytes - (restarts + 1) * sizeof restarts;
    return true;
}

/* --- the index ---------------------------------------------------------------------------------------------------- */

typedef struct blocks_index_entry {
    uint8_t key[WEIR_BLOCKS_KEY_MAX];
    size_t key_length;
    weir_blocks_place place;
} blocks_index_entry;

/* Each has its key whole: RocksDB was told so, by an interval of 1. */
static bool blocks_take_index_entry(const weir_blocks *b, const uint8_t **atp, const uint8_t *end,
                                    blocks_index_entry *e) {
    uint64_t shared, unshared;
    if (!blocks_take_number(atp, end, &shared) || !blocks_take_number(atp, end, &unshared)) return false;
    if (shared || unshared > sizeof e->key || unshared > (size_t)(end - *atp)) return false;
    memcpy(e->key, *atp, unshared);
    e->key_length = unshared;
    *atp += unshared;
    return weir_blocks_take_place(atp, end, b->file_bytes, &e->place);
}

static weir_err blocks_add(weir_blocks *b, const blocks_index_entry *e) {
    if (e->place.bytes + WEIR_BLOCKS_TRAILER_BYTES > BLOCK_BYTES_MAX || e->place.offset >= OFFSET_MAX ||
        b->keys.length > UINT32_MAX - WEIR_BLOCKS_KEY_MAX)
        return WEIR_ERR(WEIR_EVERSION, "%s has larger blocks, or more", weir_file_path(b->file));
    size_t last = b->count ? b->key_ends[b->count - 1] : 0, before = b->count > 1 ? b->key_ends[b->count - 2] : 0;
    if (b->count &&
        weir_blocks_compare((const uint8_t *)b->keys.bytes + before, last - before, e->key, e->key_length) >= 0)
        return blocks_damaged(b, "an index is not in order", e->place.offset);
    if (!WEIR_GROW(b->begins, b->begins_room, b->count) || !WEIR_GROW(b->places, b->places_room, b->count) ||
        !WEIR_GROW(b->key_ends, b->ends_room, b->count))
        return WEIR_NOMEM("for the index of %s", weir_file_path(b->file));
    weir_buf_append(&b->keys, e->key, e->key_length);
    if (weir_buf_err(&b->keys)) return weir_buf_err(&b->keys);
    b->begins[b->count] = weir_blocks_begin_of(e->key, e->key_length);
    b->places[b->count] = e->place.offset << 24 | e->place.bytes;
    b->key_ends[b->count++] = (uint32_t)b->keys.length;
    return WEIR_OK;
}

/* parts: this block is an index of indices. */
static weir_err blocks_load_index(weir_blocks *b, weir_blocks_place place, bool parts) {
    uint32_t restarts;
    size_t entry_bytes;
    blocks_index_entry e;
    if (place.bytes > INDEX_BLOCK_MAX) return WEIR_ERR(WEIR_EVERSION, "%s has a larger index", weir_file_path(b->file));
    uint8_t *block = weir_malloc(place.bytes + WEIR_BLOCKS_TRAILER_BYTES);
    if (!block) return WEIR_NOMEM("for the index of %s", weir_file_path(b->file));
    weir_err err = blocks_read(b, place, block);
    if (!err && !blocks_take_restarts(block, place.bytes, &restarts, &entry_bytes))
        err = blocks_damaged(b, "an index is not one", place.offset);
    for (const uint8_t *at = block, *end = err ? at : block + entry_bytes; !err && at < end;) {
        const size_t before = b->count;
        bool is_one = blocks_take_index_entry(b, &at, end, &e);
        if (is_one) err = parts ? blocks_load_index(b, e.place, false) : blocks_add(b, &e);
        if (!err && b->count == before) err = blocks_damaged(b, "an index is not one", place.offset);
    }
    weir_free(block);
    return err;
}

/* What they grew by goes back, if it can. */
static void blocks_fit(weir_blocks *b) {
    uint64_t *begins = weir_realloc_array(b->begins, b->count, sizeof *begins);
    if (begins) b->begins = begins;
    uint64_t *places = weir_realloc_array(b->places, b->count, sizeof *places);
    if (places) b->places = places;
    uint32_t *ends = weir_realloc_array(b->key_ends, b->count, sizeof *ends);
    if (ends) b->key_ends = ends;
    weir_buf_shrink(&b->keys);
}

weir_err weir_blocks_open(const char *path, bool in_parts, weir_blocks **blocksp) {
    uint8_t bytes[WEIR_BLOCKS_FOOTER_BYTES];
    weir_blocks_footer footer;
    size_t got = 0;
    *blocksp = NULL;
    weir_blocks *b = weir_calloc(1, sizeof *b);
    if (!b) return WEIR_NOMEM("for the index of %s", path);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &b->file);
    if (err) goto out;
    b->file_bytes = weir_file_length(b->file);
    if (b->file_bytes < sizeof bytes) err = blocks_damaged(b, "a footer is cut short", 0);
    if (!err) err = weir_file_read_at(b->file, b->file_bytes - sizeof bytes, bytes, sizeof bytes, &got);
    if (err) goto out;
    bool taken = got == sizeof bytes && weir_blocks_take_footer(bytes, b->file_bytes, &footer);
    if (!taken || !footer.is_read_here)
        err = WEIR_ERR(WEIR_EVERSION, "%s is a file of another kind", path);
    else if (!footer.is_whole)
        err = blocks_damaged(b, "a footer is not one", b->file_bytes - sizeof bytes);
    if (!err) err = blocks_load_index(b, footer.index, in_parts);
    if (!err && b->count == 0) err = WEIR_ERR(WEIR_EVERSION, "%s has no blocks", path);
out:
    if (err) {
        weir_blocks_close(b);
        return err;
    }
    blocks_fit(b);
    *blocksp = b;
    return WEIR_OK;
}

void weir_blocks_close(weir_blocks *blocks) {
    if (!blocks) return;
    if (blocks->file) (void)weir_file_close(blocks->file); /* it was only read */
    weir_free(blocks->begins);
    weir_free(blocks->places);
    weir_free(blocks->key_ends);
    weir_buf_free(&blocks->keys);
    weir_free(blocks);
}

uint64_t weir_blocks_bytes(const weir_blocks *blocks) {
    return sizeof *blocks + blocks->keys.capacity +
           blocks->count * (sizeof *blocks->begins + sizeof *blocks->places + sizeof *blocks->key_ends);
}

/* --- cursors ------------------------------------------------------------------------------------------------------ */

static const uint8_t *blocks_key_at(const weir_blocks *b, size_t at, size_t *lengthp) {
    size_t begin = at ? b->key_ends[at - 1] : 0;
    *lengthp = b->key_ends[at] - begin;
    return (const uint8_t *)b->keys.bytes + begin;
}

/* Narrows the place of a key down to [*lowp, *highp]. Keys begin with hashes, so a number tells about where it lies:
 * no farther off, mostly, than the square root of how many there are. Two are looked at, one on each side, and fetched
 * from memory at once; to halve the rest again and again would wait for memory each time. Where a vertex fills many
 * blocks less is gained. */
static void blocks_guess(const weir_blocks *b, uint64_t begin, size_t *lowp, size_t *highp) {
    for (unsigned round = 0; round < GUESSES; round++) {
        if (*highp <= *lowp + NEAR_BLOCKS) return;
        const size_t low = *lowp, last = *highp - 1, width = last - low;
        const uint64_t first = b->begins[low], span = b->begins[last] - first;
        if (begin <= first || begin - first >= span) return;
        const size_t at = low + (size_t)((double)(begin - first) / (double)span * (double)width);
        const size_t margin = (size_t)sqrt((double)width) + 1;
        const size_t left = at > low + margin ? at - margin : low, right = at + margin < last ? at + margin : last;
        const uint64_t of_left = b->begins[left], of_right = b->begins[right];
        if (of_left < begin)
            *lowp = left + 1;
        else if (of_left > begin)
            *highp = left;
        if (of_right > begin && right < *highp)
            *highp = right;
        else if (of_right < begin)
            *lowp = right + 1;
    }
}

/* The first block that may have the key, or what comes behind it; count: none. The numbers, which lie side by side,
 * decide but for the keys of a vertex that fills blocks. */
static size_t blocks_find(const weir_blocks *b, const uint8_t *key, size_t length) {
    const uint64_t begin = weir_blocks_begin_of(key, length);
    size_t low = 0, high = b->count;
    blocks_guess(b, begin, &low, &high);
    while (low < high) {
        size_t middle = low + (high - low) / 2, length_there;
        bool less = b->begins[middle] < begin;
        if (b->begins[middle] == begin) {
            const uint8_t *there = blocks_key_at(b, middle, &length_there);
            less = weir_blocks_compare(there, length_there, key, length) < 0;
        }
        if (less)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void weir_blocks_cursor_enter(weir_blocks_cursor *cursor, const weir_blocks *blocks, const uint8_t *prefix) {
    cursor->blocks = blocks;
    cursor->prefix = prefix;
    cursor->block = SIZE_MAX;
    cursor->valid = false;
}

void weir_blocks_cursor_end(weir_blocks_cursor *cursor) {
    WEIR_UNPOISON(cursor->room, cursor->room_bytes);
    weir_free(cursor->room);
    *cursor = (weir_blocks_cursor){0};
}

static weir_blocks_place blocks_place_at(const weir_blocks *b, size_t block) {
    return (weir_blocks_place){b->places[block] >> 24, b->places[block] & (BLOCK_BYTES_MAX - 1)};
}

static weir_err blocks_cursor_damaged(const weir_blocks_cursor *c) {
    return blocks_damaged(c->blocks, "a block is not one", blocks_place_at(c->blocks, c->block).offset);
}

/* Before the first entry of a block, whose checksum is right. */
static weir_err blocks_cursor_begin(weir_blocks_cursor *c, size_t block, const uint8_t *bytes) {
    const weir_blocks_place place = blocks_place_at(c->blocks, block);
    size_t entry_bytes;
    if (!blocks_take_restarts(bytes, place.bytes, &c->restarts, &entry_bytes))
        return blocks_damaged(c->blocks, "a block is not one", place.offset);
    c->block = block;
    c->at = bytes;
    c->end = bytes + entry_bytes;
    c->key_length = 0;
    return WEIR_OK;
}

/* The cursor stands before the first entry of the block. */
static weir_err blocks_cursor_load(weir_blocks_cursor *c, size_t block) {
    const weir_blocks_place place = blocks_place_at(c->blocks, block);
    const size_t wanted = place.bytes + WEIR_BLOCKS_TRAILER_BYTES;
    c->block = SIZE_MAX; /* until this one is whole */
    if (wanted > c->room_bytes) {
        WEIR_UNPOISON(c->room, c->room_bytes);
        weir_free(c->room);
        c->room_bytes = wanted + wanted / ROOM_SPARE;
        c->room = weir_malloc(c->room_bytes);
        if (!c->room) c->room_bytes = 0;
        if (!c->room) return WEIR_NOMEM("for a block of %s", weir_file_path(c->blocks->file));
    }
    WEIR_UNPOISON(c->room, c->room_bytes);
    weir_err err = blocks_read(c->blocks, place, c->room); /* BLOCKS-B1 */
    WEIR_POISON(c->room + place.bytes, c->room_bytes - place.bytes);
    return err ? err : blocks_cursor_begin(c, block, c->room);
}

/* The entry at `at`, of which the key before it is in `key`. false: it is not one. */
static bool blocks_cursor_take(weir_blocks_cursor *c) {
    uint64_t shared, unshared, value;
    const uint8_t *at = c->at;
    const size_t before = c->key_length ? c->key_length + WEIR_BLOCKS_SUFFIX_BYTES : 0;
    if (!blocks_take_short(&at, c->end, &shared) || !blocks_take_short(&at, c->end, &unshared) ||
        !blocks_take_short(&at, c->end, &value))
        return false;
    if (shared > before || unshared > sizeof c->key - shared || shared + unshared <= WEIR_BLOCKS_SUFFIX_BYTES)
        return false;
    if (unshared > (size_t)(c->end - at) || value > (size_t)(c->end - at) - unshared) return false;
    memcpy(c->key + shared, at, unshared);
    c->key_length = (uint32_t)(shared + unshared - WEIR_BLOCKS_SUFFIX_BYTES);
    c->value = at + unshared;
    c->value_length = (uint32_t)value;
    c->at = c->value + value;
    return c->key[c->key_length] == WEIR_BLOCKS_KIND_PUT;
}

/* Behind the last of the entries with whole keys that are less than the key: what is sought is not before it. */
static bool blocks_cursor_approach(weir_blocks_cursor *c, const uint8_t *key, size_t length) {
    uint32_t low = 0, high = c->restarts; /* the first `low` are less */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, offset = weir_get_u32(c->end + middle * sizeof offset);
        if (offset >= (size_t)(c->end - c->room)) return false;
        c->at = c->room + offset;
        c->key_length = 0;
        if (!blocks_cursor_take(c)) return false;
        if (weir_blocks_compare(c->key, c->key_length, key, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t offset = low ? weir_get_u32(c->end + (low - 1) * sizeof offset) : 0;
    c->at = c->room + offset;
    c->key_length = 0;
    return true;
}

static bool blocks_has_prefix(const weir_blocks_cursor *c, const uint8_t *key, size_t length) {
    return length >= WEIR_ENGINE_PREFIX_BYTES && memcmp(key, c->prefix, WEIR_ENGINE_PREFIX_BYTES) == 0;
}

/* Whether the blocks behind this one may have more of the prefix: the end of this one lies behind what was sought, so
 * it has the prefix, or lies behind all that has. */
static bool blocks_cursor_goes_on(const weir_blocks_cursor *c) {
    size_t length;
    if (c->block + 1 >= c->blocks->count) return false;
    const uint8_t *end = blocks_key_at(c->blocks, c->block, &length);
    return blocks_has_prefix(c, end, length);
}

/* The next entry, in whichever block. *endp: there is none that may be of the prefix. */
static weir_err blocks_cursor_step(weir_blocks_cursor *c, bool *endp) {
    *endp = false;
    while (c->at >= c->end) {
        *endp = !blocks_cursor_goes_on(c);
        weir_err err = *endp ? WEIR_OK : blocks_cursor_load(c, c->block + 1);
        if (err || *endp) return err;
    }
    return blocks_cursor_take(c) ? WEIR_OK : blocks_cursor_damaged(c);
}

weir_err weir_blocks_cursor_seek(weir_blocks_cursor *cursor, const void *key, size_t length) {
    const size_t block = blocks_find(cursor->blocks, key, length);
    bool end = block == cursor->blocks->count;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(blocks_has_prefix(cursor, key, length));
    cursor->valid = false;
    if (end) return WEIR_OK;
    if (block != cursor->block) err = blocks_cursor_load(cursor, block);
    if (!err && !blocks_cursor_approach(cursor, key, length)) err = blocks_cursor_damaged(cursor);
    while (!err && !end) {
        err = blocks_cursor_step(cursor, &end);
        if (!err && !end && weir_blocks_compare(cursor->key, cursor->key_length, key, length) >= 0) break;
    }
    cursor->valid = !err && !end && blocks_has_prefix(cursor, cursor->key, cursor->key_length); /* BLOCKS-B2 */
    return err;
}

/* A key that was put again while somebody read as of a moment before that is there twice, the newest first. */
weir_err weir_blocks_cursor_next(weir_blocks_cursor *cursor) {
    uint8_t last[WEIR_BLOCKS_KEY_MAX];
    const size_t length = cursor->key_length;
    bool end = false;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(cursor->valid && length <= sizeof last);
    memcpy(last, cursor->key, length);
    do {
        err = blocks_cursor_step(cursor, &end);
    } while (!err && !end && weir_blocks_compare(cursor->key, cursor->key_length, last, length) == 0);
    cursor->valid = !err && !end && blocks_has_prefix(cursor, cursor->key, cursor->key_length); /* BLOCKS-B2 */
    return err;
}

/* --- backwards ---------------------------------------------------------------------------------------------------- */

/* In a block each key rests on the one before, so the way back is the way forward again: to the last entry that comes
 * before the key, or is the key where that is wanted. *foundp: this block has one. Of entries with the same key it is
 * the first, which is the newest. */
static weir_err blocks_cursor_find_last(weir_blocks_cursor *c, const uint8_t *key, size_t length, bool with_it,
                                        bool *foundp) {
    uint8_t last[WEIR_BLOCKS_KEY_MAX];
    size_t last_length = 0;
    if (!blocks_cursor_approach(c, key, length)) return blocks_cursor_damaged(c);
    while (c->at < c->end) {
        if (!blocks_cursor_take(c)) return blocks_cursor_damaged(c);
        int order = weir_blocks_compare(c->key, c->key_length, key, length);
        if (order > 0 || (order == 0 && !with_it)) break;
        last_length = c->key_length;
        memcpy(last, c->key, last_length);
    }
    *foundp = last_length > 0;
    if (!*foundp) return WEIR_OK;
    if (!blocks_cursor_approach(c, last, last_length)) return blocks_cursor_damaged(c);
    do {
        if (c->at >= c->end || !blocks_cursor_take(c)) return blocks_cursor_damaged(c);
    } while (weir_blocks_compare(c->key, c->key_length, last, last_length) < 0);
    return WEIR_OK;
}

/* Whether the block before this one may have something of the prefix. */
static bool blocks_cursor_goes_back(const weir_blocks_cursor *c, size_t block) {
    size_t length;
    if (block == 0) return false;
    const uint8_t *end = blocks_key_at(c->blocks, block - 1, &length);
    return weir_blocks_compare(end, length, c->prefix, WEIR_ENGINE_PREFIX_BYTES) >= 0;
}

static weir_err blocks_cursor_go_before(weir_blocks_cursor *c, const uint8_t *key, size_t length, bool with_it) {
    size_t block = blocks_find(c->blocks, key, length);
    bool found = false;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(blocks_has_prefix(c, key, length));
    c->valid = false;
    if (block == c->blocks->count) block--;
    for (;; block--) {
        if (block != c->block) err = blocks_cursor_load(c, block);
        if (!err) err = blocks_cursor_find_last(c, key, length, with_it, &found);
        if (err || found || !blocks_cursor_goes_back(c, block)) break;
    }
    c->valid = !err && found && blocks_has_prefix(c, c->key, c->key_length); /* BLOCKS-B2 */
    return err;
}

weir_err weir_blocks_cursor_seek_last(weir_blocks_cursor *cursor, const void *key, size_t length) {
    return blocks_cursor_go_before(cursor, key, length, true);
}

weir_err weir_blocks_cursor_previous(weir_blocks_cursor *cursor) {
    uint8_t key[WEIR_BLOCKS_KEY_MAX];
    WEIR_ASSERT(cursor->valid && cursor->key_length <= sizeof key);
    memcpy(key, cursor->key, cursor->key_length);
    return blocks_cursor_go_before(cursor, key, cursor->key_length, false);
}

/* --- all of a file ------------------------------------------------------------------------------------------------ */

void weir_blocks_walk_enter(weir_blocks_walk *walk, const weir_blocks *blocks) {
    walk->at = (weir_blocks_cursor){.blocks = blocks, .block = SIZE_MAX};
    walk->window_bytes = 0;
}

void weir_blocks_walk_end(weir_blocks_walk *walk) {
    weir_free(walk->window);
    *walk = (weir_blocks_walk){0};
}

/* Reads on from this block; blocks lie side by side, so that the next ones come with it. */
static weir_err blocks_walk_read(weir_blocks_walk *walk, weir_blocks_place place) {
    const weir_blocks *b = walk->at.blocks;
    const size_t wanted = place.bytes + WEIR_BLOCKS_TRAILER_BYTES,
                 room = wanted < WEIR_BLOCKS_WALK_BYTES ? WEIR_BLOCKS_WALK_BYTES : wanted;
    if (walk->window_room < room) {
        weir_free(walk->window);
        walk->window = weir_malloc(room);
        walk->window_room = walk->window ? room : 0;
        if (!walk->window) return WEIR_NOMEM("for blocks of %s", weir_file_path(b->file));
    }
    walk->window_at = place.offset;
    walk->window_bytes = 0;
    weir_err err = weir_file_read_at(b->file, place.offset, walk->window, walk->window_room, &walk->window_bytes);
    if (!err && walk->window_bytes < wanted) err = blocks_damaged(b, "a block is cut short", place.offset);
    return err;
}

static weir_err blocks_walk_load(weir_blocks_walk *walk, size_t block) {
    weir_blocks_cursor *c = &walk->at;
    const weir_blocks_place place = blocks_place_at(c->blocks, block);
    const size_t wanted = place.bytes + WEIR_BLOCKS_TRAILER_BYTES;
    weir_err err = WEIR_OK;
    bool is_there = place.offset >= walk->window_at && place.offset - walk->window_at <= walk->window_bytes &&
                    wanted <= walk->window_bytes - (place.offset - walk->window_at);
    if (!is_there) err = blocks_walk_read(walk, place);
    if (err) return err;
    const uint8_t *bytes = walk->window + (place.offset - walk->window_at);
    err = blocks_check(c->blocks, place, bytes); /* BLOCKS-B1 */
    return err ? err : blocks_cursor_begin(c, block, bytes);
}

weir_err weir_blocks_walk_next(weir_blocks_walk *walk) {
    weir_blocks_cursor *c = &walk->at;
    c->valid = false;
    while (c->at >= c->end) {
        const size_t next = c->block == SIZE_MAX ? 0 : c->block + 1;
        weir_err err = next < c->blocks->count ? blocks_walk_load(walk, next) : WEIR_OK;
        if (err || next == c->blocks->count) return err;
    }
    c->valid = blocks_cursor_take(c);
    return c->valid ? WEIR_OK : blocks_cursor_damaged(c);
}

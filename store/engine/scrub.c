/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.c - reads everything that an engine has on the disk, to find damage before a reader does.
 *
 *   *.sst      every byte with the file's checksum, past the caches of RocksDB and, where it can be, of the kernel
 *   CURRENT    names the MANIFEST that is in use; it would be read by the next start only
 *   MANIFEST   names the sorted files. A length that a flipped bit has made too great looks like a write that a crash
 *              has cut short, and RocksDB passes over all that is behind it: so its records are walked here
 *
 * MANIFEST is in blocks of 32 KiB, filled with zeros where no header has room. A record is a masked CRC-32C of its type
 * and payload 4, length of the payload 2, type 1, payload.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#include "engine_private.h"

#define FRAME_BLOCK  32768u
#define FRAME_HEADER 7u
#define FRAME_TYPE   6u /* where it stands */
#define CURRENT_MAX  256u
#define LOOKS        10u /* at a MANIFEST that RocksDB replaces again and again */

/* --- the list of files ------------------------------------------------------------------------------------------- */

typedef struct engine_scrub_list {
    weir_buf sorted; /* names, each ended by 0 */
    char manifest[64];
    uint64_t manifest_bytes;
} engine_scrub_list;

static bool engine_scrub_take(void *context, const char *name, uint64_t length) {
    engine_scrub_list *list = context;
    if (weir_engine_is_sorted(name)) weir_buf_append(&list->sorted, name, strlen(name) + 1);
    if (strncmp(name, "MANIFEST-", 9) == 0) {
        snprintf(list->manifest, sizeof list->manifest, "%s", name);
        list->manifest_bytes = length;
    }
    return true;
}

static weir_err engine_scrub_list_read(weir_engine *engine, engine_scrub_list *list) {
    weir_rocks_status status;
    weir_err err = WEIR_OK;
    *list = (engine_scrub_list){0};
    if (!weir_engine_enter(engine, &err)) return err;
    if (!weir_rocks_live_files(engine->db, engine_scrub_take, list, &status))
        err = weir_engine_error(engine, "list the files of", &status);
    weir_engine_leave(engine);
    return err ? err : weir_buf_err(&list->sorted);
}

weir_err weir_engine_path(const char *folder, const char *name, char path[WEIR_ENGINE_PATH_MAX]) {
    int length = snprintf(path, WEIR_ENGINE_PATH_MAX, "%s/%s", folder, name);
    if (length >= 0 && length < (int)WEIR_ENGINE_PATH_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
}

/* --- what names the files ---------------------------------------------------------------------------------------- */

/* A block of MANIFEST, or its last one, which may be shorter. */
static bool engine_scrub_frames_are_whole(const uint8_t *block, size_t length) {
    size_t at = 0;
    WEIR_ASSERT(length <= FRAME_BLOCK);
    while (length - at >= FRAME_HEADER) {
        const uint8_t *frame = block + at;
        size_t payload = weir_get_u16(frame + 4);
        if (payload > length - at - FRAME_HEADER) return false;
        uint32_t crc = weir_crc32c(0, frame + FRAME_TYPE, 1 + payload);
        if (weir_get_u32(frame) != (crc >> 15 | crc << 17) + 0xa282ead8u) return false;
        at += FRAME_HEADER + payload;
        WEIR_ASSERT(at <= length);
    }
    bool whole = at == length || length == FRAME_BLOCK;
    for (; whole && at < length; at++)
        whole = block[at] == 0;
    return whole;
}

static weir_err engine_scrub_check_manifest(const char *path, uint64_t bytes, bool *wholep) {
    weir_file *file = NULL;
    uint8_t *block = weir_malloc(FRAME_BLOCK);
    weir_err err = block ? WEIR_OK : WEIR_NOMEM("while reading %s", path);
    if (!err) err = weir_file_open(path, WEIR_FILE_READ, &file);
    *wholep = true;
    for (uint64_t at = 0; !err && *wholep && at < bytes; at += FRAME_BLOCK) {
        size_t length = bytes - at < FRAME_BLOCK ? (size_t)(bytes - at) : FRAME_BLOCK, got;
        err = weir_file_read_at(file, at, block, length, &got);
        *wholep = got == length && engine_scrub_frames_are_whole(block, length);
    }
    weir_err closed = weir_file_close(file);
    weir_free(block);
    return err ? err : closed;
}

static weir_err engine_scrub_check_current(const char *path, const char *manifest, bool *wholep) {
    char *text;
    size_t length, wanted = strlen(manifest);
    weir_err err = weir_file_load(path, CURRENT_MAX, &text, &length);
    *wholep = weir_err_is(err, WEIR_ELIMIT);
    if (err) return err;
    *wholep = length == wanted + 1 && memcmp(text, manifest, wanted) == 0 && text[wanted] == '\n';
    weir_free(text);
    return WEIR_OK;
}

/* One look: *damagedp, and in file which one is damaged; RocksDB may just have replaced both. */
static weir_err engine_scrub_look_at_names(const weir_engine *engine, const engine_scrub_list *list,
                                           char file[WEIR_ENGINE_PATH_MAX], bool *damagedp) {
    bool whole = false;
    weir_err err = weir_engine_path(engine->folder, list->manifest, file);
    if (!err) err = engine_scrub_check_manifest(file, list->manifest_bytes, &whole);
    if (!err && whole) {
        err = weir_engine_path(engine->folder, "CURRENT", file);
        if (!err) err = engine_scrub_check_current(file, list->manifest, &whole);
    }
    bool lost = weir_err_is(err, WEIR_ENOTFOUND) || weir_err_is(err, WEIR_ELIMIT);
    *damagedp = lost || (!err && !whole);
    return lost ? WEIR_OK : err;
}

weir_err weir_engine_check_names(weir_engine *engine, char file[WEIR_ENGINE_PATH_MAX], bool *damagedp) {
    char before[sizeof((engine_scrub_list){0}.manifest)] = "";
    engine_scrub_list list;
    weir_err err;
    for (unsigned look = 0; look < LOOKS; look++) {
        *damagedp = false;
        err = engine_scrub_list_read(engine, &list);
        weir_buf_free(&list.sorted);
        if (!err) err = engine_scrub_look_at_names(engine, &list, file, damagedp);
        if (err || !*damagedp || strcmp(before, list.manifest) == 0) return err;
        memcpy(before, list.manifest, sizeof before);
    }
    return WEIR_OK;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

/* Whether a compaction has removed it meanwhile: then it is not missed. */
static weir_err engine_scrub_is_gone(weir_engine *engine, const char *name, bool *gonep) {
    engine_scrub_list list;
    weir_err err = engine_scrub_list_read(engine, &list);
    *gonep = true;
    for (size_t at = 0; !err && at < list.sorted.length; at += strlen(list.sorted.bytes + at) + 1)
        *gonep = *gonep && strcmp(list.sorted.bytes + at, name) != 0;
    weir_buf_free(&list.sorted);
    return err;
}

weir_err weir_engine_check_sorted(weir_engine *engine, const char *name, uint64_t *bytesp) {
    char path[WEIR_ENGINE_PATH_MAX];
    weir_rocks_status status;
    weir_file *file = NULL;
    bool gone = false;
    *bytesp = 0;
    weir_err err = weir_engine_path(engine->folder, name, path);
    if (err || !weir_engine_enter(engine, &err)) return err;
    bool whole = weir_rocks_check_file(engine->db, path, &status);
    weir_engine_leave(engine);
    if (!whole && !weir_path_exists(path)) {
        err = engine_scrub_is_gone(engine, name, &gone);
        if (!gone) status = (weir_rocks_status){WEIR_ROCKS_CORRUPT, "it has been removed"};
    }
    if (err || gone) return err;
    if (!whole) return weir_engine_file_error(engine, path, &status);
    if (weir_file_open(path, WEIR_FILE_READ, &file)) return WEIR_OK;
    *bytesp = weir_file_length(file);
    return weir_file_close(file);
}

weir_err weir_engine_walk_sorted(weir_engine *engine, weir_engine_visit_file visit, void *context) {
    engine_scrub_list list;
    size_t at = 0;
    weir_err err = engine_scrub_list_read(engine, &list);
    for (; !err && at < list.sorted.length; at += strlen(list.sorted.bytes + at) + 1)
        err = visit(context, list.sorted.bytes + at);
    WEIR_ASSERT(err || at == list.sorted.length); /* each name is ended by 0, the last one, too */
    weir_buf_free(&list.sorted);
    return err;
}

typedef struct engine_scrub_walk {
    weir_engine *engine;
    weir_engine_pace pace;
    void *context;
    bool ended;
} engine_scrub_walk;

static weir_err engine_scrub_one(void *context, const char *name) {
    engine_scrub_walk *walk = context;
    uint64_t bytes;
    if (walk->ended) return WEIR_OK;
    weir_err err = weir_engine_check_sorted(walk->engine, name, &bytes);
    if (!err) walk->ended = !walk->pace(walk->context, bytes);
    return err;
}

weir_err weir_engine_scrub(weir_engine *engine, weir_engine_pace pace, void *context) {
    static const weir_rocks_status status = {WEIR_ROCKS_CORRUPT, "it does not name the files that are in use"};
    engine_scrub_walk walk = {engine, pace, context, false};
    char file[WEIR_ENGINE_PATH_MAX];
    bool damaged;
    weir_err err = weir_engine_walk_sorted(engine, engine_scrub_one, &walk);
    if (err || walk.ended) return err;
    err = weir_engine_check_names(engine, file, &damaged);
    return !err && damaged ? weir_engine_file_error(engine, file, &status) : err;
}

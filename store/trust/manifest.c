/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - hashing a folder, and holding it against what it says. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#define CHUNK_BYTES        (1u << 20)
#define DEPTH_MAX          8
#define PATH_BYTES_MAX     1024u
#define MANIFEST_BYTES_MAX (64u << 20)
#define MANIFEST_NAME      "MANIFEST"
#define SIGNATURE_NAME     MANIFEST_NAME ".sig" /* it signs the manifest, so it cannot stand in it */

typedef struct manifest_tree {
    char **paths; /* below the folder, sorted once collected */
    size_t count, capacity;
    const char *folder;
    char prefix[PATH_BYTES_MAX]; /* of the folder being listed, "" or "a/b/" */
    int depth;
} manifest_tree;

static void manifest_tree_free(manifest_tree *t) {
    for (size_t i = 0; i < t->count; i++)
        weir_free(t->paths[i]);
    weir_free(t->paths);
}

static weir_err manifest_tree_add(manifest_tree *t, const char *path) {
    if (t->count == WEIR_MANIFEST_FILES_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "%s has more than %u files", t->folder, WEIR_MANIFEST_FILES_MAX);
    }
    if (!WEIR_GROW(t->paths, t->capacity, t->count)) return WEIR_NOMEM("while listing the folder %s", t->folder);
    t->paths[t->count] = weir_strdup(path);
    if (!t->paths[t->count]) return WEIR_NOMEM("while listing the folder %s", t->folder);
    t->count++;
    return WEIR_OK;
}

static weir_err manifest_path(char *path, size_t size, const char *folder, const char *below) {
    int length = snprintf(path, size, "%s/%s", folder, below);
    if (length < 0 || (size_t)length >= size) return WEIR_ERR(WEIR_ELIMIT, "a path below %s is too long", folder);
    return WEIR_OK;
}

static weir_err manifest_visit(void *context, const char *name) {
    manifest_tree *t = context;
    char below[PATH_BYTES_MAX], path[2 * PATH_BYTES_MAX];
    struct stat status;
    int length = snprintf(below, sizeof below, "%s%s", t->prefix, name);
    if (length < 0 || (size_t)length >= sizeof below || strchr(name, '\n')) {
        return WEIR_ERR(WEIR_ELIMIT, "a path below %s is too long or has a line end in it", t->folder);
    }
    weir_err err = manifest_path(path, sizeof path, t->folder, below);
    if (err) return err;
    if (lstat(path, &status) != 0 || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
        return WEIR_ERR(WEIR_ECORRUPT, "%s is neither a file nor a folder; remove it", path);
    }
    if (!S_ISDIR(status.st_mode)) {
        bool named = strcmp(below, MANIFEST_NAME) != 0 && strcmp(below, SIGNATURE_NAME) != 0;
        return named ? manifest_tree_add(t, below) : WEIR_OK;
    }
    if (t->depth == DEPTH_MAX) return WEIR_ERR(WEIR_ELIMIT, "%s has folders more than %d deep", t->folder, DEPTH_MAX);
    size_t before = strlen(t->prefix);
    length = snprintf(t->prefix, sizeof t->prefix, "%s/", below);
    if (length < 0 || (size_t)length >= sizeof t->prefix) {
        err = WEIR_ERR(WEIR_ELIMIT, "a path below %s is too long", t->folder);
    } else {
        t->depth++;
        err = weir_folder_list(path, manifest_visit, t);
        t->depth--;
    }
    t->prefix[before] = 0; /* what is below it began with it */
    return err;
}

static int manifest_compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static weir_err manifest_collect(const char *folder, manifest_tree *t) {
    *t = (manifest_tree){.folder = folder};
    weir_err err = weir_folder_list(folder, manifest_visit, t);
    if (err) {
        manifest_tree_free(t);
        *t = (manifest_tree){0};
    } else if (t->count) {
        qsort(t->paths, t->count, sizeof t->paths[0], manifest_compare_paths);
    }
    WEIR_ASSERT(err || t->depth == 0);
    return err;
}

/* --- hashing --------------------------------------------------------------------------------------------------- */

void weir_sha256_bytes(const void *bytes, size_t length, uint8_t digest[32]) {
    crypto_hash_sha256(digest, bytes, length);
}

void weir_sha256_hex(const void *bytes, size_t length, char hex[65]) {
    uint8_t digest[32];
    weir_sha256_bytes(bytes, length, digest);
    sodium_bin2hex(hex, 65, digest, sizeof digest);
}

weir_err weir_sha256_file(const char *path, char hex[65], uint64_t *lengthp) {
    crypto_hash_sha256_state state;
    uint8_t digest[32];
    weir_file *file;
    *lengthp = 0;
    hex[0] = '\0';
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &file);
    if (err) return err;
    uint8_t *chunk = weir_malloc(CHUNK_BYTES);
    if (!chunk) err = WEIR_NOMEM("while reading %s", path);
    crypto_hash_sha256_init(&state);
    for (size_t got = CHUNK_BYTES; !err && got == CHUNK_BYTES;) {
        err = weir_file_read_at(file, *lengthp, chunk, CHUNK_BYTES, &got);
        if (err) break;
        crypto_hash_sha256_update(&state, chunk, got);
        *lengthp += got;
    }
    crypto_hash_sha256_final(&state, digest);
    if (!err) sodium_bin2hex(hex, 65, digest, sizeof digest);
    weir_free(chunk);
    weir_err_keep(&err, weir_file_close(file));
    return err;
}

/* The line of one file, as it is now. */
static weir_err manifest_write_line(const char *folder, const char *below, weir_buf *out) {
    char path[2 * PATH_BYTES_MAX], hex[65];
    uint64_t length;
    weir_err err = manifest_path(path, sizeof path, folder, below);
    if (!err) err = weir_sha256_file(path, hex, &length);
    if (!err) weir_buf_printf(out, "%s  %llu  %s\n", hex, (unsigned long long)length, below);
    return err;
}

weir_err weir_manifest_write(const char *folder) {
    char path[2 * PATH_BYTES_MAX];
    weir_buf out = {0};
    manifest_tree t;
    weir_err err = manifest_collect(folder, &t);
    if (err) return err;
    for (size_t i = 0; !err && i < t.count; i++)
        err = manifest_write_line(folder, t.paths[i], &out);
    weir_buf_printf(&out, "end %zu\n", t.count);
    if (!err) err = weir_buf_err(&out);
    if (!err) err = manifest_path(path, sizeof path, folder, MANIFEST_NAME);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    manifest_tree_free(&t);
    return err;
}

/* --- verifying ------------------------------------------------------------------------------------------------- */

/* Since both lists are sorted, the first line that differs names the file at fault. */
static weir_err manifest_compare(const manifest_tree *t, const char *folder, const char *manifest) {
    weir_buf line = {0};
    const char *at = manifest;
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < t->count; i++) {
        weir_buf_clear(&line);
        err = manifest_write_line(folder, t->paths[i], &line);
        if (!err) err = weir_buf_err(&line);
        if (!err && strncmp(at, line.bytes, line.length) != 0) {
            err = WEIR_ERR(WEIR_ECORRUPT,
                           "%s/%s is not as its MANIFEST says, or a file before it is missing; take another copy",
                           folder, t->paths[i]);
        }
        if (!err) at += line.length;
    }
    weir_buf_clear(&line);
    weir_buf_printf(&line, "end %zu\n", t->count);
    if (!err) err = weir_buf_err(&line);
    if (!err && strcmp(at, line.bytes) != 0) {
        err = WEIR_ERR(WEIR_ECORRUPT, "%s/MANIFEST names a file that is missing, or is cut short; take another copy",
                       folder);
    }
    weir_buf_free(&line);
    return err;
}

weir_err weir_manifest_verify(const char *folder) {
    char path[2 * PATH_BYTES_MAX];
    char *manifest = NULL;
    size_t length;
    manifest_tree t;
    weir_err err = manifest_path(path, sizeof path, folder, MANIFEST_NAME);
    if (!err) err = weir_file_load(path, MANIFEST_BYTES_MAX, &manifest, &length);
    if (err) return err;
    err = manifest_collect(folder, &t);
    if (!err) err = manifest_compare(&t, folder, manifest);
    manifest_tree_free(&t);
    weir_free(manifest);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz.c - zip archives of arrays, as numpy.savez and savez_compressed write them; libzip parses and writes the format.
 *
 * Arrays may be larger than memory, and libzip does not map members: it copies bytes in pieces. So every array goes
 * through a file of its own: a member is unpacked into one and mapped; an array to be packed was written to one
 * before. libzip's memory grows with the directory of an archive, about fivefold; beyond that, nothing here grows with
 * its size.
 */
#include <weir/store/snapshot/npy.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zip.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>

#include "npy_private.h"

#define DEFLATE_RATIO  1032u /* deflate turns one byte into at most this many */
#define NPZ_SUFFIX     ".npy"
#define NAME_MAX_BYTES 255u
#define END_BYTES      22u /* of the record that ends an archive, without its comment */
#define END_REACH      (END_BYTES + UINT16_MAX)
#define LARGE_LOCATOR  20u /* stands before it in a large archive: where the record with the larger numbers is */
#define LARGE_RECORD   56u
#define PIECE_BYTES    (256u << 10)
#define DOS_1980       0x21u /* 1 January 1980: no clock in an archive, the same bytes each time */

/* What libzip says, as an error of ours. */
static weir_err npz_zip_err(zip_error_t *error, const char *path, const char *doing) {
    if (zip_error_code_zip(error) == ZIP_ER_MEMORY) return WEIR_NOMEM("while %s %s", doing, path);
    if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error))
        return WEIR_ERRNO(zip_error_code_system(error), "error while %s %s", doing, path);
    if (strcmp(doing, "writing") == 0)
        return WEIR_ERR(WEIR_EIO, "error while writing %s: %s", path, zip_error_strerror(error));
    return WEIR_ERR(WEIR_EDATA, "%s is not an archive that can be read: %s; write it again with numpy.savez", path,
                    zip_error_strerror(error));
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

typedef struct npz_member {
    char name[NAME_MAX_BYTES + 1]; /* without ".npy" */
    weir_mapping unpacked;         /* once it was asked for */
    bool is_unpacked;
} npz_member;

struct weir_npz {
    char *path, *folder;
    weir_mapping mapping;
    zip_t *zip;
    npz_member *members;
    uint32_t count;
    uint64_t unpacked_bytes;
};

static weir_err npz_broken(const weir_npz *npz, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s %s; write it again with numpy.savez", npz->path, what);
}

static weir_err npz_check_count(const weir_npz *npz, uint64_t count) {
    if (count <= WEIR_NPZ_MEMBERS_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "%s has %" PRIu64 " members, and at most %u are read", npz->path, count,
                    WEIR_NPZ_MEMBERS_MAX);
}

/* libzip takes memory for all of a directory before it can be asked how many members there are; the end of the archive
 * says it. Where several places could be that end, each is believed. */
static weir_err npz_check_end(const weir_npz *npz) {
    const uint8_t *bytes = npz->mapping.bytes;
    size_t length = npz->mapping.length;
    weir_err err = WEIR_OK;
    for (size_t at = length > END_REACH ? length - END_REACH : 0; !err && at + END_BYTES <= length; at++) {
        if (memcmp(bytes + at, "PK\5\6", 4) != 0) continue;
        uint64_t count = weir_get_u16(bytes + at + 10);
        uint64_t size = weir_get_u32(bytes + at + 12), offset = weir_get_u32(bytes + at + 16);
        if (at >= LARGE_RECORD + LARGE_LOCATOR && memcmp(bytes + at - LARGE_LOCATOR, "PK\6\7", 4) == 0) {
            uint64_t large = weir_get_u64(bytes + at - LARGE_LOCATOR + 8);
            if (large > length - LARGE_RECORD) continue; /* there is no such record */
            count = weir_get_u64(bytes + large + 32);
            size = weir_get_u64(bytes + large + 40);
            offset = weir_get_u64(bytes + large + 48);
        }
        if (size <= at && offset <= at - size) err = npz_check_count(npz, count);
    }
    return err;
}

static weir_err npz_read_names(weir_npz *npz) {
    zip_int64_t count = zip_get_num_entries(npz->zip, 0);
    weir_err err = npz_check_count(npz, (uint64_t)count);
    if (err) return err;
    npz->members = weir_calloc((size_t)count + 1, sizeof *npz->members);
    if (!npz->members) return WEIR_NOMEM("for the directory of %s", npz->path);
    for (; npz->count < count; npz->count++) {
        const char *name = zip_get_name(npz->zip, npz->count, ZIP_FL_ENC_RAW);
        size_t length = name ? strlen(name) : 0, suffix = strlen(NPZ_SUFFIX);
        if (length == 0 || length > NAME_MAX_BYTES)
            return npz_broken(npz, "has a member without a name of 1 to 255 bytes");
        if (length > suffix && strcmp(name + length - suffix, NPZ_SUFFIX) == 0) length -= suffix;
        memcpy(npz->members[npz->count].name, name, length);
    }
    return WEIR_OK;
}

weir_err weir_npz_open(const char *path, const char *folder, weir_npz **npzp) {
    *npzp = NULL;
    zip_error_t error;
    zip_error_init(&error);
    weir_npz *npz = weir_calloc(1, sizeof *npz);
    if (!npz) return WEIR_NOMEM("while reading %s", path);
    npz->path = weir_strdup(path);
    npz->folder = weir_strdup(folder);
    weir_err err = npz->path && npz->folder ? WEIR_OK : WEIR_NOMEM("while reading %s", path);
    if (!err) err = weir_mapping_open(path, &npz->mapping);
    if (!err && npz->mapping.length == 0) err = npz_broken(npz, "is empty");
    if (!err) err = npz_check_end(npz);
    if (!err) {
        zip_source_t *source = zip_source_buffer_create(npz->mapping.bytes, npz->mapping.length, 0, &error);
        npz->zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
        if (!npz->zip) {
            err = npz_zip_err(&error, path, "reading");
            zip_source_free(source);
        }
    }
    if (!err) err = npz_read_names(npz);
    zip_error_fini(&error);
    if (err) {
        weir_npz_close(npz);
        return err;
    }
    *npzp = npz;
    return WEIR_OK;
}

void weir_npz_close(weir_npz *npz) {
    if (!npz) return;
    for (uint32_t i = 0; npz->members && i < npz->count; i++)
        weir_mapping_close(&npz->members[i].unpacked);
    if (npz->zip) zip_discard(npz->zip);
    weir_mapping_close(&npz->mapping);
    weir_free(npz->members);
    weir_free(npz->path);
    weir_free(npz->folder);
    weir_free(npz);
}

uint32_t weir_npz_count(const weir_npz *npz) {
    return npz->count;
}

const char *weir_npz_name(const weir_npz *npz, uint32_t index) {
    WEIR_ASSERT(index < npz->count);
    return npz->members[index].name;
}

/* A member's size must be possible for its packed bytes; members that share their packed bytes are bounded by what the
 * whole archive may become. */
static weir_err npz_check_member(const weir_npz *npz, const zip_stat_t *stat) {
    const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((stat->valid & wanted) != wanted) return npz_broken(npz, "has a member without size or method");
    if (stat->encryption_method != ZIP_EM_NONE) return npz_broken(npz, "is encrypted, which is not supported");
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE)
        return npz_broken(npz, "has a member that is neither stored nor deflated");
    uint64_t room = WEIR_NPZ_UNPACK_MAX + npz->mapping.length - npz->unpacked_bytes;
    uint64_t ratio = stat->comp_method == ZIP_CM_STORE ? 1 : DEFLATE_RATIO;
    if (stat->size / ratio > stat->comp_size + 1 || stat->size > room)
        return npz_broken(npz, "has a member that claims to be larger than it can be");
    return WEIR_OK;
}

/* Reads to the member's end, where libzip compares its checksum. */
static weir_err npz_copy_member(const weir_npz *npz, zip_file_t *from, weir_file *to, uint64_t size) {
    uint8_t *piece = weir_malloc(PIECE_BYTES);
    weir_err err = piece ? WEIR_OK : WEIR_NOMEM("while unpacking %s", npz->path);
    zip_int64_t got = 1;
    while (!err && got > 0) {
        got = zip_fread(from, piece, PIECE_BYTES);
        if (got < 0) {
            err = npz_zip_err(zip_file_get_error(from), npz->path, "unpacking");
        } else if ((uint64_t)got > size - weir_file_length(to)) {
            err = npz_broken(npz, "has a member that is longer than it says");
        } else if (got > 0) {
            err = weir_file_append(to, piece, (size_t)got);
        }
    }
    if (!err && weir_file_length(to) != size) err = npz_broken(npz, "has a member that is shorter than it says");
    weir_free(piece);
    return err;
}

/* The file is unlinked once it is mapped, so that nothing is left behind. */
static weir_err npz_unpack_member(weir_npz *npz, uint32_t index) {
    npz_member *m = &npz->members[index];
    char path[4096];
    zip_stat_t stat;
    weir_file *to = NULL;
    if (m->is_unpacked) return WEIR_OK;
    if (zip_stat_index(npz->zip, index, 0, &stat)) return npz_broken(npz, "has a member that cannot be found");
    weir_err err = npz_check_member(npz, &stat);
    if (err) return err;
    int length = snprintf(path, sizeof path, "%s/%u%s", npz->folder, index, NPZ_SUFFIX);
    if (length < 0 || length >= (int)sizeof path)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", npz->folder);
    zip_file_t *from = zip_fopen_index(npz->zip, index, 0);
    if (!from) return npz_zip_err(zip_get_error(npz->zip), npz->path, "unpacking");
    err = weir_file_open(path, WEIR_FILE_CREATE, &to);
    if (!err) {
        err = npz_copy_member(npz, from, to, stat.size);
        weir_err_keep(&err, weir_file_close(to));
        if (!err) err = weir_mapping_open(path, &m->unpacked);
        weir_err_keep(&err, weir_file_remove(path));
    }
    zip_fclose(from);
    if (err) return err;
    WEIR_ASSERT(m->unpacked.length == stat.size);
    m->is_unpacked = true;
    npz->unpacked_bytes += stat.size;
    return WEIR_OK;
}

weir_err weir_npz_array(weir_npz *npz, const char *name, weir_npy_array *arrayp) {
    char title[512];
    *arrayp = (weir_npy_array){.type = WEIR_NPY_BOOL};
    for (uint32_t i = 0; i < npz->count; i++) {
        const npz_member *m = &npz->members[i];
        if (strcmp(m->name, name) != 0) continue;
        weir_err err = npz_unpack_member(npz, i);
        if (err) return err;
        snprintf(title, sizeof title, "%.250s:%.250s", npz->path, name);
        return weir_npy_read(title, m->unpacked.bytes, m->unpacked.length, arrayp);
    }
    return WEIR_ERR(WEIR_ENOTFOUND, "%s has no array '%.64s'", npz->path, name);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

struct weir_npz_writer {
    char *path;
    zip_t *zip;
};

/* An empty file is made first: it refuses a path that exists, and gives the archive its permissions. */
weir_err weir_npz_writer_open(const char *path, weir_npz_writer **writerp) {
    *writerp = NULL;
    weir_file *file = NULL;
    zip_error_t error;
    weir_npz_writer *writer = weir_calloc(1, sizeof *writer);
    if (writer) writer->path = weir_strdup(path);
    weir_err err = writer && writer->path ? WEIR_OK : WEIR_NOMEM("while writing %s", path);
    if (!err) err = weir_file_open(path, WEIR_FILE_CREATE, &file);
    if (!err) err = weir_file_close(file);
    if (!err) {
        int code;
        writer->zip = zip_open(path, ZIP_TRUNCATE, &code);
        if (!writer->zip) {
            zip_error_init_with_code(&error, code);
            err = npz_zip_err(&error, path, "writing");
            zip_error_fini(&error);
        }
    }
    if (err) {
        weir_npz_writer_cancel(writer);
        return err;
    }
    *writerp = writer;
    return WEIR_OK;
}

weir_err weir_npz_add(weir_npz_writer *writer, const char *name, const char *file) {
    zip_t *zip = writer->zip;
    char member[NAME_MAX_BYTES + 1];
    int length = snprintf(member, sizeof member, "%s%s", name, NPZ_SUFFIX);
    WEIR_ASSERT(length > 0 && length < (int)sizeof member);
    zip_source_t *source = zip_source_file(zip, file, 0, -1);
    zip_int64_t index = source ? zip_file_add(zip, member, source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        zip_source_free(source);
    } else if (!zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) &&
               !zip_file_set_dostime(zip, (zip_uint64_t)index, 0, DOS_1980, 0) &&
               !zip_file_set_external_attributes(zip, (zip_uint64_t)index, 0, ZIP_OPSYS_UNIX, 0100640u << 16)) {
        return WEIR_OK;
    }
    return npz_zip_err(zip_get_error(zip), writer->path, "writing");
}

weir_err weir_npz_writer_close(weir_npz_writer *writer) {
    weir_file *file = NULL;
    weir_err err = WEIR_OK;
    if (!writer) return WEIR_OK;
    if (zip_close(writer->zip)) {
        err = npz_zip_err(zip_get_error(writer->zip), writer->path, "writing");
    } else {
        writer->zip = NULL;
        err = weir_file_open(writer->path, WEIR_FILE_READ_WRITE, &file);
        if (!err) err = weir_file_sync(file);
        weir_err_keep(&err, weir_file_close(file));
    }
    weir_npz_writer_cancel(writer);
    return err;
}

void weir_npz_writer_cancel(weir_npz_writer *writer) {
    if (!writer) return;
    if (writer->zip) zip_discard(writer->zip);
    weir_free(writer->path);
    weir_free(writer);
}

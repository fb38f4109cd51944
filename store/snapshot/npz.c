/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz.c - zip archives of arrays, as numpy.savez and savez_compressed write them.
 *
 *   member   local header 30, name, extra, data                 "PK\3\4"
 *   …
 *   central directory: an entry of 46, name, extra, comment     "PK\1\2"
 *   end of the central directory 22, comment                    "PK\5\6"
 *
 * Sizes and offsets beyond 32 bits stand in extra fields (Zip64). What an entry says of its size is believed only as
 * far as its compressed bytes can reach: deflate makes at most 1032 bytes of one.
 */
#include <weir/store/snapshot/npy.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>

#include "npy_private.h"

#define LOCAL_SIGN     0x04034b50u
#define ENTRY_SIGN     0x02014b50u
#define END_SIGN       0x06054b50u
#define END64_SIGN     0x06064b50u
#define LOCATOR64_SIGN 0x07064b50u
#define LOCAL_BYTES    30u
#define ENTRY_BYTES    46u
#define END_BYTES      22u
#define END64_BYTES    56u
#define LOCATOR_BYTES  20u
#define COMMENT_MAX    65535u
#define ZIP64_ID       1u
#define IN_EXTRA       0xFFFFFFFFu
#define STORED         0u
#define DEFLATED       8u
#define ENCRYPTED      1u
#define DEFLATE_RATIO  1032u
#define SUFFIX         ".npy"
#define NAME_MAX_BYTES 255u

typedef struct member {
    char name[NAME_MAX_BYTES + 1];
    uint16_t method, flags;
    uint32_t crc;
    uint64_t packed, size, offset;
    uint8_t *inflated; /* once it was asked for */
} member;

struct weir_npz {
    char *path;
    weir_mapping mapping;
    member *members;
    uint32_t count;
};

/* --- the directory ----------------------------------------------------------------------------------------------- */

static weir_err broken(const weir_npz *npz, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: %s; write it again with numpy.savez", npz->path, what);
}

/* NULL: not inside the file. */
static const uint8_t *bytes_at(const weir_npz *npz, uint64_t offset, uint64_t length) {
    const weir_mapping *m = &npz->mapping;
    return offset <= m->length && length <= m->length - offset ? m->bytes + offset : NULL;
}

static weir_err find_end(const weir_npz *npz, uint64_t *endp) {
    uint64_t length = npz->mapping.length;
    uint64_t last = length > END_BYTES + COMMENT_MAX ? length - END_BYTES - COMMENT_MAX : 0;
    *endp = 0;
    if (length < END_BYTES) return broken(npz, "is too short for a zip archive");
    for (uint64_t at = length - END_BYTES + 1; at-- > last;) {
        if (weir_get_u32(npz->mapping.bytes + at) != END_SIGN) continue;
        *endp = at;
        return WEIR_OK;
    }
    return broken(npz, "has no end of a zip archive");
}

typedef struct directory {
    uint64_t offset, bytes, entries;
} directory;

static weir_err read_end(const weir_npz *npz, directory *d) {
    uint64_t at;
    weir_err err = find_end(npz, &at);
    if (err) return err;
    const uint8_t *end = npz->mapping.bytes + at;
    *d = (directory){weir_get_u32(end + 16), weir_get_u32(end + 12), weir_get_u16(end + 10)};
    const uint8_t *locator = at >= LOCATOR_BYTES ? end - LOCATOR_BYTES : NULL;
    if (locator && weir_get_u32(locator) == LOCATOR64_SIGN) {
        const uint8_t *end64 = bytes_at(npz, weir_get_u64(locator + 8), END64_BYTES);
        if (!end64 || weir_get_u32(end64) != END64_SIGN) return broken(npz, "has a Zip64 end that is not there");
        *d = (directory){weir_get_u64(end64 + 48), weir_get_u64(end64 + 40), weir_get_u64(end64 + 32)};
    }
    if (!bytes_at(npz, d->offset, d->bytes)) return broken(npz, "has a directory outside the file");
    if (d->entries > WEIR_NPZ_MEMBERS_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "%s has %llu members, at most %u are read", npz->path,
                        (unsigned long long)d->entries, WEIR_NPZ_MEMBERS_MAX);
    }
    return WEIR_OK;
}

/* The 64-bit values that stand in for those that say so, in their fixed order. */
static bool read_extra(const uint8_t *extra, size_t length, member *m) {
    while (length >= 4) {
        size_t size = weir_get_u16(extra + 2);
        const uint8_t *value = extra + 4;
        if (size > length - 4) return false;
        if (weir_get_u16(extra) == ZIP64_ID) {
            uint64_t *wide[3] = {&m->size, &m->packed, &m->offset};
            for (size_t i = 0; i < 3; i++) {
                if (*wide[i] != IN_EXTRA) continue;
                if (size < 8) return false;
                *wide[i] = weir_get_u64(value);
                value += 8;
                size -= 8;
            }
            return true;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return true;
}

static weir_err read_entry(const weir_npz *npz, uint64_t *atp, uint64_t end, member *m) {
    const uint8_t *entry = end - *atp >= ENTRY_BYTES ? bytes_at(npz, *atp, ENTRY_BYTES) : NULL;
    if (!entry || weir_get_u32(entry) != ENTRY_SIGN) return broken(npz, "has a directory that is cut");
    size_t name = weir_get_u16(entry + 28), extra = weir_get_u16(entry + 30), comment = weir_get_u16(entry + 32);
    if (end - *atp - ENTRY_BYTES < name + extra + comment) return broken(npz, "has a directory that is cut");
    if (name == 0 || name > NAME_MAX_BYTES || memchr(entry + ENTRY_BYTES, 0, name)) {
        return broken(npz, "has a member whose name is empty, too long or no text");
    }
    *m = (member){
        .flags = weir_get_u16(entry + 8),
        .method = weir_get_u16(entry + 10),
        .crc = weir_get_u32(entry + 16),
        .packed = weir_get_u32(entry + 20),
        .size = weir_get_u32(entry + 24),
        .offset = weir_get_u32(entry + 42),
    };
    memcpy(m->name, entry + ENTRY_BYTES, name);
    size_t suffix = strlen(SUFFIX);
    if (name > suffix && strcmp(m->name + name - suffix, SUFFIX) == 0) m->name[name - suffix] = 0;
    if (!read_extra(entry + ENTRY_BYTES + name, extra, m)) return broken(npz, "has an extra field that is cut");
    *atp += ENTRY_BYTES + name + extra + comment;
    return WEIR_OK;
}

static weir_err read_directory(weir_npz *npz) {
    directory d;
    weir_err err = read_end(npz, &d);
    if (err) return err;
    npz->members = weir_calloc((size_t)d.entries, sizeof *npz->members);
    if (!npz->members) return WEIR_NOMEM("for the directory of %s", npz->path);
    uint64_t at = d.offset;
    for (uint64_t i = 0; !err && i < d.entries; i++) {
        err = read_entry(npz, &at, d.offset + d.bytes, &npz->members[i]);
        if (!err) npz->count++;
    }
    return err;
}

weir_err weir_npz_open(const char *path, weir_npz **npzp) {
    *npzp = NULL;
    weir_npz *npz = weir_calloc(1, sizeof *npz);
    if (!npz) return WEIR_NOMEM("while reading %s", path);
    npz->path = weir_strdup(path);
    weir_err err = npz->path ? weir_mapping_open(path, &npz->mapping) : WEIR_NOMEM("while reading %s", path);
    if (!err) err = read_directory(npz);
    if (err) {
        weir_npz_close(npz);
        return err;
    }
    *npzp = npz;
    return WEIR_OK;
}

void weir_npz_close(weir_npz *npz) {
    if (!npz) return;
    for (uint32_t i = 0; i < npz->count; i++)
        weir_free(npz->members[i].inflated);
    weir_free(npz->members);
    weir_mapping_close(&npz->mapping);
    weir_free(npz->path);
    weir_free(npz);
}

uint32_t weir_npz_count(const weir_npz *npz) {
    return npz->count;
}

const char *weir_npz_name(const weir_npz *npz, uint32_t index) {
    return npz->members[index].name;
}

/* --- members ----------------------------------------------------------------------------------------------------- */

static weir_err member_bytes(const weir_npz *npz, const member *m, const uint8_t **bytesp) {
    const uint8_t *local = bytes_at(npz, m->offset, LOCAL_BYTES);
    *bytesp = NULL;
    if (!local || weir_get_u32(local) != LOCAL_SIGN) return broken(npz, "has a member that is not where it should be");
    uint64_t head = LOCAL_BYTES + (uint64_t)weir_get_u16(local + 26) + weir_get_u16(local + 28);
    *bytesp = bytes_at(npz, m->offset + head, m->packed);
    return *bytesp ? WEIR_OK : broken(npz, "has a member that reaches beyond the file");
}

static weir_err inflate_whole(const weir_npz *npz, const member *m, const uint8_t *packed, uint8_t *out) {
    z_stream z = {.next_in = NULL};
    uint64_t in_left = m->packed, out_left = m->size;
    int status = inflateInit2(&z, -MAX_WBITS);
    if (status != Z_OK) return WEIR_NOMEM("while unpacking %s", npz->path);
    union {
        const uint8_t *from;
        Bytef *next;
    } in = {packed}; /* zlib does not write to what it reads */
    z.next_in = in.next;
    z.next_out = out;
    while (status == Z_OK && (in_left || out_left || z.avail_in || z.avail_out)) {
        uInt step_in = in_left > 1u << 30 ? 1u << 30 : (uInt)in_left;
        uInt step_out = out_left > 1u << 30 ? 1u << 30 : (uInt)out_left;
        if (z.avail_in == 0) z.avail_in = step_in, in_left -= step_in;
        if (z.avail_out == 0) z.avail_out = step_out, out_left -= step_out;
        status = inflate(&z, Z_NO_FLUSH);
    }
    uint64_t missing = out_left + z.avail_out;
    inflateEnd(&z);
    return status == Z_STREAM_END && missing == 0 ? WEIR_OK : broken(npz, "has a member that cannot be unpacked");
}

static weir_err member_unpack(const weir_npz *npz, member *m, const uint8_t *packed) {
    if (m->inflated) return WEIR_OK;
    if (m->size / DEFLATE_RATIO > m->packed + 1 || m->size > WEIR_NPZ_INFLATE_MAX) {
        return broken(npz, "has a member that says to be larger than it can be");
    }
    uint8_t *out = weir_malloc((size_t)m->size);
    if (!out) return WEIR_NOMEM("while unpacking %llu bytes of %s", (unsigned long long)m->size, npz->path);
    weir_err err = inflate_whole(npz, m, packed, out);
    if (err) {
        weir_free(out);
    } else {
        m->inflated = out;
    }
    return err;
}

static weir_err member_check(const weir_npz *npz, member *m, const uint8_t **bytesp) {
    weir_err err = member_bytes(npz, m, bytesp);
    if (err) return err;
    if (m->flags & ENCRYPTED) return broken(npz, "is encrypted, which is not read");
    if (m->method == DEFLATED) {
        err = member_unpack(npz, m, *bytesp);
        *bytesp = m->inflated;
    } else if (m->method != STORED || m->packed != m->size) {
        err = broken(npz, "has a member that is neither stored nor deflated");
    }
    if (!err && crc32_z(0, *bytesp, (size_t)m->size) != m->crc)
        err = broken(npz, "has a member whose checksum is wrong");
    return err;
}

weir_err weir_npz_array(weir_npz *npz, const char *name, weir_npy_array *arrayp) {
    const uint8_t *bytes;
    char title[512];
    *arrayp = (weir_npy_array){.type = WEIR_NPY_BOOL};
    for (uint32_t i = 0; i < npz->count; i++) {
        member *m = &npz->members[i];
        if (strcmp(m->name, name) != 0) continue;
        weir_err err = member_check(npz, m, &bytes);
        snprintf(title, sizeof title, "%.250s:%.250s", npz->path, name);
        return err ? err : weir_npy_read(title, bytes, (size_t)m->size, arrayp);
    }
    return WEIR_ERR(WEIR_ENOTFOUND, "%s has no array '%.64s'", npz->path, name);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

struct weir_npz_writer {
    weir_file *file;
    weir_buf directory;
    uint64_t count;
};

weir_err weir_npz_writer_open(const char *path, weir_npz_writer **writerp) {
    *writerp = NULL;
    weir_npz_writer *writer = weir_calloc(1, sizeof *writer);
    if (!writer) return WEIR_NOMEM("while writing %s", path);
    weir_err err = weir_file_open(path, WEIR_FILE_CREATE, &writer->file);
    if (err) {
        weir_npz_writer_cancel(writer);
        return err;
    }
    *writerp = writer;
    return WEIR_OK;
}

typedef struct added {
    const char *name;
    uint64_t size, offset;
    uint32_t crc;
} added;

/* The fields that both kinds of header have, from "version needed" to the length of the name: 24 bytes. */
static void put_common(uint8_t *p, const added *a) {
    size_t name = strlen(a->name) + strlen(SUFFIX);
    memset(p, 0, 24);
    weir_put_u16(p, 45);       /* Zip64 */
    weir_put_u16(p + 8, 0x21); /* 1 January 1980: no clock in an archive, the same bytes each time */
    weir_put_u32(p + 10, a->crc);
    weir_put_u32(p + 14, IN_EXTRA);
    weir_put_u32(p + 18, IN_EXTRA);
    weir_put_u16(p + 22, (uint16_t)name);
}

static void put_local(weir_buf *out, const added *a) {
    uint8_t head[LOCAL_BYTES] = {0}, extra[20];
    weir_put_u32(head, LOCAL_SIGN);
    put_common(head + 4, a);
    weir_put_u16(head + 28, sizeof extra);
    weir_put_u16(extra, ZIP64_ID);
    weir_put_u16(extra + 2, 16);
    weir_put_u64(extra + 4, a->size);
    weir_put_u64(extra + 12, a->size);
    weir_buf_append(out, head, sizeof head);
    weir_buf_text(out, a->name);
    weir_buf_text(out, SUFFIX);
    weir_buf_append(out, extra, sizeof extra);
}

static void put_entry(weir_buf *out, const added *a) {
    uint8_t head[ENTRY_BYTES] = {0}, extra[28];
    weir_put_u32(head, ENTRY_SIGN);
    weir_put_u16(head + 4, 45);
    put_common(head + 6, a);
    weir_put_u16(head + 30, sizeof extra);
    weir_put_u32(head + 42, IN_EXTRA);
    weir_put_u16(extra, ZIP64_ID);
    weir_put_u16(extra + 2, 24);
    weir_put_u64(extra + 4, a->size);
    weir_put_u64(extra + 12, a->size);
    weir_put_u64(extra + 20, a->offset);
    weir_buf_append(out, head, sizeof head);
    weir_buf_text(out, a->name);
    weir_buf_text(out, SUFFIX);
    weir_buf_append(out, extra, sizeof extra);
}

weir_err weir_npz_add(weir_npz_writer *writer, const char *name, const weir_npy_array *array) {
    weir_buf head = {0}, local = {0};
    size_t bytes = (size_t)array->count * weir_npy_size(array->type);
    weir_npy_header(array, &head);
    weir_err err = weir_buf_err(&head);
    if (!err) {
        added a = {name, head.length + bytes, weir_file_length(writer->file), 0};
        a.crc = (uint32_t)crc32_z(crc32_z(0, (const uint8_t *)head.bytes, head.length), array->data, bytes);
        put_local(&local, &a);
        weir_buf_append(&local, head.bytes, head.length);
        put_entry(&writer->directory, &a);
        err = weir_buf_err(&local);
    }
    if (!err) err = weir_buf_err(&writer->directory);
    if (!err) err = weir_file_append(writer->file, local.bytes, local.length);
    if (!err && bytes) err = weir_file_append(writer->file, array->data, bytes);
    writer->count++;
    weir_buf_free(&head);
    weir_buf_free(&local);
    return err;
}

static void put_end(weir_buf *out, uint64_t entries, uint64_t offset, uint64_t bytes) {
    uint8_t end64[END64_BYTES] = {0}, locator[LOCATOR_BYTES] = {0}, end[END_BYTES] = {0};
    weir_put_u32(end64, END64_SIGN);
    weir_put_u64(end64 + 4, END64_BYTES - 12);
    weir_put_u16(end64 + 12, 45);
    weir_put_u16(end64 + 14, 45);
    weir_put_u64(end64 + 24, entries);
    weir_put_u64(end64 + 32, entries);
    weir_put_u64(end64 + 40, bytes);
    weir_put_u64(end64 + 48, offset);
    weir_put_u32(locator, LOCATOR64_SIGN);
    weir_put_u64(locator + 8, offset + bytes);
    weir_put_u32(locator + 16, 1);
    weir_put_u32(end, END_SIGN);
    weir_put_u16(end + 8, (uint16_t)entries);
    weir_put_u16(end + 10, (uint16_t)entries);
    weir_put_u32(end + 12, IN_EXTRA);
    weir_put_u32(end + 16, IN_EXTRA);
    weir_buf_append(out, end64, sizeof end64);
    weir_buf_append(out, locator, sizeof locator);
    weir_buf_append(out, end, sizeof end);
}

weir_err weir_npz_writer_close(weir_npz_writer *writer) {
    if (!writer) return WEIR_OK;
    put_end(&writer->directory, writer->count, weir_file_length(writer->file), writer->directory.length);
    weir_err err = weir_buf_err(&writer->directory);
    if (!err) err = weir_file_append(writer->file, writer->directory.bytes, writer->directory.length);
    if (!err) err = weir_file_sync(writer->file);
    weir_err_keep(&err, weir_file_close(writer->file));
    writer->file = NULL;
    weir_npz_writer_cancel(writer);
    return err;
}

void weir_npz_writer_cancel(weir_npz_writer *writer) {
    if (!writer) return;
    if (writer->file) weir_file_close(writer->file);
    weir_buf_free(&writer->directory);
    weir_free(writer);
}

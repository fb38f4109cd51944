/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c - the header of an array: parsed as a small language, not searched for words.
 *
 * NumPy evaluates the header as Python; here it is a dictionary of exactly three keys in any order, whose values are a
 * quoted text, True or False, and a tuple of whole numbers. Nothing else is accepted.
 */
#include <weir/store/snapshot/npy.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>

#include "npy_private.h"

#define MAGIC        "\x93NUMPY"
#define MAGIC_BYTES  6u
#define HEADER_ALIGN 64u
#define DESCR_MAX    8u

static const struct {
    const char *descr;
    size_t size;
} npy_types[WEIR_NPY_TYPE_COUNT] = {
#define ROW(name, descr, size) [WEIR_NPY_##name] = {descr, size},
    WEIR_NPY_TYPES(ROW)
#undef ROW
};

size_t weir_npy_size(weir_npy_type type) {
    return npy_types[type].size;
}

/* --- the header's language ---------------------------------------------------------------------------------------- */

typedef struct npy_header {
    const char *name; /* of the file */
    const char *next, *end;
    weir_npy_array *array;
    bool has_descr, has_order, has_shape, fortran;
} npy_header;

static weir_err npy_broken(const npy_header *h, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: the header of the array %s; write it again with numpy.save", h->name, what);
}

static void npy_skip_blanks(npy_header *h) {
    while (h->next < h->end && (*h->next == ' ' || *h->next == '\n' || *h->next == '\t'))
        h->next++;
}

/* Skips blanks before it. */
static bool npy_take(npy_header *h, char wanted) {
    npy_skip_blanks(h);
    if (h->next == h->end || *h->next != wanted) return false;
    h->next++;
    return true;
}

static bool npy_take_word(npy_header *h, const char *word) {
    size_t length = strlen(word);
    npy_skip_blanks(h);
    if ((size_t)(h->end - h->next) < length || memcmp(h->next, word, length) != 0) return false;
    h->next += length;
    return true;
}

/* A text in either quote, without escapes. */
static bool npy_take_text(npy_header *h, char *text, size_t size) {
    char quote = npy_take(h, '\'') ? '\'' : npy_take(h, '"') ? '"' : 0;
    size_t length = 0;
    if (!quote) return false;
    while (h->next < h->end && *h->next != quote && length + 1 < size)
        text[length++] = *h->next++;
    text[length] = 0;
    return npy_take(h, quote);
}

static weir_err npy_read_descr(npy_header *h) {
    char descr[DESCR_MAX] = {0};
    if (!npy_take_text(h, descr, sizeof descr))
        return npy_broken(h, "has a type that is not read: structures and long names");
    for (int type = 0; type < WEIR_NPY_TYPE_COUNT; type++) {
        if (strcmp(descr + 1, npy_types[type].descr) != 0) continue;
        if (descr[0] != '<' && descr[0] != '|' && !(descr[0] == '=' || npy_types[type].size == 1)) break;
        h->array->type = (weir_npy_type)type;
        h->has_descr = true;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA,
                    "%s: numbers of type '%s' are not supported; use b1, i1 to i8, u1 to u8, f4 or f8, little-endian",
                    h->name, descr);
}

static weir_err npy_read_dimension(npy_header *h) {
    uint64_t value = 0;
    unsigned digits = 0;
    for (; h->next < h->end && *h->next >= '0' && *h->next <= '9'; h->next++, digits++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*h->next - '0'), &value)) {
            return npy_broken(h, "has a shape beyond 64 bits");
        }
    }
    if (digits == 0) return npy_broken(h, "has a shape that is not a tuple of numbers");
    if (h->array->dims == WEIR_NPY_DIMS_MAX) return npy_broken(h, "has more than 4 dimensions");
    h->array->shape[h->array->dims++] = value;
    return WEIR_OK;
}

static weir_err npy_read_shape(npy_header *h) {
    weir_err err = WEIR_OK;
    if (!npy_take(h, '(')) return npy_broken(h, "has a shape that is not a tuple");
    while (!err && !npy_take(h, ')')) {
        npy_skip_blanks(h);
        err = npy_read_dimension(h);
        if (!err && !npy_take(h, ',')) {
            if (!npy_take(h, ')')) return npy_broken(h, "has a shape that is not closed");
            break;
        }
    }
    h->has_shape = true;
    return err;
}

static weir_err npy_read_entry(npy_header *h) {
    char key[32];
    if (!npy_take_text(h, key, sizeof key) || !npy_take(h, ':')) return npy_broken(h, "is not a dictionary");
    if (strcmp(key, "descr") == 0 && !h->has_descr) return npy_read_descr(h);
    if (strcmp(key, "shape") == 0 && !h->has_shape) return npy_read_shape(h);
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
        h->has_order = true;
        if (npy_take_word(h, "False")) return WEIR_OK;
        h->fortran = npy_take_word(h, "True");
        return h->fortran ? WEIR_OK : npy_broken(h, "has an order that is neither True nor False");
    }
    return npy_broken(h, "has a key other than descr, fortran_order and shape, or one of them twice");
}

static weir_err npy_read_header(npy_header *h) {
    weir_err err = WEIR_OK;
    if (!npy_take(h, '{')) return npy_broken(h, "is not a dictionary");
    while (!err && !npy_take(h, '}')) {
        err = npy_read_entry(h);
        if (!err && !npy_take(h, ',')) {
            if (!npy_take(h, '}')) return npy_broken(h, "is not a dictionary");
            break;
        }
    }
    if (err) return err;
    npy_skip_blanks(h);
    if (h->next != h->end) return npy_broken(h, "goes on behind its end");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return npy_broken(h, "lacks one of descr, fortran_order, shape");
    if (h->fortran && h->array->dims > 1) return npy_broken(h, "says Fortran order, which is not supported");
    return WEIR_OK;
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

weir_err weir_npy_read(const char *name, const void *bytes, size_t length, weir_npy_array *arrayp) {
    const uint8_t *p = bytes;
    *arrayp = (weir_npy_array){.type = WEIR_NPY_BOOL};
    if (length < MAGIC_BYTES + 4 || memcmp(p, MAGIC, MAGIC_BYTES) != 0) {
        return WEIR_ERR(WEIR_EDATA, "%s is not a .npy file: it does not begin like one", name);
    }
    bool first = p[6] == 1;
    size_t begin = first ? 10 : 12;
    if (p[6] < 1 || p[6] > 3 || p[7] != 0 || length < begin) {
        return WEIR_ERR(WEIR_EDATA, "%s is of version %u.%u; 1.0 to 3.0 are read", name, p[6], p[7]);
    }
    size_t text = first ? weir_get_u16(p + 8) : weir_get_u32(p + 8);
    if (text > WEIR_NPY_HEADER_MAX || text > length - begin) {
        return WEIR_ERR(WEIR_EDATA, "%s: the header of %zu bytes is longer than the file or than %u", name, text,
                        WEIR_NPY_HEADER_MAX);
    }
    npy_header h = {
        .name = name, .next = (const char *)p + begin, .end = (const char *)p + begin + text, .array = arrayp};
    weir_err err = npy_read_header(&h);
    if (err) return err;

    uint64_t bytes_wanted = npy_types[arrayp->type].size;
    arrayp->count = 1;
    for (uint32_t i = 0; i < arrayp->dims; i++) {
        if (__builtin_mul_overflow(arrayp->count, arrayp->shape[i], &arrayp->count))
            return WEIR_ERR(WEIR_EDATA, "%s: the array's shape is beyond 64 bits", name);
    }
    if (__builtin_mul_overflow(bytes_wanted, arrayp->count, &bytes_wanted) || bytes_wanted != length - begin - text)
        return WEIR_ERR(WEIR_EDATA,
                        "%s: the array's shape and its %zu bytes do not fit; it was cut, or is not an array", name,
                        length - begin - text);
    arrayp->data = p + begin + text;
    return WEIR_OK;
}

void weir_npy_header(const weir_npy_array *array, weir_buf *out) {
    char shape[WEIR_NPY_DIMS_MAX * 24], text[256];
    size_t used = 0;
    shape[0] = 0;
    for (uint32_t i = 0; i < array->dims; i++) {
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64 "%s", i ? " " : "", array->shape[i],
                                 i + 1 < array->dims || array->dims == 1 ? "," : "");
    }
    const char *order = npy_types[array->type].size == 1 ? "|" : "<";
    int length = snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order,
                          npy_types[array->type].descr, shape);
    WEIR_ASSERT(array->dims <= WEIR_NPY_DIMS_MAX && length > 0 && length < (int)sizeof text);
    size_t whole = (10 + (size_t)length + 1 + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN;
    uint8_t head[10] = MAGIC "\x01";
    weir_put_u16(head + 8, (uint16_t)(whole - sizeof head));
    weir_buf_append(out, head, sizeof head);
    weir_buf_append(out, text, (size_t)length);
    for (size_t at = sizeof head + (size_t)length; at + 1 < whole; at++)
        weir_buf_byte(out, ' ');
    weir_buf_byte(out, '\n');
}

/* --- numbers ----------------------------------------------------------------------------------------------------- */

static uint64_t npy_word(const weir_npy_array *array, uint64_t index) {
    WEIR_ASSERT(index < array->count);
    size_t size = npy_types[array->type].size;
    const uint8_t *p = (const uint8_t *)array->data + index * size;
    return size == 8 ? weir_get_u64(p) : size == 4 ? weir_get_u32(p) : size == 2 ? weir_get_u16(p) : p[0];
}

double weir_npy_f64(const weir_npy_array *array, uint64_t index) {
    uint64_t word = npy_word(array, index);
    uint32_t half = (uint32_t)word;
    float f32;
    double f64;
    switch (array->type) {
    case WEIR_NPY_F32:
        memcpy(&f32, &half, sizeof f32);
        return (double)f32;
    case WEIR_NPY_F64:
        memcpy(&f64, &word, sizeof f64);
        return f64;
    case WEIR_NPY_I8:
        return (int8_t)word;
    case WEIR_NPY_I16:
        return (int16_t)word;
    case WEIR_NPY_I32:
        return (int32_t)word;
    case WEIR_NPY_I64:
        return (double)(int64_t)word;
    default:
        return (double)word;
    }
}

weir_err weir_npy_i64(const weir_npy_array *array, const char *name, uint64_t index, int64_t *valuep) {
    uint64_t word = npy_word(array, index);
    double number = weir_npy_f64(array, index);
    *valuep = 0;
    switch (array->type) {
    case WEIR_NPY_F32:
    case WEIR_NPY_F64:
        if (!(number >= -9223372036854775808.0 && number < 9223372036854775808.0) || number != floor(number)) break;
        *valuep = (int64_t)number;
        return WEIR_OK;
    case WEIR_NPY_U64:
        if (word > INT64_MAX) break;
        *valuep = (int64_t)word;
        return WEIR_OK;
    case WEIR_NPY_I64:
        *valuep = (int64_t)word;
        return WEIR_OK;
    default:
        *valuep = (int64_t)number;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA, "%s: number %" PRIu64 " of the array is not a whole number of 64 bits: %g", name, index,
                    number);
}

weir_err weir_npy_i64s(const weir_npy_array *array, const char *name, uint64_t first, size_t count, int64_t *values) {
    weir_err err = WEIR_OK;
    WEIR_ASSERT(first <= array->count && count <= array->count - first);
    const uint8_t *p = (const uint8_t *)array->data + first * npy_types[array->type].size;
    if (array->type == WEIR_NPY_I64) {
        memcpy(values, p, count * sizeof *values);
    } else if (array->type == WEIR_NPY_I32) {
        for (size_t i = 0; i < count; i++)
            values[i] = (int32_t)weir_get_u32(p + i * sizeof(int32_t));
    } else {
        for (size_t i = 0; !err && i < count; i++)
            err = weir_npy_i64(array, name, first + i, &values[i]);
    }
    return err;
}

void weir_npy_f32s(const weir_npy_array *array, uint64_t first, size_t count, float *values) {
    WEIR_ASSERT(first <= array->count && count <= array->count - first);
    if (array->type == WEIR_NPY_F32) {
        memcpy(values, (const uint8_t *)array->data + first * sizeof *values, count * sizeof *values);
    } else {
        for (size_t i = 0; i < count; i++)
            values[i] = (float)weir_npy_f64(array, first + i);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c - writing named matrices, and reading them from anybody. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/json.h>

#include "files.h"
#include "safetensors.h"

#define LENGTH_BYTES 8u
#define ALIGNMENT    64u
#define NAME_BYTES   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as the file has them");

static bool tensor_is_name(const char *name, size_t length) {
    size_t i = 0;
    while (i < length && memchr(NAME_BYTES, name[i], sizeof NAME_BYTES - 1))
        i++;
    return length > 0 && length < WEIR_MODEL_NAME_MAX && i == length;
}

/* Bytes of rows × cols numbers of a size; false: more than a file may have. */
static bool tensor_bytes(uint64_t rows, uint64_t cols, uint64_t size, uint64_t *bytesp) {
    return !__builtin_mul_overflow(rows, cols, bytesp) && !__builtin_mul_overflow(*bytesp, size, bytesp) &&
           *bytesp <= WEIR_MODEL_WEIGHTS_BYTES_MAX;
}

/* The place of the first number that is not finite; count: all are. */
static uint64_t tensor_find_not_finite(const float *data, uint64_t count) {
    uint64_t i = 0;
    while (i < count && isfinite(data[i]))
        i++;
    return i;
}

/* --- writing --------------------------------------------------------------------------------------------------- */

static uint64_t tensor_number_bytes(const weir_model_tensor *t) {
    return t->words ? sizeof *t->words : sizeof *t->data;
}

/* begin: where its numbers are to begin. */
static weir_err tensor_check(const weir_model_tensor *t, uint64_t begin, uint64_t *bytesp) {
    if (!tensor_is_name(t->name, strlen(t->name))) {
        return WEIR_ERR(WEIR_EINVAL, "'%.40s' cannot name a tensor: it takes 1 to %u letters, digits, _, - and .",
                        t->name, WEIR_MODEL_NAME_MAX - 1);
    }
    if (!tensor_bytes(t->rows, t->cols, tensor_number_bytes(t), bytesp))
        return WEIR_ERR(WEIR_ELIMIT, "tensor %s is too large", t->name);
    if (t->words && begin % sizeof *t->words)
        return WEIR_ERR(WEIR_EINVAL, "tensor %s has whole numbers, and stands behind one of float32", t->name);
    if (t->words) return WEIR_OK;
    uint64_t at = tensor_find_not_finite(t->data, t->rows * t->cols);
    if (at == t->rows * t->cols) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "tensor %s has a weight that is not finite, at %llu; train with a lower rate", t->name,
                    (unsigned long long)at);
}

static void tensor_put(weir_json *json, const weir_model_tensor *t, uint64_t begin, uint64_t end) {
    weir_json_key(json, t->name);
    weir_json_object(json);
    weir_json_key_string(json, "dtype", t->words ? "U64" : "F32");
    weir_json_key(json, "shape");
    weir_json_array(json);
    weir_json_u64(json, t->rows);
    weir_json_u64(json, t->cols);
    weir_json_array_end(json);
    weir_json_key(json, "data_offsets");
    weir_json_array(json);
    weir_json_u64(json, begin);
    weir_json_u64(json, end);
    weir_json_array_end(json);
    weir_json_object_end(json);
}

/* Length, header and the blanks that bring the numbers to a multiple of 8. */
static weir_err tensor_make_header(const weir_model_tensor *tensors, size_t count, weir_buf *out) {
    uint8_t length[LENGTH_BYTES] = {0};
    uint64_t begin = 0, bytes = 0;
    weir_err err = WEIR_OK;
    weir_buf_append(out, length, sizeof length);
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    for (size_t i = 0; !err && i < count; i++) {
        err = tensor_check(&tensors[i], begin, &bytes);
        if (!err) tensor_put(&json, &tensors[i], begin, begin + bytes);
        begin += bytes;
    }
    weir_json_object_end(&json);
    while (out->length % LENGTH_BYTES && !out->failed)
        weir_buf_byte(out, ' ');
    if (!err) err = weir_buf_err(out);
    if (!err && (begin > WEIR_MODEL_WEIGHTS_BYTES_MAX || out->length - LENGTH_BYTES > WEIR_MODEL_HEADER_BYTES_MAX)) {
        err = WEIR_ERR(WEIR_ELIMIT, "a model of %zu tensors and %llu bytes is too large", count,
                       (unsigned long long)begin);
    }
    if (!err) weir_put_u64((uint8_t *)out->bytes, out->length - LENGTH_BYTES);
    return err;
}

weir_err weir_safetensors_write(const char *path, const weir_model_tensor *tensors, size_t count) {
    weir_buf header = {0};
    weir_file *file = NULL;
    weir_err err = WEIR_OK;
    if (count > WEIR_MODEL_TENSORS_MAX) return WEIR_ERR(WEIR_ELIMIT, "%zu tensors are too many for a model", count);
    for (size_t i = 0; i < count; i++) /* few, and once a training: a square is fine */
        for (size_t j = 0; j < i; j++)
            if (strcmp(tensors[i].name, tensors[j].name) == 0)
                return WEIR_ERR(WEIR_EINVAL, "two tensors are named %s", tensors[i].name);
    err = tensor_make_header(tensors, count, &header);
    if (!err) err = weir_file_open(path, WEIR_FILE_CREATE, &file);
    if (!err) err = weir_file_append(file, header.bytes, header.length);
    for (size_t i = 0; !err && i < count; i++)
        err = weir_file_append(file, tensors[i].words ? (const void *)tensors[i].words : tensors[i].data,
                               tensors[i].rows * tensors[i].cols * tensor_number_bytes(&tensors[i]));
    if (!err) err = weir_file_sync(file);
    weir_err_keep(&err, weir_file_close(file));
    weir_buf_free(&header);
    return err;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

/* One tensor as the header says; its data is not looked at yet. */
typedef struct tensor_place {
    weir_span name;
    uint64_t rows, cols, begin, end;
    bool words; /* U64 */
} tensor_place;

typedef struct tensor_header {
    const char *name; /* of the file */
    tensor_place *tensors;
    size_t count, capacity, name_bytes;
    uint64_t data_bytes;
} tensor_header;

static weir_err tensor_err(const tensor_header *h, weir_span name, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: tensor %.*s: %s", h->name, (int)(name.length > 60 ? 60 : name.length), name.bytes,
                    what);
}

/* The items of an array; false: it is none of at most two whole numbers. The reader stays where that is known. */
static bool tensor_numbers(weir_json_reader *r, const weir_json_token *array, int64_t numbers[2], size_t *countp) {
    weir_json_token item;
    *countp = 0;
    if (array->kind != WEIR_JSON_ARRAY) return false;
    while (weir_json_read_item(r)) {
        if (*countp == 2 || !weir_json_read(r, &item) || !weir_json_token_i64(&item, 0, INT64_MAX, &numbers[*countp]))
            return false;
        ++*countp;
    }
    return true;
}

/* The reader stands in the tensor's object. */
static weir_err tensor_describe(const tensor_header *h, weir_json_reader *r, tensor_place *t) {
    weir_json_token key, value;
    int64_t sizes[2] = {1, 1}, ends[2] = {0, 0};
    size_t dims = 0, end_count = 0;
    uint64_t bytes = 0;
    bool dtype = false, shape = false, offsets = false;
    while (weir_json_read_name(r, &key)) {
        weir_json_read(r, &value);
        if (!dtype && weir_json_token_is(&key, "dtype")) {
            dtype = true;
            t->words = weir_json_token_is(&value, "U64");
            if (!t->words && !weir_json_token_is(&value, "F32"))
                return tensor_err(h, t->name, "its dtype is not F32 or U64, which alone are read");
            continue;
        }
        if (!shape && weir_json_token_is(&key, "shape")) {
            shape = true;
            if (!tensor_numbers(r, &value, sizes, &dims) || dims == 0)
                return tensor_err(h, t->name, "its shape is not one or two whole numbers");
            continue;
        }
        if (!offsets && weir_json_token_is(&key, "data_offsets")) {
            offsets = true;
            if (!tensor_numbers(r, &value, ends, &end_count) || end_count != 2 || ends[0] > ends[1] ||
                (uint64_t)ends[1] > h->data_bytes)
                return tensor_err(h, t->name, "its data_offsets lie outside the file");
            continue;
        }
        weir_json_skip(r, &value);
    }
    if (!dtype || !shape || !offsets) return tensor_err(h, t->name, "dtype, shape or data_offsets is missing");
    t->rows = dims == 2 ? (uint64_t)sizes[0] : 1;
    t->cols = (uint64_t)sizes[dims - 1];
    t->begin = (uint64_t)ends[0];
    t->end = (uint64_t)ends[1];
    if (t->words && t->begin % sizeof(uint64_t))
        return tensor_err(h, t->name, "its data does not begin at a multiple of 8 bytes");
    if (tensor_bytes(t->rows, t->cols, t->words ? sizeof(uint64_t) : sizeof(float), &bytes) &&
        bytes == t->end - t->begin)
        return WEIR_OK;
    return tensor_err(h, t->name, "its shape does not fit its data_offsets");
}

static weir_err tensor_read_header(tensor_header *h, weir_span text) {
    weir_json_token key, value;
    weir_err err = weir_json_check_object(h->name, text.bytes, text.length, WEIR_MODEL_JSON_DEPTH_MAX);
    if (err) return err;
    weir_json_reader r = weir_json_reader_of(text.bytes, text.length, WEIR_MODEL_JSON_DEPTH_MAX);
    weir_json_enter(&r, NULL);
    while (!err && weir_json_read_name(&r, &key)) {
        weir_span name = {key.bytes, key.length};
        weir_json_read(&r, &value);
        if (weir_json_token_is(&key, "__metadata__")) {
            weir_json_skip(&r, &value);
            continue;
        }
        if (!tensor_is_name(name.bytes, name.length))
            return tensor_err(h, name, "a name has letters, digits, _, - and .");
        if (value.kind != WEIR_JSON_OBJECT) return tensor_err(h, name, "it is not an object");
        if (h->count == WEIR_MODEL_TENSORS_MAX) return WEIR_ERR(WEIR_ELIMIT, "%s has too many tensors", h->name);
        if (!WEIR_GROW(h->tensors, h->capacity, h->count)) return WEIR_NOMEM("while reading %s", h->name);
        h->tensors[h->count] = (tensor_place){.name = name};
        err = tensor_describe(h, &r, &h->tensors[h->count++]);
        h->name_bytes += name.length + 1;
    }
    WEIR_ASSERT(err || !r.fault); /* the text was checked */
    return err;
}

static int tensor_by_begin(const void *x, const void *y) {
    const tensor_place *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static int tensor_by_name(const void *x, const void *y) {
    const weir_model_tensor *a = x, *b = y;
    return strcmp(a->name, b->name);
}

/* Each byte belongs to exactly one tensor: no hole in which something could hide, no two names for one number. */
static weir_err tensor_check_cover(tensor_header *h) {
    uint64_t at = 0;
    if (h->count) qsort(h->tensors, h->count, sizeof *h->tensors, tensor_by_begin);
    for (size_t i = 0; i < h->count; i++) {
        if (h->tensors[i].begin != at) {
            return tensor_err(h, h->tensors[i].name, "its data does not begin where the one before ends");
        }
        at = h->tensors[i].end;
    }
    if (at == h->data_bytes) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: %llu bytes at the end belong to no tensor", h->name,
                    (unsigned long long)(h->data_bytes - at));
}

static weir_err tensor_take_data(const tensor_header *h, const uint8_t *data, weir_weights *w) {
    w->tensors = weir_calloc(h->count + 1, sizeof *w->tensors);
    w->names = weir_malloc(h->name_bytes + 1);
    w->data = weir_aligned_alloc(ALIGNMENT, h->data_bytes + 1);
    if (!w->tensors || !w->names || !w->data)
        return WEIR_NOMEM("for the %llu bytes of %s", (unsigned long long)h->data_bytes, h->name);
    memcpy(w->data, data, h->data_bytes);
    char *name = w->names;
    for (size_t i = 0; i < h->count; i++) {
        const tensor_place *d = &h->tensors[i];
        WEIR_ASSERT(d->begin % sizeof(float) == 0 && d->end <= h->data_bytes);
        memcpy(name, d->name.bytes, d->name.length);
        name[d->name.length] = '\0';
        const void *numbers = w->data + d->begin;
        w->tensors[i] = (weir_model_tensor){.name = name, .rows = d->rows, .cols = d->cols};
        if (d->words)
            w->tensors[i].words = numbers;
        else
            w->tensors[i].data = numbers;
        name += d->name.length + 1;
    }
    WEIR_ASSERT((size_t)(name - w->names) == h->name_bytes);
    w->count = h->count;
    if (w->count) qsort(w->tensors, w->count, sizeof *w->tensors, tensor_by_name);
    for (size_t i = 0; i < w->count; i++) {
        const weir_model_tensor *t = &w->tensors[i];
        weir_span named = {t->name, strlen(t->name)};
        if (i && strcmp(t->name, t[-1].name) == 0) return tensor_err(h, named, "it is there twice");
        if (t->data && tensor_find_not_finite(t->data, t->rows * t->cols) < t->rows * t->cols)
            return tensor_err(h, named, "it has a weight that is not finite");
    }
    return WEIR_OK;
}

weir_err weir_safetensors_read(const char *name, const void *bytes, size_t length, weir_weights *weightsp) {
    const uint8_t *at = bytes;
    *weightsp = (weir_weights){0};
    if (length < LENGTH_BYTES) return WEIR_ERR(WEIR_EDATA, "%s is cut: it has no header", name);
    uint64_t text = weir_get_u64(at);
    if (text > WEIR_MODEL_HEADER_BYTES_MAX || text > length - LENGTH_BYTES) {
        return WEIR_ERR(WEIR_EDATA, "%s says its header has %llu bytes, of which there are %zu, and %u are the most",
                        name, (unsigned long long)text, length - LENGTH_BYTES, WEIR_MODEL_HEADER_BYTES_MAX);
    }
    at += LENGTH_BYTES;
    tensor_header h = {.name = name, .data_bytes = length - LENGTH_BYTES - text};
    weir_err err = tensor_read_header(&h, (weir_span){(const char *)at, text});
    if (!err) err = tensor_check_cover(&h);
    if (!err) err = tensor_take_data(&h, at + text, weightsp);
    if (err) weir_weights_free(weightsp);
    weir_free(h.tensors);
    return err;
}

void weir_weights_free(weir_weights *weights) {
    weir_free(weights->tensors);
    weir_free(weights->names);
    weir_free(weights->data);
    *weights = (weir_weights){0};
}

weir_err weir_model_weights_check(const char *name, const void *bytes, size_t length) {
    weir_weights weights;
    weir_err err = weir_safetensors_read(name, bytes, length, &weights);
    weir_weights_free(&weights);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* model_test.c - a model folder: what is written is read, and what was touched is refused with its reason. */
#include "model_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>

static void write_model(const model_keys *keys) {
    weir_model_write_opts opts = model_write_opts(keys->secret);
    assert_ok(weir_model_write(weir_test_path("m"), &opts));
}

static void refused(const weir_model_opts *opts, weir_code code, const char *text) {
    weir_model *model = (weir_model *)1;
    assert_err(weir_model_open(weir_test_path("m"), opts, &model), code, text);
    assert_null(model);
}

static char *slurp(const char *name, size_t *lengthp) {
    char *bytes = NULL;
    assert_ok(weir_file_load(weir_test_path(name), 1u << 20, &bytes, lengthp));
    return bytes;
}

static void put(const char *name, const void *bytes, size_t length) {
    assert_ok(weir_file_replace(weir_test_path(name), bytes, length));
}

/* --- round trip ------------------------------------------------------------------------------------------------- */

static void what_is_written_is_read(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    weir_model_opts opts = model_opts(&keys);
    weir_model *model = NULL;
    size_t length = 0;
    write_model(&keys);
    opts.schema_hash = MODEL_SCHEMA;
    assert_ok(weir_model_open(weir_test_path("m"), &opts, &model));
    assert_int_equal(weir_model_tensor_count(model), 2);
    assert_true(weir_model_schema_hash(model) == MODEL_SCHEMA);
    assert_string_equal(weir_model_task(model), "fraud");
    assert_string_equal(weir_model_text_of(model, WEIR_MODEL_ARCHITECTURE, &length),
                        "{\"hidden\":64,\"layers\":[1,2]}");
    assert_int_equal(length, 28);
    assert_string_equal(weir_model_text_of(model, WEIR_MODEL_NORMALISATION, NULL), "{}");
    assert_string_equal(weir_model_text_of(model, WEIR_MODEL_CALIBRATION, NULL), "{\"slope\":1.5}");
    assert_string_equal(weir_model_text_of(model, WEIR_MODEL_METRICS, NULL), "{\"average_precision\":0.61}");
    assert_string_equal(weir_model_text_of(model, WEIR_MODEL_PROVENANCE, NULL), "{\"seed\":7}");
    const weir_model_tensor *head = weir_model_tensor_find(model, "head.weight");
    assert_non_null(head);
    assert_int_equal(head->rows, 3);
    assert_int_equal(head->cols, 2);
    assert_memory_equal(head->data, model_head, sizeof model_head);
    assert_memory_equal(weir_model_tensor_find(model, "head.bias")->data, model_bias, sizeof model_bias);
    assert_null(weir_model_tensor_find(model, "head"));
    assert_string_equal(weir_model_tensor_at(model, 0)->name, "head.bias"); /* sorted */
    weir_model_close(model);
    weir_secret_key_free(keys.secret);
}

/* The format as its specification has it, written by hand. */
static void weights_are_byte_for_byte_safetensors(void **state) {
    (void)state;
    static const char header[] = "{\"head.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
                                 "\"head.bias\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[24,32]}}";
    model_keys keys = model_keys_make("k");
    size_t length = 0, padded = (sizeof header - 1 + 7) / 8 * 8;
    write_model(&keys);
    char *bytes = slurp("m/weights.safetensors", &length);
    assert_int_equal(length, 8 + padded + 32);
    const unsigned char size[8] = {(unsigned char)padded, (unsigned char)(padded >> 8)};
    assert_memory_equal(bytes, size, 8);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, model_head, 24);
    assert_memory_equal(bytes + 8 + padded + 24, model_bias, 8);
    weir_free(bytes);
    weir_secret_key_free(keys.secret);
}

/* What Python's safetensors calls uint64, beside a matrix. */
static void whole_numbers_are_written_and_read(void **state) {
    (void)state;
    static const uint64_t words[] = {0, 1, (uint64_t)1 << 63, UINT64_MAX};
    static const char header[] = "{\"ids\":{\"dtype\":\"U64\",\"shape\":[4,1],\"data_offsets\":[0,32]},"
                                 "\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[32,40]}}";
    const weir_model_tensor tensors[] = {{"ids", 4, 1, NULL, words}, {"w", 1, 2, model_bias, NULL}};
    const weir_model_opts unsigned_too = {.accept_unsigned = true};
    weir_model_write_opts opts = model_write_opts(NULL);
    weir_model *model = NULL;
    size_t length = 0;
    opts.tensors = tensors;
    opts.tensor_count = 2;
    assert_ok(weir_model_write(weir_test_path("m"), &opts));
    char *bytes = slurp("m/weights.safetensors", &length);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    assert_memory_equal(bytes + length - 8 - sizeof words, words, sizeof words);
    assert_ok(weir_model_open(weir_test_path("m"), &unsigned_too, &model));
    const weir_model_tensor *ids = weir_model_tensor_find(model, "ids"), *w = weir_model_tensor_find(model, "w");
    assert_true(ids && w && !ids->data && !w->words && ids->rows == 4 && ids->cols == 1);
    assert_memory_equal(ids->words, words, sizeof words);
    assert_memory_equal(w->data, model_bias, sizeof model_bias);
    weir_model_close(model);
    weir_free(bytes);
}

static void refuses_to_write(weir_model_write_opts opts, weir_code code, const char *text) {
    assert_err(weir_model_write(weir_test_path("m"), &opts), code, text);
    assert_false(weir_path_exists(weir_test_path("m")));
    assert_false(weir_path_exists(weir_test_path("m.new")));
}

static void what_could_not_be_read_is_not_written(void **state) {
    (void)state;
    float bad[] = {1, NAN};
    weir_model_tensor tensors[] = {{"a", 1, 2, bad, NULL}, {"a\"b", 1, 2, model_bias, NULL}};
    weir_model_write_opts opts = model_write_opts(NULL);
    opts.tensors = tensors;
    refuses_to_write(opts, WEIR_EINVAL, "tensor a has a weight that is not finite, at 1");
    opts.tensors = tensors + 1;
    opts.tensor_count = 1;
    refuses_to_write(opts, WEIR_EINVAL, "cannot name a tensor");
    weir_model_tensor twice[] = {{"a", 1, 2, model_bias, NULL}, {"a", 1, 2, model_bias, NULL}};
    opts.tensors = twice;
    opts.tensor_count = 2;
    refuses_to_write(opts, WEIR_EINVAL, "two tensors are named a");
    static const uint64_t words[] = {1, UINT64_MAX};
    static const float three[] = {1, 2, 3};
    const weir_model_tensor behind[] = {{"a", 3, 1, three, NULL}, {"b", 2, 1, NULL, words}};
    opts.tensors = behind;
    refuses_to_write(opts, WEIR_EINVAL, "tensor b has whole numbers, and stands behind one of float32");
    opts = model_write_opts(NULL);
    opts.metrics = "{\"a\":}";
    refuses_to_write(opts, WEIR_EDATA, "metrics.json is not a JSON object: byte 6");
    opts = model_write_opts(NULL);
    opts.architecture = "[1]";
    refuses_to_write(opts, WEIR_EDATA, "architecture is not a JSON object");
    opts = model_write_opts(NULL);
    opts.tensor_count = WEIR_MODEL_TENSORS_MAX + 1;
    refuses_to_write(opts, WEIR_ELIMIT, "too many");
}

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static void each_flipped_bit_is_seen(void **state) {
    (void)state;
    static const char *const files[] = {"m/weights.safetensors", "m/model.json", "m/metrics.json",
                                        "m/provenance.json",     "m/MANIFEST",   "m/MANIFEST.sig"};
    model_keys keys = model_keys_make("k");
    weir_model_opts opts = model_opts(&keys);
    write_model(&keys);
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        size_t length = 0;
        char *bytes = slurp(files[f], &length);
        for (size_t i = 0; i < length; i += 1 + length / 97) {
            bytes[i] = (char)(bytes[i] ^ 1 << (i % 8));
            put(files[f], bytes, length);
            weir_model *model = NULL;
            weir_err err = weir_model_open(weir_test_path("m"), &opts, &model);
            weir_code wanted = strncmp(files[f], "m/MANIFEST", 10) == 0 ? WEIR_EPERM : WEIR_ECORRUPT;
            if (weir_err_code(err) != wanted) print_error("%s, byte %zu\n", files[f], i);
            assert_err(err, wanted, NULL);
            bytes[i] = (char)(bytes[i] ^ 1 << (i % 8));
        }
        put(files[f], bytes, length);
        weir_free(bytes);
    }
    weir_secret_key_free(keys.secret);
}

static void torn_files_are_named(void **state) {
    (void)state;
    static const char *const files[] = {"weights.safetensors", "model.json", "metrics.json", "provenance.json"};
    model_keys keys = model_keys_make("k");
    weir_model_opts opts = model_opts(&keys);
    write_model(&keys);
    for (size_t f = 0; f < 4; f++) {
        char path[64], wanted[64];
        size_t length = 0;
        snprintf(path, sizeof path, "m/%s", files[f]);
        char *bytes = slurp(path, &length);
        put(path, bytes, length - 1);
        snprintf(wanted, sizeof wanted, "%s is not as its MANIFEST says", files[f]);
        refused(&opts, WEIR_ECORRUPT, wanted);
        assert_ok(weir_file_remove(weir_test_path(path)));
        snprintf(wanted, sizeof wanted, "%s is missing", files[f]);
        refused(&opts, WEIR_ECORRUPT, wanted);
        put(path, bytes, length);
        weir_free(bytes);
    }
    weir_secret_key_free(keys.secret);
}

static void strangers_and_gaps_are_named(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    weir_model_opts opts = model_opts(&keys);
    refused(&opts, WEIR_ENOTFOUND, "there is no model");
    write_model(&keys);
    put("m/run.py", "x", 1);
    refused(&opts, WEIR_ECORRUPT, "run.py belongs to no model");
    assert_ok(weir_file_remove(weir_test_path("m/run.py")));
    assert_ok(weir_file_remove(weir_test_path("m/MANIFEST")));
    refused(&opts, WEIR_ECORRUPT, "has no MANIFEST");
    weir_secret_key_free(keys.secret);
}

static void signatures_count_as_the_operator_says(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k"), other = model_keys_make("other");
    weir_model_opts opts = model_opts(&keys), lax = {.accept_unsigned = true}, both = opts;
    weir_model *model = NULL;
    write_model(&other);
    refused(&opts, WEIR_EPERM, "none of the 1 keys that are trusted");
    both.accept_unsigned = true;
    refused(&both, WEIR_EPERM, "none of the 1 keys"); /* what is signed is signed rightly */
    assert_ok(weir_model_open(weir_test_path("m"), &lax, &model));
    weir_model_close(model);
    assert_ok(weir_file_remove(weir_test_path("m/MANIFEST.sig")));
    refused(&opts, WEIR_EPERM, "is not signed; sign it, or set models.require_signature: false");
    assert_ok(weir_model_open(weir_test_path("m"), &both, &model));
    weir_model_close(model);
    put("m/MANIFEST.sig", "weir-ed25519 00\n", 16);
    refused(&opts, WEIR_EPERM, "is not a signature line");
    opts.key_count = 0;
    assert_ok(weir_manifest_sign(weir_test_path("m"), keys.secret));
    refused(&opts, WEIR_EPERM, "none of the 0 keys");
    weir_secret_key_free(keys.secret);
    weir_secret_key_free(other.secret);
}

static void another_schema_is_named(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    weir_model_opts opts = model_opts(&keys);
    write_model(&keys);
    opts.schema_hash = 1;
    refused(&opts, WEIR_EVERSION, "was trained for schema 0123456789abcdef, and this one is 0000000000000001; train a");
    weir_secret_key_free(keys.secret);
}

/* MODEL-M2: rightly signed, and hostile all the same: whoever has the key may still be mistaken. */
static void signed_nonsense_is_refused(const model_keys *keys, const char *file, const char *text, weir_code code,
                                       const char *sentence) {
    weir_model_opts opts = model_opts(keys);
    char path[64];
    size_t length = 0;
    snprintf(path, sizeof path, "m/%s", file);
    char *kept = slurp(path, &length);
    put(path, text, strlen(text));
    assert_ok(weir_manifest_write(weir_test_path("m")));
    assert_ok(weir_manifest_sign(weir_test_path("m"), keys->secret));
    refused(&opts, code, sentence);
    put(path, kept, length);
    weir_free(kept);
}

#define CARD(format, rest) "{\"format\":" format ",\"schema_hash\":\"0000000000000001\"" rest "}"

static void m2_verified_first_then_read_strictly(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    write_model(&keys);
    signed_nonsense_is_refused(&keys, "metrics.json", "{}x", WEIR_EDATA, "metrics.json is not a JSON object: byte 3");
    signed_nonsense_is_refused(&keys, "provenance.json", "", WEIR_EDATA, "provenance.json is not a JSON object");
    signed_nonsense_is_refused(&keys, "model.json", CARD("2", ""), WEIR_EVERSION, "format 2; this version reads 1");
    signed_nonsense_is_refused(&keys, "model.json", CARD("1", ""), WEIR_EDATA, "\"task\" is missing");
    signed_nonsense_is_refused(&keys, "model.json", CARD("1", ",\"task\":\"t\""), WEIR_EDATA, "\"architecture\" is");
    signed_nonsense_is_refused(&keys, "model.json", CARD("1", ",\"format\":1"), WEIR_EDATA, "unknown or there twice");
    signed_nonsense_is_refused(&keys, "model.json", CARD("1", ",\"code\":\"x\""), WEIR_EDATA, "\"code\" is unknown");
    signed_nonsense_is_refused(&keys, "weights.safetensors", "abc", WEIR_EDATA, "is cut: it has no header");
    weir_secret_key_free(keys.secret);
}

/* --- hostile headers --------------------------------------------------------------------------------------------- */

/* A file of this header and so many bytes of zeros. */
static weir_err weights_of(const char *header, size_t data_bytes) {
    weir_buf file = {0};
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        weir_buf_byte(&file, (char)(length >> (8 * i)));
    weir_buf_text(&file, header);
    for (size_t i = 0; i < data_bytes; i++)
        weir_buf_byte(&file, 0);
    char *exact = malloc(file.length); /* so that a sanitizer sees one byte too far */
    memcpy(exact, file.bytes, file.length);
    weir_err err = weir_model_weights_check("w", exact, file.length);
    free(exact);
    weir_buf_free(&file);
    return err;
}

#define TENSOR(name, shape, offsets) \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

static void honest_headers_are_read(void **state) {
    (void)state;
    assert_ok(weights_of("{}", 0));
    assert_ok(weights_of("{\"__metadata__\":{\"by\":\"torch\"}," TENSOR("a", "2,3", "0,24") "}   ", 24));
    assert_ok(weights_of("{" TENSOR("b", "2", "4,12") "," TENSOR("a", "1,1", "0,4") "}", 12));
    assert_ok(weights_of("{" TENSOR("a", "0,5", "0,0") "," TENSOR("b", "1", "0,4") "}", 4));
}

static void hostile_headers_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes;
        const char *sentence;
    } cases[] = {
        {"{" TENSOR("a", "2", "0,8") "}", 7, "data_offsets lie outside"},
        {"{" TENSOR("a", "2", "8,0") "}", 8, "data_offsets lie outside"},
        {"{" TENSOR("a", "2", "0,-8") "}", 8, "data_offsets lie outside"},
        {"{" TENSOR("a", "2", "0,8,9") "}", 8, "data_offsets lie outside"},
        {"{" TENSOR("a", "3", "0,8") "}", 8, "shape does not fit"},
        {"{" TENSOR("a", "4611686018427387904,4", "0,0") "}", 0, "shape does not fit"},
        {"{" TENSOR("a", "9223372036854775807", "0,8") "}", 8, "shape does not fit"},
        {"{" TENSOR("a", "1,1,2", "0,8") "}", 8, "not one or two whole numbers"},
        {"{" TENSOR("a", "1.5", "0,8") "}", 8, "not one or two whole numbers"},
        {"{" TENSOR("a", "", "0,4") "}", 4, "not one or two whole numbers"},
        {"{" TENSOR("a", "1", "0,4") "}", 8, "4 bytes at the end belong to no tensor"},
        {"{" TENSOR("a", "1", "4,8") "}", 8, "does not begin where"},
        {"{" TENSOR("a", "2", "0,8") "," TENSOR("b", "1", "4,8") "}", 8, "does not begin where"},
        {"{" TENSOR("a", "1", "0,4") "," TENSOR("a", "1", "4,8") "}", 8, "it is there twice"},
        {"{" TENSOR("a/../b", "1", "0,4") "}", 4, "a name has letters"},
        {"{" TENSOR("\\u0061", "1", "0,4") "}", 4, "a name has letters"},
        {"{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "dtype is not F32"},
        {"{\"a\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "shape does not fit"},
        {"{" TENSOR("a", "1", "0,4") ",\"b\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[4,12]}}", 12,
         "does not begin at a multiple of 8"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype, shape or data_offsets is missing"},
        {"{\"a\":[1]}", 0, "it is not an object"},
        {"[]", 0, "is not a JSON object"},
        {"{\"a\":", 0, "is not a JSON object"},
        {"{\"\xff\":1}", 0, "is not a JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_err(weights_of(cases[i].header, cases[i].data_bytes), WEIR_EDATA, cases[i].sentence);
}

static void lengths_of_a_header_are_bounded(void **state) {
    (void)state;
    char bytes[16] = {9, 0, 0, 0, 0, 0, 0, 0, '{', '}', ' ', ' ', ' ', ' ', ' ', ' '};
    assert_err(weir_model_weights_check("w", bytes, 16), WEIR_EDATA,
               "says its header has 9 bytes, of which there are 8");
    bytes[0] = 8;
    assert_ok(weir_model_weights_check("w", bytes, 16));
    memset(bytes, 0xff, 8);
    assert_err(weir_model_weights_check("w", bytes, 16), WEIR_EDATA, "18446744073709551615");
    assert_err(weir_model_weights_check("w", bytes, 7), WEIR_EDATA, "is cut");
    char *header = malloc(WEIR_MODEL_HEADER_BYTES_MAX + 2);
    memset(header, ' ', WEIR_MODEL_HEADER_BYTES_MAX + 1);
    memcpy(header, "{}", 2);
    header[WEIR_MODEL_HEADER_BYTES_MAX + 1] = '\0';
    assert_err(weights_of(header, 0), WEIR_EDATA, "are the most");
    header[WEIR_MODEL_HEADER_BYTES_MAX] = '\0';
    assert_ok(weights_of(header, 0));
    free(header);
}

static void nesting_is_bounded(void **state) {
    (void)state;
    char text[256];
    for (unsigned depth = 31; depth <= 32; depth++) { /* arrays in one object: 32 deep, and one past it */
        int length =
            snprintf(text, sizeof text, "{\"a\":%.*s%.*s}", (int)depth, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                     (int)depth, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
        weir_err err = weir_model_json_file_check("m", text, (size_t)length);
        assert_err(err, WEIR_EDATA, depth == 31 ? "\"format\" is missing" : "is not a JSON object");
    }
}

static void numbers_that_are_none_are_refused(void **state) {
    (void)state;
    char file[8 + 56 + 4] = {56};
    memset(file + 8, ' ', 56);
    memcpy(file + 8, "{" TENSOR("a", "1", "0,4") "}", strlen("{" TENSOR("a", "1", "0,4") "}"));
    float value = INFINITY;
    memcpy(file + 64, &value, 4);
    assert_err(weir_model_weights_check("w", file, sizeof file), WEIR_EDATA, "not finite");
    value = 1;
    memcpy(file + 64, &value, 4);
    assert_ok(weir_model_weights_check("w", file, sizeof file));
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

/* Under a name of one component, as somebody in the folder types it. */
static void what_a_crash_left_is_removed(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    weir_model_write_opts write = model_write_opts(keys.secret);
    assert_int_equal(chdir(weir_test_folder()), 0);
    assert_ok(weir_folder_create("m.new/left"));
    assert_ok(weir_model_write("m", &write));
    assert_true(weir_path_exists("m") && !weir_path_exists("m.new") && !weir_path_exists("m/left"));
    weir_secret_key_free(keys.secret);
}

/* MODEL-M1: fails the first, second, … operation; what bears the name is whole. */
static void m1_whole_or_not_there_at_every_failure(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    weir_model_write_opts write = model_write_opts(keys.secret);
    weir_model_opts opts = model_opts(&keys);
    weir_model *model = NULL;
    for (unsigned n = 1;; n++) {
        char spec[32];
        snprintf(spec, sizeof spec, "any:%u:EIO:once", n);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_model_write(weir_test_path("m"), &write);
        bool reached = weir_fault_seen() >= n;
        assert_ok(weir_fault_arm(NULL));
        if (weir_path_exists(weir_test_path("m"))) {
            assert_ok(weir_model_open(weir_test_path("m"), &opts, &model));
            weir_model_close(model);
            assert_ok(weir_folder_remove(weir_test_path("m")));
        } else {
            assert_true(err != WEIR_OK);
        }
        if (!reached) break;
    }
    weir_secret_key_free(keys.secret);
}

static weir_err open_and_close(void *context) {
    weir_model *model = NULL;
    weir_err err = weir_model_open(weir_test_path("m"), context, &model);
    weir_model_close(model);
    return err;
}

static void open_leaks_at_no_failed_allocation(void **state) {
    (void)state;
    model_keys keys = model_keys_make("k");
    weir_model_opts opts = model_opts(&keys);
    write_model(&keys);
    weir_test_every_allocation(open_and_close, &opts);
    weir_secret_key_free(keys.secret);
}

WEIR_TESTS(WEIR_CASE(what_is_written_is_read), WEIR_CASE(weights_are_byte_for_byte_safetensors),
           WEIR_CASE(whole_numbers_are_written_and_read), WEIR_CASE(what_could_not_be_read_is_not_written),
           WEIR_CASE(each_flipped_bit_is_seen), WEIR_CASE(torn_files_are_named),
           WEIR_CASE(strangers_and_gaps_are_named), WEIR_CASE(signatures_count_as_the_operator_says),
           WEIR_CASE(another_schema_is_named), WEIR_CASE(m2_verified_first_then_read_strictly),
           WEIR_CASE(honest_headers_are_read), WEIR_CASE(hostile_headers_are_refused),
           WEIR_CASE(lengths_of_a_header_are_bounded), WEIR_CASE(nesting_is_bounded),
           WEIR_CASE(numbers_that_are_none_are_refused), WEIR_CASE(what_a_crash_left_is_removed),
           WEIR_CASE(m1_whole_or_not_there_at_every_failure), WEIR_CASE(open_leaks_at_no_failed_allocation))

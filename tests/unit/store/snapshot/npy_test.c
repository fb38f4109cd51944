/* SPDX-License-Identifier: Apache-2.0 */
/* npy_test.c - arrays and archives: the published layout, round trips, and bytes that want to do harm. */
#include "weir_test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/snapshot/npy.h>
#include <weir/store/snapshot/snapshot.h>

#include "npy_private.h"

/* Version 1.0 with this text as header, and bytes behind it. */
static size_t file_of(const char *text, size_t data, uint8_t out[512]) {
    size_t length = strlen(text);
    memset(out, 0, 512);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    weir_put_u16(out + 8, (uint16_t)length);
    memcpy(out + 10, text, length);
    return 10 + length + data;
}

static weir_err read_text(const char *text, size_t data, weir_npy_array *array) {
    static uint8_t bytes[512];
    size_t length = file_of(text, data, bytes);
    return weir_npy_read("x.npy", bytes, length, array);
}

/* Byte for byte what numpy.save("x.npy", numpy.array([1, 2, 3])) of NumPy 1.24 writes before the numbers. */
static void the_published_layout(void **state) {
    (void)state;
    char wanted[128], *bytes;
    size_t length;
    weir_npy_writer *writer;
    const int64_t numbers[] = {1, 2, 3};
    memset(wanted, ' ', sizeof wanted);
    memcpy(wanted, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(wanted + 10, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", 57);
    wanted[127] = '\n';
    assert_ok(weir_npy_writer_open(weir_test_path("x.npy"), WEIR_NPY_I64, 3, 0, &writer));
    assert_ok(weir_npy_write(writer, numbers, 3));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_file_load(weir_test_path("x.npy"), 4096, &bytes, &length));
    size_t head = length - sizeof numbers;
    assert_int_equal(head % 64, 0);
    assert_memory_equal(bytes, wanted, 8);
    assert_memory_equal(bytes + 10, wanted + 10, 57);
    assert_int_equal(bytes[head - 1], '\n');
    assert_memory_equal(bytes + head, numbers, sizeof numbers);
    weir_free(bytes);
}

static void headers_that_are_read(void **state) {
    weir_npy_array a;
    (void)state;
    assert_ok(read_text("{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n", 24, &a));
    assert_true(a.type == WEIR_NPY_I64 && a.dims == 1 && a.shape[0] == 3 && a.count == 3);
    assert_ok(read_text("{\"shape\":(2,3),'fortran_order':False,\"descr\":\"|u1\"}", 6, &a));
    assert_true(a.type == WEIR_NPY_U8 && a.dims == 2 && a.shape[1] == 3 && a.count == 6);
    assert_ok(read_text("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, &a));
    assert_true(a.dims == 0 && a.count == 1);
    assert_ok(read_text("{'descr': '<f8', 'fortran_order': True, 'shape': (0,)}", 0, &a));
    assert_int_equal(a.count, 0);
}

static void headers_that_are_refused(void **state) {
    static const struct {
        const char *text;
        size_t data;
        const char *why;
    } rows[] = {
        {"", 0, "is not a dictionary"},
        {"{", 0, "is not a dictionary"},
        {"{'descr': '<i8'}", 0, "lacks one of"},
        {"{'descr': '<i8', 'descr': '<i8', 'fortran_order': False, 'shape': ()}", 8, "twice"},
        {"{'descr': '>i8', 'fortran_order': False, 'shape': (1,)}", 8, "little-endian"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, "are not supported"},
        {"{'descr': [('a','<i8')], 'fortran_order': False, 'shape': (1,)}", 8, "is not read"},
        {"{'descr': '<i8', 'fortran_order': True, 'shape': (2,2)}", 32, "Fortran"},
        {"{'descr': '<i8', 'fortran_order': Maybe, 'shape': (1,)}", 8, "neither True nor False"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1)} ", 16, "do not fit"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}", 8, "not a tuple of numbers"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,1,1,1,1)}", 8, "more than 4"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8, "64 bits"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296,4294967296)}", 8, "64 bits"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2305843009213693952,)}", 0, "do not fit"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}", 8, "do not fit"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,)} and more", 8, "goes on"},
    };
    weir_npy_array a;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_err(read_text(rows[i].text, rows[i].data, &a), WEIR_EDATA, rows[i].why);
}

/* Every prefix is refused, and none is read past its end: the block is as long as the prefix. */
static void every_cut_is_refused(void **state) {
    uint8_t bytes[512];
    weir_npy_array a;
    (void)state;
    size_t length = file_of("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }\n", 12, bytes);
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *exact = malloc(cut + 1);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        assert_err(weir_npy_read("x.npy", exact, cut, &a), WEIR_EDATA, "x.npy");
        free(exact);
    }
    bytes[6] = 4;
    assert_err(weir_npy_read("x.npy", bytes, length, &a), WEIR_EDATA, "version 4.0");
}

static void numbers_of_every_type(void **state) {
    static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    static const int64_t wanted[WEIR_NPY_TYPE_COUNT] = {
        [WEIR_NPY_BOOL] = 255, [WEIR_NPY_I8] = -1,  [WEIR_NPY_I16] = -1,    [WEIR_NPY_I32] = -1,
        [WEIR_NPY_I64] = -1,   [WEIR_NPY_U8] = 255, [WEIR_NPY_U16] = 65535, [WEIR_NPY_U32] = 4294967295,
    };
    int64_t value;
    double f64 = 1e300, half = 0.5;
    (void)state;
    for (int type = WEIR_NPY_BOOL; type <= WEIR_NPY_U32; type++) {
        weir_npy_array a = {.type = (weir_npy_type)type, .dims = 1, .shape = {1}, .count = 1, .data = ones};
        assert_ok(weir_npy_i64(&a, "x", 0, &value));
        assert_true(value == wanted[type]);
    }
    weir_npy_array a = {.type = WEIR_NPY_U64, .dims = 1, .shape = {1}, .count = 1, .data = ones};
    assert_err(weir_npy_i64(&a, "x", 0, &value), WEIR_EDATA, "not a whole number");
    a = (weir_npy_array){.type = WEIR_NPY_F64, .dims = 1, .shape = {1}, .count = 1, .data = &f64};
    assert_err(weir_npy_i64(&a, "x", 0, &value), WEIR_EDATA, "not a whole number");
    a.data = &half;
    assert_err(weir_npy_i64(&a, "x", 0, &value), WEIR_EDATA, "not a whole number");
    assert_true(weir_npy_f64(&a, 0) == 0.5);
}

static void a_writer_keeps_its_word(void **state) {
    weir_npy_writer *writer;
    (void)state;
    assert_ok(weir_npy_writer_open(weir_test_path("x.npy"), WEIR_NPY_I64, 2, 0, &writer));
    assert_ok(weir_npy_write_i64(writer, 1));
    assert_err(weir_npy_writer_close(writer), WEIR_EINVAL, "announced with 2");
    assert_err(weir_npy_writer_open(weir_test_path("x.npy"), WEIR_NPY_I64, 2, 0, &writer), WEIR_EEXIST, "x.npy");
}

/* What an export writes where no edge is left. */
static void an_array_of_two_rows_without_columns(void **state) {
    const weir_npy_array shape = {.type = WEIR_NPY_I64, .dims = 2, .shape = {2, 0}};
    weir_npy_writer *writer;
    weir_npy_map *map;
    weir_npy_array a;
    (void)state;
    assert_ok(weir_npy_writer_open_shape(weir_test_path("x.npy"), &shape, &writer));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npy_map_open(weir_test_path("x.npy"), &map, &a));
    assert_true(a.dims == 2 && a.shape[0] == 2 && a.shape[1] == 0 && a.count == 0);
    weir_npy_map_close(map);
}

/* --- archives ---------------------------------------------------------------------------------------------------- */

static void write_archive(const char *path, uint64_t rows) {
    weir_npz_writer *archive;
    weir_npy_writer *writer;
    const uint8_t mask[] = {1, 0, 1};
    assert_ok(weir_npy_writer_open(weir_test_path("squares"), WEIR_NPY_I64, rows, 0, &writer));
    for (uint64_t i = 0; i < rows; i++)
        assert_ok(weir_npy_write_i64(writer, (int64_t)(i * i)));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npy_writer_open(weir_test_path("mask"), WEIR_NPY_BOOL, 3, 1, &writer));
    assert_ok(weir_npy_write(writer, mask, 3));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npz_writer_open(path, &archive));
    assert_ok(weir_npz_add(archive, "squares", weir_test_path("squares")));
    assert_ok(weir_npz_add(archive, "mask", weir_test_path("mask")));
    assert_ok(weir_npz_writer_close(archive));
    assert_ok(weir_file_remove(weir_test_path("squares")));
    assert_ok(weir_file_remove(weir_test_path("mask")));
}

static weir_err open_archive(const char *path, weir_npz **npzp) {
    assert_ok(weir_folder_create(weir_test_path("scratch")));
    return weir_npz_open(path, weir_test_path("scratch"), npzp);
}

static void archive_round_trip(void **state) {
    weir_npz *npz;
    weir_npy_array a;
    int64_t value;
    (void)state;
    write_archive(weir_test_path("x.npz"), 1000);
    assert_ok(open_archive(weir_test_path("x.npz"), &npz));
    assert_int_equal(weir_npz_count(npz), 2);
    assert_string_equal(weir_npz_name(npz, 0), "squares");
    assert_ok(weir_npz_array(npz, "squares", &a));
    for (uint64_t i = 0; i < 1000; i++) {
        assert_ok(weir_npy_i64(&a, "x", i, &value));
        assert_true(value == (int64_t)(i * i));
    }
    assert_ok(weir_npz_array(npz, "mask", &a));
    assert_true(a.dims == 2 && a.type == WEIR_NPY_BOOL && a.count == 3);
    assert_err(weir_npz_array(npz, "other", &a), WEIR_ENOTFOUND, "no array 'other'");
    weir_npz_close(npz);
}

/* The same arrays make the same bytes, whatever the clock says; nothing stands beside, and none is overwritten. */
static void the_same_archive_again(void **state) {
    char *first, *second;
    size_t first_length, second_length;
    weir_npz_writer *writer;
    (void)state;
    write_archive(weir_test_path("x.npz"), 1000);
    sleep(2); /* a zip archive counts in steps of two seconds */
    write_archive(weir_test_path("y.npz"), 1000);
    assert_ok(weir_file_load(weir_test_path("x.npz"), 1u << 16, &first, &first_length));
    assert_ok(weir_file_load(weir_test_path("y.npz"), 1u << 16, &second, &second_length));
    assert_int_equal(first_length, second_length);
    assert_memory_equal(first, second, first_length);
    assert_err(weir_npz_writer_open(weir_test_path("x.npz"), &writer), WEIR_EEXIST, "x.npz");
    weir_free(first);
    weir_free(second);
}

/* What libzip says of a disk that takes no more is ours to report; a limit on a file's length stands in for it. */
static void a_disk_that_is_full(void **state) {
    const struct rlimit limit = {2000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    weir_npz_writer *archive;
    weir_npy_writer *writer;
    static const uint8_t numbers[4000];
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(weir_npy_writer_open(weir_test_path("a"), WEIR_NPY_U8, sizeof numbers, 0, &writer));
    assert_ok(weir_npy_write(writer, numbers, sizeof numbers));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npz_writer_open(weir_test_path("x.npz"), &archive));
    assert_ok(weir_npz_add(archive, "a", weir_test_path("a")));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    weir_err err = weir_npz_writer_close(archive);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_err(err, WEIR_EIO, "error while writing");
}

/* A directory of 4 billion entries in 175 bytes is refused by its number, which libzip is not asked for. */
static void a_directory_that_lies(void **state) {
    uint8_t bytes[175] = {0}, *entry = bytes + 30, *end64 = entry + 47, *locator = end64 + 56, *end = locator + 20;
    weir_npz *npz;
    (void)state;
    memcpy(bytes, "PK\3\4", 4);
    memcpy(entry, "PK\1\2", 4);
    weir_put_u16(entry + 28, 1);
    entry[46] = 'a';
    memcpy(end64, "PK\6\6", 4);
    weir_put_u64(end64 + 4, 44);
    weir_put_u64(end64 + 24, (uint64_t)1 << 32);
    weir_put_u64(end64 + 32, (uint64_t)1 << 32);
    weir_put_u64(end64 + 40, 47);
    weir_put_u64(end64 + 48, 30);
    memcpy(locator, "PK\6\7", 4);
    weir_put_u64(locator + 8, 77);
    weir_put_u32(locator + 16, 1);
    memcpy(end, "PK\5\6\0\0\0\0\377\377\377\377\377\377\377\377\377\377\377\377", 20);
    assert_ok(weir_file_replace(weir_test_path("x.npz"), bytes, sizeof bytes));
    assert_err(open_archive(weir_test_path("x.npz"), &npz), WEIR_ELIMIT, "has 4294967296 members, and at most 4096");
    weir_put_u64(end64 + 32, WEIR_NPZ_MEMBERS_MAX);
    assert_ok(weir_file_replace(weir_test_path("x.npz"), bytes, sizeof bytes));
    assert_err(open_archive(weir_test_path("x.npz"), &npz), WEIR_EDATA, "write it again with numpy.savez");
}

/* Room for 5000 entries, but what is there is none: so libzip was not asked. With a comment, and one byte more than the
 * end can reach. */
static void a_directory_of_too_many(void **state) {
    enum { MEMBERS = 5000, DIRECTORY = MEMBERS * 46, COMMENT = 65535 };
    weir_npz *npz;
    (void)state;
    uint8_t *bytes = weir_calloc(1, 4 + DIRECTORY + 22 + COMMENT + 1), *end = bytes + 4 + DIRECTORY;
    assert_non_null(bytes);
    memcpy(bytes, "PK\3\4", 4);
    memcpy(end, "PK\5\6", 4);
    weir_put_u16(end + 8, MEMBERS);
    weir_put_u16(end + 10, MEMBERS);
    weir_put_u32(end + 12, DIRECTORY);
    weir_put_u32(end + 16, 4);
    assert_ok(weir_file_replace(weir_test_path("x.npz"), bytes, 4 + DIRECTORY + 22));
    assert_err(open_archive(weir_test_path("x.npz"), &npz), WEIR_ELIMIT, "has 5000 members, and at most 4096");
    weir_put_u16(end + 20, COMMENT);
    assert_ok(weir_file_replace(weir_test_path("x.npz"), bytes, 4 + DIRECTORY + 22 + COMMENT));
    assert_err(open_archive(weir_test_path("x.npz"), &npz), WEIR_ELIMIT, "has 5000 members, and at most 4096");
    assert_ok(weir_file_replace(weir_test_path("x.npz"), bytes, 4 + DIRECTORY + 22 + COMMENT + 1));
    assert_err(open_archive(weir_test_path("x.npz"), &npz), WEIR_EDATA, "write it again with numpy.savez");
    weir_free(bytes);
}

/* Rows without columns have no bytes, so they must not say how many nodes there are. */
static void nodes_without_columns(void **state) {
    const weir_npy_array ends = {.type = WEIR_NPY_I64, .dims = 2, .shape = {2, 0}};
    const weir_npy_array nodes = {.type = WEIR_NPY_F32, .dims = 2, .shape = {(uint64_t)1 << 60, 0}};
    weir_snapshot_import_opts opts = {.seed = 1};
    weir_snapshot_stats stats;
    weir_npz_writer *archive;
    weir_npy_writer *writer;
    (void)state;
    assert_ok(weir_npy_writer_open_shape(weir_test_path("ends"), &ends, &writer));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npy_writer_open_shape(weir_test_path("nodes"), &nodes, &writer));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npz_writer_open(weir_test_path("x.npz"), &archive));
    assert_ok(weir_npz_add(archive, "edge_index", weir_test_path("ends")));
    assert_ok(weir_npz_add(archive, "x", weir_test_path("nodes")));
    assert_ok(weir_npz_writer_close(archive));
    opts.npz = weir_test_path("x.npz");
    opts.out = weir_test_path("out");
    assert_err(weir_snapshot_import(&opts, &stats), WEIR_EDATA, "an array of nodes has no column");
}

/* A name becomes that of a column of text, where commas, quotes and ends of lines mean something. */
static void a_member_with_any_name(void **state) {
    static const int64_t ends[] = {0, 1, 1, 0};
    static const float numbers[] = {0.5f, 2};
    weir_snapshot_import_opts opts = {.seed = 1};
    weir_snapshot_stats stats;
    weir_npz_writer *archive;
    weir_npy_writer *writer;
    weir_snapshot *snapshot;
    (void)state;
    assert_ok(weir_npy_writer_open(weir_test_path("ends"), WEIR_NPY_I64, 2, 2, &writer));
    assert_ok(weir_npy_write(writer, ends, 4));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npy_writer_open(weir_test_path("numbers"), WEIR_NPY_F32, 2, 0, &writer));
    assert_ok(weir_npy_write(writer, numbers, 2));
    assert_ok(weir_npy_writer_close(writer));
    assert_ok(weir_npz_writer_open(weir_test_path("x.npz"), &archive));
    assert_ok(weir_npz_add(archive, "edge_index", weir_test_path("ends")));
    assert_ok(weir_npz_add(archive, "node.a,\"b\"\nc", weir_test_path("numbers")));
    assert_ok(weir_npz_writer_close(archive));
    opts.npz = weir_test_path("x.npz");
    opts.out = weir_test_path("out");
    assert_ok(weir_snapshot_import(&opts, &stats));
    assert_int_equal(stats.vertices, 2);
    assert_ok(weir_snapshot_open(opts.out, &(weir_snapshot_opts){.verify = true}, &snapshot));
    const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(snapshot, 0);
    assert_int_equal(vertices->column_count, 1);
    assert_string_equal(vertices->columns[0].name, "a__b__c");
    weir_snapshot_close(snapshot);
}

/* A flipped bit is either seen, or of no matter to what is read. */
static void every_flipped_byte_is_harmless(void **state) {
    char *bytes;
    size_t length;
    unsigned refused = 0;
    (void)state;
    write_archive(weir_test_path("x.npz"), 4);
    assert_ok(weir_file_load(weir_test_path("x.npz"), 1u << 16, &bytes, &length));
    for (size_t i = 0; i < length; i++) {
        weir_npz *npz = NULL;
        weir_npy_array a;
        bytes[i] ^= 0x55;
        assert_ok(weir_file_replace(weir_test_path("y.npz"), bytes, length));
        weir_err err = open_archive(weir_test_path("y.npz"), &npz);
        if (!err) err = weir_npz_array(npz, "squares", &a);
        if (!err) assert_true(a.count == 4 && weir_npy_f64(&a, 3) == 9);
        refused += err != WEIR_OK;
        weir_npz_close(npz);
        bytes[i] ^= 0x55;
    }
    assert_in_range(refused, length / 4, length);
    weir_free(bytes);
}

static weir_err open_and_close(void *context) {
    weir_npz *npz;
    weir_npy_array a;
    (void)context;
    weir_err err = weir_npz_open(weir_test_path("x.npz"), weir_test_path("scratch"), &npz);
    if (err) return err;
    err = weir_npz_array(npz, "squares", &a);
    weir_npz_close(npz);
    return err;
}

static void every_allocation_of_an_archive(void **state) {
    (void)state;
    write_archive(weir_test_path("x.npz"), 4);
    assert_ok(weir_folder_create(weir_test_path("scratch")));
    weir_test_every_allocation(open_and_close, NULL);
}

WEIR_TESTS(WEIR_CASE(the_published_layout), WEIR_CASE(headers_that_are_read), WEIR_CASE(headers_that_are_refused),
           WEIR_CASE(every_cut_is_refused), WEIR_CASE(numbers_of_every_type), WEIR_CASE(a_writer_keeps_its_word),
           WEIR_CASE(an_array_of_two_rows_without_columns), WEIR_CASE(archive_round_trip),
           WEIR_CASE(the_same_archive_again), WEIR_CASE(a_disk_that_is_full), WEIR_CASE(a_directory_that_lies),
           WEIR_CASE(a_directory_of_too_many), WEIR_CASE(nodes_without_columns), WEIR_CASE(a_member_with_any_name),
           WEIR_CASE(every_flipped_byte_is_harmless), WEIR_CASE(every_allocation_of_an_archive))

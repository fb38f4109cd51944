/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/store/base/thread.h>

static const char *sentence_of(weir_err err) {
    static _Thread_local char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    return sentence;
}

static const char *place_of(weir_err err) {
    static char place[256];
    weir_err_place(err, place, sizeof place);
    return place;
}

static void success_is_zero(void **state) {
    (void)state;
    assert_int_equal(weir_err_code(WEIR_OK), WEIR_CODE_OK);
    assert_string_equal(sentence_of(WEIR_OK), "success");
    assert_string_equal(place_of(WEIR_OK), "-");
    assert_string_equal(weir_code_name(WEIR_CODE_OK), "OK");
    assert_int_equal(weir_err_exit_status(WEIR_OK), 0);
}

static void error_keeps_code_sentence_and_place(void **state) {
    (void)state;
    int line = __LINE__ + 1;
    weir_err err = WEIR_ERR(WEIR_EDATA, "line %d of %s is empty; give it a key", 7, "users.csv");
    char place[256];
    snprintf(place, sizeof place, "%s:%d", __FILE__, line);
    assert_true(err != WEIR_OK);
    assert_true(weir_err_is(err, WEIR_EDATA));
    assert_false(weir_err_is(err, WEIR_EIO));
    assert_string_equal(sentence_of(err), "line 7 of users.csv is empty; give it a key");
    assert_string_equal(place_of(err), place);
}

/* Where a library would be that the program loads: as far away as the system puts what it maps. */
static void places_of_a_loaded_library(void **state) {
    (void)state;
    enum { SITES = 200 };
    weir_err_site *sites =
        mmap(NULL, SITES * sizeof *sites, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(sites != MAP_FAILED);
    for (unsigned round = 0; round < 2; round++) {
        for (int i = 0; i < SITES; i++) {
            char place[64];
            sites[i] = (weir_err_site){"far.cu", "far", i + 1};
            weir_err err = weir_err_make(&sites[i], WEIR_EIO, "number %d", i);
            snprintf(place, sizeof place, "far.cu:%d", i + 1);
            assert_true(weir_err_is(err, WEIR_EIO) && (i >= 50 || strstr(place_of(err), place)));
            snprintf(place, sizeof place, "number %d", i);
            assert_string_equal(sentence_of(err), place);
        }
        assert_non_null(strstr(place_of(weir_err_make(&sites[SITES - 1], WEIR_EIO, "x")), "library"));
    }
    munmap(sites, SITES * sizeof *sites);
}

static void every_code_has_name_text_and_exit_status(void **state) {
    (void)state;
    static const struct {
        weir_code code;
        const char *name, *text;
        int status;
    } rows[] = {
#define ROW(name, number, status, text) {WEIR_##name, #name, text, status},
        WEIR_CODES(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_err err = WEIR_ERR(rows[i].code, "%s", "");
        assert_int_equal(weir_err_code(err), rows[i].code);
        assert_true((int)rows[i].code > 0 && (int)rows[i].code < 256);
        assert_string_equal(weir_code_name(rows[i].code), rows[i].name);
        assert_int_equal(weir_err_exit_status(err), rows[i].status);
        assert_non_null(strstr(" 64 65 69 70 78 ", (char[5]){' ', (char)('0' + rows[i].status / 10),
                                                             (char)('0' + rows[i].status % 10), ' ', 0}));
    }
}

static void errno_becomes_the_fitting_code(void **state) {
    (void)state;
    static const struct {
        int value;
        weir_code code;
    } rows[] = {
        {ENOSPC, WEIR_EFULL},   {EDQUOT, WEIR_EFULL}, {ENOMEM, WEIR_ENOMEM},    {EACCES, WEIR_EPERM},
        {EPERM, WEIR_EPERM},    {EROFS, WEIR_EPERM},  {ENOENT, WEIR_ENOTFOUND}, {EEXIST, WEIR_EEXIST},
        {EBUSY, WEIR_EBUSY},    {EIO, WEIR_EIO},      {EADDRINUSE, WEIR_EBUSY}, {EPIPE, WEIR_EIO},
        {ECONNRESET, WEIR_EIO}, {0, WEIR_EIO},        {-1, WEIR_EIO},           {123456, WEIR_EIO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "cannot write a.log: %s", strerror(rows[i].value));
        weir_err err = WEIR_ERRNO(rows[i].value, "cannot write %s", "a.log");
        assert_err(err, rows[i].code, expected);
        assert_int_equal(strstr(sentence_of(err), "free some space") != NULL, rows[i].code == WEIR_EFULL);
    }
}

static void sentence_is_cut_one_past_its_limit(void **state) {
    (void)state;
    char text[WEIR_ERR_SENTENCE_MAX + 1];
    memset(text, 'x', sizeof text);
    text[WEIR_ERR_SENTENCE_MAX - 1] = 0;
    assert_string_equal(sentence_of(WEIR_ERR(WEIR_EIO, "%s", text)), text);
    text[WEIR_ERR_SENTENCE_MAX - 1] = 'x';
    text[WEIR_ERR_SENTENCE_MAX] = 0;
    assert_int_equal(strlen(sentence_of(WEIR_ERR(WEIR_EIO, "%s", text))), WEIR_ERR_SENTENCE_MAX - 1);
    assert_int_equal(strlen(sentence_of(WEIR_ERRNO(ENOSPC, "%s", text))), WEIR_ERR_SENTENCE_MAX - 1);
    assert_int_equal(strlen(sentence_of(weir_err_prefix(WEIR_ERR(WEIR_EIO, "a"), "%s", text))),
                     WEIR_ERR_SENTENCE_MAX - 1);
}

static void small_buffers_are_ended(void **state) {
    (void)state;
    char buffer[4] = "zzz";
    weir_err err = WEIR_ERR(WEIR_EIO, "abcdef");
    weir_err_sentence(err, buffer, 0);
    weir_err_place(err, buffer, 0);
    assert_string_equal(buffer, "zzz");
    weir_err_sentence(err, buffer, 3);
    assert_string_equal(buffer, "ab");
    weir_err_place(err, buffer, 1);
    assert_string_equal(buffer, "");
}

static void prefix_keeps_place_and_code(void **state) {
    (void)state;
    weir_err err = WEIR_ERR(WEIR_ECORRUPT, "the checksum is wrong");
    char place[256];
    snprintf(place, sizeof place, "%s", place_of(err));
    uint64_t made = weir_err_count(WEIR_ECORRUPT);
    weir_err prefixed = weir_err_prefix(err, "segment %d", 12);
    assert_err(prefixed, WEIR_ECORRUPT, NULL);
    assert_string_equal(sentence_of(prefixed), "segment 12: the checksum is wrong");
    assert_string_equal(place_of(prefixed), place);
    assert_string_equal(sentence_of(err), "the checksum is wrong");
    assert_true(weir_err_count(WEIR_ECORRUPT) == made);
    assert_true(weir_err_prefix(WEIR_OK, "segment %d", 12) == WEIR_OK);
}

static weir_err make_elsewhere(uint32_t number) {
    return WEIR_ERR(WEIR_ECLOSED, "number %u", number);
}

static void each_prefixed_error_has_words_of_its_own(void **state) {
    (void)state;
    enum { COUNT = WEIR_ERR_SENTENCES - 1 };
    for (uint32_t i = 0; i < 0x55; i++)
        make_elsewhere(i);
    weir_err err = WEIR_ERR(WEIR_ECORRUPT, "the checksum is wrong"), prefixed[COUNT];
    for (int i = 0; i < COUNT; i++)
        prefixed[i] = weir_err_prefix(err, "segment %d", i);
    for (int i = 0; i < COUNT; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "segment %d: the checksum is wrong", i);
        assert_string_equal(sentence_of(prefixed[i]), expected);
    }
}

static void ring_keeps_the_last_and_then_falls_back(void **state) {
    (void)state;
    weir_err err = WEIR_ERR(WEIR_EBUSY, "kept");
    char place[256];
    snprintf(place, sizeof place, "%s", place_of(err));
    for (uint32_t i = 1; i < WEIR_ERR_SENTENCES; i++)
        make_elsewhere(i);
    assert_string_equal(sentence_of(err), "kept");
    make_elsewhere(WEIR_ERR_SENTENCES);
    assert_string_equal(sentence_of(err), "in use by another");
    assert_string_equal(place_of(err), place);
    assert_true(weir_err_is(err, WEIR_EBUSY));
}

/* "topic … was recreated" must not become "input data is not valid" while others fail. */
static void kept_error_owns_its_words(void **state) {
    (void)state;
    weir_err_kept kept = {0};
    assert_ok(weir_err_kept_get(&kept));
    weir_err err = WEIR_ERR(WEIR_EDATA, "topic %s was recreated", "payments");
    char place[256];
    snprintf(place, sizeof place, "%s", place_of(err));
    weir_err_kept_set(&kept, err);
    for (uint32_t i = 0; i < 3 * WEIR_ERR_SENTENCES; i++)
        make_elsewhere(i);
    assert_string_equal(sentence_of(err), "input data is not valid");
    uint64_t counted = weir_err_count(WEIR_EDATA);
    for (uint32_t round = 0; round < 3; round++) {
        weir_err again = weir_err_kept_get(&kept);
        assert_string_equal(sentence_of(again), "topic payments was recreated");
        assert_string_equal(place_of(again), place);
        assert_true(weir_err_is(again, WEIR_EDATA));
        for (uint32_t i = 0; i < 2 * WEIR_ERR_SENTENCES; i++)
            make_elsewhere(i);
    }
    assert_int_equal(weir_err_count(WEIR_EDATA), counted); /* told again, not made again */
    weir_err_kept_set(&kept, WEIR_OK);
    assert_ok(weir_err_kept_get(&kept));
}

/* Of the same code and the same place, so that the serial alone tells them apart. */
static void old_error_never_gets_the_words_of_another(void **state) {
    (void)state;
    weir_err old = make_elsewhere(0);
    for (uint32_t i = 1; i <= 100000; i++) {
        weir_err err = make_elsewhere(i);
        assert_true(err != old);
        if (i >= WEIR_ERR_SENTENCES) assert_string_equal(sentence_of(old), "closed");
    }
}

static void errors_are_counted_by_code(void **state) {
    (void)state;
    uint64_t timeouts = weir_err_count(WEIR_ETIMEOUT), usages = weir_err_count(WEIR_EUSAGE);
    for (int i = 0; i < 3; i++)
        WEIR_ERR(WEIR_ETIMEOUT, "late");
    assert_true(weir_err_count(WEIR_ETIMEOUT) == timeouts + 3);
    assert_true(weir_err_count(WEIR_EUSAGE) == usages);
    assert_true(weir_err_count((weir_code)255) == 0);
}

static void keep_keeps_the_first(void **state) {
    (void)state;
    weir_err first = WEIR_ERR(WEIR_EIO, "first"), err = WEIR_OK;
    weir_err_keep(&err, WEIR_OK);
    assert_true(err == WEIR_OK);
    weir_err_keep(&err, first);
    weir_err_keep(&err, WEIR_ERR(WEIR_EFULL, "second"));
    weir_err_keep(&err, WEIR_OK);
    assert_true(err == first);
}

static void make_with(void *code) {
    WEIR_ERR(*(weir_code *)code, "a code of no row");
}

static void code_without_a_row_dies(void **state) {
    (void)state;
    weir_code none = WEIR_CODE_OK, past = (weir_code)(WEIR_EINTERNAL + 1);
    assert_dies(make_with, &none, "assertion failed");
    assert_dies(make_with, &past, "assertion failed");
    assert_string_equal(weir_code_name(past), "EINTERNAL");
}

enum { THREADS = 8, ERRORS_EACH = 2000 };

static void make_and_read(void *context) {
    unsigned thread = *(unsigned *)context;
    for (unsigned i = 0; i < ERRORS_EACH; i++) {
        char own[64], prefixed[64];
        snprintf(own, sizeof own, "%u %u", thread, i);
        snprintf(prefixed, sizeof prefixed, "thread: %u %u", thread, i);
        weir_err err = WEIR_ERR(WEIR_EIO, "%u %u", thread, i);
        weir_err with = weir_err_prefix(err, "thread");
        const char *text = sentence_of(err);
        assert_true(strcmp(text, own) == 0 || strcmp(text, "input or output failed") == 0);
        text = sentence_of(with);
        bool late_prefix = strcmp(text, "thread: input or output failed") == 0;
        assert_true(late_prefix || strcmp(text, prefixed) == 0 || strcmp(text, "input or output failed") == 0);
    }
}

static void threads_read_whole_sentences_of_their_own(void **state) {
    (void)state;
    weir_thread *threads[THREADS];
    unsigned numbers[THREADS];
    uint64_t made = weir_err_count(WEIR_EIO);
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_ok(weir_thread_start("maker", WEIR_ROLE_TEST, make_and_read, &numbers[i], &threads[i]));
    }
    for (unsigned i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
    assert_true(weir_err_count(WEIR_EIO) == made + THREADS * ERRORS_EACH);
}

WEIR_TESTS(WEIR_CASE(success_is_zero), WEIR_CASE(error_keeps_code_sentence_and_place),
           WEIR_CASE(places_of_a_loaded_library), WEIR_CASE(every_code_has_name_text_and_exit_status),
           WEIR_CASE(errno_becomes_the_fitting_code), WEIR_CASE(sentence_is_cut_one_past_its_limit),
           WEIR_CASE(small_buffers_are_ended), WEIR_CASE(prefix_keeps_place_and_code),
           WEIR_CASE(each_prefixed_error_has_words_of_its_own), WEIR_CASE(ring_keeps_the_last_and_then_falls_back),
           WEIR_CASE(old_error_never_gets_the_words_of_another), WEIR_CASE(kept_error_owns_its_words),
           WEIR_CASE(errors_are_counted_by_code), WEIR_CASE(keep_keeps_the_first), WEIR_CASE(code_without_a_row_dies),
           WEIR_CASE(threads_read_whole_sentences_of_their_own))

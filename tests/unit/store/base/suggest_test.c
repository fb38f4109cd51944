/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/store/base/suggest.h>

static const char *best_of(const char *wrong, const char *const *names) {
    weir_suggest suggest = weir_suggest_for(wrong);
    for (; *names; names++)
        weir_suggest_offer(&suggest, *names);
    return suggest.best ? suggest.best : "";
}

static void nearest_name_wins(void **state) {
    (void)state;
    static const char *const names[] = {
        "ingest.kafka.brokers", "ingest.kafka.topic", "ingest.kafka.group", "log.level", "log.format", NULL};
    assert_string_equal(best_of("ingest.kafka.borkers", names), "ingest.kafka.brokers");
    assert_string_equal(best_of("ingest.kafka.topics", names), "ingest.kafka.topic");
    assert_string_equal(best_of("log.lvel", names), "log.level");
    assert_string_equal(best_of("format", names), "");
    assert_string_equal(best_of("zzzzzzzzz", names), "");
}

static void first_of_two_equally_near_wins(void **state) {
    (void)state;
    assert_string_equal(best_of("cat", (const char *const[]){"bat", "rat", NULL}), "bat");
    assert_string_equal(best_of("cat", (const char *const[]){"rat", "bat", NULL}), "rat");
}

static void a_third_of_the_letters_may_differ_and_no_more(void **state) {
    (void)state;
    assert_string_equal(best_of("abc", (const char *const[]){"abx", NULL}), "abx");
    assert_string_equal(best_of("abc", (const char *const[]){"axx", NULL}), "");
    assert_string_equal(best_of("abc", (const char *const[]){"acb", NULL}), "acb"); /* a swap is one edit */
    assert_string_equal(best_of("ab", (const char *const[]){"abc", NULL}), "abc");
    assert_string_equal(best_of("ab", (const char *const[]){"ax", NULL}), "");
    assert_string_equal(best_of("abcdef", (const char *const[]){"abxxef", NULL}), "abxxef");
    assert_string_equal(best_of("abcdef", (const char *const[]){"axxxef", NULL}), "");
    assert_string_equal(best_of("", (const char *const[]){"a", NULL}), "");
    assert_string_equal(best_of("a", (const char *const[]){"", NULL}), "");
}

static void names_over_64_bytes_are_not_compared(void **state) {
    (void)state;
    char name[66], wrong[66];
    for (size_t length = 63; length <= 65; length++) {
        memset(name, 'a', sizeof name);
        memset(wrong, 'a', sizeof wrong);
        name[length] = wrong[length] = 0;
        wrong[10] = 'b';
        assert_string_equal(best_of(wrong, (const char *const[]){name, NULL}), length <= 64 ? name : "");
    }
}

static void text_is_a_question_or_nothing(void **state) {
    (void)state;
    char buffer[64], small[8];
    weir_suggest suggest = weir_suggest_for("portt");
    assert_string_equal(weir_suggest_text(&suggest, buffer, sizeof buffer), "");
    weir_suggest_offer(&suggest, "port");
    assert_ptr_equal(weir_suggest_text(&suggest, buffer, sizeof buffer), buffer);
    assert_string_equal(buffer, "; did you mean 'port'?");
    assert_string_equal(weir_suggest_text(&suggest, small, sizeof small), "; did y");
    weir_suggest none = weir_suggest_for("x");
    weir_suggest_text(&none, buffer, 0);
    assert_string_equal(buffer, "; did you mean 'port'?");
}

/* The definition, letter by letter from the end, without a table. */
static size_t naive_distance(const char *a, size_t i, const char *b, size_t j) {
    if (i == 0 || j == 0) return i + j;
    size_t best = naive_distance(a, i - 1, b, j - 1) + (a[i - 1] != b[j - 1]);
    size_t other = naive_distance(a, i - 1, b, j) + 1;
    if (other < best) best = other;
    other = naive_distance(a, i, b, j - 1) + 1;
    if (other < best) best = other;
    if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        other = naive_distance(a, i - 2, b, j - 2) + 1;
        if (other < best) best = other;
    }
    return best;
}

static size_t random_word(weir_rng *rng, char word[8]) {
    size_t length = weir_rng_below(rng, 8);
    for (size_t i = 0; i < length; i++)
        word[i] = (char)('a' + weir_rng_below(rng, 3));
    word[length] = 0;
    return length;
}

static void distance_equals_its_definition(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = 0; round < weir_test_rounds(500); round++) {
        char wrong[8], name[8];
        size_t wrong_length = random_word(&rng, wrong), length = random_word(&rng, name);
        size_t expected = naive_distance(wrong, wrong_length, name, length);
        size_t longer = wrong_length > length ? wrong_length : length;
        weir_suggest suggest = weir_suggest_for(wrong);
        weir_suggest_offer(&suggest, name);
        assert_int_equal(suggest.best != NULL, 3 * expected <= longer);
        if (suggest.best) assert_int_equal(suggest.distance, expected);
    }
}

WEIR_TESTS(WEIR_CASE(nearest_name_wins), WEIR_CASE(first_of_two_equally_near_wins),
           WEIR_CASE(a_third_of_the_letters_may_differ_and_no_more), WEIR_CASE(names_over_64_bytes_are_not_compared),
           WEIR_CASE(text_is_a_question_or_nothing), WEIR_CASE(distance_equals_its_definition))

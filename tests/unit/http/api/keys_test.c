/* SPDX-License-Identifier: Apache-2.0 */
/* Files of keys: who is let in, and what a wrong line says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http/api/api.h>

#include "weir_test.h"

/* SHA-256 of "abc" and of "", as FIPS 180-2 has them. */
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static weir_err parse(const char *text, weir_api_keys **keysp) {
    return weir_api_keys_parse("keys", text, strlen(text), keysp);
}

static void a_key_has_its_roles(void **state) {
    (void)state;
    weir_api_keys *keys;
    weir_http_caller caller;
    assert_ok(parse("# who\n\n reader,writer\t" ABC "  probe # of the shop\r\nadmin " EMPTY " root", &keys));
    assert_true(weir_api_keys_find(keys, "abc", 3, &caller));
    assert_int_equal(caller.roles, WEIR_HTTP_READER | WEIR_HTTP_WRITER);
    assert_string_equal(caller.name, "probe");
    assert_true(weir_api_keys_find(keys, "", 0, &caller));
    assert_int_equal(caller.roles, WEIR_HTTP_ADMIN);
    static const char *const wrong[] = {"ab", "abcd", "Abc", ABC};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(weir_api_keys_find(keys, wrong[i], strlen(wrong[i]), &caller));
        assert_int_equal(caller.roles, 0);
    }
    weir_api_keys_free(keys);
}

/* A sentence never repeats the line: the key itself may stand there by mistake. */
static void a_wrong_line_is_named_and_not_repeated(void **state) {
    (void)state;
    static const char *const files[] = {
        "reader secret name\n",         "secret " ABC " name\n",  "reader,, " ABC " name\n", "reader " ABC "\n",
        "reader " ABC " name secret\n", "reader " ABC "0 name\n", "reader z" ABC " name\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char text[512], sentence[WEIR_ERR_SENTENCE_MAX];
        weir_api_keys *keys;
        snprintf(text, sizeof text, "# one\n%s", files[i]);
        weir_err err = parse(text, &keys);
        assert_err(err, WEIR_ECONFIG, "keys:2: ");
        assert_null(keys);
        weir_err_sentence(err, sentence, sizeof sentence);
        assert_null(strstr(sentence, "secret"));
    }
}

static void a_file_without_keys_is_refused(void **state) {
    (void)state;
    weir_api_keys *keys;
    assert_err(parse("# nobody\n", &keys), WEIR_ECONFIG, "has no key");
    assert_err(weir_api_keys_load("/nowhere/keys", &keys), WEIR_ENOTFOUND, "/nowhere/keys");
}

static void as_many_as_are_allowed_and_one_more(void **state) {
    (void)state;
    static char text[(WEIR_API_KEYS_MAX + 1) * 80];
    weir_api_keys *keys;
    size_t length = 0;
    for (size_t i = 0; i < WEIR_API_KEYS_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "reader " ABC " n\n");
    assert_ok(weir_api_keys_parse("keys", text, length, &keys));
    weir_api_keys_free(keys);
    length += (size_t)snprintf(text + length, sizeof text - length, "reader " ABC " n\n");
    assert_err(weir_api_keys_parse("keys", text, length, &keys), WEIR_ECONFIG, "more than 1024 keys");
}

WEIR_TESTS(WEIR_CASE(a_key_has_its_roles), WEIR_CASE(a_wrong_line_is_named_and_not_repeated),
           WEIR_CASE(a_file_without_keys_is_refused), WEIR_CASE(as_many_as_are_allowed_and_one_more))

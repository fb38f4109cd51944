/* SPDX-License-Identifier: Apache-2.0 */
/* sign_test.c - key files, and signatures of a manifest. */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

static void put(const char *name, const char *text) {
    assert_ok(weir_file_replace(weir_test_path(name), text, strlen(text)));
}

static unsigned mode_of(const char *name) {
    struct stat status;
    assert_int_equal(stat(weir_test_path(name), &status), 0);
    return status.st_mode & 07777;
}

/* RFC 8032, section 7.1, test 3: the message is two bytes. */
static void signs_as_rfc_8032_says(void **state) {
    (void)state;
    static const char seed[] = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
    static const char key[] = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
    static const char sign[] = "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                               "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";
    char line[512], *text = NULL;
    size_t length = 0;
    weir_secret_key *secret;
    snprintf(line, sizeof line, "weir-ed25519-secret %s%s\n", seed, key);
    put("k", line);
    assert_int_equal(chmod(weir_test_path("k"), 0600), 0);
    assert_ok(weir_secret_key_load(weir_test_path("k"), &secret));
    assert_ok(weir_folder_create(weir_test_path("f")));
    put("f/MANIFEST", "\xaf\x82");
    assert_ok(weir_manifest_sign(weir_test_path("f"), secret));
    assert_ok(weir_file_load(weir_test_path("f/MANIFEST.sig"), 4096, &text, &length));
    snprintf(line, sizeof line, "weir-ed25519 %s %s\n", key, sign);
    assert_string_equal(text, line);
    weir_free(text);
    weir_public_key public_key = weir_secret_key_public(secret);
    assert_ok(weir_manifest_signature_verify(weir_test_path("f"), "\xaf\x82", 2, &public_key, 1));
    assert_err(weir_manifest_signature_verify(weir_test_path("f"), "\xaf\x83", 2, &public_key, 1), WEIR_EPERM,
               "does not match");
    weir_secret_key_free(secret);
}

/* A sound signature says who made it, and counts only if it is one of those that are trusted: first, last or alone. */
static void only_those_who_are_trusted_sign(void **state) {
    (void)state;
    enum { KEYS = 3 };
    weir_public_key keys[KEYS + 1];
    weir_secret_key *secrets[KEYS + 1];
    char *folder = weir_strdup(weir_test_path("f"));
    for (int i = 0; i <= KEYS; i++) {
        char name[16];
        char *path;
        snprintf(name, sizeof name, "k%d", i);
        path = weir_strdup(weir_test_path(name));
        snprintf(name, sizeof name, "p%d", i);
        assert_ok(weir_key_pair_write(path, weir_test_path(name), &keys[i]));
        assert_ok(weir_secret_key_load(path, &secrets[i]));
        weir_free(path);
    }
    assert_ok(weir_folder_create(folder));
    put("f/MANIFEST", "m");
    for (int i = 0; i <= KEYS; i++) {
        assert_ok(weir_manifest_sign(folder, secrets[i]));
        weir_err err = weir_manifest_signature_verify(folder, "m", 1, keys, KEYS);
        if (i < KEYS)
            assert_ok(err);
        else
            assert_err(err, WEIR_EPERM, "which is none of the 3 keys that are trusted");
        weir_secret_key_free(secrets[i]);
    }
    weir_free(folder);
}

static void secret_is_the_owners_alone(void **state) {
    (void)state;
    weir_public_key made, keys[WEIR_PUBLIC_KEYS_MAX];
    weir_secret_key *secret;
    size_t count = 0;
    assert_ok(weir_key_pair_write(weir_test_path("k"), weir_test_path("p"), &made));
    assert_int_equal(mode_of("k"), 0600);
    assert_err(weir_key_pair_write(weir_test_path("k"), weir_test_path("q"), &made), WEIR_EEXIST, "would be lost");
    assert_err(weir_key_pair_write(weir_test_path("l"), weir_test_path("p"), &made), WEIR_EEXIST, "would be lost");
    assert_false(weir_path_exists(weir_test_path("l")));
    assert_ok(weir_secret_key_load(weir_test_path("k"), &secret));
    assert_ok(weir_public_keys_load(weir_test_path("p"), keys, &count));
    assert_int_equal(count, 1);
    made = weir_secret_key_public(secret);
    assert_memory_equal(&made, &keys[0], sizeof made);
    weir_secret_key_free(secret);
    assert_int_equal(chmod(weir_test_path("k"), 0640), 0);
    assert_err(weir_secret_key_load(weir_test_path("k"), &secret), WEIR_EPERM, "chmod 600");
    assert_null(secret);
}

#define KEY "weir-ed25519 fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025"

static void files_of_keys_are_read_or_refused_with_their_line(void **state) {
    (void)state;
    weir_public_key keys[WEIR_PUBLIC_KEYS_MAX];
    weir_secret_key *secret;
    size_t count = 0;
    put("p", "# ours\n" KEY "\n\n" KEY " the night trainer");
    assert_ok(weir_public_keys_load(weir_test_path("p"), keys, &count));
    assert_int_equal(count, 2);
    put("p", "# ours\n" KEY "00\n");
    assert_err(weir_public_keys_load(weir_test_path("p"), keys, &count), WEIR_EDATA, "p:2: not a public key");
    assert_int_equal(count, 0);
    put("p", "weir-ed25519 12\n");
    assert_err(weir_public_keys_load(weir_test_path("p"), keys, &count), WEIR_EDATA, "p:1:");
    char *many = calloc(WEIR_PUBLIC_KEYS_MAX + 1, sizeof KEY + 1);
    for (unsigned i = 0; i < WEIR_PUBLIC_KEYS_MAX; i++)
        strcat(many, KEY "\n");
    put("p", many);
    assert_ok(weir_public_keys_load(weir_test_path("p"), keys, &count));
    strcat(many, KEY "\n");
    put("p", many);
    assert_err(weir_public_keys_load(weir_test_path("p"), keys, &count), WEIR_ELIMIT, "more than 64 keys");
    free(many);
    put("k", "weir-ed25519-secret 00\n");
    assert_int_equal(chmod(weir_test_path("k"), 0600), 0);
    assert_err(weir_secret_key_load(weir_test_path("k"), &secret), WEIR_EDATA, "weir model keygen");
}

/* A half that belongs to another key would sign what nobody can verify, or worse give the secret away. */
static void halves_of_two_keys_are_refused(void **state) {
    (void)state;
    weir_secret_key *secret;
    weir_public_key made;
    char *text = NULL;
    size_t length = 0;
    assert_ok(weir_key_pair_write(weir_test_path("k"), weir_test_path("p"), &made));
    assert_ok(weir_file_load(weir_test_path("k"), 4096, &text, &length));
    text[length - 2] = text[length - 2] == '0' ? '1' : '0';
    assert_ok(weir_file_replace(weir_test_path("k"), text, length));
    weir_free(text);
    assert_err(weir_secret_key_load(weir_test_path("k"), &secret), WEIR_EDATA, "is not a secret key");
}

WEIR_TESTS(WEIR_CASE(signs_as_rfc_8032_says), WEIR_CASE(only_those_who_are_trusted_sign),
           WEIR_CASE(secret_is_the_owners_alone), WEIR_CASE(files_of_keys_are_read_or_refused_with_their_line),
           WEIR_CASE(halves_of_two_keys_are_refused))

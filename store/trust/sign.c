/* SPDX-License-Identifier: Apache-2.0 */
/* sign.c - key files, and signatures of manifests. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#define PATH_BYTES_MAX 2048u
#define FILE_BYTES_MAX (64u << 10)
#define PUBLIC_WORD    "weir-ed25519 "
#define SECRET_WORD    "weir-ed25519-secret "
#define PUBLIC_DIGITS  (2 * crypto_sign_PUBLICKEYBYTES)
#define SECRET_DIGITS  (2 * crypto_sign_SECRETKEYBYTES)
#define SIGN_DIGITS    (2 * crypto_sign_BYTES)

_Static_assert(sizeof(weir_public_key) == crypto_sign_PUBLICKEYBYTES, "a public key is what libsodium says");

struct weir_secret_key {
    uint8_t bytes[crypto_sign_SECRETKEYBYTES];
};

/* Exactly size bytes out of twice as many lower-case digits at text: one spelling, so that no file has a twin. */
static bool key_unhex(const char *text, uint8_t *bytes, size_t size) {
    size_t length = 0;
    const char *end = NULL;
    if (strspn(text, "0123456789abcdef") < 2 * size) return false;
    return sodium_hex2bin(bytes, size, text, 2 * size, NULL, &length, &end) == 0 && length == size;
}

static bool key_skip_word(const char **textp, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*textp, word, length) != 0) return false;
    *textp += length;
    return true;
}

/* --- secret keys ----------------------------------------------------------------------------------------------- */

/* Made empty and private first: no moment at which another user could open what will hold the secret. */
static weir_err key_create_private(const char *path, weir_file **filep) {
    *filep = NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return WEIR_ERRNO(errno, "cannot create the secret key %s", path);
    close(fd);
    return weir_file_open(path, WEIR_FILE_READ_WRITE, filep);
}

/* Writes text into a file that was just made, syncs it and its folder, and closes it. */
static weir_err key_file_fill(weir_file *file, const char *path, const char *text) {
    weir_err err = weir_file_append(file, text, strlen(text));
    if (!err) err = weir_file_sync(file);
    weir_err_keep(&err, weir_file_close(file));
    return err ? err : weir_folder_sync_of(path);
}

static weir_err key_write_secret(const char *path, const uint8_t secret[crypto_sign_SECRETKEYBYTES]) {
    char text[sizeof SECRET_WORD + SECRET_DIGITS + 2], hex[SECRET_DIGITS + 1];
    weir_file *file = NULL;
    weir_err err = key_create_private(path, &file);
    if (err) return err;
    sodium_bin2hex(hex, sizeof hex, secret, crypto_sign_SECRETKEYBYTES);
    snprintf(text, sizeof text, SECRET_WORD "%s\n", hex);
    err = key_file_fill(file, path, text);
    sodium_memzero(text, sizeof text);
    sodium_memzero(hex, sizeof hex);
    return err;
}

static weir_err key_write_public(const char *path, const weir_public_key *key) {
    char text[sizeof PUBLIC_WORD + PUBLIC_DIGITS + 2], hex[PUBLIC_DIGITS + 1];
    weir_file *file = NULL;
    weir_err err = weir_file_open(path, WEIR_FILE_CREATE, &file);
    if (err) return err;
    sodium_bin2hex(hex, sizeof hex, key->bytes, sizeof key->bytes);
    snprintf(text, sizeof text, PUBLIC_WORD "%s\n", hex);
    return key_file_fill(file, path, text);
}

static weir_err key_must_be_new(const char *path) {
    if (!weir_path_exists(path)) return WEIR_OK;
    return WEIR_ERR(WEIR_EEXIST, "%s exists and would be lost; move it away, or name another file", path);
}

weir_err weir_key_pair_write(const char *secret_path, const char *public_path, weir_public_key *publicp) {
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    *publicp = (weir_public_key){{0}};
    if (sodium_init() < 0) return WEIR_ERR(WEIR_EUNAVAILABLE, "libsodium cannot start; is /dev/urandom there?");
    weir_err err = key_must_be_new(secret_path);
    if (!err) err = key_must_be_new(public_path);
    if (err) return err;
    crypto_sign_keypair(publicp->bytes, secret);
    err = key_write_secret(secret_path, secret);
    if (!err) err = key_write_public(public_path, publicp);
    sodium_memzero(secret, sizeof secret);
    return err;
}

/* Whether the two halves belong together: libsodium signs with the public half that stands in the secret one. */
static bool key_is_pair(const uint8_t secret[crypto_sign_SECRETKEYBYTES]) {
    uint8_t seed[crypto_sign_SEEDBYTES], public[crypto_sign_PUBLICKEYBYTES], again[crypto_sign_SECRETKEYBYTES];
    crypto_sign_ed25519_sk_to_seed(seed, secret);
    crypto_sign_seed_keypair(public, again, seed);
    bool same = sodium_memcmp(again, secret, sizeof again) == 0;
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(again, sizeof again);
    return same;
}

weir_err weir_secret_key_load(const char *path, weir_secret_key **keyp) {
    char *text = NULL;
    size_t length = 0;
    *keyp = NULL;
    weir_err err = weir_file_load_as(path, WEIR_FILE_SECRET, FILE_BYTES_MAX, &text, &length);
    if (err) return err;
    const char *digits = text;
    weir_secret_key *key = weir_calloc(1, sizeof *key);
    if (!key) {
        err = WEIR_NOMEM("for the key %s", path);
    } else if (!key_skip_word(&digits, SECRET_WORD) || !key_unhex(digits, key->bytes, sizeof key->bytes) ||
               strcmp(digits + SECRET_DIGITS, "\n") != 0 || !key_is_pair(key->bytes)) {
        err = WEIR_ERR(WEIR_EDATA, "%s is not a secret key; make one with: weir model keygen", path);
    }
    sodium_memzero(text, length);
    weir_free(text);
    if (err) {
        weir_secret_key_free(key);
    } else {
        *keyp = key;
    }
    return err;
}

void weir_secret_key_free(weir_secret_key *key) {
    if (key) sodium_memzero(key, sizeof *key);
    weir_free(key);
}

weir_public_key weir_secret_key_public(const weir_secret_key *key) {
    weir_public_key public;
    crypto_sign_ed25519_sk_to_pk(public.bytes, key->bytes);
    return public;
}

/* --- public keys ----------------------------------------------------------------------------------------------- */

/* One line of a file of keys; *addedp: it had a key. */
static bool public_key_read_line(const char *line, weir_public_key *keyp, bool *addedp) {
    *addedp = false;
    if (!*line || *line == '#') return true;
    if (!key_skip_word(&line, PUBLIC_WORD) || !key_unhex(line, keyp->bytes, sizeof keyp->bytes)) return false;
    *addedp = true;
    return line[PUBLIC_DIGITS] == '\0' || line[PUBLIC_DIGITS] == ' ';
}

weir_err weir_public_keys_load(const char *path, weir_public_key keys[WEIR_PUBLIC_KEYS_MAX], size_t *countp) {
    char *text = NULL;
    size_t length = 0;
    *countp = 0;
    weir_err err = weir_file_load_as(path, WEIR_FILE_GUARDED, FILE_BYTES_MAX, &text, &length);
    if (err) return err;
    unsigned number = 1;
    for (char *line = text, *next; !err && *line; line = next, number++) {
        weir_public_key key = {{0}};
        bool added = false;
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        if (!public_key_read_line(line, &key, &added)) {
            err = WEIR_ERR(WEIR_EDATA, "%s:%u: not a public key; a line is \"weir-ed25519\" and 64 hex digits", path,
                           number);
        } else if (added && *countp == WEIR_PUBLIC_KEYS_MAX) {
            err = WEIR_ERR(WEIR_ELIMIT, "%s has more than %u keys", path, WEIR_PUBLIC_KEYS_MAX);
        } else if (added) {
            keys[(*countp)++] = key;
        }
    }
    WEIR_ASSERT(*countp <= WEIR_PUBLIC_KEYS_MAX);
    if (err) *countp = 0;
    weir_free(text);
    return err;
}

const char *weir_public_keys_place(const char *beside, const char *otherwise) {
    return beside && weir_path_exists(beside) ? beside : otherwise;
}

/* --- signatures ------------------------------------------------------------------------------------------------ */

static weir_err sign_path(char path[PATH_BYTES_MAX], const char *folder, const char *name) {
    int length = snprintf(path, PATH_BYTES_MAX, "%s/%s", folder, name);
    if (length >= 0 && (size_t)length < PATH_BYTES_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
}

_Static_assert(WEIR_SIGNATURE_LINE_MAX >= sizeof PUBLIC_WORD + PUBLIC_DIGITS + SIGN_DIGITS + 2, "a line fits");

void weir_bytes_sign(const void *bytes, size_t length, const weir_secret_key *key, char line[WEIR_SIGNATURE_LINE_MAX]) {
    char public_hex[PUBLIC_DIGITS + 1], sign_hex[SIGN_DIGITS + 1];
    uint8_t signature[crypto_sign_BYTES];
    weir_public_key public = weir_secret_key_public(key);
    crypto_sign_detached(signature, NULL, bytes, length, key->bytes);
    sodium_bin2hex(public_hex, sizeof public_hex, public.bytes, sizeof public.bytes);
    sodium_bin2hex(sign_hex, sizeof sign_hex, signature, sizeof signature);
    int written = snprintf(line, WEIR_SIGNATURE_LINE_MAX, PUBLIC_WORD "%s %s\n", public_hex, sign_hex);
    WEIR_ASSERT(written > 0 && (size_t)written < WEIR_SIGNATURE_LINE_MAX);
}

weir_err weir_manifest_sign(const char *folder, const weir_secret_key *key) {
    char path[PATH_BYTES_MAX], line[WEIR_SIGNATURE_LINE_MAX], *manifest = NULL;
    size_t length = 0;
    weir_err err = sign_path(path, folder, "MANIFEST");
    if (!err) err = weir_file_load(path, FILE_BYTES_MAX << 10, &manifest, &length);
    if (!err) weir_bytes_sign(manifest, length, key, line);
    if (!err) err = sign_path(path, folder, "MANIFEST.sig");
    if (!err) err = weir_file_replace(path, line, strlen(line));
    weir_free(manifest);
    return err;
}

typedef struct trust_signature {
    weir_public_key key;
    uint8_t bytes[crypto_sign_BYTES];
} trust_signature;

static bool signature_parse(const char *text, trust_signature *sp) {
    if (!key_skip_word(&text, PUBLIC_WORD) || !key_unhex(text, sp->key.bytes, sizeof sp->key.bytes)) return false;
    text += PUBLIC_DIGITS;
    if (*text++ != ' ' || !key_unhex(text, sp->bytes, sizeof sp->bytes)) return false;
    return strcmp(text + SIGN_DIGITS, "\n") == 0;
}

weir_err weir_bytes_verify(const char *name, const void *bytes, size_t length, const char *line,
                           const weir_public_key *keys, size_t key_count) {
    trust_signature s = {0};
    char hex[PUBLIC_DIGITS + 1];
    if (!signature_parse(line, &s))
        return WEIR_ERR(WEIR_EPERM, "the signature of %s is not a signature line; take another copy", name);
    sodium_bin2hex(hex, sizeof hex, s.key.bytes, sizeof s.key.bytes);
    size_t known = 0;
    while (known < key_count && memcmp(s.key.bytes, keys[known].bytes, sizeof s.key.bytes) != 0)
        known++;
    if (known == key_count) {
        return WEIR_ERR(WEIR_EPERM,
                        "%s is signed by %s, which is none of the %zu keys that are trusted; if you trust it, add it "
                        "to the file that models.public_keys names",
                        name, hex, key_count);
    }
    if (crypto_sign_verify_detached(s.bytes, bytes, length, s.key.bytes) == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EPERM, "%s is not what was signed: its signature does not match; take another copy", name);
}

weir_err weir_manifest_signature_verify(const char *folder, const void *manifest, size_t length,
                                        const weir_public_key *keys, size_t key_count) {
    char *line = NULL, name[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    size_t line_length = 0;
    weir_err err = sign_path(name, folder, "MANIFEST");
    if (!err) err = sign_path(path, folder, "MANIFEST.sig");
    if (!err) err = weir_file_load_as(path, WEIR_FILE_NO_LINK, FILE_BYTES_MAX, &line, &line_length);
    if (weir_err_is(err, WEIR_ENOTFOUND))
        err = WEIR_ERR(WEIR_EPERM, "%s is not signed; sign it, or set models.require_signature: false", folder);
    if (!err) err = weir_bytes_verify(name, manifest, length, line, keys, key_count);
    weir_free(line);
    return err;
}

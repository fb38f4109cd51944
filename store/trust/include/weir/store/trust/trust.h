/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust.h - a folder that says what it holds: MANIFEST, with the SHA-256 of every file.
 *
 * One line a file, sorted by path: 64 hex digits, two spaces, the length, two spaces, the path below the folder. The
 * file itself ends with a line "end N", so that a cut one is seen. For checkpoints, snapshots, parts, models and what a
 * training goes on from. Readers treat every manifest as hostile: no path leaves the folder, no file that it does not
 * name is in it but itself and MANIFEST.sig.
 */
#ifndef WEIR_STORE_TRUST_TRUST_H
#define WEIR_STORE_TRUST_TRUST_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MANIFEST_FILES_MAX 100000u

/* Hashes every file below folder and writes folder/MANIFEST, durably; the files themselves are not synced.  Blocks.
 * WEIR_ECORRUPT something there is neither a file nor a folder; WEIR_ELIMIT more than WEIR_MANIFEST_FILES_MAX files,
 * folders more than 8 deep, a path of 1 KiB or more, a line end in a path; WEIR_ENOMEM; errors of files.  [any] */
weir_err weir_manifest_write(const char *folder);
/* WEIR_ECORRUPT names the first file that is changed, of another length, or not named, or the one behind a missing one,
 * if there is one; WEIR_ENOTFOUND no MANIFEST; else as weir_manifest_write.  [any] */
weir_err weir_manifest_verify(const char *folder);
/* Hex of a whole file's SHA-256.  [any] */
weir_err weir_sha256_file(const char *path, char hex[65], uint64_t *lengthp);
void weir_sha256_bytes(const void *bytes, size_t length, uint8_t digest[32]);
/* With lower-case digits and a 0 at the end. */
void weir_sha256_hex(const void *bytes, size_t length, char hex[65]);

/* --- signatures ------------------------------------------------------------------------------------------------ */
/*
 * Ed25519 over the bytes of MANIFEST, in MANIFEST.sig beside it: "weir-ed25519", the public key and the signature in
 * hex, a blank between each. The key in it is only a name: it counts when the operator's file of keys has it too.
 * Other files carry the same line at their end (weir_bytes_sign).
 *
 * A secret key's file is one line, "weir-ed25519-secret" and 128 hex digits, readable by its owner alone. A file of
 * public keys has a line each, "weir-ed25519", 64 hex digits and, if you like, words about it; a line
 * that begins with "#" is a remark. All hex digits are lower-case.
 */
#define WEIR_PUBLIC_KEYS_MAX 64u

typedef struct weir_secret_key weir_secret_key;

/* A plain value. */
typedef struct weir_public_key {
    uint8_t bytes[32];
} weir_public_key;

/* A new pair in two new files, the secret one with mode 0600 from its first moment.  WEIR_EEXIST either is there
 * already: nothing is overwritten; WEIR_EUNAVAILABLE no random numbers are to be had; WEIR_EIO and the like: what was
 * begun is left there.  [any] */
weir_err weir_key_pair_write(const char *secret_path, const char *public_path, weir_public_key *publicp);
/* WEIR_EPERM others than its owner may read it; WEIR_EDATA it is not a key; WEIR_ELIMIT it is far too long;
 * WEIR_ENOMEM; errors of a file.  [any] */
weir_err weir_secret_key_load(const char *path, weir_secret_key **keyp);
/* Overwrites it first; NULL is allowed. */
void weir_secret_key_free(weir_secret_key *key);
weir_public_key weir_secret_key_public(const weir_secret_key *key);
/* WEIR_EPERM others may change the file; WEIR_EDATA names the line; WEIR_ELIMIT more than WEIR_PUBLIC_KEYS_MAX, or
 * it is far too long; WEIR_ENOMEM; errors of a file.  [any] */
weir_err weir_public_keys_load(const char *path, weir_public_key keys[WEIR_PUBLIC_KEYS_MAX], size_t *countp);
/* Which of two such files counts: the one beside the data if it is there, else the other. beside may be NULL. To be
 * asked anew at each load: the first key may be made after a server's start.  [any] */
const char *weir_public_keys_place(const char *beside, const char *otherwise);
/* "weir-ed25519", public key and signature of the bytes as one line, its end and a 0 behind it. The bytes must
 * begin with what no other signed text begins with: a signature does not say what it is for.  [any] */
#define WEIR_SIGNATURE_LINE_MAX 216u
void weir_bytes_sign(const void *bytes, size_t length, const weir_secret_key *key, char line[WEIR_SIGNATURE_LINE_MAX]);
/* Whether the line signs these bytes by one of the keys; name is for the sentence.  WEIR_EPERM it is not such a line,
 * or of a key that is not among them, or of other bytes.  [any] */
weir_err weir_bytes_verify(const char *name, const void *bytes, size_t length, const char *line,
                           const weir_public_key *keys, size_t key_count);
/* Signs the MANIFEST that is there, durably.  [any] */
weir_err weir_manifest_sign(const char *folder, const weir_secret_key *key);
/* Whether folder/MANIFEST.sig signs these bytes by one of the keys. The caller has read MANIFEST, so that what was
 * verified is what is used.  WEIR_EPERM it is not signed, or by a key that is not among them, or wrongly, or
 * MANIFEST.sig is a link; WEIR_ELIMIT; WEIR_ENOMEM; errors of a file.  [any] */
weir_err weir_manifest_signature_verify(const char *folder, const void *manifest, size_t length,
                                        const weir_public_key *keys, size_t key_count);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_TRUST_TRUST_H */

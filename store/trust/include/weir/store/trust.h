/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust.h - a folder that says what it holds: MANIFEST, with the SHA-256 of every file.
 *
 * One line a file, sorted by path: 64 hex digits, two spaces, the length, two spaces, the path below the folder. The
 * file itself ends with a line "end N", so that a cut one is seen. For checkpoints, snapshots, parts and models.
 * Readers treat every manifest as hostile: no path leaves the folder, nothing that it does not name is in it.
 */
#ifndef WEIR_STORE_TRUST_H
#define WEIR_STORE_TRUST_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MANIFEST_FILES_MAX 100000u

/* Hashes every file below folder and writes folder/MANIFEST, durably.  Blocks.  [any]  WEIR_EIO, WEIR_EFULL,
 * WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_manifest_write(const char *folder);
/* WEIR_ECORRUPT names the first file that is missing, changed, of another length, or not named; WEIR_ENOTFOUND no
 * MANIFEST.  [any] */
weir_err weir_manifest_verify(const char *folder);
/* Hex of a whole file's SHA-256.  [any] */
weir_err weir_sha256_file(const char *path, char hex[65], uint64_t *lengthp);
void weir_sha256_bytes(const void *bytes, size_t length, uint8_t digest[32]);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_TRUST_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - an error knows where it was born, and has a sentence for the user.
 *
 * A weir_err is one 64-bit value: 0 is success; otherwise it packs a code, the place in the
 * source where it was made, and the number of its sentence.
 *
 *     bits 63..36  where in the program the static site record lies (file, line, function)
 *     bits 35..8   serial of the sentence, which is kept in a ring shared by all threads
 *     bits  7..0   weir_code
 *
 * The sentence says what happened and mostly what to do, names the field or position at fault if there is one, has no
 * trailing newline, and never holds a secret or a payload. The ring keeps the last
 * WEIR_ERR_SENTENCES of them, so an error may be passed between threads. One that outlives the
 * call that returned it is stored as a weir_err_kept, which owns its sentence: a weir_err that is
 * stored falls back to the text of its code. The place is never lost, that of a loaded library either, which stays
 * loaded; but of those only the first few dozen are told apart.
 */
#ifndef WEIR_STORE_BASE_ERR_H
#define WEIR_STORE_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t weir_err;

#define WEIR_OK               ((weir_err)0)
#define WEIR_ERR_SENTENCES    256u /* ring size; a power of two */
#define WEIR_ERR_SENTENCE_MAX 512u /* bytes of one sentence, its end included; longer ones are cut */

/* X(code, number, exit status, generic text).  Names are stable: they appear in logs and metrics. */
#define WEIR_CODES(X)                                         \
    X(EINVAL, 1, 70, "invalid argument")                      \
    X(EUSAGE, 2, 64, "wrong usage")                           \
    X(ECONFIG, 3, 78, "wrong configuration")                  \
    X(EDATA, 4, 65, "input data is not valid")                \
    X(ECORRUPT, 5, 65, "stored data is damaged")              \
    X(EVERSION, 6, 65, "written by another version")          \
    X(ENOTFOUND, 7, 65, "not found")                          \
    X(EEXIST, 8, 65, "exists already")                        \
    X(EORDER, 9, 65, "out of order")                          \
    X(ELIMIT, 10, 65, "over a limit")                         \
    X(ENOMEM, 11, 69, "out of memory")                        \
    X(EIO, 12, 69, "input or output failed")                  \
    X(EFULL, 13, 69, "no space left")                         \
    X(EBUSY, 14, 69, "in use by another")                     \
    X(EUNAVAILABLE, 15, 69, "not available")                  \
    X(ETIMEOUT, 16, 69, "took too long")                      \
    X(EPERM, 17, 69, "not permitted")                         \
    X(ECLOSED, 18, 69, "closed")                              \
    X(EPOISONED, 19, 69, "unusable after an earlier failure") \
    X(ECANCELLED, 20, 70, "cancelled")                        \
    X(EINTERNAL, 21, 70, "internal error")

typedef enum weir_code {
    WEIR_CODE_OK = 0,
#define WEIR_CODE_ENUM(name, number, status, text) WEIR_##name = number,
    WEIR_CODES(WEIR_CODE_ENUM)
#undef WEIR_CODE_ENUM
} weir_code;

/* Where an error is born; only WEIR_ERR_BY makes them. */
typedef struct weir_err_site {
    const char *file;
    const char *function;
    int line;
} __attribute__((aligned(16))) weir_err_site;

/* What the macros that make errors are made of. Compilers, and whoever else follows paths, are told that what maker
 * returns is not 0. */
#define WEIR_ERR_BY(maker, ...)                                                         \
    (__extension__({                                                                    \
        static const weir_err_site weir_err_site_here = {__FILE__, __func__, __LINE__}; \
        weir_err weir_err_made = maker(&weir_err_site_here, __VA_ARGS__);               \
        if (weir_err_made == WEIR_OK) __builtin_unreachable();                          \
        weir_err_made;                                                                  \
    }))

/* Makes an error here:  return WEIR_ERR(WEIR_EIO, "cannot write %s: %s; free some space", path, …);  [any] */
#define WEIR_ERR(code, ...) WEIR_ERR_BY(weir_err_make, (code), __VA_ARGS__)
/* WEIR_NOMEM("for the keys of %s", folder): WEIR_ENOMEM, "out of memory for the keys of …". */
#define WEIR_NOMEM(...) WEIR_ERR(WEIR_ENOMEM, "out of memory " __VA_ARGS__)

weir_err weir_err_make(const weir_err_site *site, weir_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Makes an error out of errno_value with the fitting code (ENOSPC and EDQUOT: WEIR_EFULL, ENOMEM: WEIR_ENOMEM,
 * EACCES, EPERM and EROFS: WEIR_EPERM, ENOENT: WEIR_ENOTFOUND, EEXIST: WEIR_EEXIST, EADDRINUSE and EBUSY:
 * WEIR_EBUSY, else WEIR_EIO); the sentence ends in ": " and the system's text, and for a full disk says what to
 * do.  [any] */
#define WEIR_ERRNO(errno_value, ...) WEIR_ERR_BY(weir_err_make_errno, (errno_value), __VA_ARGS__)

weir_err weir_err_make_errno(const weir_err_site *site, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Same place and code, with "what: " put before the sentence; for context that only the caller knows
 * (the file being read, the position in it). 0 stays 0.  [any] */
weir_err weir_err_prefix(weir_err err, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

weir_code weir_err_code(weir_err err);
bool weir_err_is(weir_err err, weir_code code);

/* The sentence, or the code's text once the ring has passed it. Copies into buffer, always ended.  [any] */
void weir_err_sentence(weir_err err, char *buffer, size_t size);

/* An error that outlives the call that returned it: in a handle, for readiness, the first of many. It owns its
 * sentence, because the ring forgets it after WEIR_ERR_SENTENCES newer errors. A plain value of fixed size; all 0 is
 * none.
 *
 * LOCKS: it has none of its own. Whatever guards the struct that it stands in guards it: set is a write, get and a look
 * at err are reads. Both may be called under any lock. */
typedef struct weir_err_kept {
    weir_err err; /* WEIR_OK: none. Only to ask whether there is one, and its code; pass on weir_err_kept_get */
    char sentence[WEIR_ERR_SENTENCE_MAX];
} weir_err_kept;

/* Copies the error and its sentence; WEIR_OK empties it. */
void weir_err_kept_set(weir_err_kept *kept, weir_err err);
/* The same error with the sentence that it had, however long ago that was. Counts no error. */
weir_err weir_err_kept_get(const weir_err_kept *kept);

/* "store/base/file.c:120" of the place of birth; "-" for success.  [any] */
void weir_err_place(weir_err err, char *buffer, size_t size);

/* The process exit status for this error: 0, 64, 65, 69, 70 or 78.  [any] */
int weir_err_exit_status(weir_err err);

/* "EIO"; "OK" for 0.  [any] */
const char *weir_code_name(weir_code code);

/* How many errors of this code have been made since the start of the process.  [any] */
uint64_t weir_err_count(weir_code code);

/* Keeps the first error: for cleanup that may fail too.   weir_err_keep(&err, weir_file_close(f)); */
static inline void weir_err_keep(weir_err *errp, weir_err later) {
    if (*errp == WEIR_OK) *errp = later;
}

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_ERR_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - a program of ours run to its end by another, with its output in a file.
 *
 * The child inherits a lock of its parent and holds it as long as it lives: what was killed does not go on while one of
 * its children still runs. Such a child ends at the next line that it prints, since the pipe has no reader.
 *
 * THREADS: all functions are [main].
 */
#ifndef WEIR_TRAINER_CHILD_CHILD_H
#define WEIR_TRAINER_CHILD_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_CHILD_PATH_MAX  4096u
#define WEIR_CHILD_WORDS_MAX 128u /* of one command line */

/* A command line; a plain value that begins as {0}. Its words are borrowed. */
typedef struct weir_child_words {
    const char *words[WEIR_CHILD_WORDS_MAX + 1]; /* NULL-ended; the first is a path */
    size_t count;
} weir_child_words;

/* NULL is left out, so that an option that was not given needs no branch. Aborts past the limit, which is checked when
 * our own options are read. */
void weir_child_words_add(weir_child_words *words, size_t count, const char *const *more);
#define WEIR_CHILD_WORDS_ADD(words, ...)                                                       \
    weir_child_words_add((words), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), \
                         (const char *const[]){__VA_ARGS__})

/* Where a program is that belongs to this one: beside it, or in ../libexec/weir.  WEIR_EUNAVAILABLE. */
weir_err weir_child_beside(const char *file, char path[WEIR_CHILD_PATH_MAX]);
/* Where mpirun is, by PATH.  WEIR_EUNAVAILABLE. */
weir_err weir_child_find_mpirun(char path[WEIR_CHILD_PATH_MAX]);

typedef struct weir_child_opts {
    const char *log;     /* file for what it prints; NULL: none                                   */
    bool pass_on;        /* to stderr, too                                                        */
    int lock;            /* descriptor that it inherits; -1: none                                 */
    const char *goes_on; /* behind "stopped on request; " and "was ended by signal 9; "           */
} weir_child_opts;

/* Runs it to its end; its last line goes to last, which may be NULL.  WEIR_EDATA what it was given is wrong: its own
 * last sentence; WEIR_EUNAVAILABLE it was ended by a signal, or failed otherwise, as for want of memory or disk: begun
 * again, it may succeed; WEIR_ECANCELLED a stop was asked for: it was ended first.  Blocks. */
weir_err weir_child_run(const weir_child_words *words, const weir_child_opts *opts, char *last, size_t last_size);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_CHILD_CHILD_H */

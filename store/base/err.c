/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.c - packs code, place and sentence number into 64 bits, and keeps the last sentences.
 *
 * The ring is guarded by one plain pthread mutex, not a ranked one: an error may be made under any lock, so this must
 * be the innermost of all, and nothing is called while it is held. Errors are rare; readers of text rarer.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/base/assert.h>
#include <weir/base/err.h>

#define SERIAL_BITS 12u
#define SERIAL_MASK ((1u << SERIAL_BITS) - 1)
#define SITE_SHIFT  20u

_Static_assert(WEIR_ERR_SENTENCES <= 1u << SERIAL_BITS, "a slot must be found by its serial");
_Static_assert((WEIR_ERR_SENTENCES & (WEIR_ERR_SENTENCES - 1)) == 0, "the ring index is a mask");

typedef struct sentence {
    uint32_t serial;
    const weir_err_site *site; /* serials wrap: a sentence belongs to an error only if the place agrees too */
    char text[WEIR_ERR_SENTENCE_MAX];
} sentence;

static struct {
    pthread_mutex_t mutex;
    uint32_t next_serial;
    sentence sentences[WEIR_ERR_SENTENCES];
} ring = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const struct code_row {
    const char *name;
    int exit_status;
    const char *text;
} codes[] = {[0] = {"OK", 0, "success"},
#define WEIR_CODE_ROW(name, number, status, text) [number] = {#name, status, text},
             WEIR_CODES(WEIR_CODE_ROW)
#undef WEIR_CODE_ROW
};

#define CODES_COUNT (sizeof codes / sizeof codes[0])

static atomic_uint_fast64_t counts[CODES_COUNT];

weir_code weir_err_code(weir_err err) {
    return (weir_code)(err & 0xff);
}

bool weir_err_is(weir_err err, weir_code code) {
    return weir_err_code(err) == code;
}

static const weir_err_site *site_of(weir_err err) {
    return (const weir_err_site *)(uintptr_t)(err >> SITE_SHIFT << 4);
}

static uint32_t serial_of(weir_err err) {
    return (uint32_t)(err >> 8) & SERIAL_MASK;
}

static weir_err make(const weir_err_site *site, weir_code code, const char *text) {
    uint64_t place = (uint64_t)(uintptr_t)site >> 4;
    WEIR_ASSERT(code > 0 && (size_t)code < CODES_COUNT);
    WEIR_ASSERT(place >> (64 - SITE_SHIFT) == 0 && ((uintptr_t)site & 15) == 0);
    atomic_fetch_add_explicit(&counts[code], 1, memory_order_relaxed);
    pthread_mutex_lock(&ring.mutex);
    uint32_t serial = ring.next_serial++ & SERIAL_MASK;
    sentence *slot = &ring.sentences[serial & (WEIR_ERR_SENTENCES - 1)];
    slot->serial = serial;
    slot->site = site;
    snprintf(slot->text, sizeof slot->text, "%s", text);
    pthread_mutex_unlock(&ring.mutex);
    return place << SITE_SHIFT | (uint64_t)serial << 8 | (uint64_t)code;
}

weir_err weir_err_make(const weir_err_site *site, weir_code code, const char *format, ...) {
    char text[WEIR_ERR_SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return make(site, code, text);
}

static weir_code code_of_errno(int errno_value) {
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return WEIR_EFULL;
    case ENOMEM:
        return WEIR_ENOMEM;
    case EACCES:
    case EPERM:
    case EROFS:
        return WEIR_EPERM;
    case ENOENT:
        return WEIR_ENOTFOUND;
    case EEXIST:
        return WEIR_EEXIST;
    case EADDRINUSE:
    case EBUSY:
        return WEIR_EBUSY;
    default:
        return WEIR_EIO;
    }
}

weir_err weir_err_make_errno(const weir_err_site *site, int errno_value, const char *format, ...) {
    char text[WEIR_ERR_SENTENCE_MAX], reason[128];
    va_list arguments;
    weir_code code = code_of_errno(errno_value);
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0) length = 0;
    if ((size_t)length < sizeof text) {
        const char *advice = code == WEIR_EFULL ? "; free some space and try again" : "";
        snprintf(text + length, sizeof text - (size_t)length, ": %s%s", strerror_r(errno_value, reason, sizeof reason),
                 advice);
    }
    return make(site, code, text);
}

weir_err weir_err_prefix(weir_err err, const char *format, ...) {
    char text[WEIR_ERR_SENTENCE_MAX], old[WEIR_ERR_SENTENCE_MAX];
    va_list arguments;
    if (err == WEIR_OK) return WEIR_OK;
    weir_err_sentence(err, old, sizeof old);
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0) length = 0;
    if ((size_t)length < sizeof text) snprintf(text + length, sizeof text - (size_t)length, ": %s", old);
    atomic_fetch_sub_explicit(&counts[weir_err_code(err)], 1,
                              memory_order_relaxed); /* the same error, not a second one */
    return make(site_of(err), weir_err_code(err), text);
}

void weir_err_sentence(weir_err err, char *buffer, size_t size) {
    weir_code code = weir_err_code(err);
    uint32_t serial = serial_of(err);
    const sentence *slot = &ring.sentences[serial & (WEIR_ERR_SENTENCES - 1)];
    WEIR_ASSERT((size_t)code < CODES_COUNT);
    if (size == 0) return;
    pthread_mutex_lock(&ring.mutex);
    bool kept = err != WEIR_OK && slot->site == site_of(err) && slot->serial == serial;
    snprintf(buffer, size, "%s", kept ? slot->text : codes[code].text);
    pthread_mutex_unlock(&ring.mutex);
}

void weir_err_place(weir_err err, char *buffer, size_t size) {
    const weir_err_site *site = site_of(err);
    if (size == 0) return;
    if (err == WEIR_OK) {
        snprintf(buffer, size, "-");
    } else {
        snprintf(buffer, size, "%s:%d", site->file, site->line);
    }
}

int weir_err_exit_status(weir_err err) {
    WEIR_ASSERT((size_t)weir_err_code(err) < CODES_COUNT);
    return codes[weir_err_code(err)].exit_status;
}

const char *weir_code_name(weir_code code) {
    return (size_t)code < CODES_COUNT ? codes[code].name : "?";
}

uint64_t weir_err_count(weir_code code) {
    return (size_t)code < CODES_COUNT ? atomic_load_explicit(&counts[code], memory_order_relaxed) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.c - errors and the ring of their sentences.
 *
 * A place is told by its distance from the origin below, in steps of a site's alignment: the sites of one program lie
 * within two gigabytes, and the bits that an address would waste make the serial so long that an error whose slot was
 * taken by a newer one falls back to its code's text instead of getting the sentence of another.
 *
 * A sentence is formatted outside the ring and then copied into its slot under the slot's own spin lock: errors are
 * made while other locks are held, so no ranked mutex may be taken here, and the copy is too short to sleep for.
 */
#include <weir/store/base/err.h>

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

#define CODE_BITS   8u
#define SERIAL_BITS 28u
#define SITE_BITS   28u
#define SITE_SHIFT  (CODE_BITS + SERIAL_BITS)
#define SITE_ALIGN  16

#define CODE_MASK   ((UINT64_C(1) << CODE_BITS) - 1)
#define SERIAL_MASK ((UINT64_C(1) << SERIAL_BITS) - 1)

_Static_assert((WEIR_ERR_SENTENCES & (WEIR_ERR_SENTENCES - 1)) == 0, "a serial is masked to find its slot");
_Static_assert(WEIR_ERR_SENTENCES <= SERIAL_MASK, "a serial must name every slot");
_Static_assert(_Alignof(weir_err_site) == SITE_ALIGN, "places are counted in steps of it");
_Static_assert(CODE_BITS + SERIAL_BITS + SITE_BITS == 64, "an error is one word");

static const weir_err_site origin = {__FILE__, "", __LINE__};

typedef struct ring_slot {
    atomic_flag busy; /* guards the rest */
    weir_err err;
    char sentence[WEIR_ERR_SENTENCE_MAX];
} ring_slot;

static ring_slot ring[WEIR_ERR_SENTENCES];
static atomic_uint serial_next;

typedef struct code_row {
    const char *name;
    const char *text;
    int exit_status;
} code_row;

#define CODE_ROW(name, number, status, text) [number] = {#name, text, status},
static const code_row codes[] = {[WEIR_CODE_OK] = {"OK", "success", 0}, WEIR_CODES(CODE_ROW)};
#define CODE_COUNT (sizeof codes / sizeof codes[0])

static _Atomic uint64_t counts[CODE_COUNT];

static const code_row *code_row_of(weir_code code) {
    return &codes[(size_t)code < CODE_COUNT ? code : WEIR_EINTERNAL];
}

/* --- the ring ----------------------------------------------------------------------------------------------- */

static void slot_lock(ring_slot *slot) {
    while (atomic_flag_test_and_set_explicit(&slot->busy, memory_order_acquire))
        sched_yield();
}

static void slot_unlock(ring_slot *slot) {
    atomic_flag_clear_explicit(&slot->busy, memory_order_release);
}

static ring_slot *slot_of_err(weir_err err) {
    return &ring[(err >> CODE_BITS) & (WEIR_ERR_SENTENCES - 1)];
}

/* Gives err, which has a code and a place, its serial, and puts the sentence into the slot of that. */
static weir_err ring_put(weir_err err, const char *sentence) {
    WEIR_ASSERT(err != WEIR_OK && strnlen(sentence, WEIR_ERR_SENTENCE_MAX) < WEIR_ERR_SENTENCE_MAX);
    uint64_t serial = atomic_fetch_add_explicit(&serial_next, 1, memory_order_relaxed) & SERIAL_MASK;
    err |= serial << CODE_BITS;
    ring_slot *slot = slot_of_err(err);
    slot_lock(slot);
    slot->err = err;
    strcpy(slot->sentence, sentence); /* it fits: asserted above */
    slot_unlock(slot);
    return err;
}

/* --- places of libraries that were loaded --------------------------------------------------------------------- */

#define GUESTS 64u

/* They lie too far away to be told by steps, so that they are copied to where the program's are. The last one stands
 * for all that come when there is no room any more. */
static struct err_guests {
    atomic_flag busy; /* guards the rest */
    size_t count;
    const weir_err_site *of[GUESTS];
    weir_err_site sites[GUESTS + 1];
} guests = {.busy = ATOMIC_FLAG_INIT, .sites[GUESTS] = {"a library that was loaded", "", 0}};

static int64_t err_steps_to(const weir_err_site *site) {
    return ((intptr_t)site - (intptr_t)&origin) / SITE_ALIGN;
}

static bool err_is_near(int64_t steps) {
    return steps >= -(INT64_C(1) << (SITE_BITS - 1)) && steps < INT64_C(1) << (SITE_BITS - 1);
}

static const weir_err_site *err_guest(const weir_err_site *site) {
    while (atomic_flag_test_and_set_explicit(&guests.busy, memory_order_acquire))
        sched_yield();
    size_t i = 0;
    while (i < guests.count && guests.of[i] != site)
        i++;
    if (i == guests.count && i < GUESTS) {
        guests.of[i] = site;
        guests.sites[i] = *site;
        guests.count++;
    }
    atomic_flag_clear_explicit(&guests.busy, memory_order_release);
    return &guests.sites[i];
}

/* --- making ------------------------------------------------------------------------------------------------- */

static weir_err err_make(const weir_err_site *site, weir_code code, const char *sentence) {
    int64_t steps = err_steps_to(site);
    if (!err_is_near(steps)) steps = err_steps_to(err_guest(site));
    WEIR_ASSERT((size_t)code < CODE_COUNT && code != WEIR_CODE_OK);
    WEIR_ASSERT(err_is_near(steps));
    atomic_fetch_add_explicit(&counts[code], 1, memory_order_relaxed);
    return ring_put((weir_err)steps << SITE_SHIFT | code, sentence);
}

/* vsnprintf into text from length on; returns the new length, which is never past the end. */
__attribute__((format(printf, 3, 0))) static size_t sentence_append(char text[WEIR_ERR_SENTENCE_MAX], size_t length,
                                                                    const char *format, va_list arguments) {
    size_t room = WEIR_ERR_SENTENCE_MAX - length;
    int added = vsnprintf(text + length, room, format, arguments);
    if (added < 0) {
        text[length] = 0;
        return length;
    }
    return length + ((size_t)added < room ? (size_t)added : room - 1);
}

__attribute__((format(printf, 3, 4))) static size_t sentence_appendf(char text[WEIR_ERR_SENTENCE_MAX], size_t length,
                                                                     const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    length = sentence_append(text, length, format, arguments);
    va_end(arguments);
    return length;
}

weir_err weir_err_make(const weir_err_site *site, weir_code code, const char *format, ...) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    sentence_append(sentence, 0, format, arguments);
    va_end(arguments);
    return err_make(site, code, sentence);
}

static weir_code code_of_errno(int errno_value) {
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
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
    char sentence[WEIR_ERR_SENTENCE_MAX], system[128];
    weir_code code = code_of_errno(errno_value);
    va_list arguments;
    va_start(arguments, format);
    size_t length = sentence_append(sentence, 0, format, arguments);
    va_end(arguments);
    length = sentence_appendf(sentence, length, ": %s", strerror_r(errno_value, system, sizeof system));
    if (code == WEIR_EFULL) sentence_appendf(sentence, length, "; free some space and try again");
    return err_make(site, code, sentence);
}

weir_err weir_err_prefix(weir_err err, const char *format, ...) {
    char sentence[WEIR_ERR_SENTENCE_MAX], old[WEIR_ERR_SENTENCE_MAX];
    if (err == WEIR_OK) return err;
    weir_err_sentence(err, old, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    size_t length = sentence_append(sentence, 0, format, arguments);
    va_end(arguments);
    sentence_appendf(sentence, length, ": %s", old);
    return ring_put(err & ~(SERIAL_MASK << CODE_BITS), sentence);
}

/* --- asking ------------------------------------------------------------------------------------------------- */

weir_code weir_err_code(weir_err err) {
    return (weir_code)(err & CODE_MASK);
}

bool weir_err_is(weir_err err, weir_code code) {
    return weir_err_code(err) == code;
}

void weir_err_sentence(weir_err err, char *buffer, size_t size) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    bool kept = false;
    if (err != WEIR_OK) {
        ring_slot *slot = slot_of_err(err);
        slot_lock(slot);
        kept = slot->err == err;
        if (kept) strcpy(sentence, slot->sentence);
        slot_unlock(slot);
    }
    snprintf(buffer, size, "%s", kept ? sentence : code_row_of(weir_err_code(err))->text);
}

/* --- keeping ------------------------------------------------------------------------------------------------ */

void weir_err_kept_set(weir_err_kept *kept, weir_err err) {
    kept->err = err;
    kept->sentence[0] = 0;
    if (err != WEIR_OK) weir_err_sentence(err, kept->sentence, sizeof kept->sentence);
}

weir_err weir_err_kept_get(const weir_err_kept *kept) {
    if (kept->err == WEIR_OK) return WEIR_OK;
    ring_slot *slot = slot_of_err(kept->err);
    slot_lock(slot);
    bool there = slot->err == kept->err;
    slot_unlock(slot);
    return there ? kept->err : ring_put(kept->err & ~(SERIAL_MASK << CODE_BITS), kept->sentence);
}

/* --- the rest ----------------------------------------------------------------------------------------------- */

void weir_err_place(weir_err err, char *buffer, size_t size) {
    int64_t steps = (int64_t)err >> SITE_SHIFT; /* the sign comes along */
    const weir_err_site *site = (const weir_err_site *)((intptr_t)&origin + steps * SITE_ALIGN);
    if (err == WEIR_OK) {
        snprintf(buffer, size, "-");
    } else {
        snprintf(buffer, size, "%s:%d", site->file, site->line);
    }
}

int weir_err_exit_status(weir_err err) {
    return code_row_of(weir_err_code(err))->exit_status;
}

const char *weir_code_name(weir_code code) {
    return code_row_of(code)->name;
}

uint64_t weir_err_count(weir_code code) {
    return (size_t)code < CODE_COUNT ? atomic_load_explicit(&counts[code], memory_order_relaxed) : 0;
}

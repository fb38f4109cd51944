/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - which lines are written, and where to.
 *
 * INVARIANTS
 *   BASE-G1  A line is one write(2) while the system takes it whole, and no other line of this process is inside it.
 *   BASE-G2  Of each event at most one line an interval is written, and one that counts those held back; but every line
 *            of an event "audit.…" is written: their callers limit them.
 *   BASE-G3  Every line held back is counted by exactly one later line, at the latest by weir_log_flush.
 *   BASE-G4  Logging allocates nothing, and leaves errno alone.
 */
#include <weir/store/base/log.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/err.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/thread.h>

#include "log_line.h"

#define REPEAT_SLOTS      64u
#define REPEAT_US_DEFAULT (5 * WEIR_US_PER_S)
#define MESSAGE_MAX       768u /* so that a message of controls, each shown in four bytes, leaves room for fields */
#define WIPE_LINE         "\r\033[K"
#define BUSY_WAIT_MS      100 /* for a terminal or pipe that takes nothing; the line is then given up */

#define AUDIT "audit." /* events that begin so are never held back */

/* One event code and its interval. Free while event is NULL. */
typedef struct repeat_slot {
    const char *event;
    weir_log_level level; /* of the last line held back */
    int64_t begin_us;     /* when its last line was written */
    uint64_t held;
} repeat_slot;

static atomic_int level_min = WEIR_LOG_INFO;
static _Atomic(weir_clock *) log_clock; /* NULL: the system's. Read before the lock: a manual clock's rank is lower. */
static atomic_int bars;                 /* progress bars on the terminal now */

static weir_mutex lock = {PTHREAD_MUTEX_INITIALIZER, WEIR_RANK_LOG, "log"};
static bool ready;                                      /* the rest has been set up; under lock */
static int out_fd;                                      /* under lock */
static int64_t repeat_us;                               /* under lock */
static weir_log_look look;                              /* under lock */
static bool on_terminal;                                /* under lock */
static repeat_slot slots[REPEAT_SLOTS];                 /* under lock */
static unsigned slots_holding;                          /* of slots, those with held > 0; under lock */
static char line[WEIR_LOG_LINE_MAX + sizeof WIPE_LINE]; /* under lock */

_Static_assert(MESSAGE_MAX * 4 < WEIR_LOG_LINE_MAX / 8 * 7, "a message must leave room on its line");

typedef struct log_moment {
    int64_t mono_us;
    int64_t wall_us;
} log_moment;

static log_moment log_now(void) {
    weir_clock *clock = atomic_load(&log_clock);
    if (!clock) clock = weir_clock_system();
    return (log_moment){weir_clock_mono_us(clock), weir_clock_wall_us(clock)};
}

/* --- writing --------------------------------------------------------------------------------------------------- */

/* Under lock. */
static void log_write_entry(const weir_log_entry *entry) {
    size_t wipe = on_terminal && look != WEIR_LOOK_JSON && atomic_load(&bars) > 0 ? strlen(WIPE_LINE) : 0;
    memcpy(line, WIPE_LINE, wipe);
    const char *bytes = line;
    size_t length = wipe + weir_log_line(entry, look, line + wipe);
    WEIR_ASSERT(length <= sizeof line);
    while (length > 0) { // BASE-G1
        ssize_t written = write(out_fd, bytes, length);
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = out_fd, .events = POLLOUT};
            if (poll(&wait, 1, BUSY_WAIT_MS) <= 0) return;
        } else if (written == 0 || errno != EINTR) {
            return; /* a failure here cannot be reported anywhere */
        }
    }
}

/* --- repeats --------------------------------------------------------------------------------------------------- */

/* Writes what the slot holds back.  Under lock. */
static void repeat_write_held(repeat_slot *slot, const log_moment *at) {
    const weir_log_field fields[] = {WEIR_U64("repeated", slot->held)};
    WEIR_ASSERT(slot->held > 0 && slots_holding > 0); // BASE-G3
    log_write_entry(&(weir_log_entry){.wall_us = at->wall_us,
                                      .level = slot->level,
                                      .event = slot->event,
                                      .message = "the same event again, held back",
                                      .fields = fields,
                                      .field_count = 1});
    slot->held = 0;
    slots_holding--;
}

static bool repeat_is_over(const repeat_slot *slot, const log_moment *at) {
    return at->mono_us - slot->begin_us >= repeat_us;
}

/* Under lock. */
static void repeat_write_all_held(const log_moment *at, bool only_over) {
    for (size_t i = 0; slots_holding > 0 && i < REPEAT_SLOTS; i++) {
        if (slots[i].held > 0 && (!only_over || repeat_is_over(&slots[i], at))) repeat_write_held(&slots[i], at);
    }
}

/* The event's slot, or one that is free, or the oldest after it has said what it holds.  Under lock. */
static repeat_slot *repeat_find_slot(const char *event, const log_moment *at, bool *knownp) {
    repeat_slot *chosen = &slots[0];
    *knownp = true;
    for (size_t i = 0; i < REPEAT_SLOTS; i++) {
        if (slots[i].event && strcmp(slots[i].event, event) == 0) return &slots[i];
        if (chosen->event && (!slots[i].event || slots[i].begin_us < chosen->begin_us)) chosen = &slots[i];
    }
    *knownp = false;
    if (chosen->held > 0) repeat_write_held(chosen, at);
    chosen->event = event;
    return chosen;
}

/* Counts the line, if it is to be held back.  Under lock. */
static bool repeat_hold_back(weir_log_level level, const char *event, const log_moment *at) {
    bool known;
    if (repeat_us <= 0 || !strncmp(event, AUDIT, sizeof AUDIT - 1)) return false;
    repeat_slot *slot = repeat_find_slot(event, at, &known);
    if (!known || repeat_is_over(slot, at)) {
        slot->begin_us = at->mono_us;
        return false; // BASE-G2
    }
    if (slot->held++ == 0) slots_holding++;
    slot->level = level;
    weir_metric_add(WEIR_METRIC_LOG_SUPPRESSED_LINES, 1);
    return true;
}

/* --- setting up ------------------------------------------------------------------------------------------------ */

weir_log_opts weir_log_defaults(void) {
    return (weir_log_opts){
        .level = WEIR_LOG_INFO, .format = WEIR_LOG_AUTO, .fd = STDERR_FILENO, .repeat_us = REPEAT_US_DEFAULT};
}

/* Under lock. */
static void log_apply(const weir_log_opts *opts) {
    out_fd = opts->fd;
    repeat_us = opts->repeat_us;
    on_terminal = isatty(out_fd);
    bool human = opts->format == WEIR_LOG_HUMAN || (opts->format == WEIR_LOG_AUTO && on_terminal);
    const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
    bool coloured = on_terminal && !(refused && *refused) && !(terminal && strcmp(terminal, "dumb") == 0);
    look = !human ? WEIR_LOOK_JSON : coloured ? WEIR_LOOK_COLOURED : WEIR_LOOK_PLAIN;
    ready = true;
}

void weir_log_setup(const weir_log_opts *opts) {
    WEIR_ON_ROLE(MAIN);
    log_moment at = log_now();
    weir_mutex_lock(&lock);
    repeat_write_all_held(&at, false); /* BASE-G3: it belongs to the old place */
    memset(slots, 0, sizeof slots);
    log_apply(opts);
    weir_mutex_unlock(&lock);
    atomic_store(&log_clock, opts->clock);
    atomic_store(&level_min, (int)opts->level);
}

bool weir_log_enabled(weir_log_level level) {
    return (int)level >= atomic_load_explicit(&level_min, memory_order_relaxed);
}

void weir_log_note_bar(int change) {
    atomic_fetch_add(&bars, change);
}

/* --- what others call ------------------------------------------------------------------------------------------ */

void weir_log_write(weir_log_level level, const char *event, const weir_log_field *fields, size_t field_count,
                    const char *format, ...) {
    int saved_errno = errno; // BASE-G4
    char message[MESSAGE_MAX];
    va_list arguments;
    if (!weir_log_enabled(level)) return;
    WEIR_ASSERT(field_count <= WEIR_LOG_FIELDS_MAX);
    log_moment at = log_now();
    weir_log_entry entry = {.wall_us = at.wall_us,
                            .level = level,
                            .event = event,
                            .message = message,
                            .fields = fields,
                            .field_count = field_count};
    va_start(arguments, format);
    weir_mutex_lock(&lock);
    if (!ready) { /* the process logs before it has set up the log */
        weir_log_opts opts = weir_log_defaults();
        log_apply(&opts);
    }
    repeat_write_all_held(&at, true);
    if (!repeat_hold_back(level, event, &at)) {
        vsnprintf(message, sizeof message, format, arguments);
        log_write_entry(&entry);
    }
    weir_mutex_unlock(&lock);
    va_end(arguments);
    errno = saved_errno;
}

void weir_log_error(const char *event, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX], place[128];
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_err_place(err, place, sizeof place);
    const weir_log_field fields[] = {WEIR_TEXT("code", weir_code_name(weir_err_code(err))), WEIR_TEXT("place", place)};
    weir_log_write(WEIR_LOG_ERROR, event, fields, sizeof fields / sizeof fields[0], "%s", sentence);
}

void weir_log_flush(void) {
    int saved_errno = errno;
    log_moment at = log_now();
    weir_mutex_lock(&lock);
    repeat_write_all_held(&at, false);
    weir_mutex_unlock(&lock);
    errno = saved_errno;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - drawn by the thread that adds when a drawing is due; there is no thread of its own.
 *
 * add is on hot paths: it adds to one word and compares the time with another. The one that moves `due_us` on draws.
 */
#include <weir/store/base/progress.h>

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/log.h>
#include <weir/store/base/thread.h>

#include "log_line.h"

#define QUIET_US      (2 * WEIR_US_PER_S)
#define DRAW_US       (WEIR_US_PER_S / 10)
#define LOG_US        (30 * WEIR_US_PER_S)
#define SMOOTH_US     (10.0 * WEIR_US_PER_S) /* what happened so long ago counts a third of what happens now */
#define LEFT_US_MAX   (1000.0 * 3600 * WEIR_US_PER_S)
#define COLUMNS_USUAL 80u
#define BAR_MAX       40u
#define BAR_MIN       10u
#define AMOUNT_MAX    24u
#define TAIL_MAX      40u
#define TAIL_ROOM     45u /* columns kept for what stands behind the bar, so that the bar does not jump */
#define LINE_WIPED    "\r\033[K"

struct weir_progress {
    weir_progress_opts opts;
    bool on_terminal;
    int64_t begin_us;
    atomic_uint_fast64_t done;  /* [any] */
    atomic_int_fast64_t due_us; /* [any] when the next drawing is due */
    weir_mutex lock;
    weir_buf line;      /* under lock */
    bool shown;         /* something was drawn or logged; under lock */
    int64_t last_us;    /* of the drawing before; under lock         */
    uint64_t last_done; /* under lock                                */
    double per_us;      /* smoothed; under lock                      */
};

/* What a drawing shows. */
typedef struct progress_state {
    uint64_t done;
    int64_t elapsed_us;
    double per_second;
    double left_us; /* negative: unknown */
} progress_state;

/* --- opening and closing --------------------------------------------------------------------------------------- */

weir_err weir_progress_open(const weir_progress_opts *opts, weir_progress **progressp) {
    *progressp = NULL;
    weir_progress *progress = weir_calloc(1, sizeof *progress);
    if (!progress) return WEIR_NOMEM("for the progress of %s", opts->what);
    progress->opts = *opts;
    if (!opts->clock) progress->opts.clock = weir_clock_system();
    const char *terminal = getenv("TERM"); /* a bar needs one that can wipe a line */
    progress->on_terminal = isatty(opts->fd) && !(terminal && strcmp(terminal, "dumb") == 0);
    progress->begin_us = weir_clock_mono_us(progress->opts.clock);
    progress->last_us = progress->begin_us;
    atomic_init(&progress->due_us, progress->begin_us + (progress->on_terminal ? QUIET_US : LOG_US));
    weir_mutex_init(&progress->lock, WEIR_RANK_PROGRESS, "progress");
    *progressp = progress;
    return WEIR_OK;
}

/* --- what is shown --------------------------------------------------------------------------------------------- */

/* Under lock. */
static progress_state progress_state_at(weir_progress *progress, int64_t now_us) {
    uint64_t total = progress->opts.total;
    progress_state state = {
        .done = atomic_load(&progress->done), .elapsed_us = now_us - progress->begin_us, .left_us = -1};
    double passed_us = (double)(now_us - progress->last_us);
    if (passed_us > 0) { /* the new rate counts the more the longer it has lasted */
        double latest = (double)(state.done - progress->last_done) / passed_us;
        double weight = progress->shown ? 1 - exp(-passed_us / SMOOTH_US) : 1;
        progress->per_us += weight * (latest - progress->per_us);
        progress->last_us = now_us;
        progress->last_done = state.done;
    }
    state.per_second = progress->per_us * (double)WEIR_US_PER_S;
    if (state.done >= total) {
        state.left_us = total > 0 ? 0 : -1;
    } else if (progress->per_us > 0) {
        state.left_us = (double)(total - state.done) / progress->per_us;
        if (state.left_us > LEFT_US_MAX) state.left_us = -1;
    }
    return state;
}

/* "950", "12.3 k", "4.56 M" */
static void progress_format_amount(double amount, char text[AMOUNT_MAX]) {
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    unsigned unit = 0;
    for (; amount >= 999.5 && unit < sizeof units / sizeof units[0] - 1; unit++)
        amount /= 1000;
    int decimals = unit == 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
    snprintf(text, AMOUNT_MAX, "%.*f%s", decimals, amount, units[unit]);
}

/* "42 s", "3 min 05 s", "2 h 10 min" */
static void progress_format_duration(double us, char text[AMOUNT_MAX]) {
    unsigned seconds = (unsigned)(us / (double)WEIR_US_PER_S + 0.5);
    if (seconds < 60) {
        snprintf(text, AMOUNT_MAX, "%u s", seconds);
    } else if (seconds < 3600) {
        snprintf(text, AMOUNT_MAX, "%u min %02u s", seconds / 60, seconds % 60);
    } else {
        snprintf(text, AMOUNT_MAX, "%u h %02u min", seconds / 3600, seconds / 60 % 60);
    }
}

/* --- on a terminal --------------------------------------------------------------------------------------------- */

/* "[=====>    ] ", or nothing if that is too little to be a bar. */
static void progress_write_bar(weir_buf *line, double share, size_t cells) {
    char bar[BAR_MAX];
    if (cells > BAR_MAX) cells = BAR_MAX;
    if (cells < BAR_MIN) return;
    size_t filled = (size_t)(share * (double)cells);
    WEIR_ASSERT(share >= 0 && filled <= cells);
    memset(bar, ' ', cells);
    memset(bar, '=', filled);
    if (filled < cells) bar[filled] = '>';
    weir_buf_byte(line, '[');
    weir_buf_append(line, bar, cells);
    weir_buf_text(line, "] ");
}

/* "payments  58 % [=====>    ] 580 k of 1.00 M, 12.3 k/s, 42 s left" */
static void progress_write_line(const weir_progress *progress, const progress_state *state, bool ended,
                                weir_buf *line) {
    char done[AMOUNT_MAX], total[AMOUNT_MAX], rate[AMOUNT_MAX], duration[AMOUNT_MAX], time[TAIL_MAX] = "",
                                                                                      tail[4 * TAIL_MAX];
    struct winsize window = {0};
    bool told = ioctl(progress->opts.fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
    size_t begin = line->length, columns = told ? window.ws_col : COLUMNS_USUAL;
    progress_format_amount((double)state->done, done);
    progress_format_amount(state->per_second, rate);
    if (ended || state->left_us >= 0) { /* at the end, what it took in all */
        progress_format_duration(ended ? (double)state->elapsed_us : state->left_us, duration);
        snprintf(time, TAIL_MAX, ended ? ", took %s" : ", %s left", duration);
    }
    weir_buf_text(line, progress->opts.what);
    if (progress->opts.total > 0) {
        double share = fmin((double)state->done / (double)progress->opts.total, 1);
        progress_format_amount((double)progress->opts.total, total);
        weir_buf_printf(line, " %3.0f %% ", floor(share * 100));
        snprintf(tail, sizeof tail, "%s of %s, %s/s%s", done, total, rate, time);
        size_t room = strlen(tail) > TAIL_ROOM ? strlen(tail) : TAIL_ROOM;
        size_t others = line->length - begin + strlen("[] ") + room;
        progress_write_bar(line, share, columns > others ? columns - 1 - others : 0);
    } else {
        snprintf(tail, sizeof tail, " %s, %s/s%s", done, rate, time);
    }
    weir_buf_text(line, tail);
    WEIR_ASSERT(line->length >= begin);
    if (line->length - begin >= columns) line->length = begin + columns - 1; /* a line that wraps cannot be wiped */
}

/* One write, so that a line of the log cannot get into it.  Under lock. */
static void progress_draw(weir_progress *progress, const progress_state *state, bool ended) {
    weir_buf *line = &progress->line;
    weir_buf_clear(line);
    weir_buf_text(line, LINE_WIPED);
    progress_write_line(progress, state, ended, line);
    if (ended) weir_buf_byte(line, '\n');
    if (!progress->shown) weir_log_note_bar(1);
    if (line->failed || write(progress->opts.fd, line->bytes, line->length) < 0)
        return; /* a drawing that is lost does no harm */
}

/* --- elsewhere ------------------------------------------------------------------------------------------------- */

/* Not under lock: the log's clock has a lower rank. */
static void progress_log(const weir_progress *progress, const progress_state *state, const char *event) {
    WEIR_LOG(INFO, event, progress->opts.what, WEIR_U64("done", state->done), WEIR_U64("total", progress->opts.total),
             WEIR_F64("per_second", rint(state->per_second)),
             WEIR_F64("left_s", state->left_us < 0 ? NAN : rint(state->left_us / (double)WEIR_US_PER_S)),
             WEIR_F64("elapsed_s", rint((double)state->elapsed_us / (double)WEIR_US_PER_S)));
}

void weir_progress_add(weir_progress *progress, uint64_t n) {
    atomic_fetch_add_explicit(&progress->done, n, memory_order_relaxed);
    int64_t now_us = weir_clock_mono_us(progress->opts.clock);
    int_fast64_t due_us = atomic_load_explicit(&progress->due_us, memory_order_relaxed);
    if (now_us < due_us) return;
    int64_t next_us = now_us + (progress->on_terminal ? DRAW_US : LOG_US);
    if (!atomic_compare_exchange_strong(&progress->due_us, &due_us, next_us)) return;
    weir_mutex_lock(&progress->lock);
    progress_state state = progress_state_at(progress, now_us);
    if (progress->on_terminal) progress_draw(progress, &state, false);
    progress->shown = true;
    weir_mutex_unlock(&progress->lock);
    if (!progress->on_terminal) progress_log(progress, &state, "progress");
}

void weir_progress_close(weir_progress *progress) {
    if (!progress) return;
    if (progress->shown) {
        int64_t now_us = weir_clock_mono_us(progress->opts.clock);
        weir_mutex_lock(&progress->lock);
        progress_state state = progress_state_at(progress, now_us);
        /* In the end the whole is of interest: what was done, in what time. */
        state.per_second = (double)state.done * (double)WEIR_US_PER_S / (double)state.elapsed_us;
        if (progress->on_terminal) {
            progress_draw(progress, &state, true);
            weir_log_note_bar(-1);
        }
        weir_mutex_unlock(&progress->lock);
        if (!progress->on_terminal) progress_log(progress, &state, "progress.end");
    }
    weir_mutex_destroy(&progress->lock);
    weir_buf_free(&progress->line);
    weir_free(progress);
}

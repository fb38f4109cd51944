/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the program behind `weir simulate`: the options, the pace, the summary.
 *
 * A tool to develop and to try Weir with, so the server does not link it. The generator knows nothing of the pace: at
 * any speed, into any sink, the same options give the same bytes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/progress.h>
#include <weir/store/base/signals.h>

#include "sink.h"
#include "words.h"

#define DAY_US         (86400 * WEIR_US_PER_S)
#define DAYS_MAX       36500.0
#define REST_US        200000 /* readers wait no longer than this for what a paced run has taken */
#define LOOK_AROUND    1024u  /* messages between two looks at the stop flag                       */
#define PARTITIONS_MAX 1024u
#define EVENT_TIME_MAX (WEIR_SIMULATE_START_MAX + (int64_t)DAYS_MAX * DAY_US)

typedef struct simulate_run {
    weir_simulate *sim;
    weir_simulate_sink *sink;
    weir_simulate_lines truth; /* its file is NULL without --truth */
    weir_progress *progress;
    const char *to;
    weir_simulate_topic main_topic; /* the one that is counted and paced */
    bool topics[WEIR_SIMULATE_TOPICS];
    uint64_t count_max; /* of the main topic */
    int64_t start_us, end_us;
    double rate, speed; /* 0: none */
    uint64_t count, frauds, chargebacks;
    int64_t began_us, rested_us; /* monotonic */
    int64_t time_us;             /* event time of the last message */
} simulate_run;

/* --- options ------------------------------------------------------------------------------------------------------ */

/* "500", "500/s". */
static weir_err simulate_read_rate(const weir_cli *cli, double *ratep) {
    const char *text = weir_cli_text(cli, "rate");
    if (!text) return WEIR_OK;
    char *rest = NULL;
    double rate = *text >= '0' && *text <= '9' ? strtod(text, &rest) : 0;
    if (!rest || (*rest && strcmp(rest, "/s") != 0) || !(rate >= 0.001 && rate <= 1e9))
        return WEIR_ERR(WEIR_EUSAGE, "--rate is '%.60s'; it must be a number a second from 0.001 to 1e9, such as 500/s",
                        text);
    *ratep = rate;
    return WEIR_OK;
}

static weir_err simulate_read_start(const weir_cli *cli, int64_t *start_usp) {
    const char *text = weir_cli_text(cli, "start");
    if (text && strcmp(text, "now") == 0) {
        *start_usp = weir_clock_wall_us(weir_clock_system());
        return WEIR_OK;
    }
    weir_err err = weir_cli_time(cli, "start", start_usp);
    if (!err && (*start_usp < WEIR_SIMULATE_START_MIN || *start_usp > WEIR_SIMULATE_START_MAX))
        err = WEIR_ERR(WEIR_EUSAGE, "--start is '%.60s'; it must be from 2000-01-01 to 2100-01-01", text);
    return err;
}

/* There is no default for how much: half a gigabyte on a terminal would be a surprise. */
static weir_err simulate_read_end(const weir_cli *cli, simulate_run *r) {
    double days = 0;
    r->count_max = UINT64_MAX;
    r->end_us = EVENT_TIME_MAX;
    bool bounded = weir_cli_given(cli, "days") || weir_cli_given(cli, "count");
    if (weir_cli_given(cli, "endless") == bounded)
        return WEIR_ERR(WEIR_EUSAGE,
                        "say how much: --days D, --count N (or both: whichever comes first), or --endless");
    weir_err err = weir_cli_f64(cli, "days", 1e-6, DAYS_MAX, &days);
    if (!err) err = weir_cli_u64(cli, "count", 1, UINT64_MAX, &r->count_max);
    if (!err && days > 0) r->end_us = r->start_us + (int64_t)(days * (double)DAY_US);
    return err;
}

static weir_err simulate_read_common(const weir_cli *cli, uint64_t *seedp, int64_t *start_usp, simulate_run *r) {
    weir_err err = weir_cli_u64(cli, "seed", 0, UINT64_MAX, seedp);
    if (!err) err = simulate_read_start(cli, start_usp);
    r->start_us = r->time_us = *start_usp;
    if (!err) err = simulate_read_end(cli, r);
    if (!err) err = simulate_read_rate(cli, &r->rate);
    if (!err) err = weir_cli_f64(cli, "speed", 1e-3, 1e9, &r->speed);
    if (!err && r->rate > 0 && r->speed > 0)
        err = WEIR_ERR(WEIR_EUSAGE, "give --rate or --speed, not both: each alone says how fast to go");
    r->to = weir_cli_text(cli, "to") ? weir_cli_text(cli, "to") : "-";
    return err;
}

static weir_err simulate_open_sink(const weir_cli *cli, simulate_run *r) {
    uint64_t partitions = weir_config_u64(weir_cli_config(cli), WEIR_CONFIG_EVENTLOG_PARTITIONS);
    weir_err err = weir_cli_u64(cli, "partitions", 1, PARTITIONS_MAX, &partitions);
    if (err) return err;
    weir_simulate_sink_opts opts = {.to = r->to, .config = weir_cli_config(cli), .partitions = (uint32_t)partitions};
    memcpy(opts.topics, r->topics, sizeof opts.topics);
    return weir_simulate_sink_open(&opts, &r->sink);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* Waits until the message is due. What was sent before does not wait with it for long. */
static weir_err simulate_keep_pace(simulate_run *r, const weir_simulate_message *message) {
    if (r->rate == 0 && r->speed == 0) return WEIR_OK;
    double due = r->speed > 0 ? (double)(message->time_us - r->start_us) / r->speed
                              : (double)r->count * (double)WEIR_US_PER_S / r->rate;
    int64_t due_us = due < 1e15 ? r->began_us + (int64_t)due : INT64_MAX;
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    bool rest = now_us - r->rested_us >= REST_US || due_us - now_us >= REST_US;
    weir_err err = WEIR_OK;
    if (rest) {
        r->rested_us = now_us;
        err = r->sink->rest(r->sink);
        if (!err && r->truth.file) err = weir_simulate_lines_flush(&r->truth);
    }
    if (!err && due_us > now_us) weir_signals_wait(due_us - now_us);
    return err;
}

static weir_err simulate_send(simulate_run *r, const weir_simulate_message *message) {
    weir_err err = WEIR_OK;
    if (r->topics[message->topic]) err = r->sink->put(r->sink, message);
    if (!err && message->fraud && r->truth.file) {
        char line[WEIR_SIMULATE_TRUTH_MAX];
        err = weir_simulate_lines_put(&r->truth, line, weir_simulate_truth(message, line));
    }
    r->count += message->topic == r->main_topic;
    r->frauds += message->fraud != WEIR_SIMULATE_HONEST;
    r->chargebacks += message->topic == WEIR_SIMULATE_CHARGEBACKS;
    r->time_us = message->time_us;
    return err;
}

static weir_err simulate_send_all(simulate_run *r) {
    uint64_t shown = 0;
    for (uint64_t i = 1; r->count < r->count_max; i++) {
        weir_simulate_message message;
        weir_simulate_next(r->sim, &message);
        if (message.time_us >= r->end_us) break;
        weir_err err = simulate_keep_pace(r, &message);
        if (weir_signals_stop_asked() && (r->rate > 0 || r->speed > 0 || i % LOOK_AROUND == 0)) return err;
        if (!err) err = simulate_send(r, &message);
        if (err) return err;
        if (i % LOOK_AROUND == 0 || r->rate > 0 || r->speed > 0) {
            weir_progress_add(r->progress, r->count - shown);
            shown = r->count;
        }
    }
    weir_progress_add(r->progress, r->count - shown);
    return WEIR_OK;
}

static void simulate_print_summary(const simulate_run *r, const char *path) {
    double seconds = (double)(weir_clock_mono_us(weir_clock_system()) - r->began_us) / (double)WEIR_US_PER_S;
    double event_seconds = (double)(r->time_us - r->start_us) / (double)WEIR_US_PER_S;
    char frauds[96] = "";
    if (r->main_topic == WEIR_SIMULATE_PAYMENTS)
        snprintf(frauds, sizeof frauds, " (%" PRIu64 " fraudulent), %" PRIu64 " chargebacks", r->frauds,
                 r->chargebacks);
    dprintf(STDERR_FILENO, "%s: %" PRIu64 " %s%s, %.0f s of event time, in %.2f s, %.0f a second%s\n", path, r->count,
            weir_simulate_topic_name(r->main_topic), frauds, event_seconds, seconds,
            (double)r->count / (seconds > 0 ? seconds : 1e-6), weir_signals_stop_asked() ? "; stopped" : "");
}

/* Sends unless err says that something could not be opened, and closes what is open in any case. */
static weir_err simulate_to_the_end(simulate_run *r, weir_err err, uint64_t per_day, const char *path) {
    weir_progress_opts progress = {.what = weir_simulate_topic_name(r->main_topic), .fd = STDERR_FILENO};
    if (r->count_max != UINT64_MAX) {
        progress.total = r->count_max;
    } else if (r->end_us != EVENT_TIME_MAX) {
        progress.total = (uint64_t)((double)(r->end_us - r->start_us) / (double)DAY_US * (double)per_day);
    }
    if (!err) err = weir_signals_install();
    if (!err) err = weir_progress_open(&progress, &r->progress);
    r->began_us = r->rested_us = weir_clock_mono_us(weir_clock_system());
    if (!err) err = simulate_send_all(r);
    if (!err) err = r->sink->finish(r->sink);
    if (!err && r->truth.file) err = weir_simulate_lines_sync(&r->truth);
    weir_progress_close(r->progress);
    if (r->sink) weir_err_keep(&err, r->sink->close(r->sink));
    if (r->truth.file) weir_err_keep(&err, weir_simulate_lines_close(&r->truth));
    weir_simulate_close(r->sim);
    if (!err) simulate_print_summary(r, path);
    return err;
}

/* --- payments ----------------------------------------------------------------------------------------------------- */

static weir_err simulate_read_sizes(const weir_cli *cli, weir_simulate_payments_opts *opts) {
    uint64_t accounts = opts->accounts, merchants = 0, per_day = 0;
    double fraud_rate = opts->fraud_ppm / 1e6;
    weir_err err = weir_cli_u64(cli, "accounts", WEIR_SIMULATE_ACCOUNTS_MIN, WEIR_SIMULATE_ACCOUNTS_MAX, &accounts);
    if (!err)
        err = weir_cli_u64(cli, "merchants", WEIR_SIMULATE_MERCHANTS_MIN, WEIR_SIMULATE_MERCHANTS_MAX, &merchants);
    if (!err) err = weir_cli_u64(cli, "per-day", WEIR_SIMULATE_PER_DAY_MIN, WEIR_SIMULATE_PER_DAY_MAX, &per_day);
    if (!err) err = weir_cli_f64(cli, "fraud-rate", 0, WEIR_SIMULATE_FRAUD_PPM_MAX / 1e6, &fraud_rate);
    if (!err) err = weir_cli_us(cli, "label-delay", &opts->label_delay_us);
    if (!err &&
        (opts->label_delay_us < WEIR_SIMULATE_LABEL_DELAY_MIN || opts->label_delay_us > WEIR_SIMULATE_LABEL_DELAY_MAX))
        err = WEIR_ERR(WEIR_EUSAGE, "--label-delay is '%.60s'; it must be from 1m to 60d",
                       weir_cli_text(cli, "label-delay"));
    opts->accounts = (uint32_t)accounts;
    opts->merchants = (uint32_t)merchants;
    opts->per_day = (uint32_t)per_day;
    opts->fraud_ppm = (uint32_t)lround(fraud_rate * 1e6);
    return err;
}

/* --world says what the other words change. */
static weir_err simulate_read_world(const weir_cli *cli, weir_simulate_payments_opts *opts) {
    const char *world = weir_cli_text(cli, "world");
    if (world && strcmp(world, "moving") == 0) weir_simulate_payments_moving(opts);
    opts->adapt |= weir_cli_given(cli, "adapt");
    opts->holidays |= weir_cli_given(cli, "holidays");
    opts->moves |= weir_cli_given(cli, "moves");
    double friendly = opts->friendly_ppm / 1e6, unreported = opts->unreported_ppm / 1e6;
    weir_err err = weir_cli_f64(cli, "friendly-rate", 0, WEIR_SIMULATE_FRIENDLY_PPM_MAX / 1e6, &friendly);
    if (!err) err = weir_cli_f64(cli, "unreported-rate", 0, 1, &unreported);
    opts->friendly_ppm = (uint32_t)lround(friendly * 1e6);
    opts->unreported_ppm = (uint32_t)lround(unreported * 1e6);
    return err;
}

static weir_err simulate_payments(weir_cli *cli) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    simulate_run r = {.main_topic = WEIR_SIMULATE_PAYMENTS};
    const char *only = weir_cli_text(cli, "only");
    r.topics[WEIR_SIMULATE_PAYMENTS] = !only || strcmp(only, "payments") == 0;
    r.topics[WEIR_SIMULATE_CHARGEBACKS] = !only || strcmp(only, "chargebacks") == 0;
    weir_err err = simulate_read_common(cli, &opts.seed, &opts.start_us, &r);
    if (!err) err = simulate_read_sizes(cli, &opts);
    if (!err) err = simulate_read_world(cli, &opts);
    if (!err) err = weir_simulate_payments_open(&opts, &r.sim);
    if (!err) err = simulate_open_sink(cli, &r);
    if (!err && weir_cli_given(cli, "truth")) err = weir_simulate_lines_open(&r.truth, weir_cli_text(cli, "truth"));
    uint64_t per_day = opts.per_day ? opts.per_day : opts.accounts / 2 * 5;
    return simulate_to_the_end(&r, err, per_day, weir_cli_path(cli));
}

/* --- clicks ------------------------------------------------------------------------------------------------------- */

static weir_err simulate_clicks(weir_cli *cli) {
    weir_simulate_clicks_opts opts = weir_simulate_clicks_defaults();
    simulate_run r = {.main_topic = WEIR_SIMULATE_CLICKS, .topics = {[WEIR_SIMULATE_CLICKS] = true}};
    uint64_t people = opts.people, items = opts.items, per_day = 0;
    weir_err err = simulate_read_common(cli, &opts.seed, &opts.start_us, &r);
    if (!err) err = weir_cli_u64(cli, "people", WEIR_SIMULATE_PEOPLE_MIN, WEIR_SIMULATE_PEOPLE_MAX, &people);
    if (!err) err = weir_cli_u64(cli, "items", WEIR_SIMULATE_ITEMS_MIN, WEIR_SIMULATE_ITEMS_MAX, &items);
    if (!err) err = weir_cli_u64(cli, "per-day", WEIR_SIMULATE_PER_DAY_MIN, WEIR_SIMULATE_PER_DAY_MAX, &per_day);
    opts.people = (uint32_t)people;
    opts.items = (uint32_t)items;
    opts.per_day = (uint32_t)per_day;
    if (!err) err = weir_simulate_clicks_open(&opts, &r.sim);
    if (!err) err = simulate_open_sink(cli, &r);
    return simulate_to_the_end(&r, err, per_day ? per_day : people * 12, weir_cli_path(cli));
}

/* --- the program -------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    weir_command payments = weir_simulate_words_payments, clicks = weir_simulate_words_clicks;
    payments.run = simulate_payments;
    clicks.run = simulate_clicks;
    const weir_command *const commands[] = {&payments, &clicks, NULL};
    const weir_command simulate = {
        .name = "simulate",
        .summary = "make up a stream of payments or clicks, with a known truth",
        .description = "A stream to try Weir with: seeded, of any size, in constant memory, as fast as it can or at a "
                       "given pace, into files, the built-in event log or Kafka.",
        .example = "weir simulate payments --count 1000 --to log:build/data\nweir simulate clicks --count 5",
        .subcommands = commands,
    };
    return weir_cli_main(&simulate, "weir simulate", argc, argv);
}

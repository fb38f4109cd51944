/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow_bench.c - what a store costs as it grows: a long stream of payments into one store with the settings of
 * `weir serve`, and a row of figures at each doubling, and of the first and the last tenth.
 *
 *   piece of the stream ──► event log ══► pipeline ──► graph ──► sealed ──► compacted ──► reads
 *   └──── this thread, not counted ───┘   └─────────── counted ───────────────────────┘
 *
 * CPU and bytes are those of the process less those of the thread that runs this: it makes the payments, writes the
 * log, and waits. Bytes are those of write calls (wchar of /proc/self/io): what a disk is asked for in the end, however
 * long the page cache keeps it; the log is not among them. A step ends when its records are sealed; what compaction
 * then still does is counted apart, so that no step leaves work to the next. Wall time stands still while the log is
 * written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/ingest/pipeline/pipeline.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "bench.h"
#include "grow_bench.h"
#include "stream.h"

#define RECORDS        20000000u
#define RECORDS_QUICK  20000u
#define FIRST_RECORDS  250000u
#define PIECE_PAYMENTS 2000000u /* that the log has at a time: less than a gigabyte */
#define READS          2048u
#define READS_QUICK    64u
#define READS_MAX      1000000u
#define SEGMENT_BYTES  (32ull << 20)
#define LOOK_US        20000
#define LOOKS_IDLE     3u

/* --- what was used ------------------------------------------------------------------------------------------------ */

typedef struct used {
    double cpu_s;
    uint64_t written_bytes, read_bytes;
} used;

static double cpu_seconds(clockid_t of) {
    struct timespec t = {0};
    clock_gettime(of, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A line of "/proc/self/io" or "/proc/thread-self/io"; 0 where there is no such file. */
static uint64_t bytes_of(const char *path, const char *name) {
    char line[128];
    uint64_t bytes = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) bytes = strtoull(line + strlen(name), NULL, 10);
    if (file) fclose(file);
    return bytes;
}

static uint64_t bytes_of_others(const char *name) {
    return bytes_of("/proc/self/io", name) - bytes_of("/proc/thread-self/io", name);
}

static used used_by_others(void) {
    return (used){cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(CLOCK_THREAD_CPUTIME_ID),
                  bytes_of_others("wchar:"), bytes_of_others("read_bytes:")};
}

static double seconds_now(void) {
    return (double)weir_clock_mono_ns(weir_clock_system()) * 1e-9;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

typedef struct growing {
    const weir_config *config;
    const char *folder;
    char store[1024];
    weir_bench_stream *stream;
    weir_schema *schema;
    uint32_t source;
    weir_eventlog *log;
    weir_graph *graph;
    weir_pipeline *pipeline;
    grow_sample *sample;
    grow_scorer *scorer;
    uint64_t payments;
    uint32_t reads;
    double records_a_payment; /* a guess at first, then what was seen */
    grow_run *run;
} growing;

static weir_err check_fed(growing *g) {
    weir_pipeline_source_stats stats;
    weir_pipeline_source_stats_get(g->pipeline, 0, &stats);
    if (stats.dead_letters || stats.records != g->payments)
        return WEIR_ERR(WEIR_EDATA, "of %" PRIu64 " payments %" PRIu64 " were read, and %" PRIu64 " are dead letters",
                        g->payments, stats.records, stats.dead_letters);
    return WEIR_OK;
}

/* The log holds one piece at a time: what was read is removed. */
static weir_err feed(growing *g, uint64_t payments, grow_row *row) {
    uint64_t removed;
    weir_err err = WEIR_OK;
    while (!err && payments) {
        uint64_t piece = payments < PIECE_PAYMENTS ? payments : PIECE_PAYMENTS;
        err = weir_bench_stream_append(g->stream, g->log, piece, weir_grow_sample_offer, g->sample);
        double begin_s = seconds_now();
        weir_pipeline_wake(g->pipeline);
        if (!err) err = weir_pipeline_drain(g->pipeline, WEIR_PIPELINE_FOREVER);
        payments -= piece;
        g->payments += piece;
        if (!err && !payments) err = weir_graph_seal(g->graph);
        row->feed_wall_s += seconds_now() - begin_s;
        if (!err) err = weir_eventlog_retain(g->log, &removed);
        if (!err) err = check_fed(g);
    }
    return err;
}

/* Between two compactions there may be a moment with none: so it looks several times. */
static weir_err settle(growing *g) {
    weir_graph_stats stats;
    weir_err err = WEIR_OK;
    for (uint32_t idle = 0; !err && idle < LOOKS_IDLE;) {
        weir_graph_stats_get(g->graph, &stats);
        idle = stats.compactions ? 0 : idle + 1;
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + LOOK_US);
        err = weir_graph_health(g->graph);
    }
    return err;
}

static void take_stats(const weir_graph_stats *before, const weir_graph_stats *sealed, const weir_graph_stats *after,
                       grow_row *row) {
    row->records = after->sealed_records;
    row->step_records = after->sealed_records - before->sealed_records;
    row->compaction_cpu_s = (double)(after->compaction_cpu_us - before->compaction_cpu_us) * 1e-6;
    row->compacted_bytes = after->compacted_bytes - before->compacted_bytes;
    row->live_bytes = after->cold_bytes;
    row->files = after->cold_files;
    row->level0_files = sealed->level0_files;
}

static weir_err step(growing *g, uint64_t records, grow_row *row) {
    weir_graph_stats before, sealed, after;
    weir_graph_stats_get(g->graph, &before);
    double wanted = ((double)records - (double)before.sealed_records) / g->records_a_payment;
    weir_bench_memory_mark();
    used start = used_by_others();
    weir_err err = feed(g, wanted > 1 ? (uint64_t)wanted : 1, row);
    used fed = used_by_others();
    weir_graph_stats_get(g->graph, &sealed);
    double begin_s = seconds_now();
    if (!err) err = settle(g);
    used done = used_by_others();
    row->owed_wall_s = seconds_now() - begin_s;
    weir_graph_stats_get(g->graph, &after);
    take_stats(&before, &sealed, &after, row);
    row->payments = g->payments;
    row->feed_cpu_s = fed.cpu_s - start.cpu_s;
    row->owed_cpu_s = done.cpu_s - fed.cpu_s;
    row->written_bytes = done.written_bytes - start.written_bytes;
    row->read_bytes = done.read_bytes - start.read_bytes;
    row->resident_bytes = weir_bench_memory("VmRSS:");
    row->peak_bytes = weir_bench_memory("VmHWM:");
    g->records_a_payment = (double)row->records / (double)row->payments;
    if (!err) err = weir_grow_sample_read(g->sample, g->graph, g->scorer, g->source, row);
    return err ? err : weir_grow_limit(g->store, weir_graph_shards(g->graph), g->reads, &row->block);
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

static double per(double amount, double of) {
    return of > 0 ? amount / of : 0;
}

static weir_err print(weir_buf *out) {
    weir_err err = weir_buf_err(out);
    if (!err) err = weir_cli_output(out->bytes, out->length);
    weir_buf_free(out);
    return err;
}

static weir_err print_head(const growing *g, bool json) {
    weir_buf out = {0};
    if (json) return WEIR_OK;
    weir_buf_printf(&out, "grow       %s payments, a budget of %.0f MiB, %u shards; reads in microseconds, p50/p99\n",
                    g->run->stream, (double)weir_config_u64(g->config, WEIR_CONFIG_STORE_MEMORY) / (1 << 20),
                    weir_graph_shards(g->graph));
    weir_buf_text(&out,
                  "                       krecords a second of          CPU s  bytes   bytes written   read     live  "
                  "           MiB of RSS     a bare   neighbours                                               "
                  "scores of\n");
    weir_buf_text(&out, "   records  payments    CPU  +owed so far   wall   owed   kept   /rec  /kept   /rec      MiB  "
                        "files   L0   now  peak         block         first         again           hub      features  "
                        "      newest edges       any age\n");
    return print(&out);
}

static void print_latency(weir_buf *out, const grow_latency *latency) {
    char text[40];
    snprintf(text, sizeof text, "%.1f/%.*f", latency->p50_us, latency->p99_us < 100 ? 1 : 0, latency->p99_us);
    weir_buf_printf(out, " %13s", text);
}

static weir_err print_row(const grow_row *r) {
    const double mib = 1 << 20;
    weir_buf out = {0};
    double records = (double)r->step_records;
    weir_buf_printf(&out, "%10" PRIu64 " %9" PRIu64 " %6.1f %6.1f %6.1f %6.1f %6.2f %6.1f", r->records, r->payments,
                    per(records, r->feed_cpu_s) / 1000, per(records, r->feed_cpu_s + r->owed_cpu_s) / 1000,
                    per((double)r->records, r->so_far_cpu_s) / 1000, per(records, r->feed_wall_s) / 1000, r->owed_cpu_s,
                    per((double)r->live_bytes, (double)r->records));
    weir_buf_printf(&out, " %6.1f %6.2f %6.1f %8.1f %6" PRIu64 " %4" PRIu64 " %5.0f %5.0f",
                    per((double)r->written_bytes, records), per((double)r->written_so_far_bytes, (double)r->live_bytes),
                    per((double)r->read_bytes, records), (double)r->live_bytes / mib, r->files, r->level0_files,
                    (double)r->resident_bytes / mib, (double)r->peak_bytes / mib);
    print_latency(&out, &r->block);
    print_latency(&out, &r->first);
    print_latency(&out, &r->again);
    print_latency(&out, &r->hub);
    print_latency(&out, &r->features);
    print_latency(&out, &r->newest);
    weir_buf_printf(&out, " %5.1f", r->newest_edges);
    print_latency(&out, &r->scores);
    weir_buf_text(&out, "\n");
    return print(&out);
}

static weir_err print_row_json(const grow_run *run, const grow_row *r) {
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"records", r->records},
                  {"payments", r->payments},
                  {"step_records", r->step_records},
                  {"written_bytes", r->written_bytes},
                  {"read_bytes", r->read_bytes},
                  {"written_so_far_bytes", r->written_so_far_bytes},
                  {"compacted_bytes", r->compacted_bytes},
                  {"live_bytes", r->live_bytes},
                  {"files", r->files},
                  {"level0_files", r->level0_files},
                  {"resident_bytes", r->resident_bytes},
                  {"peak_bytes", r->peak_bytes}};
    const struct {
        const char *name;
        double value;
    } figures[] = {{"feed_cpu_s", r->feed_cpu_s},
                   {"owed_cpu_s", r->owed_cpu_s},
                   {"so_far_cpu_s", r->so_far_cpu_s},
                   {"compaction_cpu_s", r->compaction_cpu_s},
                   {"feed_wall_s", r->feed_wall_s},
                   {"owed_wall_s", r->owed_wall_s},
                   {"block_p50_us", r->block.p50_us},
                   {"block_p99_us", r->block.p99_us},
                   {"first_p50_us", r->first.p50_us},
                   {"first_p99_us", r->first.p99_us},
                   {"again_p50_us", r->again.p50_us},
                   {"again_p99_us", r->again.p99_us},
                   {"hub_p50_us", r->hub.p50_us},
                   {"hub_p99_us", r->hub.p99_us},
                   {"features_p50_us", r->features.p50_us},
                   {"features_p99_us", r->features.p99_us},
                   {"newest_scores_p50_us", r->newest.p50_us},
                   {"newest_scores_p99_us", r->newest.p99_us},
                   {"newest_scores_edges", r->newest_edges},
                   {"scores_p50_us", r->scores.p50_us},
                   {"scores_p99_us", r->scores.p99_us}};
    weir_json_object(&json);
    weir_json_key(&json, "bench");
    weir_json_string(&json, "grow");
    weir_json_key(&json, "stream");
    weir_json_string(&json, run->stream);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        weir_json_key(&json, counts[i].name);
        weir_json_u64(&json, counts[i].value);
    }
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        weir_json_key(&json, figures[i].name);
        weir_json_f64(&json, figures[i].value);
    }
    weir_json_object_end(&json);
    weir_buf_text(&out, "\n");
    return print(&out);
}

/* --- the first and the last tenth --------------------------------------------------------------------------------- */

/* What the rows up to `end` add up to, from behind `begin` on. */
static grow_row sum_rows(const grow_run *run, uint64_t begin, uint64_t end) {
    grow_row sum = {0};
    uint64_t before = 0;
    for (size_t i = 0; i < run->count; i++) {
        const grow_row *r = &run->rows[i];
        uint64_t middle = before + (r->records - before) / 2;
        before = r->records;
        if (middle < begin || middle > end) continue;
        sum.step_records += r->step_records;
        sum.feed_cpu_s += r->feed_cpu_s;
        sum.feed_wall_s += r->feed_wall_s;
        sum.owed_cpu_s += r->owed_cpu_s;
        sum.owed_wall_s += r->owed_wall_s;
    }
    return sum;
}

static weir_err print_tenths(const grow_run *run, uint64_t records, bool json) {
    grow_row first = sum_rows(run, 0, records / 10), last = sum_rows(run, records / 10 * 9, UINT64_MAX);
    double n = (double)last.step_records / (double)first.step_records;
    double cpu = n * per(first.feed_cpu_s, last.feed_cpu_s), wall = n * per(first.feed_wall_s, last.feed_wall_s);
    double cpu_all = n * per(first.feed_cpu_s + first.owed_cpu_s, last.feed_cpu_s + last.owed_cpu_s);
    double wall_all = n * per(first.feed_wall_s + first.owed_wall_s, last.feed_wall_s + last.owed_wall_s);
    weir_buf out = {0};
    if (json) {
        weir_buf_printf(&out, "{\"bench\":\"grow\",\"stream\":\"%s\",\"last_tenth_against_first\":{\"cpu\":%.3f,",
                        run->stream, cpu);
        weir_buf_printf(&out, "\"cpu_with_owed\":%.3f,\"wall\":%.3f,\"wall_with_owed\":%.3f}}\n", cpu_all, wall,
                        wall_all);
    } else {
        weir_buf_printf(&out,
                        "grow       the last tenth against the first: %.3f of its rate by CPU, %.3f with what is owed; "
                        "%.3f by wall, %.3f with what is owed; %.2f records a payment\n",
                        cpu, cpu_all, wall, wall_all, run->records_a_payment);
    }
    return print(&out);
}

/* --- a stream ----------------------------------------------------------------------------------------------------- */

static bool near(uint64_t mark, uint64_t other) {
    return (mark > other ? mark - other : other - mark) < other / 16;
}

/* The next end of a step: the first tenth, nine tenths, all, and each doubling that is not near one of them. */
static uint64_t next_mark(uint64_t after, uint64_t records) {
    const uint64_t tenth = records / 10, nine_tenths = tenth * 9;
    uint64_t doubled = FIRST_RECORDS, mark = records;
    while (doubled > records / 8)
        doubled /= 2;
    while (doubled <= after || near(doubled, tenth) || near(doubled, nine_tenths) || near(doubled, records))
        doubled *= 2;
    if (doubled < mark) mark = doubled;
    if (tenth > after && tenth < mark) mark = tenth;
    if (nine_tenths > after && nine_tenths < mark) mark = nine_tenths;
    return mark;
}

static weir_err grow(growing *g, uint64_t records, bool json) {
    uint64_t written_before = used_by_others().written_bytes;
    double so_far_cpu_s = 0;
    weir_err err = print_head(g, json);
    for (uint64_t mark = 0; !err && mark < records && g->run->count < GROW_ROWS_MAX;) {
        grow_row *row = &g->run->rows[g->run->count];
        mark = next_mark(mark, records);
        err = step(g, mark, row);
        row->so_far_cpu_s = so_far_cpu_s += row->feed_cpu_s + row->owed_cpu_s;
        row->written_so_far_bytes = used_by_others().written_bytes - written_before;
        g->run->records_a_payment = g->records_a_payment;
        g->run->count++;
        if (!err) err = json ? print_row_json(g->run, row) : print_row(row);
    }
    return err ? err : print_tenths(g->run, records, json);
}

static weir_err open_store(growing *g) {
    const weir_eventlog_opts log_opts = {.partitions = 1, .segment_bytes = SEGMENT_BYTES, .retain_bytes = 1};
    const weir_graph_opts graph_opts = {
        .shards = (uint32_t)weir_config_u64(g->config, WEIR_CONFIG_STORE_SHARDS),
        .memory_bytes = weir_config_u64(g->config, WEIR_CONFIG_STORE_MEMORY),
        .seal_us = weir_config_us(g->config, WEIR_CONFIG_STORE_SEAL_INTERVAL),
        .window = (uint32_t)weir_config_u64(g->config, WEIR_CONFIG_STORE_WINDOW),
        .event_window = (uint32_t)weir_config_u64(g->config, WEIR_CONFIG_INGEST_EVENT_WINDOW),
        .future_us = weir_config_us(g->config, WEIR_CONFIG_INGEST_FUTURE_MAX),
        .id_key = &weir_id_key_public,
        .create = true,
    };
    weir_err err = weir_eventlog_open(g->store, "stream", &log_opts, &g->log);
    snprintf(g->store + strlen(g->store), sizeof g->store - strlen(g->store), "/store");
    if (!err) err = weir_graph_open(g->store, g->schema, &graph_opts, &g->graph);
    const weir_pipeline_source source = {.source = g->source, .stream = WEIR_PIPELINE_EVENTLOG, .log = g->log};
    const weir_pipeline_opts opts = {
        .graph = g->graph, .folder = g->store, .letter_folder = g->folder, .sources = &source, .source_count = 1};
    if (!err) err = weir_pipeline_open(&opts, &g->pipeline);
    return err ? err : weir_pipeline_start(g->pipeline);
}

static void close_all(growing *g, weir_err *errp) {
    weir_err_keep(errp, weir_pipeline_close(g->pipeline));
    weir_grow_scorer_close(g->scorer);
    if (g->graph) weir_err_keep(errp, weir_graph_close(g->graph));
    weir_err_keep(errp, weir_eventlog_close(g->log));
    weir_grow_sample_close(g->sample);
    weir_schema_free(g->schema);
    weir_bench_stream_close(g->stream);
    weir_bench_folder_remove(errp);
}

static weir_err run_stream(const weir_cli *cli, const char *name, uint64_t records, uint64_t reads, uint32_t per_day,
                           grow_run *run) {
    growing g = {.config = weir_cli_config(cli), .reads = (uint32_t)reads, .run = run};
    g.records_a_payment = strcmp(name, "foreign") == 0 ? 9.75 : 15.7;
    *run = (grow_run){.stream = name};
    weir_err err = weir_bench_folder(&g.folder);
    int length = err ? 0 : snprintf(g.store, sizeof g.store - 16, "%s", g.folder);
    if (!err && (length < 0 || (size_t)length >= sizeof g.store - 16))
        err = WEIR_ERR(WEIR_ELIMIT, "the path of the bench's folder is too long");
    if (!err) err = weir_bench_stream_open(name, per_day, &g.stream);
    if (!err) err = weir_bench_stream_schema(g.stream, &g.schema);
    if (!err) g.source = weir_schema_source_find(g.schema, weir_bench_stream_source(g.stream));
    if (!err) err = weir_grow_sample_open((uint32_t)reads, &g.sample);
    if (!err) err = open_store(&g);
    if (!err) err = weir_grow_scorer_open(g.graph, &g.scorer);
    if (!err) err = grow(&g, records, weir_cli_given(cli, "json"));
    close_all(&g, &err);
    return err;
}

static weir_err write_plot(const weir_cli *cli, const grow_run *runs, size_t count) {
    const char *path = weir_cli_text(cli, "svg");
    weir_buf svg = {0};
    if (!path) return WEIR_OK;
    weir_grow_plot(runs, count, &svg);
    weir_err err = weir_buf_err(&svg);
    if (!err) err = weir_file_replace(path, svg.bytes, svg.length);
    weir_buf_free(&svg);
    return err;
}

static weir_err run(weir_cli *cli) {
    static grow_run runs[2];
    const char *stream = weir_cli_text(cli, "stream");
    const char *const both[] = {"simulated", "foreign"};
    uint64_t records = weir_bench_quick(cli) ? RECORDS_QUICK : RECORDS;
    uint64_t reads = weir_bench_quick(cli) ? READS_QUICK : READS, per_day = 0;
    size_t count = 0;
    weir_alloc_return_large(); /* as `weir serve` does */
    weir_err err = weir_cli_u64(cli, "records", 10000, 100000000000, &records);
    if (!err) err = weir_cli_u64(cli, "reads", 64, READS_MAX, &reads);
    if (!err) err = weir_cli_u64(cli, "per-day", 1, UINT32_MAX, &per_day);
    if (!err && per_day && stream && strcmp(stream, "foreign") == 0)
        err = WEIR_ERR(WEIR_EUSAGE, "--per-day is of simulated payments; foreign ones have a rate of their own");
    for (size_t i = 0; !err && i < 2; i++) {
        if (stream && strcmp(stream, both[i]) != 0 && strcmp(stream, "both") != 0) continue;
        err = run_stream(cli, both[i], records, reads, (uint32_t)per_day, &runs[count++]);
    }
    return err ? err : write_plot(cli, runs, count);
}

static const weir_option options[] = {
    {"records", 'n', "N", "records of the cold store at the end (default 20000000; quick: 20000)", NULL},
    {"stream", 's', "NAME", "which payments (default both)", WEIR_BENCH_STREAMS "|both"},
    {"reads", 'r', "N", "payments whose vertices each step reads (default 2048; quick: 64)", NULL},
    {"per-day", 'd', "N", "simulated payments a day: the fewer, the longer the history (default 250000)", NULL},
    {"svg", 'o', "FILE", "write a plot, too", NULL},
    {"quick", 'q', NULL, "least work that still runs everything", NULL},
    {"json", 'j', NULL, "one JSON object a row", NULL},
    {0},
};

const weir_command weir_bench_grow = {
    .name = "grow",
    .summary = "what a store costs as it grows: a row of figures at each doubling",
    .description =
        "Feeds one store with the settings of `weir serve`; --set store.memory=64MiB and the like change "
        "them. Time and bytes of making the payments and of writing the log are not counted.\n"
        "CPU: seconds of the processor until all is sealed; owed: what compaction took from then on until it "
        "had nothing left to do. kept: live bytes a record; /rec: bytes of write calls a record in this "
        "step; /kept: all of them so far over the live bytes; read: from the disk, because the page cache did not have "
        "it. L0: files at level 0 before what was owed. RSS: of the "
        "process, about 35 MiB of the bench's own among it.\n"
        "Reads: the newest ten neighbours of vertices that payments of any age went to (first, and the same "
        "again), of the hottest vertex as of moments of any age (hub), and features. Scores, one after the other, by "
        "a network as `weir train` makes it: of the newest payments (edges: of the tree that is drawn for one), and of "
        "payments of any age as of when they came.\n"
        "A bare block: one read of 4 KiB at any place of the sorted files, out of the page cache. No list that is not "
        "in memory is read faster, so its growth is the least that theirs can be.",
    .example = "weir bench grow --records 2000000 --stream foreign --svg grow.svg",
    .options = options,
    .run = run,
};

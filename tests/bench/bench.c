/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - rounds, order, medians and printing. The measured work is the benches' own. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

const weir_option weir_bench_options[] = {WEIR_BENCH_OPTIONS, {0}};

typedef struct results {
    double rates[WEIR_BENCH_LINES_MAX][WEIR_BENCH_ROUNDS_MAX];
    double scratch[WEIR_BENCH_ROUNDS_MAX];
} results;

static results measured;            /* one bench runs at a time */
static char bench_folder[PATH_MAX]; /* empty until a bench asks for one */

void weir_bench_start(weir_bench_sample *sample) {
    sample->start_ns = weir_clock_mono_ns(weir_clock_system());
}

void weir_bench_stop(weir_bench_sample *sample, double units) {
    sample->elapsed_ns += weir_clock_mono_ns(weir_clock_system()) - sample->start_ns;
    sample->units += units;
}

bool weir_bench_quick(const weir_cli *cli) {
    return weir_cli_given(cli, "quick");
}

/* Another process waits for the end of this one, by whatever signal, and removes what is left of the folder: the pipe
 * between them has an end when all that had its other side open is gone. A byte in *callp tells it to leave the folder
 * alone. */
static weir_err bench_watch_over(const char *folder, int *callp) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return WEIR_ERRNO(errno, "cannot make a pipe");
    pid_t watcher = fork();
    if (watcher < 0) return WEIR_ERRNO(errno, "cannot start a process that removes %s in the end", folder);
    *callp = ends[1];
    if (watcher > 0) return close(ends[0]) ? WEIR_ERRNO(errno, "cannot close a pipe") : WEIR_OK;
    char byte;
    ssize_t got;
    setsid(); /* ^C is for who measures */
    close(ends[1]);
    while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) {
    }
    if (got == 0) execl("/bin/rm", "rm", "-rf", "--", folder, (char *)NULL);
    _exit(1);
}

/* It is watched over before it is there: who is killed in between leaves nothing. */
weir_err weir_bench_folder_make(char path[PATH_MAX]) {
    const char *given = getenv("WEIR_BENCH_FOLDER"), *parent = given ? given : ".";
    char whole[PATH_MAX], name[32];
    uint64_t drawn;
    int call;
    if (!realpath(parent, whole)) return WEIR_ERRNO(errno, "cannot find the folder %s", parent);
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return WEIR_ERRNO(errno, "cannot draw a name");
    snprintf(name, sizeof name, "weir-bench.%016" PRIx64, drawn);
    weir_err err = weir_path_join(path, PATH_MAX, whole, name);
    if (!err) err = bench_watch_over(path, &call);
    if (!err && mkdir(path, S_IRWXU)) {
        err = WEIR_ERRNO(errno, "cannot make the folder %s", path);
        ssize_t told = write(call, "", 1); /* it may be somebody else's; a watcher that is gone removes nothing */
        (void)told;
    }
    return err;
}

weir_err weir_bench_folder(const char **pathp) {
    *pathp = NULL;
    weir_err err = bench_folder[0] ? WEIR_OK : weir_bench_folder_make(bench_folder);
    if (!err) *pathp = bench_folder;
    return err;
}

void weir_bench_folder_remove(weir_err *errp) {
    if (bench_folder[0] == '\0') return;
    weir_err_keep(errp, weir_folder_remove(bench_folder));
    bench_folder[0] = '\0';
}

uint64_t weir_bench_memory(const char *name) {
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
    }
    if (file) fclose(file);
    return kib << 10;
}

void weir_bench_memory_mark(void) {
    FILE *file = fopen("/proc/self/clear_refs", "we");
    if (!file) return;
    fputs("5", file); /* the peak begins anew */
    fclose(file);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts values in place. */
static double median(double *values, size_t count) {
    qsort(values, count, sizeof values[0], compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static weir_err line_find(const weir_bench_line *lines, size_t count, const char *what, size_t *indexp) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lines[i].what, what) == 0) {
            *indexp = i;
            return WEIR_OK;
        }
    }
    return WEIR_ERR(WEIR_EINVAL, "no line of this bench is called '%s'", what);
}

static weir_err run_line(const weir_bench_line *line, uint64_t round, double *ratep) {
    weir_bench_sample sample = {0};
    weir_err err = line->run(line->context, round, &sample);
    if (err) return weir_err_prefix(err, "%s", line->what);
    double seconds = (double)(sample.elapsed_ns > 0 ? sample.elapsed_ns : 1) * 1e-9;
    *ratep = sample.units / seconds * line->scale;
    return WEIR_OK;
}

/* Even rounds go forwards, odd ones backwards: drift within a round falls on each line alike. */
static weir_err run_rounds(const weir_bench_line *lines, size_t count, uint64_t rounds) {
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t step = 0; step < count; step++) {
            size_t i = round % 2 ? count - 1 - step : step;
            weir_err err = run_line(&lines[i], round, &measured.rates[i][round]);
            if (err) return err;
        }
    }
    return WEIR_OK;
}

typedef struct summary {
    double median, least, most, ratio; /* ratio: NAN without a limit */
} summary;

static summary summarise(size_t line, size_t limit, bool has_limit, uint64_t rounds) {
    summary s = {.ratio = NAN};
    if (has_limit) {
        for (uint64_t r = 0; r < rounds; r++) {
            measured.scratch[r] = measured.rates[line][r] / measured.rates[limit][r];
        }
        s.ratio = median(measured.scratch, rounds);
    }
    memcpy(measured.scratch, measured.rates[line], rounds * sizeof(double));
    s.median = median(measured.scratch, rounds);
    s.least = measured.scratch[0];
    s.most = measured.scratch[rounds - 1];
    return s;
}

static void print_table_line(weir_buf *out, const char *bench, const weir_bench_line *line, const summary *s) {
    weir_buf_printf(out, "%-10s %-44s %12.4g %-10s (%.4g .. %.4g)", bench, line->what, s->median, line->unit, s->least,
                    s->most);
    if (line->against) weir_buf_printf(out, "  %.3f of %s", s->ratio, line->against);
    weir_buf_text(out, "\n");
}

static void print_json_line(weir_buf *out, const char *bench, const weir_bench_line *line, const summary *s,
                            uint64_t rounds) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "bench");
    weir_json_string(&json, bench);
    weir_json_key(&json, "what");
    weir_json_string(&json, line->what);
    weir_json_key(&json, "unit");
    weir_json_string(&json, line->unit);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"median", s->median}, {"least", s->least}, {"most", s->most}, {"ratio", s->ratio}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        weir_json_key(&json, numbers[i].name);
        weir_json_f64(&json, numbers[i].value);
    }
    weir_json_key(&json, "against");
    weir_json_string(&json, line->against);
    weir_json_key(&json, "rounds");
    weir_json_u64(&json, rounds);
    weir_json_object_end(&json);
    weir_buf_text(out, "\n");
}

static weir_err print_lines(const weir_cli *cli, const char *bench, const weir_bench_line *lines, size_t count,
                            uint64_t rounds) {
    weir_buf out = {0};
    for (size_t i = 0; i < count; i++) {
        size_t limit = 0;
        if (lines[i].against) {
            weir_err err = line_find(lines, count, lines[i].against, &limit);
            WEIR_ASSERT(!err); /* weir_bench_run has looked them all up */
        }
        summary s = summarise(i, limit, lines[i].against != NULL, rounds);
        if (weir_cli_given(cli, "json")) {
            print_json_line(&out, bench, &lines[i], &s, rounds);
        } else {
            print_table_line(&out, bench, &lines[i], &s);
        }
    }
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

weir_err weir_bench_run(const weir_cli *cli, const char *bench, const weir_bench_line *lines, size_t count) {
    weir_err err = WEIR_OK;
    uint64_t rounds = weir_bench_quick(cli) ? 1 : 7;
    size_t ignored;
    WEIR_ASSERT(count > 0 && count <= WEIR_BENCH_LINES_MAX);
    err = weir_cli_u64(cli, "rounds", 1, WEIR_BENCH_ROUNDS_MAX, &rounds);
    for (size_t i = 0; !err && i < count; i++) {
        if (lines[i].against) err = line_find(lines, count, lines[i].against, &ignored);
    }
    if (!err) err = run_rounds(lines, count, rounds);
    weir_bench_folder_remove(&err);
    if (!err) err = print_lines(cli, bench, lines, count, rounds);
    return err;
}

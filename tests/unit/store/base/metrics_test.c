/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#define COUNTER   WEIR_METRIC_EVENTLOG_APPENDED_RECORDS
#define GAUGE     WEIR_METRIC_MEMORY_LIVE_BYTES
#define HISTOGRAM WEIR_METRIC_EVENTLOG_SYNC_SECONDS
#define SECONDS   "weir_eventlog_sync_seconds"

static const char *const names[] = {
#define WEIR_METRIC(id, kind, name, unit, meaning) name,
#include <weir/store/base/metrics.def>
#undef WEIR_METRIC
};

enum { TEXT_BYTES = 1 << 16 };

static char text[TEXT_BYTES];

/* The number behind the text, which stands at the beginning of a line. */
static double sample(const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, length) == 0) return strtod(line + length, NULL);
    fail_msg("no sample %s", name);
    return NAN;
}

/* --- counting -------------------------------------------------------------------------------------------------- */

enum { THREADS = 40, ROUNDS = 1000 }; /* more than there are stripes */

static void count_much(void *context) {
    (void)context;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        weir_metric_add(COUNTER, i);
        weir_metric_observe(HISTOGRAM, i);
    }
}

static void threads_lose_nothing(void **state) {
    (void)state;
    weir_thread *threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_ok(weir_thread_start("counter", WEIR_ROLE_TEST, count_much, NULL, &threads[i]));
    for (unsigned i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
    assert_int_equal(weir_metric_counter(COUNTER), (uint64_t)THREADS * ROUNDS * (ROUNDS - 1) / 2);
    weir_metrics_text(text, sizeof text);
    assert_true(sample(SECONDS "_count ") == THREADS * ROUNDS);
    assert_int_equal(weir_metric_counter(WEIR_METRIC_EVENTLOG_APPENDED_BYTES), 0);
}

static void gauge_is_what_was_set_last(void **state) {
    (void)state;
    assert_int_equal(weir_metric_gauge(GAUGE), 0);
    weir_metric_set(GAUGE, 7);
    weir_metric_set(GAUGE, INT64_MIN);
    assert_true(weir_metric_gauge(GAUGE) == INT64_MIN);
}

static void observe_counter(void) {
    weir_metric_observe(COUNTER, 1);
}
static void add_to_gauge(void) {
    weir_metric_add(GAUGE, 1);
}
static void set_histogram(void) {
    weir_metric_set(HISTOGRAM, 1);
}

static void wrong_kind_is_our_own_mistake(void **state) {
    (void)state;
    static void (*const mistakes[])(void) = {observe_counter, add_to_gauge, set_histogram};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            fclose(stderr);
            mistakes[i]();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* --- quantiles ------------------------------------------------------------------------------------------------- */

static void assert_near(uint64_t found, uint64_t exact) {
    double error = fabs((double)found - (double)exact);
    if (error > 0.125 * (double)exact) fail_msg("%" PRIu64 " for %" PRIu64, found, exact);
}

/* The newest is always the greatest, so that the quantile 1 is its bucket alone. */
static void every_size_of_value_is_near(void **state) {
    (void)state;
    assert_int_equal(weir_metric_quantile(HISTOGRAM, 0.5), 0);
    for (uint64_t value = 0; value <= 8; value++) {
        weir_metric_observe(HISTOGRAM, value);
        assert_int_equal(weir_metric_quantile(HISTOGRAM, 1), value);
    }
    for (uint64_t value = 9; value < UINT64_MAX / 9 * 8; value += 1 + value / 100) {
        weir_metric_observe(HISTOGRAM, value);
        assert_near(weir_metric_quantile(HISTOGRAM, 1), value);
    }
    weir_metric_observe(HISTOGRAM, UINT64_MAX);
    assert_near(weir_metric_quantile(HISTOGRAM, 1), UINT64_MAX);
}

static int compare(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static uint64_t draw(weir_rng *rng, unsigned shape) {
    switch (shape) {
    case 0:
        return weir_rng_below(rng, 20);
    case 1:
        return 1000 + weir_rng_below(rng, 100000);
    case 2:
        return (uint64_t)weir_rng_exponential(rng, 3000);
    case 3:
        return (uint64_t)exp(6 + 3 * weir_rng_normal(rng));
    case 4:
        return weir_rng_below(rng, 10) ? 200 : 5000000; /* two peaks */
    default:
        return weir_rng_u64(rng) >> weir_rng_below(rng, 64);
    }
}

/* As the children of one case share nothing, each shape has a histogram of its own in a process of its own. */
static void check_shape(uint64_t seed, unsigned shape) {
    enum { COUNT = 5000 };
    static uint64_t values[COUNT];
    static const double quantiles[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1, -1, 2};
    weir_rng rng = weir_rng_stream(seed, shape, 0);
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = draw(&rng, shape);
        weir_metric_observe(HISTOGRAM, values[i]);
    }
    qsort(values, COUNT, sizeof values[0], compare);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        double rank = ceil(fmin(fmax(quantiles[i], 0), 1) * COUNT);
        assert_near(weir_metric_quantile(HISTOGRAM, quantiles[i]), values[rank < 1 ? 0 : (size_t)rank - 1]);
    }
}

static void quantiles_within_an_eighth_of_the_exact_ones(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    for (unsigned shape = 0; shape < 6; shape++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            check_shape(seed, shape);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* --- the text -------------------------------------------------------------------------------------------------- */

static bool is_name(const char *name, size_t length) {
    bool good = length > 0 && !isdigit((unsigned char)name[0]);
    for (size_t i = 0; i < length; i++)
        good = good && (isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == ':');
    return good;
}

/* What the text format 0.0.4 asks of each line: comments in their order before the samples of their metric, and samples
 * of the form name, labels in braces, one blank, a number. */
static void check_line(const char *line, size_t length, char metric[200], char type[20], bool *described) {
    char name[200];
    if (strncmp(line, "# HELP ", 7) == 0) {
        size_t name_length = strcspn(line + 7, " ");
        assert_true(is_name(line + 7, name_length) && strchr(line + 7, '\\') == NULL);
        snprintf(metric, 200, "%.*s", (int)name_length, line + 7);
        *described = true;
    } else if (strncmp(line, "# TYPE ", 7) == 0) {
        assert_int_equal(sscanf(line + 7, "%199s %19s", name, type), 2);
        assert_string_equal(name, metric);
        assert_true(*described);
        assert_true(!strcmp(type, "counter") || !strcmp(type, "gauge") || !strcmp(type, "histogram"));
        assert_true(strcmp(type, "counter") != 0 || strcmp(name + strlen(name) - 6, "_total") == 0);
        *described = false;
    } else {
        size_t name_length = strcspn(line, "{ ");
        assert_true(is_name(line, name_length));
        assert_true(strncmp(line, metric, strlen(metric)) == 0);
        const char *rest = line + name_length;
        if (*rest == '{') rest = strstr(rest, "\"} ") + 2;
        char *end;
        assert_int_equal(*rest, ' ');
        double number = strtod(rest + 1, &end);
        assert_false(isnan(number));
        assert_ptr_equal(end, line + length);
    }
}

static void text_is_an_exposition(void **state) {
    (void)state;
    char metric[200] = "", type[20] = "", wanted[300];
    bool described = false;
    weir_metric_observe(HISTOGRAM, 5);
    size_t length = weir_metrics_text(text, sizeof text);
    assert_int_equal(strlen(text), length);
    assert_int_equal(text[length - 1], '\n');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(wanted, sizeof wanted, "# HELP %s ", names[i]);
        assert_non_null(strstr(text, wanted));
    }
    for (char *line = text; *line;) {
        size_t line_length = strcspn(line, "\n");
        line[line_length] = 0;
        check_line(line, line_length, metric, type, &described);
        line += line_length + 1;
    }
}

/* le includes its bound: 1024 us are in le="0.001024", 1025 us are not. */
static void buckets_are_cumulative_and_include_their_bound(void **state) {
    (void)state;
    static const uint64_t values[] = {0, 1, 2, 3, 1024, 1025, 5000000, 1ull << 40};
    double sum = 0, below = 0, bound = 0;
    unsigned buckets = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        weir_metric_observe(HISTOGRAM, values[i]);
        sum += (double)values[i] / 1e6;
    }
    weir_metrics_text(text, sizeof text);
    for (const char *at = text; (at = strstr(at, SECONDS "_bucket{le=\"")); buckets++) {
        char *end;
        at += strlen(SECONDS "_bucket{le=\"");
        double le = strncmp(at, "+Inf", 4) == 0 ? INFINITY : strtod(at, NULL);
        double count = strtod(strstr(at, "} ") + 2, &end), wanted = 0;
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            wanted += (double)values[i] <= le * 1e6 + 0.5 ? 1 : 0;
        assert_true(le > bound && count >= below && count == wanted && *end == '\n');
        bound = le;
        below = count;
    }
    assert_int_equal(buckets, 34);
    assert_true(isinf(bound));
    assert_true(sample(SECONDS "_bucket{le=\"0.001024\"} ") == 5);
    assert_true(sample(SECONDS "_count ") == 8);
    assert_true(fabs(sample(SECONDS "_sum ") - sum) < 1e-6);
}

static void counters_gauges_and_errors_are_there(void **state) {
    (void)state;
    void *held = weir_malloc(100000);
    weir_metric_add(COUNTER, UINT64_MAX);
    (void)WEIR_ERR(WEIR_EVERSION, "made for this test");
    weir_metrics_text(text, sizeof text);
    assert_non_null(strstr(text, "\nweir_eventlog_appended_records_total 18446744073709551615\n"));
    assert_non_null(strstr(text, "\nweir_errors_total{code=\"EVERSION\"} 1\n"));
    assert_non_null(strstr(text, "\nweir_errors_total{code=\"EIO\"} 0\n"));
    assert_true(sample("weir_memory_live_bytes ") >= 100000);
    weir_free(held);
}

static void check_sizes(size_t (*print)(char *, size_t)) {
    static char part[TEXT_BYTES];
    size_t length = print(text, sizeof text);
    assert_true(length < sizeof text);
    assert_int_equal(print(NULL, 0), length);
    for (size_t size = 1; size <= length + 2; size += size < 100 || size > length - 100 ? 1 : 97) {
        memset(part, '#', sizeof part);
        assert_int_equal(print(part, size), length);
        size_t written = size <= length ? size - 1 : length;
        assert_int_equal(strlen(part), written);
        assert_memory_equal(part, text, written);
        assert_int_equal(part[written + 1], '#');
    }
}

static void any_size_of_buffer_is_kept(void **state) {
    (void)state;
    check_sizes(weir_metrics_text);
    check_sizes(weir_metrics_markdown);
}

static void markdown_has_a_row_for_each(void **state) {
    (void)state;
    char wanted[300];
    size_t rows = 0;
    weir_metrics_markdown(text, sizeof text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(wanted, sizeof wanted, "\n| `%s` | ", names[i]);
        assert_non_null(strstr(text, wanted));
    }
    for (const char *row = text; (row = strstr(row, "\n| ")); row++, rows++) {
        size_t bars = 0;
        for (const char *c = row + 1; *c != '\n'; c++)
            bars += *c == '|';
        assert_int_equal(bars, 5);
    }
    assert_int_equal(rows, 1 + WEIR_METRICS_COUNT + 1);
}

WEIR_TESTS(WEIR_CASE(threads_lose_nothing), WEIR_CASE(gauge_is_what_was_set_last),
           WEIR_CASE(wrong_kind_is_our_own_mistake), WEIR_CASE(every_size_of_value_is_near),
           WEIR_CASE(quantiles_within_an_eighth_of_the_exact_ones), WEIR_CASE(text_is_an_exposition),
           WEIR_CASE(buckets_are_cumulative_and_include_their_bound), WEIR_CASE(counters_gauges_and_errors_are_there),
           WEIR_CASE(any_size_of_buffer_is_kept), WEIR_CASE(markdown_has_a_row_for_each))

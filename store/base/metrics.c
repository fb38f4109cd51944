/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - counting on stripes, and printing what was counted.
 *
 * A thread keeps to one stripe, and no two stripes share a cache line, so that threads that count the same thing do not
 * take the line from each other. A reader adds the stripes up; it may miss what is counted meanwhile.
 */
#include <weir/store/base/metrics.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/err.h>

#define CACHE_LINE        64u
#define COUNTER_STRIPES   16u
#define HISTOGRAM_STRIPES 8u

/*
 * Bucket 0 holds 0. Above it, with w = v - 1, the first 8 hold w = 0 to 7, and then each power of two is cut into 8
 * equal parts. So a bucket holds values from above its lower to its upper bound, that one included, as Prometheus
 * counts, and a power of two is a bound.
 */
#define SUB_BITS 3u
#define SUB      (1u << SUB_BITS)
#define BUCKETS  (1u + SUB + (64u - SUB_BITS) * SUB)

/* The bounds that are printed: 2^0 to 2^32 microseconds are 1 us to 72 minutes. */
#define PRINTED_POWER_MAX 32u

#define ERRORS_NAME    "weir_errors_total"
#define ERRORS_MEANING "Errors made, by their code; one that was mended counts too"

typedef enum metric_kind { KIND_COUNTER, KIND_GAUGE, KIND_HISTOGRAM } metric_kind;

static const char *const kind_names[] = {"counter", "gauge", "histogram"};

static const struct metric_row {
    metric_kind kind;
    const char *name;
    const char *unit;
    const char *meaning;
} rows[] = {
#define WEIR_METRIC(id, kind, name, unit, meaning) {KIND_##kind, name, unit, meaning},
#include <weir/store/base/metrics.def>
#undef WEIR_METRIC
};

/* Histograms are large, so that only they get room for one. */
enum histogram_slot {
#define SLOT_COUNTER(id)
#define SLOT_GAUGE(id)
#define SLOT_HISTOGRAM(id)                         SLOT_##id,
#define WEIR_METRIC(id, kind, name, unit, meaning) SLOT_##kind(id)
#include <weir/store/base/metrics.def>
#undef WEIR_METRIC
#undef SLOT_HISTOGRAM
#undef SLOT_GAUGE
#undef SLOT_COUNTER
    HISTOGRAMS
};

static const unsigned char histogram_slots[WEIR_METRICS_COUNT] = {
#define SLOT_COUNTER(id)
#define SLOT_GAUGE(id)
#define SLOT_HISTOGRAM(id)                         [WEIR_METRIC_##id] = SLOT_##id,
#define WEIR_METRIC(id, kind, name, unit, meaning) SLOT_##kind(id)
#include <weir/store/base/metrics.def>
#undef WEIR_METRIC
};

typedef struct metric_counters {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t counts[WEIR_METRICS_COUNT];
} metric_counters;

typedef struct metric_histogram {
    _Alignas(CACHE_LINE) atomic_uint_fast64_t sum;
    atomic_uint_fast64_t counts[BUCKETS];
} metric_histogram;

static metric_counters counters[COUNTER_STRIPES];
static metric_histogram histograms[HISTOGRAMS][HISTOGRAM_STRIPES];
static atomic_int_fast64_t gauges[WEIR_METRICS_COUNT];

/* --- counting -------------------------------------------------------------------------------------------------- */

static unsigned metric_stripe(void) {
    static atomic_uint next;
    static _Thread_local unsigned own; /* 0: none yet */
    if (own == 0) own = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % COUNTER_STRIPES;
    return own - 1;
}

static void metric_count_add(atomic_uint_fast64_t *count, uint64_t n) {
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static uint64_t metric_count_get(const atomic_uint_fast64_t *count) {
    return atomic_load_explicit(count, memory_order_relaxed);
}

static unsigned histogram_bucket_of(uint64_t value) {
    if (value == 0) return 0;
    uint64_t above = value - 1;
    if (above < SUB) return 1 + (unsigned)above;
    unsigned power = 63 - (unsigned)__builtin_clzll(above);
    unsigned part = (unsigned)(above >> (power - SUB_BITS)) & (SUB - 1);
    return 1 + SUB * (power - SUB_BITS + 1) + part;
}

/* The greatest value in the bucket. */
static uint64_t histogram_bucket_upper(unsigned bucket) {
    if (bucket <= SUB) return bucket;
    unsigned power = (bucket - 1) / SUB - 1 + SUB_BITS;
    uint64_t part = (bucket - 1) % SUB;
    uint64_t width = 1ull << (power - SUB_BITS);
    return bucket == BUCKETS - 1 ? UINT64_MAX : (SUB | part) * width + width;
}

void weir_metric_add(weir_metric metric, uint64_t n) {
    WEIR_ASSERT(rows[metric].kind == KIND_COUNTER);
    metric_count_add(&counters[metric_stripe()].counts[metric], n);
}

void weir_metric_set(weir_metric metric, int64_t value) {
    WEIR_ASSERT(rows[metric].kind == KIND_GAUGE);
    atomic_store_explicit(&gauges[metric], value, memory_order_relaxed);
}

void weir_metric_observe(weir_metric metric, uint64_t us) {
    WEIR_ASSERT(rows[metric].kind == KIND_HISTOGRAM);
    metric_histogram *stripe = &histograms[histogram_slots[metric]][metric_stripe() % HISTOGRAM_STRIPES];
    metric_count_add(&stripe->counts[histogram_bucket_of(us)], 1);
    metric_count_add(&stripe->sum, us);
}

/* --- reading --------------------------------------------------------------------------------------------------- */

typedef struct histogram_view {
    uint64_t counts[BUCKETS];
    uint64_t count;
    uint64_t sum;
} histogram_view;

static void histogram_view_get(weir_metric metric, histogram_view *viewp) {
    WEIR_ASSERT(rows[metric].kind == KIND_HISTOGRAM);
    *viewp = (histogram_view){0};
    for (unsigned i = 0; i < HISTOGRAM_STRIPES; i++) {
        const metric_histogram *stripe = &histograms[histogram_slots[metric]][i];
        for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
            viewp->counts[bucket] += metric_count_get(&stripe->counts[bucket]);
        viewp->sum += metric_count_get(&stripe->sum);
    }
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        viewp->count += viewp->counts[bucket];
}

uint64_t weir_metric_counter(weir_metric metric) {
    uint64_t sum = 0;
    WEIR_ASSERT(rows[metric].kind == KIND_COUNTER);
    for (unsigned i = 0; i < COUNTER_STRIPES; i++)
        sum += metric_count_get(&counters[i].counts[metric]);
    return sum;
}

int64_t weir_metric_gauge(weir_metric metric) {
    WEIR_ASSERT(rows[metric].kind == KIND_GAUGE);
    return atomic_load_explicit(&gauges[metric], memory_order_relaxed);
}

uint64_t weir_metric_quantile(weir_metric metric, double quantile) {
    histogram_view h;
    histogram_view_get(metric, &h);
    if (h.count == 0) return 0;
    double rank = ceil(fmin(fmax(quantile, 0), 1) * (double)h.count);
    uint64_t wanted = rank < 1 ? 1 : (uint64_t)rank;
    unsigned bucket = 0;
    for (uint64_t below = h.counts[0]; below < wanted && bucket < BUCKETS - 1; below += h.counts[bucket])
        bucket++;
    /* The middle of the bucket, so that the error is at most half of its width. */
    uint64_t upper = histogram_bucket_upper(bucket);
    uint64_t lower = bucket > 0 ? histogram_bucket_upper(bucket - 1) + 1 : 0;
    return lower + (upper - lower) / 2;
}

/* --- printing -------------------------------------------------------------------------------------------------- */

/* Text of which as much is kept as there is room for, and all is counted. */
typedef struct counted_text {
    char *buffer;
    size_t size;
    size_t length;
} counted_text;

__attribute__((format(printf, 2, 3))) static void metrics_print(counted_text *text, const char *format, ...) {
    va_list arguments;
    size_t used = text->length < text->size ? text->length : text->size;
    va_start(arguments, format);
    int length = vsnprintf(text->size ? text->buffer + used : NULL, text->size - used, format, arguments);
    va_end(arguments);
    WEIR_ASSERT(length >= 0);
    text->length += (size_t)length;
}

/* A value in the unit of the metric's name: seconds are counted in microseconds. */
static void metrics_print_value(counted_text *text, const struct metric_row *row, uint64_t value) {
    if (strcmp(row->unit, "seconds") != 0) {
        metrics_print(text, "%" PRIu64, value);
    } else {
        metrics_print(text, "%" PRIu64 ".%06" PRIu64, value / 1000000, value % 1000000);
    }
}

static void metrics_print_metric(counted_text *text, weir_metric metric) {
    const struct metric_row *row = &rows[metric];
    histogram_view h;
    uint64_t below = 0;
    unsigned bucket = 0;
    metrics_print(text, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->meaning, row->name, kind_names[row->kind]);
    switch (row->kind) {
    case KIND_COUNTER:
        metrics_print(text, "%s %" PRIu64 "\n", row->name, weir_metric_counter(metric));
        break;
    case KIND_GAUGE:
        metrics_print(text, "%s %" PRId64 "\n", row->name, weir_metric_gauge(metric));
        break;
    case KIND_HISTOGRAM:
        histogram_view_get(metric, &h);
        for (unsigned power = 0; power <= PRINTED_POWER_MAX; power++) {
            for (; bucket < BUCKETS && histogram_bucket_upper(bucket) <= 1ull << power; bucket++)
                below += h.counts[bucket];
            metrics_print(text, "%s_bucket{le=\"", row->name);
            metrics_print_value(text, row, 1ull << power);
            metrics_print(text, "\"} %" PRIu64 "\n", below);
        }
        metrics_print(text, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", row->name, h.count, row->name);
        metrics_print_value(text, row, h.sum);
        metrics_print(text, "\n%s_count %" PRIu64 "\n", row->name, h.count);
        break;
    }
}

size_t weir_metrics_text(char *buffer, size_t size) {
    counted_text text = {.buffer = buffer, .size = size};
    weir_alloc_stats memory; /* its gauge is set only here */
    weir_alloc_stats_get(&memory);
    weir_metric_set(WEIR_METRIC_MEMORY_LIVE_BYTES, (int64_t)memory.live_bytes);
    for (unsigned metric = 0; metric < WEIR_METRICS_COUNT; metric++)
        metrics_print_metric(&text, (weir_metric)metric);
    metrics_print(&text, "# HELP " ERRORS_NAME " " ERRORS_MEANING "\n# TYPE " ERRORS_NAME " counter\n");
#define PRINT_CODE(name, number, status, meaning) \
    metrics_print(&text, ERRORS_NAME "{code=\"" #name "\"} %" PRIu64 "\n", weir_err_count(WEIR_##name));
    WEIR_CODES(PRINT_CODE)
#undef PRINT_CODE
    return text.length;
}

size_t weir_metrics_markdown(char *buffer, size_t size) {
    counted_text text = {.buffer = buffer, .size = size};
    metrics_print(
        &text,
        "# Metrics\n\nPrinted by `weir reference metrics` from `store/base/include/weir/store/base/metrics.def`; "
        "`tests/lint/generated --write`\nbrings this page up to date.\n\n| metric | kind | unit | meaning |\n"
        "|---|---|---|---|\n");
    for (unsigned metric = 0; metric < WEIR_METRICS_COUNT; metric++) {
        const struct metric_row *row = &rows[metric];
        metrics_print(&text, "| `%s` | %s | %s | %s |\n", row->name, kind_names[row->kind], row->unit, row->meaning);
    }
    metrics_print(&text, "| `" ERRORS_NAME "{code}` | counter | errors | " ERRORS_MEANING " |\n");
    return text.length;
}

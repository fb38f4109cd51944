/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - counters, gauges and histograms, declared in metrics.def; errors are counted by err.h.
 *
 * Counting is one relaxed atomic, of a histogram two, on the stripe that a thread is given when it first counts;
 * reading sums the stripes. A gauge is one number. Histograms are log-linear (8 buckets per power of two), so that a
 * quantile is right within 12.5 %.  Every function is [any].
 */
#ifndef WEIR_STORE_BASE_METRICS_H
#define WEIR_STORE_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_metric {
#define WEIR_METRIC(id, kind, name, unit, meaning) WEIR_METRIC_##id,
#include <weir/store/base/metrics.def>
#undef WEIR_METRIC
    WEIR_METRICS_COUNT
} weir_metric;

void weir_metric_add(weir_metric metric, uint64_t n);      /* counters   */
void weir_metric_set(weir_metric metric, int64_t value);   /* gauges     */
void weir_metric_observe(weir_metric metric, uint64_t us); /* histograms */
uint64_t weir_metric_counter(weir_metric metric);
int64_t weir_metric_gauge(weir_metric metric);
/* quantile in [0, 1], in microseconds; 0 when nothing was observed. */
uint64_t weir_metric_quantile(weir_metric metric, double quantile);

/* Prometheus text exposition 0.0.4 of every metric, and weir_errors_total{code="EIO"} from err.h.
 * Writes at most size bytes with an end; returns the length it needs, as snprintf does. */
size_t weir_metrics_text(char *buffer, size_t size);
/* The table as Markdown, for ops/docs/METRICS.md; the same contract. */
size_t weir_metrics_markdown(char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_METRICS_H */

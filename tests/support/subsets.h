/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subsets.h - whether subsets of k out of n are equally likely, by chi-square of single members and of pairs.
 *
 * How often each of n was among k picks has n - 1 degrees of freedom, of size k(n-k)/(n(n-1)) each. How often each pair
 * was, less what follows from its two members, has n(n-3)/2, of size k(k-1)(n-k)(n-k-1)/(n(n-1)(n-2)(n-3)). A sum is
 * judged by its Wilson-Hilferty score, which is normal. With random seeds the bound is one in 10^9, because many sums
 * are judged in many runs; with a seed that never changes it is one in 1,000.
 */
#ifndef WEIR_TEST_SUBSETS_H
#define WEIR_TEST_SUBSETS_H

#include <math.h>
#include <stdint.h>

#define SUBSETS_OF              128u
#define SUBSETS_SCORE_MAX       6.0
#define SUBSETS_SCORE_MAX_FIXED 3.09 /* p = .001 */

typedef struct subset_counts {
    uint64_t trials;
    double single[SUBSETS_OF];
    double pair[SUBSETS_OF][SUBSETS_OF];
} subset_counts;

static inline double subset_score(double chi, double freedom) {
    return (cbrt(chi / freedom) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom));
}

static inline double subset_single_score(const subset_counts *c, double n, double k) {
    double expected = (double)c->trials * k / n, size = (double)c->trials * k * (n - k) / (n * (n - 1)), chi = 0;
    for (uint32_t i = 0; i < (uint32_t)n; i++)
        chi += (c->single[i] - expected) * (c->single[i] - expected) / size;
    return subset_score(chi, n - 1);
}

static inline double subset_pair_score(const subset_counts *c, double n, double k) {
    double trials = (double)c->trials, expected = trials * k * (k - 1) / (n * (n - 1)), chi = 0;
    double size = trials * k * (k - 1) * (n - k) * (n - k - 1) / (n * (n - 1) * (n - 2) * (n - 3));
    for (uint32_t a = 0; a < (uint32_t)n; a++) {
        for (uint32_t b = a + 1; b < (uint32_t)n; b++) {
            double of_a = (k - 1) * (c->single[a] - trials * k / n), of_b = (k - 1) * (c->single[b] - trials * k / n);
            double left = c->pair[a][b] - expected - (of_a + of_b) / (n - 2);
            chi += left * left / size;
        }
    }
    return subset_score(chi, n * (n - 3) / 2);
}

/* picks rise. */
static inline void subset_count(subset_counts *c, const uint32_t *picks, uint32_t k) {
    c->trials++;
    for (uint32_t i = 0; i < k; i++) {
        c->single[picks[i]]++;
        for (uint32_t j = 0; j < i; j++)
            c->pair[picks[j]][picks[i]]++;
    }
}

#endif /* WEIR_TEST_SUBSETS_H */

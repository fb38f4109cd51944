/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.c - hides a share of what an import's matrices say, another one each time: a bag of words of which the
 * network sees some is many bags, and few labels are not learnt by heart.
 */
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "batch.h"

#define RNG_ENTRIES 1u

/* Zeros are passed over: they say the same hidden or not. */
static void hide(weir_rng *rng, double rate, uint32_t count, weir_real *numbers) {
    weir_real kept = (weir_real)(1 / (1 - rate));
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] != 0) numbers[i] = weir_rng_double(rng) < rate ? 0 : numbers[i] * kept;
    }
}

void weir_entries_hide(const weir_nn_inputs *inputs, const weir_entries *entries, weir_real *numbers) {
    const uint64_t name[4] = {entries->seed, entries->batch, entries->vertex, (uint64_t)entries->before_us};
    weir_rng rng = weir_rng_stream(weir_xxh3(name, sizeof name, 0), RNG_ENTRIES, 0);
    for (uint32_t i = 0; i < inputs->matrix_count; i++)
        hide(&rng, entries->rate, inputs->matrices[i].columns, numbers + inputs->matrices[i].column);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* halving.c - successive halving (Jamieson and Talwalkar, 2016): fewer trials, more epochs. */
#include <math.h>

#include "sweep_private.h"

uint32_t weir_sweep_epochs(uint32_t epochs, uint32_t keep, uint32_t rungs, uint32_t rung) {
    uint64_t divisor = 1;
    for (uint32_t i = rung + 1; i < rungs && divisor <= epochs; i++)
        divisor *= keep;
    return (uint32_t)((epochs + divisor - 1) / divisor);
}

uint32_t weir_sweep_promote(const double *validation, uint32_t count, uint32_t keep, uint32_t *chosen) {
    const uint32_t room = (count + keep - 1) / keep;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(validation[i])) continue;
        uint32_t at = found < room ? found++ : room;
        for (; at > 0 && validation[chosen[at - 1]] < validation[i]; at--) /* SWEEP-H3 */
            if (at < room) chosen[at] = chosen[at - 1];
        if (at < room) chosen[at] = i;
    }
    return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - a wait that costs little while nothing comes, and does not slow down what does.
 *
 * MPI moves bytes only while somebody looks, a few fragments a look, and does not say whether it has. A look that moves
 * nothing takes a microsecond or two; one that has copied a fragment takes longer, and more of them follow.
 */
#include "pace.h"

#define PACE_MOVED_US   6    /* a look of this length has moved something, or lost its core: it looks again as well */
#define PACE_SPINS      64u  /* looks after that, before the first nap */
#define PACE_NAP_US     20   /* at least, and then a share of what it has waited since: */
#define PACE_NAP_SHARE  16   /* but                                                     */
#define PACE_NAP_MAX_US 1000 /* at most, for what moves in looks too short to be noticed */

int64_t weir_comm_pace_nap(weir_comm_pace *pace, int64_t look_us, int64_t now_us) {
    if (look_us >= PACE_MOVED_US) *pace = (weir_comm_pace){.begin_us = now_us};
    if (pace->looks++ < PACE_SPINS) return 0;
    int64_t nap_us = (now_us - pace->begin_us) / PACE_NAP_SHARE;
    return nap_us < PACE_NAP_US ? PACE_NAP_US : nap_us > PACE_NAP_MAX_US ? PACE_NAP_MAX_US : nap_us;
}

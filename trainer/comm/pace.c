/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - a wait that costs little while nothing comes, and does not slow down what does.
 *
 * MPI moves bytes only while somebody looks, a few fragments a look, and does not say whether it has. A look that moves
 * nothing takes a microsecond or two, more on a slow machine; one that has copied a fragment takes longer, and more of
 * them follow.
 */
#include <stdbool.h>

#include <weir/trainer/comm/pace.h>

#define PACE_MOVED_US   6 /* a look of this length, and so many times as long as the shortest, has moved something … */
#define PACE_MOVED_MORE 3 /* … or lost its core: it looks again as well                                             */
#define PACE_SPINS      64u  /* looks after that, before the first nap */
#define PACE_NAP_US     20   /* at least, and then a share of what it has waited since: */
#define PACE_NAP_SHARE  16   /* but                                                     */
#define PACE_NAP_MAX_US 1000 /* at most, for what moves in looks too short to be noticed */

int64_t weir_comm_pace_nap(weir_comm_pace *pace, int64_t look_us, int64_t now_us) {
    bool first = look_us == INT64_MAX;
    if (!first && (pace->least_us == 0 || look_us < pace->least_us)) pace->least_us = look_us > 0 ? look_us : 1;
    if (first || (look_us >= PACE_MOVED_US && look_us >= PACE_MOVED_MORE * pace->least_us))
        weir_comm_pace_moved(pace, now_us);
    if (pace->looks++ < PACE_SPINS) return 0;
    int64_t nap_us = (now_us - pace->begin_us) / PACE_NAP_SHARE;
    return nap_us < PACE_NAP_US ? PACE_NAP_US : nap_us > PACE_NAP_MAX_US ? PACE_NAP_MAX_US : nap_us;
}

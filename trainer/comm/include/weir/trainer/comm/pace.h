/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - how often a wait for other ranks looks whether it has ended. */
#ifndef WEIR_TRAINER_COMM_PACE_H
#define WEIR_TRAINER_COMM_PACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one wait; begins as 0. */
typedef struct weir_comm_pace {
    unsigned looks;   /* since one last moved something */
    int64_t begin_us; /* when that was                  */
    int64_t least_us; /* the shortest look; 0: none yet */
} weir_comm_pace;

/* What was waited for has moved in another way than by a look. */
static inline void weir_comm_pace_moved(weir_comm_pace *pace, int64_t now_us) {
    pace->looks = 0;
    pace->begin_us = now_us;
}

/* After a look that took look_us and did not end the wait: how long to nap before the next, 0 not at all. The first
 * look of a wait counts as one that moved something, however long it took: its look_us is INT64_MAX. */
int64_t weir_comm_pace_nap(weir_comm_pace *pace, int64_t look_us, int64_t now_us);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_COMM_PACE_H */

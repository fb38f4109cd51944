/* SPDX-License-Identifier: Apache-2.0 */
/* ended.h - a rank's last words. Private to this folder. */
#ifndef WEIR_TRAINER_COMM_ENDED_H
#define WEIR_TRAINER_COMM_ENDED_H

/* From now on this rank says on stderr where it was, when SIGTERM ends it; of the first ranks only. */
void weir_comm_say_end(int rank, int ranks);

#endif /* WEIR_TRAINER_COMM_ENDED_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* ended.h - a rank's last words. Private to this folder. */
#ifndef WEIR_TRAINER_COMM_ENDED_H
#define WEIR_TRAINER_COMM_ENDED_H

#define COMM_WHO 320 /* bytes of "rank 1 of 2 on HOST" */

/* From now on this rank says on stderr where it was, when SIGTERM ends it. */
void weir_comm_say_end(const char *who);

#endif /* WEIR_TRAINER_COMM_ENDED_H */

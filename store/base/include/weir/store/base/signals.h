/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - SIGINT and SIGTERM become a flag and a wake-up; a second one ends the process at once.
 *
 * Only mains install it. SIGPIPE is ignored: a peer that goes away is an error code, not a death.
 */
#ifndef WEIR_STORE_BASE_SIGNALS_H
#define WEIR_STORE_BASE_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From the install that follows on, SIGHUP ends nothing: a daemon is told by it to look at its files again.  [main] */
void weir_signals_take_hangups(void);
/* Whether one came since the last time this was asked.  [any] */
bool weir_signals_hung_up(void);
/* Once, before any other thread is started.  WEIR_EUNAVAILABLE, WEIR_ENOMEM.  [main] */
weir_err weir_signals_install(void);
/* True once a stop was asked for.  [any] */
bool weir_signals_stop_asked(void);
/* Waits for the request up to wait_us; true if it came.  Blocks.  [any] */
bool weir_signals_wait(int64_t wait_us);
/* As if SIGTERM had come; for tests. The first signal that comes to the process ends nothing all the same.  [any] */
void weir_signals_ask_stop(void);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_SIGNALS_H */

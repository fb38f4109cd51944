/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ended.c - what a rank says when its launcher ends it, which is how it hears that another one was killed: a rank that
 * was killed can say nothing itself, and the launcher does not know what a step is.
 *
 * All ranks are in the same step, or in the next, so one line says enough. Two speak, as one may be the one that was
 * killed. The line does not begin as an error's sentence: who started the ranks looks for that of the one that failed.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/trainer/comm/comm.h>

#include "ended.h"

static char ended_who[COMM_WHO];          /* written before the handler is set */
static _Atomic(const char *) ended_doing; /* NULL: nothing yet */
static _Atomic uint64_t ended_numbers[3]; /* epoch, batch, batches */

/* No printf: this is a signal handler. */
static char *ended_put_text(char *at, const char *text) {
    while (*text)
        *at++ = *text++;
    return at;
}

static char *ended_put_number(char *at, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *at++ = digits[--count];
    return at;
}

static void ended_say(int number) {
    const char *doing = atomic_load_explicit(&ended_doing, memory_order_relaxed);
    char line[640], *at = ended_put_text(ended_put_text(line, ended_who), " was ended by the launcher");
    const uint64_t epoch = atomic_load(&ended_numbers[0]);
    if (doing && epoch) at = ended_put_number(ended_put_text(at, " in epoch "), epoch);
    if (doing) {
        at = ended_put_text(ended_put_text(at, ", "), doing);
        at = ended_put_number(ended_put_text(at, " batch "), atomic_load(&ended_numbers[1]) + 1);
        at = ended_put_number(ended_put_text(at, " of "), atomic_load(&ended_numbers[2]));
    }
    at = ended_put_text(at, "; another rank has ended, which it names, or somebody ended them all\n");
    const ssize_t written = write(STDERR_FILENO, line, (size_t)(at - line));
    (void)written; /* whether anybody listens or not */
    raise(number); /* with its default action, which ends the process: SA_RESETHAND */
}

void weir_comm_say_end(const char *who) {
    struct sigaction action = {.sa_handler = ended_say, .sa_flags = SA_RESETHAND | SA_NODEFER};
    snprintf(ended_who, sizeof ended_who, "%s", who);
    sigaction(SIGTERM, &action, NULL);
}

void weir_comm_at(const char *doing, uint32_t epoch, uint64_t batch, uint64_t batches) {
    atomic_store_explicit(&ended_doing, doing, memory_order_relaxed);
    atomic_store_explicit(&ended_numbers[0], epoch, memory_order_relaxed);
    atomic_store_explicit(&ended_numbers[1], batch, memory_order_relaxed);
    atomic_store_explicit(&ended_numbers[2], batches, memory_order_relaxed);
}

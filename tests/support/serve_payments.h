/* SPDX-License-Identifier: Apache-2.0 */
/* serve_payments.h - many payments in one request, for the tests of what many of them do to a server. */
#ifndef SERVE_PAYMENTS_H
#define SERVE_PAYMENTS_H

#include "serve_child.h"

#define SERVE_PAYMENTS_MAX 2000u

/* Lines of payments; the status, and how the answer begins. */
static inline int serve_post_lines(const serve_child *child, const char *lines, size_t length, char *said,
                                   size_t size) {
    http_answer answer;
    serve_post(child, "/v1/events?source=payments", SERVE_LINES, lines, length, &answer);
    int status = answer.status;
    snprintf(said, size, "%s", answer.body ? answer.body : "");
    answer_free(&answer);
    return status;
}

/* Payments p<first> and on, of so many accounts; the status, and how the answer begins. */
static inline int serve_post_payments(const serve_child *child, unsigned first, unsigned count, unsigned accounts,
                                      char said[400]) {
    static char body[SERVE_PAYMENTS_MAX * 160];
    size_t length = 0;
    assert_in_range(count, 1, SERVE_PAYMENTS_MAX);
    for (unsigned n = first; n < first + count; n++)
        length += (size_t)snprintf(body + length, sizeof body - length,
                                   "{\"id\":\"p%u\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a%u\",\"amount\":1,"
                                   "\"currency\":\"EUR\",\"channel\":\"web\"}\n",
                                   n, n % accounts);
    return serve_post_lines(child, body, length, said, 400);
}

#endif /* SERVE_PAYMENTS_H */

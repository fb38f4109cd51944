/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - a terminal of the test's own, whose other end can be read; for log_test.c and progress_test.c. */
#ifndef WEIR_TEST_TERMINAL_H
#define WEIR_TEST_TERMINAL_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

typedef struct terminal {
    int fd;       /* what a program writes to */
    int other_fd; /* where it appears         */
} terminal;

static inline terminal terminal_open(unsigned short columns) {
    terminal t = {.other_fd = posix_openpt(O_RDWR | O_NOCTTY)};
    struct termios modes;
    struct winsize window = {.ws_row = 24, .ws_col = columns};
    char name[64];
    assert_true(t.other_fd >= 0 && grantpt(t.other_fd) == 0 && unlockpt(t.other_fd) == 0);
    assert_int_equal(ptsname_r(t.other_fd, name, sizeof name), 0);
    t.fd = open(name, O_RDWR | O_NOCTTY);
    assert_true(t.fd >= 0);
    assert_int_equal(tcgetattr(t.fd, &modes), 0);
    cfmakeraw(&modes); /* a newline stays one */
    assert_int_equal(tcsetattr(t.fd, TCSANOW, &modes), 0);
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &window), 0);
    assert_int_equal(fcntl(t.other_fd, F_SETFL, O_NONBLOCK), 0);
    return t;
}

/* What was written since the last call, ended by 0. */
static inline const char *terminal_read(const terminal *t) {
    static char text[1 << 16];
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text - 1 && (got = read(t->other_fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    return text;
}

#endif /* WEIR_TEST_TERMINAL_H */

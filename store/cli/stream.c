/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - stdout and stderr as a command uses them: whole writes, and no surprise when a reader goes away. */
#include "cli_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/thread.h>

static bool stdout_reader_gone; /* [main] */

bool weir_cli_reader_gone(void) {
    return stdout_reader_gone;
}

/* Started with stdout closed, the first file that a command opens would become descriptor 1, and its results would be
 * written into that file. */
void weir_cli_claim_streams(void) {
    signal(SIGPIPE, SIG_IGN);
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0) return;
}

weir_err weir_cli_output(const void *bytes, size_t length) {
    WEIR_ON_ROLE(MAIN);
    const char *next = bytes;
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, next, length);
        if (written >= 0) {
            next += written;
            length -= (size_t)written;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (errno == EPIPE) {
            stdout_reader_gone = true;
            return WEIR_ERR(WEIR_ECLOSED, "the reader of the output has gone");
        } else if (errno != EINTR) {
            return WEIR_ERRNO(errno, "cannot write the result to stdout");
        }
    }
    return WEIR_OK;
}

/* What was typed or read must not control the terminal. */
static void stream_sentence(weir_err err, char sentence[WEIR_ERR_SENTENCE_MAX]) {
    weir_err_sentence(err, sentence, WEIR_ERR_SENTENCE_MAX);
    for (char *c = sentence; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

weir_err weir_cli_output_sentence(const char *before, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_buf line = {0};
    stream_sentence(err, sentence);
    weir_buf_printf(&line, "%s%s\n", before, sentence);
    weir_err untold = weir_buf_err(&line);
    if (!untold) untold = weir_cli_output(line.bytes, line.length);
    weir_buf_free(&line);
    return untold;
}

void weir_cli_complain(const char *path, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_buf line = {0};
    stream_sentence(err, sentence);
    weir_buf_printf(&line, "%s: %s", path, sentence);
    /* Our own mistakes say where, so that a report of them is worth something; wrong usage says where to read. What was
     * told to stop has made none. */
    if (weir_err_exit_status(err) == 70 && !weir_err_is(err, WEIR_ECANCELLED)) {
        char place[128];
        weir_err_place(err, place, sizeof place);
        weir_buf_printf(&line, " (at %s; please report this)", place);
    } else if (weir_err_is(err, WEIR_EUSAGE) && line.length > 0 && line.bytes[line.length - 1] != '?') {
        weir_buf_printf(&line, "; see '%s --help'", path);
    }
    weir_buf_text(&line, "\n");
    if (weir_buf_err(&line))
        dprintf(STDERR_FILENO, "%s: %s\n", path, sentence);
    else
        dprintf(STDERR_FILENO, "%s", line.bytes);
    weir_buf_free(&line);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - one request to a server of HTTP or HTTPS, and its answer.
 *
 * Certificates are checked, redirections are not followed, and proxies of the environment are not used: what is sent
 * goes to the address that was given, and nowhere else.
 *
 * THREADS: all functions are [owner].
 */
#ifndef WEIR_TRAINER_CLIENT_CLIENT_H
#define WEIR_TRAINER_CLIENT_CLIENT_H

#include <stdint.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_client weir_client;

typedef struct weir_client_opts {
    const char *server;   /* "http://127.0.0.1:8080"; without a scheme it is http */
    const char *option;   /* that named it, for messages: "--server"              */
    const char *key_file; /* whose first line goes along as a bearer's token; NULL: none */
    const char *start;    /* what to do where it cannot be asked: "start `weir serve` or drop --server" */
    bool below;           /* paths of requests go behind the address's own; false: they replace it */
    uint32_t answer_s;    /* how long an answer may take */
    size_t reply_bytes_max;
} weir_client_opts;

/* Nothing is sent yet.  WEIR_EUSAGE the address, or the key's file has none in its first line; what that file reports;
 * WEIR_ENOMEM. */
weir_err weir_client_open(const weir_client_opts *opts, weir_client **clientp);
void weir_client_close(weir_client *client); /* NULL is allowed */
/* "http://127.0.0.1:8080", for messages: neither a user's name and password nor a path, which may be secrets. */
const char *weir_client_address(const weir_client *client);

/* body: JSON to POST; NULL: GET. query: escaped; NULL: none. The answer's text replaces what reply holds, whatever its
 * status; redirections are one, too.  WEIR_EUNAVAILABLE the server cannot be asked, or its answer is longer than
 * reply_bytes_max or too late; WEIR_ENOMEM.  Blocks. */
weir_err weir_client_ask(weir_client *client, const char *path, const char *query, const char *body, weir_buf *reply,
                         long *statusp);
/* Of what a server says, for messages: control characters, which a terminal would obey, become "?". */
void weir_client_plain(char *text);
/* "text" as it may stand in a query. */
void weir_client_escape(weir_buf *out, const char *text);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_CLIENT_CLIENT_H */

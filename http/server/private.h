/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - what the files of the server share; only loop.c and exchange.c include microhttpd.h. */
#ifndef WEIR_HTTP_PRIVATE_H
#define WEIR_HTTP_PRIVATE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <weir/http/server/server.h>
#include <weir/store/base/thread.h>

struct MHD_Connection;
struct MHD_Daemon;

typedef struct weir_http_loop weir_http_loop;
typedef struct weir_http_connection weir_http_connection;

/* A refusal under SERVER-W4. */
#define WEIR_HTTP_NO_MEMORY "the memory for requests in flight (http.memory) is used up; try again in a second"

/* --- routes --------------------------------------------------------------------------------------------------- */

typedef struct weir_http_text {
    const char *bytes;
    size_t length;
} weir_http_text;

typedef struct weir_http_pair {
    const char *name, *value;
} weir_http_pair;

typedef struct weir_http_match {
    const weir_http_route *route;                /* NULL: none with this method and path       */
    weir_http_text params[WEIR_HTTP_PARAMS_MAX]; /* as sent                                    */
    char allow[64];                              /* the methods that the path has; "": no path */
} weir_http_match;

/* path as sent, without the query.  [any] */
void weir_http_match_find(const weir_http_route *routes, size_t count, const char *method, const char *path,
                          size_t length, weir_http_match *matchp);
/* Cuts and decodes a query against the names that a route allows.  WEIR_EDATA names the parameter; WEIR_ELIMIT,
 * WEIR_ENOMEM.  [any] */
weir_err weir_http_query_read(weir_arena *arena, const char *const *allowed, const char *query,
                              weir_http_pair pairs[WEIR_HTTP_QUERY_MAX], size_t *countp);

/* --- addresses ------------------------------------------------------------------------------------------------ */

typedef struct weir_http_address {
    struct sockaddr_storage storage;
    socklen_t length;
    bool loopback;
} weir_http_address;

/* "127.0.0.1:8080".  WEIR_ECONFIG.  [any] */
weir_err weir_http_address_read(const char *text, weir_http_address *addressp);
/* What a URL and a sentence show: "127.0.0.1:8080", "[::1]:8080". */
void weir_http_address_text(const struct sockaddr *address, char *buffer, size_t size);
/* Whether a Host header names this machine by a name that no other site can have; true of NULL, as only HTTP/1.0 omits
 * it. */
bool weir_http_host_is_local(const char *host);
/* Whether "http://HOST", or one of another scheme, is a page of this host and port. "null", as a sandboxed page sends
 * it, is none. */
bool weir_http_origin_is_host(const char *origin, const char *host);

/* --- peers: how many connections an address has --------------------------------------------------------------- */

typedef struct weir_http_peers weir_http_peers;
weir_err weir_http_peers_open(uint32_t connections, uint32_t per_ip, weir_http_peers **peersp);
/* *peerp is for leave and strike; false: one of the two limits is reached.  [any] */
bool weir_http_peers_enter(weir_http_peers *peers, const struct sockaddr *address, uint64_t *peerp);
/* Whether a sixteenth of the connections, or less, is free.  [any] */
bool weir_http_peers_crowded(weir_http_peers *peers);
void weir_http_peers_leave(weir_http_peers *peers, uint64_t id);
/* Counts a wrong key of this address: the answer is how many came in the minute that the first of them began. */
uint32_t weir_http_peers_strike(weir_http_peers *peers, uint64_t id, int64_t now_us);
void weir_http_peers_close(weir_http_peers *peers);

#define WEIR_HTTP_STRIKES_MAX \
    20u /* wrong keys of an address in a minute that are answered 401 and logged; 429 past it */
#define WEIR_HTTP_STRIKES_US (60 * WEIR_US_PER_S)

/* --- one exchange --------------------------------------------------------------------------------------------- */

typedef enum weir_http_stage {
    WEIR_HTTP_STAGE_HEADERS,  /* the request line is there, headers come             */
    WEIR_HTTP_STAGE_BODY,     /* the headers are there, passed or refused; a body may come */
    WEIR_HTTP_STAGE_DEFERRED, /* the handler has returned without a reply            */
    WEIR_HTTP_STAGE_FINISHED, /* by the thread that it was handed to                 */
    WEIR_HTTP_STAGE_REPLIED
} weir_http_stage;

struct weir_http_request {
    weir_http_loop *loop;
    weir_http_connection *connection;
    struct MHD_Connection *mhd;
    weir_http_stage stage;
    weir_arena *arena;
    const char *uri; /* as sent */
    size_t path_length;
    const char *method;
    const weir_http_route *route;
    weir_http_text params[WEIR_HTTP_PARAMS_MAX]; /* decoded */
    weir_http_pair query[WEIR_HTTP_QUERY_MAX];
    size_t query_count;
    weir_http_caller caller;
    char id[WEIR_HTTP_NAME_MAX + 1];
    int64_t started_us;
    weir_buf body, out;
    uint64_t charged_bytes; /* its share of the server's (SERVER-W4) */
    unsigned status;
    bool close; /* the connection, after the reply */
    const char *content_type;
    const void *fixed; /* NULL: out is sent */
    size_t fixed_length;
    weir_http_pair headers[WEIR_HTTP_HEADERS_MAX];
    size_t header_count;
    weir_http_request *next; /* of the loop's free ones, or of those finished */
};

/* A connection in the list is closed when its time has come (SERVER-W1). */
typedef struct weir_http_deadlines {
    weir_http_connection *first, *last; /* oldest first: all of a list have the same time to live */
    int64_t live_us;
} weir_http_deadlines;

struct weir_http_connection {
    weir_http_loop *loop;
    int fd;
    uint64_t peer;
    weir_http_request *request; /* NULL between requests */
    weir_http_deadlines *list;
    weir_http_connection *before, *after;
    int64_t since_us;
    bool expired;
};

struct weir_http_loop {
    weir_http *http;
    uint32_t index;
    struct MHD_Daemon *daemon;
    int mhd_fd, wake_fd;
    weir_thread *thread;
    weir_http_deadlines waiting, working; /* connections without and with a request */
    uint64_t connections;
    int64_t accept_again_us; /* 0: at once; else accepting failed, as without descriptors */
    int64_t accept_said_us;  /* when the log was last told so              */
    uint64_t peer_entered;   /* of the connection that the library is being given */
    bool peer_pending;
    weir_http_request *free;
    uint32_t free_count;
    uint64_t id_next;
    weir_mutex mutex;
    weir_http_request *finished; /* under mutex */
};

struct weir_http {
    weir_http_opts opts;
    weir_clock *clock;
    weir_http_peers *peers;
    int listen_fd;
    uint16_t port;
    char url[96];
    uint64_t id_seed;
    _Atomic uint64_t charged_bytes; /* of all requests (SERVER-W4) */
    _Atomic int64_t stop_us;        /* 0: serving; else close what is left then */
    uint32_t loop_count;
    bool stopped;
    weir_http_loop loops[WEIR_HTTP_LOOPS_MAX];
};

/* loop.c */
weir_err weir_http_loop_open(weir_http *http, uint32_t index, weir_http_loop *loop);
weir_err weir_http_loop_start(weir_http_loop *loop);
void weir_http_loop_wake(weir_http_loop *loop);
void weir_http_loop_join(weir_http_loop *loop);
void weir_http_loop_close(weir_http_loop *loop);
void weir_http_deadline_move(weir_http_connection *connection, weir_http_deadlines *list, int64_t now_us);

/* exchange.c: the life of a request on its loop */
int weir_http_exchange_access(const char *method, const char *version, const char *upload, size_t *upload_length,
                              void **request_slot);
void *weir_http_exchange_begin(weir_http_loop *loop, const char *uri, struct MHD_Connection *mhd);
void weir_http_exchange_end(weir_http_loop *loop, weir_http_request *request);
/* Closes the connection past the library; in the middle of a request that is still arriving, answers by hand first. */
void weir_http_exchange_cut(weir_http_connection *connection, unsigned status, const char *detail);
/* If its Content-Length is not a number, or above 64 bits: answers so by hand. */
void weir_http_exchange_refuse_length(weir_http_connection *connection);

/* request.c */
weir_http_request *weir_http_request_take(weir_http_loop *loop);
void weir_http_request_give(weir_http_loop *loop, weir_http_request *request);
void weir_http_requests_free(weir_http_loop *loop);
/* false: over the budget (SERVER-W4). */
bool weir_http_charge(weir_http_request *request, uint64_t bytes);
/* What a body costs. */
uint64_t weir_http_held(const weir_buf *buf);
/* The reply is written: gives back the body, which has no reader any more, and the room that the reply did not need.
 * What is left is all that is held for as long as the client does not read it.  false: over the budget (SERVER-W4). */
bool weir_http_lighten(weir_http_request *request);
/* The reply is queued: frees a large arena. */
void weir_http_shed_arena(weir_http_request *request);

/* problem.c */
const char *weir_http_status_title(unsigned status);
/* slug NULL: that of the status. */
void weir_http_problem_write(weir_buf *out, unsigned status, const char *slug, const char *detail, const char *id);

#endif /* WEIR_HTTP_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - one thread that owns its connections: accepts, runs the library, keeps the deadlines.
 *
 * libmicrohttpd has threads of its own, which are not used: in its internal epoll mode, version 0.9.75 falls asleep
 * when the clients in flight are a multiple of its event buffer (128), with their requests unread. Run from outside, it
 * never waits, and the loop can keep a deadline for whole requests: the library's own counts silence only, and one byte
 * now and then defeats it.
 *
 * Deadlines are two lists, of connections between requests and of those in one. All members of a list have the same
 * time to live, so the oldest is always first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <microhttpd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "private.h"

#define ACCEPTS_MAX 64                   /* in one turn: those who are served already wait no longer */
#define TURN_MAX_MS 1000u                /* of sleep                                                 */
#define REST_US     (WEIR_US_PER_S / 10) /* after a connection could not be accepted                 */
#define SAY_US      (10 * WEIR_US_PER_S) /* between two lines about that                             */
#define SHED_MAX    16                   /* idle connections closed for it                           */
#define IDLE_MIN_US (WEIR_US_PER_S / 50)
#define REFUSAL                                                 \
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n" \
    "Retry-After: 1\r\nConnection: close\r\n\r\n"

/* --- deadlines ------------------------------------------------------------------------------------------------ */

static void deadline_leave(weir_http_connection *connection) {
    weir_http_deadlines *list = connection->list;
    if (!list) return;
    WEIR_ASSERT(list->first && list->last && (connection->before || list->first == connection));
    *(connection->before ? &connection->before->after : &list->first) = connection->after;
    *(connection->after ? &connection->after->before : &list->last) = connection->before;
    connection->before = connection->after = NULL;
    connection->list = NULL;
}

void weir_http_deadline_move(weir_http_connection *connection, weir_http_deadlines *list, int64_t now_us) {
    deadline_leave(connection);
    connection->since_us = now_us;
    connection->list = list;
    connection->before = list->last;
    *(list->last ? &list->last->after : &list->first) = connection;
    list->last = connection;
}

static void deadlines_expire(weir_http_deadlines *list, int64_t now_us) {
    while (list->first && now_us - list->first->since_us >= list->live_us) {
        weir_http_connection *connection = list->first;
        deadline_leave(connection); /* the library closes it when it sees the end; until then it stands in no list */
        if (connection->expired) continue;
        connection->expired = true;
        weir_metric_add(WEIR_METRIC_HTTP_DEADLINES, 1);
        weir_http_exchange_cut(connection, 408, "the request took too long to arrive; send it faster"); // SERVER-W1
    }
}

/* Until the first deadline of the list, at most wait_us. */
static int64_t deadlines_wait_us(const weir_http_deadlines *list, int64_t now_us, int64_t wait_us) {
    if (!list->first) return wait_us;
    int64_t left_us = list->first->since_us + list->live_us - now_us;
    return left_us < wait_us ? (left_us < 0 ? 0 : left_us) : wait_us;
}

/* --- what the library calls ----------------------------------------------------------------------------------- */

static enum MHD_Result loop_on_access(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                      const char *version, const char *upload, size_t *upload_length, void **slot) {
    (void)context;
    (void)mhd;
    (void)url;
    return (enum MHD_Result)weir_http_exchange_access(method, version, upload, upload_length, slot);
}

static void *loop_on_request_line(void *context, const char *uri, struct MHD_Connection *mhd) {
    return weir_http_exchange_begin(context, uri, mhd);
}

static void loop_on_completed(void *context, struct MHD_Connection *mhd, void **slot,
                              enum MHD_RequestTerminationCode code) {
    (void)mhd;
    (void)code;
    if (*slot) weir_http_exchange_end(context, *slot);
    *slot = NULL;
}

/* Called while loop_take_connection hands a socket over; from here on the peer's place goes with the connection. */
static weir_http_connection *connection_open(weir_http_loop *loop, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    weir_http_connection *connection = weir_calloc(1, sizeof *connection);
    WEIR_ASSERT(fd && loop->peer_pending);
    if (!connection) {
        shutdown(fd->connect_fd, SHUT_RDWR);
        return NULL;
    }
    connection->loop = loop;
    connection->fd = fd->connect_fd;
    connection->peer = loop->peer_entered;
    loop->peer_pending = false;
    loop->connections++;
    weir_http_deadline_move(connection, &loop->waiting, weir_clock_mono_us(loop->http->clock));
    return connection;
}

static void loop_on_connection(void *context, struct MHD_Connection *mhd, void **slot,
                               enum MHD_ConnectionNotificationCode code) {
    weir_http_loop *loop = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = connection_open(loop, mhd);
    } else if (*slot) {
        weir_http_connection *connection = *slot;
        WEIR_ASSERT(connection->loop == loop && loop->connections);
        if (connection->request) weir_http_exchange_end(loop, connection->request);
        deadline_leave(connection);
        weir_http_peers_leave(loop->http->peers, connection->peer);
        loop->connections--;
        weir_free(connection);
        *slot = NULL;
    }
}

/* Texts are decoded by us, segment by segment and exactly once. */
static size_t loop_leave_encoded(void *context, struct MHD_Connection *mhd, char *text) {
    (void)context;
    (void)mhd;
    return strlen(text);
}

/* The library says what it is about to refuse before it does. After its refusal of a Content-Length that is not a
 * number, version 0.9.75 goes on as if there were a request, and writes status line and headers once more: so such a
 * request has our refusal and a closed connection by then. The message does not say whose it is; so each is looked at.
 */
__attribute__((format(printf, 2, 0))) static void loop_on_message(void *context, const char *format,
                                                                  va_list arguments) {
    weir_http_loop *loop = context;
    char text[256];
    for (weir_http_connection *connection = loop->working.first; connection; connection = connection->after)
        weir_http_exchange_refuse_length(connection);
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = 0;
    WEIR_LOG(DEBUG, "http.library", text);
}

/* --- accepting ------------------------------------------------------------------------------------------------ */

/* Closes those that have waited longest for a request: whoever asks for nothing gives way to who may. One that has just
 * come may have its request behind it, and is left. */
static void loop_shed_idle(weir_http_loop *loop, unsigned count) {
    int64_t since_us = weir_clock_mono_us(loop->http->clock) - IDLE_MIN_US;
    while (count-- && loop->waiting.first && loop->waiting.first->since_us <= since_us) {
        weir_http_connection *connection = loop->waiting.first;
        deadline_leave(connection);
        if (connection->expired) continue;
        connection->expired = true;
        weir_metric_add(WEIR_METRIC_HTTP_IDLE_CUTS, 1);
        shutdown(connection->fd, SHUT_RDWR);
    }
}

/* Hands the socket to the library, or refuses and closes it. */
static void loop_take_connection(weir_http_loop *loop, int fd, const struct sockaddr *address, socklen_t length) {
    uint64_t peer;
    if (weir_http_peers_crowded(loop->http->peers)) loop_shed_idle(loop, 1);
    if (!weir_http_peers_enter(loop->http->peers, address, &peer)) {
        weir_metric_add(WEIR_METRIC_HTTP_REFUSED_CONNECTIONS, 1);
        (void)!send(fd, REFUSAL, sizeof REFUSAL - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
        return;
    }
    WEIR_ASSERT(!loop->peer_pending);
    loop->peer_entered = peer;
    loop->peer_pending = true;
    if (MHD_add_connection(loop->daemon, fd, address, length) == MHD_NO)
        weir_log_error("http.accept", WEIR_ERR(WEIR_ENOMEM, "out of memory for a new connection; free some memory"));
    if (loop->peer_pending) weir_http_peers_leave(loop->http->peers, peer);
    loop->peer_pending = false;
}

/* What could not be accepted still waits, so the listening socket would wake the loop again at once: it is left alone
 * for a while instead. Each idle connection that is closed meanwhile is a descriptor. */
static void loop_rest(weir_http_loop *loop, int errno_value) {
    int64_t now_us = weir_clock_mono_us(loop->http->clock);
    loop->accept_again_us = now_us + REST_US;
    weir_metric_add(WEIR_METRIC_HTTP_ACCEPT_FAILURES, 1);
    loop_shed_idle(loop, SHED_MAX);
    if (loop->accept_said_us && now_us - loop->accept_said_us < SAY_US) return;
    loop->accept_said_us = now_us;
    weir_log_error("http.accept", WEIR_ERRNO(errno_value, "cannot accept a connection"));
}

static void loop_accept(weir_http_loop *loop) {
    WEIR_ON_ROLE(LOOP);
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int fd = accept4(loop->http->listen_fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
        if (fd < 0) {
            if (errno != EAGAIN) loop_rest(loop, errno);
            return;
        }
        loop_take_connection(loop, fd, (const struct sockaddr *)&address, length);
    }
}

/* --- turns ---------------------------------------------------------------------------------------------------- */

static int loop_sleep_ms(const weir_http_loop *loop, int64_t now_us) {
    int64_t wait_us = TURN_MAX_MS * 1000;
    int64_t stop_us = atomic_load_explicit(&loop->http->stop_us, memory_order_relaxed);
    MHD_UNSIGNED_LONG_LONG library_ms;
    if (MHD_get_timeout(loop->daemon, &library_ms) == MHD_YES && library_ms < TURN_MAX_MS)
        wait_us = (int64_t)library_ms * 1000;
    wait_us = deadlines_wait_us(&loop->waiting, now_us, wait_us);
    wait_us = deadlines_wait_us(&loop->working, now_us, wait_us);
    if (loop->accept_again_us && loop->accept_again_us - now_us < wait_us) wait_us = loop->accept_again_us - now_us;
    if (stop_us && stop_us - now_us < wait_us) wait_us = stop_us > now_us ? stop_us - now_us : 1000;
    WEIR_ASSERT(wait_us >= 0 && wait_us <= TURN_MAX_MS * 1000);
    return (int)((wait_us + 999) / 1000);
}

/* Requests that other threads have finished go back to the library, which asks for their replies. */
static void loop_resume_finished(weir_http_loop *loop) {
    uint64_t wakes;
    (void)!read(loop->wake_fd, &wakes, sizeof wakes);
    weir_mutex_lock(&loop->mutex);
    weir_http_request *request = loop->finished;
    loop->finished = NULL;
    weir_mutex_unlock(&loop->mutex);
    while (request) {
        weir_http_request *next = request->next;
        WEIR_ASSERT(request->loop == loop && request->stage == WEIR_HTTP_STAGE_DEFERRED);
        request->stage = WEIR_HTTP_STAGE_FINISHED;
        MHD_resume_connection(request->mhd);
        request = next;
    }
}

static void loop_turn(weir_http_loop *loop) {
    int64_t now_us = weir_clock_mono_us(loop->http->clock);
    if (now_us >= loop->accept_again_us) loop->accept_again_us = 0;
    bool accepting = !loop->accept_again_us && !atomic_load_explicit(&loop->http->stop_us, memory_order_relaxed);
    struct pollfd fds[] = {
        {.fd = loop->mhd_fd, .events = POLLIN},
        {.fd = loop->wake_fd, .events = POLLIN},
        {.fd = accepting ? loop->http->listen_fd : -1, .events = POLLIN},
    };
    (void)poll(fds, 3, loop_sleep_ms(loop, now_us));
    if (fds[1].revents) loop_resume_finished(loop);
    if (fds[2].revents) loop_accept(loop);
    (void)MHD_run(loop->daemon);
    now_us = weir_clock_mono_us(loop->http->clock);
    deadlines_expire(&loop->waiting, now_us);
    deadlines_expire(&loop->working, now_us);
}

static void deadlines_shutdown(const weir_http_deadlines *list, int how) {
    for (weir_http_connection *connection = list->first; connection; connection = connection->after)
        shutdown(connection->fd, how);
}

static void loop_main(void *context) {
    weir_http_loop *loop = context;
    bool turned_away = false;
    WEIR_ON_ROLE(LOOP);
    for (;;) {
        int64_t stop_us = atomic_load_explicit(&loop->http->stop_us, memory_order_acquire);
        if (stop_us && !loop->connections) return;
        /* Idle connections see the end of what they can send; a request that is on its way is still answered. */
        if (stop_us && !turned_away) deadlines_shutdown(&loop->waiting, SHUT_RD);
        turned_away = stop_us != 0;
        if (stop_us && weir_clock_mono_us(loop->http->clock) >= stop_us) {
            deadlines_shutdown(&loop->waiting, SHUT_RDWR);
            deadlines_shutdown(&loop->working, SHUT_RDWR);
        }
        loop_turn(loop);
    }
}

/* --- open and close ------------------------------------------------------------------------------------------- */

weir_err weir_http_loop_open(weir_http *http, uint32_t index, weir_http_loop *loop) {
    const weir_http_opts *opts = &http->opts;
    *loop = (weir_http_loop){.http = http, .index = index, .wake_fd = -1, .id_next = index};
    loop->waiting.live_us = 2 * opts->idle_us; /* silence, which the library counts, then a request line */
    loop->working.live_us = opts->request_us;
    weir_mutex_init(&loop->mutex, WEIR_RANK_LEAF, "http loop");
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0) return WEIR_ERRNO(errno, "cannot create an eventfd");
    loop->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        loop_on_access, loop, MHD_OPTION_EXTERNAL_LOGGER, loop_on_message, loop, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)opts->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)opts->header_bytes,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((opts->idle_us + WEIR_US_PER_S - 1) / WEIR_US_PER_S),
        MHD_OPTION_NOTIFY_COMPLETED, loop_on_completed, loop, MHD_OPTION_NOTIFY_CONNECTION, loop_on_connection, loop,
        MHD_OPTION_URI_LOG_CALLBACK, loop_on_request_line, loop, MHD_OPTION_UNESCAPE_CALLBACK, loop_leave_encoded, NULL,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (!loop->daemon)
        return WEIR_ERR(WEIR_EUNAVAILABLE,
                        "cannot start libmicrohttpd; free some memory or raise the limit of open files (ulimit -n)");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    WEIR_ASSERT(info);
    loop->mhd_fd = info->epoll_fd;
    return WEIR_OK;
}

weir_err weir_http_loop_start(weir_http_loop *loop) {
    char name[WEIR_THREAD_NAME_MAX + 1];
    snprintf(name, sizeof name, "http-%u", loop->index);
    return weir_thread_start(name, WEIR_ROLE_LOOP, loop_main, loop, &loop->thread);
}

void weir_http_loop_wake(weir_http_loop *loop) {
    uint64_t one = 1;
    (void)!write(loop->wake_fd, &one, sizeof one); /* full means that it is awake */
}

void weir_http_loop_join(weir_http_loop *loop) {
    weir_thread_join(loop->thread);
    loop->thread = NULL;
}

void weir_http_loop_close(weir_http_loop *loop) {
    if (!loop->http) return;
    WEIR_ASSERT(!loop->thread && !loop->connections);
    if (loop->daemon) MHD_stop_daemon(loop->daemon);
    if (loop->wake_fd >= 0) close(loop->wake_fd);
    weir_http_requests_free(loop);
    weir_mutex_destroy(&loop->mutex);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop_test.c - SIGTERM ends a server in whatever state it is, 100 times each in a long campaign.
 *
 * Nothing here looks at a clock but to say how long it took: a stop that hangs meets the limit of its case.
 */
#include "flip.h"
#include "model_register.h"
#include "serve_payments.h"

#include <sys/resource.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#define EVENTS  500u
#define READERS 60
#define LOGGED  60000u /* to make a shard of so many takes a while */

typedef struct trouble {
    const char *fault; /* of WEIR_FAULT; NULL: none */
    void (*drive)(const serve_child *child);
    void (*prepare)(const char *data); /* what the server finds; NULL: nothing */
    const char *set;                   /* a setting of its own; NULL: none     */
} trouble;

static int held[READERS];

/* Whatever it says. */
static void post(const serve_child *child, unsigned first) {
    char said[400];
    (void)serve_post_payments(child, first, EVENTS, 3, said);
}

static void drive_nothing(const serve_child *child) {
    (void)child;
}

static void drive_events(const serve_child *child) {
    for (unsigned i = 0; i < 4; i++)
        post(child, i * EVENTS);
}

/* Without room for what is sealed the deltas fill up, then the queues, and then a worker waits in a push. */
static void drive_until_it_waits(const serve_child *child) {
    unsigned waits = 0;
    for (unsigned i = 0; i < 400 && waits < 25; i++) {
        http_answer answer;
        post(child, i * EVENTS);
        client_ask(child->port, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
        const char *behind = answer.body ? strstr(answer.body, "\"behind\":") : NULL;
        waits = behind && behind[9] != '0' ? waits + 1 : 0;
        answer_free(&answer);
    }
    if (waits < 25) fail_msg("200,000 events are applied, and nothing can be sealed");
}

static void hold(const serve_child *child, const char *bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(child->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < READERS; i++) {
        held[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(held[i], (struct sockaddr *)&address, sizeof address), 0);
        (void)send(held[i], bytes, strlen(bytes), MSG_NOSIGNAL);
    }
}

/* Answers that nobody takes. */
static void drive_readers(const serve_child *child) {
    drive_events(child);
    serve_await(child, "/v1/neighbors/account/a1", NULL, 200, NULL);
    hold(child, "GET /v1/neighbors/account/a1?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                "GET /v1/neighbors/account/a1?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* Requests that never end. */
static void drive_writers(const serve_child *child) {
    hold(child, "POST /v1/events?source=payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: 100000\r\n\r\n{\"id\":");
}

static void drive_out_of_memory(const serve_child *child) {
    struct rlimit none = {1 << 20, RLIM_INFINITY};
    drive_events(child);
    assert_int_equal(prlimit(child->pid, RLIMIT_DATA, &none, NULL), 0);
    post(child, 5 * EVENTS);
}

static void drive_out_of_descriptors(const serve_child *child) {
    struct rlimit none;
    drive_events(child);
    assert_int_equal(prlimit(child->pid, RLIMIT_NOFILE, NULL, &none), 0);
    none.rlim_cur = 8;
    assert_int_equal(prlimit(child->pid, RLIMIT_NOFILE, &none, NULL), 0);
}

/* It answers as soon as all is applied; whether that can be sealed it waits for then. */
static void drive_filled(const serve_child *child) {
    serve_await(child, "/v1/vertices/payment/p1", NULL, 200, NULL);
}

static void leave_a_log(const char *data) {
    char store[520];
    serve_child child;
    serve_start(&child, data, NULL);
    assert_true(child.port);
    drive_events(&child);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    snprintf(store, sizeof store, "%s/store", data);
    assert_ok(weir_folder_remove(store));
}

/* What it has in place of a model is not signed. */
static void leave_an_unsigned_model(const char *data) {
    char models[520], id[WEIR_MODEL_ID_MAX];
    snprintf(models, sizeof models, "%s/models", data);
    register_make(models, 16, 1, id);
}

static void drive_without_a_model(const serve_child *child) {
    serve_await(child, "/readyz", NULL, 503, "no model can be loaded");
    post(child, 0);
}

/* Events are refused: there are more in the queues than it may be behind. */
static void drive_behind_a_limit(const serve_child *child) {
    char said[400] = "";
    for (unsigned first = 0; !strstr(said, "ingest.behind_max allows"); first += EVENTS)
        (void)serve_post_payments(child, first, EVENTS, 3, said);
}

/* Damaged again where it was too fast to be seen. */
static void drive_a_repair(const serve_child *child) {
    bool under_way = false, red = false;
    char said[400], store[512];
    snprintf(store, sizeof store, "%s/data/store", weir_test_folder());
    for (unsigned first = 0; first < LOGGED; first += SERVE_PAYMENTS_MAX)
        assert_int_equal(serve_post_payments(child, first, SERVE_PAYMENTS_MAX, 100, said), 200);
    serve_await_applied(child);
    while (!under_way) {
        http_answer answer;
        for (unsigned shard = 0; !red && shard < 2; shard++)
            (void)flip_shard(store, shard);
        client_ask(child->port, "GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
        red = answer.status == 503;
        under_way = answer.body && strstr(answer.body, "made anew from the log:");
        answer_free(&answer);
        usleep(1000);
    }
}

static void stop(const char *name, const trouble *t) {
    int64_t longest_us = 0;
    uint64_t rounds = weir_test_rounds(1);
    if (rounds > 1) rounds = 100;
    for (uint64_t i = 0; i < rounds; i++) {
        char data[512];
        serve_child child;
        const char *const more[] = {"--set", "store.seal_interval=20ms",
                                    "--set", "http.stop_timeout=1s",
                                    "--set", "store.memory=64MiB",
                                    "--set", "store.scrub_interval=10ms",
                                    "--set", t->set ? t->set : "store.repair=true",
                                    NULL};
        snprintf(data, sizeof data, "%s/data", weir_test_folder());
        if (t->prepare) t->prepare(data);
        if (t->fault) setenv("WEIR_FAULT", t->fault, 1);
        serve_start(&child, data, more);
        unsetenv("WEIR_FAULT");
        assert_true(child.port);
        t->drive(&child);
        int64_t begin_us = weir_clock_mono_us(weir_clock_system());
        int status = serve_end(&child, SIGTERM);
        int64_t took_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
        assert_true(status < 128);
        if (took_us > longest_us) longest_us = took_us;
        for (int r = 0; r < READERS; r++)
            if (held[r] > 0) close(held[r]);
        memset(held, 0, sizeof held);
        assert_ok(weir_folder_remove(data));
    }
    printf("%s: %llu stops, the longest %.1f s\n", name, (unsigned long long)rounds, (double)longest_us / 1e6);
}

#define STOP_OF(name, ...)               \
    static void name(void **state) {     \
        const trouble t = {__VA_ARGS__}; \
        (void)state;                     \
        stop(#name, &t);                 \
    }
#define STOP(name, fault, drive) STOP_OF(name, fault, drive, NULL, NULL)

STOP(at_once, NULL, drive_nothing)
STOP(with_events_under_way, NULL, drive_events)
STOP(while_seals_fail, "write:1:ENOSPC:/seal-", drive_events)
STOP(while_the_disk_and_the_queues_are_full, "write:1:ENOSPC:/seal-", drive_until_it_waits)
STOP(while_the_log_is_poisoned, "sync:1:EIO:/payments/0", drive_events)
STOP(while_no_call_into_the_files_goes_well, "engine:40:EIO:/store/shard-", drive_events)
STOP_OF(while_a_store_is_filled_on_a_full_disk, "write:1:ENOSPC:/seal-", drive_filled, leave_a_log, NULL)
STOP(while_answers_are_not_read, NULL, drive_readers)
STOP(while_requests_do_not_end, NULL, drive_writers)
STOP(while_a_shard_is_made_anew, NULL, drive_a_repair)
STOP_OF(without_a_model, NULL, drive_without_a_model, leave_an_unsigned_model, NULL)
STOP_OF(while_it_is_behind_a_limit, "write:1:ENOSPC:/seal-", drive_behind_a_limit, NULL, "ingest.behind_max=100")
STOP(without_memory, NULL, drive_out_of_memory)
STOP(without_descriptors, NULL, drive_out_of_descriptors)

WEIR_TESTS(WEIR_CASE(at_once), WEIR_CASE(with_events_under_way), WEIR_CASE(while_seals_fail),
           WEIR_CASE(while_the_disk_and_the_queues_are_full), WEIR_CASE(while_the_log_is_poisoned),
           WEIR_CASE(while_no_call_into_the_files_goes_well), WEIR_CASE(while_a_store_is_filled_on_a_full_disk),
           WEIR_CASE(while_answers_are_not_read), WEIR_CASE(while_requests_do_not_end),
           WEIR_CASE(while_a_shard_is_made_anew), WEIR_CASE(without_a_model), WEIR_CASE(while_it_is_behind_a_limit),
           WEIR_CASE(without_memory), WEIR_CASE(without_descriptors))

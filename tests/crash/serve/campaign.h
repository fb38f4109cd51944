/* SPDX-License-Identifier: Apache-2.0 */
/*
 * campaign.h - kill -9 of a streaming `weir serve`; nothing acknowledged is lost, nothing counts twice.
 *
 *   client ──events──► weir serve ──SIGKILL, at a random moment or at a named point
 *     └ book             │ what is left: store verify, and the log against the book
 *                        ▼
 *                      weir serve again ──/v1──► every vertex against the book, as oracle.h reads it
 *                        │ stopped in order: the export of its store is that of a store made anew from the log
 *
 * What had no answer is sent again to the second server, as the API's contract says. Some lives begin without a word
 * of the client and end early: those kills fall into recovery. Each named point must have killed once, if there were
 * cycles enough for all.
 */
#ifndef WEIR_CRASH_SERVE_CAMPAIGN_H
#define WEIR_CRASH_SERVE_CAMPAIGN_H

#include <sys/mman.h>
#include <sys/stat.h>

#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/log.h>

#include "../../support/serve_child.h"
#include "oracle.h"

enum {
    SHARDS = 3,
    LIFE_OF_POINT_MS = 20000,
    CAUGHT_UP_MS = 30000,
    FRESH_EVERY = 10, /* cycles: what is compared grows with the log */
    LIST_MAX = 1000
};

typedef struct totals {
    uint64_t cycles, events, lost, duplicated, rebuilt, seed;
} totals;

static totals *sum; /* shared with the case's process */

typedef struct kill_point {
    const char *name;
    uint64_t passes_max;
    uint64_t reached;
} kill_point;

typedef struct campaign {
    weir_rng rng;
    book book;
    uint64_t cycle, epoch; /* each epoch has a topic of its own */
    char topic[32];
    bool may_be_trimmed; /* some life of this epoch had a schema with `history`, or the next may */
    uint64_t seal_ms;
    const char *store, *log; /* their names in the case's folder */
    http_client client;
    bool connected;
    size_t sent; /* events of the book below this were sent; those that were not acknowledged had no answer */
} campaign;

/* Where events go, and what is there. */
typedef struct stream {
    const char *kafka; /* brokers, or NULL */
    uint64_t life_max_ms;
    kill_point *points;
    size_t point_count;
    void (*begin)(campaign *c); /* a new epoch */
    void (*end)(campaign *c);   /* the one before is over, its store and topic still there; or NULL */
    /* Sends events and enters what was acknowledged; false: the server is gone. What had no answer goes first. */
    bool (*send)(campaign *c, const serve_child *server, size_t count);
    void (*compare_log)(campaign *c); /* with the book */
} stream;

static const stream *the_stream;

static inline void lose(const char *what, uint64_t which) {
    sum->lost++;
    fprintf(stderr, "lost: %s %" PRIu64 "\n", what, which);
}

static inline void doubled(const char *what, uint64_t which) {
    sum->duplicated++;
    fprintf(stderr, "more than there should be: %s %" PRIu64 "\n", what, which);
}

/* --- the server -------------------------------------------------------------------------------------------*/

static inline void campaign_paths(const campaign *c, char set[4][512]) {
    snprintf(set[0], sizeof set[0], "store.path=%s", weir_test_path(c->store));
    snprintf(set[1], sizeof set[1], "eventlog.path=%s", weir_test_path(c->log));
    snprintf(set[2], sizeof set[2], "store.seal_interval=%" PRIu64 "ms", c->seal_ms);
    snprintf(set[3], sizeof set[3], "store.shards=%d", SHARDS);
}

static inline bool readable_until(int fd, int64_t end_us) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int64_t left_us = end_us - weir_clock_mono_us(weir_clock_system());
    return left_us > 0 && poll(&wait, 1, (int)(left_us / 1000) + 1) == 1;
}

/* Its port is 0 where it ended, or its time came, before it said its address. */
static inline void server_start(const campaign *c, const kill_point *point, uint64_t passes, int64_t end_us,
                                serve_child *server) {
    char set[4][512], kill_at[128], kafka[128];
    campaign_paths(c, set);
    snprintf(kafka, sizeof kafka, "--kafka=%s", the_stream->kafka ? the_stream->kafka : "");
    const char *const arguments[] = {"--schema",
                                     weir_test_path("schema.yaml"),
                                     "--models",
                                     weir_test_path("models"),
                                     "--set",
                                     set[0],
                                     "--set",
                                     set[1],
                                     "--set",
                                     set[2],
                                     "--set",
                                     set[3],
                                     "--set",
                                     "eventlog.partitions=2",
                                     "--set",
                                     "log.level=error",
                                     the_stream->kafka ? kafka : NULL,
                                     NULL};
    if (point) {
        snprintf(kill_at, sizeof kill_at, "%s:%" PRIu64, point->name, passes);
        setenv("WEIR_KILL_AT", kill_at, 1);
    }
    serve_spawn(server, arguments);
    unsetenv("WEIR_KILL_AT");
    if (readable_until(server->out, end_us)) serve_read_port(server);
}

static inline bool connect_to(campaign *c, const serve_child *server) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(server->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->client =
        (http_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .bytes = malloc(CLIENT_BYTES_MAX + 1)};
    assert_true(c->client.fd >= 0 && c->client.bytes);
    c->connected = connect(c->client.fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (!c->connected) client_close(&c->client);
    return c->connected;
}

static inline void disconnect(campaign *c) {
    if (c->connected) client_close(&c->client);
    c->connected = false;
}

/* Wants an answer of the server that is not to be killed; NULL for 404. */
static inline json_t *ask(campaign *c, const char *path) {
    char text[256];
    http_answer answer;
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    assert_true(client_text(&c->client, text));
    client_read(&c->client, &answer);
    if (answer.status != 200 && answer.status != 404)
        fail_msg("%s: %d %s", path, answer.status, answer.body ? answer.body : "");
    json_t *root = answer.status == 200 ? json_loads(answer.body, 0, NULL) : NULL;
    assert_true(root || answer.status == 404);
    answer_free(&answer);
    return root;
}

/* --- the server's answers and the client's book ---------------------------------------------------------------*/

/* Newest first on both sides: what stands in one only is lost, or there once too often. A full answer may end within
 * edges of the same time. */
static inline void compare_edges(const char *path, const json_t *list, const oracle_edge *wanted, size_t wanted_count) {
    oracle_edge *found;
    size_t count = answered_edges(list, &found), i = 0, w = 0;
    int64_t end_us = count == LIST_MAX ? found[count - 1].time_us : INT64_MIN;
    while (count > 0 && found[count - 1].time_us == end_us)
        count--;
    while (wanted_count > 0 && wanted[wanted_count - 1].time_us <= end_us && end_us != INT64_MIN)
        wanted_count--;
    while (i < count || w < wanted_count) {
        int order = i == count ? 1 : w == wanted_count ? -1 : oracle_order(&found[i], &wanted[w]);
        if (order < 0) doubled(path, (uint64_t)found[i].time_us);
        if (order > 0) lose(path, (uint64_t)wanted[w].time_us);
        i += order <= 0;
        w += order >= 0;
    }
    free(found);
}

static inline void compare_neighbors(campaign *c, const oracle *o, bool of_account, unsigned number) {
    char path[96];
    oracle_edge *wanted;
    size_t count = oracle_edges(o, of_account, number, &wanted);
    snprintf(path, sizeof path, "/v1/neighbors/%s/%c%u?limit=%d", of_account ? "account" : "card",
             of_account ? 'a' : 'c', number, LIST_MAX);
    json_t *root = ask(c, path);
    if (root || oracle_is_known(o, of_account, number))
        compare_edges(path, json_object_get(root, "neighbors"), wanted, count);
    json_decref(root);
    free(wanted);
}

static inline void compare_fact(const oracle *o, const char *path, unsigned account, oracle_fact fact, int found) {
    if (oracle_allows(o, account, fact, found)) return;
    if (oracle_allows(o, account, fact, -1)) {
        doubled(path, (uint64_t)fact);
    } else {
        lose(path, (uint64_t)fact);
    }
}

static inline int number_of(const json_t *object, const char *name) {
    const json_t *number = json_object_get(object, name);
    return json_is_number(number) ? (int)json_number_value(number) : -1;
}

/* A label alone names nobody. */
static inline void compare_vertex(campaign *c, const oracle *o, unsigned number) {
    char path[64];
    snprintf(path, sizeof path, "/v1/vertices/account/a%u", number);
    json_t *root = ask(c, path), *features = json_object_get(root, "features");
    const json_t *label = json_object_get(json_object_get(root, "labels"), "risk");
    const char *risk = json_string_value(json_object_get(label, "value"));
    if (root || oracle_is_known(o, true, number)) {
        compare_fact(o, path, number, FACT_AGE, number_of(features, "age"));
        compare_fact(o, path, number, FACT_LIMIT, number_of(features, "limit"));
        compare_fact(o, path, number, FACT_RISK, !risk ? -1 : strcmp(risk, "low") != 0);
    }
    json_decref(root);
}

static inline void compare_graph(campaign *c) {
    static oracle o;
    oracle_begin(&o, &c->book);
    for (unsigned i = 0; i < BOOK_ACCOUNTS; i++) {
        compare_neighbors(c, &o, true, i);
        compare_vertex(c, &o, i);
    }
    for (unsigned i = 0; i < BOOK_CARDS; i++)
        compare_neighbors(c, &o, false, i);
}

/* --- dead letters -------------------------------------------------------------------------------------------*/

static inline void see_letter(const weir_record *record, uint32_t *seen, const book *b) {
    weir_dead_letter letter;
    assert_ok(weir_dead_letter_read(record, &letter));
    size_t number = book_number(letter.bytes, letter.length);
    assert_in_range(number, 0, b->count - 1);
    seen[number]++;
}

/* A broken message becomes one each time that it stands in the log; so does one with the id of another. */
static inline uint32_t letters_wanted(const book_event *event) {
    return event->acknowledged ? event->losers + (event->broken ? 1 + event->copies : 0) : 0;
}

static inline void compare_letters(const campaign *c) {
    const weir_eventlog_opts opts = {.read_only = true};
    weir_eventlog *log;
    weir_eventlog_reader *reader;
    weir_record records[64];
    size_t count = 1;
    uint32_t *seen = weir_calloc(c->book.count + 1, sizeof *seen);
    assert_non_null(seen);
    assert_ok(weir_eventlog_open(weir_test_path("log"), WEIR_DEAD_LETTER_TOPIC, &opts, &log));
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    while (count) {
        assert_ok(weir_eventlog_reader_next(reader, records, 64, &count));
        for (size_t i = 0; i < count; i++)
            see_letter(&records[i], seen, &c->book);
    }
    for (size_t i = 0; i < c->book.count; i++) {
        if (seen[i] < letters_wanted(&c->book.events[i])) lose("the dead letter of event", i);
        if (seen[i] > letters_wanted(&c->book.events[i])) doubled("the dead letter of event", i);
    }
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
    weir_free(seen);
}

/* --- after a kill -------------------------------------------------------------------------------------------*/

static inline int weir_run(const char *const *arguments) {
    const char *argv[16] = {weir_test_program()};
    weir_test_output output;
    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    weir_test_run(argv, NULL, &output);
    int status = output.status;
    if (status && status != 128 + SIGKILL) fprintf(stderr, "weir %s: %s%s", arguments[1], output.out, output.err);
    weir_test_output_free(&output);
    return status;
}

/* Killed before there was a store: graph.yaml comes last. One that is lost is no excuse. */
static inline bool is_being_made(const char *store) {
    char description[1024], marker[1024], shard[1024];
    snprintf(description, sizeof description, "%s/graph.yaml", store);
    snprintf(marker, sizeof marker, "%s/CREATING", store);
    snprintf(shard, sizeof shard, "%s/shard-000", store);
    return !weir_path_exists(description) && (weir_path_exists(marker) || !weir_path_exists(shard));
}

/* Each shard is what the log says below its own offsets (S1, S3). */
static inline void verify(const char *store) {
    const char *const log[] = {
        "store", "verify", "--path", store, the_stream->kafka ? NULL : "--against-log", "--log", weir_test_path("log"),
        NULL};
    if (is_being_made(store)) return;
    if (weir_run(log) != 0) lose("the store's agreement with the log after cycle", sum->cycles);
}

/* How many events the graph has, by the freshness of an answer. */
static inline uint64_t applied(campaign *c) {
    uint64_t total = 0;
    size_t i;
    json_t *root = ask(c, "/readyz"), *part;
    json_t *source = json_object_get(json_object_get(root, "freshness"), "cards");
    json_array_foreach(json_object_get(source, "applied"), i, part) total += (uint64_t)json_integer_value(part);
    json_decref(root);
    return total;
}

static inline void await_all(campaign *c) {
    uint64_t now = 0;
    for (int waited_ms = 0; waited_ms < CAUGHT_UP_MS && now < c->book.records; waited_ms += 5) {
        now = applied(c);
        if (now < c->book.records) usleep(5000);
    }
    if (now < c->book.records) lose("events that are never applied:", c->book.records - now);
    if (now > c->book.records) doubled("events:", now - c->book.records);
}

/* --- the log is the truth -----------------------------------------------------------------------------------*/

static inline void remove_if_there(const char *name) {
    if (weir_path_exists(weir_test_path(name))) assert_ok(weir_folder_remove(weir_test_path(name)));
}

/* What a shell says, whole; free it. */
static inline char *said_by(const char *script) {
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    weir_test_output output;
    weir_test_run(argv, NULL, &output);
    if (output.status) fail_msg("%s: %d %s", script, output.status, output.err);
    char *said = strdup(output.out);
    weir_test_output_free(&output);
    return said;
}

/* Of what is sealed, in an order that hangs on nothing but keys and values; free it. Where a trim may have taken older
 * rows, the newest of each vertex, and not since when it says so. */
static inline char *export_of(const campaign *c, const char *store) {
    static const char newest[] =
        "awk -F, '!/account/ { print } $4 != \"\" { print $1 \" is \" $4 } "
        "/account/ && $3 + 0 >= time[$1] { time[$1] = $3 + 0; row[$1] = $1 \",\" $5 \",\" $6 } "
        "END { for (id in row) print row[id] }'";
    char script[4096];
    remove_if_there("snapshot");
    remove_if_there("export");
    snprintf(script, sizeof script,
             "'%s' snapshot build '%s' --path '%s' >&2 && '%s' snapshot export '%s' '%s' >&2 && "
             "{ %s '%s/nodes.csv' && cat '%s/edges.csv'; } | LC_ALL=C sort",
             weir_test_program(), weir_test_path("snapshot"), weir_test_path(store), weir_test_program(),
             weir_test_path("snapshot"), weir_test_path("export"), c->may_be_trimmed ? newest : "cat",
             weir_test_path("export"), weir_test_path("export"));
    return said_by(script);
}

/* Both are sorted. What a trim has taken is missing, of rows and labels only: the edges that are exported have not
 * expired. Nothing may have come instead. */
static inline bool has_no_others(const char *anew, const char *lived) {
    bool all_edges = true;
    while (*anew) {
        size_t length = strcspn(anew, "\n") + 1;
        bool is_there = strncmp(anew, lived, length) == 0;
        if (is_there) lived += length;
        all_edges = all_edges && (is_there || !memmem(anew, length, ",holds,", 7));
        anew += length;
    }
    return all_edges && *lived == 0;
}

static inline void say_first_difference(const char *a, const char *b) {
    while (*a && *a == *b) {
        const char *line_a = strchr(a, '\n'), *line_b = strchr(b, '\n');
        if (!line_a || !line_b || line_a - a != line_b - b || memcmp(a, b, (size_t)(line_a - a)) != 0) break;
        a = line_a + 1;
        b = line_b + 1;
    }
    fprintf(stderr, "  the store has     %.*s\n  made anew it has  %.*s\n", (int)strcspn(a, "\n"), a,
            (int)strcspn(b, "\n"), b);
}

/* It may say something else in each life. Events are 500 s late at most: no trim takes what they need. */
static inline void write_schema(const campaign *c, bool has_history) {
    char text[sizeof book_schema + 128];
    const char *history = has_history ? "history: 1000s, " : "";
    int length = snprintf(text, sizeof text, book_schema, history, history, history, c->topic);
    assert_ok(weir_file_replace(weir_test_path("schema.yaml"), text, (size_t)length));
}

/* A server with an empty store and the same key of ids reads a copy of the log from its first event on; its store is
 * exported as the other one, that was killed, restored and read on for as many cycles as it had. */
static inline void compare_rebuilt(campaign *c) {
    char script[2048];
    serve_child server;
    remove_if_there("rebuilt");
    remove_if_there("rebuilt-log");
    snprintf(script, sizeof script, "cp -a '%s' '%s'", weir_test_path("log"), weir_test_path("rebuilt-log"));
    if (!the_stream->kafka) free(said_by(script));
    c->store = "rebuilt";
    c->log = "rebuilt-log";
    write_schema(c, false);
    server_start(c, NULL, 0, INT64_MAX / 2, &server);
    assert_true(server.port);
    serve_await(&server, "/readyz", NULL, 200, NULL);
    assert_true(connect_to(c, &server));
    await_all(c);
    disconnect(c);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    c->store = "store";
    c->log = "log";
    char *lived = export_of(c, "store"), *anew = export_of(c, "rebuilt");
    if (c->may_be_trimmed ? !has_no_others(anew, lived) : strcmp(lived, anew) != 0) {
        say_first_difference(lived, anew);
        lose("the store's agreement with one made anew from the log after cycle", sum->cycles);
    }
    sum->rebuilt++;
    free(lived);
    free(anew);
}

/* As the kill left it, and as a server makes of it. That one ends as untidily, or tidily. */
static inline void check(campaign *c) {
    serve_child server;
    verify(weir_test_path("store"));
    the_stream->compare_log(c);
    server_start(c, NULL, 0, INT64_MAX / 2, &server);
    assert_true(server.port);
    serve_await(&server, "/readyz", NULL, 200, NULL);
    assert_true(connect_to(c, &server));
    assert_true(the_stream->send(c, &server, 0));
    await_all(c);
    compare_graph(c);
    compare_letters(c);
    disconnect(c);
    bool tidy = weir_rng_below(&c->rng, 2);
    fprintf(stderr, "  %zu events are there; %s\n", c->book.acknowledged, tidy ? "stopped" : "killed");
    assert_int_equal(serve_end(&server, tidy ? SIGTERM : SIGKILL), tidy ? 0 : 128 + SIGKILL);
    if (tidy && c->book.acknowledged && weir_rng_below(&c->rng, 2)) compare_rebuilt(c);
}

/* --- checkpoints: made while no server runs -----------------------------------------------------------------*/

static inline bool make_checkpoint(const kill_point *point, uint64_t passes) {
    char spec[128];
    const char *const arguments[] = {
        "store", "checkpoint", weir_test_path("checkpoint"), "--path", weir_test_path("store"), NULL};
    remove_if_there("checkpoint");
    if (point) {
        snprintf(spec, sizeof spec, "%s:%" PRIu64, point->name, passes);
        setenv("WEIR_KILL_AT", spec, 1);
    }
    int status = weir_run(arguments);
    unsetenv("WEIR_KILL_AT");
    assert_int_equal(status, point ? 128 + SIGKILL : 0);
    if (point) assert_false(weir_path_exists(weir_test_path("checkpoint"))); /* a name is borne by whole ones only */
    return point != NULL;
}

/* The next life begins from a restored copy. */
static inline void go_on_from_checkpoint(void) {
    fprintf(stderr, "  the store is restored from a checkpoint\n");
    make_checkpoint(NULL, 0);
    remove_if_there("store");
    const char *const arguments[] = {
        "store", "restore", weir_test_path("checkpoint"), "--path", weir_test_path("store"), NULL};
    assert_int_equal(weir_run(arguments), 0);
    verify(weir_test_path("store"));
}

/* --- a cycle ------------------------------------------------------------------------------------------------*/

static inline void start_afresh(campaign *c) {
    if (the_stream->end && c->epoch) the_stream->end(c);
    remove_if_there("store");
    remove_if_there("log");
    remove_if_there("checkpoint");
    book_clear(&c->book);
    c->sent = 0;
    snprintf(c->topic, sizeof c->topic, "cards-%" PRIu64, c->epoch++);
    the_stream->begin(c);
    c->may_be_trimmed = weir_rng_below(&c->rng, 2);
}

/* Streams until the server is dead: by its own point, or by us at the end of its life. */
static inline int stream_until_dead(campaign *c, serve_child *server, int64_t end_us) {
    weir_clock *clock = weir_clock_system();
    bool alive = the_stream->kafka || (server->port && connect_to(c, server));
    while (alive && weir_clock_mono_us(clock) < end_us) {
        alive = the_stream->send(c, server, 1 + weir_rng_below(&c->rng, 100));
        usleep((useconds_t)weir_rng_below(&c->rng, 1500));
    }
    disconnect(c);
    int status;
    while (waitpid(server->pid, &status, WNOHANG) == 0) {
        if (weir_clock_mono_us(clock) >= end_us) kill(server->pid, SIGKILL);
        usleep(500);
    }
    close(server->out);
    return status;
}

static inline bool is_of(const kill_point *point, const char *what) {
    return point && strncmp(point->name, what, strlen(what)) == 0;
}

/* A seal comes within milliseconds, or not at all in this life, so that there is much to replay. */
static inline void choose_seal(campaign *c, const kill_point *point) {
    bool seals = point ? true : weir_rng_below(&c->rng, 3) != 0;
    c->seal_ms = seals ? 10 + weir_rng_below(&c->rng, 40) : 600000;
}

static inline void live_and_die(campaign *c, kill_point *point) {
    serve_child server;
    bool in_server = point && !is_of(point, "checkpoint.");
    uint64_t passes = point ? 1 + weir_rng_below(&c->rng, point->passes_max) : 0;
    int64_t life_ms = in_server ? LIFE_OF_POINT_MS : 1 + (int64_t)weir_rng_below(&c->rng, the_stream->life_max_ms);
    int64_t end_us = weir_clock_mono_us(weir_clock_system()) + life_ms * 1000;
    server_start(c, in_server ? point : NULL, passes, end_us, &server);
    int status = stream_until_dead(c, &server, end_us);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (in_server) point->reached += weir_clock_mono_us(weir_clock_system()) < end_us;
    if (is_of(point, "checkpoint.")) {
        check(c); /* so that all shards are there */
        point->reached += make_checkpoint(point, passes);
    }
}

static inline void cycle(campaign *c, kill_point *point) {
    if (c->cycle % FRESH_EVERY == 0) start_afresh(c);
    size_t before = c->book.acknowledged;
    bool has_history = is_of(point, "trim.") || (c->may_be_trimmed && weir_rng_below(&c->rng, 4));
    c->may_be_trimmed = c->may_be_trimmed || has_history;
    choose_seal(c, point);
    write_schema(c, has_history);
    fprintf(stderr, "cycle %" PRIu64 ": %s, sealing every %" PRIu64 " ms, %s history\n", c->cycle,
            point ? point->name : "any moment", c->seal_ms, has_history ? "a" : "no");
    live_and_die(c, point);
    check(c);
    if (weir_rng_below(&c->rng, 4) == 0) go_on_from_checkpoint();
    sum->cycles++;
    sum->events += c->book.acknowledged - before;
    assert_int_equal(sum->lost, 0);
    assert_int_equal(sum->duplicated, 0);
}

/* Which of two messages of one time counts hangs on the ids, so all stores of a campaign share their key. */
static inline void share_id_key(void) {
    FILE *file = fopen(weir_test_path("id_key"), "w");
    assert_non_null(file);
    for (int i = 0; i < 16; i++)
        fprintf(file, "%02x", (unsigned)weir_rng_fresh_seed() & 255u);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(weir_test_path("id_key"), 0600), 0);
    setenv("WEIR_STORE_ID_KEY", weir_test_path("id_key"), 1);
}

/* Three cycles of four end at a point; a seed begins anywhere in their row. */
static inline void run_campaign(const stream *events, uint64_t cycles) {
    campaign c = {.seal_ms = 10, .store = "store", .log = "log"};
    the_stream = events;
    share_id_key();
    setenv("WEIR_INGEST_EVENT_WINDOW", "16777216", 1); /* the oracle remembers every id, for as long as it runs */
    sum->seed = weir_test_seed();
    c.rng = weir_rng_stream(sum->seed, 0, 0);
    uint64_t next = weir_rng_below(&c.rng, events->point_count), at_points = 0;
    for (c.cycle = 0; c.cycle < cycles; c.cycle++) {
        bool at_point = c.cycle % 4 != 3;
        cycle(&c, at_point ? &events->points[next++ % events->point_count] : NULL);
        at_points += at_point;
    }
    for (size_t i = 0; at_points >= events->point_count && i < events->point_count; i++)
        if (!events->points[i].reached) fail_msg("the point %s was never reached", events->points[i].name);
    weir_free(c.book.events);
}

static inline uint64_t cycles_wanted(uint64_t normal) {
    const char *given = getenv("WEIR_TEST_CRASH_CYCLES");
    return given ? strtoull(given, NULL, 10) : weir_test_rounds(normal);
}

/* The case is a process of its own: what it counts is shared. */
static inline bool campaign_share(void) {
    setenv("WEIR_TEST_TIMEOUT_MULTIPLIER", "30", 0);
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return sum != MAP_FAILED;
}

static inline void campaign_say(void) {
    if (!sum->cycles) return;
    printf("%" PRIu64 " cycles, %" PRIu64 " events, %" PRIu64 " lost, %" PRIu64 " duplicated, %" PRIu64
           " stores as made anew, seed %" PRIu64 "\n",
           sum->cycles, sum->events, sum->lost, sum->duplicated, sum->rebuilt, sum->seed);
}

#endif /* WEIR_CRASH_SERVE_CAMPAIGN_H */

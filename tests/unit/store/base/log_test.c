/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#include "json_reader.h"
#include "terminal.h"

/* 2026-11-21T10:00:00Z */
#define WALL_US (1795255200 * WEIR_US_PER_S)
#define TS      "\"ts\":\"2026-11-21T10:00:00.000000Z\""

/* Each write arrives as one packet, so that the test sees what was written by one call. */
static int packets;
static weir_clock *manual;

static void set_up(weir_log_format format, int64_t repeat_us) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    packets = ends[0];
    weir_clock *earlier = manual;
    assert_ok(weir_clock_manual_open(WALL_US, &manual));
    weir_log_setup(&(weir_log_opts){
        .level = WEIR_LOG_DEBUG, .format = format, .fd = ends[1], .repeat_us = repeat_us, .clock = manual});
    weir_clock_close(earlier);
}

/* The next packet, ended by 0; "" when there is none. */
static const char *next_packet(void) {
    static char packet[WEIR_LOG_LINE_MAX + 100];
    ssize_t got = read(packets, packet, sizeof packet - 1);
    packet[got < 0 ? 0 : got] = 0;
    return packet;
}

/* A packet is one line: valid, ended, not too long. */
static const char *next_json(void) {
    const char *line = next_packet();
    size_t length = strlen(line);
    if (length == 0) return line;
    assert_true(length <= WEIR_LOG_LINE_MAX);
    assert_int_equal(line[length - 1], '\n');
    if (!json_is_valid(line, length - 1)) fail_msg("not valid: %s", line);
    return line;
}

/* --- a line ---------------------------------------------------------------------------------------------------- */

static void json_line_word_for_word(void **state) {
    (void)state;
    set_up(WEIR_LOG_AUTO, 0);
    weir_thread_adopt("tester", WEIR_ROLE_TEST);
    WEIR_LOG(INFO, "a.plain", "nothing special");
    assert_string_equal(next_json(), "{" TS ",\"level\":\"info\",\"event\":\"a.plain\",\"msg\":\"nothing special\","
                                     "\"thread\":\"tester\"}\n");
    WEIR_LOG(WARN, "a.full", "all \"types\"", WEIR_U64("u", UINT64_MAX), WEIR_I64("i", -1), WEIR_F64("f", 0.5),
             WEIR_F64("nan", NAN), WEIR_TEXT("t", "a\nb"), WEIR_TEXT("none", NULL));
    assert_string_equal(next_json(), "{" TS ",\"level\":\"warn\",\"event\":\"a.full\",\"msg\":\"all \\\"types\\\"\","
                                     "\"thread\":\"tester\",\"u\":18446744073709551615,\"i\":-1,\"f\":0.5,"
                                     "\"nan\":null,\"t\":\"a\\nb\",\"none\":null}\n");
    weir_log_write(WEIR_LOG_DEBUG, "a.format", NULL, 0, "%d of %s", 3, "four");
    assert_non_null(strstr(next_json(), "\"level\":\"debug\",\"event\":\"a.format\",\"msg\":\"3 of four\""));
    assert_string_equal(next_packet(), "");
}

static void human_line_word_for_word(void **state) {
    (void)state;
    set_up(WEIR_LOG_HUMAN, 0);
    WEIR_LOG(INFO, "a.plain", "nothing special");
    assert_string_equal(next_packet(), "10:00:00.000Z INFO  nothing special [a.plain]\n");
    weir_clock_manual_advance(manual, 1234567);
    WEIR_LOG(ERROR, "a.full", "look\033[2J\nhere", WEIR_U64("n", 7), WEIR_TEXT("path", "/a/b"),
             WEIR_TEXT("quoted", "a \"b\" c"), WEIR_TEXT("empty", ""), WEIR_TEXT("none", NULL),
             WEIR_TEXT("hostile", "\x07\x7F\xC2\x9B\xFF"));
    assert_string_equal(next_packet(), "10:00:01.234Z ERROR look\\x1b[2J\\nhere n=7 path=/a/b quoted=\"a \\\"b\\\" c\" "
                                       "empty=\"\" none=null hostile=\\x07\\x7f\\x9b\xEF\xBF\xBD [a.full]\n");
}

static void error_carries_code_and_place(void **state) {
    (void)state;
    set_up(WEIR_LOG_JSON, 0);
    weir_log_error("a.failed", WEIR_ERR(WEIR_EFULL, "no room; free some"));
    const char *line = next_json();
    assert_non_null(strstr(line, "\"level\":\"error\",\"event\":\"a.failed\",\"msg\":\"no room; free some\""));
    assert_non_null(strstr(line, "\"code\":\"EFULL\",\"place\":\""));
    assert_non_null(strstr(line, "log_test.c:"));
}

static void lower_levels_are_not_even_made(void **state) {
    (void)state;
    unsigned made = 0;
    set_up(WEIR_LOG_JSON, 0);
    weir_log_opts opts = weir_log_defaults();
    assert_int_equal(opts.level, WEIR_LOG_INFO);
    assert_int_equal(opts.fd, 2);
    opts.level = WEIR_LOG_WARN;
    weir_log_setup(&opts);
    assert_false(weir_log_enabled(WEIR_LOG_INFO));
    assert_true(weir_log_enabled(WEIR_LOG_WARN));
    WEIR_LOG(INFO, "a.quiet", "not seen", WEIR_U64("made", ++made));
    assert_int_equal(made, 0);
    weir_log_write(WEIR_LOG_INFO, "a.quiet", NULL, 0, "not seen");
    assert_string_equal(next_packet(), "");
}

/* --- lines that are too long ------------------------------------------------------------------------------------ */

/* From lengths that fit to ones that do not: whole and unmarked, or cut and marked, and always valid. */
static void cut_at_every_length(void **state) {
    (void)state;
    static char text[5000];
    size_t longest_whole = 0;
    set_up(WEIR_LOG_JSON, 0);
    for (size_t length = 0; length < sizeof text - 1; length += length < 3700 || length > 4200 ? 61 : 1) {
        memset(text, 'x', length);
        text[length] = 0;
        WEIR_LOG(INFO, "a.long", "long", WEIR_TEXT("text", text), WEIR_U64("after", 7));
        const char *line = next_json();
        bool cut = strstr(line, ",\"cut\":true}\n") != NULL;
        bool whole = strstr(line, text) && strstr(line, "x\",\"after\":7}\n");
        assert_true(cut != whole || length == 0);
        assert_true(length == 0 || strstr(line, "\"text\":\"x"));
        if (whole) longest_whole = length;
    }
    assert_true(longest_whole > WEIR_LOG_LINE_MAX - 200);
}

static void cut_between_characters_and_keeps_what_is_behind(void **state) {
    (void)state;
    static char text[6001];
    set_up(WEIR_LOG_JSON, 0);
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xE2\x82\xAC", 4);
        WEIR_LOG(INFO, "a.euros", "long", WEIR_TEXT("text", text), WEIR_U64("after", 7));
        const char *line = next_json();
        assert_null(strstr(line, "\xEF\xBF\xBD"));
        assert_non_null(strstr(line, "\xE2\x82\xAC\",\"after\":7,\"cut\":true}\n"));
    }
}

static void message_of_controls_leaves_room(void **state) {
    (void)state;
    char text[2000];
    memset(text, 1, sizeof text - 1);
    text[sizeof text - 1] = 0;
    set_up(WEIR_LOG_HUMAN, 0);
    WEIR_LOG(INFO, "a.long", text, WEIR_U64("after", 7));
    assert_non_null(strstr(next_packet(), "\\x01\\x01 after=7 [a.long]\n"));
    set_up(WEIR_LOG_JSON, 0);
    WEIR_LOG(INFO, "a.long", text, WEIR_U64("after", 7));
    assert_non_null(strstr(next_json(), "\"after\":7,\"cut\":true}\n"));
}

static void hostile_bytes_of_any_length_are_valid(void **state) {
    (void)state;
    static char text[2][6000];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    set_up(WEIR_LOG_JSON, 0);
    for (uint64_t round = 0; round < weir_test_rounds(2000); round++) {
        for (unsigned i = 0; i < 2; i++) {
            size_t length = weir_rng_below(&rng, 2) ? weir_rng_below(&rng, 100) : weir_rng_below(&rng, 5999);
            bool mild = weir_rng_below(&rng, 2);
            for (size_t j = 0; j < length; j++)
                text[i][j] = (char)(mild ? 'a' + weir_rng_below(&rng, 26) : 1 + weir_rng_below(&rng, 255));
            text[i][length] = 0;
        }
        weir_log_field fields[] = {WEIR_TEXT("first", text[0]), WEIR_TEXT("second", text[1]), WEIR_U64("n", round)};
        weir_log_write(WEIR_LOG_INFO, "a.hostile", fields, 3, "%s", text[weir_rng_below(&rng, 2)]);
        const char *line = next_json();
        assert_true(utf8_is_valid(line, strlen(line)));
        assert_non_null(strstr(line, "\"event\":\"a.hostile\",\"msg\":\""));
    }
}

static void hostile_bytes_stay_on_one_visible_line(void **state) {
    (void)state;
    static char text[6000];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    set_up(WEIR_LOG_HUMAN, 0);
    for (uint64_t round = 0; round < weir_test_rounds(300); round++) {
        size_t length = weir_rng_below(&rng, sizeof text);
        for (size_t i = 0; i < length; i++)
            text[i] = (char)(1 + weir_rng_below(&rng, 255));
        text[length] = 0;
        WEIR_LOG(INFO, "a.hostile", text, WEIR_TEXT("t", text));
        const char *line = next_packet();
        size_t bytes = strlen(line);
        assert_true(bytes > 0 && bytes <= WEIR_LOG_LINE_MAX && line[bytes - 1] == '\n');
        for (uint32_t code; *line != '\n'; line += bytes) {
            bytes = utf8_decode(line, strlen(line), &code);
            assert_true(bytes > 0 && code >= 0x20 && (code < 0x7F || code >= 0xA0));
        }
    }
}

static void fields_max_fit(void **state) {
    (void)state;
    weir_log_field fields[WEIR_LOG_FIELDS_MAX];
    set_up(WEIR_LOG_JSON, 0);
    for (unsigned i = 0; i < WEIR_LOG_FIELDS_MAX; i++)
        fields[i] = (weir_log_field)WEIR_U64("f", i);
    weir_log_write(WEIR_LOG_INFO, "a.many", fields, WEIR_LOG_FIELDS_MAX, "many");
    assert_non_null(strstr(next_json(), "\"f\":15}\n"));
}

/* --- repeats --------------------------------------------------------------------------------------------------- */

static void same_event_once_and_then_a_count(void **state) {
    (void)state;
    set_up(WEIR_LOG_JSON, 5 * WEIR_US_PER_S);
    for (unsigned i = 0; i < 10; i++)
        WEIR_LOG(WARN, "a.often", "often", WEIR_U64("i", i));
    assert_non_null(strstr(next_json(), "\"i\":0}"));
    assert_string_equal(next_packet(), "");
    assert_int_equal(weir_metric_counter(WEIR_METRIC_LOG_SUPPRESSED_LINES), 9);
    WEIR_LOG(INFO, "a.other", "another event is not held back");
    assert_non_null(strstr(next_json(), "\"a.other\""));
    weir_clock_manual_advance(manual, 5 * WEIR_US_PER_S - 1);
    WEIR_LOG(WARN, "a.often", "often", WEIR_U64("i", 10));
    assert_string_equal(next_packet(), "");
    weir_clock_manual_advance(manual, 1);
    WEIR_LOG(WARN, "a.often", "often", WEIR_U64("i", 11));
    const char *count = next_json();
    assert_non_null(strstr(count, "\"level\":\"warn\",\"event\":\"a.often\""));
    assert_non_null(strstr(count, "\"repeated\":10}"));
    assert_non_null(strstr(next_json(), "\"i\":11}"));
    assert_string_equal(next_packet(), "");
    weir_log_flush();
    assert_string_equal(next_packet(), "");
}

static void count_comes_with_any_line_or_flush_or_setup(void **state) {
    (void)state;
    set_up(WEIR_LOG_JSON, 5 * WEIR_US_PER_S);
    for (unsigned i = 0; i < 3; i++)
        WEIR_LOG(WARN, "a.often", "often");
    next_json();
    weir_clock_manual_advance(manual, 6 * WEIR_US_PER_S);
    WEIR_LOG(INFO, "a.other", "other");
    assert_non_null(strstr(next_json(), "\"repeated\":2}"));
    assert_non_null(strstr(next_json(), "\"a.other\""));
    WEIR_LOG(WARN, "a.often", "often");
    WEIR_LOG(WARN, "a.often", "often");
    next_json();
    weir_log_flush();
    assert_non_null(strstr(next_json(), "\"repeated\":1}"));
    WEIR_LOG(WARN, "a.often", "often");
    weir_log_opts opts = weir_log_defaults();
    weir_log_setup(&opts);
    assert_non_null(strstr(next_json(), "\"repeated\":1}"));
}

static void interval_of_zero_holds_nothing_back(void **state) {
    (void)state;
    set_up(WEIR_LOG_JSON, 0);
    for (unsigned i = 0; i < 5; i++) {
        WEIR_LOG(WARN, "a.often", "often");
        assert_non_null(strstr(next_json(), "\"a.often\""));
    }
}

/* What a model of one kind knows. */
/* G2: each counts, however soon it comes. */
static void audit_lines_are_never_held_back(void **state) {
    (void)state;
    set_up(WEIR_LOG_JSON, 1000);
    for (int i = 0; i < 3; i++) {
        WEIR_LOG(WARN, "audit.x", "line");
        assert_non_null(strstr(next_json(), "\"event\":\"audit.x\""));
    }
    assert_string_equal(next_json(), "");
}

typedef struct kind_model {
    char event[16];
    int64_t written_at_us;
    uint64_t held;
} kind_model;

static kind_model *kind_of(kind_model *models, const char *line) {
    return &models[strtoul(strstr(line, "kind.") + strlen("kind."), NULL, 10)];
}

/* Random events at random times, also of more kinds than there are slots: each count is what was held of its kind, none
 * is missing in the end, and as long as the kinds have slots none has two lines within an interval. */
static void g2_g3_model(uint64_t seed, unsigned kinds) {
    static kind_model models[100];
    int64_t now_us = 0;
    weir_rng rng = weir_rng_stream(seed, kinds, 0);
    set_up(WEIR_LOG_JSON, 1000);
    for (unsigned i = 0; i < 100; i++) {
        models[i] = (kind_model){.written_at_us = -1000};
        snprintf(models[i].event, sizeof models[i].event, "kind.%u.", i);
    }
    for (uint64_t round = 0; round <= 5000; round++) {
        kind_model *logged = &models[weir_rng_below(&rng, kinds)];
        int64_t passed = (int64_t)weir_rng_below(&rng, 40);
        weir_clock_manual_advance(manual, passed);
        now_us += passed;
        logged->held += round < 5000;
        if (round < 5000) WEIR_LOG(INFO, logged->event, "line");
        if (round == 5000) weir_log_flush();
        for (const char *line = next_json(); *line; line = next_json()) {
            const char *count = strstr(line, "\"repeated\":");
            kind_model *kind = kind_of(models, line);
            if (count) {
                uint64_t held = kind->held - (kind == logged && round < 5000); /* without the line to come */
                assert_int_equal(strtoull(count + strlen("\"repeated\":"), NULL, 10), held);
                kind->held -= held;
            } else {
                assert_ptr_equal(kind, logged);
                assert_true(kinds > 64 || now_us - kind->written_at_us >= 1000);
                kind->written_at_us = now_us;
                kind->held--;
            }
        }
    }
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(models[i].held, 0);
}

/* The 65th kind takes the slot of the one whose line is the oldest, so that the other 63 are still known. */
static void one_kind_more_than_slots_forgets_the_oldest(void **state) {
    (void)state;
    char events[65][16];
    set_up(WEIR_LOG_JSON, 1000);
    for (unsigned i = 0; i < 65; i++) {
        snprintf(events[i], sizeof events[i], "kind.%u.", (i + 30) % 65);
        WEIR_LOG(INFO, events[i], "line");
        assert_non_null(strstr(next_json(), events[i]));
        weir_clock_manual_advance(manual, 1);
    }
    for (unsigned i = 1; i < 65; i++) {
        WEIR_LOG(INFO, events[i], "line");
        assert_string_equal(next_packet(), "");
    }
    WEIR_LOG(INFO, events[0], "line");
    assert_non_null(strstr(next_json(), "\"repeated\":1}"));
    assert_non_null(strstr(next_json(), events[0]));
    WEIR_LOG(INFO, events[64], "line");
    assert_string_equal(next_packet(), "");
}

static void g2_g3_with_as_many_kinds_as_slots(void **state) {
    (void)state;
    g2_g3_model(weir_test_seed(), 64);
}

static void g3_with_one_kind_more_and_many(void **state) {
    (void)state;
    g2_g3_model(weir_test_seed(), 65);
    g2_g3_model(weir_test_seed(), 100);
}

/* --- where it goes --------------------------------------------------------------------------------------------- */

enum { THREADS = 4, LINES = 500 };

static void log_many(void *context) {
    for (uint64_t i = 0; i < LINES; i++)
        WEIR_LOG(INFO, "a.thread", "a line of a thread among others", WEIR_U64("i", i), WEIR_TEXT("who", context));
}

static void g1_lines_of_threads_do_not_mix(void **state) {
    (void)state;
    weir_thread *threads[THREADS];
    char names[THREADS][8], line[WEIR_LOG_LINE_MAX];
    unsigned count = 0;
    set_up(WEIR_LOG_JSON, 0);
    FILE *file = fopen(weir_test_path("log"), "w+");
    assert_non_null(file);
    weir_log_opts opts = {.fd = fileno(file), .clock = manual};
    weir_log_setup(&opts);
    for (unsigned i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof names[i], "t%u", i);
        assert_ok(weir_thread_start(names[i], WEIR_ROLE_TEST, log_many, names[i], &threads[i]));
    }
    for (unsigned i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
    rewind(file);
    for (; fgets(line, sizeof line, file); count++)
        assert_true(json_is_valid(line, strlen(line) - 1));
    assert_int_equal(count, THREADS * LINES);
    fclose(file);
}

static void g4_allocates_nothing_and_keeps_errno(void **state) {
    (void)state;
    weir_alloc_stats before, after;
    set_up(WEIR_LOG_JSON, 5 * WEIR_US_PER_S);
    weir_alloc_stats_get(&before);
    errno = EXDEV;
    for (unsigned i = 0; i < 200; i++)
        WEIR_LOG(INFO, i % 2 ? "a.odd" : "a.even", "line", WEIR_F64("f", 1.0 / 3), WEIR_TEXT("t", "\xFF"));
    weir_log_flush();
    assert_int_equal(errno, EXDEV);
    weir_alloc_stats_get(&after);
    assert_int_equal(after.allocations, before.allocations);
    weir_log_setup(&(weir_log_opts){.fd = -1, .clock = manual});
    errno = EXDEV;
    WEIR_LOG(INFO, "a.closed", "the write fails");
    assert_int_equal(errno, EXDEV);
}

static void works_before_it_is_set_up(void **state) {
    (void)state;
    int ends[2];
    char line[500];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    WEIR_LOG(DEBUG, "a.early", "below the usual level");
    WEIR_LOG(WARN, "a.early", "before any setup");
    ssize_t got = read(ends[0], line, sizeof line - 1);
    assert_true(got > 0);
    line[got] = 0;
    assert_non_null(strstr(line, "\"level\":\"warn\",\"event\":\"a.early\""));
    assert_true(json_is_valid(line, (size_t)got - 1));
}

static void reader_that_is_gone_or_asleep_harms_nobody(void **state) {
    (void)state;
    int ends[2];
    char bytes[4096] = {0};
    set_up(WEIR_LOG_JSON, 0);
    signal(SIGPIPE, SIG_IGN);
    close(packets);
    WEIR_LOG(INFO, "a.gone", "nobody reads");
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], bytes, sizeof bytes) > 0) {
    }
    weir_log_opts opts = {.fd = ends[1], .clock = manual};
    weir_log_setup(&opts);
    WEIR_LOG(INFO, "a.asleep", "is given up");
    opts.fd = -1;
    weir_log_setup(&opts);
    WEIR_LOG(INFO, "a.closed", "goes nowhere");
}

/* --- terminals -------------------------------------------------------------------------------------------------- */

static const char *on_terminal(weir_log_format format) {
    terminal t = terminal_open(80);
    set_up(format, 0);
    weir_log_setup(&(weir_log_opts){.format = format, .fd = t.fd, .clock = manual});
    WEIR_LOG(WARN, "a.b", "look", WEIR_U64("n", 1));
    return terminal_read(&t);
}

static void terminal_gets_colour_unless_refused(void **state) {
    (void)state;
    static const char plain[] = "10:00:00.000Z WARN  look n=1 [a.b]\n";
    static const char coloured[] = "10:00:00.000Z \033[33mWARN \033[0m look n=1 \033[2m[a.b]\033[0m\n";
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    assert_string_equal(on_terminal(WEIR_LOG_AUTO), coloured);
    assert_string_equal(on_terminal(WEIR_LOG_HUMAN), coloured);
    assert_true(json_is_valid(on_terminal(WEIR_LOG_JSON), strlen(on_terminal(WEIR_LOG_JSON)) - 1));
    setenv("NO_COLOR", "", 1); /* empty counts as unset */
    assert_string_equal(on_terminal(WEIR_LOG_AUTO), coloured);
    setenv("NO_COLOR", "1", 1);
    assert_string_equal(on_terminal(WEIR_LOG_AUTO), plain);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    assert_string_equal(on_terminal(WEIR_LOG_AUTO), plain);
}

WEIR_TESTS(WEIR_CASE(json_line_word_for_word), WEIR_CASE(human_line_word_for_word),
           WEIR_CASE(error_carries_code_and_place), WEIR_CASE(lower_levels_are_not_even_made),
           WEIR_CASE(cut_at_every_length), WEIR_CASE(cut_between_characters_and_keeps_what_is_behind),
           WEIR_CASE(message_of_controls_leaves_room), WEIR_CASE(hostile_bytes_of_any_length_are_valid),
           WEIR_CASE(hostile_bytes_stay_on_one_visible_line), WEIR_CASE(fields_max_fit),
           WEIR_CASE(same_event_once_and_then_a_count), WEIR_CASE(count_comes_with_any_line_or_flush_or_setup),
           WEIR_CASE(interval_of_zero_holds_nothing_back), WEIR_CASE(audit_lines_are_never_held_back),
           WEIR_CASE(g2_g3_with_as_many_kinds_as_slots), WEIR_CASE(g3_with_one_kind_more_and_many),
           WEIR_CASE(one_kind_more_than_slots_forgets_the_oldest), WEIR_CASE(g1_lines_of_threads_do_not_mix),
           WEIR_CASE(g4_allocates_nothing_and_keeps_errno), WEIR_CASE(works_before_it_is_set_up),
           WEIR_CASE(reader_that_is_gone_or_asleep_harms_nobody), WEIR_CASE(terminal_gets_colour_unless_refused))

/* SPDX-License-Identifier: Apache-2.0 */
/* log_test.c - `weir log` as its user meets it. */
#include "cli_support.h"

#include <unistd.h>

#include <weir/ingest/eventlog/eventlog.h>

/* Runs the line; status and both outputs as expected: NULL is "nothing", else a regular expression. */
static void expect(const char *line, int status, const char *out, const char *err) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "has another status than expected");
    CLI_ASSERT(out ? cli_matches(output.out, out) : !*output.out, line, &output, out ? out : "should print no result");
    CLI_ASSERT(err ? cli_matches(output.err, err) && cli_one_line(output.err) : !*output.err, line, &output,
               err ? err : "should say nothing on stderr");
    weir_test_output_free(&output);
}

static void append_then_cat(void **state) {
    (void)state;
    expect("printf 'one\\n\\nthree' | weir log append t -p d --partitions 1", 0, "^3 records acknowledged$", NULL);
    expect("[ \"$(weir log cat t -p d)\" = $'one\\n\\nthree' ]", 0, NULL, NULL);
    expect("weir log cat t -p d --from 2", 0, "^three$", NULL);
    expect("weir log cat t -p d --from 3", 0, NULL, NULL);
    expect("weir log cat t -p d --count 1 --json", 0,
           "^\\{\"partition\":0,\"offset\":0,\"time\":\"20.*Z\",\"key\":null,\"value\":\"one\"\\}$", NULL);
    expect("weir log cat t -p d | weir log append u -p d && weir log ls -p d --json", 0,
           "\"topic\":\"u\",.*\"partition\":3,.*\"offset_durable\":0,.*\"time_newest\":null", NULL);
    expect("printf '' | weir log append t -p d", 0, "^0 records acknowledged$", NULL);
    expect("printf '\\n' | weir log append t -p d", 0, "^1 records acknowledged$", NULL);
}

static void the_folder_may_come_from_the_configuration(void **state) {
    (void)state;
    expect("echo x | WEIR_EVENTLOG_PATH=elsewhere weir log append t && test -f elsewhere/t/topic", 0, "^1 records",
           NULL);
    expect("weir log ls --set eventlog.path=elsewhere", 0, "^t  .* 1 ", NULL);
    expect("weir log verify --set eventlog.path=elsewhere", 0, "^t: 4 partitions, .* 1 records, .* 0 damages$", NULL);
}

static void keys_choose_the_partition(void **state) {
    (void)state;
    expect("for i in 1 2 3 4 5 6; do echo \"{\\\"n\\\":$i,\\\"card\\\":\\\"c$((i % 2))\\\"}\"; done |"
           " weir log append t -p d --key-field card --partitions 16",
           0, "^6 records", NULL);
    expect("[ $(weir log cat t -p d --json | grep -o '\"partition\":[0-9]*,.*\"key\":\"c[01]\"' |"
           " sed 's/,.*key/ /' | sort -u | wc -l) = 2 ]",
           0, NULL, NULL);
    expect("echo x | weir log append t -p d --key same && echo y | weir log append t -p d --key same &&"
           " weir log cat t -p d --json | grep -c '\"key\":\"same\"'",
           0, "^2$", NULL);
    expect("echo x | weir log append t -p d --partition 7 && weir log cat t -p d --partition 7", 0, "^x$", NULL);
}

/* What is wrong is named, and how much before it is safe. */
static void a_wrong_line_ends_the_command_and_says_where(void **state) {
    (void)state;
    expect("(printf '{\"k\":1}\\n'; sleep 0.3; printf '{\"k\":2}\\n{\"z\":3}\\n') |"
           " weir log append t -p d --key-field k",
           65, NULL, "^weir log append: after [012] acknowledged records: line 3 of the input: there is no field 'k'");
    expect("printf '{\"k\":{}}\\n' | weir log append t -p d --key-field k", 65, NULL, "is an array or object");
    expect("printf '{\"k\\n' | weir log append t -p d --key-field k", 65, NULL, "line 1 of the input: byte 4");
}

static void wrong_usage(void **state) {
    (void)state;
    expect("echo x | weir log append t -p d --partitions 2", 0, "^1 records", NULL);
    expect("weir log append 'a b' -p d < /dev/null", 64, NULL, "'a b' cannot be the name of a topic");
    expect("weir log cat .. -p d", 64, NULL, "cannot be the name of a topic");
    expect("weir log verify a/b -p d", 64, NULL, "cannot be the name of a topic");
    expect("weir log append t -p d --key a --key-field b < /dev/null", 64, NULL, "not both");
    expect("weir log append t -p d --key-field '' < /dev/null", 64, NULL, "name of a field");
    expect("weir log append t -p d --partition 2 < /dev/null", 64, NULL, "partition");
    expect("weir log append t -p d --partitions 1025 < /dev/null", 64, NULL, "1024");
    expect("weir log cat t -p d --from 0", 64, NULL, "name it with --partition");
    expect("weir log cat t -p d --partition 2", 64, NULL, "partition");
    expect("weir log cat t -p d --partition 0 --from 9", 64, NULL, "ends at 1");
    expect("weir log cat t -p d --count 0", 64, NULL, "count");
    expect("weir log cat nope -p d", 65, NULL, "there is no topic 'nope'");
    expect("weir log verify nope -p d", 65, NULL, "nope");
    expect("weir log ls -p nowhere", 0, NULL, "no topics");
}

static void a_line_that_is_too_long(void **state) {
    (void)state;
    char line[256];
    unsigned most = WEIR_EVENTLOG_RECORD_MAX - WEIR_EVENTLOG_RECORD_OVERHEAD;
    snprintf(line, sizeof line, "head -c %u /dev/zero | weir log append t -p d", most);
    expect(line, 0, "^1 records", NULL);
    snprintf(line, sizeof line, "(echo short; sleep 0.3; head -c %u /dev/zero) | weir log append t -p d", most + 1);
    expect(line, 65, NULL, "after [012] acknowledged records: line 2 of the input is longer than 16777184 bytes");
    snprintf(line, sizeof line, "head -c %u /dev/zero | weir log append t -p d --key k", most);
    expect(line, 65, NULL, "line 1 of the input: key and line");
}

static void verify_names_file_and_position(void **state) {
    (void)state;
    expect("seq 100 | weir log append t -p d --partitions 1 && echo x | weir log append u -p d", 0, "^100 ", NULL);
    expect("printf X | dd of=d/t/00000/00000000000000000000.seg bs=1 seek=1000 conv=notrunc status=none", 0, NULL,
           NULL);
    expect(
        "weir log verify -p d", 65,
        "^t: d/t/00000/00000000000000000000.seg: byte [0-9]+ should be record [0-9]+ of those below 100: the checksum",
        "weir log verify: 1 damages");
    expect("weir log verify -p d 2> /dev/null || true", 0, "^u: .* 0 damages$", NULL);
    expect("weir log append t -p d < /dev/null", 65, NULL, "d/t/00000/0+.seg: byte .* nothing was changed");
    expect("weir log cat t -p d", 65, NULL, "d/t/00000/0+.seg: byte");
    expect("weir log ls -p d", 65, "^u  ", "d/t/00000/0+.seg: byte");
    expect("printf WEIRTOP2 > d/u/topic; weir log verify u -p d", 65, "^u: d/u/topic: written in version 2",
           "1 damages");
}

/* The error is that of the first, however many came after it. */
static void ls_of_many_unreadable_topics_ends_with_the_first(void **state) {
    (void)state;
    expect("echo x | weir log append t100 -p d --partitions 1 && printf WEIRTOP2 > d/t100/topic && "
           "for i in $(seq 101 400); do cp -r d/t100 d/t$i || exit 1; done",
           0, "^1 ", NULL);
    expect("(weir log ls -p d || echo $?) 2>&1 | tail -n 2", 0, "^weir log ls: d/t100/topic: written in version 2",
           NULL);
}

static void a_full_disk_loses_nothing_that_was_acknowledged(void **state) {
    (void)state;
    expect("seq 10 | weir log append t -p d --partitions 1", 0, "^10 ", NULL);
    expect("seq 11 20 | WEIR_FAULT=write:1:ENOSPC:/00000/ weir log append t -p d 2> err || echo $?", 0, "^69$", NULL);
    expect("tail -n 1 err", 0, "after 0 acknowledged records: cannot write .*No space left.*free", NULL);
    expect("seq 11 20 | weir log append t -p d && weir log cat t -p d | tr '\\n' ' '", 0, "^10 records|^1 2 .* 19 20 $",
           NULL);
}

static void a_second_writer_is_told_who_is_the_first(void **state) {
    (void)state;
    expect("mkfifo pipe; weir log append t -p d < pipe > out & pid=$!; exec 9> pipe; echo x >&9;"
           " until weir log cat t -p d 2> /dev/null | grep -q x; do sleep 0.02; done;"
           " echo y | weir log append t -p d 2> err || echo status $?; grep -c \"process $pid;\" err; exec 9>&-; wait",
           0, "^status 69$", NULL);
    expect("cat out", 0, "^1 records acknowledged$", NULL);
}

static void follow_sees_what_comes(void **state) {
    (void)state;
    expect("echo a | weir log append t -p d --partitions 1 > /dev/null; weir log cat t -p d --follow --count 3 > out & "
           "for x in b c; do sleep 0.2; echo $x | weir log append t -p d > /dev/null; done; wait; tr '\\n' ' ' < out",
           0, "^a b c $", NULL);
    expect(": > out; weir log cat t -p d --follow > out & pid=$!; until grep -q c out; do sleep 0.02; done; kill -TERM "
           "$pid;"
           " wait $pid",
           0, NULL, NULL);
}

static void head_ends_it_quietly(void **state) {
    (void)state;
    expect("seq 100000 | weir log append t -p d --partitions 1 && weir log cat t -p d | head -n 1", 0, "^1$", NULL);
}

WEIR_TESTS(WEIR_CASE(append_then_cat), WEIR_CASE(the_folder_may_come_from_the_configuration),
           WEIR_CASE(keys_choose_the_partition), WEIR_CASE(a_wrong_line_ends_the_command_and_says_where),
           WEIR_CASE(wrong_usage), WEIR_CASE(a_line_that_is_too_long), WEIR_CASE(verify_names_file_and_position),
           WEIR_CASE(ls_of_many_unreadable_topics_ends_with_the_first),
           WEIR_CASE(a_full_disk_loses_nothing_that_was_acknowledged),
           WEIR_CASE(a_second_writer_is_told_who_is_the_first), WEIR_CASE(follow_sees_what_comes),
           WEIR_CASE(head_ends_it_quietly))

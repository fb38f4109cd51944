/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

/* --- a program of our own ------------------------------------------------------------------------------------- */

/* What the last run of `tool show` saw. */
static struct {
    bool ran, verbose;
    uint64_t count;
    double share;
    int64_t wait_us, since_us;
    char path[64], format[16], positional[64], level[16], name[64], kafka[16], paths[64];
} seen;

static weir_err run_show(weir_cli *cli) {
    memset(&seen, 0, sizeof seen);
    seen.ran = true;
    seen.count = 3;
    seen.verbose = weir_cli_given(cli, "verbose");
    const char *kafka = weir_cli_text(cli, "kafka");
    snprintf(seen.kafka, sizeof seen.kafka, "%s", kafka ? kafka : weir_cli_given(cli, "kafka") ? "given" : "-");
    const char *path = weir_cli_text(cli, "path"), *format = weir_cli_text(cli, "format");
    snprintf(seen.path, sizeof seen.path, "%s", path ? path : "-");
    snprintf(seen.format, sizeof seen.format, "%s", format ? format : "-");
    snprintf(seen.name, sizeof seen.name, "%s", weir_cli_path(cli));
    snprintf(seen.level, sizeof seen.level, "%s", weir_config_text(weir_cli_config(cli), WEIR_CONFIG_LOG_LEVEL));
    for (size_t i = 0; (path = weir_cli_text_at(cli, "path", i)); i++)
        snprintf(seen.paths + strlen(seen.paths), 16, "%s,", path);
    for (size_t i = 0; i < weir_cli_positional_count(cli); i++)
        snprintf(seen.positional + strlen(seen.positional), 16, "%s,", weir_cli_positional(cli, i));
    assert_null(weir_cli_positional(cli, weir_cli_positional_count(cli)));
    weir_err err = weir_cli_u64(cli, "count", 1, 100, &seen.count);
    if (!err) err = weir_cli_f64(cli, "share", 0, 1, &seen.share);
    if (!err) err = weir_cli_us(cli, "wait", &seen.wait_us);
    if (!err) err = weir_cli_time(cli, "since", &seen.since_us);
    if (!err && !strcmp(seen.path, "no-such")) err = WEIR_ERR(WEIR_ENOTFOUND, "there is no folder\t%s", seen.path);
    if (!err && !strcmp(seen.path, "mistake")) err = WEIR_ERR(WEIR_EINTERNAL, "two and two are five");
    if (!err && !strcmp(seen.path, "usage")) err = WEIR_ERR(WEIR_EUSAGE, "it cannot be both");
    return err;
}

static const weir_option show_options[] = {
    {"path", 'p', "DIR", "folder of the log; default: here", NULL},
    {"count", 'n', "N", "how many; default: 3", NULL},
    {"format", 'f', "FORMAT", "how to print; default: text", "text|json"},
    {"share", 0, "X", "how much", NULL},
    {"wait", 0, "DURATION", "how long", NULL},
    {"since", 0, "TIME", "from when", NULL},
    {"verbose", 'v', NULL, "say more", NULL},
    {"kafka", 'k', "[HOST]", "from a broker", NULL},
    {"a-rather-long-option-with-a-name", 0, "AND-A-VALUE", "help on the next line", NULL},
    {0},
};
static const weir_command show = {
    .name = "show",
    .summary = "show what is there",
    .positional = "TOPIC [PARTITION]",
    .positional_min = 1,
    .positional_max = 2,
    .description = "A first paragraph that is long enough to be wrapped, because one line of ninety-six columns cannot "
                   "hold all of it.\n\nA second one.\n  as it stands",
    .example = "tool show a --count 5\ntool show b",
    .options = show_options,
    .run = run_show,
};

static weir_err run_raw(weir_cli *cli) {
    seen.positional[0] = 0;
    for (size_t i = 0; i < weir_cli_positional_count(cli); i++)
        snprintf(seen.positional + strlen(seen.positional), 16, "%s,", weir_cli_positional(cli, i));
    assert_null(weir_cli_config(cli));
    return WEIR_OK;
}
static const weir_command other = {
    .name = "other", .summary = "another program", .run = run_raw, .raw = true, .without_config = true};

static weir_err run_say(weir_cli *cli) {
    (void)cli;
    for (int i = 0; i < 20000; i++) {
        weir_err err = weir_cli_output("0123456789\n", 11);
        if (err) return err;
    }
    return WEIR_OK;
}
static const weir_command say = {.name = "say", .summary = "say a lot", .run = run_say};
static const weir_command *const group_commands[] = {&say, NULL};
static const weir_command group = {.name = "group", .summary = "a group", .subcommands = group_commands};
static const weir_command *const commands[] = {&show, &other, &group, NULL};
static const weir_command tool = {
    .name = "tool", .summary = "a tool", .example = "tool show a", .subcommands = commands, .version = "with love"};

/* --- running it ----------------------------------------------------------------------------------------------- */

static char out[65536], err[65536];

static void read_back(int fd, char *text, size_t size) {
    ssize_t length = pread(fd, text, size - 1, 0);
    assert_true(length >= 0);
    text[length] = 0;
    close(fd);
}

/* Words parted by blanks. */
static int run_line(const char *line) {
    char words[512], *argv[64] = {NULL};
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *rest = words, *word; (word = strsep(&rest, " "));)
        argv[argc++] = word;
    return weir_cli_main(&tool, "tool", argc, argv);
}

/* The same; out and err hold what was printed. */
static int run(const char *line) {
    int kept_out = dup(1), kept_err = dup(2);
    int to_out = open(weir_test_path("out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    int to_err = open(weir_test_path("err"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    fflush(NULL);
    dup2(to_out, 1);
    dup2(to_err, 2);
    memset(&seen, 0, sizeof seen);
    int status = run_line(line);
    fflush(NULL);
    dup2(kept_out, 1);
    dup2(kept_err, 2);
    close(kept_out);
    close(kept_err);
    read_back(to_out, out, sizeof out);
    read_back(to_err, err, sizeof err);
    return status;
}

/* The line ends with this status and this one sentence. */
static void fails(const char *line, int status, const char *sentence) {
    assert_int_equal(run(line), status);
    assert_string_equal(out, "");
    assert_string_equal(err, sentence);
}

static void an_option_that_is_repeated_counts_as_given_last_or_each(void **state) {
    (void)state;
    assert_int_equal(run("tool show a --path x -p y --count 4 --path=z"), 0);
    assert_string_equal(seen.path, "z");
    assert_string_equal(seen.paths, "x,y,z,");
    assert_int_equal(run("tool show a"), 0);
    assert_string_equal(seen.paths, "");
}

static void options_in_every_form(void **state) {
    (void)state;
    assert_int_equal(run("tool show a --count 5 --format=json -p DIR b"), 0);
    assert_string_equal(err, "");
    assert_int_equal(seen.count, 5);
    assert_string_equal(seen.format, "json");
    assert_string_equal(seen.path, "DIR");
    assert_string_equal(seen.positional, "a,b,");
    assert_string_equal(seen.name, "tool show");
    assert_false(seen.verbose);
    assert_int_equal(run("tool show -vn7 -pDIR - --share 0.25 --wait 15m --since 1970-01-02"), 0);
    assert_true(seen.verbose && seen.count == 7 && seen.share == 0.25);
    assert_true(seen.wait_us == 900 * WEIR_US_PER_S && seen.since_us == 86400 * WEIR_US_PER_S);
    assert_string_equal(seen.positional, "-,");
    assert_int_equal(run("tool show --count 5 --count 6 -- --count -n"), 0);
    assert_int_equal(seen.count, 6);
    assert_string_equal(seen.positional, "--count,-n,");
    /* An optional value is never the next word, nor the letters behind. */
    assert_int_equal(run("tool show -k a"), 0);
    assert_string_equal(seen.kafka, "given");
    assert_string_equal(seen.positional, "a,");
    assert_int_equal(run("tool show -kv --kafka a -p x"), 0);
    assert_true(seen.verbose && !strcmp(seen.kafka, "given") && !strcmp(seen.path, "x"));
    assert_int_equal(run("tool show a --kafka=h:1"), 0);
    assert_string_equal(seen.kafka, "h:1");
    assert_int_equal(run("tool show a --path=--x"), 0);
    assert_string_equal(seen.path, "--x");
    assert_int_equal(run("tool show a --path="), 0);
    assert_string_equal(seen.path, "");
}

static void wrong_words_are_one_sentence_with_the_nearest(void **state) {
    (void)state;
    fails("tool shwo", 64, "tool: tool has no command 'shwo'; did you mean 'show'?\n");
    fails("tool zzzzzz", 64, "tool: tool has no command 'zzzzzz'; see 'tool --help'\n");
    fails("tool group sya", 64, "tool group: tool group has no command 'sya'; did you mean 'say'?\n");
    fails("tool show a --cuont 5", 64, "tool show: unknown option --cuont; did you mean --count?\n");
    fails("tool show a --cuont=5", 64, "tool show: unknown option --cuont; did you mean --count?\n");
    fails("tool show a --zzzzzz", 64, "tool show: unknown option --zzzzzz; see 'tool show --help'\n");
    fails("tool show a --co 5", 64, "tool show: unknown option --co; see 'tool show --help'\n");
    fails("tool show a -x", 64, "tool show: unknown option -x; see 'tool show --help'\n");
    fails("tool show a --version", 64, "tool show: unknown option --version; see 'tool show --help'\n");
    fails("tool show", 64, "tool show: an argument is missing; it takes TOPIC [PARTITION]; see 'tool show --help'\n");
    fails("tool show a b c", 64,
          "tool show: 'c' is one argument too many; it takes TOPIC [PARTITION]; see 'tool show --help'\n");
    fails("tool group say x", 64,
          "tool group say: 'x' is one argument too many; it takes none; see 'tool group say --help'\n");
    fails("tool show a --count", 64, "tool show: --count needs a value, N; see 'tool show --help'\n");
    fails("tool show a --count --format json", 64,
          "tool show: --count needs a value, N; one that begins with -- is given as --count=--format; see 'tool show "
          "--help'\n");
    fails("tool show a --verbose=1", 64,
          "tool show: --verbose takes no value; write it alone; see 'tool show --help'\n");
    fails("tool show a --format jsno", 64,
          "tool show: --format is 'jsno'; it must be text or json; did you mean 'json'?\n");
    fails("tool --set log.level=warn other", 64,
          "tool: options of 'other' must follow its name; move --set there; see 'tool --help'\n");
}

static void wrong_values_name_option_and_range(void **state) {
    (void)state;
    assert_int_equal(run("tool show a --count 1"), 0);
    assert_int_equal(run("tool show a --count 100"), 0);
    static const char *const counts[] = {"0", "101", "-1", "+1", "1x", "x", "18446744073709551616", "1.0"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char line[128], sentence[256];
        snprintf(line, sizeof line, "tool show a --count=%s", counts[i]);
        snprintf(sentence, sizeof sentence,
                 "tool show: --count is '%s'; it must be a whole number from 1 to 100; see 'tool show --help'\n",
                 counts[i]);
        fails(line, 64, sentence);
    }
    static const char *const others[] = {"--share=1.01", "--share=nan", "--share=",       "--share=0x1",
                                         "--wait=5",     "--wait=x",    "--since=monday", "--since="};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "tool show a %s", others[i]);
        assert_int_equal(run(line), 64);
        assert_non_null(strstr(err, "; it must be a "));
    }
}

static void settings_come_from_file_environment_and_flags(void **state) {
    (void)state;
    char line[8192];
    const char *path = weir_test_path("weir.yaml");
    assert_ok(weir_file_replace(path, "log: {level: warn}\n", 19));
    snprintf(line, 500, "tool --config %s show a", path);
    assert_int_equal(run(line), 0);
    assert_string_equal(seen.level, "warn");
    setenv("WEIR_CONFIG", path, 1);
    assert_int_equal(run("tool show a"), 0);
    assert_string_equal(seen.level, "warn");
    setenv("WEIR_LOG_LEVEL", "error", 1);
    assert_int_equal(run("tool show a"), 0);
    assert_string_equal(seen.level, "error");
    assert_int_equal(run("tool --set log.level=debug show a --set log.level=info"), 0);
    assert_string_equal(seen.level, "info");
    setenv("WEIR_CONFIG", "/no/such/file", 1);
    fails("tool show a", 78,
          "tool show: /no/such/file: there is no such file; WEIR_CONFIG in the environment names it\n");
    fails("tool show a --config /no/other", 78, "tool show: /no/other: there is no such file; --config names it\n");
    setenv("WEIR_CONFIG", "", 1);
    assert_int_equal(run("tool show a"), 0);
}

static void config_is_printed_or_checked_without_running(void **state) {
    (void)state;
    assert_int_equal(run("tool show --check-config"), 0);
    assert_string_equal(out, "ok\n");
    assert_false(seen.ran);
    assert_int_equal(run("tool --print-config"), 0);
    assert_non_null(strstr(out, "log:\n  level: info "));
    assert_int_equal(run("tool --print-config=markdown"), 0);
    assert_memory_equal(out, "# Settings\n", 11);
    fails("tool --print-config=html", 64, "tool: --print-config is 'html'; it must be markdown; see 'tool --help'\n");
    fails("tool show a --set log.levle=x --check-config", 78,
          "tool show: --set log.levle=x: there is no setting 'log.levle'; did you mean 'log.level'?\n");
    fails("tool show a --set log.level", 64,
          "tool show: --set log.level: write it as KEY=VALUE, as in --set log.level=debug; see 'tool show --help'\n");
    setenv("WEIR_LOG_LEVLE", "x", 1);
    assert_int_equal(run("tool show a"), 78);
    assert_int_equal(run("tool show --help"), 0);
    assert_int_equal(run("tool --version"), 0);
    assert_int_equal(run("tool other"), 0);
}

static void help_is_made_from_the_table(void **state) {
    (void)state;
    assert_int_equal(run("tool show --help --no-such"), 0);
    assert_string_equal(err, "");
    assert_memory_equal(out, "usage: tool show TOPIC [PARTITION] [OPTIONS]\n", 45);
    assert_non_null(strstr(out, "\ntool show: show what is there\n"));
    assert_non_null(strstr(out, "columns\ncannot hold all of it.\n\nA second one.\n  as it stands\n"));
    assert_non_null(strstr(out, "\n  -p, --path DIR                 folder of the log; default: here\n"));
    assert_non_null(strstr(out, "how to print; default: text; text or json\n"));
    assert_non_null(strstr(out, "      --a-rather-long-option-with-a-name AND-A-VALUE\n                                "
                                " help on the next line\n"));
    assert_non_null(strstr(out, "      --print-config[=markdown]  print the settings"));
    assert_null(strstr(out, "--version"));
    assert_non_null(strstr(out, "\nexample:\n  tool show a --count 5\n  tool show b\n"));
    assert_int_equal(run("tool -h"), 0);
    assert_non_null(strstr(out, "\ncommands:\n  show   show what is there\n  other  another program\n"));
    assert_non_null(strstr(out, "--version"));
}

static void a_group_alone_is_its_help_on_stderr(void **state) {
    (void)state;
    assert_int_equal(run("tool"), 64);
    assert_string_equal(out, "");
    assert_memory_equal(err, "usage: tool COMMAND [OPTIONS]\n", 30);
    assert_int_equal(run("tool group"), 64);
    assert_memory_equal(err, "usage: tool group COMMAND [OPTIONS]\n", 36);
}

static void version_says_what_it_was_built_with(void **state) {
    (void)state;
    assert_int_equal(run("tool --version"), 0);
    assert_string_equal(out, "tool " WEIR_VERSION "\nwith love\n");
}

static void errors_become_one_sentence_and_a_status(void **state) {
    (void)state;
    fails("tool show a -p no-such", 65, "tool show: there is no folder?no-such\n");
    fails("tool show a -p usage", 64, "tool show: it cannot be both; see 'tool show --help'\n");
    assert_int_equal(run("tool show a -p mistake"), 70);
    assert_non_null(strstr(err, "tool show: two and two are five (at tests/unit/store/cli/cli_test.c:"));
    assert_non_null(strstr(err, "; please report this)\n"));
}

static void raw_commands_get_every_word(void **state) {
    (void)state;
    assert_int_equal(run("tool other --help -x -- y"), 0);
    assert_string_equal(seen.positional, "--help,-x,--,y,");
}

static void a_reader_that_goes_away_is_silence(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int kept = dup(1);
    fflush(NULL);
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    int status = run_line("tool group say");
    dup2(kept, 1);
    assert_int_equal(status, 0);
}

static void a_full_disk_is_said(void **state) {
    (void)state;
    int full = open("/dev/full", O_WRONLY), kept = dup(1);
    if (full < 0) weir_test_skip("there is no /dev/full");
    fflush(NULL);
    dup2(full, 1);
    int status = run_line("tool group say");
    dup2(kept, 1);
    assert_int_equal(status, 69);
}

/* Started without stdout, the first file opened would be descriptor 1 and take in the results. */
static void closed_streams_are_not_reused_for_files(void **state) {
    (void)state;
    int kept = dup(1);
    fflush(NULL);
    close(1);
    int status = run_line("tool group say");
    int file = open(weir_test_path("file"), O_RDWR | O_CREAT, 0600);
    dup2(kept, 1);
    assert_int_equal(status, 0);
    assert_true(file > 2);
}

static void every_word_counts_against_no_limit(void **state) {
    (void)state;
    enum { words = 5000 };
    static char name[] = "tool", command[] = "show", topic[] = "a", switches[] = "-vvvv", count[] = "--count=5";
    static char *argv[words + 1] = {name, command, topic};
    for (int i = 3; i < words; i++)
        argv[i] = i % 2 ? switches : count;
    assert_int_equal(weir_cli_main(&tool, "tool", words, argv), 0);
    assert_true(seen.verbose && seen.count == 5);
}

static void list_has_a_line_for_every_command(void **state) {
    (void)state;
    weir_buf list = {0};
    weir_cli_list(&tool, &list);
    assert_string_equal(
        list.bytes, "tool show       show what is there\ntool other      another program\ntool group say  say a lot\n");
    weir_buf_free(&list);
}

static void subcommands_are_found_by_their_whole_name(void **state) {
    (void)state;
    assert_ptr_equal(weir_cli_subcommand(&tool, "show"), &show);
    assert_null(weir_cli_subcommand(&tool, "sho"));
    assert_null(weir_cli_subcommand(&show, "show"));
    assert_err(weir_cli_unknown_command(&tool, "tool", "grup"), WEIR_EUSAGE, "did you mean 'group'?");
}

static void no_memory_is_a_status_and_no_leak(void **state) {
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        weir_alloc_stats before, after;
        weir_alloc_stats_get(&before);
        weir_alloc_fail_nth(nth);
        int status = run("tool show a --set log.level=warn --count 5");
        int happened = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        weir_alloc_stats_get(&after);
        assert_true(after.live_blocks == before.live_blocks);
        if (!happened) break;
        assert_int_equal(status, 69);
        assert_non_null(strstr(err, "memory"));
    }
}

WEIR_TESTS(WEIR_CASE(an_option_that_is_repeated_counts_as_given_last_or_each), WEIR_CASE(options_in_every_form),
           WEIR_CASE(wrong_words_are_one_sentence_with_the_nearest), WEIR_CASE(wrong_values_name_option_and_range),
           WEIR_CASE(settings_come_from_file_environment_and_flags),
           WEIR_CASE(config_is_printed_or_checked_without_running), WEIR_CASE(help_is_made_from_the_table),
           WEIR_CASE(a_group_alone_is_its_help_on_stderr), WEIR_CASE(version_says_what_it_was_built_with),
           WEIR_CASE(errors_become_one_sentence_and_a_status), WEIR_CASE(raw_commands_get_every_word),
           WEIR_CASE(a_reader_that_goes_away_is_silence), WEIR_CASE(a_full_disk_is_said),
           WEIR_CASE(closed_streams_are_not_reused_for_files), WEIR_CASE(every_word_counts_against_no_limit),
           WEIR_CASE(list_has_a_line_for_every_command), WEIR_CASE(subcommands_are_found_by_their_whole_name),
           WEIR_CASE(no_memory_is_a_status_and_no_leak))

/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/file.h>
#include <weir/store/conf/config.h>

#include "config_private.h"

#define VARIABLE(text) ((char[]){text})

static weir_config *defaults(void) {
    weir_config *config;
    assert_ok(weir_config_open(&config));
    return config;
}

static weir_err load(weir_config *config, const char *text) {
    return weir_config_load_text(config, "weir.yaml", text, strlen(text));
}

static void refused(const char *text, const char *sentence) {
    weir_config *config = defaults();
    assert_err(load(config, text), WEIR_ECONFIG, sentence);
    weir_config_free(config);
}

static void the_table_is_sound(void **state) {
    (void)state;
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        const weir_setting *row = &weir_settings[i];
        char one[WEIR_SETTING_ENV_MAX], other[WEIR_SETTING_ENV_MAX], allowed[WEIR_SETTING_ALLOWED_MAX];
        weir_config_value value;
        assert_ok(weir_setting_read(row, row->initial, &value));
        assert_non_null(strchr(row->key, '.'));
        assert_true(!strcmp(row->live, "yes") || !strcmp(row->live, "no"));
        assert_true(strlen(row->meaning) > 10 && row->meaning[strlen(row->meaning) - 1] != '.');
        assert_true(strlen(weir_setting_allowed(row, allowed)) > 0);
        weir_setting_variable(row, one);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(one, weir_setting_variable(&weir_settings[j], other));
    }
}

static void bounds_are_allowed_and_what_is_past_them_is_not(void **state) {
    (void)state;
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        const weir_setting *row = &weir_settings[i];
        weir_config_value value;
        if (row->kind == WEIR_SETTING_TEXT || row->kind == WEIR_SETTING_CHOICE || row->kind == WEIR_SETTING_BOOL)
            continue;
        if (*row->min) assert_ok(weir_setting_read(row, row->min, &value));
        if (*row->max) assert_ok(weir_setting_read(row, row->max, &value));
    }
    refused("eventlog: {partitions: 0}",
            "weir.yaml:1:24: eventlog.partitions is '0'; it must be a whole number from 1 to 1024 partitions");
    refused("eventlog: {partitions: 1025}", "from 1 to 1024");
    refused("eventlog: {segment_bytes: 65535}", "a size from 64KiB to 4GiB");
    refused("eventlog: {segment_bytes: 4294967297}", "a size from 64KiB to 4GiB");
    refused("kafka: {timeout: 99ms}", "a duration from 100ms to 1h");
    refused("kafka: {timeout: 3601s}", "a duration from 100ms to 1h");
}

static void later_sources_override_earlier_ones(void **state) {
    (void)state;
    weir_config *config = defaults();
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_LEVEL), "info");
    assert_int_equal(weir_config_u64(config, WEIR_CONFIG_EVENTLOG_SEGMENT_BYTES), 256u << 20);
    assert_true(weir_config_us(config, WEIR_CONFIG_KAFKA_TIMEOUT) == 30000000);
    assert_ok(load(config, "log:\n  level: warn\n  format: json\neventlog: {partitions: 8}\nkafka:\n"));
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_LEVEL), "warn");
    char *environment[] = {VARIABLE("PATH=/bin"), VARIABLE("WEIR_LOG_LEVEL=error"),
                           VARIABLE("WEIR_EVENTLOG_PARTITIONS=9"), NULL};
    assert_ok(weir_config_load_environment(config, environment));
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_LEVEL), "error");
    assert_ok(weir_config_set(config, "log.level=debug"));
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_LEVEL), "debug");
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_FORMAT), "json");
    assert_int_equal(weir_config_u64(config, WEIR_CONFIG_EVENTLOG_PARTITIONS), 9);
    weir_config_free(config);
    weir_config_free(NULL);
}

static void unknown_keys_of_a_file_name_line_and_nearest(void **state) {
    (void)state;
    refused("log:\n  levle: info\n", "weir.yaml:2:3: there is no setting 'log.levle'; did you mean 'log.level'?");
    refused("lgo:\n  level: info\n", "weir.yaml:1:1: there is no setting 'lgo'");
    refused("logging: 3\n", "--print-config shows all of them");
    refused("log: info\n", "weir.yaml:1:1: 'log' is a section");
    refused("log: [info]\n", "weir.yaml:1:6: 'log' is a section, not a list");
    refused("log: {level: {a: b}}\n", "weir.yaml:1:14: log.level takes one value, not a mapping");
    refused("log: {level: [info]}\n", "weir.yaml:1:14: log.level takes one value, not a list");
    refused("[log]\n", "weir.yaml:1:1: settings must be sections");
    refused("log: {level: info}\nlog.level: debug\n", "weir.yaml:2:1: log.level is given twice, first on line 1");
    refused("log: {level: debgu}\n",
            "weir.yaml:1:14: log.level is 'debgu'; it must be debug, info, warn or error; did you mean 'debug'?");
    refused("eventlog: {path: ''}\n", "it must be one line of text, not empty");
    refused("eventlog: {path: \"a\\nb\"}\n", "it must be one line of text");
    refused("log: {level\n", "weir.yaml:2:1: not valid YAML");
}

static void a_failed_load_changes_nothing(void **state) {
    (void)state;
    weir_config *config = defaults();
    assert_err(load(config, "log: {level: debug, format: xml}\n"), WEIR_ECONFIG, "log.format is 'xml'");
    char *environment[] = {VARIABLE("WEIR_LOG_LEVEL=debug"), VARIABLE("WEIR_LOG_FORMAT=xml"), NULL};
    assert_err(weir_config_load_environment(config, environment), WEIR_ECONFIG,
               "environment: WEIR_LOG_FORMAT: log.format is 'xml'");
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_LEVEL), "info");
    weir_config_free(config);
}

static void unknown_variables_are_refused_and_foreign_ones_are_not(void **state) {
    (void)state;
    weir_config *config = defaults();
    char *wrong[] = {VARIABLE("WEIR_LOG_LEVLE=debug"), NULL};
    assert_err(weir_config_load_environment(config, wrong), WEIR_ECONFIG,
               "environment: there is no setting WEIR_LOG_LEVLE; unset it; did you mean 'WEIR_LOG_LEVEL'?");
    char *far[] = {VARIABLE("WEIR_XYZ=1"), NULL};
    assert_err(weir_config_load_environment(config, far), WEIR_ECONFIG, "a name that does not begin with WEIR_");
    char *foreign[] = {VARIABLE("WEIR_FAULT=write:1:EIO"),
                       VARIABLE("WEIR_KILL_AT=x:1"),
                       VARIABLE("WEIR_CONFIG=/etc/weir.yaml"),
                       VARIABLE("WEIR_TEST_SEED=1"),
                       VARIABLE("WEIR_BENCH_FOLDER=/x"),
                       VARIABLE("WEIR_PROGRAM=weir"),
                       VARIABLE("WEIR_SOURCE_DIR=/x"),
                       VARIABLE("WEIRD=1"),
                       VARIABLE("WEIR"),
                       VARIABLE("WEIR_SERVICE_HOST=10.0.0.1"),
                       VARIABLE("WEIR_SERVICE_PORT=80"),
                       VARIABLE("WEIR_SERVICE_PORT_HTTP=80"),
                       VARIABLE("WEIR_PORT=tcp://10.0.0.1:80"),
                       VARIABLE("WEIR_PORT_80_TCP=tcp://10.0.0.1:80"),
                       VARIABLE("WEIR_PORT_80_TCP_ADDR=10.0.0.1"),
                       VARIABLE("WEIR_CONSOLE_SERVICE_HOST=10.0.0.2"),
                       VARIABLE("WEIR_PORTAL_PORT=tcp://10.0.0.3:80"),
                       VARIABLE("WEIR_PORTAL_PORT_80_TCP=tcp://10.0.0.3:80"),
                       VARIABLE("WEIR_PORTAL_PORT_80_TCP_PROTO=tcp"),
                       VARIABLE("WEIR_PORT_PORT=tcp://10.0.0.4:80"),
                       VARIABLE("WEIR_PORT_PORT_80_TCP_PORT=80"),
                       NULL};
    assert_ok(weir_config_load_environment(config, foreign));
    static const char *const ports[] = {"WEIR_PORT=80",          "WEIR_PORTAL=tcp://10.0.0.3:80", "WEIR_PORTAL_PORT=80",
                                        "WEIR_PORTAL_PORT_X=80", "WEIR_PORT_PORTAL=80",           "WEIR_PORT_PORT="};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "%s", ports[i]);
        assert_err(weir_config_load_environment(config, (char *[]){variable, NULL}), WEIR_ECONFIG, "WEIR_PORT");
    }
    weir_config_free(config);
}

static void flags_are_assignments_of_known_keys(void **state) {
    (void)state;
    weir_config *config = defaults();
    assert_err(weir_config_set(config, "log.level"), WEIR_EUSAGE, "write it as KEY=VALUE");
    assert_err(weir_config_set(config, "=x"), WEIR_EUSAGE, "write it as KEY=VALUE");
    assert_err(weir_config_set(config, "log.lvel=info"), WEIR_ECONFIG,
               "--set log.lvel=info: there is no setting 'log.lvel'; did you mean 'log.level'?");
    assert_err(weir_config_set(config, "log.level=x"), WEIR_ECONFIG, "--set: log.level is 'x'; it must be debug");
    assert_ok(weir_config_set(config, "eventlog.path=a=b"));
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_EVENTLOG_PATH), "a=b");
    weir_config_free(config);
}

static void texts_at_their_limit_and_past_it(void **state) {
    (void)state;
    static char text[WEIR_SETTING_TEXT_MAX + 32];
    size_t name = (size_t)snprintf(text, sizeof text, "eventlog.path=");
    memset(text + name, 'x', WEIR_SETTING_TEXT_MAX);
    weir_config *config = defaults();
    assert_ok(weir_config_set(config, text));
    text[name + WEIR_SETTING_TEXT_MAX] = 'x';
    assert_err(weir_config_set(config, text), WEIR_ECONFIG, "eventlog.path is 'xxx");
    weir_config_free(config);
}

static void what_is_printed_loads_to_the_same(void **state) {
    (void)state;
    weir_config *one = defaults(), *two = defaults();
    assert_ok(load(one, "log: {level: warn}\n"));
    assert_ok(weir_config_set(one, "eventlog.path=C:\\a \"b\": #c'd\xc3\xa9"));
    char *environment[] = {VARIABLE("WEIR_EVENTLOG_RETAIN_BYTES=7GiB"), NULL};
    assert_ok(weir_config_load_environment(one, environment));
    weir_buf first = {0}, second = {0};
    weir_config_print(one, &first);
    assert_ok(weir_buf_err(&first));
    assert_non_null(strstr(first.bytes, "  level: warn                            # weir.yaml:1\n"));
    assert_non_null(strstr(first.bytes, "# environment WEIR_EVENTLOG_RETAIN_BYTES\n"));
    assert_non_null(strstr(first.bytes, "# --set\n"));
    assert_non_null(strstr(first.bytes, "# default\n"));
    assert_ok(weir_config_load_text(two, "printed", first.bytes, first.length));
    weir_config_print(two, &second);
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++)
        assert_string_equal(one->values[i].text, two->values[i].text);
    assert_non_null(strstr(second.bytes, "# printed:2\n"));
    weir_buf_free(&first);
    weir_buf_free(&second);
    weir_config_free(one);
    weir_config_free(two);
}

static void a_file_name_cannot_break_what_is_printed(void **state) {
    (void)state;
    weir_config *config = defaults();
    static const char text[] = "log: {level: warn}";
    assert_ok(weir_config_load_text(config, "a\nlog: \xff", text, strlen(text)));
    weir_buf printed = {0};
    weir_config_print(config, &printed);
    assert_non_null(strstr(printed.bytes, "# a?log: ?:1\n"));
    assert_ok(weir_config_load_text(config, "printed", printed.bytes, printed.length));
    weir_buf_free(&printed);
    weir_config_free(config);
}

static void markdown_has_a_row_for_every_setting(void **state) {
    (void)state;
    weir_buf page = {0};
    weir_config_markdown(&page);
    assert_ok(weir_buf_err(&page));
    for (size_t i = 0; i < WEIR_CONFIG_COUNT; i++) {
        char row[128];
        snprintf(row, sizeof row, "\n| `%s` | ", weir_settings[i].key);
        assert_non_null(strstr(page.bytes, row));
    }
    assert_non_null(strstr(page.bytes, "| `log.level` | `info` | debug, info, warn or error | no |"));
    weir_buf_free(&page);
}

static void files_are_loaded_or_named(void **state) {
    (void)state;
    weir_config *config = defaults();
    assert_err(weir_config_load_file(config, weir_test_path("absent.yaml")), WEIR_ENOTFOUND, "absent.yaml");
    const char *path = weir_test_path("weir.yaml");
    static const char text[] = "log:\n  level: error\n";
    assert_ok(weir_file_replace(path, text, strlen(text)));
    assert_ok(weir_config_load_file(config, path));
    assert_string_equal(weir_config_text(config, WEIR_CONFIG_LOG_LEVEL), "error");
    weir_config_free(config);
}

static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } right[] = {{"0", 0},
                 {"1000", 1000},
                 {"1KiB", 1024},
                 {"64MiB", 64u << 20},
                 {"1GiB", 1u << 30},
                 {"3TiB", 3ull << 40},
                 {"16383PiB", 16383ull << 50},
                 {"18446744073709551615", UINT64_MAX}};
    static const char *const wrong[] = {"",
                                        "KiB",
                                        "64MB",
                                        "64M",
                                        "64mib",
                                        "1 KiB",
                                        "-1",
                                        "+1",
                                        "1.5GiB",
                                        "16384PiB",
                                        "18446744073709551616",
                                        "99999999999999999999999",
                                        "0x10",
                                        "1KiB "};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_ok(weir_size_parse(right[i].text, &bytes));
        assert_true(bytes == right[i].bytes);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_err(weir_size_parse(wrong[i], &bytes), WEIR_EDATA, "is not a size; write bytes (4096) or KiB");
        assert_true(bytes == 0);
    }
}

/* Values and bounds that the table does not use yet are read by the same code. */
static void kinds_of_values(void **state) {
    (void)state;
    static const struct {
        weir_setting row;
        const char *right, *wrong, *allowed;
    } cases[] = {
        {{"a.b", WEIR_SETTING_BOOL, "true", "", "", "", "no", ""}, "false", "yes", "true or false"},
        {{"a.b", WEIR_SETTING_U64, "1", "1", "", "", "no", ""},
         "18446744073709551615",
         "18446744073709551616",
         "a whole number from 1"},
        {{"a.b", WEIR_SETTING_U64, "1", "", "9", "", "no", ""}, "0", "-0", "a whole number to 9"},
        {{"a.b", WEIR_SETTING_TEXT, "", "", "", "", "no", ""}, "", "\n", "one line of text"},
        {{"a.b", WEIR_SETTING_CHOICE, "x", "", "x", "", "no", ""}, "x", "x|x", "x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_config_value value;
        char sentence[WEIR_SETTING_ALLOWED_MAX + 32];
        assert_ok(weir_setting_read(&cases[i].row, cases[i].right, &value));
        snprintf(sentence, sizeof sentence, "'; it must be %s", cases[i].allowed);
        assert_err(weir_setting_read(&cases[i].row, cases[i].wrong, &value), WEIR_ECONFIG, sentence);
    }
}

static weir_err attempt(void *context) {
    (void)context;
    weir_buf out = {0};
    weir_config *config;
    weir_err err = weir_config_open(&config);
    if (!err) err = load(config, "log: {level: warn}");
    if (!err) err = weir_config_set(config, "kafka.timeout=1s");
    if (!err) {
        weir_config_print(config, &out);
        err = weir_buf_err(&out);
    }
    weir_buf_free(&out);
    weir_config_free(config);
    return err;
}

static void every_allocation_failed_once(void **state) {
    (void)state;
    weir_test_every_allocation(attempt, NULL);
}

WEIR_TESTS(WEIR_CASE(the_table_is_sound), WEIR_CASE(bounds_are_allowed_and_what_is_past_them_is_not),
           WEIR_CASE(later_sources_override_earlier_ones), WEIR_CASE(unknown_keys_of_a_file_name_line_and_nearest),
           WEIR_CASE(a_failed_load_changes_nothing), WEIR_CASE(unknown_variables_are_refused_and_foreign_ones_are_not),
           WEIR_CASE(flags_are_assignments_of_known_keys), WEIR_CASE(texts_at_their_limit_and_past_it),
           WEIR_CASE(what_is_printed_loads_to_the_same), WEIR_CASE(a_file_name_cannot_break_what_is_printed),
           WEIR_CASE(markdown_has_a_row_for_every_setting), WEIR_CASE(files_are_loaded_or_named), WEIR_CASE(sizes),
           WEIR_CASE(kinds_of_values), WEIR_CASE(every_allocation_failed_once))

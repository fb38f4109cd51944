/* SPDX-License-Identifier: Apache-2.0 */
/* Bad settings, from every source, and bad command lines: one sentence, the right status, nothing done. */
#include "cli_support.h"

#include <weir/store/base/file.h>

static void write_file(const char *name, const char *text) {
    assert_ok(weir_file_replace(weir_test_path(name), text, strlen(text)));
}

static void fails(const char *line, int status, const char *sentence) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "must exit with the status of its kind");
    CLI_ASSERT(!*output.out && cli_one_line(output.err), line, &output, "must print one sentence on stderr");
    CLI_ASSERT(strstr(output.err, sentence), line, &output, sentence);
    weir_test_output_free(&output);
}

static void succeeds(const char *line, const char *text) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 0 && !*output.err, line, &output, "must succeed without a word on stderr");
    CLI_ASSERT(strstr(output.out, text), line, &output, text);
    weir_test_output_free(&output);
}

static void bad_files_name_line_and_nearest(void **state) {
    (void)state;
    write_file("unknown.yaml", "# settings\nlog:\n  levle: info\n");
    fails("weir --config unknown.yaml --check-config", 78,
          "weir: unknown.yaml:3:3: there is no setting 'log.levle'; did you mean 'log.level'?");
    write_file("broken.yaml", "log:\n\tlevel: info\n");
    fails("weir --config broken.yaml --check-config", 78, "weir: broken.yaml:2:1: not valid YAML");
    write_file("range.yaml", "eventlog:\n  partitions: 5000\n");
    fails("weir --config range.yaml --check-config", 78,
          "range.yaml:2:15: eventlog.partitions is '5000'; it must be a whole number from 1 to 1024 partitions");
    write_file("twice.yaml", "log: {level: info}\nlog: {format: json}\n");
    fails("weir --config twice.yaml --print-config", 78, "twice.yaml:2:1: key 'log' is given twice");
    fails("weir --config absent.yaml --check-config", 78, "absent.yaml: there is no such file; --config names it");
    fails("WEIR_CONFIG=absent.yaml weir --check-config", 78, "WEIR_CONFIG in the environment names it");
    fails("weir --config . --check-config", 69, "weir: ");
}

static void bad_variables_name_the_nearest(void **state) {
    (void)state;
    fails("WEIR_LOG_LEVLE=debug weir --check-config", 78, "environment: there is no setting WEIR_LOG_LEVLE");
    fails("WEIR_LOG_LEVLE=debug weir --check-config", 78, "did you mean 'WEIR_LOG_LEVEL'?");
    fails("WEIR_KAFKA_TIMEOUT=1y weir --check-config", 78,
          "environment: WEIR_KAFKA_TIMEOUT: kafka.timeout is '1y'; it must be a duration from 100ms to 1h");
}

static void bad_flags_are_wrong_usage(void **state) {
    (void)state;
    fails("weir lgo", 64, "weir: weir has no command 'lgo'; did you mean 'log'?");
    fails("weir --hepl", 64, "unknown option --hepl; did you mean --help?");
    fails("weir --config", 64, "--config needs a value, FILE");
    fails("weir --set log.level --check-config", 64, "write it as KEY=VALUE");
    fails("weir --set log.levle=info --check-config", 78, "did you mean 'log.level'?");
    fails("weir reference confgi", 64, "weir reference has no command 'confgi'; did you mean 'config'?");
    fails("weir help lgo", 64, "weir has no command 'lgo'; did you mean 'log'?");
    fails("weir reference config x", 64, "'x' is one argument too many; it takes none");
}

static void the_last_source_wins_and_is_named(void **state) {
    (void)state;
    write_file("weir.yaml", "log:\n  level: warn\n  format: json\nkafka: {timeout: 5s}\n");
    static const char line[] = "WEIR_LOG_FORMAT=human weir --config weir.yaml --set kafka.timeout=7s --print-config";
    succeeds(line, "  level: warn                            # weir.yaml:2\n");
    succeeds(line, "  format: human                          # environment WEIR_LOG_FORMAT\n");
    succeeds(line, "  timeout: 7s                            # --set\n");
    succeeds("weir --print-config > all.yaml; weir --config all.yaml --check-config", "ok\n");
    succeeds("weir --print-config=markdown", "# Settings\n");
}

static void what_shows_help_does_not_read_settings(void **state) {
    (void)state;
    succeeds("WEIR_NONSENSE=1 weir help", "usage: weir COMMAND");
    succeeds("WEIR_NONSENSE=1 weir --version", "weir ");
    succeeds("WEIR_NONSENSE=1 weir reference config", "# Settings");
    succeeds("WEIR_CONFIG=/no/such weir completion bash", "complete -o");
}

static void version_names_compiler_build_and_libraries(void **state) {
    (void)state;
    weir_test_output output;
    cli_bash(weir_test_folder(), "weir --version", &output);
    CLI_ASSERT(cli_matches(output.out, "^weir [0-9]+\\.[0-9]+\\.[0-9]+$"), "weir --version", &output,
               "name and version");
    CLI_ASSERT(cli_matches(output.out, "^compiled by .*[0-9], [A-Za-z]+ build"), "weir --version", &output, "compiler");
    CLI_ASSERT(cli_matches(output.out, "^with xxhash [0-9.]+, libyaml [0-9.]+"), "weir --version", &output,
               "libraries");
    weir_test_output_free(&output);
}

static void readers_that_go_away_are_silence(void **state) {
    (void)state;
    succeeds("weir reference config | head -n 1", "# Settings");
    succeeds("weir reference config | true; echo ${PIPESTATUS[0]}", "0\n");
    succeeds("weir reference config >&-; echo $?", "0\n");
    fails("weir reference config > /dev/full", 69, "cannot write the result to stdout");
}

static void armed_faults_are_said(void **state) {
    (void)state;
    weir_test_output output;
    cli_bash(weir_test_folder(), "WEIR_FAULT=write:1000:EIO weir help 2>&1 >/dev/null", &output);
    CLI_ASSERT(strstr(output.out, "fault.armed"), "WEIR_FAULT=… weir help", &output, "a warning with this event");
    weir_test_output_free(&output);
    fails("WEIR_FAULT=nonsense weir help", 64, "weir help: ");
}

static void a_program_that_is_not_there_is_named(void **state) {
    (void)state;
    fails("cp \"$(command -v weir)\" . && ./weir bench base", 69, "weir-bench is neither in ");
    fails("cp \"$(command -v weir)\" . && ./weir bench base", 69,
          "; benches are not installed: build Weir from source");
    fails("cp \"$(command -v weir)\" . && ./weir simulate clicks", 69, "; build or install it beside weir");
    succeeds(
        "cp \"$(command -v weir)\" . && printf '#!/bin/sh\\necho ran \"$@\"' > weir-bench && chmod +x weir-bench && "
        "./weir bench base --x -- y",
        "ran base --x -- y\n");
}

WEIR_TESTS(WEIR_CASE(bad_files_name_line_and_nearest), WEIR_CASE(bad_variables_name_the_nearest),
           WEIR_CASE(bad_flags_are_wrong_usage), WEIR_CASE(the_last_source_wins_and_is_named),
           WEIR_CASE(what_shows_help_does_not_read_settings), WEIR_CASE(version_names_compiler_build_and_libraries),
           WEIR_CASE(readers_that_go_away_are_silence), WEIR_CASE(armed_faults_are_said),
           WEIR_CASE(a_program_that_is_not_there_is_named))

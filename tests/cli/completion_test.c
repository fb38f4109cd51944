/* SPDX-License-Identifier: Apache-2.0 */
/* The completion script as bash runs it: sourced, its function called with the words that bash would hand over. */
#include "cli_support.h"

/* words: what bash has in COMP_WORDS, quoted for bash; the last one is being completed. */
static void completes(const char *words, const char *wanted) {
    char line[2048];
    weir_test_output output;
    snprintf(line, sizeof line,
             "source <(weir completion bash); COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weir; "
             "echo \" ${COMPREPLY[*]} \"",
             words);
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 0 && !*output.err, line, &output, "must run without a word on stderr");
    CLI_ASSERT(strstr(output.out, wanted), line, &output, wanted);
    weir_test_output_free(&output);
}

static void commands_and_subcommands(void **state) {
    (void)state;
    completes("weir ''", " help ");
    completes("weir ''", " bench ");
    completes("weir lo", " log \n");
    completes("weir hel", " help \n");
    completes("weir reference ''", " config metrics \n");
    completes("weir reference m", " metrics \n");
    completes("weir --config x --check-config reference c", " config \n");
    completes("weir help ref", " reference \n");
    completes("weir help reference ''", " config metrics \n");
    completes("weir zzz", "  \n");
}

static void options(void **state) {
    (void)state;
    completes("weir --ver", " --version \n");
    completes("weir reference config --ver", "  \n");
    completes("weir reference config --check", " --check-config \n");
    completes("weir help --a", " --all \n");
    completes("weir help -", " --all --help \n");
}

static void values(void **state) {
    (void)state;
    completes("weir --print-config = ''", " markdown \n");
    completes("weir --print-config =", " markdown \n");
    completes("weir simulate payments --only ''", " payments chargebacks \n");
    completes("weir simulate payments --only = c", " chargebacks \n");
    completes("weir log cat -p data --jso", " --json \n");
    completes("weir --config ''", "  \n"); /* files, by bash itself */
    completes("weir --config = x reference ''", " config metrics \n");
}

static void settings(void **state) {
    (void)state;
    completes("weir --set log.l", " log.level= \n");
    completes("weir --set = log.l", " log.level= \n");
    completes("weir --set log.level = ''", " debug info warn error \n");
    completes("weir --set log.level =", " debug info warn error \n");
    completes("weir --set log.level = d", " debug \n");
    completes("weir --set log.level = debug --set log.f", " log.format= \n");
    completes("weir --set log.level = debug reference ''", " config metrics \n");
}

/* Every command that `weir help --all` lists can be reached by completing word after word. */
static void every_command_is_offered(void **state) {
    (void)state;
    weir_test_output output;
    cli_bash(weir_test_folder(), "weir help --all", &output);
    char *rest = output.out;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        char *end = strstr(line, "  "), words[256], wanted[256];
        *end = 0;
        snprintf(words, sizeof words, "%s", line);
        snprintf(wanted, sizeof wanted, " %s ", strrchr(line, ' ') + 1);
        completes(words, wanted);
    }
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(commands_and_subcommands), WEIR_CASE(options), WEIR_CASE(values), WEIR_CASE(settings),
           WEIR_CASE(every_command_is_offered))

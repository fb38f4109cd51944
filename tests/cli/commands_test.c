/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four promises of every command: help, no arguments, an unknown argument, success.
 *
 * The commands are those that `weir help --all` lists, so that a new one cannot be forgotten: without a row in
 * commands.tsv it fails. Groups (`weir log`) are the beginnings of the paths in that list.
 */
#include "cli_support.h"

#include <sys/stat.h>
#include <unistd.h>

#define PATHS_MAX 256
#define ROWS_MAX  512

static char paths[PATHS_MAX][128]; /* of commands that run       */
static size_t path_count;
static char groups[PATHS_MAX][128]; /* of commands that only hold others */
static size_t group_count;

typedef struct row {
    char path[128];
    int no_arguments;
    char setup[2048], success[2048], pattern[512];
} row;
static row rows[ROWS_MAX];
static size_t row_count;

static void add(char (*list)[128], size_t *countp, const char *path, size_t length) {
    for (size_t i = 0; i < *countp; i++)
        if (strlen(list[i]) == length && !strncmp(list[i], path, length)) return;
    assert_true(*countp < PATHS_MAX && length < sizeof list[0]);
    snprintf(list[(*countp)++], sizeof list[0], "%.*s", (int)length, path);
}

/* A path ends where two blanks follow it. */
static void read_paths(void) {
    weir_test_output output;
    cli_bash(weir_test_folder(), "weir help --all", &output);
    CLI_ASSERT(output.status == 0, "weir help --all", &output, "must list the commands");
    char *rest = output.out;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        char *end = strstr(line, "  ");
        CLI_ASSERT(end != NULL, line, &output, "a line is a path, two blanks or more, a summary");
        add(paths, &path_count, line, (size_t)(end - line));
        for (char *blank = line; (blank = strchr(blank, ' ')) && blank < end; blank++)
            add(groups, &group_count, line, (size_t)(blank - line));
    }
    weir_test_output_free(&output);
    assert_true(path_count > 3);
}

static void read_rows(void) {
    char name[4096], line[8192];
    snprintf(name, sizeof name, "%s/tests/cli/commands.tsv", getenv("WEIR_SOURCE_DIR"));
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!*line || *line == '#') continue;
        assert_true(row_count < ROWS_MAX);
        row *one = &rows[row_count++];
        char *rest = line, *cells[5];
        for (size_t i = 0; i < 5; i++)
            cells[i] = strsep(&rest, "\t");
        if (!cells[4] || rest) fail_msg("commands.tsv: five cells parted by one tab each: %s", line);
        snprintf(one->path, sizeof one->path, "%s", cells[0]);
        one->no_arguments = (int)strtol(cells[1], NULL, 10);
        snprintf(one->setup, sizeof one->setup, "%s", strcmp(cells[2], "-") ? cells[2] : "");
        snprintf(one->success, sizeof one->success, "%s", cells[3]);
        snprintf(one->pattern, sizeof one->pattern, "%s", cells[4]);
    }
    fclose(file);
}

static void read_all(void) {
    (void)weir_test_program();
    read_paths();
    read_rows();
}

static const row *find_row(const char *path) {
    for (size_t i = 0; i < row_count; i++)
        if (!strcmp(rows[i].path, path)) return &rows[i];
    return NULL;
}

static bool is_path(const char *path) {
    for (size_t i = 0; i < path_count; i++)
        if (!strcmp(paths[i], path)) return true;
    return false;
}

static void every_command_has_a_row_and_every_row_a_command(void **state) {
    (void)state;
    read_all();
    for (size_t i = 0; i < path_count; i++)
        if (!find_row(paths[i])) fail_msg("'%s' has no row in tests/cli/commands.tsv; add one", paths[i]);
    for (size_t i = 0; i < row_count; i++)
        if (!is_path(rows[i].path)) fail_msg("tests/cli/commands.tsv: there is no command '%s'", rows[i].path);
}

/* A sanitizer, under which a program takes long to begin and to end, sees some of the commands, others in each run. */
static size_t part(void) {
    return weir_test_part(4, 1);
}

static size_t first(void) {
    return weir_test_seed() % part();
}

static void check_help(const char *path) {
    char line[256], usage[256], again[256];
    weir_test_output one, two;
    snprintf(line, sizeof line, "%s --help", path);
    snprintf(usage, sizeof usage, "usage: %s", path);
    snprintf(again, sizeof again, "weir help%s", path + strlen("weir"));
    cli_bash(weir_test_folder(), line, &one);
    CLI_ASSERT(one.status == 0 && !*one.err, line, &one, "must succeed without a word on stderr");
    CLI_ASSERT(!strncmp(one.out, usage, strlen(usage)), line, &one, "must begin with the usage");
    CLI_ASSERT(strstr(one.out, "\nexample:\n  "), line, &one, "must show an example");
    if (strcmp(path, "weir help") != 0 && strcmp(path, "weir") != 0) {
        cli_bash(weir_test_folder(), again, &two);
        CLI_ASSERT(two.status == 0 && !strcmp(one.out, two.out), again, &two, "must say the same as --help");
        weir_test_output_free(&two);
    }
    weir_test_output_free(&one);
}

static void help(void **state) {
    (void)state;
    read_all();
    for (size_t i = first(); i < path_count; i += part())
        check_help(paths[i]);
    for (size_t i = 0; i < group_count; i++)
        check_help(groups[i]);
}

static void check_no_arguments(const char *path, int status) {
    weir_test_output output;
    char folder[128], line[256];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *c = folder; (c = strchr(c, ' '));)
        *c = '_';
    mkdir(weir_test_path(folder), 0700);
    /* A generator without arguments may print for long: it has to stop when its reader does. */
    snprintf(line, sizeof line, "%s | head -c 65536", path);
    cli_bash(weir_test_path(folder), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "must exit with the status of commands.tsv (a group: 64)");
    CLI_ASSERT(status == 0 || (!*output.out && *output.err), line, &output,
               "must say why on stderr and nothing on stdout");
    CLI_ASSERT(status == 0 || cli_one_line(output.err) || !strncmp(output.err, "usage: ", 7), line, &output,
               "must say it in one sentence, or show the usage");
    CLI_ASSERT(status == 0 || !rmdir(weir_test_path(folder)), line, &output, "must leave nothing where it was called");
    weir_test_output_free(&output);
}

static void no_arguments(void **state) {
    (void)state;
    read_all();
    for (size_t i = first(); i < path_count; i += part())
        if (find_row(paths[i])) check_no_arguments(paths[i], find_row(paths[i])->no_arguments);
    for (size_t i = 0; i < group_count; i++)
        check_no_arguments(groups[i], 64);
}

static void check_unknown_argument(const char *path) {
    weir_test_output output;
    char line[256];
    snprintf(line, sizeof line, "%s --no-such-argument", path);
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 64 && !*output.out, line, &output, "must exit with 64 and print no result");
    CLI_ASSERT(cli_one_line(output.err) && strstr(output.err, "--no-such-argument"), line, &output,
               "must name the argument in one sentence");
    CLI_ASSERT(!strncmp(output.err, path, strlen(path)), line, &output, "must begin with the command's path");
    weir_test_output_free(&output);
}

static void unknown_argument(void **state) {
    (void)state;
    read_all();
    for (size_t i = first(); i < path_count; i += part())
        check_unknown_argument(paths[i]);
    for (size_t i = 0; i < group_count; i++)
        check_unknown_argument(groups[i]);
}

static void check_success(const row *one, size_t number) {
    weir_test_output output;
    char folder[32];
    snprintf(folder, sizeof folder, "row-%zu", number);
    mkdir(weir_test_path(folder), 0700);
    if (*one->setup) {
        cli_bash(weir_test_path(folder), one->setup, &output);
        CLI_ASSERT(output.status == 0, one->setup, &output, "must set up the success of the row");
        weir_test_output_free(&output);
    }
    cli_bash(weir_test_path(folder), one->success, &output);
    CLI_ASSERT(output.status == 0, one->success, &output, "must succeed");
    CLI_ASSERT(cli_matches(output.out, one->pattern), one->success, &output, one->pattern);
    weir_test_output_free(&output);
}

static void success(void **state) {
    (void)state;
    read_all();
    for (size_t i = first(); i < row_count; i += part())
        check_success(&rows[i], i);
}

WEIR_TESTS(WEIR_CASE(every_command_has_a_row_and_every_row_a_command), WEIR_CASE(help), WEIR_CASE(no_arguments),
           WEIR_CASE(unknown_argument), WEIR_CASE(success))

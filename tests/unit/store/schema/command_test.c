/* SPDX-License-Identifier: Apache-2.0 */
/* command_test.c - `weir schema` as a user meets it: what goes to stdout, what to stderr, and the exit status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/schema/schema.h>

#include "weir_test.h"

#define EXIT_DATA   65
#define EXIT_CONFIG 78

static void run(weir_test_output *output, const char *subcommand, const char *first, const char *second) {
    const char *const argv[] = {weir_test_program(), "schema", subcommand, first, second, NULL};
    weir_test_run(argv, NULL, output);
}

static void expect(const weir_test_output *output, int status, const char *out, const char *err) {
    if (output->status != status || !strstr(output->out, out) || !strstr(output->err, err))
        fail_msg("wanted %d, '%s', '%s'; got %d\nstdout: %s\nstderr: %s", status, out, err, output->status, output->out,
                 output->err);
}

static const char *write_file(const char *name, const char *text) {
    const char *path = weir_test_path(name);
    assert_ok(weir_file_replace(path, text, strlen(text)));
    return path;
}

static void check(void **state) {
    (void)state;
    weir_test_output output;
    run(&output, "check", "payments", NULL);
    expect(
        &output, 0,
        "payments: schema payments is valid, 5 vertex types, 8 relations, 25 aggregates, 1 label, 1 task, 2 sources\n",
        "");
    assert_string_equal(output.err, "");
    weir_test_output_free(&output);
    const char *path =
        write_file("mine.yaml", "version: 1\nname: mine\nvertices: {a: {}}\nrelations: {r: {from: b, to: a}}\n");
    run(&output, "check", path, NULL);
    expect(&output, EXIT_CONFIG, "",
           "mine.yaml:4:23: relation 'r': 'from' is 'b', but no such vertex type is declared");
    assert_string_equal(output.out, "");
    weir_test_output_free(&output);
}

static void a_name_that_is_none_says_the_nearest(void **state) {
    (void)state;
    weir_test_output output;
    run(&output, "check", "paymants", NULL);
    expect(&output, EXIT_DATA, "",
           "no file or shipped schema 'paymants'; `weir schema list` names the shipped ones; did you "
           "mean 'payments'?");
    weir_test_output_free(&output);
    run(&output, "show", "click", NULL);
    expect(&output, EXIT_DATA, "",
           "no shipped schema 'click'; `weir schema list` names the shipped ones; did you mean "
           "'clicks'?");
    weir_test_output_free(&output);
}

static void show_gives_a_file_that_prints_and_hashes_the_same(void **state) {
    (void)state;
    weir_test_output shown, from_name, from_file;
    run(&shown, "show", "clicks", NULL);
    expect(&shown, 0, "# Clicks in a shop", "");
    const char *path = write_file("clicks.yaml", shown.out);
    run(&from_name, "print", "clicks", NULL);
    run(&from_file, "print", path, NULL);
    expect(&from_name, 0, "version: 1\nname: clicks\nvertices:\n  person:\n    key: text\n", "");
    assert_string_equal(from_name.out, from_file.out);
    weir_test_output_free(&from_name);
    weir_test_output_free(&from_file);
    run(&from_name, "hash", "clicks", NULL);
    run(&from_file, "hash", path, NULL);
    assert_int_equal(strlen(from_name.out), 17);
    assert_string_equal(from_name.out, from_file.out);
    weir_test_output_free(&from_name);
    weir_test_output_free(&from_file);
    weir_test_output_free(&shown);
}

static void list(void **state) {
    (void)state;
    weir_test_output output;
    run(&output, "list", NULL, NULL);
    expect(&output, 0, "clicks\npayments\n", "");
    weir_test_output_free(&output);
}

static void diff(void **state) {
    (void)state;
    weir_test_output output;
    run(&output, "diff", "payments", "payments");
    expect(&output, 0, "no difference\n", "");
    weir_test_output_free(&output);
    const char *old = write_file("old.yaml", "version: 1\nname: t\nvertices: {a: {}}\n");
    const char *grown = write_file("grown.yaml", "version: 1\nname: t\nvertices: {a: {}, b: {}}\n");
    run(&output, "diff", old, grown);
    expect(&output, 0, "fits   vertex type 'b' is new\n", "");
    weir_test_output_free(&output);
    run(&output, "diff", grown, old);
    expect(&output, EXIT_DATA, "breaks vertex type 'b' is gone\n",
           "vertex type 'b' is gone: stored data does not survive that");
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(check), WEIR_CASE(a_name_that_is_none_says_the_nearest),
           WEIR_CASE(show_gives_a_file_that_prints_and_hashes_the_same), WEIR_CASE(list), WEIR_CASE(diff))

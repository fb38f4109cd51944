/* SPDX-License-Identifier: Apache-2.0 */
/* runs_test.c - folders as runs, whatever bytes their files have; and how many entities MLflow gets at once. */
#include "weir_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "runs_private.h"

static const char good_report[] =
    "{\"task\":\"fraud\",\"alerts_a_day\":50,\"best_epoch\":2,"
    "\"validation\":{\"targets\":240,\"positives\":41,\"average_precision\":0.5,\"average_precision_low\":0.4,"
    "\"average_precision_high\":0.6,\"auroc\":0.7},"
    "\"test\":{\"targets\":230,\"average_precision\":0.45,\"average_precision_low\":null,"
    "\"average_precision_high\":0.55}}";

static void write_text(const char *name, const char *text, size_t length) {
    assert_ok(weir_file_replace(weir_test_path(name), text, length));
}

/* An object with these members, and the check of its bytes. */
static void write_checked(const char *name, const char *members) {
    char all[8192], *at = all;
    weir_buf out = {0};
    int length = snprintf(all, sizeof all, "%s", members);
    assert_true(length > 0 && (size_t)length < sizeof all);
    for (char *line; (line = strsep(&at, "\n")) && *line;) {
        weir_json json = weir_json_begin(&out);
        const size_t begin = out.length;
        weir_json_object(&json);
        weir_json_key_text(&json, "x", "", 0);
        out.length = begin + 1; /* what was written stands for the braces alone */
        weir_buf_text(&out, line);
        if (at && *at) {
            weir_buf_text(&out, "}\n");
        } else {
            weir_json_object_end_checked(&json, 0);
            weir_buf_byte(&out, '\n');
        }
    }
    assert_ok(weir_buf_err(&out));
    write_text(name, out.bytes, out.length);
    weir_buf_free(&out);
}

static void make_run(const char *folder) {
    char name[256];
    assert_ok(weir_folder_create(weir_test_path(folder)));
    snprintf(name, sizeof name, "%s/report.json", folder);
    write_text(name, good_report, strlen(good_report));
    snprintf(name, sizeof name, "%s/run.json", folder);
    write_checked(name, "\"program\":\"weir 1\",\"begun\":\"2026-11-21T10:00:00.000000Z\",\"ended\":"
                        "\"2026-11-21T10:01:00.000000Z\",\"snapshot\":\"snap\",\"options\":{\"rate\":\"0.01\","
                        "\"residual\":true}");
    snprintf(name, sizeof name, "%s/epochs.jsonl", folder);
    write_checked(name, "\"epoch\":1,\"loss\":0.7,\"validation\":0.4,\"seconds\":1.5,\"best\":true\n"
                        "\"epoch\":2,\"loss\":null,\"validation\":0.5,\"seconds\":2,\"best\":true\n");
}

static weir_runs *list_of(const char *folder) {
    weir_runs *runs = NULL;
    assert_ok(weir_runs_open(&runs));
    assert_ok(weir_runs_add(runs, weir_test_path(folder)));
    return runs;
}

static size_t skipped_count(const weir_runs *runs) {
    size_t count = 0;
    const char *why;
    while (weir_runs_skipped(runs, count, &why))
        count++;
    return count;
}

static void a_run_is_read(void **state) {
    (void)state;
    make_run("r/one");
    make_run("r/deep/down/two");
    weir_runs *runs = list_of("r");
    assert_int_equal(weir_runs_count(runs), 2);
    assert_int_equal(skipped_count(runs), 0);
    const weir_run *run = weir_runs_at(runs, 1);
    assert_string_equal(run->folder, weir_test_path("r/one"));
    assert_string_equal(run->task, "fraud");
    assert_string_equal(run->family, "network");
    assert_string_equal(run->measure, "average precision");
    assert_string_equal(run->ended, "2026-11-21T10:01:00.000000Z");
    assert_string_equal(weir_run_option_find(run, "rate"), "0.01");
    assert_string_equal(weir_run_option_find(run, "residual"), "yes");
    assert_null(weir_run_option_find(run, "hidden"));
    assert_true(run->validation.value == 0.5 && run->validation.low == 0.4 && isnan(run->test.low));
    assert_true(run->seconds == 3.5 && run->epoch_count == 2 && run->best_epoch == 2 && isnan(run->epochs[1].loss));
    assert_string_equal(run->id, weir_runs_at(runs, 0)->id); /* of the same content */
    weir_runs_close(runs);
}

/* A training of an earlier version left no run.json. */
static void a_run_without_options_is_one(void **state) {
    (void)state;
    make_run("r");
    assert_ok(weir_file_remove(weir_test_path("r/run.json")));
    assert_ok(weir_file_remove(weir_test_path("r/epochs.jsonl")));
    weir_runs *runs = list_of("r");
    assert_int_equal(weir_runs_count(runs), 1);
    assert_int_equal(weir_runs_at(runs, 0)->option_count, 0);
    assert_true(isnan(weir_runs_at(runs, 0)->seconds) && *weir_runs_at(runs, 0)->ended);
    weir_runs_close(runs);
}

#define REPORT(value, low, high)                                                                        \
    "{\"task\":\"t\",\"validation\":{\"average_precision\":0.5},\"test\":{\"average_precision\":" value \
    ",\"average_precision_low\":" low ",\"average_precision_high\":" high "}}"

static void v1_what_is_wrong_is_named(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"report.json", "", "is not JSON"},
        {"report.json", "[]", "task"},
        {"report.json", "{\"task\":1,\"validation\":{},\"test\":{}}", "task"},
        {"report.json", "{\"task\":\"t\",\"validation\":{},\"test\":{}}", "has none of average_precision"},
        {"report.json", "{\"task\":\"t\",\"validation\":{\"accuracy\":\"high\"},\"test\":{}}", "number"},
        {"report.json", "{\"nodes\":5,\"parts\":2}", "task"}, /* as weir partition leaves one */
        {"report.json", REPORT("1.5", "null", "null"), "average_precision is not from 0 to 1"},
        {"report.json", REPORT("-0.1", "null", "null"), "average_precision is not from 0 to 1"},
        {"report.json", REPORT("1e70", "null", "null"), "average_precision is not from 0 to 1"},
        {"report.json", REPORT("0.5", "-1e300", "null"), "average_precision_low is not from -1 to 2"},
        {"report.json", REPORT("0.5", "0.4", "1e300"), "average_precision_high is not from -1 to 2"},
        {"run.json", "{\"options\":{}}", "is damaged"},
        {"epochs.jsonl", "{\"epoch\":1}\n", "is damaged or of an older version"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[64];
        const char *why = "";
        snprintf(name, sizeof name, "r%zu/run", i);
        make_run(name);
        snprintf(name, sizeof name, "r%zu/run/%s", i, rows[i][0]);
        write_text(name, rows[i][1], strlen(rows[i][1]));
        snprintf(name, sizeof name, "r%zu", i);
        weir_runs *runs = list_of(name);
        assert_int_equal(weir_runs_count(runs), 0);
        assert_non_null(weir_runs_skipped(runs, 0, &why));
        if (!strstr(why, rows[i][2])) fail_msg("row %zu: %s", i, why);
        weir_runs_close(runs);
    }
}

/* Bits of any file are changed, bytes are cut off and put in: a run or a name, never neither. */
static void v1_any_bytes_are_a_run_or_named(void **state) {
    static const char *const files[] = {"report.json", "run.json", "epochs.jsonl"};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    uint64_t named = 0;
    (void)state;
    for (uint64_t round = 0; round < weir_test_rounds(400); round++) {
        char name[64], *bytes;
        size_t length;
        make_run("r/run");
        snprintf(name, sizeof name, "r/run/%s", files[weir_rng_below(&rng, 3)]);
        assert_ok(weir_file_load(weir_test_path(name), 1 << 20, &bytes, &length));
        for (uint64_t i = weir_rng_below(&rng, 4); i < 4; i++)
            bytes[weir_rng_below(&rng, length)] = (char)weir_rng_below(&rng, 256);
        if (weir_rng_below(&rng, 3) == 0) length = weir_rng_below(&rng, length);
        write_text(name, bytes, length);
        weir_free(bytes);
        weir_runs *runs = list_of("r");
        assert_int_equal(weir_runs_count(runs) + skipped_count(runs), 1);
        named += skipped_count(runs);
        weir_runs_close(runs);
    }
    assert_true(named > 0);
}

/* Of each kind of number in a report, any that JSON has: each is named or can be shown in full. */
static void v1_any_figure_is_shown_or_named(void **state) {
    static const char *const keys[] = {"average_precision", "average_precision_low", "average_precision_high"};
    static const char *const values[] = {"0", "1", "-0.5", "1.5", "1e70", "-1e300", "1e308", "5e-324", "null"};
    const size_t value_count = sizeof values / sizeof values[0];
    size_t shown_count = 0;
    (void)state;
    for (size_t i = 0; i < value_count * value_count * value_count; i++) {
        const size_t of[] = {i % value_count, i / value_count % value_count, i / value_count / value_count};
        weir_buf report = {0}, out = {0};
        for (size_t part = 0; part < 2; part++) {
            weir_buf_printf(&report, "%s:{", part ? ",\"test\"" : "{\"task\":\"t\",\"validation\"");
            for (size_t k = 0; k < 3; k++)
                weir_buf_printf(&report, "%s\"%s\":%s", k ? "," : "", keys[k], values[of[k]]);
            weir_buf_byte(&report, '}');
        }
        weir_buf_byte(&report, '}');
        assert_ok(weir_folder_create(weir_test_path("r/run")));
        write_text("r/run/report.json", report.bytes, report.length);
        weir_runs *runs = list_of("r");
        assert_int_equal(weir_runs_count(runs) + skipped_count(runs), 1);
        if (weir_runs_count(runs)) {
            const weir_run *both[] = {weir_runs_at(runs, 0), weir_runs_at(runs, 0)};
            const weir_runs_shown shown = {.runs = both, .count = 2};
            weir_runs_tell(&shown, &out);
            weir_runs_tell_both(&shown, &out);
            assert_ok(weir_buf_err(&out));
            shown_count++;
        }
        weir_buf_free(&report);
        weir_buf_free(&out);
        weir_runs_close(runs);
    }
    assert_true(shown_count > 10);
}

/* A table is made of which options differ, so that their number is bounded. */
static void v1_too_many_options_are_named(void **state) {
    char members[6000] = "\"options\":{";
    const char *why = "";
    (void)state;
    make_run("r/run");
    for (unsigned i = 0; i < 257; i++)
        snprintf(members + strlen(members), sizeof members - strlen(members), "%s\"o%u\":\"1\"", i ? "," : "", i);
    strncat(members, "}", sizeof members - strlen(members) - 1);
    write_checked("r/run/run.json", members);
    weir_runs *runs = list_of("r");
    assert_int_equal(weir_runs_count(runs), 0);
    assert_non_null(weir_runs_skipped(runs, 0, &why));
    assert_non_null(strstr(why, "more than 256 options"));
    weir_runs_close(runs);
}

/* Seconds that no epoch has are not known, and what is made of them stays a number. */
static void seconds_out_of_range_are_not_known(void **state) {
    (void)state;
    make_run("r");
    write_checked("r/epochs.jsonl", "\"epoch\":1,\"validation\":0.4,\"seconds\":1e300\n"
                                    "\"epoch\":2,\"validation\":0.4,\"seconds\":-1\n"
                                    "\"epoch\":3,\"validation\":0.4,\"seconds\":2\n");
    weir_runs *runs = list_of("r");
    const weir_run *run = weir_runs_at(runs, 0);
    assert_true(run->seconds == 2 && isnan(run->epochs[0].seconds) && isnan(run->epochs[1].seconds));
    weir_runs_close(runs);
}

/* Without memory a list is not shorter: it is an error, or the run is named. */
static void v1_an_allocation_that_fails_loses_no_run(void **state) {
    uint64_t failed = 0;
    (void)state;
    make_run("r/one");
    make_run("r/two");
    for (uint64_t n = 1;; n++) {
        weir_runs *runs = NULL;
        weir_alloc_fail_nth(n);
        weir_err err = weir_runs_open(&runs);
        if (!err) err = weir_runs_add(runs, weir_test_path("r"));
        weir_alloc_fail_nth(0);
        if (err) assert_err(err, WEIR_ENOMEM, NULL);
        if (!err) assert_int_equal(weir_runs_count(runs) + skipped_count(runs), 2);
        const bool whole = !err && weir_runs_count(runs) == 2;
        weir_runs_close(runs);
        failed += !whole;
        if (whole && n > 200) break;
    }
    assert_true(failed > 10);
}

static void v2_no_control_character_is_shown(void **state) {
    static const char report[] = "{\"task\":\"a\\u001b[2Jb\\u0085c\\n\\u00e4\",\"validation\":{\"accuracy\":1},"
                                 "\"test\":{\"accuracy\":1}}";
    (void)state;
    make_run("r");
    write_text("r/report.json", report, sizeof report - 1);
    weir_runs *runs = list_of("r");
    assert_int_equal(weir_runs_count(runs), 1);
    assert_string_equal(weir_runs_at(runs, 0)->task, "a?[2Jb??c?\xc3\xa4");
    weir_runs_close(runs);
}

/* Bytes of files, of which one may be forged. */
static void a_picture_says_its_axis_and_names_as_text(void **state) {
    static const weir_run_epoch epochs[] = {{1, 0.5, 0.5, 1}};
    const weir_runs_line line = {"a<b&\"", epochs, 1, 1, true};
    weir_buf svg = {0};
    (void)state;
    weir_runs_draw(&svg, &line, 1, "<script>\"&");
    weir_buf_byte(&svg, 0);
    assert_ok(weir_buf_err(&svg));
    assert_null(strstr(svg.bytes, "<script>"));
    assert_non_null(strstr(svg.bytes, "aria-label=\"&lt;script&gt;&quot;&amp;, by epoch\""));
    assert_non_null(strstr(svg.bytes, ">&lt;script&gt;&quot;&amp;</text>"));
    assert_null(strstr(svg.bytes, "a<b"));
    weir_buf_free(&svg);
}

/* Two trainings that were told the same and got the same are two; a copy of one is the same. */
static void an_id_is_of_one_training(void **state) {
    char first[33], other[33];
    static const char began_later[] =
        "\"begun\":\"2026-11-21T10:00:00.000001Z\",\"ended\":\"2026-11-21T10:01:00.000000Z\",\"options\":{"
        "\"rate\":\"0.01\",\"residual\":true}";
    (void)state;
    make_run("r");
    weir_runs *runs = list_of("r");
    snprintf(first, sizeof first, "%s", weir_runs_at(runs, 0)->id);
    weir_runs_close(runs);
    assert_ok(weir_file_remove(weir_test_path("r/epochs.jsonl"))); /* a task without epochs has an id, too */
    runs = list_of("r");
    assert_string_equal(weir_runs_at(runs, 0)->id, first);
    weir_runs_close(runs);
    write_checked("r/run.json", began_later);
    runs = list_of("r");
    snprintf(other, sizeof other, "%s", weir_runs_at(runs, 0)->id);
    weir_runs_close(runs);
    assert_string_not_equal(first, other);
}

static void what_differs_is_found(void **state) {
    static const weir_run_option one[] = {{"hidden", "8"}, {"rate", "0.1"}, {"residual", "yes"}};
    static const weir_run_option two[] = {{"hidden", "8"}, {"rate", "0.2"}};
    static const weir_run runs[] = {{.options = one, .option_count = 3}, {.options = two, .option_count = 2}};
    const weir_run *of[] = {&runs[0], &runs[1]};
    weir_runs_shown shown = {.runs = of, .count = 2};
    weir_arena *arena = NULL;
    (void)state;
    assert_ok(weir_arena_open(1 << 20, &arena));
    assert_ok(weir_runs_find_differing(arena, &shown));
    assert_int_equal(shown.differing_count, 2);
    assert_string_equal(shown.differing[0], "rate");
    assert_string_equal(shown.differing[1], "residual");
    weir_arena_close(arena);
}

/* --- MLflow ------------------------------------------------------------------------------------------------------- */

/* All metrics and all params are sent once, and no request has more than the API takes. */
static void batches_keep_to_the_limits(void **state) {
    enum { EPOCHS = 2500, OPTIONS = 230, ODD = 4 };
    static weir_run_epoch epochs[EPOCHS];
    static weir_run_option options[OPTIONS + ODD];
    static char names[OPTIONS][16], wide[252];
    weir_run run = {.epochs = epochs,
                    .epoch_count = EPOCHS,
                    .options = options,
                    .option_count = OPTIONS + ODD,
                    .began = "",
                    .validation = {0.5, 0.4, (double)NAN, 1},
                    .test = {0.5, 0.4, 0.6, 1},
                    .seconds = 1};
    size_t from = 0, params = 0, metrics_sent = 0, params_sent = 0;
    weir_buf body = {0};
    (void)state;
    for (uint32_t i = 0; i < EPOCHS; i++)
        epochs[i] = (weir_run_epoch){i + 1, i % 10 ? 0.5 : (double)NAN, 0.25, 1};
    for (uint32_t i = 0; i < OPTIONS; i++) {
        snprintf(names[i], sizeof names[i], "o%u", i);
        options[i] = (weir_run_option){names[i], i ? "1" : "a \"quoted\" \xc3\xa4 value"};
    }
    /* Names that a server may refuse, and the whole run with them, are left out, wherever they stand. */
    memset(wide, 'a', sizeof wide - 1);
    options[OPTIONS] = options[0];
    options[0] = (weir_run_option){"a?b", "1"};
    options[OPTIONS + 1] = (weir_run_option){"", "1"};
    options[OPTIONS + 2] = (weir_run_option){wide, "1"};
    options[OPTIONS + 3] = (weir_run_option){"\xc3\xa4", "1"};
    while (weir_mlflow_batch(&run, "id", &from, &params, &body)) {
        json_t *root = json_loadb(body.bytes, body.length, 0, NULL);
        assert_non_null(root);
        const size_t metrics = json_array_size(json_object_get(root, "metrics"));
        const size_t some = json_array_size(json_object_get(root, "params"));
        assert_true(metrics <= 1000 && some <= 100 && metrics + some <= 1000 && metrics + some > 0);
        metrics_sent += metrics;
        params_sent += some;
        json_decref(root);
        weir_buf_clear(&body);
    }
    weir_buf_free(&body);
    assert_int_equal(metrics_sent, EPOCHS * 3 - EPOCHS / 10 + 6); /* without what is no number */
    assert_int_equal(params_sent, OPTIONS);
}

WEIR_TESTS(WEIR_CASE(a_run_is_read), WEIR_CASE(a_run_without_options_is_one), WEIR_CASE(v1_what_is_wrong_is_named),
           WEIR_CASE(v1_any_figure_is_shown_or_named), WEIR_CASE(v1_too_many_options_are_named),
           WEIR_CASE(seconds_out_of_range_are_not_known), WEIR_CASE(a_picture_says_its_axis_and_names_as_text),
           WEIR_CASE(v1_any_bytes_are_a_run_or_named), WEIR_CASE(v1_an_allocation_that_fails_loses_no_run),
           WEIR_CASE(v2_no_control_character_is_shown), WEIR_CASE(an_id_is_of_one_training),
           WEIR_CASE(what_differs_is_found), WEIR_CASE(batches_keep_to_the_limits))

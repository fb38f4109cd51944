/* SPDX-License-Identifier: Apache-2.0 */
/* curve_test.c - the log of a training's epochs and its picture: what was no number is a gap, and is said. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>

#include "training_private.h"
#include "weir_test.h"

static char *text_of(const char *file) {
    char path[4096], *text = NULL;
    size_t length;
    assert_ok(weir_path_join(path, sizeof path, weir_test_folder(), file));
    assert_ok(weir_file_load(path, 1 << 20, &text, &length));
    return text;
}

static void log_epochs(uint32_t first, const double *losses, uint32_t count) {
    weir_trained t = {.opts = {.folder = weir_test_folder()}};
    assert_ok(weir_comm_start(NULL, NULL, &t.comm));
    for (uint32_t i = 0; i < count; i++) {
        const weir_train_epoch epoch = {.number = first + i, .loss = losses[i], .validation = 0.5};
        assert_ok(weir_training_log_epoch(&t, &epoch));
    }
    weir_comm_stop(t.comm);
}

/* How often it stands in the line of the losses. */
static unsigned count_in_loss(const char *svg, char letter) {
    const char *d = strstr(strstr(svg, "stroke=\"#c2410c\""), " d=\"") + 4;
    unsigned count = 0;
    for (; *d != '"'; d++)
        count += *d == letter;
    return count;
}

static void a_loss_that_is_no_number_is_a_gap(void **state) {
    (void)state;
    const double losses[] = {1, 0.75, (double)NAN, 0.5, (double)INFINITY, 0.25};
    log_epochs(1, losses, 6);
    char *svg = text_of("curve.svg"), *log = text_of("epochs.jsonl");
    assert_int_equal(count_in_loss(svg, 'M'), 3);
    assert_int_equal(count_in_loss(svg, 'L'), 1);
    assert_non_null(strstr(svg, "<title>loss, 0.25 to 1</title>"));
    assert_non_null(strstr(svg, ">loss 0.25</text>"));
    assert_null(strstr(svg, "nan"));
    assert_non_null(strstr(log, "\"epoch\":3,\"loss\":null"));
    assert_true(weir_json_checked(log, strlen(log)));
    weir_free(svg);
    weir_free(log);
}

static void the_last_loss_is_no_number(void **state) {
    (void)state;
    const double losses[] = {(double)NAN, (double)NAN};
    log_epochs(1, losses, 2);
    char *svg = text_of("curve.svg");
    assert_int_equal(count_in_loss(svg, 'M'), 0);
    assert_non_null(strstr(svg, ">loss is not a number</text>"));
    assert_non_null(strstr(svg, "<title>loss, never a number</title>"));
    assert_null(strstr(svg, "nan") ? strstr(svg, "nan") : strstr(svg, "inf"));
    weir_free(svg);
}

/* A training that was ended after its last checkpoint does an epoch again. */
static void an_epoch_that_is_done_again_stands_once(void **state) {
    (void)state;
    const double before[] = {4, 3, 2, 1}, again[] = {2.5};
    log_epochs(1, before, 4);
    log_epochs(3, again, 1);
    char *svg = text_of("curve.svg"), *log = text_of("epochs.jsonl");
    assert_non_null(strstr(log, "\"epoch\":3,\"loss\":2.5"));
    assert_null(strstr(log, "\"epoch\":4"));
    assert_int_equal(count_in_loss(svg, 'L'), 2);
    assert_non_null(strstr(svg, ">epoch 3</text>"));
    weir_free(svg);
    weir_free(log);
}

WEIR_TESTS(WEIR_CASE(a_loss_that_is_no_number_is_a_gap), WEIR_CASE(the_last_loss_is_no_number),
           WEIR_CASE(an_epoch_that_is_done_again_stands_once))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_test.c - `weir serve` with inference.device: cuda has the scores and embeddings of one on the processor, and
 * where there is no library for a GPU it answers all the same, and its log says why. The library is the one whose
 * device a processor plays.
 */
#include "model_register.h"
#include "serve_child.h"

#include <math.h>

#include <jansson.h>

#define ASKED \
    "{\"targets\":[{\"type\":\"payment\",\"key\":\"p2\"},{\"type\":\"payment\",\"key\":\"p1\"}],\"reasons\":2}"

static const char events[] =
    "{\"id\":\"p1\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"card\":\"c1\",\"device\":\"d1\","
    "\"merchant\":\"m1\",\"amount\":17.99,\"currency\":\"EUR\",\"channel\":\"web\"}\n"
    "{\"id\":\"p2\",\"time\":\"2026-01-05T11:00:00Z\",\"account\":\"a1\",\"payee\":\"a2\",\"card\":\"c1\",\"amount\":"
    "250,"
    "\"currency\":\"EUR\",\"channel\":\"transfer\"}\n";

/* The program in a folder of its own, its log in a file, and the library beside it if it is to be there. */
static void program_lay(const char *name, bool library) {
    char line[16384], path[4096];
    weir_test_output output;
    snprintf(path, sizeof path, "%s", weir_test_path(name));
    snprintf(line, sizeof line,
             "mkdir -p '%s/bin' '%s/lib'; cp '%s' '%s/bin'; %s cp '%s' '%s/lib/libweir_cuda.so'; "
             "printf '#!/bin/sh\\nexec %s/bin/weir \"$@\" 2>%s/log\\n' >'%s/run'; chmod +x '%s/run'",
             path, path, weir_test_program(), path, library ? "" : ": ", WEIR_TEST_CUDA, path, path, path, path, path);
    const char *const argv[] = {"bash", "-e", "-c", line, NULL};
    weir_test_run(argv, NULL, &output);
    if (output.status) fail_msg("%s: %s", line, output.err);
    snprintf(line, sizeof line, "%s/run", path);
    assert_int_equal(setenv("WEIR_PROGRAM", line, 1), 0);
}

/* A payment's two numbers and its embedding, as a server has them. */
typedef struct answered {
    double logits[2], embedding[64];
    size_t width;
} answered;

static json_t *json_of(http_answer *answer) {
    if (answer->status != 200) fail_msg("%d: %.2000s", answer->status, answer->body);
    json_t *root = json_loads(answer->body, 0, NULL);
    assert_non_null(root);
    answer_free(answer);
    return root;
}

static void ask(const serve_child *child, answered *a) {
    http_answer answer;
    serve_post(child, "/v1/score", SERVE_JSON, ASKED, strlen(ASKED), &answer);
    json_t *root = json_of(&answer);
    for (size_t i = 0; i < 2; i++)
        a->logits[i] = json_number_value(json_object_get(json_array_get(json_object_get(root, "scores"), i), "logit"));
    json_decref(root);
    serve_get(child, "/v1/embeddings/account/a1", &answer);
    root = json_of(&answer);
    const json_t *embedding = json_object_get(root, "embedding");
    a->width = json_array_size(embedding);
    assert_in_range(a->width, 2, 64);
    for (size_t i = 0; i < a->width; i++)
        a->embedding[i] = json_number_value(json_array_get(embedding, i));
    json_decref(root);
}

static void serve_and_ask(const char *device, answered *a) {
    char set[64];
    serve_child child;
    snprintf(set, sizeof set, "inference.device=%s", device);
    const char *const more[] = {"--set", "models.require_signature=false", "--set", set, NULL};
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port != 0);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    serve_expect_post(&child, "/v1/events?source=payments", SERVE_LINES, events, 200, NULL);
    serve_await_applied(&child);
    ask(&child, a);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void log_of(const char *name, char *text, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/log", weir_test_path(name));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static double apart(const answered *a, const answered *b) {
    double most = fmax(fabs(a->logits[0] - b->logits[0]), fabs(a->logits[1] - b->logits[1]));
    assert_int_equal(a->width, b->width);
    for (size_t i = 0; i < a->width; i++)
        most = fmax(most, fabs(a->embedding[i] - b->embedding[i]));
    return most;
}

static void a_device_scores_as_the_processor_does(void **state) {
    (void)state;
    static char log[1 << 16];
    char id[WEIR_MODEL_ID_MAX], program[4096];
    answered here, there, without;
    register_make(weir_test_path("data/models"), 8, 5, id);
    snprintf(program, sizeof program, "%s", weir_test_program());
    serve_and_ask("cpu", &here);
    assert_true(here.logits[0] < here.logits[1] || here.logits[0] > here.logits[1]);
    program_lay("with", true);
    serve_and_ask("cuda", &there);
    log_of("with", log, sizeof log);
    if (strstr(log, "in place of cuda")) fail_msg("%s", log);
    if (apart(&here, &there) > 1e-4) fail_msg("answers are %g apart", apart(&here, &there));
    assert_int_equal(setenv("WEIR_PROGRAM", program, 1), 0);
    program_lay("without", false);
    serve_and_ask("cuda", &without);
    log_of("without", log, sizeof log);
    if (!strstr(log, "the processor computes in place of cuda: there is no libweir_cuda.so")) fail_msg("%s", log);
    assert_true(apart(&here, &without) <= 0);
}

WEIR_TESTS(WEIR_CASE(a_device_scores_as_the_processor_does))

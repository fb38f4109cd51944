/* SPDX-License-Identifier: Apache-2.0 */
/* nightly_test.c - what `weir nightly` says, decides and refuses; whatever fails, the old model goes on serving. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nightly_fixture.h"

#define MORE_NIGHTS "nights as in the other cases, with more to learn"

static void expect(const char *const *more, const char *const *environment, int status, const char *part) {
    weir_test_output output;
    night_run(more, environment, &output);
    if (output.status != status || !strstr(status ? output.err : output.out, part))
        fail_msg("status %d, wanted %d and \"%s\"\n%s%s", output.status, status, part, output.out, output.err);
    weir_test_output_free(&output);
}

static char *serving(void) {
    return weir_path_exists(weir_test_path("d/models/current")) ? night_text("d/models/current") : strdup("");
}

/* The same seed and data give an equal model, and an equal one is not promoted; more epochs or --force are. */
static void promotes_the_first_and_keeps_an_equal_one(void **state) {
    static const char *const first[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const tolerant[] = {"--tolerance", "0.01", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const forced[] = {"--force", "--keep", "2", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    (void)state;
    night_store("60");
    expect(first, NULL, 0, "no model served yet; its average precision is ");
    char *before = serving();
    expect(first, NULL, 0, "7/7  decide         kept 2");
    char *after = serving();
    assert_string_equal(before, after);
    expect(tolerant, NULL, 0, ", within --tolerance");
    expect(forced, NULL, 0, "promoted 2");
    assert_int_equal(night_entries("d/nights"), 2);
    free(before);
    free(after);
}

/* --- which is the better one ------------------------------------------------------------------------------------- */

typedef struct judged {
    char id[64];
    double value;
} judged;

/* Of a line such as "5/7  judge          ID: average precision 0.1234". */
static judged judged_at(const char *said, const char *step) {
    static const char measure[] = ": average precision ";
    judged j = {"", 0};
    const char *line = strstr(said, step), *value = line ? strstr(line, measure) : NULL;
    if (!value || value > strchr(line, '\n')) fail_msg("there is no figure at %s: %s", step, said);
    const char *id = line + strlen(step) + strspn(line + strlen(step), " ");
    snprintf(j.id, sizeof j.id, "%.*s", (int)(value - id), id);
    j.value = strtod(value + strlen(measure), NULL);
    return j;
}

/* A night that learns from this seed; after it its own model serves if that is surely better. How much better it was on
 * these targets, and whether surely. */
static double night_of(const char *seed, bool *surelyp) {
    const char *const more[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, "--seed", seed, NULL};
    weir_test_output output;
    char star[80];
    night_run(more, NULL, &output);
    if (output.status) fail_msg("%s", output.err);
    judged candidate = judged_at(output.out, "5/7  judge "), before = judged_at(output.out, "6/7  judge-serving ");
    const char *decision = strstr(output.out, "7/7  decide "),
               *interval = decision ? strstr(decision, " targets (") : 0;
    if (!interval) fail_msg("the decision has no interval: %s", output.out);
    *surelyp = strtod(interval + strlen(" targets ("), NULL) > 0;
    const char *const list[] = {weir_test_program(),        "model", "list",         "--path",
                                weir_test_path("d/models"), "--set", NIGHT_UNSIGNED, NULL};
    weir_test_output models;
    weir_test_run(list, NULL, &models);
    snprintf(star, sizeof star, "* %s ", *surelyp ? candidate.id : before.id);
    if (!strstr(models.out, star)) fail_msg("'%s' is not the one that serves\n%s\n%s", star, output.out, models.out);
    weir_test_output_free(&models);
    weir_test_output_free(&output);
    return candidate.value - before.value;
}

/* Whether one seed or the other is better does not matter: one of the two nights has the worse one. */
static void g3_the_surely_better_one_serves_whichever_is_new(void **state) {
    static const char *const first[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    bool surely, again;
    (void)state;
    weir_test_skip_under("address", MORE_NIGHTS);
    night_store("60");
    expect(first, NULL, 0, "no model served yet");
    double other = night_of("2", &surely), same = night_of("1", &again); /* as the first night, which said no seed */
    printf("another seed: %+.4f, the first night's: %+.4f\n", other, same);
    assert_true(other < 0 || same < 0 || (!surely && !again));
    assert_true(other > 0 || !surely);
    assert_true(same > 0 || !again);
}

/* The first night's model has seen the data once; the second night's has learnt. */
static void a_surely_better_one_is_promoted(void **state) {
    static const char *const first[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const second[] = {"--set", NIGHT_UNSIGNED, "--", "--epochs", "20", "--no-baselines", NULL};
    (void)state;
    weir_test_skip_under("address", MORE_NIGHTS);
    night_store("120");
    expect(first, NULL, 0, "no model served yet");
    expect(second, NULL, 0, "7/7  decide         promoted 2");
}

/* Each night's model is of another family than the one that serves, both ways round, and is compared with it. */
static void families_follow_each_other(void **state) {
    static const char *const first[] = {"--set", NIGHT_UNSIGNED, NIGHT_ANY, "--model", "trees", NULL};
    static const char *const families[] = {"network", "blend", "trees", "network"};
    (void)state;
    weir_test_skip_under("address", MORE_NIGHTS);
    night_store("120");
    expect(first, NULL, 0, "no model served yet");
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *const next[] = {"--force", "--set", NIGHT_UNSIGNED, NIGHT_ANY, "--model", families[i], NULL};
        char shown[64];
        weir_test_output output;
        night_run(next, NULL, &output);
        if (output.status || !strstr(output.out, "promoted 2")) fail_msg("%s%s", output.out, output.err);
        (void)judged_at(output.out, "5/7  judge ");
        (void)judged_at(output.out, "6/7  judge-serving ");
        weir_test_output_free(&output);
        const char *const show[] = {weir_test_program(),        "model", "show",         "--path",
                                    weir_test_path("d/models"), "--set", NIGHT_UNSIGNED, NULL};
        weir_test_run(show, NULL, &output);
        snprintf(shown, sizeof shown, "\"serves\":true,\"task\":\"fraud\",\"family\":\"%s\"", families[i]);
        if (!strstr(output.out, shown)) fail_msg("%s is not in %.400s%s", shown, output.out, output.err);
        weir_test_output_free(&output);
    }
}

/* Who asks for no family gets the best of all. */
static void the_best_family_is_taken(void **state) {
    static const char *const night[] = {"--set", NIGHT_UNSIGNED, NIGHT_ANY, NULL};
    (void)state;
    weir_test_skip_under("address", MORE_NIGHTS);
    night_store("120");
    weir_test_output output;
    night_run(night, NULL, &output);
    if (output.status || !strstr(output.err, "\nbest on validation: ")) fail_msg("%s%s", output.out, output.err);
    weir_test_output_free(&output);
}

static void an_ended_night_is_not_gone_on_with(void **state) {
    static const char *const named[] = {"--name", "n", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    (void)state;
    night_store("60");
    expect(named, NULL, 0, "promoted");
    expect(named, NULL, 65, "night n has ended (promoted); name another");
}

static void make_keys(void) {
    const char *const keygen[] = {weir_test_program(),
                                  "model",
                                  "keygen",
                                  "--secret",
                                  weir_test_path("d/models.key"),
                                  "--public",
                                  weir_test_path("d/models.pub"),
                                  NULL};
    night_must(keygen);
}

static void a_signed_model_serves_and_an_unsigned_does_not(void **state) {
    static const char *const strict[] = {NIGHT_SMALL, NULL};
    (void)state;
    night_store("60");
    make_keys();
    expect(strict, NULL, 0, "promoted");
    char *before = serving();
    assert_non_null(strstr(before, "\nweir-ed25519 "));
    assert_ok(weir_file_remove(weir_test_path("d/models.key")));
    expect(strict, NULL, 69, "goes on serving"); /* what is not permitted ends a step so, and a night as its step */
    expect(strict, NULL, 69, "sign");
    char *after = serving();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* A night would be spent on a model that no server follows. */
static void a_register_that_nobody_signed_stops_a_strict_night_before_it_trains(void **state) {
    static const char *const lenient[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const strict[] = {NIGHT_SMALL, NULL};
    (void)state;
    night_store("60");
    expect(lenient, NULL, 0, "promoted");
    make_keys();
    expect(strict, NULL, 69, "weir model promote ID --key FILE");
    assert_int_equal(night_entries("d/models"), 1);
    assert_int_equal(night_entries("d/nights"), 1);
}

static void a_lost_serving_model_stops_the_night(void **state) {
    static const char *const first[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const forced[] = {"--force", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    char path[512];
    (void)state;
    night_store("60");
    expect(first, NULL, 0, "promoted");
    char *before = serving();
    const char *id = strstr(before, "20"); /* after the generation and the time comes the id: found by its form */
    while (id && !(strlen(id) > 25 && id[8] == 'T' && id[15] == 'Z' && id[16] == '-'))
        id = strstr(id + 1, "20");
    assert_non_null(id);
    snprintf(path, sizeof path, "d/models/%.25s", id);
    path[strcspn(path, " \t\n\"")] = 0;
    assert_ok(weir_folder_remove(weir_test_path(path)));
    expect(first, NULL, 65, "goes on serving");
    expect(forced, NULL, 0, "--force, without a figure of");
    free(before);
}

static void too_little_data(void **state) {
    static const char *const small[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    (void)state;
    night_store("3");
    expect(small, NULL, 65, "train: ");
    expect(small, NULL, 65, "take more data");
}

static void several_ranks(void **state) {
    static const char *const two[] = {"--ranks", "2", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const parts[] = {"--ranks", "4", "--parts", "2", NULL};
    static const char *const nowhere[] = {"PATH=/nonexistent", NULL};
    static const char *const quiet[] = {"ASAN_OPTIONS=detect_leaks=0", NULL}; /* Open MPI leaks by itself */
    (void)state;
    night_store("60");
    expect(parts, NULL, 64, "4 ranks cannot share 2 parts");
    expect(two, nowhere, 69, "mpirun is not in PATH; install openmpi-bin, or train with --ranks 1");
    if (access("/usr/bin/mpirun", X_OK) != 0) weir_test_skip("no mpirun");
    expect(two, quiet, 0, "promoted");
}

static void a_missing_store_and_server(void **state) {
    static const char *const plain[] = {NULL};
    static const char *const asked[] = {"--server", "http://127.0.0.1:1", NULL};
    static const char *const secure[] = {"--server", "https://127.0.0.1:1", NULL};
    static const char *const odd[] = {"--server", "ftp://x", NULL};
    (void)state;
    expect(plain, NULL, 65, "there is no store in ");
    expect(asked, NULL, 69, "the server http://127.0.0.1:1 cannot be asked: ");
    expect(secure, NULL, 69, "; start `weir serve` or drop --server");
    expect(odd, NULL, 64, "is not an address like http://127.0.0.1:8080");
}

/* As a proxy does whose server is away. */
static void a_server_that_answers_without_a_body(void **state) {
    static const char reply[] = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char url[64], request[4096];
    const char *const asked[] = {"--server", url, NULL};
    (void)state;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    pid_t server = fork();
    if (!server) {
        int fd = accept(listener, NULL, NULL);
        bool told = fd >= 0 && read(fd, request, sizeof request) > 0 &&
                    write(fd, reply, sizeof reply - 1) == (ssize_t)sizeof reply - 1;
        _exit(told ? 0 : 1);
    }
    close(listener);
    expect(asked, NULL, 69, "the server wrote no checkpoint (status 502): it does not say why");
    assert_int_equal(waitpid(server, NULL, 0), server);
}

static void a_rehearsal_changes_nothing(void **state) {
    static const char *const rehearsal[] = {"--dry-run", "--ranks", "1", "--", "--epochs", "7", NULL};
    (void)state;
    expect(rehearsal, NULL, 0, "--resume --model best --epochs 7\n4/7  train");
    assert_false(weir_path_exists(weir_test_path("d")));
}

WEIR_TESTS(WEIR_CASE(promotes_the_first_and_keeps_an_equal_one),
           WEIR_CASE(g3_the_surely_better_one_serves_whichever_is_new), WEIR_CASE(a_surely_better_one_is_promoted),
           WEIR_CASE(families_follow_each_other), WEIR_CASE(the_best_family_is_taken),
           WEIR_CASE(an_ended_night_is_not_gone_on_with), WEIR_CASE(a_signed_model_serves_and_an_unsigned_does_not),
           WEIR_CASE(a_register_that_nobody_signed_stops_a_strict_night_before_it_trains),
           WEIR_CASE(a_lost_serving_model_stops_the_night), WEIR_CASE(too_little_data), WEIR_CASE(several_ranks),
           WEIR_CASE(a_missing_store_and_server), WEIR_CASE(a_server_that_answers_without_a_body),
           WEIR_CASE(a_rehearsal_changes_nothing))

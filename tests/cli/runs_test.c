/* SPDX-License-Identifier: Apache-2.0 */
/* runs_test.c - `weir runs` over real trainings; and what it sends to an MLflow server, which is played here. */
#include <arpa/inet.h>
#include <signal.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "days_fixture.h"

#define LEARN " --batch 32 --fanouts 4,4 --negatives 0 --warm-up 0 --validation 0.2 --test 0.2 --no-baselines"
#define TRAIN "weir train snap" LEARN

static void make_runs(void) {
    days_snapshot();
    cli_must(TRAIN " --epochs 3 --hidden 4 --folder runs/narrow", "^test: 240 targets");
    cli_must(TRAIN " --epochs 4 --hidden 8 --residual --folder runs/wide --models models", "^model 2");
}

static void a_table_says_what_differs(void **state) {
    (void)state;
    make_runs();
    cli_must("weir runs runs", "^figures: average precision$");
    cli_must(
        "weir runs runs | sed -n 3p",
        "^runs/narrow  20..-..-..T..:..  t +network +0\\.[0-9]{4}  0\\.[0-9]{4} \\(0\\.[0-9]{4} to 0\\.[0-9]{4}\\) "
        "+[0-9.]+  epochs=3  hidden=4$");
    cli_must("weir runs runs | sed -n 4p", "  epochs=4  hidden=8  residual=yes$");
    cli_must("weir runs models | wc -l && weir runs models", "^models/2[^ ]+  .*  t +network ");
    cli_must("weir runs --compare runs/narrow runs/wide", "^--hidden +4 +8$");
    cli_must("weir runs --compare runs/narrow runs/wide", "^--residual +- +yes$");
    cli_must("weir runs --compare runs/narrow runs/wide | grep -- --batch || echo the same", "^the same$");
    cli_must("weir runs runs --json | grep -c '\"options\":{[^}]*\"hidden\":\"8\".*\"validation_by_epoch\":\\[0'",
             "^1$");
    cli_must("id=$(ls models | head -n 1); weir runs runs --json | grep -c \"\\\"model\\\":\\\"$id\\\"\"", "^1$");
    cli_must("weir runs runs --plot p.svg > said; grep -c '<path class=\"run\"\\|<path class=\"best\"' p.svg", "^4$");
    cli_must("weir runs runs --sort validation | tail -n +3 | cut -c1-12 | wc -l", "^2$");
}

static void what_is_no_run_is_said(void **state) {
    (void)state;
    make_runs();
    cli_must("mkdir empty; weir runs empty", "^no runs in empty, nor 4 folders below: ");
    cli_must("weir runs empty --json", "^\\{\"runs\":\\[\\],\"skipped\":\\[\\]\\}$");
    cli_must("cp -r runs broken; printf '{' > broken/wide/report.json; mkdir broken/other; echo '{\"nodes\":1}' > "
             "broken/other/report.json; weir runs broken",
             "^skipped broken/wide: broken/wide/report.json is not JSON");
    cli_must("weir runs broken", "^skipped broken/other: .* 'task' is missing$");
    cli_must("weir runs broken | grep -c ^broken/narrow", "^1$");
    cli_must(
        "mkdir wild; echo '{\"task\":\"t\",\"validation\":{\"average_precision\":0.5},\"test\":"
        "{\"average_precision\":1e70,\"average_precision_low\":1e300,\"average_precision_high\":1e300}}' "
        "> wild/report.json; weir runs wild",
        "^skipped wild: wild/report.json.*average_precision is not from 0 to 1; it is not the report of a training");
    cli_refused("weir runs nowhere", "cannot look into nowhere");
    cli_refused("weir runs s.yaml", "s.yaml is no folder");
    cli_refused("weir runs --compare runs", "--compare is of two runs");
    cli_refused("weir runs --compare runs/wide empty", "these folders have 1; name a folder of each");
    cli_refused("weir runs runs --experiment x", "are of --mlflow");
    cli_refused("weir runs runs --mlflow ftp://x", "is not an address");
    cli_refused("weir runs runs --mlflow http://127.0.0.1:1", "start `mlflow server`");
}

/* --- an MLflow server --------------------------------------------------------------------------------------------- */

#define FAKE_RUNS_MAX 16

typedef struct fake_run {
    char tag[64], status[16];
    size_t metrics, params;
} fake_run;

/* What it has, and how it is to go wrong: it ends before the answer of the request of this number, refuses the first
 * logs of figures, or answers what no such server does. */
typedef struct fake {
    int listener, requests, dies_at;
    int refuses; /* so many */
    bool has_experiment;
    bool says_odd_ids, says_too_much;
    fake_run runs[FAKE_RUNS_MAX];
    size_t count;
} fake;

static json_t *fake_error(const char *code, const char *message) {
    return json_pack("{s:s, s:s}", "error_code", code, "message", message);
}

static const char *fake_tag_of(const json_t *body) {
    size_t i;
    json_t *tag;
    json_array_foreach(json_object_get(body, "tags"), i, tag) {
        if (strcmp(json_string_value(json_object_get(tag, "key")), "weir.run") == 0)
            return json_string_value(json_object_get(tag, "value"));
    }
    return "";
}

static json_t *fake_run_of(const fake *f, const char *tag) {
    for (size_t i = 0; i < f->count; i++) {
        char id[16];
        snprintf(id, sizeof id, "r%zu", i);
        if (strstr(tag, f->runs[i].tag))
            return json_pack("{s:[{s:{s:s, s:s}}]}", "runs", "info", "run_id", id, "status", f->runs[i].status);
    }
    return json_object();
}

static fake_run *fake_named(fake *f, const json_t *body) {
    const size_t number = strtoul(json_string_value(json_object_get(body, "run_id")) + 1, NULL, 10);
    return &f->runs[number < f->count ? number : 0];
}

/* More than any answer has. */
static json_t *fake_much(void) {
    enum { MUCH = 17 << 20 };
    char *text = malloc(MUCH);
    assert_non_null(text);
    memset(text, 'a', MUCH);
    json_t *answer = json_pack("{s:s#}", "message", text, MUCH);
    free(text);
    return answer;
}

static json_t *fake_answer(fake *f, const char *path, const json_t *body, int *statusp) {
    char id[16];
    *statusp = 200;
    if (f->says_too_much) return fake_much();
    if (strstr(path, "experiments/get-by-name?experiment_name=my%20own")) {
        if (f->has_experiment) return json_pack("{s:{s:s}}", "experiment", "experiment_id", "7");
        *statusp = 404;
        return fake_error("RESOURCE_DOES_NOT_EXIST", "there is none");
    }
    if (strstr(path, "experiments/create")) {
        f->has_experiment = true;
        return json_pack("{s:s}", "experiment_id", "7");
    }
    if (strstr(path, "runs/search")) return fake_run_of(f, json_string_value(json_object_get(body, "filter")));
    if (strstr(path, "runs/create") && f->count < FAKE_RUNS_MAX) {
        fake_run *run = &f->runs[f->count];
        snprintf(run->tag, sizeof run->tag, "%s", fake_tag_of(body));
        snprintf(run->status, sizeof run->status, "RUNNING");
        snprintf(id, sizeof id, f->says_odd_ids ? "r\x1b[2J%zu" : "r%zu", f->count++);
        return json_pack("{s:{s:{s:s}}}", "run", "info", "run_id", id);
    }
    if (strstr(path, "runs/log-batch") && f->refuses-- <= 0) {
        fake_run *run = fake_named(f, body);
        run->metrics += json_array_size(json_object_get(body, "metrics"));
        run->params += json_array_size(json_object_get(body, "params"));
        return json_object();
    }
    if (strstr(path, "runs/update")) {
        snprintf(fake_named(f, body)->status, 16, "%s", json_string_value(json_object_get(body, "status")));
        return json_object();
    }
    *statusp = 400;
    return fake_error("INVALID_PARAMETER_VALUE", "Param value '8' for run \x1b[2J is wrong");
}

/* A request whole, and its path; NULL: the connection ended. */
static char *fake_read(int fd, char path[512], char token[64]) {
    static char bytes[1 << 20];
    size_t length = 0, wanted = SIZE_MAX;
    char *body = NULL;
    while (!body || (size_t)(bytes + length - body) < wanted) {
        const ssize_t got = read(fd, bytes + length, sizeof bytes - 1 - length);
        if (got <= 0) return NULL;
        length += (size_t)got;
        bytes[length] = 0;
        char *end = strstr(bytes, "\r\n\r\n"), *says = strcasestr(bytes, "content-length:");
        if (!end) continue;
        body = end + 4;
        wanted = says && says < end ? strtoul(says + 15, NULL, 10) : 0;
    }
    char *bearer = strcasestr(bytes, "authorization: bearer ");
    snprintf(token, 64, "%.*s", bearer ? (int)strcspn(bearer + 22, "\r") : 0, bearer ? bearer + 22 : "");
    sscanf(bytes, "%*s %511s", path);
    return body;
}

/* What the test looks at: a line of each request, and at its end what each run has. */
static void fake_note(const fake *f, const char *path, const char *token) {
    FILE *file = fopen(weir_test_path("asked"), "a");
    fprintf(file, "%s %s\n", path, token);
    fclose(file);
    file = fopen(weir_test_path("has"), "w");
    for (size_t i = 0; i < f->count; i++)
        fprintf(file, "r%zu %s %zu metrics %zu params\n", i, f->runs[i].status, f->runs[i].metrics, f->runs[i].params);
    fclose(file);
}

static void fake_serve(fake *f) {
    char path[512], token[64], head[256];
    for (;;) {
        const int fd = accept(f->listener, NULL, NULL);
        char *text = fake_read(fd, path, token);
        if (text && ++f->requests == f->dies_at) _exit(0);
        json_t *body = text ? json_loads(*text ? text : "{}", 0, NULL) : NULL;
        int status = 400;
        json_t *answer = body ? fake_answer(f, path, body, &status) : fake_error("BAD", "no JSON");
        char *said = json_dumps(answer, 0);
        fake_note(f, path, token);
        const int length = snprintf(head, sizeof head,
                                    "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                                    "Connection: close\r\n\r\n",
                                    status, strlen(said));
        const bool told = write(fd, head, (size_t)length) > 0 && write(fd, said, strlen(said)) > 0;
        free(said);
        json_decref(answer);
        json_decref(body);
        close(fd);
        if (!told && text) _exit(1);
    }
}

/* In a process of its own, on a free port; the state goes on in the next one. */
static pid_t fake_start(fake *f, char line[256], const char *options) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(f->listener, 8), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&address, &length), 0);
    snprintf(line, 256, "weir runs runs --mlflow http://127.0.0.1:%u/base/ --experiment 'my own'%s",
             ntohs(address.sin_port), options);
    const pid_t server = fork();
    assert_true(server >= 0);
    if (!server) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_serve(f);
    }
    close(f->listener);
    return server;
}

static void fake_stop(pid_t server) {
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
}

static void runs_are_sent_to_mlflow_once(void **state) {
    fake f = {.listener = -1};
    char line[256];
    (void)state;
    make_runs();
    cli_must("echo secret-token > key", "");
    const pid_t server = fake_start(&f, line, " --api-key-file key");
    cli_must(line, "^runs/narrow: sent as run r0$");
    cli_must("cat has", "^r0 FINISHED 16 metrics 9 params$"); /* 3 of each of 3 epochs, and 7 of the whole run */
    cli_must("cat has", "^r1 FINISHED 19 metrics 10 params$");
    cli_must("grep -vc '^/base/api/2.0/mlflow/.* secret-token$' asked || true", "^0$");
    cli_must(line, "^runs/wide: was there as run r1$");
    cli_must("cat has", "^r1 FINISHED 19 metrics 10 params$");
    cli_must("grep -c runs/create asked; grep -c experiments/create asked", "^1$");
    fake_stop(server);
}

/* The server goes away between a run's beginning and its end: the next sending goes on with it. */
static void what_was_cut_off_is_gone_on_with(void **state) {
    fake f = {.listener = -1, .dies_at = 5};
    char line[256];
    (void)state;
    make_runs();
    pid_t server = fake_start(&f, line, "");
    cli_refused(line, "runs/narrow: the server .* cannot be asked: ");
    fake_stop(server);
    cli_must("cat has", "^r0 RUNNING 0 metrics 0 params$");
    char *tag = NULL;
    weir_test_output output;
    cli_bash(weir_test_folder(), "weir runs runs/narrow --json | grep -o '\"id\":\"[0-9a-f]*' | cut -c7-", &output);
    tag = output.out;
    tag[strcspn(tag, "\n")] = 0;
    fake after = {.listener = -1, .has_experiment = true, .count = 1, .runs = {{.status = "RUNNING"}}};
    snprintf(after.runs[0].tag, sizeof after.runs[0].tag, "%s", tag);
    weir_test_output_free(&output);
    server = fake_start(&after, line, "");
    cli_must(line, "^runs/narrow: was begun there, and is whole now as run r0$");
    cli_must("cat has", "^r0 FINISHED 16 metrics 9 params$");
    fake_stop(server);
}

/* A name and a password in the address are asked with, and never said. */
static void what_mlflow_refuses_is_said(void **state) {
    fake f = {.listener = -1, .refuses = 2};
    char line[256], secret[300];
    (void)state;
    make_runs();
    const pid_t server = fake_start(&f, line, "");
    const char *host = strstr(line, "127.0.0.1");
    snprintf(secret, sizeof secret, "%.*suser:SECRET@%s", (int)(host - line), line, host);
    cli_refused(
        secret,
        "^weir runs: 2 of 2 runs were refused, the first of them runs/narrow: MLflow at http://127.0.0.1:[0-9]+ "
        "says to runs/log-batch \\(status 400\\): Param value '8' for run \\?\\[2J is wrong");
    fake_stop(server);
    cli_refused("weir runs runs --mlflow http://user:SECRET@127.0.0.1:1/x",
                "the server http://127.0.0.1:1 cannot be asked: ");
    cli_must("weir runs runs --mlflow http://user:SECRET@127.0.0.1:1/x 2>&1 | grep -c SECRET || true", "^0$");
    cli_refused("weir runs runs --mlflow 'http://user:SECRET@[x'", "what --mlflow names is not an address");
    cli_must("weir runs runs --mlflow 'http://user:SECRET@[x' 2>&1 | grep -c SECRET || true", "^0$");
}

/* One that is refused is no reason to leave out the others. */
static void what_mlflow_refuses_of_one_run_leaves_the_others(void **state) {
    fake f = {.listener = -1, .refuses = 1};
    char line[256];
    weir_test_output output;
    (void)state;
    make_runs();
    const pid_t server = fake_start(&f, line, "");
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 69 && cli_matches(output.out, "^runs/wide: sent as run r1$"), line, &output,
               "must send the other one");
    CLI_ASSERT(cli_matches(output.err, "^weir runs: 1 of 2 runs were refused, the first of them runs/narrow: MLflow"),
               line, &output, "must say which was not");
    weir_test_output_free(&output);
    cli_must(line, "^runs/narrow: was begun there, and is whole now as run r0$");
    fake_stop(server);
}

static void what_no_mlflow_answers_is_refused(void **state) {
    fake odd = {.listener = -1, .says_odd_ids = true}, much = {.listener = -1, .says_too_much = true};
    char line[256];
    (void)state;
    make_runs();
    pid_t server = fake_start(&odd, line, "");
    cli_refused(line, "it has not 1 to 127 letters, digits, - and _");
    fake_stop(server);
    server = fake_start(&much, line, "");
    cli_refused(line, "gave an answer longer than 16777216 bytes; start `mlflow server`");
    fake_stop(server);
    cli_must(": > empty; echo > blank", "");
    cli_refused("weir runs runs --mlflow http://127.0.0.1:1 --api-key-file empty",
                "empty has no key in its first line");
    cli_refused("weir runs runs --mlflow http://127.0.0.1:1 --api-key-file blank",
                "blank has no key in its first line");
}

/* --- one training or another -------------------------------------------------------------------------------------- */

/* Figures of another question are neither higher nor lower. */
static void what_cannot_be_compared_has_no_best(void **state) {
    (void)state;
    cli_must("report() { mkdir -p r/$1; printf '{\"task\":\"%s\",\"best_epoch\":1,\"validation\":{\"%s\":%s},"
             "\"test\":{\"%s\":%s}}' $2 $3 $4 $3 $4 > r/$1/report.json; }; "
             "report a buy recall_at_20 0.9; report b fraud average_precision 0.3; "
             "report c fraud average_precision 0.5; report d kind accuracy 0.8; report e fraud accuracy 0.7",
             "");
    cli_must("weir runs r --sort validation | tail -n +2 | cut -c1-3 | tr '\\n' ' '", "^r/a r/e r/c r/b r/d $");
    cli_must("weir runs r --plot p.svg > said; grep -c 'class=\"best\"' p.svg || true", "^0$");
    cli_must("grep -c '>validation<' p.svg", "^1$");
    cli_must("weir runs r/b r/c --plot p.svg > said; grep -c 'class=\"best\"' p.svg", "^2$");
    cli_must("grep -c '>average precision of validation<' p.svg", "^1$");
}

/* Wherever a second training into one folder ends, none has the options of one and the figures of the other. */
static void a_report_never_stands_beside_other_options(void **state) {
    (void)state;
    make_runs();
    cli_must("touch file; cp -r runs/narrow refused; for o in --heads=2 --rate=50; do " TRAIN
             " --folder refused $o 2> said || true; done; diff -r refused runs/narrow && echo untouched",
             "^untouched$");
    /* Its model cannot be added, which is between the report and the options. */
    cli_refused(TRAIN " --epochs 2 --hidden 8 --folder runs/narrow --models file > said", "file");
    cli_must("weir runs runs/narrow --json | grep -c '\"options\":{}.*\"validation_by_epoch\":\\[[^,]*,[^,]*\\]'",
             "^1$");
    cli_refused(TRAIN " --epochs 4 --hidden 8 --residual --folder runs/wide --resume --models file > said", "file");
    cli_must("weir runs runs/wide --json | grep -c '\"options\":{}'", "^1$");
    cli_must("{ " TRAIN " --epochs 1000 --patience 0 --hidden 8 --folder runs/wide > said & pid=$!; "
             "until grep -q 'epoch 2 ' said; do sleep 0.01; done; kill -KILL $pid; wait $pid || true; }; "
             "weir runs runs/wide",
             "^no runs in runs/wide");
    /* Trees have no epochs, and none of an earlier network. */
    cli_must("weir train snap --validation 0.2 --test 0.2 --warm-up 0 --model trees --folder runs/narrow", "^test: ");
    cli_must("weir runs runs/narrow --json | grep -c '\"seconds\":null.*\"validation_by_epoch\":\\[\\]'", "^1$");
}

WEIR_TESTS(WEIR_CASE(a_table_says_what_differs), WEIR_CASE(what_is_no_run_is_said),
           WEIR_CASE(runs_are_sent_to_mlflow_once), WEIR_CASE(what_was_cut_off_is_gone_on_with),
           WEIR_CASE(what_mlflow_refuses_is_said), WEIR_CASE(what_mlflow_refuses_of_one_run_leaves_the_others),
           WEIR_CASE(what_no_mlflow_answers_is_refused), WEIR_CASE(what_cannot_be_compared_has_no_best),
           WEIR_CASE(a_report_never_stands_beside_other_options))

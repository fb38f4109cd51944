/* SPDX-License-Identifier: Apache-2.0 */
/* dlq_test.c - dead letters as an operator meets them: listed, looked at, put right, sent again. */
#include "cli_support.h"

#define WRONG "{\"id\":\"x\",\"time\":\"2026-01-01T00:00:00Z\",\"payment\":\"p\",\"label\":\"frau\"}"

/* Two letters of a file, and a topic for replays. */
static const char setup[] =
    "printf '%s\\n' '{broken' '" WRONG "' '{\"id\":\"y\",\"time\":\"2026-01-01T00:00:00Z\",\"payment\":\"q\","
    "\"label\":\"fraud\"}' > chargebacks.jsonl; weir load --schema payments --data d chargebacks.jsonl; "
    "weir log append chargebacks --path d/eventlog < /dev/null; export WEIR_EVENTLOG_PATH=d/eventlog";

typedef struct step {
    const char *line;
    int status;
    const char *out, *err; /* regular expressions; NULL: anything */
} step;

static void run_steps(const step *steps, size_t count) {
    weir_test_output output;
    cli_bash(weir_test_folder(), setup, &output);
    CLI_ASSERT(output.status == 0, setup, &output, "the setup failed");
    weir_test_output_free(&output);
    for (size_t i = 0; i < count; i++) {
        char line[4096];
        snprintf(line, sizeof line, "export WEIR_EVENTLOG_PATH=d/eventlog; %s", steps[i].line);
        cli_bash(weir_test_folder(), line, &output);
        CLI_ASSERT(output.status == steps[i].status, line, &output, "another status was wanted");
        CLI_ASSERT(!steps[i].out || cli_matches(output.out, steps[i].out), line, &output, steps[i].out);
        CLI_ASSERT(!steps[i].err || cli_matches(output.err, steps[i].err), line, &output, steps[i].err);
        weir_test_output_free(&output);
    }
}

#define RUN(...)                                          \
    do {                                                  \
        static const step steps[] = {__VA_ARGS__};        \
        run_steps(steps, sizeof steps / sizeof steps[0]); \
    } while (0)

static void lists_with_filters(void **state) {
    (void)state;
    RUN({"weir ingest dlq list | wc -l", 0, "^3$", NULL},
        {"weir ingest dlq list --reason values | wc -l", 0, "^2$", NULL},
        {"weir ingest dlq list --source payments | wc -l", 0, "^1$", NULL},
        {"weir ingest dlq list --partition 1 | wc -l", 0, "^1$", NULL},
        {"weir ingest dlq list --since 2100-01-01 | wc -l", 0, "^1$", NULL},
        {"weir ingest dlq list --limit 1 --json", 0,
         "^\\{\"number\":0,.*\"stream\":\"file\",\"partition\":0,\"offset\":0", NULL},
        {"weir ingest dlq list --json | grep -c frau", 1, "^0$", NULL}, /* no payload in a list */
        {"weir ingest dlq list --partition many", 64, "^$", "--partition"});
}

static void shows_the_bytes_as_they_came(void **state) {
    (void)state;
    RUN({"weir ingest dlq show 1 | cmp - <(printf '%s' '" WRONG "')", 0, NULL, NULL},
        {"weir ingest dlq show 0 --json | grep -o 'value_base64.*' | cut -d'\"' -f3 | base64 -d | cmp - <(printf "
         "'{broken')",
         0, NULL, NULL},
        {"weir ingest dlq show 2", 65, "^$", "there is no dead letter 2"},
        {"weir ingest dlq show first", 64, "^$", "'first' is not the number"});
}

static void replays_what_was_put_right_once(void **state) {
    (void)state;
    RUN({"weir ingest dlq replay 1 --schema payments", 65, "^$", "would be set aside again: field 'label'"},
        {"weir ingest dlq show 1 | sed s/frau/fraud/ | weir ingest dlq replay 1 --file - --schema payments", 0,
         "^1 replayed$", NULL},
        {"weir log cat chargebacks", 0, "\"label\":\"fraud\"\\}$", NULL},
        {"weir ingest dlq replay 1", 65, "^$", "letter 1 was replayed at 20.*--again"},
        {"weir ingest dlq list | wc -l", 0, "^2$", NULL}, {"weir ingest dlq list --all | wc -l", 0, "^3$", NULL},
        {"weir ingest dlq replay --all --schema payments", 0, "^0 replayed, 1 passed over$", "byte 2: a name"},
        {"weir ingest dlq replay --all", 0, "^1 replayed$", NULL},
        {"weir ingest dlq replay --all", 0, "^0 replayed$", NULL},
        {"weir ingest dlq replay --all --again", 0, "^2 replayed$", NULL},
        {"weir log cat chargebacks | wc -l", 0, "^4$", NULL});
}

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    RUN({"weir ingest dlq replay", 64, "^$", "give the numbers of letters, or --all"},
        {"weir ingest dlq replay --all 1", 64, "^$", "give the numbers of letters, or --all"},
        {"weir ingest dlq replay 0 1 --file x", 64, "^$", "--file corrects one letter"},
        {"weir ingest dlq replay 0 --file missing", 65, "^$", "missing"},
        {"weir ingest dlq replay 0 --schema paiments", 65, "^$", "did you mean 'payments'"},
        {"rm -r d/eventlog/chargebacks; weir ingest dlq replay 0", 65, "^$", "chargebacks"},
        {"weir ingest dlq list --path nowhere | wc -l", 0, "^1$", NULL});
}

/* 8 MiB, from a file and from the input alike. */
static void a_corrected_message_at_its_limit_and_past_it(void **state) {
    (void)state;
    RUN({"head -c 8388608 /dev/zero | tr '\\0' x > large", 0, NULL, NULL},
        {"weir ingest dlq replay 1 --file large", 0, "^1 replayed$", NULL},
        {"weir ingest dlq replay 1 --again --file - < large", 0, "^1 replayed$", NULL},
        {"cat large | weir ingest dlq replay 1 --again --file -", 0, "^1 replayed$", NULL},
        {"printf x >> large; weir ingest dlq replay 1 --again --file large", 65, "^$", "8388608"},
        {"weir ingest dlq replay 1 --again --file - < large", 65, "^$", "8388608"});
}

static void loads_once_and_says_what_it_did(void **state) {
    (void)state;
    RUN({"weir load --data d chargebacks.jsonl", 0, "^0 records of 1 file$", NULL},
        {"weir load --schema payments --data e other.jsonl", 64, "^$", "which source is other.jsonl"},
        {"weir load --schema payments --data e --source chargeback chargebacks.jsonl", 64, "^$",
         "one of: payments, chargebacks"},
        {"weir load --schema payments --data e chargebacks.jsonl missing-chargebacks.jsonl --source chargebacks", 65,
         "^$", "there is no file missing-chargebacks.jsonl"},
        {"test ! -e e", 0, NULL, NULL}, {"weir load --data e chargebacks.jsonl", 64, "^$", "give --schema"},
        {"cp chargebacks.jsonl m.txt; weir load --schema payments --data e --source chargebacks m.txt "
         "chargebacks.jsonl",
         0, "^3 records of 2 files, 2 of them set aside", NULL},
        {"weir load --schema payments --data l --to log chargebacks.jsonl && weir log cat chargebacks --path "
         "l/eventlog | wc -l",
         0, "^3$", NULL});
}

WEIR_TESTS(WEIR_CASE(lists_with_filters), WEIR_CASE(shows_the_bytes_as_they_came),
           WEIR_CASE(replays_what_was_put_right_once), WEIR_CASE(refuses_what_makes_no_sense),
           WEIR_CASE(a_corrected_message_at_its_limit_and_past_it), WEIR_CASE(loads_once_and_says_what_it_did))

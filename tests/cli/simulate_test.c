/* SPDX-License-Identifier: Apache-2.0 */
/* `weir simulate` as a user has it: the same bytes into every place, at every speed; each mistake one sentence. */
#include "cli_support.h"

#define SMALL "--accounts 2000 --label-delay 30m --seed 3 "

static void runs(const char *line, int status, const char *err_pattern) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "must exit with the status of its kind");
    CLI_ASSERT(!err_pattern || cli_matches(output.err, err_pattern), line, &output, err_pattern);
    weir_test_output_free(&output);
}

static void succeeds(const char *line) {
    runs(line, 0, NULL);
}

static void fails(const char *line, int status, const char *sentence) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "must exit with the status of its kind");
    CLI_ASSERT(!*output.out && cli_one_line(output.err), line, &output, "must print one sentence on stderr");
    CLI_ASSERT(strstr(output.err, sentence), line, &output, sentence);
    weir_test_output_free(&output);
}

/* --- the same bytes ----------------------------------------------------------------------------------------------- */

static void files_and_stdout_have_the_same_bytes(void **state) {
    (void)state;
    succeeds("weir simulate payments " SMALL "--days 1 --to file:out");
    succeeds("weir simulate payments " SMALL "--days 1 --only payments > p && cmp p out/payments.jsonl");
    succeeds("weir simulate payments " SMALL "--days 1 --only chargebacks > b && cmp b out/chargebacks.jsonl");
    succeeds("test $(wc -l < p) -gt 4000 && test $(wc -l < b) -gt 10");
    succeeds("weir simulate payments " SMALL "--days 1 > both && grep -c label both | grep -qx $(wc -l < b)");
    succeeds("grep '\"merchant\"\\|\"payee\"' both | cmp - p");
    succeeds("weir simulate clicks --people 500 --items 1000 --count 3000 > k && test $(wc -l < k) = 3000");
    succeeds("weir simulate clicks --people 500 --items 1000 --count 3000 --to file:out && cmp k out/clicks.jsonl");
}

static void the_log_has_them_in_order_by_account(void **state) {
    (void)state;
    succeeds("weir simulate payments " SMALL "--days 1 --only payments > p");
    succeeds("weir simulate payments " SMALL "--days 1 --to log:data --partitions 3");
    succeeds("weir log cat payments --path data | sort | cmp - p"); /* ids are in order, and come first */
    succeeds("for i in 0 1 2; do weir log cat payments --path data --partition $i > $i; sort -c $i; test -s $i; done");
    succeeds("test -z \"$(for i in 0 1 2; do grep -o '\"account\":\"[^\"]*' $i | sort -u; done | sort | uniq -d)\"");
    succeeds("test $(weir log cat chargebacks --path data | wc -l) -gt 10");
}

static void pace_changes_no_byte(void **state) {
    (void)state;
    succeeds("weir simulate payments " SMALL "--count 1500 > fast");
    succeeds("weir simulate payments " SMALL "--count 1500 --rate 20000/s | cmp - fast");
    succeeds("weir simulate payments " SMALL "--count 1500 --rate 20000 --to file:paced && grep -v label fast > p && "
             "cmp p paced/payments.jsonl");
    succeeds("weir simulate payments " SMALL "--count 1500 --speed 1e6 | cmp - fast");
}

static void start_moves_the_stream(void **state) {
    (void)state;
    succeeds("weir simulate payments " SMALL "--count 10 --start 2027-03-01T10:00:00Z | grep -c '\"2027-03-01T10' | "
             "grep -qx 10");
    succeeds("weir simulate payments " SMALL "--count 10 --start now | grep -c '\"time\":\"20' | grep -qx 10");
}

/* --- truth and summary -------------------------------------------------------------------------------------------- */

static void truth_lists_the_frauds_of_the_stream(void **state) {
    (void)state;
    runs(
        "weir simulate payments " SMALL
        "--days 4 --fraud-rate 0.02 --to file:out --truth truth.jsonl 2> err; cat err >&2",
        0,
        "^weir simulate payments: [0-9]+ payments \\([0-9]+ fraudulent\\), [0-9]+ chargebacks, [0-9]+ s of event time, "
        "in [0-9.]+ s, [0-9]+ a second$");
    succeeds("grep -q \"($(wc -l < truth.jsonl) fraudulent)\" err");
    succeeds("grep -o '^{\"payment\":\"p[0-9]*' truth.jsonl | cut -d'\"' -f4 | sort > frauds");
    succeeds("test $(wc -l < frauds) -gt 100 && cut -d'\"' -f4 out/payments.jsonl | sort | comm -13 - frauds | "
             "{ ! grep -q .; }");
    succeeds("for k in stolen_card ring collusion takeover mule; do grep -q $k truth.jsonl; done");
    succeeds("! grep -q 'stolen_card\\|campaign' out/payments.jsonl out/chargebacks.jsonl");
}

/* Ten frauds of which eight are labelled, ninety honest ones of which two are: .8 * .8 + .2 * .1, and of the pairs of a
 * labelled one and another (8 * 88 + (8 * 2 + 2 * 88) / 2) / (10 * 90). What chance makes of equals: the mean over
 * 200,000 shuffles was 0.7210. */
static void the_ceiling_of_wrong_labels_is_told(void **state) {
    (void)state;
    char line[8192];
    succeeds("for i in $(seq 10); do printf '{\"payment\":\"p%d\",\"kind\":\"ring\"}\\n' $i; done > truth");
    succeeds("{ echo key,time,part,label,score; echo p1,2026-01-05T00:00:00Z,train,1,0.5; for i in $(seq 100); do "
             "echo p$i,2026-03-01T00:00:00Z,test,$((i <= 8 || i > 98)),0.1; done; } > predictions.csv");
    snprintf(line, sizeof line, "python3 %s/tests/accuracy/ceiling.py truth predictions.csv > told",
             getenv("WEIR_SOURCE_DIR"));
    succeeds(line);
    succeeds("grep -qx '10 frauds, 8 of them labelled; 90 honest, 2 of them labelled' told");
    succeeds("grep -qx 'right about every fraud: average precision 0.6600, AUROC 0.8889' told");
    succeeds("grep -qx 'the same, equals in an order of chance: average precision 0.7211' told");
    succeeds("weir simulate payments " SMALL "--days 30 --world moving --to file:bank --truth bank.jsonl");
    snprintf(line, sizeof line, "python3 %s/tests/accuracy/ceiling.py bank.jsonl bank --maturity 1 > told",
             getenv("WEIR_SOURCE_DIR"));
    succeeds(line);
    succeeds("grep -q '^[0-9]* frauds, [1-9][0-9]* of them labelled; [0-9]* honest, [1-9][0-9]* of them' told");
    succeeds("grep -q 'fraud: average precision 0[.][5-8].*, AUROC 0[.][89]' told");
}

/* --- the world ---------------------------------------------------------------------------------------------------- */

static void words_of_the_world_change_the_stream(void **state) {
    (void)state;
    succeeds("weir simulate payments " SMALL "--count 20000 > still");
    succeeds("weir simulate payments " SMALL "--count 20000 --world still | cmp - still");
    succeeds("weir simulate payments " SMALL
             "--count 20000 --friendly-rate 0.00015 --unreported-rate 0.12 | cmp - still");
    succeeds("weir simulate payments " SMALL "--count 20000 --world moving > moving && ! cmp -s moving still");
    succeeds("weir simulate payments " SMALL "--count 20000 --adapt --holidays --moves --friendly-rate 0.0005 "
             "--unreported-rate 0.2 | cmp - moving");
    succeeds("for word in --adapt --holidays --moves '--friendly-rate 0.01' '--unreported-rate 0.9'; do "
             "weir simulate payments " SMALL
             "--count 20000 $word > one; if cmp -s one still || cmp -s one moving; then echo $word; exit 1; fi; done");
    succeeds("weir simulate payments " SMALL "--days 20 --world moving --unreported-rate 0 --truth t > /dev/null && "
             "! grep -q 'chargeback\":null' t");
}

/* --- stopping ----------------------------------------------------------------------------------------------------- */

static void a_signal_ends_it_with_whole_lines(void **state) {
    (void)state;
    /* `true;` makes weir itself the background process, not a shell around it. That ignores SIGINT until it takes it,
     * as it does before it writes anything. */
    runs("true; weir simulate payments " SMALL "--endless --rate 2000 --to file:out & "
         "until test -s out/payments.jsonl; do sleep 0.02; done; kill $!; wait $!",
         0, " a second; stopped$");
    succeeds("test -s out/payments.jsonl && ! grep -vq '^{\"id\":\"p.*\"}$' out/payments.jsonl");
    runs("true; weir simulate payments " SMALL "--endless --to log:data & "
         "until test $(cat data/payments/0*/*.seg 2> /dev/null | wc -c) -gt 100000; do sleep 0.02; done; "
         "kill -INT $!; wait $!",
         0, "; stopped$");
    succeeds("weir log verify payments --path data");
    succeeds("weir simulate payments " SMALL "--endless | head -n 3 | wc -l | grep -qx 3");
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

static void what_is_there_is_not_overwritten(void **state) {
    (void)state;
    succeeds("mkdir out && echo mine > out/payments.jsonl && echo mine > truth");
    fails("weir simulate payments --count 10 --to file:out", 65, "out/payments.jsonl is there already; remove it");
    succeeds("grep -qx mine out/payments.jsonl && test ! -e out/chargebacks.jsonl");
    fails("weir simulate payments --count 10 --to file:new --truth truth", 65, "truth is there already");
    succeeds("grep -qx mine truth");
}

static void bad_options_are_one_sentence(void **state) {
    (void)state;
    fails("weir simulate payments", 64, "say how much: --days D, --count N");
    fails("weir simulate payments --endless --days 2", 64, "say how much");
    fails("weir simulate payments --days 0", 64, "--days is '0'");
    fails("weir simulate payments --count 0", 64, "--count is '0'");
    fails("weir simulate payments --count 1 --to nowhere", 64, "--to is 'nowhere'; it must be -, file:FOLDER");
    fails("weir simulate payments --count 1 --to file:", 64, "--to file: names no folder");
    fails("weir simulate payments --count 1 --accounts 99", 64, "--accounts is '99'");
    fails("weir simulate payments --count 1 --merchants 1", 64, "--merchants is '1'");
    fails("weir simulate payments --count 1 --fraud-rate 0.5", 64, "--fraud-rate is '0.5'");
    fails("weir simulate payments --count 1 --label-delay 1s", 64, "--label-delay is '1s'; it must be from 1m to 60d");
    fails("weir simulate payments --count 1 --world flat", 64, "flat");
    fails("weir simulate payments --count 1 --friendly-rate 0.2", 64, "--friendly-rate is '0.2'");
    fails("weir simulate payments --count 1 --unreported-rate 2", 64, "--unreported-rate is '2'");
    fails("weir simulate payments --count 1 --start 1999-12-31", 64, "--start is '1999-12-31'");
    fails("weir simulate payments --count 1 --start soon", 64, "soon");
    fails("weir simulate payments --count 1 --rate 5/min", 64, "--rate is '5/min'");
    fails("weir simulate payments --count 1 --rate 0", 64, "--rate is '0'");
    fails("weir simulate payments --count 1 --rate 5 --speed 5", 64, "give --rate or --speed, not both");
    fails("weir simulate payments --count 1 --only clicks", 64, "clicks");
    fails("weir simulate payments --count 1 --partitions 0 --to log:d", 64, "--partitions is '0'");
    fails("weir simulate payments --count 1 --per-day 1000000000 --label-delay 60d", 65, "would wait at a time");
    fails("weir simulate clicks --count 1 --people 5", 64, "--people is '5'");
    fails("weir simulate clicks --count 1 --items 5", 64, "--items is '5'");
}

static void a_full_disk_is_one_sentence(void **state) {
    (void)state;
    runs("WEIR_FAULT=write:1:ENOSPC:payments.jsonl weir simulate payments " SMALL "--days 3 --to file:out", 69,
         "out/payments.jsonl: No space left on device");
    runs("WEIR_FAULT=sync:1:EIO:chargebacks.jsonl weir simulate payments " SMALL "--count 10 --to file:out2", 69,
         "out2/chargebacks.jsonl");
    runs("WEIR_FAULT=write:1:ENOSPC:truth weir simulate payments " SMALL "--days 3 --to file:out3 --truth truth", 69,
         "truth: No space left on device");
    fails("weir simulate payments --count 10000 --to - > /dev/full", 69, "No space left on device");
}

static void a_busy_log_is_one_sentence(void **state) {
    (void)state;
    fails("true; weir simulate payments " SMALL "--endless --rate 100 --to log:data 2> /dev/null & "
          "for i in $(seq 100); do weir log ls --path data 2> /dev/null | grep -q payments && break; sleep 0.1; done; "
          "status=0; weir simulate payments " SMALL "--count 10 --to log:data || status=$?; kill $!; wait $!; "
          "exit $status",
          69, "payments");
}

static void a_second_run_into_a_log_is_told(void **state) {
    (void)state;
    succeeds("weir simulate payments " SMALL "--count 10 --to log:data");
    runs("weir simulate payments " SMALL "--count 10 --to log:data", 0, "ids of this run may repeat theirs");
    succeeds("test $(weir log cat payments --path data | wc -l) = 20");
}

static void no_broker_is_one_sentence(void **state) {
    (void)state;
    runs("weir simulate payments --count 10 --to kafka:127.0.0.1:1 --set kafka.timeout=200ms", 69,
         "^weir simulate payments: no Kafka broker at 127.0.0.1:1 ");
}

WEIR_TESTS(WEIR_CASE(files_and_stdout_have_the_same_bytes), WEIR_CASE(the_log_has_them_in_order_by_account),
           WEIR_CASE(pace_changes_no_byte), WEIR_CASE(start_moves_the_stream),
           WEIR_CASE(truth_lists_the_frauds_of_the_stream), WEIR_CASE(the_ceiling_of_wrong_labels_is_told),
           WEIR_CASE(words_of_the_world_change_the_stream), WEIR_CASE(a_signal_ends_it_with_whole_lines),
           WEIR_CASE(what_is_there_is_not_overwritten), WEIR_CASE(bad_options_are_one_sentence),
           WEIR_CASE(a_full_disk_is_one_sentence), WEIR_CASE(a_busy_log_is_one_sentence),
           WEIR_CASE(a_second_run_into_a_log_is_told), WEIR_CASE(no_broker_is_one_sentence))

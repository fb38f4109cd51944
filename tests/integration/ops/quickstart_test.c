/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops/quickstart as a newcomer runs it, on a small bank: what it prints is what the server says when it is asked again,
 * a second run begins nothing anew, and --stop stops.
 */
#include <math.h>

#include "../../cli/cli_support.h"

/* The trap stops the server whichever line fails. What is asked again is asked before that. */
static const char script[] =
    "bin=$(dirname \"$(command -v weir)\");"
    "q() { \"$WEIR_SOURCE_DIR/ops/quickstart\" --no-install --bin \"$bin\" --dir \"$PWD/data\" \"$@\"; };"
    "trap 'q --stop >/dev/null' EXIT;"
    "q --small > shown;"
    "url=$(sed -n 's/^The server listens at //p' shown);"
    "key=$(sed -n 's/^score .* of payment //p' shown);"
    "sed -n 's/^score \\(.*\\) of payment.*/\\1/p' shown;"
    "curl -s $url/v1/score -H 'Content-Type: application/json' "
    "    -d '{\"targets\":[{\"type\":\"payment\",\"key\":\"'$key'\"}]}' > scored;"
    "sed -n 's/.*\"score\":\\([0-9.e-]*\\).*/\\1/p' scored;"
    "sed -n 's/^\\$ \\(curl.*v1.events.*\\)/\\1/p' shown | bash > repeated;"
    "grep -q \"\\\"$key\\\"\" data/truth.jsonl;"
    "q --small > again;"
    "q --stop > stopped; trap - EXIT;"
    "! curl -s $url/livez;"
    "! q --exit --nonsense 2>/dev/null";

static char *contents(const char *name) {
    weir_test_output output;
    const char *const argv[] = {"cat", weir_test_path(name), NULL};
    weir_test_run(argv, NULL, &output);
    assert_int_equal(output.status, 0);
    free(output.err);
    return output.out;
}

static void must_match(const char *name, const char *pattern) {
    char *text = contents(name);
    if (!cli_matches(text, pattern)) fail_msg("%s has no line like %s:\n%s", name, pattern, text);
    free(text);
}

/* Between " and " behind the first place of a word in a file. */
static void place_in(const char *name, const char *word, char place[64]) {
    char *text = contents(name), *at = strstr(text, word);
    assert_non_null(at);
    snprintf(place, 64, "%.*s", (int)strcspn(at, "d"), at); // up to "duplicate"
    free(text);
}

static void three_answers_and_a_stop(void **state) {
    (void)state;
    weir_test_output output;
    char *space, *end;
    char first[64], second[64];
    cli_bash(weir_test_folder(), script, &output);
    CLI_ASSERT(output.status == 0, "ops/quickstart --small", &output, "must succeed");
    double shown = strtod(output.out, &space), scored = strtod(space, &end);
    assert_true(space > output.out && end > space);
    assert_true(shown > 0 && shown < 1 && fabs(shown - scored) < 1e-5);
    weir_test_output_free(&output);

    must_match("shown", "^\\$ curl -s '.*/v1/neighbors/device/");
    must_match("shown", "^\\{\"type\":\"device\",\"key\":\"d[0-9]+\",\"neighbors\":\\[");
    must_match("shown", "\"neighborhood\":\"whole\",\"own_change\":.*\"reasons\":\\[$");
    must_match("shown", "\"accepted\":1,\"duplicates\":0");
    must_match("repeated", "\"accepted\":0,\"duplicates\":1");
    place_in("shown", "{\"partition\":", first); // the place that was acknowledged is the place it has
    place_in("repeated", "{\"partition\":", second);
    assert_string_equal(first, second);
    must_match("again", "events .* there since an earlier run");
    must_match("again", "train .* there since an earlier run");
    must_match("stopped", "^stopped the server, process [0-9]+$");
}

WEIR_TESTS(WEIR_CASE(three_answers_and_a_stop))

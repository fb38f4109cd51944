/* SPDX-License-Identifier: Apache-2.0 */
/* README.md's commands, run by tests/integration/ops/readme: each succeeds after ops/quickstart and nothing else. */
#include "../../cli/cli_support.h"

static void every_command_runs(void **state) {
    (void)state;
    weir_test_output output;
    cli_bash(
        weir_test_folder(),
        "mkdir tree && \"$WEIR_SOURCE_DIR/tests/integration/ops/readme\" \"$(dirname \"$(command -v weir)\")\" tree",
        &output);
    CLI_ASSERT(output.status == 0, "tests/integration/ops/readme", &output, "must succeed");
    assert_true(cli_matches(output.out, "^[0-9]+ lines of commands$"));
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(every_command_runs))

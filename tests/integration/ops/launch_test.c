/* SPDX-License-Identifier: Apache-2.0 */
/* launch_test.c - trainings on several machines, as ops starts them: the cases of tests/integration/ops/launch. */
#include "../../cli/cli_support.h"
#include "learn_fixture.h"

#include <unistd.h>

static void needs(const char *program) {
    char reason[128];
    snprintf(reason, sizeof reason, "there is no %s; install what ops/packages/test.txt names", program);
    if (access(program, X_OK) != 0) weir_test_skip(reason);
}

static void make_snapshot(void) {
    const learn_plan plan = {.seed = 3, .pays = 600, .people = 30, .bad = 0.3};
    needs("/usr/bin/mpirun");
    learn_snapshot(&plan, weir_test_path("snapshot"));
}

static void launch(const char *name) {
    char line[512];
    weir_test_output output;
    snprintf(line, sizeof line,
             "\"$WEIR_SOURCE_DIR/tests/integration/ops/launch\" %s \"$(dirname \"$(command -v weir)\")\" .", name);
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 0, line, &output, "must succeed");
    weir_test_output_free(&output);
}

static void ssh_sends_each_machine_its_parts(void **state) {
    (void)state;
    launch("ssh_sends_each_machine_its_parts");
}

static void ssh_refuses(void **state) {
    (void)state;
    launch("ssh_refuses");
}

static void ssh_trains(void **state) {
    (void)state;
    needs("/usr/bin/rsync");
    needs("/usr/sbin/sshd");
    make_snapshot();
    launch("ssh_trains");
}

static void slurm_trains_and_goes_on(void **state) {
    (void)state;
    make_snapshot();
    launch("slurm_trains_and_goes_on");
}

static void slurm_says_what_it_would_do(void **state) {
    (void)state;
    launch("slurm_says_what_it_would_do");
}

static void kubernetes_has_published_fields(void **state) {
    (void)state;
    weir_test_output output;
    const char *const argv[] = {"/usr/bin/python3", "-c", "import yaml", NULL};
    weir_test_run(argv, NULL, &output);
    int missing = output.status;
    weir_test_output_free(&output);
    if (missing) weir_test_skip("there is no python3-yaml; install it");
    launch("kubernetes_has_published_fields");
}

WEIR_TESTS(WEIR_CASE(ssh_sends_each_machine_its_parts), WEIR_CASE(ssh_refuses), WEIR_CASE(ssh_trains),
           WEIR_CASE(slurm_trains_and_goes_on), WEIR_CASE(slurm_says_what_it_would_do),
           WEIR_CASE(kubernetes_has_published_fields))

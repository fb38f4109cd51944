/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_test.c - what ops/bundle packs runs where it is unpacked, with libraries of its own alone. */
#include "../../cli/cli_support.h"

static void run(const char *script, weir_test_output *output) {
    char line[2048];
    snprintf(line, sizeof line, "set -e; %s", script);
    cli_bash(weir_test_folder(), line, output);
    CLI_ASSERT(output->status == 0, script, output, "must succeed");
}

static bool holds(const char *condition) {
    weir_test_output output;
    cli_bash(weir_test_folder(), condition, &output);
    const bool yes = output.status == 0;
    weir_test_output_free(&output);
    return yes;
}

/* Into a folder whose name no shell should take apart. */
static void unpack(void) {
    weir_test_output output;
    if (!holds("command -v patchelf")) weir_test_skip("there is no patchelf; install it");
    if (!holds("[ \"$(uname -sm)\" = 'Linux x86_64' ]")) weir_test_skip("ops/bundle is for Linux on x86-64");
    run("build=$(dirname \"$(dirname \"$(readlink -f \"$(command -v weir)\")\")\"); "
        "\"$WEIR_SOURCE_DIR/ops/bundle\" --build \"$build\" --out packed.tar.gz; "
        "tar xf packed.tar.gz; mv weir-*-gpu 'a place'; 'a place/setup'; "
        "cd 'a place/licences'; test -s libc6 -a -s zlib1g -a -s weir",
        &output);
    weir_test_output_free(&output);
}

static void libraries_are_its_own(const char *place) {
    weir_test_output output;
    char script[512];
    snprintf(script, sizeof script,
             "for program in '%s'/bin/*; do ldd \"$program\"; done | grep -vF \"$PWD/%s/\" | sort -u", place, place);
    run(script, &output);
    assert_true(cli_matches(output.out, "^[[:space:]]*linux-vdso[^\n]*\n([[:space:]]*linux-vdso[^\n]*\n)*$"));
    weir_test_output_free(&output);
}

/* The loader's path is whole: setup writes it anew. */
static void move(void) {
    weir_test_output output;
    run("mv 'a place' there; if there/bin/weir --version; then exit 1; fi; there/setup; there/setup; "
        "env -i there/bin/weir --version",
        &output);
    assert_true(cli_matches(output.out, "^weir [0-9]"));
    weir_test_output_free(&output);
}

static void learn(void) {
    weir_test_output output;
    run("{ echo id,label,matrix.x.2; for i in {0..299}; do echo \"$i,c$((i % 2)),$((i % 5)) $((i % 7))\"; done; } "
        ">n.csv; "
        "{ echo src,dst; for i in {0..299}; do echo \"$i,$((i * 7 % 300))\"; done; } >e.csv; "
        "env -i there/bin/weir snapshot import snap --nodes n.csv --edges e.csv --undirected; "
        "env -i there/bin/weir train snap --per-class 50,30 --epochs 1 --no-baselines --device cuda",
        &output);
    assert_true(cli_matches(output.out, "epoch 1 "));
    weir_test_output_free(&output);
}

static void it_runs_wherever_it_is(void **state) {
    (void)state;
    unpack();
    libraries_are_its_own("a place");
    move();
    libraries_are_its_own("there");
    learn();
}

static void without_a_gpu_its_check_says_so(void **state) {
    (void)state;
    weir_test_output output;
    if (holds("command -v nvidia-smi")) weir_test_skip("there is a GPU here; ops/gpu-check tries it");
    run("mkdir packed; cp \"$WEIR_SOURCE_DIR/ops/gpu-check\" packed; touch packed/setup; chmod +x packed/setup; "
        "status=0; packed/gpu-check 2>said || status=$?; [ $status = 69 ]; cat said",
        &output);
    assert_true(cli_matches(output.out, "^ops/gpu-check: there is no GPU here"));
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(it_runs_wherever_it_is), WEIR_CASE(without_a_gpu_its_check_says_so))

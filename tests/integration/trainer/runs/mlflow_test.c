/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_test.c - runs to a real `mlflow server`, whose own client reads them back. */
#include <unistd.h>

#include "days_fixture.h"

#define LEARN " --batch 32 --fanouts 4,4 --negatives 0 --warm-up 0 --validation 0.2 --test 0.2"

/* MLFLOW: the folder of mlflow and of the python that has it. */
#define PROGRAMS "bin=${MLFLOW:-$(dirname \"$(command -v mlflow)\" 2> /dev/null)}; test -x \"$bin/mlflow\""

/* A server on a free port that ends with the line of bash that is run beside it. */
#define SERVED(line)                                                                                                \
    PROGRAMS "; export PATH=$bin:$PATH MLFLOW_TRACKING_URI; "                                                       \
             "port=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); "                  \
             "print(s.getsockname()[1])'); "                                                                        \
             "MLFLOW_TRACKING_URI=http://127.0.0.1:$port; "                                                         \
             "setsid mlflow server --host 127.0.0.1 --port $port --workers 1 --backend-store-uri sqlite:///m.db > " \
             "log 2>&1 & "                                                                                          \
             "server=$!; trap 'kill -- -$server' EXIT; "                                                            \
             "for i in {1..600}; do curl -sf $MLFLOW_TRACKING_URI/health > health && break; sleep 0.2; done; " line

static const char reader[] =
    "import mlflow\n"
    "c = mlflow.MlflowClient()\n"
    "e = c.get_experiment_by_name('days')\n"
    "for r in sorted(c.search_runs([e.experiment_id]), key=lambda r: r.info.run_name):\n"
    "    v = c.get_metric_history(r.info.run_id, 'validation')\n"
    "    print(r.info.run_name, r.info.status, r.data.params['hidden'], r.data.tags['weir.task'],\n"
    "          [m.step for m in v], '%.12f' % r.data.metrics['best_validation'])\n";

static void mlflow_has_what_was_sent(void **state) {
    weir_test_output output;
    (void)state;
    cli_bash(weir_test_folder(), PROGRAMS, &output);
    const bool there = output.status == 0;
    weir_test_output_free(&output);
    if (!there) weir_test_skip("mlflow is not installed; pip install mlflow, or name its bin folder by MLFLOW");
    days_snapshot();
    FILE *file = fopen(weir_test_path("reader.py"), "w");
    assert_non_null(file);
    fputs(reader, file);
    assert_int_equal(fclose(file), 0);
    cli_must("for h in 4 8; do weir train snap" LEARN " --no-baselines --epochs 3 --hidden $h --folder runs/$h; done",
             "");
    cli_must(SERVED("for again in 1 2; do weir runs runs --mlflow $MLFLOW_TRACKING_URI --experiment days; done; "
                    "python3 reader.py > has"),
             "^runs/8: was there as run [0-9a-f]+$");
    cli_must("cat has", "^runs/4 FINISHED 4 t \\[1, 2, 3\\] 0\\.");
    cli_must("wc -l < has", "^2$"); /* each of them once */
    cli_must("value=$(weir runs runs/8 --json | sed 's/.*\"validation\":{\"value\":\\([0-9.]*\\).*/\\1/'); "
             "printf '%.12f' $value > mine; grep -c \" $(cat mine)$\" has",
             "^1$");
}

WEIR_TESTS(WEIR_CASE(mlflow_has_what_was_sent))

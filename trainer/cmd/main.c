/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program behind `weir train`, which mpirun starts too: the server links no MPI. */
#include <stdlib.h>

#include <weir/store/cli/cli.h>

extern const weir_command weir_command_train;

int main(int argc, char **argv) {
    /* XGBoost's threads would spin while they wait for each other, and where other programs want the cores, that takes
     * them from the one that is waited for: 70 s in place of 2. Read when that library is loaded. */
    setenv("OMP_WAIT_POLICY", "passive", 0);
    return weir_cli_main(&weir_command_train, "weir train", argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program behind `weir train`, which mpirun starts too: the server links no MPI. */
#include <weir/store/cli/cli.h>

extern const weir_command weir_command_train;

int main(int argc, char **argv) {
    return weir_cli_main(&weir_command_train, "weir train", argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* backtest_main.c - the program behind `weir backtest`. */
#include <weir/store/cli/cli.h>

extern const weir_command weir_command_backtest;

int main(int argc, char **argv) {
    return weir_cli_main(&weir_command_backtest, "weir backtest", argc, argv);
}

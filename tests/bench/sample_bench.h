/* SPDX-License-Identifier: Apache-2.0 */
/* sample_bench.h - what the bench does, apart from its table: that has the name of a type of bench.h. */
#ifndef WEIR_SAMPLE_BENCH_H
#define WEIR_SAMPLE_BENCH_H

#include <weir/store/cli/cli.h>

weir_err weir_sample_bench_run(weir_cli *cli);

#endif /* WEIR_SAMPLE_BENCH_H */

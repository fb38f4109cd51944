/* SPDX-License-Identifier: Apache-2.0 */
/* gradient_double_test.c - the same in double: tests/CMakeLists.txt compiles the network once more for this program. */
#include "gradient_cases.h"

#ifndef WEIR_REAL_DOUBLE
#error "this program is to be built in double"
#endif

WEIR_TESTS(WEIR_CASE(b1_binary), WEIR_CASE(b1_softmax), WEIR_CASE(b1_dropout))

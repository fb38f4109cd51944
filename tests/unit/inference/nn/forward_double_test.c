/* SPDX-License-Identifier: Apache-2.0 */
/* forward_double_test.c - the same in double: tests/CMakeLists.txt compiles the network once more for this program. */
#include "forward_cases.h"

#ifndef WEIR_REAL_DOUBLE
#error "this program is to be built in double"
#endif

WEIR_TESTS(FORWARD_CASES)

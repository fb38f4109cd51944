/* SPDX-License-Identifier: Apache-2.0 */
/* gradient_test.c - the gradients of the network as it is built for work. */
#include "gradient_cases.h"

WEIR_TESTS(WEIR_CASE(b1_binary), WEIR_CASE(b1_softmax), WEIR_CASE(b1_dropout))

/* SPDX-License-Identifier: Apache-2.0 */
/* loops_plain.c - the loops for any processor of this architecture. */
#define WEIR_LOOP weir_loops_plain
#include "loops.h"

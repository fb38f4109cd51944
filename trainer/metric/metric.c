/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c - how good an order of scores is. */
#include <weir/trainer/metric.h>

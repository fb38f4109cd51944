/* SPDX-License-Identifier: Apache-2.0 */
/* sim_private.h - what every generator begins with. */
#ifndef WEIR_SIM_PRIVATE_H
#define WEIR_SIM_PRIVATE_H

#include <weir/ingest/simulate/simulate.h>

struct weir_simulate {
    void (*next)(weir_simulate *sim, weir_simulate_message *messagep);
    void (*close)(weir_simulate *sim);
    weir_simulate_stats stats;
};

/* WEIR_EINVAL names the option and its range. */
weir_err weir_sim_check(const char *option, uint64_t value, uint64_t min, uint64_t max);
weir_err weir_sim_check_start(int64_t start_us);

#endif /* WEIR_SIM_PRIVATE_H */

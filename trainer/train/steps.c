/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - which edges a network looks at: everything that touches a type that it has come to. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/trainer/train/train.h>

/* One relation in one direction at one hop; a fan-out of 0: it is not followed. */
static weir_sample_step steps_step_of(const weir_train_reach *reach, const bool *timeless, uint16_t relation,
                                      weir_direction direction, uint32_t hop) {
    weir_sample_step step = {.hop = hop,
                             .fanout = reach->fanouts[hop - 1],
                             .relation = relation,
                             .direction = direction,
                             .strategy = reach->draws                     ? reach->strategy
                                         : timeless && timeless[relation] ? WEIR_SAMPLE_UNIFORM
                                                                          : WEIR_SAMPLE_RECENT};
    if (reach->draws && reach->strategy == WEIR_SAMPLE_WEIGHTED) {
        step.weight = WEIR_SCHEMA_NONE;
        step.half_life_us = reach->half_life_us;
    }
    for (uint32_t i = 0; i < reach->along_count; i++) {
        const weir_train_along *along = &reach->alongs[i];
        if (along->relation != relation || along->direction != direction) continue;
        if (along->fanouts) step.fanout = along->fanouts[hop - 1];
        if (!along->draws) continue;
        step.strategy = along->strategy;
        step.weight = along->weight;
        step.half_life_us = along->half_life_us;
    }
    if (direction == WEIR_IN && reach->out_only) step.fanout = 0;
    return step;
}

uint32_t weir_train_steps(const weir_schema *schema, uint32_t task, const weir_train_reach *reach, const bool *timeless,
                          weir_sample_step *steps, uint32_t steps_max) {
    bool here[WEIR_SCHEMA_VERTICES_MAX] = {false}; /* types that the hop begins at */
    uint32_t count = 0;
    here[weir_schema_label_at(schema, weir_schema_task_at(schema, task)->label)->target] = true;
    for (uint32_t hop = 1; hop <= reach->layers; hop++) {
        bool next[WEIR_SCHEMA_VERTICES_MAX] = {false};
        for (uint32_t i = 0; i < 2 * weir_schema_relation_count(schema); i++) {
            const weir_schema_relation *r = weir_schema_relation_at(schema, i / 2);
            weir_direction direction = i % 2 ? WEIR_IN : WEIR_OUT;
            weir_sample_step step = steps_step_of(reach, timeless, (uint16_t)(i / 2), direction, hop);
            if (!step.fanout || !here[direction == WEIR_OUT ? r->from : r->to]) continue;
            if (count == steps_max) return steps_max + 1;
            steps[count++] = step;
            next[direction == WEIR_OUT ? r->to : r->from] = true;
        }
        memcpy(here, next, sizeof here);
    }
    return count;
}

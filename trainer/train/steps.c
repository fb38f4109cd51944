/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - which edges a network looks at: everything that touches a type that it has come to. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/trainer/train/train.h>

typedef struct steps_plan {
    const weir_schema *schema;
    weir_sample_step *steps;
    uint32_t count, max;
    bool overflow;
    bool here[WEIR_SCHEMA_VERTICES_MAX], next[WEIR_SCHEMA_VERTICES_MAX]; /* types of this hop and of the next */
} steps_plan;

static void steps_plan_one(steps_plan *p, uint32_t relation, weir_direction direction, uint32_t hop, uint32_t fanout) {
    const weir_schema_relation *r = weir_schema_relation_at(p->schema, relation);
    uint32_t own = direction == WEIR_OUT ? r->from : r->to, other = direction == WEIR_OUT ? r->to : r->from;
    if (!p->here[own]) return;
    p->next[other] = true;
    p->overflow |= p->count == p->max;
    if (p->overflow) return;
    p->steps[p->count++] = (weir_sample_step){
        .hop = hop,
        .fanout = fanout,
        .relation = (uint16_t)relation,
        .direction = direction,
        .strategy = WEIR_SAMPLE_RECENT,
    };
}

uint32_t weir_train_steps(const weir_schema *schema, uint32_t task, const weir_train_reach *reach,
                          weir_sample_step *steps, uint32_t steps_max) {
    WEIR_ASSERT(weir_schema_vertex_count(schema) <= WEIR_SCHEMA_VERTICES_MAX);
    steps_plan p = {.schema = schema, .steps = steps, .max = steps_max};
    p.here[weir_schema_label_at(schema, weir_schema_task_at(schema, task)->label)->target] = true;
    for (uint32_t hop = 1; hop <= reach->layers; hop++) {
        for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
            steps_plan_one(&p, r, WEIR_OUT, hop, reach->fanouts[hop - 1]);
            if (!reach->out_only) steps_plan_one(&p, r, WEIR_IN, hop, reach->fanouts[hop - 1]);
        }
        memcpy(p.here, p.next, sizeof p.here);
        memset(p.next, 0, sizeof p.next);
    }
    return p.overflow ? 0 : p.count;
}

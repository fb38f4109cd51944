/* SPDX-License-Identifier: Apache-2.0 */
/* along.c - spills walked in the order of ids, and with them when each vertex existed. */
#include "along.h"

#include <stdio.h>

#include <weir/store/base/assert.h>

weir_err weir_along_step(weir_along *a) {
    return weir_merge_next(a->merge, &a->record, &a->found);
}

weir_err weir_along_open(const weir_snapshot_draft *draft, const char *kind, uint32_t type, weir_along *a) {
    char name[64];
    *a = (weir_along){.merge = NULL};
    snprintf(name, sizeof name, "%s.%u", kind, type);
    weir_err err = weir_merge_open(draft->spill, name, draft->shards, &a->merge);
    return err ? err : weir_along_step(a);
}

void weir_along_close(weir_along *a) {
    weir_merge_close(a->merge);
    a->merge = NULL;
}

weir_err weir_along_to(weir_along *a, weir_vertex vertex, bool *herep) {
    weir_err err = WEIR_OK;
    while (!err && a->found && a->record.vertex < vertex)
        err = weir_along_step(a);
    WEIR_ASSERT(err || !a->found || a->record.vertex >= vertex);
    *herep = !err && a->found && a->record.vertex == vertex;
    return err;
}

/* --- when a vertex existed ------------------------------------------------------------------------------------- */

weir_err weir_pulse_open(const weir_snapshot_draft *draft, uint32_t type, weir_pulse *p) {
    *p = (weir_pulse){.draft = draft,
                      .expire_us = weir_schema_vertex_at(draft->schema, type)->expire_us,
                      .from_us = weir_draft_type_from_us(draft, type)};
    weir_err err = weir_along_open(draft, "met", 0, &p->met);
    if (!err) err = weir_along_open(draft, "rowed", 0, &p->rowed);
    return err ? err : weir_along_open(draft, "puts", 0, &p->puts);
}

void weir_pulse_close(weir_pulse *p) {
    weir_along_close(&p->met);
    weir_along_close(&p->rowed);
    weir_along_close(&p->puts);
    weir_lives_free(&p->lives);
}

static weir_err pulse_take_puts(weir_pulse *p, weir_along *a, weir_vertex vertex) {
    bool here;
    weir_err err = weir_along_to(a, vertex, &here);
    while (!err && here) {
        weir_life life = {a->record.time_us, a->record.time_us};
        if (a != &p->puts) life.first_us = (int64_t)a->record.event; /* as scan.c spilled it */
        err = weir_lives_add(&p->lives, life);
        if (!err) err = weir_along_step(a);
        here = a->found && a->record.vertex == vertex;
    }
    return err;
}

weir_err weir_pulse_to(weir_pulse *p, weir_vertex vertex) {
    size_t count;
    if (p->begun && p->vertex == vertex) return WEIR_OK; /* the walks are past it */
    WEIR_ASSERT(!p->begun || p->vertex < vertex);
    const int64_t *deletions = weir_draft_deletions_of(p->draft, vertex, &count);
    weir_lives_begin(&p->lives, p->expire_us, deletions, count);
    p->vertex = vertex;
    p->begun = true;
    weir_err err = pulse_take_puts(p, &p->met, vertex);
    if (!err) err = pulse_take_puts(p, &p->rowed, vertex);
    return err ? err : pulse_take_puts(p, &p->puts, vertex);
}

bool weir_pulse_sees(const weir_pulse *p, const weir_life *life, int64_t *untilp) {
    *untilp = weir_lives_until_us(&p->lives, life);
    return weir_draft_sees(p->draft, p->from_us, life->first_us, *untilp,
                           weir_lives_deleted_us(&p->lives, life->last_us) != INT64_MAX);
}

bool weir_pulse_sees_any(const weir_pulse *p) {
    int64_t until_us;
    for (size_t i = p->lives.count; i-- > 0;) {
        if (weir_pulse_sees(p, &p->lives.of[i], &until_us)) return true;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * along.c - spills walked along rising ids, and by them whether a vertex is there.
 *
 * A deletion hides the puts up to its time. Of a life that it cuts, the oldest put is then another than the one said
 * here: but only rows behind the deletion are seen, and whoever asks takes the newer of the two.
 */
#include "along.h"

#include <stdio.h>
#include <string.h>

weir_err weir_along_step(weir_along *a) {
    if (a->hidden_too) return weir_merge_next(a->merge, &a->record, &a->found);
    return weir_draft_next(a->draft, a->merge, false, &a->record, &a->found);
}

weir_err weir_along_open(const weir_snapshot_draft *draft, const char *kind, uint32_t type, weir_along *a) {
    char name[64];
    *a = (weir_along){.draft = draft, .hidden_too = strcmp(kind, "names") == 0};
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
    *herep = !err && a->found && a->record.vertex == vertex;
    return err;
}

/* --- whether a vertex is there ----------------------------------------------------------------------------------- */

weir_err weir_pulse_open(const weir_snapshot_draft *draft, uint32_t type, weir_pulse *p) {
    *p = (weir_pulse){.expire_us = weir_schema_vertex_at(draft->schema, type)->expire_us};
    p->gone_us = weir_draft_gone_us(draft, p->expire_us);
    if (p->expire_us == 0) return WEIR_OK;
    weir_err err = weir_along_open(draft, "met", 0, &p->met);
    if (!err) err = weir_along_open(draft, "puts", 0, &p->puts);
    return err ? err : weir_along_open(draft, "features", type, &p->rows);
}

void weir_pulse_close(weir_pulse *p) {
    weir_along_close(&p->met);
    weir_along_close(&p->puts);
    weir_along_close(&p->rows);
    weir_lives_free(&p->lives);
}

static weir_err take_puts(weir_pulse *p, weir_along *a, weir_vertex vertex) {
    bool here;
    weir_err err = weir_along_to(a, vertex, &here);
    while (!err && here) {
        weir_life life = {a->record.time_us, a->record.time_us};
        if (a == &p->met) life.first_us = (int64_t)a->record.event; /* as scan.c spilled it */
        err = weir_lives_add(&p->lives, life);
        if (!err) err = weir_along_step(a);
        here = a->found && a->record.vertex == vertex;
    }
    return err;
}

weir_err weir_pulse_to(weir_pulse *p, weir_vertex vertex, bool *therep, weir_life *lifep) {
    weir_err err = WEIR_OK;
    *therep = p->expire_us == 0;
    *lifep = (weir_life){INT64_MIN, INT64_MAX};
    if (*therep) return WEIR_OK;
    if (!p->begun || p->vertex != vertex) { /* else the walks are past it */
        weir_lives_begin(&p->lives, p->expire_us);
        p->vertex = vertex;
        p->begun = true;
        err = take_puts(p, &p->met, vertex);
        if (!err) err = take_puts(p, &p->puts, vertex);
        if (!err) err = take_puts(p, &p->rows, vertex);
    }
    if (err || p->lives.count == 0) return err;
    *lifep = p->lives.of[p->lives.count - 1];
    *therep = lifep->last_us > p->gone_us;
    return WEIR_OK;
}

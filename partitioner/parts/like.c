/* SPDX-License-Identifier: Apache-2.0 */
/*
 * like.c - which part of an earlier cutting has which vertex of this snapshot, by the ids in the parts' folders.
 *
 * Only the parts' descriptions and the ids of what they own are read, and no SHA-256 is checked: parts that belong
 * together and own each vertex once are some cutting, and an id that is wrong names no vertex, or costs edges.
 */
#include <stdio.h>
#include <string.h>

#include <weir/partitioner/cut/cut.h>

#include "plan.h"

#define LIKE_ANEW "cut anew, without --like"

/* first: part 0, which others have to agree with; NULL: this is it. */
static weir_err like_check(const weir_snapshot *snapshot, const weir_parts_opts *opts, const weir_part *part,
                           uint32_t index, const weir_part *first) {
    const weir_schema *schema = weir_snapshot_schema(snapshot), *its = weir_snapshot_schema(weir_part_snapshot(part));
    if (weir_part_count(part) != opts->parts)
        return WEIR_ERR(WEIR_EINVAL, "%s has %u parts, and %u are asked for; ask for as many, or " LIKE_ANEW,
                        opts->like, weir_part_count(part), opts->parts);
    if (weir_schema_hash(its) != weir_schema_hash(schema))
        return WEIR_ERR(WEIR_EINVAL, "the parts in %s are of another schema than the snapshot; " LIKE_ANEW, opts->like);
    if (weir_part_index(part) == index && (!first || strcmp(weir_part_cutting(part), weir_part_cutting(first)) == 0))
        return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "%s/part-%u does not belong beside the others; take another copy of the parts, or " LIKE_ANEW,
                    opts->like, index);
}

/* What the part owns, where it still exists. */
static weir_err like_take(const weir_snapshot *snapshot, const weir_parts_graph *graph, const weir_part *part,
                          const char *folder, int32_t *part_of, weir_parts_report *report) {
    for (uint32_t type = 0; type < graph->types; type++) {
        const weir_snapshot_vertices *theirs = weir_snapshot_vertices_of(weir_part_snapshot(part), type);
        for (uint64_t place = 0; place < theirs->own; place++) {
            uint64_t v = 0;
            if (!weir_snapshot_find(snapshot, type, weir_vertex_of(theirs->ids[place]), &v)) {
                report->like_gone++;
                continue;
            }
            int32_t *mine = &part_of[graph->offsets[type] + v];
            if (*mine != WEIR_CUT_NOWHERE)
                return WEIR_ERR(WEIR_ECORRUPT,
                                "%s: vertex %llu of type '%s' is owned twice; take another copy of the parts, "
                                "or " LIKE_ANEW,
                                folder, (unsigned long long)place,
                                weir_schema_vertex_at(weir_snapshot_schema(snapshot), type)->name);
            *mine = (int32_t)weir_part_index(part);
            report->like_stayed++;
        }
    }
    return WEIR_OK;
}

weir_err weir_parts_like(const weir_snapshot *snapshot, const weir_parts_graph *graph, const weir_parts_opts *opts,
                         int32_t *part_of, weir_parts_report *report) {
    char folder[WEIR_PARTS_PATH_MAX];
    weir_part *part = NULL, *first = NULL;
    weir_err err = opts->like ? WEIR_OK : WEIR_ERR(WEIR_EINVAL, "no earlier parts are named");
    for (uint64_t v = 0; v < graph->vertices; v++)
        part_of[v] = WEIR_CUT_NOWHERE;
    for (uint32_t p = 0; !err && p < opts->parts; p++) {
        int length = snprintf(folder, sizeof folder, "%s/part-%u", opts->like, p);
        if (length < 0 || length >= (int)sizeof folder)
            err = WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", opts->like);
        if (!err) err = weir_part_open(folder, &(weir_part_opts){.verify = false}, &part);
        if (!err) err = like_check(snapshot, opts, part, p, first);
        if (!err) err = like_take(snapshot, graph, part, folder, part_of, report);
        if (p == 0)
            first = part;
        else
            weir_part_close(part);
        part = NULL;
    }
    weir_part_close(first);
    report->like_new = graph->vertices - report->like_stayed;
    if (!err && !report->like_stayed)
        err = WEIR_ERR(WEIR_EINVAL, "the parts in %s have no vertex of the snapshot, as of another graph; " LIKE_ANEW,
                       opts->like);
    return err;
}

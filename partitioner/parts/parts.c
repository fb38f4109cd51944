/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - cutting a snapshot: join all types into one graph, assign, measure, write under another name, rename. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/trust/trust.h>

#include "plan.h"

static double parts_seconds_since(weir_clock *clock, int64_t since_us) {
    return (double)(weir_clock_mono_us(clock) - since_us) / (double)WEIR_US_PER_S;
}

/* --- choosing -------------------------------------------------------------------------------------------------- */

static weir_err parts_try_method(const weir_snapshot *snapshot, const weir_parts_graph *graph,
                                 const weir_parts_weights *weights, const weir_parts_opts *opts,
                                 weir_parts_method method, int32_t *part_of, weir_parts_report *report) {
    int64_t begin_us = weir_clock_mono_us(opts->clock);
    WEIR_ASSERT(report->row_count < WEIR_PARTS_METHODS);
    weir_parts_quality *row = &report->rows[report->row_count++];
    weir_err err = method == WEIR_PARTS_LIKE ? weir_parts_like(snapshot, graph, opts, part_of, report) : WEIR_OK;
    if (!err) err = weir_parts_assign(snapshot, graph, weights, opts, method, part_of);
    row->method = method;
    row->seconds = parts_seconds_since(opts->clock, begin_us);
    return err ? err : weir_parts_measure(snapshot, graph, part_of, opts->parts, report->machines, row);
}

/* --- writing --------------------------------------------------------------------------------------------------- */

/* A name for this cutting that its parts share: a digest of what was cut, and how. PARTS-P4: the same input gives the
 * same name. */
static weir_err parts_name_cutting(weir_parts_draft *draft) {
    const weir_parts_opts *opts = draft->opts;
    char path[WEIR_PARTS_PATH_MAX], digest[65] = "";
    weir_buf text = {0};
    uint64_t length = 0;
    weir_err err = WEIR_OK;
    if (opts->snapshot) {
        snprintf(path, sizeof path, "%s/MANIFEST", opts->snapshot);
        err = weir_sha256_file(path, digest, &length);
    }
    uint64_t assigned = weir_xxh3(draft->plan->part_of, draft->plan->graph->vertices * sizeof *draft->plan->part_of, 0);
    weir_buf_printf(&text, "%s %016llx %u %u %s %llu %lld", digest, (unsigned long long)assigned, opts->parts,
                    opts->depth, weir_parts_method_name(opts->method), (unsigned long long)opts->seed,
                    (long long)weir_snapshot_as_of_us(draft->snapshot));
    if (!err) err = weir_buf_err(&text);
    if (!err) weir_sha256_hex(text.bytes, text.length, draft->cutting);
    weir_buf_free(&text);
    return err;
}

static weir_err parts_write_map(const weir_parts_draft *draft) {
    char folder[WEIR_PARTS_PATH_MAX - 128], path[WEIR_PARTS_PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s/map", draft->folder);
    if (length >= (int)sizeof folder) return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", draft->folder);
    weir_err err = weir_folder_create(folder);
    for (uint32_t type = 0; !err && type < draft->plan->types; type++) {
        weir_npy_writer *writer = NULL;
        uint64_t count = weir_snapshot_vertices_of(draft->snapshot, type)->count;
        snprintf(path, sizeof path, "%s/%s.npy", folder,
                 weir_schema_vertex_at(weir_snapshot_schema(draft->snapshot), type)->name);
        err = weir_npy_writer_open(path, WEIR_NPY_I64, count, 0, &writer);
        if (!err) err = weir_npy_write(writer, draft->plan->new_of[type], count);
        err = weir_npy_writer_end(writer, err);
    }
    return err ? err : weir_manifest_write(folder);
}

static void parts_report_part(const weir_parts_draft *draft, const weir_parts_counts *counts,
                              weir_parts_report *report) {
    uint64_t vertices = 0, edges = 0;
    for (uint32_t type = 0; type < draft->local.types; type++)
        vertices += draft->local.here[type].count;
    for (uint32_t r = 0; r < 2 * weir_schema_relation_count(weir_snapshot_schema(draft->snapshot)); r++)
        edges += counts->edges[r];
    report->here_vertices += vertices;
    report->here_edges += edges;
    if (vertices > report->here_vertices_max) report->here_vertices_max = vertices;
    if (edges > report->here_edges_max) report->here_edges_max = edges;
}

static weir_err parts_write_parts(weir_parts_draft *draft, weir_parts_report *report) {
    weir_parts_counts *counts = weir_calloc(1, sizeof *counts);
    if (!counts) return WEIR_NOMEM("while writing parts");
    weir_err err = weir_parts_local_open(draft->snapshot, &draft->local);
    if (!err) err = weir_parts_ends_open(draft->snapshot, &draft->ends);
    for (draft->part = 0; !err && draft->part < draft->plan->parts; draft->part++) {
        err = weir_parts_local_fill(&draft->local, draft->plan, draft->part, draft->opts->depth);
        if (!err) err = weir_parts_write_part(draft, counts);
        if (!err) parts_report_part(draft, counts, report);
    }
    weir_parts_ends_close(&draft->ends);
    weir_parts_local_close(&draft->local);
    weir_free(counts);
    return err;
}

static weir_err parts_write_all(weir_parts_draft *draft, weir_parts_report *report) {
    struct rusage usage = {0};
    char path[WEIR_PARTS_PATH_MAX];
    weir_buf out = {0};
    int64_t begin_us = weir_clock_mono_us(draft->opts->clock);
    weir_err err = weir_folder_create(draft->folder);
    if (!err) err = parts_name_cutting(draft);
    if (!err) err = parts_write_map(draft);
    if (!err) err = parts_write_parts(draft, report);
    if (err) return err;

    report->write_seconds = parts_seconds_since(draft->opts->clock, begin_us);
    getrusage(RUSAGE_SELF, &usage);
    report->peak_bytes = (uint64_t)usage.ru_maxrss << 10; /* kilobytes on Linux */
    weir_parts_report_json(report, &out);
    err = weir_buf_err(&out);
    snprintf(path, sizeof path, "%s/report.json", draft->folder);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err ? err : weir_file_rename(draft->folder, draft->opts->out);
}

static weir_err parts_write_plan(const weir_snapshot *snapshot, const weir_parts_plan *plan,
                                 const weir_parts_opts *opts, weir_parts_report *report) {
    weir_parts_draft *draft = weir_calloc(1, sizeof *draft);
    if (!draft) return WEIR_NOMEM("while writing parts");
    draft->snapshot = snapshot;
    draft->plan = plan;
    draft->opts = opts;
    weir_err err = WEIR_OK;
    int length = snprintf(draft->folder, sizeof draft->folder, "%s.new", opts->out);
    if (length < 0 || length >= (int)sizeof draft->folder - 256) {
        err = WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", opts->out);
    } else {
        if (weir_path_exists(draft->folder)) err = weir_folder_remove(draft->folder); /* left over from a crash */
        if (!err) err = parts_write_all(draft, report);
        if (err && weir_path_exists(draft->folder)) weir_err_keep(&err, weir_folder_remove(draft->folder));
    }
    weir_free(draft);
    return err;
}

/* --- all of it ------------------------------------------------------------------------------------------------- */

/* Labels must be in the order of their vertices, because those of a list of edges are found by binary search. */
static weir_err parts_check_labels(const weir_snapshot *snapshot) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    for (uint32_t l = 0; l < weir_schema_label_count(schema); l++) {
        const weir_schema_label *label = weir_schema_label_at(schema, l);
        const weir_snapshot_labels *labels = weir_snapshot_labels_of(snapshot, l);
        const weir_snapshot_edges *edges =
            label->on_relation ? weir_snapshot_edges_of(snapshot, label->target, WEIR_OUT) : NULL;
        uint64_t vertex = 0, before = 0;
        for (uint64_t i = 0; i < labels->count; i++, before = vertex) {
            if (!edges) vertex = (uint64_t)labels->targets[i];
            while (edges && edges->indptr[vertex + 1] <= labels->targets[i])
                vertex++;
            if (edges ? labels->targets[i] >= edges->indptr[vertex] : vertex >= before) continue;
            return WEIR_ERR(WEIR_ECORRUPT,
                            "labels/%s/targets.npy: number %llu is of a vertex before the last one; take "
                            "another copy of the snapshot",
                            label->name, (unsigned long long)i);
        }
    }
    return WEIR_OK;
}

/* A name that no type has would share out nothing, and nobody would hear of it. */
static weir_err parts_check_masks(const weir_snapshot *snapshot, const weir_parts_opts *opts) {
    for (uint32_t m = 0; m < 3; m++) {
        bool found = !opts->masks[m];
        for (uint32_t type = 0; !found && type < weir_schema_vertex_count(weir_snapshot_schema(snapshot)); type++) {
            const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(snapshot, type);
            for (uint32_t x = 0; !found && x < vertices->extra_count; x++)
                found = vertices->extras[x].mask && strcmp(vertices->extras[x].name, opts->masks[m]) == 0;
        }
        if (!found)
            return WEIR_ERR(WEIR_EDATA,
                            "the snapshot has no mask '%s'; its files vertices/TYPE/mask.NAME.npy say which "
                            "it has",
                            opts->masks[m]);
    }
    return WEIR_OK;
}

weir_err weir_parts_check(const weir_snapshot *snapshot, const weir_parts_opts *opts) {
    const uint32_t machines = opts->machines ? opts->machines : 1;
    weir_parts_budget budget;
    if (!opts->parts || opts->parts > WEIR_PARTS_COUNT_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%u parts are not 1 to %u", opts->parts, WEIR_PARTS_COUNT_MAX);
    if (opts->parts % machines)
        return WEIR_ERR(WEIR_EINVAL, "%u parts cannot be shared out among %u machines; give each the same number",
                        opts->parts, machines);
    if (opts->depth > WEIR_PARTS_DEPTH_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "a depth of %u is not 0 to %u", opts->depth, WEIR_PARTS_DEPTH_MAX);
    const size_t length = strlen(opts->out);
    if (length && opts->out[length - 1] == '/') /* what is written first has that name with an ending */
        return WEIR_ERR(WEIR_EINVAL, "%s ends in '/'; name the new folder without", opts->out);
    if (weir_path_exists(opts->out))
        return WEIR_ERR(WEIR_EEXIST, "%s is there already; name a new folder, or remove it", opts->out);
    weir_err err = parts_check_masks(snapshot, opts);
    return err ? err : weir_parts_budget_of(snapshot, opts, &budget);
}

/* Scratch files lie beside out. */
static weir_err parts_create_parent(const char *out) {
    char folder[WEIR_PARTS_PATH_MAX];
    weir_err err = weir_path_join(folder, sizeof folder, out, NULL);
    char *slash = err ? NULL : strrchr(folder, '/');
    if (!slash || slash == folder) return err;
    *slash = '\0';
    return weir_folder_create(folder);
}

/* The method that was asked for, and random and hash to compare it with. */
static weir_err parts_try_methods(const weir_snapshot *snapshot, const weir_parts_graph *graph,
                                  const weir_parts_opts *opts, int32_t *part_of, weir_parts_report *report) {
    weir_parts_weights weights = {0};
    int32_t *beside = NULL;
    weir_err err = weir_parts_weights_open(snapshot, graph, opts, &weights);
    if (!err) err = parts_try_method(snapshot, graph, &weights, opts, opts->method, part_of, report);
    if (!err) err = weir_parts_weights_report(&weights, graph, part_of, opts->method, report);
    if (!err) {
        beside = weir_calloc(graph->vertices + 1, sizeof *beside);
        if (!beside) err = WEIR_NOMEM("while assigning %llu vertices", (unsigned long long)graph->vertices);
    }
    for (weir_parts_method m = WEIR_PARTS_RANDOM; !err && m <= WEIR_PARTS_HASH; m++)
        if (m != opts->method) err = parts_try_method(snapshot, graph, &weights, opts, m, beside, report);
    weir_parts_weights_close(&weights);
    weir_free(beside);
    return err;
}

weir_err weir_parts_write(const weir_snapshot *snapshot, const weir_parts_opts *opts, weir_parts_report *reportp) {
    weir_parts_budget budget = {0};
    weir_parts_graph graph = {0};
    weir_parts_plan plan = {0};
    int32_t *part_of = NULL;
    uint32_t machines = opts->machines ? opts->machines : 1;
    *reportp =
        (weir_parts_report){.parts = opts->parts, .machines = machines, .depth = opts->depth, .seed = opts->seed};
    weir_err err = weir_parts_check(snapshot, opts);
    if (!err) err = weir_parts_budget_of(snapshot, opts, &budget);
    if (!err) err = weir_snapshot_check(snapshot);
    if (!err) err = parts_check_labels(snapshot);
    if (!err && budget.bytes) err = parts_create_parent(opts->out);
    if (!err) err = weir_parts_graph_open(snapshot, opts, &budget, &graph);
    if (err) return err;

    reportp->vertices = graph.vertices;
    reportp->training = graph.training;
    for (uint32_t r = 0; r < weir_schema_relation_count(weir_snapshot_schema(snapshot)); r++)
        reportp->edges += weir_snapshot_edges_of(snapshot, r, WEIR_OUT)->edges;
    part_of = weir_calloc(graph.vertices + 1, sizeof *part_of);
    if (graph.vertices < opts->parts) {
        err = WEIR_ERR(WEIR_ELIMIT, "%u parts of %llu vertices would leave some empty; ask for fewer", opts->parts,
                       (unsigned long long)graph.vertices);
    } else if (!part_of) {
        err = WEIR_NOMEM("while assigning %llu vertices", (unsigned long long)graph.vertices);
    }
    if (!err) err = parts_try_methods(snapshot, &graph, opts, part_of, reportp);
    weir_parts_graph_drop_edges(&graph);
    if (!err) err = weir_parts_plan_open(snapshot, &graph, part_of, opts->parts, &plan);
    if (!err) err = parts_write_plan(snapshot, &plan, opts, reportp);
    weir_parts_plan_close(&plan);
    weir_free(part_of);
    weir_parts_graph_close(&graph);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - `weir snapshot`: build, show, check, import, export. */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/cmd/store.h>
#include <weir/store/snapshot/snapshot.h>

extern const weir_command weir_command_snapshot;

/* One line of what was written to out, and what was left out. */
static void cmd_snapshot_print_stats(const weir_snapshot_stats *stats, const char *out, weir_buf *buf) {
    weir_buf_printf(buf, "%s: %" PRIu64 " vertices, %" PRIu64 " edges, %" PRIu64 " labels, %" PRIu64 " bytes\n", out,
                    stats->vertices, stats->edges, stats->labels, stats->bytes);
    if (stats->half_edges)
        weir_buf_printf(buf, "left out: %" PRIu64 " edges of which only one end is in the store\n", stats->half_edges);
    if (stats->orphan_labels)
        weir_buf_printf(buf, "left out: %" PRIu64 " labels whose target is not visible\n", stats->orphan_labels);
}

/* --- build ------------------------------------------------------------------------------------------------------- */

static weir_err cmd_snapshot_build(weir_cli *cli) {
    const char *out = weir_cli_positional(cli, 0);
    weir_snapshot_build_opts opts = {.out = out, .as_of_us = WEIR_BEFORE_ALL, .origin = weir_cmd_store_folder(cli)};
    weir_snapshot_stats stats;
    weir_cmd_store store;
    weir_buf text = {0};
    weir_err err = weir_cli_time(cli, "as-of", &opts.as_of_us);
    if (!err) err = weir_cli_us(cli, "history", &opts.history_us);
    opts.without_deleted = weir_cli_given(cli, "without-deleted");
    if (!err) err = weir_cmd_store_open(cli, true, &store);
    if (err) return err;
    err = weir_snapshot_build(store.graph, &opts, &stats);
    weir_err_keep(&err, weir_cmd_store_close(&store));
    if (err) return err;
    cmd_snapshot_print_stats(&stats, out, &text);
    return weir_cmd_print(&text);
}

static const weir_option build_options[] = {
    WEIR_STORE_OPTION_PATH,
    {"as-of", 0, "TIME", "exclude events at or after TIME, RFC 3339 (default: just after the newest event)", NULL},
    {"history", 0, "DURATION", "keep what targets of this age or younger see (default: of any age)", NULL},
    {"without-deleted", 0, NULL, "exclude what a deletion has hidden by then, for earlier targets too", NULL},
    {0}};

static const weir_command command_build = {
    .name = "build",
    .summary = "write the graph as of a time as a folder of arrays",
    .positional = "FOLDER",
    .positional_min = 1,
    .positional_max = 1,
    .description = "Reads a checkpoint, or the store of a server that is not running. FOLDER appears when it is "
                   "complete. Its .npy "
                   "files are plain NumPy arrays; store/snapshot/README.md says which.",
    .example = "weir snapshot build tonight\n"
               "weir snapshot build monday --path backup-2026-11-21 --as-of 2026-11-16T00:00:00Z",
    .options = build_options,
    .run = cmd_snapshot_build,
};

/* --- show, check ------------------------------------------------------------------------------------------------- */

static void cmd_snapshot_print_time(weir_buf *text, int64_t wall_us) {
    char time[WEIR_TIME_TEXT_MAX];
    weir_time_format(wall_us, time);
    weir_buf_text(text, time);
}

static void cmd_snapshot_print(const weir_snapshot *s, weir_buf *text) {
    const weir_schema *schema = weir_snapshot_schema(s);
    weir_buf_printf(text, "schema    %s\nas of     ", weir_schema_name(schema));
    cmd_snapshot_print_time(text, weir_snapshot_as_of_us(s));
    weir_buf_byte(text, '\n');
    if (weir_snapshot_from_us(s) != INT64_MIN) {
        weir_buf_text(text, "from      ");
        cmd_snapshot_print_time(text, weir_snapshot_from_us(s));
        weir_buf_text(text, ": older targets are told less than they saw, and are not used for training\n");
    }
    for (uint32_t i = 0; i < weir_schema_vertex_count(schema); i++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(s, i);
        weir_buf_printf(text, "vertices  %s: %" PRIu64 ", %" PRIu32 " features, %" PRIu32 " arrays beside them",
                        weir_schema_vertex_at(schema, i)->name, v->count, v->column_count, v->extra_count);
        if (v->column_count) weir_buf_printf(text, ", %" PRIu64 " rows", v->rows.count);
        weir_buf_byte(text, '\n');
    }
    for (uint32_t i = 0; i < weir_schema_relation_count(schema); i++) {
        const weir_snapshot_edges *e = weir_snapshot_edges_of(s, i, WEIR_OUT);
        weir_buf_printf(text, "relation  %s: %" PRIu64 " edges, %" PRIu32 " features",
                        weir_schema_relation_at(schema, i)->name, e->edges, e->column_count);
        if (e->until_us) weir_buf_text(text, ", some deleted");
        if (e->edges) weir_buf_text(text, ", newest ");
        if (e->edges) cmd_snapshot_print_time(text, e->newest_us);
        weir_buf_byte(text, '\n');
    }
    for (uint32_t i = 0; i < weir_schema_label_count(schema); i++)
        weir_buf_printf(text, "label     %s: %" PRIu64 "\n", weir_schema_label_at(schema, i)->name,
                        weir_snapshot_labels_of(s, i)->count);
}

static weir_err cmd_snapshot_show(weir_cli *cli) {
    const weir_snapshot_opts opts = {.verify = false};
    weir_snapshot *snapshot;
    weir_buf text = {0};
    weir_err err = weir_snapshot_open(weir_cli_positional(cli, 0), &opts, &snapshot);
    if (err) return err;
    cmd_snapshot_print(snapshot, &text);
    weir_snapshot_close(snapshot);
    return weir_cmd_print(&text);
}

static weir_err cmd_snapshot_check(weir_cli *cli) {
    const char *folder = weir_cli_positional(cli, 0);
    const weir_snapshot_opts opts = {.verify = true};
    weir_snapshot *snapshot;
    weir_buf text = {0};
    weir_err err = weir_snapshot_open(folder, &opts, &snapshot);
    if (err) return err;
    err = weir_snapshot_check(snapshot);
    weir_snapshot_close(snapshot);
    if (err) return err;
    weir_buf_printf(&text, "%s: every file is as its MANIFEST says, every list, index and time is sound\n", folder);
    return weir_cmd_print(&text);
}

static const weir_command command_show = {
    .name = "show",
    .summary = "what a snapshot holds: schema, time, counts",
    .positional = "FOLDER",
    .positional_min = 1,
    .positional_max = 1,
    .example = "weir snapshot show tonight",
    .run = cmd_snapshot_show,
};

static const weir_command command_check = {
    .name = "check",
    .summary = "check a snapshot's files against their checksums, and all numbers against each other",
    .positional = "FOLDER",
    .positional_min = 1,
    .positional_max = 1,
    .example = "weir snapshot check tonight",
    .run = cmd_snapshot_check,
};

/* --- import, export ---------------------------------------------------------------------------------------------- */

static weir_err cmd_snapshot_import(weir_cli *cli) {
    weir_snapshot_import_opts opts = {.out = weir_cli_positional(cli, 0),
                                      .nodes = weir_cli_text(cli, "nodes"),
                                      .edges = weir_cli_text(cli, "edges"),
                                      .npz = weir_cli_text(cli, "npz"),
                                      .bits = weir_cli_text(cli, "bits"),
                                      .splits = weir_cli_text(cli, "splits"),
                                      .skip = weir_cli_text(cli, "skip"),
                                      .as_vertices = weir_cli_text(cli, "as-vertices"),
                                      .declare = weir_cli_text(cli, "declare")};
    weir_snapshot_stats stats;
    weir_buf text = {0};
    opts.undirected = weir_cli_given(cli, "undirected");
    opts.recommend = weir_cli_text(cli, "recommend");
    opts.horizon_us = (int64_t)86400 * 1000000;
    weir_err err = weir_cli_us(cli, "horizon", &opts.horizon_us);
    if (!err && weir_cli_given(cli, "horizon") && (!opts.recommend || opts.horizon_us <= 0))
        err = WEIR_ERR(WEIR_EUSAGE, "--horizon is a time above 0, of the task that --recommend names");
    if (!err) err = weir_cli_u64(cli, "width", 1, UINT32_MAX, &opts.bit_count);
    if (!err && (opts.npz != NULL) == (opts.edges != NULL)) err = WEIR_ERR(WEIR_EUSAGE, "name either --edges or --npz");
    if (!err) err = weir_snapshot_import(&opts, &stats);
    if (err) return err;
    cmd_snapshot_print_stats(&stats, opts.out, &text);
    return weir_cmd_print(&text);
}

static const weir_option import_options[] = {
    {"nodes", 'n', "FILE", "CSV with a column id; others: type, label, timestamp, features", NULL},
    {"edges", 'e', "FILE", "CSV with columns src and dst; others: type, label, timestamp, features", NULL},
    {"npz", 'z', "FILE", "NumPy archive with edge_index, or src and dst; x, y, masks", NULL},
    {"bits", 0, "COLUMN", "of the nodes: numbers of the bits that are set, separated by blanks; becomes a matrix",
     NULL},
    {"width", 0, "N", "columns of that matrix (default: one more than the largest number)", NULL},
    {"splits", 0, "COLUMN,…",
     "of the nodes: columns that say train, val or test; each becomes three masks, which weir train --masks COLUMN "
     "takes, beside those called split.NAME (default: none)",
     NULL},
    {"skip", 0, "COLUMN,…", "columns to leave out", NULL},
    {"as-vertices", 0, "TYPE,…",
     "edges of these types become vertices, joined to their ends by TYPE_src and TYPE_dst, so that their labels can be "
     "learnt and they can be scored (default: none)",
     NULL},
    {"declare", 0, "FILE", "YAML with aggregates and tasks of the schema (default: a task for each label of vertices)",
     NULL},
    {"recommend", 0, "RELATION", "add a task to recommend what comes next along it (default: none)", NULL},
    {"horizon", 0, "TIME", "of that task: what comes within this time counts (default: 1d)", NULL},
    {"undirected", 'u', NULL, "add each edge in the other direction, too, except self-loops", NULL},
    {0}};

static const weir_command command_import = {
    .name = "import",
    .summary = "make a snapshot of a data set in CSV or in a NumPy archive",
    .positional = "FOLDER",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "Types, relations, features and the values of labels are found by reading the files once. What each column "
        "and array means stands in store/snapshot/README.md.",
    .example = "weir snapshot import cora --nodes nodes.csv --edges edges.csv --bits nonzero\n"
               "weir snapshot import mine --npz graph.npz",
    .options = import_options,
    .run = cmd_snapshot_import,
};

static weir_err cmd_snapshot_export(weir_cli *cli) {
    const weir_snapshot_opts opts = {.verify = true}; /* what leaves has no checksum of ours any more */
    const char *format = weir_cli_text(cli, "format");
    bool npz = format && strcmp(format, "npz") == 0;
    weir_snapshot *snapshot;
    weir_buf text = {0};
    weir_err err = weir_snapshot_open(weir_cli_positional(cli, 0), &opts, &snapshot);
    if (err) return err;
    err = weir_snapshot_check(snapshot); /* all of it is about to be followed */
    if (!err)
        err = weir_snapshot_export(snapshot, npz ? WEIR_SNAPSHOT_NPZ : WEIR_SNAPSHOT_CSV, weir_cli_positional(cli, 1));
    weir_snapshot_close(snapshot);
    if (err) return err;
    weir_buf_printf(&text, "%s as %s in %s\n", weir_cli_positional(cli, 0), npz ? "npz" : "csv",
                    weir_cli_positional(cli, 1));
    return weir_cmd_print(&text);
}

static const weir_option export_options[] = {
    {"format", 'f', "FORMAT", "csv: a folder with nodes.csv and edges.csv; npz: one archive (default: csv)", "csv|npz"},
    {0}};

static const weir_command command_export = {
    .name = "export",
    .summary = "write a snapshot as CSV or as a NumPy archive",
    .positional = "FOLDER OUT",
    .positional_min = 2,
    .positional_max = 2,
    .description = "weir snapshot import reads either back. Of each label the newest value of its target is written.",
    .example = "weir snapshot export tonight tonight-csv\nweir snapshot export cora cora.npz --format npz",
    .options = export_options,
    .run = cmd_snapshot_export,
};

static const weir_command *const cmd_snapshot_commands[] = {&command_build,  &command_show,   &command_check,
                                                            &command_import, &command_export, NULL};

const weir_command weir_command_snapshot = {
    .name = "snapshot",
    .summary = "the graph as of a time, as plain arrays for training",
    .example = "weir snapshot build tonight\nweir snapshot check tonight",
    .subcommands = cmd_snapshot_commands,
};

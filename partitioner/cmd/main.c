/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - `weir partition`: a program of its own, because METIS ends its process when memory is short. */
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/cli/cli.h>

static weir_err partition_read_options(const weir_cli *cli, char masks[WEIR_SNAPSHOT_MASKS_BYTES],
                                       weir_parts_opts *opts) {
    const char *method = weir_cli_text(cli, "method");
    uint64_t parts = 0, depth = 1, machines = 1, memory_mib = 0;
    opts->out = weir_cli_text(cli, "out");
    opts->snapshot = weir_cli_positional(cli, 0);
    opts->clock = weir_clock_system();
    while (method && strcmp(method, weir_parts_method_name(opts->method)) != 0)
        opts->method++;
    opts->like = weir_cli_text(cli, "like");
    if (opts->like && method) return WEIR_ERR(WEIR_EUSAGE, "--like has a method of its own; omit --method");
    if (opts->like) opts->method = WEIR_PARTS_LIKE;
    if (!opts->out) return WEIR_ERR(WEIR_EUSAGE, "--out is missing; name a new folder for the parts");
    if (!weir_cli_given(cli, "parts")) return WEIR_ERR(WEIR_EUSAGE, "--parts is missing; one for each rank");
    weir_err err = weir_cli_u64(cli, "parts", 1, WEIR_PARTS_COUNT_MAX, &parts);
    if (!err) err = weir_cli_u64(cli, "depth", 0, WEIR_PARTS_DEPTH_MAX, &depth);
    if (!err) err = weir_cli_u64(cli, "machines", 1, WEIR_PARTS_COUNT_MAX, &machines);
    if (!err) err = weir_cli_u64(cli, "memory", 1, UINT64_MAX >> 20, &memory_mib);
    opts->parts = (uint32_t)parts;
    opts->depth = (uint32_t)depth;
    opts->machines = (uint32_t)machines;
    opts->memory_bytes = memory_mib << 20;
    opts->quick = weir_cli_given(cli, "quick");
    if (!err && weir_cli_given(cli, "masks"))
        err = weir_snapshot_read_masks(weir_cli_text(cli, "masks"), masks, opts->masks);
    if (!err) err = weir_parts_read_balances(weir_cli_text(cli, "balance"), weir_cli_text(cli, "tolerance"), opts);
    return err ? err : weir_cli_u64(cli, "seed", 0, INT64_MAX, &opts->seed);
}

/* Nothing that is large is read before it is known that there is room for it. */
static weir_err partition_check(const weir_parts_opts *opts) {
    weir_snapshot *snapshot = NULL;
    weir_err err = weir_snapshot_open(opts->snapshot, &(weir_snapshot_opts){.verify = false}, &snapshot);
    if (!err) err = weir_parts_check(snapshot, opts);
    weir_snapshot_close(snapshot);
    return err;
}

static weir_err partition_run(weir_cli *cli) {
    weir_parts_opts opts = {.method = WEIR_PARTS_METIS, .seed = 1};
    weir_parts_report report = {0};
    weir_snapshot *snapshot = NULL;
    weir_buf out = {0};
    char masks[WEIR_SNAPSHOT_MASKS_BYTES];
    weir_err err = partition_read_options(cli, masks, &opts);
    if (!err) err = partition_check(&opts);
    if (!err && opts.memory_bytes) weir_alloc_return_large();
    if (!err) err = weir_snapshot_open(opts.snapshot, &(weir_snapshot_opts){.verify = true}, &snapshot);
    if (err) return err;
    /* It checks all of the snapshot: a MANIFEST may fit arrays that lead nowhere. */
    err = weir_parts_write(snapshot, &opts, &report);
    weir_snapshot_close(snapshot);
    if (err) return err;

    if (weir_cli_given(cli, "json")) {
        weir_parts_report_json(&report, &out);
    } else {
        weir_parts_report_text(&report, &out);
    }
    err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static const weir_option options[] = {
    {"parts", 'k', "N", "how many parts", NULL},
    {"depth", 'd', "N",
     "steps from its own vertices of which a part has the edges; ranks ask each other for those beyond (default: 1)",
     NULL},
    {"like", 'l', "DIR",
     "parts of an earlier snapshot of this graph: their vertices stay where they are, new ones come to their "
     "neighbours "
     "(default: cut anew)",
     NULL},
    {"quick", 'q', NULL,
     "cut by METIS and improve that once, or place new vertices and leave them there: more cut edges, in less time",
     NULL},
    {"machines", 0, "N",
     "machines of the same number of parts, between which few edges are cut first; with --like new vertices are placed "
     "by parts alone (default: 1)",
     NULL},
    {"balance", 'b', "LIST",
     "what each part has its share of: vertices, types (each by itself), training, validation, test, degree, in-edges "
     "(default: vertices,training,degree)",
     NULL},
    {"tolerance", 't', "X[,X…]",
     "how many times its share a part may have, for all of them or for each (default: 1.03, and 1.05 of degree and "
     "in-edges)",
     NULL},
    {"masks", 0, "A,B,C",
     "masks of an import that training, validation and test are balanced by, as weir train --masks has them; or the "
     "name of a split, which has all three (default: train, val and test, where there are such)",
     NULL},
    {"memory", 0, "MIB",
     "memory that it may take, beside files that are mapped: edges that do not fit lie in a file beside DIR, which has "
     "no name; METIS cuts the whole graph only if that fits (default: whatever it takes)",
     NULL},
    {"out", 'o', "DIR", "new folder for the parts", NULL},
    {"method", 'm', "METHOD", "how vertices are assigned (default: metis)", "metis|random|hash"},
    {"seed", 's', "N", "the same seed gives the same parts (default: 1)", NULL},
    {"json", 0, NULL, "print the report as JSON", NULL},
    {0}};

static const weir_command command = {
    .name = "partition",
    .summary = "cut a snapshot into parts, one for each rank",
    .positional = "SNAPSHOT",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "METIS cuts few edges, and what it gives is mended until each part has its share of what --balance names; "
        "where "
        "that cannot be, the report says why. A share of degrees can cost many edges: name only what matters. "
        "Random and hash are for comparison. --like DIR takes seconds: each vertex that the parts in DIR own stays in "
        "its "
        "part, and a new one goes where most of its edges lead, within the same shares. "
        "A part is a snapshot of its own vertices and what they lead to: all that "
        "a rank reads. The "
        "whole snapshot is verified first. The folder appears under its name complete or not at all.",
    .example = "weir partition snapshot --parts 4 --out parts\n"
               "weir partition snapshot --parts 16 --machines 4 --balance vertices,training --out parts\n"
               "weir partition monday --parts 4 --out monday-parts --like sunday-parts\n"
               "weir partition snapshot --parts 4 --out parts-hash --method hash --json",
    .options = options,
    .run = partition_run,
};

int main(int argc, char **argv) {
    return weir_cli_main(&command, "weir partition", argc, argv);
}

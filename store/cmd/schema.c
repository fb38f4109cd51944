/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - `weir schema`: check, print, hash, compare and show schemas. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/cli/cli.h>
#include <weir/store/cmd/store.h>
#include <weir/store/schema/schema.h>

extern const weir_command weir_command_schema;

/* --- check --------------------------------------------------------------------------------------------------- */

static void cmd_schema_count_text(weir_buf *out, uint32_t count, const char *one, const char *many) {
    weir_buf_printf(out, ", %" PRIu32 " %s", count, count == 1 ? one : many);
}

static weir_err cmd_schema_check(weir_cli *cli) {
    const char *operand = weir_cli_positional(cli, 0);
    weir_schema *schema = NULL;
    weir_err err = weir_schema_load_named(operand, &schema);
    if (err) return err;
    weir_buf out = {0};
    weir_buf_printf(&out, "%s: schema %s is valid", operand, weir_schema_name(schema));
    cmd_schema_count_text(&out, weir_schema_vertex_count(schema), "vertex type", "vertex types");
    cmd_schema_count_text(&out, weir_schema_relation_count(schema), "relation", "relations");
    cmd_schema_count_text(&out, weir_schema_aggregate_count(schema), "aggregate", "aggregates");
    cmd_schema_count_text(&out, weir_schema_label_count(schema), "label", "labels");
    cmd_schema_count_text(&out, weir_schema_task_count(schema), "task", "tasks");
    cmd_schema_count_text(&out, weir_schema_source_count(schema), "source", "sources");
    weir_buf_text(&out, "\n");
    weir_schema_free(schema);
    return weir_cmd_print(&out);
}

/* --- print, hash --------------------------------------------------------------------------------------------- */

static weir_err cmd_schema_print(weir_cli *cli) {
    weir_schema *schema = NULL;
    weir_err err = weir_schema_load_named(weir_cli_positional(cli, 0), &schema);
    if (err) return err;
    weir_buf out = {0};
    weir_schema_print(schema, &out);
    weir_schema_free(schema);
    return weir_cmd_print(&out);
}

static weir_err cmd_schema_hash(weir_cli *cli) {
    weir_schema *schema = NULL;
    weir_err err = weir_schema_load_named(weir_cli_positional(cli, 0), &schema);
    if (err) return err;
    weir_buf out = {0};
    weir_buf_printf(&out, "%016" PRIx64 "\n", weir_schema_hash(schema));
    weir_schema_free(schema);
    return weir_cmd_print(&out);
}

/* --- list, show ---------------------------------------------------------------------------------------------- */

static weir_err cmd_schema_list(weir_cli *cli) {
    (void)cli;
    weir_buf out = {0};
    for (size_t i = 0; i < weir_schema_shipped_count(); i++)
        weir_buf_printf(&out, "%s\n", weir_schema_shipped_at(i)->name);
    return weir_cmd_print(&out);
}

static weir_err cmd_schema_show(weir_cli *cli) {
    const char *name = weir_cli_positional(cli, 0);
    const weir_schema_shipped *shipped = weir_schema_shipped_find(name);
    return shipped ? weir_cli_output(shipped->text, shipped->length)
                   : weir_schema_shipped_missing("shipped schema", name);
}

/* --- diff ---------------------------------------------------------------------------------------------------- */

typedef struct cmd_schema_diffing {
    weir_buf out;
    uint64_t differences, breaks;
} cmd_schema_diffing;

static weir_err cmd_schema_print_difference(void *context, bool breaks, const char *sentence) {
    cmd_schema_diffing *d = context;
    d->differences++;
    d->breaks += breaks;
    weir_buf_printf(&d->out, "%s %s\n", breaks ? "breaks" : "fits  ", sentence);
    return WEIR_OK;
}

/* Scripts ask by the exit status, people read the lines: so the lines come first, whatever the verdict. */
static weir_err cmd_schema_diff(weir_cli *cli) {
    weir_schema *stored = NULL, *offered = NULL;
    cmd_schema_diffing d = {.differences = 0};
    weir_err err = weir_schema_load_named(weir_cli_positional(cli, 0), &stored);
    if (!err) err = weir_schema_load_named(weir_cli_positional(cli, 1), &offered);
    if (!err) err = weir_schema_compare(stored, offered, cmd_schema_print_difference, &d);
    if (!err && d.differences == 0) weir_buf_text(&d.out, "no difference\n");
    weir_err_keep(&err, weir_cmd_print(&d.out));
    if (!err && d.breaks > 0) err = weir_schema_compatible(stored, offered);
    weir_schema_free(stored);
    weir_schema_free(offered);
    return err;
}

/* --- the table ----------------------------------------------------------------------------------------------- */

static const weir_command check_command = {
    .name = "check",
    .summary = "check a schema and count what it declares",
    .positional = "FILE|NAME",
    .positional_min = 1,
    .positional_max = 1,
    .description = "Reads the file, or the shipped schema of that name. The first fault is named with file, line and "
                   "column, and with the nearest name where one is unknown.",
    .example = "weir schema check payments.yaml",
    .run = cmd_schema_check,
};

static const weir_command print_command = {
    .name = "print",
    .summary = "print a schema in its canonical form",
    .positional = "FILE|NAME",
    .positional_min = 1,
    .positional_max = 1,
    .description = "Every default is spelled out, and each thing is written in one way. The hash is that of this text.",
    .example = "weir schema print payments",
    .run = cmd_schema_print,
};

static const weir_command hash_command = {
    .name = "hash",
    .summary = "print the hash of a schema",
    .positional = "FILE|NAME",
    .positional_min = 1,
    .positional_max = 1,
    .description = "XXH3-64 of the canonical form: comments, layout and the order of keys within a definition do not "
                   "change it. Snapshots and models carry it.",
    .example = "weir schema hash payments",
    .run = cmd_schema_hash,
};

static const weir_command list_command = {
    .name = "list",
    .summary = "name the schemas that are shipped",
    .example = "weir schema list",
    .run = cmd_schema_list,
};

static const weir_command show_command = {
    .name = "show",
    .summary = "print a shipped schema as it was written, comments included",
    .positional = "NAME",
    .positional_min = 1,
    .positional_max = 1,
    .example = "weir schema show payments > my.yaml",
    .run = cmd_schema_show,
};

static const weir_command diff_command = {
    .name = "diff",
    .summary = "say how two schemas differ, and whether stored data survives it",
    .positional = "OLD NEW",
    .positional_min = 2,
    .positional_max = 2,
    .description =
        "A line for each difference: 'fits' when data stored under OLD can be opened under NEW, 'breaks' when "
        "it cannot. Exit status 0 if all fit, 65 if one breaks. OLD and NEW are files or shipped names.",
    .example = "weir schema diff payments my.yaml",
    .run = cmd_schema_diff,
};

static const weir_command *const cmd_schema_commands[] = {&check_command, &print_command, &hash_command, &list_command,
                                                          &show_command,  &diff_command,  NULL};

const weir_command weir_command_schema = {
    .name = "schema",
    .summary = "check, show and compare schemas: what the graph is made of",
    .description =
        "A schema is one YAML file that declares vertex types, relations, features, aggregates, labels, tasks, "
        "and how messages become them.",
    .example = "weir schema show payments > my.yaml\nweir schema check my.yaml",
    .subcommands = cmd_schema_commands,
};

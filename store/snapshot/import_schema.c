/* SPDX-License-Identifier: Apache-2.0 */
/* import_schema.c - the schema of a data set: written as text, because the parser of schemas checks everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "import_private.h"

#define DECLARED_MAX ((size_t)1 << 20)
#define BUCKETS      65536u /* of a category: only models use them */

static void import_put_features(weir_buf *out, const weir_import_table *table, weir_import_owner *owner) {
    weir_buf_text(out, "features: {");
    for (uint32_t i = 0; i < table->column_count; i++) {
        weir_import_role role = table->columns[i].role;
        bool feature = role == WEIR_IMPORT_FEATURE || role == WEIR_IMPORT_TEXT || role == WEIR_IMPORT_MOMENT;
        if (!feature || owner->seen[i] == WEIR_IMPORT_NOTHING) continue;
        if (owner->feature_count) weir_buf_text(out, ", ");
        weir_buf_printf(out, "\"%s\": {kind: ", table->columns[i].name);
        if (role == WEIR_IMPORT_MOMENT) {
            weir_buf_text(out, "time}");
        } else if (owner->seen[i] == WEIR_IMPORT_TEXTS) {
            weir_buf_printf(out, "category, buckets: %u}", BUCKETS);
        } else {
            weir_buf_text(out, "number}");
        }
        owner->features[owner->feature_count++] = i;
    }
    weir_buf_byte(out, '}');
}

static int import_by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, so that their numbers do not depend on the order of rows. */
static weir_err import_put_values(weir_buf *out, const weir_texts *values) {
    char **texts = weir_calloc(values->count + 1, sizeof *texts);
    weir_err err = texts ? WEIR_OK : WEIR_NOMEM("for the values of a label");
    for (uint32_t i = 0; !err && i < values->count; i++) {
        texts[i] = weir_strndup(values->bytes.bytes + values->offsets[i],
                                (size_t)(values->offsets[i + 1] - values->offsets[i]));
        if (!texts[i]) err = WEIR_NOMEM("for the values of a label");
    }
    if (!err && values->count) qsort(texts, values->count, sizeof *texts, import_by_text);
    for (uint32_t i = 0; !err && i < values->count; i++) {
        if (i) weir_buf_text(out, ", ");
        weir_json json = weir_json_begin(out); /* quoted as JSON, which is YAML */
        weir_json_text(&json, texts[i], strlen(texts[i]));
    }
    for (uint32_t i = 0; texts && i < values->count; i++)
        weir_free(texts[i]);
    weir_free(texts);
    return err;
}

static void import_label_name(const weir_import_owner *owner, const weir_import_column *column, char *name,
                              size_t room) {
    if (*column->name)
        snprintf(name, room, "%s", column->name);
    else
        snprintf(name, room, "%s_label", owner->name);
}

static weir_err import_put_labels(weir_buf *out, const weir_import_table *table, const char *noun, uint32_t *countp) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < table->column_count * table->owner_count; i++) {
        weir_import_owner *owner = &table->owners[i / table->column_count];
        uint32_t at = i % table->column_count;
        char name[WEIR_IMPORT_NAME_MAX + sizeof "_label"];
        import_label_name(owner, &table->columns[at], name, sizeof name);
        owner->labels[at] = WEIR_SCHEMA_NONE;
        if (table->columns[at].role != WEIR_IMPORT_LABEL || owner->seen[at] == WEIR_IMPORT_NOTHING) continue;
        owner->labels[at] = (*countp)++;
        weir_buf_text(out, *countp == 1 ? "labels:\n  \"" : "  \"");
        weir_buf_text(out, name);
        weir_buf_printf(out, "\": {%s: \"%s\", values: [", noun, owner->name);
        err = import_put_values(out, &owner->values[at]);
        weir_buf_text(out, "]}\n");
    }
    return err;
}

/* A task for each label of vertices with several values, so that `weir train` can start at once; and the one that is
 * asked for. */
static void import_put_tasks(weir_buf *out, const weir_import_table *table, const weir_snapshot_import_opts *opts) {
    bool first = !opts->recommend;
    if (opts->recommend) {
        weir_buf_text(out, "tasks:\n  \"recommend\": {kind: recommend, relation: ");
        weir_json json = weir_json_begin(out);
        weir_json_text(&json, opts->recommend, strlen(opts->recommend));
        weir_buf_printf(out, ", horizon: %lldus}\n", (long long)opts->horizon_us);
    }
    for (uint32_t i = 0; i < table->column_count * table->owner_count; i++) {
        const weir_import_owner *owner = &table->owners[i / table->column_count];
        uint32_t at = i % table->column_count;
        if (owner->labels[at] == WEIR_SCHEMA_NONE || owner->values[at].count < 2) continue;
        char name[WEIR_IMPORT_NAME_MAX + sizeof "_label"];
        import_label_name(owner, &table->columns[at], name, sizeof name);
        const weir_texts *values = &owner->values[at];
        bool yes_or_no =
            values->count == 2 && weir_texts_find(values, "0", 1) >= 0 && weir_texts_find(values, "1", 1) >= 0;
        weir_buf_printf(out, "%s  \"%s\": {kind: classify, label: \"%s\"%s}\n", first ? "tasks:\n" : "", name, name,
                        yes_or_no ? ", positive: \"1\"" : "");
        first = false;
    }
}

/* What was declared stands first, so that a wrong line of it is told by its own number. *tasksp: it has tasks. */
static weir_err import_put_declared(weir_buf *out, const char *path, bool *tasksp) {
    char *text = NULL;
    size_t length = 0;
    *tasksp = false;
    weir_err err = path ? weir_file_load(path, DECLARED_MAX, &text, &length) : WEIR_OK;
    if (err || !text) return err;
    *tasksp = strncmp(text, "tasks:", 6) == 0 || strstr(text, "\ntasks:") != NULL;
    weir_buf_append(out, text, length);
    weir_buf_byte(out, '\n');
    weir_free(text);
    return WEIR_OK;
}

weir_err weir_import_schema(weir_import *import) {
    const weir_snapshot_import_opts *opts = import->opts;
    weir_buf text = {0};
    uint32_t labels = 0;
    bool has_tasks;
    if (import->nodes.owner_count == 0)
        return WEIR_ERR(WEIR_EDATA, "%s has no row, so there is no graph to import",
                        import->opts->npz ? import->opts->npz : import->opts->edges);
    weir_err err = import_put_declared(&text, opts->declare, &has_tasks);
    weir_buf_text(&text, "version: 1\nname: import\nvertices:\n");
    for (uint32_t i = 0; i < import->nodes.owner_count; i++) {
        weir_buf_printf(&text, "  \"%s\": {", import->nodes.owners[i].name);
        import_put_features(&text, &import->nodes, &import->nodes.owners[i]);
        weir_buf_text(&text, "}\n");
    }
    if (import->edges.owner_count) weir_buf_text(&text, "relations:\n");
    for (uint32_t i = 0; i < import->edges.owner_count; i++) {
        weir_import_owner *r = &import->edges.owners[i];
        weir_buf_printf(&text, "  \"%s\": {from: \"%s\", to: \"%s\", ", r->name, import->nodes.owners[r->from].name,
                        import->nodes.owners[r->to].name);
        import_put_features(&text, &import->edges, r);
        weir_buf_text(&text, "}\n");
    }
    if (!err) err = import_put_labels(&text, &import->nodes, "vertex", &labels);
    if (!err) err = import_put_labels(&text, &import->edges, "relation", &labels);
    if (!err && has_tasks && opts->recommend)
        err = WEIR_ERR(WEIR_EUSAGE, "%s has tasks, so --recommend adds none; name the task there, or omit one of them",
                       opts->declare);
    if (!err && !has_tasks) import_put_tasks(&text, &import->nodes, opts);
    if (!err) err = weir_buf_err(&text);
    if (!err) {
        err = weir_schema_parse(opts->declare ? opts->declare : "the data set's schema", text.bytes, text.length,
                                &import->schema);
        err = weir_err_prefix(err, "%s--skip the column that it is about",
                              opts->declare     ? "look at --declare, or "
                              : opts->recommend ? "look at --recommend, or "
                                                : "");
    }
    weir_buf_free(&text);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_read.c - the section `part` of a part's manifest.json, read back. The rest of the file is a snapshot's, and
 * read as one.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "part.h"

#define MANIFEST_DEPTH_MAX 16u
#define TAKE_ANOTHER       "take another copy of the part"

/* --- who owns what --------------------------------------------------------------------------------------------- */

static weir_err part_read_row(const weir_json_node *row, weir_part_manifest *m, uint32_t type) {
    int64_t before = 0;
    if (row->token.kind != WEIR_JSON_ARRAY || row->count != (size_t)m->parts + 1)
        return WEIR_JSON_ERR(row, "a row of 'starts' does not have one number a part and one more; " TAKE_ANOTHER);
    m->starts[type] = weir_calloc((size_t)m->parts + 1, sizeof *m->starts[type]);
    if (!m->starts[type]) return WEIR_NOMEM("while reading a part's manifest");
    const weir_json_node *item = row->first;
    weir_err err = WEIR_OK;
    for (uint32_t p = 0; !err && item; p++, item = item->next) {
        err = weir_json_node_i64(item, before, p ? INT64_MAX / 64 : 0, &m->starts[type][p]);
        before = m->starts[type][p];
    }
    return err;
}

static weir_err part_read_starts(const weir_json_node *section, weir_part_manifest *m) {
    const weir_json_node *rows;
    weir_err err = weir_json_need(section, "starts", WEIR_JSON_ARRAY, &rows);
    if (err) return err;
    if (rows->count > WEIR_SCHEMA_VERTICES_MAX)
        return WEIR_JSON_ERR(rows, "'starts' has more rows than a schema has vertex types; " TAKE_ANOTHER);
    m->types = (uint32_t)rows->count;
    m->starts = weir_calloc((size_t)m->types + 1, sizeof *m->starts);
    if (!m->starts) return WEIR_NOMEM("while reading a part's manifest");
    const weir_json_node *row = rows->first;
    for (uint32_t type = 0; !err && row; type++, row = row->next)
        err = part_read_row(row, m, type);
    return err;
}

/* How many vertices of each type have their lists here. */
static weir_err part_read_listed(const weir_json_node *section, weir_part_manifest *m) {
    const weir_json_node *numbers;
    weir_err err = weir_json_need(section, "listed", WEIR_JSON_ARRAY, &numbers);
    if (err) return err;
    if (numbers->count != m->types)
        return WEIR_JSON_ERR(numbers, "'listed' does not have one number a vertex type; " TAKE_ANOTHER);
    m->listed = weir_calloc((size_t)m->types + 1, sizeof *m->listed);
    if (!m->listed) return WEIR_NOMEM("while reading a part's manifest");
    const weir_json_node *number = numbers->first;
    for (uint32_t type = 0; !err && number; type++, number = number->next)
        err = weir_json_node_i64(number, m->starts[type][m->part + 1] - m->starts[type][m->part], INT64_MAX / 64,
                                 &m->listed[type]);
    return err;
}

/* --- all of it ------------------------------------------------------------------------------------------------- */

/* The parts of earlier versions had their own format, and `part` was a number in it. */
static weir_err part_read_format(const char *name, const weir_json_node *root, const weir_json_node **sectionp) {
    const weir_json_node *section = weir_json_find(root, "part");
    int64_t format = 0;
    *sectionp = section;
    if (!section)
        return WEIR_ERR(WEIR_EDATA, "%s is that of a whole snapshot, not of a part; weir partition makes parts", name);
    bool earlier = section->token.kind == WEIR_JSON_NUMBER;
    weir_err err = weir_json_need_i64(earlier ? root : section, "format", 0, INT64_MAX, &format);
    if (err || (!earlier && format == WEIR_PARTS_FORMAT)) return err;
    return WEIR_ERR(WEIR_EVERSION,
                    "the part has format %lld, this program reads %u; cut the snapshot again with weir partition",
                    (long long)format, WEIR_PARTS_FORMAT);
}

static weir_err part_read_section(const weir_json_node *section, weir_part_manifest *m) {
    const weir_json_node *cutting, *order;
    int64_t parts = 0, part = 0, depth = 0;
    weir_err err = weir_json_need_i64(section, "parts", 1, WEIR_PARTS_COUNT_MAX, &parts);
    if (!err) err = weir_json_need_i64(section, "part", 0, parts - 1, &part);
    if (!err) err = weir_json_need_i64(section, "depth", 0, WEIR_PARTS_DEPTH_MAX, &depth);
    m->parts = (uint32_t)parts;
    m->part = (uint32_t)part;
    m->depth = (uint32_t)depth;
    if (!err) err = weir_json_need(section, "cutting", WEIR_JSON_STRING, &cutting);
    if (err) return err;
    const char *text = weir_json_node_text(cutting);
    if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        return WEIR_JSON_ERR(cutting, "'cutting' is not 64 hex digits; " TAKE_ANOTHER);
    memcpy(m->cutting, text, sizeof m->cutting);
    err = weir_json_need(section, "order", WEIR_JSON_STRING, &order);
    if (!err && strcmp(weir_json_node_text(order), "reads") != 0)
        err = WEIR_JSON_ERR(order, "'order' is not 'reads'; " TAKE_ANOTHER);
    if (!err) err = part_read_starts(section, m);
    return err ? err : part_read_listed(section, m);
}

weir_err weir_part_manifest_parse(const char *name, const char *text, size_t length, weir_part_manifest *manifest) {
    const weir_json_node *root, *section;
    weir_arena *arena = NULL;
    *manifest = (weir_part_manifest){0};
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(name, text, length, MANIFEST_DEPTH_MAX, arena, &root);
    if (!err) err = part_read_format(name, root, &section);
    if (!err) err = part_read_section(section, manifest);
    weir_arena_close(arena);
    if (err) weir_part_manifest_free(manifest);
    return err;
}

weir_err weir_part_manifest_read(const char *folder, weir_part_manifest *manifest) {
    char path[WEIR_PART_PATH_MAX + 32], *text = NULL;
    size_t length = 0;
    *manifest = (weir_part_manifest){0};
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    weir_err err = weir_file_load(path, WEIR_PART_MANIFEST_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) {
        return WEIR_ERR(WEIR_ENOTFOUND, "%s is not a part: it has no manifest.json; weir partition makes parts",
                        folder);
    }
    if (!err) err = weir_part_manifest_parse(path, text, length, manifest);
    weir_free(text);
    return err;
}

void weir_part_manifest_free(weir_part_manifest *m) {
    for (uint32_t type = 0; m->starts && type < m->types; type++)
        weir_free(m->starts[type]);
    weir_free(m->starts);
    weir_free(m->listed);
    *m = (weir_part_manifest){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey.c - what a data set is made of, found by reading it once.
 *
 * A column's name says what it is (README.md has the table). A plain one is a feature of those types that have a value
 * in it: a number if all of the type's values are numbers, else a category.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "import_private.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* --- values ------------------------------------------------------------------------------------------------------ */

bool weir_import_number(const char *text, double *valuep) {
    char *end;
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text)) return false;
    *valuep = strtod(text, &end);
    return !*end && isfinite(*valuep);
}

bool weir_import_event(const char *text, uint64_t *eventp) {
    char *end;
    if (!*text || strspn(text, "0123456789") != strlen(text)) return false;
    errno = 0;
    *eventp = strtoull(text, &end, 10);
    return errno == 0 && *eventp > 0; /* 0 is none */
}

bool weir_import_seconds(const char *text, int64_t *usp) {
    char *end;
    int64_t fraction = 0;
    bool negative = *text == '-';
    *usp = 0;
    if (!*text) return true;
    if (strspn(text + negative, "0123456789") == 0) return false;
    errno = 0;
    long long seconds = strtoll(text, &end, 10);
    if (errno || seconds > INT64_MAX / 2000000 || seconds < INT64_MIN / 2000000) return false;
    if (*end == '.') {
        const char *digit = end + 1;
        for (int64_t unit = 100000; *digit >= '0' && *digit <= '9'; digit++, unit /= 10)
            fraction += unit * (*digit - '0');
        if (*digit) return false;
    } else if (*end) {
        return false;
    }
    *usp = (int64_t)seconds * 1000000 + (negative ? -fraction : fraction);
    return true;
}

bool weir_import_list(const char **textp, double *valuep) {
    char *end;
    while (**textp == ' ')
        ++*textp;
    if (!**textp) return false;
    *valuep = strtod(*textp, &end);
    if (end == *textp || (*end && *end != ' ')) return false;
    *textp = end;
    return true;
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

void weir_import_clean_name(const char *from, char name[WEIR_IMPORT_NAME_MAX + 1]) {
    size_t used = 0;
    if (strspn(from, LETTERS) == 0) name[used++] = 'x';
    for (; *from && used < WEIR_IMPORT_NAME_MAX; from++)
        name[used++] = strchr(LETTERS "0123456789_-", *from) ? *from : '_';
    name[used] = 0;
}

bool weir_import_is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at && *at;) {
        size_t part = strcspn(at, ",");
        if (part == length && memcmp(at, name, length) == 0) return true;
        at += part + (at[part] == ',');
    }
    return false;
}

/* "bits.NAME.1433" and "matrix.NAME.16" say how wide they are. */
static bool survey_take_width(weir_import_column *column, const char *rest) {
    const char *dot = strrchr(rest, '.');
    char *end = NULL;
    if (!dot || dot == rest || (size_t)(dot - rest) > WEIR_IMPORT_NAME_MAX) return false;
    column->width = strtoull(dot + 1, &end, 10);
    if (end == dot + 1 || *end || column->width == 0 || column->width > UINT32_MAX) return false;
    snprintf(column->name, sizeof column->name, "%.*s", (int)(dot - rest), rest);
    return true;
}

/* Names with a fixed meaning, of either file. */
static weir_import_role survey_plain_role(const char *name, bool nodes) {
    static const struct {
        const char *name;
        bool nodes, edges;
        weir_import_role role;
    } rows[] = {
        {"id", true, false, WEIR_IMPORT_ID},
        {"type", true, true, WEIR_IMPORT_TYPE},
        {"timestamp", true, true, WEIR_IMPORT_TIME},
        {"src", false, true, WEIR_IMPORT_SRC},
        {"dst", false, true, WEIR_IMPORT_DST},
        {"src_type", false, true, WEIR_IMPORT_SRC_TYPE},
        {"dst_type", false, true, WEIR_IMPORT_DST_TYPE},
        {"event_id", false, true, WEIR_IMPORT_EVENT},
        {"label", true, true, WEIR_IMPORT_LABEL},
        {"label_time", true, true, WEIR_IMPORT_LABEL_TIME},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((nodes ? rows[i].nodes : rows[i].edges) && strcmp(rows[i].name, name) == 0) return rows[i].role;
    }
    return WEIR_IMPORT_FEATURE;
}

static weir_import_role survey_prefix_role(const char *name, bool nodes, const char **restp) {
    static const struct {
        const char *prefix;
        bool edges;
        weir_import_role role;
    } rows[] = {
        {"number.", true, WEIR_IMPORT_FEATURE}, {"label.", true, WEIR_IMPORT_LABEL},
        {"text.", true, WEIR_IMPORT_TEXT},      {"time.", true, WEIR_IMPORT_MOMENT},
        {"mask.", false, WEIR_IMPORT_MASK},     {"matrix.", false, WEIR_IMPORT_MATRIX},
        {"bits.", false, WEIR_IMPORT_BITS},     {"split.", false, WEIR_IMPORT_SPLIT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].prefix);
        if ((nodes || rows[i].edges) && strncmp(name, rows[i].prefix, length) == 0) {
            *restp = name + length;
            return rows[i].role;
        }
    }
    *restp = name;
    return WEIR_IMPORT_FEATURE;
}

bool weir_import_skips_structure(const weir_snapshot_import_opts *opts) {
    static const char *const names[] = {"id", "type", "timestamp", "src", "dst", "src_type", "dst_type", "event_id"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        any = any || weir_import_is_listed(opts->skip, names[i]);
    return any;
}

weir_err weir_import_classify(const weir_import *import, const char *name, bool nodes, weir_import_column *column) {
    const char *rest;
    if (weir_import_is_listed(import->opts->skip, name)) return WEIR_OK;
    if (nodes && weir_import_is_listed(import->opts->splits, name)) {
        column->role = WEIR_IMPORT_SPLIT;
        weir_import_clean_name(name, column->name);
        return WEIR_OK;
    }
    if (nodes && import->opts->bits && strcmp(import->opts->bits, name) == 0) {
        column->role = WEIR_IMPORT_BITS;
        column->width = import->opts->bit_count;
        weir_import_clean_name(name, column->name);
        return WEIR_OK;
    }
    column->role = survey_plain_role(name, nodes);
    if (column->role != WEIR_IMPORT_FEATURE) return WEIR_OK;
    column->role = survey_prefix_role(name, nodes, &rest);
    bool wide = column->role == WEIR_IMPORT_BITS || column->role == WEIR_IMPORT_MATRIX;
    if (wide && !survey_take_width(column, rest))
        return WEIR_ERR(WEIR_EDATA, "the column '%.64s' does not end in its width, as in 'matrix.NAME.16'", name);
    if (!wide) weir_import_clean_name(rest, column->name);
    return WEIR_OK;
}

const char *const weir_import_parts[WEIR_IMPORT_PARTS] = {"train", "val", "test"};

/* Which part of a split a text says; WEIR_IMPORT_PARTS: none. */
static uint32_t survey_part(const char *text) {
    static const char *const others[] = {"valid", "validation", "dev"}; /* names of the second */
    for (uint32_t part = 0; part < WEIR_IMPORT_PARTS; part++)
        if (strcmp(text, weir_import_parts[part]) == 0) return part;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(text, others[i]) == 0) return 1;
    return WEIR_IMPORT_PARTS;
}

bool weir_import_in_mask(const weir_import_table *table, uint32_t at) {
    const weir_import_column *column = &table->columns[at];
    const char *text = weir_csv_field(table->csv, column->field);
    return column->part == WEIR_SCHEMA_NONE ? *text == '1' : survey_part(text) == column->part;
}

/* Behind the columns of the file, a mask for each part of each split. */
static weir_err survey_add_splits(const weir_import_table *table, uint32_t columns) {
    for (uint32_t i = 0, next = columns; i < columns; i++) {
        const weir_import_column split = table->columns[i];
        if (split.role != WEIR_IMPORT_SPLIT) continue;
        for (uint32_t part = 0; part < WEIR_IMPORT_PARTS; part++) {
            weir_import_column *mask = &table->columns[next++];
            mask->role = WEIR_IMPORT_MASK;
            mask->field = i;
            mask->part = part;
            if (snprintf(mask->name, sizeof mask->name, "%s_%s", split.name, weir_import_parts[part]) >=
                (int)sizeof mask->name)
                return WEIR_ERR(WEIR_EDATA, "the name of the column '%.64s' is too long for a split; shorten it",
                                weir_csv_name(table->csv, i));
            for (uint32_t k = 0; k + 1 < next; k++)
                if (table->columns[k].role == WEIR_IMPORT_MASK && strcmp(table->columns[k].name, mask->name) == 0)
                    return WEIR_ERR(WEIR_EDATA,
                                    "the column '%.64s' would make a second mask '%s'; rename it, or --skip one",
                                    weir_csv_name(table->csv, i), mask->name);
        }
    }
    return WEIR_OK;
}

static weir_err survey_open_table(const weir_import *import, const char *path, bool nodes, weir_import_table *table) {
    weir_err err = path ? weir_csv_open(path, &table->csv) : WEIR_OK;
    if (err) return err;
    const uint32_t columns = path ? weir_csv_columns(table->csv) : 0;
    table->column_count = columns;
    table->columns = weir_calloc(columns * (1 + WEIR_IMPORT_PARTS) + 1, sizeof *table->columns);
    table->owners = weir_calloc(WEIR_IMPORT_OWNERS_MAX, sizeof *table->owners);
    if (!table->columns || !table->owners) return WEIR_NOMEM("while importing a data set");
    for (uint32_t i = 0; !err && i < columns; i++) {
        table->columns[i].field = i;
        table->columns[i].part = WEIR_SCHEMA_NONE;
        err = weir_import_classify(import, weir_csv_name(table->csv, i), nodes, &table->columns[i]);
        if (table->columns[i].role == WEIR_IMPORT_SPLIT) table->column_count += WEIR_IMPORT_PARTS;
    }
    if (!err) err = survey_add_splits(table, columns);
    return err ? weir_err_prefix(err, "%s", path) : WEIR_OK;
}

/* A name that is spelt wrongly would leave the column a feature. */
static weir_err survey_check_splits(const weir_import_table *table, const char *splits) {
    for (const char *at = splits; at && *at;) {
        const int length = (int)strcspn(at, ",");
        bool found = false;
        for (uint32_t i = 0; i < table->column_count && table->columns[i].field == i; i++) {
            const char *name = weir_csv_name(table->csv, i);
            found = found || (strlen(name) == (size_t)length && strncmp(name, at, (size_t)length) == 0);
        }
        if (!found) return WEIR_ERR(WEIR_EDATA, "--splits names '%.*s', which is no column of the nodes", length, at);
        at += length + (at[length] == ',');
    }
    return WEIR_OK;
}

uint32_t weir_import_find(const weir_import_table *table, weir_import_role role) {
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].role == role) return i;
    }
    return WEIR_SCHEMA_NONE;
}

const char *weir_import_field(const weir_import_table *table, weir_import_role role) {
    uint32_t column = weir_import_find(table, role);
    return column == WEIR_SCHEMA_NONE ? "" : weir_csv_field(table->csv, column);
}

/* --- owners ------------------------------------------------------------------------------------------------------ */

weir_err weir_import_owner_of(weir_import_table *table, const char *text, const char *otherwise, bool *newp,
                              uint32_t *indexp) {
    char name[WEIR_IMPORT_NAME_MAX + 1];
    weir_import_clean_name(*text ? text : otherwise, name);
    *newp = false;
    for (*indexp = 0; *indexp < table->owner_count; ++*indexp) {
        if (strcmp(table->owners[*indexp].name, name) == 0) return WEIR_OK;
    }
    if (table->owner_count == WEIR_IMPORT_OWNERS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "there are more than %u types", WEIR_IMPORT_OWNERS_MAX);
    weir_import_owner *owner = &table->owners[table->owner_count++];
    snprintf(owner->name, sizeof owner->name, "%s", name);
    *newp = true;
    size_t columns = table->column_count + 1;
    owner->seen = weir_calloc(columns, sizeof *owner->seen);
    owner->values = weir_calloc(columns, sizeof *owner->values);
    owner->features = weir_calloc(columns, sizeof *owner->features);
    owner->labels = weir_calloc(columns, sizeof *owner->labels);
    bool room = owner->seen && owner->values && owner->features && owner->labels;
    return room ? WEIR_OK : WEIR_NOMEM("while importing a data set");
}

void weir_import_table_close(weir_import_table *table) {
    for (uint32_t i = 0; i < table->owner_count; i++) {
        weir_import_owner *owner = &table->owners[i];
        for (uint32_t c = 0; owner->values && c < table->column_count; c++)
            weir_texts_free(&owner->values[c]);
        weir_free(owner->seen);
        weir_free(owner->values);
        weir_free(owner->features);
        weir_free(owner->labels);
    }
    weir_free(table->owners);
    weir_free(table->columns);
    weir_csv_close(table->csv);
}

/* --- one row ----------------------------------------------------------------------------------------------------- */

static weir_err survey_wrong_field(const weir_import_table *table, uint32_t column, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: column '%.64s': '%.64s' %s", weir_csv_place(table->csv),
                    weir_csv_name(table->csv, column), weir_csv_field(table->csv, column), what);
}

/* Bits without a given width are as wide as the largest needs. */
static weir_err survey_see_list(const weir_import *import, weir_import_table *table, weir_import_owner *owner,
                                uint32_t at) {
    weir_import_column *column = &table->columns[at];
    const char *text = weir_csv_field(table->csv, at);
    bool bits = column->role == WEIR_IMPORT_BITS;
    bool given = import->opts->bit_count > 0 || strncmp(weir_csv_name(table->csv, at), "bits.", 5) == 0;
    uint64_t count = 0;
    double value;
    for (; weir_import_list(&text, &value); count++) {
        if (!bits) continue;
        if (!(value >= 0 && value < UINT32_MAX) || value != floor(value))
            return survey_wrong_field(table, at, "has a number that is not a bit's");
        if (!given && (uint64_t)value >= column->width) column->width = (uint64_t)value + 1;
    }
    if (*text) return survey_wrong_field(table, at, "is not a list of numbers separated by blanks");
    if (!bits && count && count != column->width)
        return survey_wrong_field(table, at, "does not have the width that its name gives");
    if (count) owner->seen[at] = WEIR_IMPORT_NUMBERS; /* blanks alone are an empty field */
    return WEIR_OK;
}

static weir_err survey_see_field(weir_import *import, weir_import_table *table, weir_import_owner *owner, uint32_t at) {
    const char *text = weir_csv_field(table->csv, table->columns[at].field);
    double number;
    int64_t time_us;
    uint64_t event;
    int32_t code;
    if (!*text) return WEIR_OK;
    switch (table->columns[at].role) {
    case WEIR_IMPORT_FEATURE:
        if (owner->seen[at] != WEIR_IMPORT_TEXTS)
            owner->seen[at] = weir_import_number(text, &number) ? WEIR_IMPORT_NUMBERS : WEIR_IMPORT_TEXTS;
        break;
    case WEIR_IMPORT_TEXT:
        owner->seen[at] = WEIR_IMPORT_TEXTS;
        break;
    case WEIR_IMPORT_LABEL:
        owner->seen[at] = WEIR_IMPORT_TEXTS;
        if (strlen(text) > WEIR_ROW_TEXT_MAX) break;
        return weir_texts_code(&owner->values[at], text, strlen(text), &code);
    case WEIR_IMPORT_MOMENT:
    case WEIR_IMPORT_LABEL_TIME:
    case WEIR_IMPORT_TIME:
        owner->seen[at] = WEIR_IMPORT_NUMBERS;
        return weir_import_seconds(text, &time_us)
                   ? WEIR_OK
                   : survey_wrong_field(table, at, "is not a time in seconds since 1970");
    case WEIR_IMPORT_EVENT:
        owner->seen[at] = WEIR_IMPORT_NUMBERS;
        return weir_import_event(text, &event)
                   ? WEIR_OK
                   : survey_wrong_field(table, at, "is not a whole number above 0 of at most 64 bits");
    case WEIR_IMPORT_SPLIT:
        return survey_part(text) < WEIR_IMPORT_PARTS
                   ? WEIR_OK
                   : survey_wrong_field(table, at, "is none of train, val (or valid, validation, dev) and test");
    case WEIR_IMPORT_MASK:
        owner->seen[at] = WEIR_IMPORT_NUMBERS;
        if (table->columns[at].part != WEIR_SCHEMA_NONE) return WEIR_OK; /* the split's own column has said it */
        return strcmp(text, "0") == 0 || strcmp(text, "1") == 0 ? WEIR_OK
                                                                : survey_wrong_field(table, at, "is neither 0 nor 1");
    case WEIR_IMPORT_BITS:
    case WEIR_IMPORT_MATRIX:
        return survey_see_list(import, table, owner, at);
    default:
        return WEIR_OK;
    }
    return strlen(text) <= WEIR_ROW_TEXT_MAX
               ? WEIR_OK
               : survey_wrong_field(table, at, "has more than 255 bytes; --skip the column");
}

static weir_err survey_see_row(weir_import *import, weir_import_table *table, uint32_t index) {
    const uint32_t known = weir_import_find(table, WEIR_IMPORT_LABEL_TIME);
    int64_t time_us, known_us;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < table->column_count; i++)
        err = survey_see_field(import, table, &table->owners[index], i);
    if (err || known == WEIR_SCHEMA_NONE || !*weir_csv_field(table->csv, known)) return err;
    weir_import_seconds(weir_csv_field(table->csv, known), &known_us);
    weir_import_seconds(weir_import_field(table, WEIR_IMPORT_TIME), &time_us);
    return known_us >= time_us ? WEIR_OK
                               : survey_wrong_field(table, known,
                                                    "is before the row's timestamp, when there is "
                                                    "nothing to be labelled");
}

/* --- keys -------------------------------------------------------------------------------------------------------- */

/* *knownp: the key is not new, for any type. */
static weir_err survey_add_key(weir_import *import, const char *key, uint32_t type, bool *knownp) {
    int32_t code;
    uint32_t before = import->ids.count;
    size_t of_types = import->key_room;
    if (!WEIR_GROW(import->types, of_types, before) || !WEIR_GROW(import->last_us, import->key_room, before))
        return WEIR_NOMEM("while importing a data set");
    weir_err err = weir_texts_code(&import->ids, key, strlen(key), &code);
    if (err) return err;
    *knownp = import->ids.count == before;
    if (!*knownp) import->types[code] = type;
    if (!*knownp) import->last_us[code] = INT64_MIN;
    return WEIR_OK;
}

/* A vertex may have a line for each time at which something about it changed. Not checked for keys that several types
 * share, because one time a key is kept. */
static weir_err survey_check_later(weir_import *import, const char *key) {
    const weir_import_table *t = &import->nodes;
    int64_t *last_us = &import->last_us[weir_texts_find(&import->ids, key, strlen(key))], time_us = 0;
    weir_import_seconds(weir_import_field(t, WEIR_IMPORT_TIME), &time_us);
    if (time_us <= *last_us)
        return WEIR_ERR(WEIR_EDATA, "%s: the id '%.64s' is there twice, and no timestamp says that this line is later",
                        weir_csv_place(t->csv), key);
    *last_us = time_us;
    return WEIR_OK;
}

static weir_err survey_node(void *context) {
    weir_import *import = context;
    weir_import_table *t = &import->nodes;
    const char *key = weir_import_field(t, WEIR_IMPORT_ID);
    uint32_t type;
    bool new, known;
    weir_err err = weir_import_owner_of(t, weir_import_field(t, WEIR_IMPORT_TYPE), "node", &new, &type);
    if (err) return err;
    if (!*key || strlen(key) > WEIR_KEY_MAX)
        return WEIR_ERR(WEIR_EDATA, "%s: the id is empty or too long", weir_csv_place(t->csv));
    err = survey_add_key(import, key, type, &known);
    if (err) return err;
    uint32_t *of = &import->types[weir_texts_find(&import->ids, key, strlen(key))];
    if (known && *of != type) *of = WEIR_SCHEMA_NONE;
    import->repeated = import->repeated || known;
    err = survey_see_row(import, t, type);
    return err || *of == WEIR_SCHEMA_NONE ? err : survey_check_later(import, key);
}

weir_err weir_import_node(const weir_import *import, uint32_t *typep) {
    weir_import_table t = import->nodes; /* a copy, because nothing is added in the second pass */
    bool new;
    weir_err err = weir_import_owner_of(&t, weir_import_field(&t, WEIR_IMPORT_TYPE), "node", &new, typep);
    WEIR_ASSERT(err || !new);
    return err;
}

/* The type of one end: from its column, or else from the nodes; without nodes it is added. */
static weir_err survey_end_type(weir_import *import, const char *key, weir_import_role role, uint32_t *typep) {
    weir_import_table *t = &import->edges;
    const char *said = weir_import_field(t, role);
    int32_t code = weir_texts_find(&import->ids, key, strlen(key));
    bool new, known;
    if (!*key || strlen(key) > WEIR_KEY_MAX)
        return WEIR_ERR(WEIR_EDATA, "%s: an end's id is empty or too long", weir_csv_place(t->csv));
    if (code < 0 && import->nodes.csv)
        return WEIR_ERR(WEIR_EDATA, "%s: no node has the id '%.64s'", weir_csv_place(t->csv), key);
    if (*said || !import->nodes.csv) {
        weir_err err = weir_import_owner_of(&import->nodes, said, "node", &new, typep);
        return err || import->nodes.csv ? err : survey_add_key(import, key, *typep, &known);
    }
    *typep = import->types[code];
    if (*typep != WEIR_SCHEMA_NONE) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: nodes of several types have the id '%.64s'; add columns src_type and dst_type",
                    weir_csv_place(t->csv), key);
}

weir_err weir_import_ends(weir_import *import, weir_import_edge *edgep) {
    weir_import_table *t = &import->edges;
    bool new;
    edgep->src = weir_import_field(t, WEIR_IMPORT_SRC);
    edgep->dst = weir_import_field(t, WEIR_IMPORT_DST);
    weir_err err = survey_end_type(import, edgep->src, WEIR_IMPORT_SRC_TYPE, &edgep->from);
    if (!err) err = survey_end_type(import, edgep->dst, WEIR_IMPORT_DST_TYPE, &edgep->to);
    if (!err) err = weir_import_owner_of(t, weir_import_field(t, WEIR_IMPORT_TYPE), "edge", &new, &edgep->relation);
    if (err) return err;
    weir_import_owner *relation = &t->owners[edgep->relation];
    if (new) relation->from = edgep->from, relation->to = edgep->to;
    if (relation->from == edgep->from && relation->to == edgep->to) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA,
                    "%s: edges of type '%s' connect other types in earlier rows; give these rows a type of their own",
                    weir_csv_place(t->csv), relation->name);
}

static weir_err survey_edge(void *context) {
    weir_import *import = context;
    weir_import_edge edge;
    weir_err err = weir_import_ends(import, &edge);
    return err ? err : survey_see_row(import, &import->edges, edge.relation);
}

weir_err weir_import_walk(weir_import_table *table, weir_err (*visit)(void *context), void *context) {
    bool found = true;
    weir_err err = WEIR_OK;
    if (!table->csv) return WEIR_OK;
    for (weir_csv_rewind(table->csv); !err && found;) {
        err = weir_csv_next(table->csv, &found);
        if (!err && found) err = visit(context);
    }
    return err;
}

weir_err weir_import_survey(weir_import *import) {
    const weir_snapshot_import_opts *opts = import->opts;
    weir_err err = survey_open_table(import, opts->nodes, true, &import->nodes);
    if (!err) err = survey_check_splits(&import->nodes, opts->splits);
    if (!err) err = survey_open_table(import, opts->edges, false, &import->edges);
    if (!err && opts->nodes && weir_import_find(&import->nodes, WEIR_IMPORT_ID) == WEIR_SCHEMA_NONE)
        err = WEIR_ERR(WEIR_EDATA, "%s has no column 'id'", opts->nodes);
    if (!err && (weir_import_find(&import->edges, WEIR_IMPORT_SRC) == WEIR_SCHEMA_NONE ||
                 weir_import_find(&import->edges, WEIR_IMPORT_DST) == WEIR_SCHEMA_NONE))
        err = WEIR_ERR(WEIR_EDATA, "%s lacks the columns 'src' and 'dst'", opts->edges);
    if (!err) err = weir_import_walk(&import->nodes, survey_node, import);
    return err ? err : weir_import_walk(&import->edges, survey_edge, import);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* store_read.c - `weir store stats|get|neighbors`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/suggest.h>
#include <weir/store/cmd/store.h>

#define READ_BYTES      ((size_t)256 << 20)
#define NEIGHBORS_USUAL 100u

/* --- stats ------------------------------------------------------------------------------------------------------ */

static weir_err cmd_stats_print_offset(void *context, const char *source, uint32_t partition, uint64_t sealed,
                                       uint64_t applied) {
    (void)applied;
    weir_buf_printf(context, "source %s partition %" PRIu32 ": sealed below offset %" PRIu64 "\n", source, partition,
                    sealed);
    return WEIR_OK;
}

static weir_err cmd_stats_print_clock(void *context, const weir_graph_clock *clock) {
    char time[WEIR_TIME_TEXT_MAX] = "none", newest[WEIR_TIME_TEXT_MAX] = "none";
    if (clock->clock_us == INT64_MIN) return WEIR_OK;
    weir_time_format(clock->clock_us, time);
    weir_time_format(clock->newest_us, newest);
    weir_buf_printf(context, "source %s partition %" PRIu32 ": clock %s, newest of its newest events %s\n",
                    clock->source, clock->partition, time, newest);
    return WEIR_OK;
}

static weir_err cmd_store_stats(weir_cli *cli) {
    char time[WEIR_TIME_TEXT_MAX] = "none", agreed[WEIR_TIME_TEXT_MAX] = "none";
    weir_cmd_store store;
    weir_graph_stats stats;
    weir_buf out = {0};
    weir_err err = weir_cmd_store_open(cli, true, &store);
    if (err) return err;
    weir_graph_stats_get(store.graph, &stats);
    if (stats.event_time_last_us != INT64_MIN) weir_time_format(stats.event_time_last_us, time);
    weir_buf_printf(&out, "schema %s, %" PRIu32 " shards, %" PRIu64 " bytes, %" PRIu64 " deletions of vertices\n",
                    weir_schema_name(store.schema), weir_graph_shards(store.graph), stats.cold_bytes,
                    stats.deleted_vertices);
    if (weir_graph_watermark(store.graph) != INT64_MIN) weir_time_format(weir_graph_watermark(store.graph), agreed);
    weir_buf_printf(&out, "newest event: %s\nwatermark: %s\n", time, agreed);
    err = weir_graph_offsets(store.graph, cmd_stats_print_offset, &out);
    if (!err) err = weir_graph_clocks(store.graph, cmd_stats_print_clock, &out);
    weir_err_keep(&err, weir_cmd_store_close(&store));
    weir_err_keep(&err, weir_cmd_print(&out));
    return err;
}

/* --- which vertex, and when ------------------------------------------------------------------------------------- */

typedef struct cmd_question {
    weir_cmd_store store;
    weir_arena *arena;
    uint32_t type;
    weir_vertex vertex;
    int64_t before_us;
} cmd_question;

static weir_err cmd_question_close(cmd_question *q) {
    weir_arena_close(q->arena);
    return weir_cmd_store_close(&q->store);
}

static weir_err cmd_question_open(weir_cli *cli, cmd_question *q) {
    *q = (cmd_question){.before_us = WEIR_BEFORE_ALL};
    weir_err err = WEIR_OK;
    if (weir_cli_given(cli, "before")) err = weir_cli_time(cli, "before", &q->before_us);
    if (!err) err = weir_cmd_store_open(cli, true, &q->store);
    if (err) return err;
    const weir_schema *schema = q->store.schema;
    const char *type = weir_cli_positional(cli, 0), *key = weir_cli_positional(cli, 1);
    char number[32], nearest[128];
    q->type = weir_schema_vertex_find(schema, type);
    if (q->type == WEIR_SCHEMA_NONE) {
        weir_suggest suggest = weir_suggest_for(type);
        for (uint32_t i = 0; i < weir_schema_vertex_count(schema); i++)
            weir_suggest_offer(&suggest, weir_schema_vertex_at(schema, i)->name);
        err = WEIR_ERR(WEIR_ENOTFOUND, "the store has no vertex type '%.64s'; weir schema print says which there are%s",
                       type, weir_suggest_text(&suggest, nearest, sizeof nearest));
        goto done;
    }
    if (weir_schema_vertex_at(schema, q->type)->key == WEIR_SCHEMA_KEY_INTEGER) {
        /* An integer key has one spelling: "007" is 7. */
        char *end;
        errno = 0;
        long long value = strtoll(key, &end, 10);
        if (errno || *end || end == key) {
            err = WEIR_ERR(WEIR_EUSAGE, "keys of %s are integers of 64 bits; '%.64s' is not one", type, key);
            goto done;
        }
        snprintf(number, sizeof number, "%lld", value);
        key = number;
    }
    q->vertex = weir_vertex_id(weir_graph_id_key(q->store.graph), type, key, strlen(key));
    err = weir_arena_open(READ_BYTES, &q->arena);
done:
    if (err) weir_err_keep(&err, cmd_question_close(q));
    return err;
}

/* --- printing --------------------------------------------------------------------------------------------------- */

static void cmd_store_print_time(weir_json *json, const char *name, int64_t time_us) {
    char text[WEIR_TIME_TEXT_MAX];
    weir_json_key_text(json, name, text, weir_time_format(time_us, text));
}

static void cmd_store_print_value(weir_json *json, weir_value_kind kind, const weir_value *value) {
    char text[WEIR_TIME_TEXT_MAX];
    switch (kind) {
    case WEIR_VALUE_NUMBER:
        weir_json_f64(json, value->number);
        break;
    case WEIR_VALUE_TIME:
        weir_json_text(json, text, weir_time_format(value->time_us, text));
        break;
    case WEIR_VALUE_CATEGORY:
        weir_json_text(json, value->text, value->text_length);
        break;
    }
}

static weir_err cmd_store_print_row(weir_json *json, const weir_schema_feature *features, const weir_value_kind *kinds,
                                    size_t count, const uint8_t *row, size_t length) {
    weir_value values[WEIR_ROW_FEATURES_MAX] = {0};
    weir_json_key(json, "features");
    weir_json_object(json);
    if (length) {
        weir_err err = weir_row_check(kinds, count, row, length);
        if (err) return err;
        weir_row_read(kinds, count, row, length, values);
    }
    for (size_t i = 0; i < count; i++) {
        if (!values[i].present) continue;
        weir_json_key(json, features[i].name);
        cmd_store_print_value(json, kinds[i], &values[i]);
    }
    weir_json_object_end(json);
    return WEIR_OK;
}

static weir_err cmd_store_print_name(weir_json *json, cmd_question *q, weir_vertex vertex, bool *knownp) {
    char id[2 * WEIR_VERTEX_BYTES + 1];
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_err err = weir_graph_name(q->store.graph, vertex, q->arena, &type, &key, &length);
    if (err) return err;
    *knownp = key != NULL;
    if (key && type < weir_schema_vertex_count(q->store.schema)) {
        weir_json_key_string(json, "type", weir_schema_vertex_at(q->store.schema, type)->name);
        weir_json_key_text(json, "key", key, length);
    }
    snprintf(id, sizeof id, WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(vertex));
    weir_json_key_string(json, "id", id);
    return WEIR_OK;
}

/* --- get -------------------------------------------------------------------------------------------------------- */

static weir_err cmd_get_print_features(weir_json *json, cmd_question *q, bool *knownp) {
    const weir_schema_vertex *type = weir_schema_vertex_at(q->store.schema, q->type);
    weir_row_view view;
    size_t count;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(q->store.graph, q->type, &count);
    weir_err err = weir_graph_features(q->store.graph, q->vertex, q->before_us, q->arena, &view);
    if (err) return err;
    if (view.row) {
        *knownp = true;
        cmd_store_print_time(json, "put", view.time_us);
    }
    return cmd_store_print_row(json, type->features, kinds, count, view.row, view.row ? view.row_length : 0);
}

static weir_err cmd_get_print_labels(weir_json *json, cmd_question *q) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    weir_err err = WEIR_OK;
    weir_json_key(json, "labels");
    weir_json_object(json);
    for (uint16_t i = 0; !err && i < weir_schema_label_count(q->store.schema); i++) {
        const weir_schema_label *label = weir_schema_label_at(q->store.schema, i);
        weir_row_view view;
        weir_value value;
        if (label->on_relation || label->target != q->type) continue;
        err = weir_graph_label(q->store.graph, q->vertex, i, q->before_us, q->arena, &view);
        if (!err && view.row) err = weir_row_check(&kind, 1, view.row, view.row_length);
        if (err || !view.row) continue;
        weir_row_read(&kind, 1, view.row, view.row_length, &value);
        weir_json_key(json, label->name);
        cmd_store_print_value(json, kind, &value);
    }
    weir_json_object_end(json);
    return err;
}

static weir_err cmd_store_get(weir_cli *cli) {
    cmd_question q;
    weir_buf out = {0};
    bool known = false;
    weir_err err = cmd_question_open(cli, &q);
    if (err) return err;
    weir_json json = weir_json_begin(&out);
    weir_json_object(&json);
    err = cmd_store_print_name(&json, &q, q.vertex, &known);
    if (!err) err = cmd_get_print_features(&json, &q, &known);
    if (!err) err = cmd_get_print_labels(&json, &q);
    if (!err && !known) {
        err = WEIR_ERR(WEIR_ENOTFOUND, "the store has no %.64s '%.200s', or nothing of it is sealed yet",
                       weir_cli_positional(cli, 0), weir_cli_positional(cli, 1));
    }
    if (!err) {
        weir_json_object_end(&json);
        weir_buf_byte(&out, '\n');
        err = weir_cmd_print(&out);
    }
    weir_buf_free(&out);
    weir_err_keep(&err, cmd_question_close(&q));
    return err;
}

/* --- neighbors -------------------------------------------------------------------------------------------------- */

static weir_err cmd_neighbors_print_edge(weir_buf *out, cmd_question *q, uint32_t relation, const weir_edge *edge) {
    char event[24];
    size_t count;
    bool known;
    const weir_value_kind *kinds = weir_graph_relation_kinds(q->store.graph, relation, &count);
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_err err = cmd_store_print_name(&json, q, edge->neighbor, &known);
    if (err) return err;
    cmd_store_print_time(&json, "time", edge->time_us);
    snprintf(event, sizeof event, "%016" PRIx64, edge->event);
    weir_json_key_string(&json, "event", event);
    err = cmd_store_print_row(&json, weir_schema_relation_at(q->store.schema, relation)->features, kinds, count,
                              edge->row, edge->row_length);
    if (err) return err;
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
    return weir_buf_err(out);
}

static weir_err cmd_store_neighbors(weir_cli *cli) {
    const char *direction = weir_cli_text(cli, "direction"), *name = weir_cli_positional(cli, 2);
    weir_direction which = direction && strcmp(direction, "in") == 0 ? WEIR_IN : WEIR_OUT;
    uint64_t limit = NEIGHBORS_USUAL;
    uint32_t count = 0;
    const weir_edge *edges;
    weir_buf out = {0};
    cmd_question q;
    weir_err err = weir_cli_u64(cli, "limit", 1, WEIR_WINDOW_MAX, &limit);
    if (!err) err = cmd_question_open(cli, &q);
    if (err) return err;
    uint32_t relation = weir_schema_relation_find(q.store.schema, name);
    if (relation == WEIR_SCHEMA_NONE) {
        err =
            WEIR_ERR(WEIR_ENOTFOUND, "the store has no relation '%.64s'; weir schema print says which there are", name);
    }
    if (!err) {
        err = weir_graph_neighbors(q.store.graph, q.vertex, (uint16_t)relation, which, q.before_us, (uint32_t)limit,
                                   q.arena, &edges, &count);
    }
    for (uint32_t i = 0; !err && i < count; i++)
        err = cmd_neighbors_print_edge(&out, &q, relation, &edges[i]);
    if (!err) err = weir_cmd_print(&out);
    weir_buf_free(&out);
    weir_err_keep(&err, cmd_question_close(&q));
    return err;
}

/* --- the table -------------------------------------------------------------------------------------------------- */

#define BEFORE \
    { "before", 'b', "TIME", "as it was known before then (default: now)", NULL }

static const weir_option stats_options[] = {WEIR_STORE_OPTION_PATH, {0}};
static const weir_option get_options[] = {WEIR_STORE_OPTION_PATH, BEFORE, {0}};
static const weir_option neighbors_options[] = {
    WEIR_STORE_OPTION_PATH,
    BEFORE,
    {"direction", 'd', "out|in", "edges that start at the vertex or end there (default: out)", "out|in"},
    {"limit", 'n', "N", "so many, newest first (default: 100)", NULL},
    {0}};

const weir_command weir_store_command_stats = {
    .name = "stats",
    .summary = "how large the store is, and how far it has read",
    .example = "weir store stats",
    .options = stats_options,
    .run = cmd_store_stats,
};

const weir_command weir_store_command_get = {
    .name = "get",
    .summary = "print a vertex: its features and labels",
    .positional = "TYPE KEY",
    .positional_min = 2,
    .positional_max = 2,
    .description = "One JSON object, of what is sealed.",
    .example = "weir store get account a17\nweir store get account a17 --before 2026-11-21T10:00:00Z",
    .options = get_options,
    .run = cmd_store_get,
};

const weir_command weir_store_command_neighbors = {
    .name = "neighbors",
    .summary = "print a vertex's edges in a relation, newest first",
    .positional = "TYPE KEY RELATION",
    .positional_min = 3,
    .positional_max = 3,
    .description = "One JSON object an edge, of what is sealed.",
    .example = "weir store neighbors card c5 pays --limit 10",
    .options = neighbors_options,
    .run = cmd_store_neighbors,
};

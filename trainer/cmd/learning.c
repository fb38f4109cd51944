/* SPDX-License-Identifier: Apache-2.0 */
/* learning.c - what the options of learning.def say, which `weir train` and `weir backtest` share. */
#include <stdio.h>
#include <string.h>

#include "train_private.h"

weir_err weir_cmd_train_u32(const weir_cli *cli, const char *name, uint32_t least, uint32_t most, uint32_t *valuep) {
    uint64_t value = *valuep;
    weir_err err = weir_cli_u64(cli, name, least, most, &value);
    *valuep = (uint32_t)value;
    return err;
}

/* How a vertex gathers, and by how many heads. */
static weir_err learning_read_network(const weir_cli *cli, weir_train_opts *o) {
    const char *word = weir_cli_text(cli, "network");
    for (weir_nn_network n = 0; word && n < WEIR_NN_NETWORKS; n++)
        if (strcmp(word, weir_nn_network_word(n)) == 0) o->network = n;
    const char *norm = weir_cli_text(cli, "norm");
    for (weir_nn_norm n = 0; norm && n < WEIR_NN_NORMS; n++)
        if (strcmp(norm, weir_nn_norm_word(n)) == 0) o->norm = n;
    const char *jump = weir_cli_text(cli, "jump");
    for (weir_nn_jump j = 0; jump && j < WEIR_NN_JUMPS; j++)
        if (strcmp(jump, weir_nn_jump_word(j)) == 0) o->jump = j;
    if (o->headless && o->jump)
        return WEIR_ERR(WEIR_EUSAGE, "--jump is what a head sees, and --head none has none; omit one of them");
    weir_err err = weir_cmd_train_u32(cli, "heads", 1, WEIR_NN_HIDDEN_MAX, &o->heads);
    if (err) return err;
    const uint32_t heads = o->heads ? o->heads : WEIR_NN_HEADS_DEFAULT;
    if (!weir_nn_network_has_heads(o->network) && o->heads)
        return WEIR_ERR(WEIR_EUSAGE, "--heads is of --network attention and gat; give one of them, or omit it");
    if (!weir_nn_network_has_heads(o->network) && o->attention_dropout > 0)
        return WEIR_ERR(WEIR_EUSAGE,
                        "--attention-dropout is of --network attention and gat; give one of them, or omit it");
    if (!weir_nn_network_has_heads(o->network) || o->hidden % heads == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "%u heads do not divide --hidden %u; give --heads a number that does", heads,
                    o->hidden);
}

weir_err weir_cmd_train_refuse_network(const weir_cli *cli, const char *why) {
    static const char *const of_networks[] = {
        "network",   "heads",   "residual",     "encoder",           "schedule", "rate-end",
        "rate-rise", "average", "edge-dropout", "attention-dropout", "focal",    "jump",
        "head",      "norm",    "l2",           "feed-forward",      "device",   "resident"};
    for (size_t i = 0; i < sizeof of_networks / sizeof of_networks[0]; i++)
        if (weir_cli_given(cli, of_networks[i]))
            return WEIR_ERR(WEIR_EUSAGE, "--%s is of a network, and %s; omit one of them", of_networks[i], why);
    return WEIR_OK;
}

static weir_err learning_read_schedule(const weir_cli *cli, weir_train_opts *o) {
    const char *name = weir_cli_text(cli, "schedule");
    if (name && strcmp(name, "cosine") == 0) o->schedule = WEIR_TRAIN_COSINE;
    weir_err err = weir_cmd_train_u32(cli, "rate-rise", 0, 1000000000, &o->rate_rise);
    if (!err) err = weir_cli_f64(cli, "rate-end", 0, 1, &o->rate_end);
    if (err || o->schedule == WEIR_TRAIN_COSINE || !weir_cli_given(cli, "rate-end")) return err;
    return WEIR_ERR(WEIR_EUSAGE, "--rate-end is where --schedule cosine falls to; give both, or omit it");
}

weir_err weir_cmd_learning_numbers(const weir_cli *cli, weir_train_opts *o) {
    const char *times = weir_cli_text(cli, "learn");
    o->unit_rows = weir_cli_given(cli, "unit-rows");
    o->bare = weir_cli_given(cli, "encoder") && strcmp(weir_cli_text(cli, "encoder"), "none") == 0;
    o->residual = weir_cli_given(cli, "residual");
    o->feed_forward = weir_cli_given(cli, "feed-forward");
    o->headless = weir_cli_given(cli, "head") && strcmp(weir_cli_text(cli, "head"), "none") == 0;
    o->again = !times || strcmp(times, "twice") == 0;
    weir_err err = weir_cmd_train_u32(cli, "epochs", 1, 100000, &o->epochs);
    if (!err) err = weir_cmd_train_u32(cli, "batch", 1, WEIR_SAMPLE_TARGETS_MAX, &o->batch);
    if (!err) err = weir_cmd_train_u32(cli, "ahead", 1, WEIR_TRAIN_AHEAD_MAX, &o->ahead);
    if (!err) err = weir_cmd_train_u32(cli, "hidden", 1, WEIR_NN_HIDDEN_MAX, &o->hidden);
    if (!err) err = weir_cmd_train_u32(cli, "window", 1, WEIR_SAMPLE_WINDOW_MAX, &o->window);
    if (!err) err = weir_cmd_train_u32(cli, "patience", 0, 100000, &o->patience);
    if (!err) err = weir_cmd_train_u32(cli, "negatives", 0, 1000000, &o->negatives);
    if (!err) err = weir_cli_f64(cli, "rate", 1e-9, 10, &o->rate);
    if (!err) err = weir_cli_f64(cli, "decay", 0, 10, &o->decay);
    if (!err) err = weir_cli_f64(cli, "l2", 0, 10, &o->l2);
    if (!err) err = weir_cli_f64(cli, "average", 0, 0.999, &o->average);
    if (!err) err = weir_cli_f64(cli, "dropout", 0, 0.95, &o->dropout);
    if (!err) err = weir_cli_f64(cli, "input-dropout", 0, 0.99, &o->input_dropout);
    if (!err) err = weir_cli_f64(cli, "edge-dropout", 0, 0.95, &o->edge_dropout);
    if (!err) err = weir_cli_f64(cli, "attention-dropout", 0, 0.95, &o->attention_dropout);
    if (!err) err = weir_cli_f64(cli, "unknown", 0, 0.99, &o->unknown);
    if (!err) err = weir_cli_f64(cli, "embedding-rate", 1e-9, 10, &o->embedding_rate);
    if (!err) err = weir_cli_f64(cli, "positive-weight", 0, 1e6, &o->positive_weight);
    if (!err) err = weir_cli_f64(cli, "focal", 0, 10, &o->focal);
    if (!err) err = weir_cli_f64(cli, "warm-up", 0, 0.9, &o->cut.warm_up);
    if (!err) err = weir_cli_f64(cli, "validation", 0.001, 0.9, &o->cut.validation);
    if (!err) err = weir_cli_u64(cli, "seed", 0, UINT32_MAX, &o->seed);
    if (!err) err = learning_read_schedule(cli, o);
    return err ? err : learning_read_network(cli, o);
}

/* "account,merchant": whose vertices have embeddings; and how these move. */
static weir_err learning_read_embeddings(const weir_cli *cli, weir_cmd_train *c) {
    const weir_schema *schema = weir_snapshot_schema(c->opts.snapshot);
    const char *rest = weir_cli_text(cli, "embed-vertices"), *optimizer = weir_cli_text(cli, "embedding-optimizer");
    while (rest) {
        char name[WEIR_SCHEMA_NAME_BYTES_MAX + 1];
        size_t length = strcspn(rest, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, rest);
        uint32_t type = length < sizeof name ? weir_schema_vertex_find(schema, name) : WEIR_SCHEMA_NONE;
        if (type == WEIR_SCHEMA_NONE)
            return WEIR_ERR(WEIR_EUSAGE, "--embed-vertices: the schema has no vertex type '%.*s'", (int)length, rest);
        for (uint32_t i = 0; i < c->opts.embedded_count; i++)
            if (c->embedded[i] == type)
                return WEIR_ERR(WEIR_EUSAGE, "--embed-vertices names '%s' twice; name it once", name);
        c->embedded[c->opts.embedded_count++] = type;
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    c->opts.embedded = c->embedded;
    c->opts.adagrad = optimizer && strcmp(optimizer, "adagrad") == 0;
    if (weir_cli_given(cli, "unknown") && !c->opts.embedded_count)
        return WEIR_ERR(WEIR_EUSAGE, "--unknown is a share of the vertices of --embed-vertices; name their types, too");
    return WEIR_OK;
}

weir_err weir_cmd_learning_places(const weir_cli *cli, weir_cmd_train *c) {
    weir_err err = learning_read_embeddings(cli, c);
    c->reach.reach = c->opts.reach;
    if (!err) err = weir_cmd_reach_read(cli, weir_snapshot_schema(c->opts.snapshot), &c->reach);
    c->opts.reach = c->reach.reach;
    return err;
}

weir_err weir_cmd_learning_task(const weir_cli *cli, weir_train_opts *o) {
    const weir_schema *schema = weir_snapshot_schema(o->snapshot);
    const char *name = weir_cli_text(cli, "task");
    uint32_t count = weir_schema_task_count(schema);
    if (!name && count == 1) return WEIR_OK;
    if (!name)
        return WEIR_ERR(count ? WEIR_EUSAGE : WEIR_ECONFIG,
                        count ? "the schema has %u tasks; choose one by --task NAME"
                              : "the schema has %u tasks; add one to it (store/schema/README.md)",
                        count);
    o->task = weir_schema_task_find(schema, name);
    return o->task == WEIR_SCHEMA_NONE ? WEIR_ERR(WEIR_EUSAGE, "the schema has no task '%s'", name) : WEIR_OK;
}

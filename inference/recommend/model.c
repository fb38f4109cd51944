/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - a recommender goes into a model folder and comes out again.
 *
 *   weights.safetensors   users.ids, items.ids (uint64, high and low half), users.own, items.own, items.sums,
 *                         items.vectors, items.trends
 *   architecture          {"family": "recommend", "width": 64, "layers": 2, "cosine": true, "temperature": 0.15,
 *                          "trend_weight": 0.5, "trend_half_life_us": 86400000000, "half_life_us": 0,
 *                          "relations": [{"name": "viewed", "weight": 1}, …]}
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/json.h>

#include "model_private.h"

#define MODEL_DEPTH_MAX 32u
#define MODEL_VERSION   128u
/* So no score is infinite, which is a float: a vector is at most some 10^5 times as long as rows (a weight of 10^6, of
 * 16 x 1,024 edges, under a root), and 1,024 of its products with an item's are below 10^36. */
#define MODEL_NUMBER_MAX 1e12
#define MODEL_SCORE_MAX  1e15 /* of items                                                  */
#define MODEL_TREND_MAX  1e12 /* of trends: times a weight of 10^6, its square is a float */

enum {
    MODEL_USER_IDS,
    MODEL_ITEM_IDS,
    MODEL_USER_OWN,
    MODEL_ITEM_OWN,
    MODEL_SUMS,
    MODEL_ITEMS,
    MODEL_TRENDS,
    MODEL_TENSORS
};

static const char *const model_tensor_names[MODEL_TENSORS] = {"users.ids",  "items.ids",     "users.own",   "items.own",
                                                              "items.sums", "items.vectors", "items.trends"};

struct weir_recommend_draft {
    weir_model_tensor tensors[MODEL_TENSORS];
    weir_buf architecture;
    uint64_t schema_hash;
    const char *task;
};

struct weir_recommend_model {
    weir_model *folder; /* has the tables */
    weir_recommend_shape shape;
    weir_recommend_tables tables;
    char version[MODEL_VERSION];
    atomic_uint references;
    weir_recommend_index *index; /* NULL: none was begun */
};

/* --- in ----------------------------------------------------------------------------------------------------------- */

weir_err weir_recommend_draft_open(const weir_recommend_shape *shape, const weir_recommend_tables *t,
                                   const weir_schema *schema, weir_recommend_draft **draftp) {
    *draftp = NULL;
    weir_recommend_draft *draft = weir_calloc(1, sizeof *draft);
    if (!draft) return WEIR_NOMEM("while writing a model");
    const uint64_t width = shape->width;
    const weir_model_tensor tensors[MODEL_TENSORS] = {
        [MODEL_USER_IDS] = {.rows = t->user_count, .cols = 2, .words = (const uint64_t *)(const void *)t->user_ids},
        [MODEL_ITEM_IDS] = {.rows = t->item_count, .cols = 2, .words = (const uint64_t *)(const void *)t->item_ids},
        [MODEL_USER_OWN] = {.rows = t->user_count, .cols = width, .data = t->user_own},
        [MODEL_ITEM_OWN] = {.rows = t->item_count, .cols = width, .data = t->item_own},
        [MODEL_SUMS] = {.rows = t->item_count, .cols = width, .data = t->item_sums},
        [MODEL_ITEMS] = {.rows = t->item_count, .cols = width, .data = t->items},
        [MODEL_TRENDS] = {.rows = t->item_count, .cols = 1, .data = t->trends}};
    for (int i = 0; i < MODEL_TENSORS; i++) {
        draft->tensors[i] = tensors[i];
        draft->tensors[i].name = model_tensor_names[i];
    }
    draft->schema_hash = weir_schema_hash(schema);
    draft->task = weir_schema_task_at(schema, shape->task)->name;

    weir_json json = weir_json_begin(&draft->architecture);
    weir_json_object(&json);
    weir_json_key_string(&json, "family", WEIR_RECOMMEND_FAMILY);
    weir_json_key_u64(&json, "width", width);
    weir_json_key_u64(&json, "layers", shape->layers);
    weir_json_key_bool(&json, "cosine", shape->cosine);
    weir_json_key_f64(&json, "temperature", shape->temperature);
    weir_json_key_f64(&json, "trend_weight", shape->trend_weight);
    weir_json_key_u64(&json, "trend_half_life_us", (uint64_t)shape->trend_half_life_us);
    weir_json_key_u64(&json, "half_life_us", (uint64_t)shape->rule.half_life_us);
    weir_json_key(&json, "relations");
    weir_json_array(&json);
    for (uint32_t i = 0; i < shape->rule.relation_count; i++) {
        weir_json_object(&json);
        weir_json_key_string(&json, "name", weir_schema_relation_at(schema, shape->rule.relations[i].relation)->name);
        weir_json_key_f64(&json, "weight", shape->rule.relations[i].weight);
        weir_json_object_end(&json);
    }
    weir_json_array_end(&json);
    weir_json_object_end(&json);
    weir_err err = weir_buf_err(&draft->architecture);
    if (err) {
        weir_recommend_draft_close(draft);
        return err;
    }
    *draftp = draft;
    return WEIR_OK;
}

weir_model_write_opts weir_recommend_draft_opts(const weir_recommend_draft *draft) {
    return (weir_model_write_opts){.tensors = draft->tensors,
                                   .tensor_count = MODEL_TENSORS,
                                   .schema_hash = draft->schema_hash,
                                   .task = draft->task,
                                   .architecture = draft->architecture.bytes,
                                   .normalisation = "{}",
                                   .calibration = "{}",
                                   .metrics = "{}",
                                   .provenance = "{}"};
}

void weir_recommend_draft_close(weir_recommend_draft *draft) {
    if (!draft) return;
    weir_buf_free(&draft->architecture);
    weir_free(draft);
}

/* --- out: the description ----------------------------------------------------------------------------------------- */

static weir_err model_parse(const weir_model *model, weir_arena **arenap, const weir_json_node **rootp) {
    size_t length;
    const char *text = weir_model_text_of(model, WEIR_MODEL_ARCHITECTURE, &length);
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, arenap);
    return err ? err : weir_json_parse("the model's architecture", text, length, MODEL_DEPTH_MAX, *arenap, rootp);
}

bool weir_recommend_is_of(const weir_model *model) {
    weir_arena *arena = NULL;
    const weir_json_node *root = NULL;
    weir_err err = model_parse(model, &arena, &root);
    bool is = !err && strcmp(weir_json_node_text(weir_json_find(root, "family")), WEIR_RECOMMEND_FAMILY) == 0;
    weir_arena_close(arena);
    return is;
}

/* The relation as the schema has it now: by its name, and between the types of the task's. */
static weir_err model_read_relation(const weir_json_node *node, const weir_schema *schema, uint32_t task,
                                    weir_recommend_relation *relation) {
    const weir_json_node *name, *weight;
    weir_err err = weir_json_need(node, "name", WEIR_JSON_STRING, &name);
    if (!err) err = weir_json_need(node, "weight", WEIR_JSON_NUMBER, &weight);
    if (!err) err = weir_json_node_f64(weight, &relation->weight);
    if (!err && !(relation->weight >= WEIR_RECOMMEND_WEIGHT_MIN && relation->weight <= WEIR_RECOMMEND_WEIGHT_MAX))
        err = WEIR_ERR(WEIR_EDATA, "the model's weight of relation '%s' is not between 10^-6 and 10^6",
                       weir_json_node_text(name));
    if (err || !schema) return err;
    const weir_schema_relation *first = weir_schema_relation_at(schema, weir_schema_task_at(schema, task)->relation);
    relation->relation = weir_schema_relation_find(schema, weir_json_node_text(name));
    if (relation->relation == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EVERSION, "the model looks at relation '%s', which the schema has not; train a new model",
                        weir_json_node_text(name));
    const weir_schema_relation *r = weir_schema_relation_at(schema, relation->relation);
    if (r->from != first->from || r->to != first->to)
        return WEIR_ERR(WEIR_EVERSION, "relation '%s' leads elsewhere than that of the model's task; train a new model",
                        r->name);
    return WEIR_OK;
}

static weir_err model_read_relations(const weir_json_node *root, const weir_schema *schema, weir_recommend_shape *s) {
    const weir_json_node *list, *node;
    weir_err err = weir_json_need(root, "relations", WEIR_JSON_ARRAY, &list);
    if (err) return err;
    if (list->count == 0 || list->count > WEIR_RECOMMEND_RELATIONS_MAX)
        return WEIR_ERR(WEIR_EDATA, "the model looks at %zu relations, not at 1 to %u", list->count,
                        WEIR_RECOMMEND_RELATIONS_MAX);
    for (node = list->first; !err && node; node = node->next)
        err = model_read_relation(node, schema, s->task, &s->rule.relations[s->rule.relation_count++]);
    if (!err && schema && s->rule.relations[0].relation != weir_schema_task_at(schema, s->task)->relation)
        err = WEIR_ERR(WEIR_EVERSION, "task '%s' is of another relation than the model's; train a new model",
                       weir_schema_task_at(schema, s->task)->name);
    return err;
}

static weir_err model_read_shape(const weir_model *model, const weir_schema *schema, weir_recommend_shape *s) {
    weir_arena *arena = NULL;
    const weir_json_node *root, *node;
    int64_t width = 0, layers = 0;
    s->task = schema ? weir_schema_task_find(schema, weir_model_task(model)) : WEIR_SCHEMA_NONE;
    if (schema && (s->task == WEIR_SCHEMA_NONE || weir_schema_task_at(schema, s->task)->kind != WEIR_SCHEMA_RECOMMEND))
        return WEIR_ERR(WEIR_EVERSION, "the schema has no task '%s' that recommends; train a new model",
                        weir_model_task(model));
    weir_err err = model_parse(model, &arena, &root);
    if (!err && strcmp(weir_json_node_text(weir_json_find(root, "family")), WEIR_RECOMMEND_FAMILY) != 0)
        err = WEIR_ERR(WEIR_EDATA, "the model does not recommend: its family is not '%s'", WEIR_RECOMMEND_FAMILY);
    if (!err) err = weir_json_need_i64(root, "width", 1, WEIR_RECOMMEND_WIDTH_MAX, &width);
    if (!err) err = weir_json_need_i64(root, "layers", 1, WEIR_RECOMMEND_LAYERS_MAX, &layers);
    if (!err) err = weir_json_need_i64(root, "half_life_us", 0, INT64_MAX, &s->rule.half_life_us);
    if (!err) err = weir_json_need(root, "temperature", WEIR_JSON_NUMBER, &node);
    if (!err) err = weir_json_node_f64(node, &s->temperature);
    if (!err && !(s->temperature >= 1e-3 && s->temperature <= 1e3))
        err = WEIR_ERR(WEIR_EDATA, "the model's temperature is not between 0.001 and 1,000");
    if (!err) err = weir_json_need_i64(root, "trend_half_life_us", 0, INT64_MAX, &s->trend_half_life_us);
    if (!err) err = weir_json_need(root, "trend_weight", WEIR_JSON_NUMBER, &node);
    if (!err) err = weir_json_node_f64(node, &s->trend_weight);
    if (!err && !(s->trend_weight >= 0 && s->trend_weight <= 1e6))
        err = WEIR_ERR(WEIR_EDATA, "the model's weight of trends is not between 0 and 10^6");
    if (!err) err = weir_json_need(root, "cosine", WEIR_JSON_BOOL, &node);
    if (!err) s->cosine = node->token.bytes[0] == 't';
    if (!err) err = model_read_relations(root, schema, s);
    s->width = (uint32_t)width;
    s->layers = (uint32_t)layers;
    weir_arena_close(arena);
    return err;
}

/* --- out: the tables ---------------------------------------------------------------------------------------------- */

/* Rows are found by halving, so ids must ascend. */
static bool model_ids_ascend(const weir_vertex_pair *ids, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        if (weir_vertex_of(ids[i - 1]) >= weir_vertex_of(ids[i])) return false;
    return true;
}

static bool model_is_bounded(const weir_model_tensor *t, double max) {
    for (uint64_t i = 0; i < t->rows * t->cols; i++)
        if (!(fabs((double)t->data[i]) <= max)) return false;
    return true;
}

static weir_err model_read_tables(weir_recommend_model *m) {
    const weir_model_tensor *t[MODEL_TENSORS];
    const double max[MODEL_TENSORS] = {[MODEL_USER_OWN] = MODEL_NUMBER_MAX,
                                       [MODEL_ITEM_OWN] = MODEL_NUMBER_MAX,
                                       [MODEL_SUMS] = MODEL_NUMBER_MAX,
                                       [MODEL_ITEMS] = MODEL_SCORE_MAX,
                                       [MODEL_TRENDS] = MODEL_TREND_MAX};
    for (int i = 0; i < MODEL_TENSORS; i++) {
        const bool ids = i == MODEL_USER_IDS || i == MODEL_ITEM_IDS;
        const uint64_t cols = ids ? 2 : i == MODEL_TRENDS ? 1 : m->shape.width;
        t[i] = weir_model_tensor_find(m->folder, model_tensor_names[i]);
        const weir_model_tensor *of =
            i == MODEL_USER_IDS || i == MODEL_USER_OWN ? t[MODEL_USER_IDS] : t[MODEL_ITEM_IDS];
        if (!t[i] || !of || t[i]->rows != of->rows || t[i]->cols != cols || ids != (t[i]->words != NULL))
            return WEIR_ERR(WEIR_EDATA,
                            "the model's table '%s' is missing, or of another size than it says; train it again",
                            model_tensor_names[i]);
        if (!ids && !model_is_bounded(t[i], max[i]))
            return WEIR_ERR(WEIR_EDATA, "the model's table '%s' has numbers that are too large; train it again",
                            model_tensor_names[i]);
    }
    if (weir_model_tensor_count(m->folder) != MODEL_TENSORS)
        return WEIR_ERR(WEIR_EDATA, "the model has %zu tables, not %d; train it again",
                        weir_model_tensor_count(m->folder), MODEL_TENSORS);
    m->tables = (weir_recommend_tables){.user_ids = (const weir_vertex_pair *)(const void *)t[MODEL_USER_IDS]->words,
                                        .item_ids = (const weir_vertex_pair *)(const void *)t[MODEL_ITEM_IDS]->words,
                                        .user_count = t[MODEL_USER_IDS]->rows,
                                        .item_count = t[MODEL_ITEM_IDS]->rows,
                                        .user_own = t[MODEL_USER_OWN]->data,
                                        .item_own = t[MODEL_ITEM_OWN]->data,
                                        .item_sums = t[MODEL_SUMS]->data,
                                        .items = t[MODEL_ITEMS]->data,
                                        .trends = t[MODEL_TRENDS]->data};
    if (!model_ids_ascend(m->tables.user_ids, m->tables.user_count) ||
        !model_ids_ascend(m->tables.item_ids, m->tables.item_count))
        return WEIR_ERR(WEIR_EDATA, "the model's ids do not ascend; train it again");
    return WEIR_OK;
}

weir_err weir_recommend_model_open(weir_model *model, const char *version, const weir_schema *schema,
                                   weir_recommend_model **modelp) {
    *modelp = NULL;
    weir_recommend_model *m = weir_calloc(1, sizeof *m);
    if (!m) {
        weir_model_close(model);
        return WEIR_NOMEM("for a model");
    }
    m->folder = model;
    snprintf(m->version, sizeof m->version, "%s", version);
    atomic_init(&m->references, 1);
    weir_err err = model_read_shape(model, schema, &m->shape);
    if (!err) err = model_read_tables(m); // RECOMMEND-R5
    if (err) {
        weir_recommend_model_drop(m);
        return err;
    }
    *modelp = m;
    return WEIR_OK;
}

weir_recommend_model *weir_recommend_model_share(weir_recommend_model *model) {
    unsigned before = atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    WEIR_ASSERT(before > 0);
    return model;
}

void weir_recommend_model_drop(weir_recommend_model *model) {
    if (!model) return;
    unsigned before = atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel);
    WEIR_ASSERT(before > 0);
    if (before > 1) return;
    weir_recommend_index_close(model->index);
    weir_model_close(model->folder);
    weir_free(model);
}

const char *weir_recommend_model_version(const weir_recommend_model *model) {
    return model->version;
}

const weir_recommend_shape *weir_recommend_model_shape(const weir_recommend_model *model) {
    return &model->shape;
}

const weir_recommend_tables *weir_recommend_model_tables(const weir_recommend_model *model) {
    return &model->tables;
}

weir_err weir_recommend_model_index(weir_recommend_model *model, uint64_t least) {
    WEIR_ASSERT(!model->index);
    if (model->tables.item_count < least || model->tables.item_count == 0 || model->tables.item_count > UINT32_MAX)
        return WEIR_OK;
    return weir_recommend_index_open(model, &model->index);
}

const weir_near *weir_recommend_model_near(const weir_recommend_model *model) {
    return model->index ? weir_recommend_index_get(model->index) : NULL;
}

int64_t weir_recommend_model_recall(const weir_recommend_model *model) {
    return model->index ? weir_recommend_index_permille(model->index) : 0;
}

bool weir_recommend_model_is_indexed(weir_recommend_model *model) {
    if (model->index) weir_recommend_index_await(model->index);
    return weir_recommend_model_near(model) != NULL;
}

bool weir_recommend_find(const weir_vertex_pair *ids, uint64_t count, weir_vertex id, uint64_t *placep) {
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (weir_vertex_of(ids[middle]) < id)
            low = middle + 1;
        else
            high = middle;
    }
    *placep = low;
    return low < count && weir_vertex_of(ids[low]) == id;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* folder_test.c - models that go into a folder and come out, or are refused with a sentence. */
#include <math.h>

#include "recommend_model.h"

#define TABLES 7u

/* --- folders ------------------------------------------------------------------------------------------------------ */

static void r5_what_went_in_comes_out(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 5, 0);
    weir_schema *schema = shop_schema(shop_schema_text);
    random_model m;
    random_model_make(&m, &rng, false);
    m.shape.trend_weight = 0.1;
    m.shape.temperature = 1.0 / 3;
    for (unsigned without = 0; without < 2; without++) {
        char folder[4096];
        weir_recommend_model *model;
        snprintf(folder, sizeof folder, "%s", shop_path("model"));
        assert_ok(model_write(&m, schema, folder));
        assert_ok(folder_open(folder, without ? NULL : schema, &model));
        const weir_recommend_tables *t = weir_recommend_model_tables(model);
        const weir_recommend_shape *s = weir_recommend_model_shape(model);
        assert_true(t->user_count == USERS - 1 && t->item_count == ITEMS);
        assert_memory_equal(t->user_ids, m.users, (USERS - 1) * sizeof *m.users);
        assert_memory_equal(t->item_ids, m.items, ITEMS * sizeof *m.items);
        assert_memory_equal(t->user_own, m.user_own, (USERS - 1) * WIDTH * sizeof(float));
        assert_memory_equal(t->item_own, m.item_own, ITEMS * WIDTH * sizeof(float));
        assert_memory_equal(t->item_sums, m.sums, ITEMS * WIDTH * sizeof(float));
        assert_memory_equal(t->items, m.vectors, ITEMS * WIDTH * sizeof(float));
        assert_memory_equal(t->trends, m.trends, ITEMS * sizeof(float));
        assert_true(s->width == WIDTH && s->layers == 2 && s->cosine == m.shape.cosine);
        assert_true(s->temperature == m.shape.temperature && s->trend_weight == m.shape.trend_weight);
        assert_true(s->trend_half_life_us == SHOP_HOUR && s->rule.half_life_us == 2 * SHOP_HOUR);
        assert_int_equal(s->rule.relation_count, 2);
        for (unsigned i = 0; i < 2; i++) {
            assert_true(s->rule.relations[i].weight == m.shape.rule.relations[i].weight);
            assert_true(without || s->rule.relations[i].relation == m.shape.rule.relations[i].relation);
        }
        assert_true(without || s->task == SHOP_TASK_BUY);
        weir_recommend_model_drop(model);
    }
    weir_schema_free(schema);
}

/* Writes what somebody has made of a model, and says what comes of opening it; NULL texts: as they were. */
static weir_err reopen(const weir_model_write_opts *opts, const weir_schema *schema) {
    char folder[4096];
    weir_recommend_model *model;
    snprintf(folder, sizeof folder, "%s", shop_path("hostile"));
    assert_ok(weir_model_write(folder, opts));
    weir_err err = folder_open(folder, schema, &model);
    weir_recommend_model_drop(model);
    return err;
}

typedef struct hostile {
    weir_schema *schema;
    random_model m;
    weir_recommend_draft *draft;
    weir_model_write_opts opts;
    weir_model_tensor tensors[TABLES + 1];
    float more[4 * ITEMS_MAX * WIDTH]; /* numbers for a table that is larger than it should be */
    uint64_t more_words[4 * ITEMS_MAX];
} hostile;

static void hostile_open(hostile *h) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 6, 0);
    *h = (hostile){.schema = shop_schema(shop_schema_text)};
    random_model_make(&h->m, &rng, true);
    assert_ok(weir_recommend_draft_open(&h->m.shape, &h->m.tables, h->schema, &h->draft));
    h->opts = weir_recommend_draft_opts(h->draft);
    assert_int_equal(h->opts.tensor_count, TABLES);
    memcpy(h->tensors, h->opts.tensors, TABLES * sizeof *h->tensors);
    h->opts.tensors = h->tensors;
}

static void hostile_close(hostile *h) {
    weir_recommend_draft_close(h->draft);
    weir_schema_free(h->schema);
}

static void r5_tables_of_another_size_are_refused(void **state) {
    (void)state;
    static hostile h;
    hostile_open(&h);
    assert_ok(reopen(&h.opts, h.schema));
    for (unsigned i = 0; i < TABLES; i++) {
        const weir_model_tensor kept = h.tensors[i];
        memmove(h.tensors + i, h.tensors + i + 1, (TABLES - 1 - i) * sizeof kept);
        h.opts.tensor_count = TABLES - 1;
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, kept.name);
        memmove(h.tensors + i + 1, h.tensors + i, (TABLES - 1 - i) * sizeof kept);
        h.opts.tensor_count = TABLES;
        for (unsigned how = 0; how < 3; how++) {
            h.tensors[i] = kept;
            if (kept.data)
                h.tensors[i].data = h.more;
            else
                h.tensors[i].words = h.more_words;
            if (how < 2) h.tensors[i].cols += how ? 2 : 1;
            if (how == 2) h.tensors[i].rows += 2;
            /* rows of ids are what the others are measured by, so that another table is named */
            assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "of another size than it says");
        }
        h.tensors[i] = kept;
    }
    h.tensors[TABLES] = (weir_model_tensor){.name = "more", .rows = 1, .cols = 2, .data = h.more};
    h.opts.tensor_count = TABLES + 1;
    assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "8 tables, not 7");
    hostile_close(&h);
}

static void r5_tables_of_another_kind_are_refused(void **state) {
    (void)state;
    static hostile h;
    hostile_open(&h);
    h.tensors[1].words = NULL; /* ids as floats */
    h.tensors[1].data = h.more;
    assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "items.ids");
    h.tensors[1] = h.tensors[2]; /* a table as words, with ids beside it put first */
    h.tensors[1].data = NULL;
    h.tensors[1].words = h.more_words;
    h.tensors[2] = (weir_model_tensor){.name = "items.ids", .rows = ITEMS, .cols = 2, .words = h.more_words};
    for (unsigned i = 0; i < ITEMS; i++)
        h.more_words[2 * i] = i;
    assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "users.own");
    hostile_close(&h);
}

static void r5_only_finite_numbers_come_out(void **state) {
    (void)state;
    static hostile h;
    hostile_open(&h);
    float *const tables[] = {h.m.user_own, h.m.item_own, h.m.sums, h.m.vectors, h.m.trends};
    static const float most[] = {1e12f, 1e12f, 1e12f, 1e15f, 1e12f};
    for (unsigned i = 0; i < 5; i++) {
        float *last = &tables[i][h.tensors[i + 2].rows * h.tensors[i + 2].cols - 1];
        const float kept = *last;
        *last = nextafterf(most[i], INFINITY);
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "too large");
        *last = -3e38f;
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, h.tensors[i + 2].name);
        *last = INFINITY;
        assert_err(weir_model_write(shop_path("infinite"), &h.opts), WEIR_EINVAL, NULL);
        *last = NAN;
        assert_err(weir_model_write(shop_path("infinite"), &h.opts), WEIR_EINVAL, NULL);
        *last = kept;
    }
    hostile_close(&h);
}

static void r5_ids_ascend(void **state) {
    (void)state;
    static hostile h;
    hostile_open(&h);
    weir_vertex_pair *const lists[] = {h.m.users, h.m.items};
    for (unsigned i = 0; i < 2; i++) {
        const weir_vertex_pair kept = lists[i][3];
        lists[i][3] = lists[i][2];
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "do not ascend");
        lists[i][3] = lists[i][1];
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "do not ascend");
        lists[i][3] = kept;
    }
    assert_ok(reopen(&h.opts, h.schema));
    hostile_close(&h);
}

/* --- descriptions ------------------------------------------------------------------------------------------------- */

#define RELATION(name, weight) "{\"name\": \"" name "\", \"weight\": " weight "}"

static const char *const members[] = {"\"family\": \"recommend\"",
                                      "\"width\": 5",
                                      "\"layers\": 2",
                                      "\"cosine\": true",
                                      "\"temperature\": 0.25",
                                      "\"trend_weight\": 0.5",
                                      "\"trend_half_life_us\": 1000",
                                      "\"half_life_us\": 0",
                                      "\"relations\": [" RELATION("bought", "1") ", " RELATION("viewed", "0.3") "]"};
#define MEMBERS (sizeof members / sizeof members[0])

/* One member replaced, or missing: NULL. */
static void description(char *text, size_t size, size_t which, const char *instead) {
    size_t at = 0;
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *member = i == which ? instead : members[i];
        if (member) at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "{", member);
    }
    snprintf(text + at, size - at, "}");
}

static void r5_descriptions_are_not_believed(void **state) {
    (void)state;
    static hostile h;
    static const struct {
        size_t which;
        const char *instead, *sentence;
    } wrong[] = {
        {0, "\"family\": \"graph\"", "family"},
        {0, "\"family\": 7", "family"},
        {1, "\"width\": 0", "width"},
        {1, "\"width\": 1025", "width"},
        {1, "\"width\": 4", "users.own"},
        {2, "\"layers\": 0", "layers"},
        {2, "\"layers\": 9", "layers"},
        {2, "\"layers\": 1.5", "layers"},
        {3, "\"cosine\": 1", "cosine"},
        {4, "\"temperature\": 0", "temperature"},
        {4, "\"temperature\": 1001", "temperature"},
        {4, "\"temperature\": \"0.5\"", "temperature"},
        {5, "\"trend_weight\": -0.5", "trends"},
        {5, "\"trend_weight\": 1e7", "trends"},
        {6, "\"trend_half_life_us\": -1", "trend_half_life_us"},
        {7, "\"half_life_us\": -1", "half_life_us"},
        {7, "\"half_life_us\": 9223372036854775808", "half_life_us"},
        {8, "\"relations\": []", "0 relations"},
        {8, "\"relations\": {}", "relations"},
        {8, "\"relations\": [7]", "name"},
        {8, "\"relations\": [{\"name\": \"bought\"}]", "weight"},
        {8, "\"relations\": [{\"weight\": 1}]", "name"},
        {8, "\"relations\": [" RELATION("bought", "0") "]", "bought"},
        {8, "\"relations\": [" RELATION("bought", "5e-324") "]", "bought"},
        {8, "\"relations\": [" RELATION("bought", "1.5e6") "]", "bought"},
        {8, "\"relations\": [" RELATION("bought", "-1") "]", "bought"},
    };
    char text[4096];
    hostile_open(&h);
    h.opts.architecture = text;
    description(text, sizeof text, MEMBERS, NULL);
    assert_ok(reopen(&h.opts, h.schema));
    for (size_t i = 0; i < MEMBERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(members[i] + 1, "\""), members[i] + 1);
        description(text, sizeof text, i, NULL);
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, name);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        description(text, sizeof text, wrong[i].which, wrong[i].instead);
        assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, wrong[i].sentence);
        assert_err(reopen(&h.opts, NULL), WEIR_EDATA, wrong[i].sentence);
    }
    char relations[2048];
    size_t at = (size_t)snprintf(relations, sizeof relations, "\"relations\": [");
    for (unsigned i = 0; i <= WEIR_RECOMMEND_RELATIONS_MAX; i++)
        at += (size_t)snprintf(relations + at, sizeof relations - at, "%s%s", i ? ", " : "", RELATION("bought", "1"));
    snprintf(relations + at, sizeof relations - at, "]");
    description(text, sizeof text, 8, relations);
    assert_err(reopen(&h.opts, h.schema), WEIR_EDATA, "17 relations");
    hostile_close(&h);
}

static void a_schema_that_means_something_else_is_refused(void **state) {
    (void)state;
    static hostile h;
    static const struct {
        const char *schema, *sentence;
    } wrong[] = {
        {SHOP_SCHEMA_WITH("", "viewed: {from: item, to: user}", SHOP_BUY_TEXT), "leads elsewhere"},
        {SHOP_SCHEMA_WITH("", "seen: {from: user, to: item}", SHOP_BUY_TEXT), "which the schema has not"},
        {SHOP_SCHEMA_WITH("", SHOP_VIEWED_TEXT, "kind: classify, label: bad, positive: yes"), "no task 'buy'"},
        {SHOP_SCHEMA_WITH("", SHOP_VIEWED_TEXT, "kind: recommend, relation: viewed, horizon: 1h"),
         "of another relation"},
        {SHOP_SCHEMA_WITH("", SHOP_VIEWED_TEXT, "kind: recommend, relation: sold, horizon: 1h"), "leads elsewhere"},
    };
    hostile_open(&h);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_schema *schema = shop_schema(wrong[i].schema);
        assert_err(reopen(&h.opts, schema), WEIR_EVERSION, wrong[i].sentence);
        weir_schema_free(schema);
    }
    h.opts.task = "bad";
    assert_err(reopen(&h.opts, h.schema), WEIR_EVERSION, "no task 'bad'");
    h.opts.task = "gone";
    assert_err(reopen(&h.opts, h.schema), WEIR_EVERSION, "no task 'gone'");
    assert_ok(reopen(&h.opts, NULL));
    hostile_close(&h);
}

static void only_what_recommends_is_of_it(void **state) {
    (void)state;
    static hostile h;
    const weir_model_opts opts = {.accept_unsigned = true};
    static const char *const texts[] = {"{\"family\": \"recommend\"}", "{\"family\": \"graph\"}", "{}",
                                        "{\"family\": [\"recommend\"]}"};
    hostile_open(&h);
    for (unsigned i = 0; i < 4; i++) {
        weir_model *model;
        char folder[4096];
        snprintf(folder, sizeof folder, "%s", shop_path("of"));
        h.opts.architecture = texts[i];
        assert_ok(weir_model_write(folder, &h.opts));
        assert_ok(weir_model_open(folder, &opts, &model));
        assert_true(weir_recommend_is_of(model) == (i == 0));
        weir_model_close(model);
    }
    hostile_close(&h);
}

WEIR_TESTS(WEIR_CASE(r5_what_went_in_comes_out), WEIR_CASE(r5_tables_of_another_size_are_refused),
           WEIR_CASE(r5_tables_of_another_kind_are_refused), WEIR_CASE(r5_only_finite_numbers_come_out),
           WEIR_CASE(r5_ids_ascend), WEIR_CASE(r5_descriptions_are_not_believed),
           WEIR_CASE(a_schema_that_means_something_else_is_refused), WEIR_CASE(only_what_recommends_is_of_it))

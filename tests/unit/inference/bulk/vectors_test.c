/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors_test.c - files of a recommender's vectors: each product of a user's and an item's is the score that a server
 * answers from the living graph.
 */
#include <math.h>

#include <weir/inference/bulk/bulk.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "recommend_model.h"

#define EVENTS     500u
#define STRANGER   (USERS + 2) /* a user of whom nothing is known */
#define NEW_ITEM   (ITEMS + 3) /* that came after the training */
#define FILE_BYTES (1u << 20)

typedef struct vector_row {
    uint64_t number;
    double cells[WIDTH + 1];
} vector_row;

/* Rows of a file of this type, in its order; their numbers are their keys. */
static size_t rows_of(const weir_bulk_opts *of, uint32_t type, const char *name, weir_bulk_stats *stats,
                      vector_row *rows) {
    static char *text;
    weir_bulk_opts opts = *of;
    size_t length, count = 0;
    char path[4096], *end;
    snprintf(path, sizeof path, "%s", shop_path(name));
    strncat(path, ".csv", sizeof path - strlen(path) - 1);
    opts.path = path;
    opts.type = type;
    assert_ok(weir_bulk_run(&opts, stats));
    assert_ok(weir_file_load(path, FILE_BYTES, &text, &length));
    for (char *at = strchr(text, '\n') + 1; *at; at = end + 1, count++) {
        assert_true(count < ITEMS_MAX);
        rows[count].number = strtoull(at, &end, 10);
        end = strchr(end + 1, ',');
        for (unsigned c = 0; c <= WIDTH; c++)
            rows[count].cells[c] = strtod(end + 1, &end);
        assert_int_equal(*end, '\n');
    }
    assert_int_equal(count, stats->rows);
    weir_free(text);
    return count;
}

static const vector_row *row_of(const vector_row *rows, size_t count, weir_vertex item) {
    for (size_t i = 0; i < count; i++)
        if (shop_vertex(SHOP_ITEM, rows[i].number) == item) return &rows[i];
    fail_msg("a recommended item has no row");
    return NULL;
}

static double product(const vector_row *a, const vector_row *b) {
    double sum = 0;
    for (unsigned c = 0; c <= WIDTH; c++)
        sum += a->cells[c] * b->cells[c];
    return sum;
}

/* What the server answers of a user is, item by item, what the rows say. */
static void same_scores(weir_recommender *server, const weir_recommend_model *model, const vector_row *user,
                        int64_t before_us, const vector_row *items, size_t item_count) {
    const weir_recommend_tables *t = weir_recommend_model_tables(model);
    weir_recommend_answer answer;
    assert_ok(weir_recommender_run(server, model, shop_vertex(SHOP_USER, user->number), before_us, ITEMS, &answer));
    assert_true(answer.count > 0);
    for (uint32_t i = 0; i < answer.count; i++) {
        const weir_vertex item = weir_vertex_of(t->item_ids[answer.best[i].item]);
        const double score = (double)answer.best[i].score;
        assert_true(fabs(product(user, row_of(items, item_count, item)) - score) <= 1e-5 * (1 + fabs(score)));
    }
    assert_true(answer.by_trend == (user->number == STRANGER));
}

static void b2_products_of_vectors_are_scores(void **state) {
    (void)state;
    const int64_t end_us = SHOP_START_US + 30 * SHOP_HOUR;
    for (unsigned cosine = 0; cosine < 2; cosine++) {
        static random_model random;
        static vector_row users[ITEMS_MAX], items[ITEMS_MAX];
        shop_world w;
        weir_bulk_stats stats;
        weir_recommender *server;
        weir_rng rng = weir_rng_stream(weir_test_seed(), 3, cosine);
        shop_open(&w, shop_schema_text, weir_test_seed());
        shop_put_all(&w, USERS, ITEMS);
        shop_put(&w, SHOP_USER, STRANGER, SHOP_START_US);
        shop_put(&w, SHOP_ITEM, NEW_ITEM, SHOP_START_US);
        for (uint64_t i = 0; i < EVENTS; i++)
            shop_edge(&w, (uint32_t)shop_below(&w, 2), shop_below(&w, USERS), shop_below(&w, ITEMS),
                      SHOP_START_US + 1 + (int64_t)shop_below(&w, 96) * SHOP_HOUR / 4);
        shop_edge(&w, SHOP_VIEWED, 1, NEW_ITEM, SHOP_START_US + SHOP_HOUR);
        random_model_make(&random, &rng, cosine);
        random.shape.task = SHOP_TASK_AGAIN; /* so that a server leaves out nothing */
        weir_snapshot *snapshot = shop_snapshot(&w, end_us);
        weir_recommend_model *model = model_of(&random, w.schema);
        assert_ok(weir_recommender_open(w.graph, &server));
        weir_bulk_opts opts = {.snapshot = snapshot, .recommender = model, .batch = 4, .threads = 2};
        const size_t item_count = rows_of(&opts, SHOP_ITEM, "items", &stats, items);
        assert_true(item_count == ITEMS && stats.unknown == 1);
        for (unsigned half = 0; half < 2; half++) {
            opts.at_once = half;
            opts.as_of_us = SHOP_START_US + 12 * SHOP_HOUR;
            const size_t user_count = rows_of(&opts, SHOP_USER, "users", &stats, users);
            assert_int_equal(user_count, USERS + 1);
            for (size_t u = 0; u < user_count; u++)
                same_scores(server, model, &users[u], half ? opts.as_of_us : end_us, items, item_count);
        }
        opts.scores = true;
        opts.path = "never.csv";
        assert_err(weir_bulk_run(&opts, &stats), WEIR_EUSAGE, "recommends, and scores nothing");
        weir_recommender_close(server);
        weir_recommend_model_drop(model);
        weir_snapshot_close(snapshot);
        shop_close(&w);
    }
}

typedef struct maker_attempt {
    const weir_recommend_model *model;
    const weir_snapshot *snapshot;
} maker_attempt;

/* Over a snapshot: a living graph keeps what it has read. */
static weir_err attempt(void *context) {
    const maker_attempt *a = context;
    const weir_snapshot_vertices *users = weir_snapshot_vertices_of(a->snapshot, SHOP_USER);
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(a->snapshot, SHOP_ITEM);
    const weir_recommend_names names = {users->ids, items->ids, users->count, items->count};
    weir_recommend_maker *maker = NULL;
    weir_sample_source *source = NULL;
    float vector[WIDTH + 1];
    weir_err err = weir_sample_over_snapshot(a->snapshot, &source);
    if (!err) err = weir_recommend_maker_open(a->model, weir_snapshot_schema(a->snapshot), source, &names, &maker);
    if (!err) err = weir_recommend_maker_run(maker, 1, SHOP_START_US + SHOP_HOUR, vector);
    weir_recommend_maker_close(maker);
    weir_sample_source_close(source);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static random_model random;
    shop_world w;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    shop_open(&w, shop_schema_text, weir_test_seed());
    shop_put_all(&w, USERS, ITEMS);
    shop_edge(&w, SHOP_BOUGHT, 1, 2, SHOP_START_US + 1);
    random_model_make(&random, &rng, true);
    weir_snapshot *snapshot = shop_snapshot(&w, SHOP_START_US + SHOP_HOUR);
    weir_recommend_model *model = model_of(&random, w.schema);
    maker_attempt a = {model, snapshot};
    weir_test_every_allocation(attempt, &a);
    weir_recommend_model_drop(model);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

WEIR_TESTS(WEIR_CASE(b2_products_of_vectors_are_scores), WEIR_CASE(every_allocation_may_fail))

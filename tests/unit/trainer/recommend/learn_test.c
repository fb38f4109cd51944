/* SPDX-License-Identifier: Apache-2.0 */
/* learn_test.c - a planted taste, what must not change what is learnt (threads, and what comes later), and errors. */
#include <math.h>

#include <weir/store/base/alloc.h>

#include "recommend_plant.h"

#define NO_OTHERS "trains with the threads that other cases train with"

/* --- planted taste ------------------------------------------------------------------------------------------------ */

static void a_planted_taste_is_learnt(void **state) {
    (void)state;
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_snapshot *snapshot = plant_make(&w, &p);
    for (unsigned kind = 0; kind < 4; kind++) {
        weir_recommend_opts o = plant_opts(snapshot);
        said heard = {.count = 0};
        weir_recommended *learnt;
        o.loss = kind == 3 ? WEIR_RECOMMEND_PRODUCTS : kind == 2 ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX;
        o.uniform = kind % 2;
        o.on_epoch = hear;
        o.context = &heard;
        assert_ok(weir_recommend_learn(&o, &learnt));
        const weir_recommended_view v = weir_recommended_look(learnt);
        assert_true(heard.count == EPOCHS && heard.epochs[v.best_epoch - 1].best);
        assert_true(heard.epochs[EPOCHS - 1].loss < heard.epochs[0].loss);
        assert_true(v.test.users > 20 && v.validation.users > 20);
        assert_true(v.test.from_us == plant_end_us - 2 * SHOP_HOUR && v.test.to_us == plant_end_us);
        if (!(v.test.recall > v.test.trend_recall + 0.2))
            fail_msg("recall is %.3f by the model and %.3f by popularity", v.test.recall, v.test.trend_recall);
        assert_true(v.test.ndcg > v.test.trend_ndcg && v.test.low < v.test.recall && v.test.recall < v.test.high);
        weir_recommended_free(learnt);
    }
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* --- the same bits ------------------------------------------------------------------------------------------------ */

static void assert_same_tables(const weir_recommended *one, const weir_recommended *other) {
    const weir_recommended_view a = weir_recommended_look(one), b = weir_recommended_look(other);
    const size_t row = a.shape.width * sizeof(float);
    assert_true(a.tables.user_count == b.tables.user_count && a.tables.item_count == b.tables.item_count);
    assert_memory_equal(a.tables.user_ids, b.tables.user_ids, a.tables.user_count * sizeof *a.tables.user_ids);
    assert_memory_equal(a.tables.item_ids, b.tables.item_ids, a.tables.item_count * sizeof *a.tables.item_ids);
    assert_memory_equal(a.tables.user_own, b.tables.user_own, a.tables.user_count * row);
    assert_memory_equal(a.tables.item_own, b.tables.item_own, a.tables.item_count * row);
    assert_memory_equal(a.tables.item_sums, b.tables.item_sums, a.tables.item_count * row);
    assert_memory_equal(a.tables.items, b.tables.items, a.tables.item_count * row);
    assert_memory_equal(a.tables.trends, b.tables.trends, a.tables.item_count * sizeof(float));
    assert_true(a.best_epoch == b.best_epoch && a.trend_half_life_us == b.trend_half_life_us);
    assert_true(a.test.recall == b.test.recall && a.test.ndcg == b.test.ndcg);
    assert_true(a.shape.trend_weight == b.shape.trend_weight);
}

/* The first epoch has all of the rate, the last one little, and what is learnt is as good. */
static void a_rate_falls_from_epoch_to_epoch(void **state) {
    (void)state;
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_snapshot *snapshot = plant_make(&w, &p);
    said heard[2] = {{.count = 0}, {.count = 0}};
    for (unsigned falls = 0; falls < 2; falls++) {
        weir_recommend_opts o = plant_opts(snapshot);
        weir_recommended *learnt;
        o.falls = falls;
        o.on_epoch = hear;
        o.context = &heard[falls];
        assert_ok(weir_recommend_learn(&o, &learnt));
        const weir_recommended_view v = weir_recommended_look(learnt);
        assert_true(v.test.recall > v.test.trend_recall + 0.2);
        weir_recommended_free(learnt);
    }
    assert_true(heard[0].epochs[0].loss <= heard[1].epochs[0].loss &&
                heard[0].epochs[0].loss >= heard[1].epochs[0].loss);
    assert_true(heard[0].epochs[EPOCHS - 1].loss < heard[1].epochs[EPOCHS - 1].loss); /* which went less far */
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

static void l2_any_number_of_threads_learns_the_same(void **state) {
    (void)state;
    static const uint32_t threads[] = {1, 2, 5};
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_snapshot *snapshot = plant_make(&w, &p);
    for (weir_recommend_loss loss = 0; loss <= WEIR_RECOMMEND_BPR; loss++) {
        weir_recommended *learnt[3];
        weir_recommend_opts o = plant_opts(snapshot);
        o.loss = loss;
        o.epochs = 3;
        for (unsigned i = 0; i < 3; i++) {
            o.threads = threads[i];
            assert_ok(weir_recommend_learn(&o, &learnt[i]));
        }
        assert_same_tables(learnt[0], learnt[1]);
        assert_same_tables(learnt[0], learnt[2]);
        for (unsigned i = 0; i < 3; i++)
            weir_recommended_free(learnt[i]);
    }
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* Learns the world and the one that is another from a time on. */
static void learn_both(int64_t other_from_us, weir_recommend_loss loss, bool uniform, said heard[2],
                       weir_recommended *learnt[2]) {
    const uint64_t seed = weir_test_seed();
    for (unsigned i = 0; i < 2; i++) {
        const plant p = {.seed = seed, .other_from_us = i ? other_from_us : 0};
        shop_world w;
        weir_snapshot *snapshot = plant_make(&w, &p);
        weir_recommend_opts o = plant_opts(snapshot);
        o.loss = loss;
        o.uniform = uniform;
        o.on_epoch = hear;
        o.context = &heard[i];
        heard[i].count = 0;
        assert_ok(weir_recommend_learn(&o, &learnt[i]));
        weir_snapshot_close(snapshot); /* what was learnt is looked at no further than its figures */
        shop_close(&w);
    }
    for (unsigned i = 0; i < EPOCHS; i++)
        assert_memory_equal(&heard[0].epochs[i].loss, &heard[1].epochs[i].loss, sizeof heard[0].epochs[i].loss);
}

static void l1_nothing_is_learnt_from_the_validation(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    for (unsigned kind = 0; kind < 4; kind++) {
        said heard[2];
        weir_recommended *learnt[2];
        learn_both(plant_end_us - 4 * SHOP_HOUR, kind / 2 ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX, kind % 2,
                   heard, learnt);
        const weir_recommended_view a = weir_recommended_look(learnt[0]), b = weir_recommended_look(learnt[1]);
        assert_true(a.validation.users != b.validation.users || a.validation.recall != b.validation.recall);
        weir_recommended_free(learnt[0]);
        weir_recommended_free(learnt[1]);
    }
}

static void l1_nothing_is_chosen_by_the_test(void **state) {
    (void)state;
    weir_test_skip_under("thread", NO_OTHERS);
    for (unsigned kind = 0; kind < 2; kind++) {
        said heard[2];
        weir_recommended *learnt[2];
        learn_both(plant_end_us - 2 * SHOP_HOUR, WEIR_RECOMMEND_SOFTMAX, kind, heard, learnt);
        const weir_recommended_view a = weir_recommended_look(learnt[0]), b = weir_recommended_look(learnt[1]);
        for (unsigned i = 0; i < EPOCHS; i++) {
            const weir_recommend_epoch *x = &heard[0].epochs[i], *y = &heard[1].epochs[i];
            assert_true(x->recall == y->recall && x->ndcg == y->ndcg && x->best == y->best);
        }
        assert_true(a.best_epoch == b.best_epoch && a.trend_half_life_us == b.trend_half_life_us);
        assert_true(a.shape.trend_weight == b.shape.trend_weight);
        assert_true(a.validation.users == b.validation.users && a.validation.items == b.validation.items);
        assert_true(a.validation.recall == b.validation.recall && a.validation.ndcg == b.validation.ndcg);
        assert_true(a.validation.trend_recall == b.validation.trend_recall);
        assert_true(a.test.users != b.test.users || a.test.recall != b.test.recall);
        weir_recommended_free(learnt[0]);
        weir_recommended_free(learnt[1]);
    }
}

typedef struct heard_again {
    double losses[EPOCHS];
    uint32_t count;
} heard_again;

static weir_err hear_again(void *context, const weir_recommend_epoch *epoch) {
    heard_again *h = context;
    assert_true(epoch->again || h->count == 0); /* those of the first learning come before */
    if (epoch->again) h->losses[h->count++] = epoch->loss;
    return WEIR_OK;
}

/* What is learnt again sees the validation, and nothing of the test; what is said of the validation stays as it was. */
static void l1_learnt_again_with_the_validation_alone(void **state) {
    const uint64_t seed = weir_test_seed();
    const int64_t from_us[] = {0, plant_end_us - 2 * SHOP_HOUR, plant_end_us - 4 * SHOP_HOUR};
    heard_again heard[3] = {{.count = 0}};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const plant p = {.seed = seed, .other_from_us = from_us[i]};
        shop_world w;
        weir_recommended *once, *again;
        weir_snapshot *snapshot = plant_make(&w, &p);
        weir_recommend_opts o = plant_opts(snapshot);
        assert_ok(weir_recommend_learn(&o, &once));
        o.again = true;
        o.on_epoch = hear_again;
        o.context = &heard[i];
        assert_ok(weir_recommend_learn(&o, &again));
        const weir_recommended_view a = weir_recommended_look(once), b = weir_recommended_look(again);
        assert_int_equal(heard[i].count, a.best_epoch);
        assert_int_equal(a.best_epoch, b.best_epoch);
        assert_true(a.validation.recall == b.validation.recall && a.shape.trend_weight == b.shape.trend_weight);
        assert_true(a.test.users == b.test.users && (a.test.recall != b.test.recall || a.test.ndcg != b.test.ndcg));
        if (i == 0) assert_true(b.test.recall > b.test.trend_recall + 0.2); /* what others do has no plan */
        weir_recommended_free(once);
        weir_recommended_free(again);
        weir_snapshot_close(snapshot);
        shop_close(&w);
    }
    assert_int_equal(heard[0].count, heard[1].count);
    assert_memory_equal(heard[0].losses, heard[1].losses, heard[0].count * sizeof heard[0].losses[0]);
    assert_true(heard[0].losses[0] != heard[2].losses[0]);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

/* A few users and items, and edges in an hour of their own: before all, in the validation or in the test. */
static weir_snapshot *small_make_of(shop_world *w, unsigned before, unsigned in_test, int64_t history_us) {
    shop_open(w, shop_schema_text, weir_test_seed());
    shop_put_all(w, 8, 12);
    for (unsigned i = 0; i < before; i++)
        shop_edge(w, SHOP_BOUGHT, i % 8, i / 8, SHOP_START_US + 1 + (int64_t)i * SHOP_SECOND);
    for (unsigned i = 0; i < in_test; i++)
        shop_edge(w, SHOP_BOUGHT, i % 8, 6 + i / 8, SHOP_START_US + 3 * SHOP_HOUR + (int64_t)i * SHOP_SECOND);
    return shop_snapshot_of(w, SHOP_START_US + 4 * SHOP_HOUR, history_us);
}

static weir_snapshot *small_make(shop_world *w, unsigned before, unsigned in_test) {
    return small_make_of(w, before, in_test, 0);
}

static weir_recommend_opts small_opts(const weir_snapshot *snapshot) {
    weir_recommend_opts o = weir_recommend_defaults(snapshot, SHOP_TASK_BUY);
    o.width = 4;
    o.epochs = 1;
    o.negatives = 8;
    o.batch = 16;
    o.threads = 1;
    return o;
}

static weir_err learn_once(const weir_recommend_opts *o) {
    weir_recommended *learnt;
    weir_err err = weir_recommend_learn(o, &learnt);
    assert_true(!learnt == (err != WEIR_OK));
    weir_recommended_free(learnt);
    return err;
}

static weir_err stop(void *context, const weir_recommend_epoch *epoch) {
    (void)context;
    return WEIR_ERR(WEIR_ECANCELLED, "after epoch %u", epoch->number);
}

static void too_little_is_said(void **state) {
    (void)state;
    shop_world w;
    weir_snapshot *snapshot = small_make(&w, 19, 8);
    weir_recommend_opts o = small_opts(snapshot);
    assert_err(learn_once(&o), WEIR_EDATA, "there are 19 pairs");
    weir_snapshot_close(snapshot);
    shop_close(&w);

    snapshot = small_make(&w, 40, 0);
    o = small_opts(snapshot);
    assert_err(learn_once(&o), WEIR_EDATA, "nobody met anything new in the last 1 horizons");
    weir_snapshot_close(snapshot);
    shop_close(&w);

    snapshot = small_make_of(&w, 40, 8, 3 * SHOP_HOUR / 2); /* which begins within the validation */
    o = small_opts(snapshot);
    assert_err(learn_once(&o), WEIR_EDATA, "shorter than two times 1 horizons");
    weir_snapshot_close(snapshot);
    shop_close(&w);

    snapshot = small_make(&w, 40, 8); /* nobody in the validation is no error */
    o = small_opts(snapshot);
    assert_ok(learn_once(&o));
    o.horizons = UINT32_MAX;
    assert_err(learn_once(&o), WEIR_EDATA, "shorter than two times");
    o.horizons = 1;
    o.on_epoch = stop;
    assert_err(learn_once(&o), WEIR_ECANCELLED, "after epoch 1");
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

static void options_out_of_range_are_refused(void **state) {
    (void)state;
    shop_world w;
    weir_snapshot *snapshot = small_make(&w, 40, 8);
    const weir_recommend_opts good = small_opts(snapshot);
    weir_recommend_opts o = good;
    assert_ok(learn_once(&o));
#define REFUSED(member, value)                                             \
    do {                                                                   \
        o = good;                                                          \
        o.member = (value);                                                \
        assert_err(learn_once(&o), WEIR_EINVAL, "option of the training"); \
    } while (0)
    REFUSED(width, 0);
    REFUSED(width, WEIR_RECOMMEND_WIDTH_MAX + 1);
    REFUSED(layers, 0);
    REFUSED(layers, WEIR_RECOMMEND_LAYERS_MAX + 1);
    REFUSED(epochs, 0);
    REFUSED(epochs, UINT32_MAX);
    REFUSED(batch, 0);
    REFUSED(batch, (1u << 20) + 1);
    REFUSED(negatives, 0);
    REFUSED(negatives, (1u << 20) + 1);
    REFUSED(threads, 0);
    REFUSED(threads, WEIR_RECOMMEND_THREADS_MAX + 1);
    REFUSED(horizons, 0);
    REFUSED(rate, 0);
    REFUSED(rate, INFINITY);
    REFUSED(rate, NAN);
    REFUSED(decay, -1);
    REFUSED(decay, NAN);
    REFUSED(temperature, 1e-4);
    REFUSED(temperature, NAN);
    REFUSED(loss, (weir_recommend_loss)(WEIR_RECOMMEND_BPR + 1));
    REFUSED(task, SHOP_TASK_BAD);
    REFUSED(task, 3);
    REFUSED(rule.half_life_us, -1);
    REFUSED(rule.relation_count, 0);
    REFUSED(rule.relation_count, WEIR_RECOMMEND_RELATIONS_MAX + 1);
    REFUSED(rule.relations[0].relation, SHOP_VIEWED);
    REFUSED(rule.relations[1].relation, SHOP_SOLD);
    REFUSED(rule.relations[1].relation, 3);
    REFUSED(rule.relations[1].weight, 0);
    REFUSED(rule.relations[1].weight, 1e-7);
    REFUSED(rule.relations[1].weight, INFINITY);
#undef REFUSED
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* Writes a number of 8 bytes into an array of the snapshot, as somebody does who also corrects the sums of its files;
 * returns what it was. */
static int64_t spoil(const shop_world *w, const char *array, uint64_t index, int64_t value) {
    char path[8192];
    int64_t before;
    snprintf(path, sizeof path, "%s/relations/bought/%s.npy", w->snapshot, array);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 128 + 8 * (long)index, SEEK_SET), 0);
    assert_int_equal(fread(&before, sizeof before, 1, file), 1);
    assert_int_equal(fseek(file, 128 + 8 * (long)index, SEEK_SET), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    return before;
}

static void a_snapshot_is_not_believed(void **state) {
    (void)state;
    static const struct {
        const char *array;
        uint64_t index;
        int64_t value;
    } wrong[] = {
        {"out/neighbors", 0, 12},           {"out/neighbors", 0, -1},    {"out/neighbors", 7, (int64_t)1 << 40},
        {"out/times", 5, INT64_MAX},        {"out/indptr", 3, -5},       {"out/indptr", 3, (int64_t)1 << 40},
        {"in/indptr", 3, (int64_t)1 << 40}, {"in/indptr", 2, INT64_MIN},
    };
    shop_world w;
    weir_snapshot *snapshot = small_make(&w, 40, 8);
    weir_recommend_opts o = small_opts(snapshot);
    weir_recommended *learnt;
    assert_ok(weir_recommend_learn(&o, &learnt));
    weir_recommend_model *model = finished(learnt, weir_snapshot_schema(snapshot));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_recommend_metrics metrics;
        const int64_t kept = spoil(&w, wrong[i].array, wrong[i].index, wrong[i].value);
        assert_err(learn_once(&o), WEIR_ECORRUPT, NULL);
        assert_err(weir_recommend_judge(&o, model, &metrics), WEIR_ECORRUPT, NULL);
        assert_null(metrics.recalls);
        spoil(&w, wrong[i].array, wrong[i].index, kept);
    }
    assert_ok(learn_once(&o));
    weir_recommend_model_drop(model);
    weir_recommended_free(learnt);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

static weir_err learn_sweep(void *context) {
    weir_recommended *learnt;
    weir_err err = weir_recommend_learn(context, &learnt);
    weir_recommended_free(learnt);
    return err;
}

typedef struct judge_sweep {
    weir_recommend_opts opts;
    weir_recommend_model *model;
} judge_sweep;

static weir_err judge_once(void *context) {
    const judge_sweep *s = context;
    weir_recommend_metrics m;
    weir_err err = weir_recommend_judge(&s->opts, s->model, &m);
    weir_free(m.recalls);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    shop_world w;
    weir_recommended *learnt;
    weir_snapshot *snapshot = small_make(&w, 24, 8);
    judge_sweep s = {.opts = small_opts(snapshot)};
    s.opts.batch = 300; /* two parts, and two threads */
    s.opts.threads = 2;
    weir_test_every_allocation(learn_sweep, &s.opts);
    s.opts.again = true;
    weir_test_every_allocation(learn_sweep, &s.opts);
    s.opts.again = false;
    s.opts.loss = WEIR_RECOMMEND_BPR;
    s.opts.uniform = true;
    weir_test_every_allocation(learn_sweep, &s.opts);
    assert_ok(weir_recommend_learn(&s.opts, &learnt));
    s.model = finished(learnt, weir_snapshot_schema(snapshot));
    weir_test_every_allocation(judge_once, &s);
    weir_recommend_model_drop(s.model);
    weir_recommended_free(learnt);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

WEIR_TESTS(WEIR_CASE(a_planted_taste_is_learnt), WEIR_CASE(a_rate_falls_from_epoch_to_epoch),
           WEIR_CASE(l2_any_number_of_threads_learns_the_same), WEIR_CASE(l1_nothing_is_learnt_from_the_validation),
           WEIR_CASE(l1_nothing_is_chosen_by_the_test), WEIR_CASE(l1_learnt_again_with_the_validation_alone),
           WEIR_CASE(too_little_is_said), WEIR_CASE(options_out_of_range_are_refused),
           WEIR_CASE(a_snapshot_is_not_believed), WEIR_CASE(every_allocation_may_fail))

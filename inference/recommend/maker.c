/* SPDX-License-Identifier: Apache-2.0 */
/* maker.c - vectors of users and items, as another search than this one wants them: all of a score is their product. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "model_private.h"

struct weir_recommend_maker {
    const weir_recommend_model *model;
    weir_recommend_names names;
    weir_recommend_reader *reader;
    uint64_t *items;
    double *weights, *sums;
};

weir_err weir_recommend_maker_open(const weir_recommend_model *model, const weir_schema *schema,
                                   weir_sample_source *source, const weir_recommend_names *names,
                                   weir_recommend_maker **makerp) {
    const weir_recommend_shape *shape = weir_recommend_model_shape(model);
    const size_t met_max = (size_t)shape->rule.relation_count * WEIR_RECOMMEND_WINDOW;
    *makerp = NULL;
    WEIR_ASSERT(!names == source->wide);
    weir_recommend_maker *m = weir_calloc(1, sizeof *m);
    if (!m) return WEIR_NOMEM("for vectors of users");
    m->model = model;
    if (names) m->names = *names;
    m->items = weir_calloc(met_max, sizeof *m->items);
    m->weights = weir_calloc(met_max, sizeof *m->weights);
    m->sums = weir_calloc(shape->width, sizeof *m->sums);
    weir_err err = m->items && m->weights && m->sums ? WEIR_OK : WEIR_NOMEM("for vectors of users");
    if (!err) err = weir_recommend_reader_open(&shape->rule, schema, source, &m->reader);
    if (err) {
        weir_recommend_maker_close(m);
        return err;
    }
    *makerp = m;
    return WEIR_OK;
}

void weir_recommend_maker_close(weir_recommend_maker *m) {
    if (!m) return;
    weir_recommend_reader_close(m->reader);
    weir_free(m->items);
    weir_free(m->weights);
    weir_free(m->sums);
    weir_free(m);
}

/* What the model calls what the source calls so. */
static weir_err maker_id(const weir_vertex_pair *ids, uint64_t count, weir_vertex called, weir_vertex *idp) {
    *idp = called;
    if (!ids) return WEIR_OK;
    if (called >= count) /* lists on disk lead anywhere */
        return WEIR_ERR(WEIR_ECORRUPT, "an edge leads to vertex %llu, of which there are %llu; verify the data",
                        (unsigned long long)called, (unsigned long long)count);
    *idp = weir_vertex_of(ids[(uint64_t)called]);
    return WEIR_OK;
}

weir_err weir_recommend_maker_run(weir_recommend_maker *m, weir_vertex user, int64_t before_us, float *vector) {
    const weir_recommend_shape *shape = weir_recommend_model_shape(m->model);
    const weir_recommend_tables *t = weir_recommend_model_tables(m->model);
    const weir_recommend_met *met;
    weir_recommend_user of = {.items = m->items, .weights = m->weights};
    weir_vertex id;
    uint32_t met_count;
    uint64_t place;
    weir_err err = weir_recommend_reader_read(m->reader, user, before_us, &met, &met_count);
    for (uint32_t i = 0; !err && i < met_count; i++) {
        err = maker_id(m->names.items, m->names.item_count, met[i].item, &id);
        if (err || !weir_recommend_find(t->item_ids, t->item_count, id, &place)) continue;
        m->items[of.count] = place;
        m->weights[of.count++] = met[i].weight;
    }
    if (!err) err = maker_id(m->names.users, m->names.user_count, user, &id);
    if (err) return err;
    if (weir_recommend_find(t->user_ids, t->user_count, id, &place)) of.own = t->user_own + place * shape->width;
    const bool known = weir_recommend_query(shape, t, &of, m->sums, vector); // RECOMMEND-R1
    vector[shape->width] = known ? (float)shape->trend_weight : 1;
    return WEIR_OK;
}

bool weir_recommend_item_vector(const weir_recommend_model *model, weir_vertex item, float *vector) {
    const weir_recommend_shape *shape = weir_recommend_model_shape(model);
    const weir_recommend_tables *t = weir_recommend_model_tables(model);
    uint64_t place;
    if (!weir_recommend_find(t->item_ids, t->item_count, item, &place)) return false;
    memcpy(vector, t->items + place * shape->width, shape->width * sizeof *vector);
    vector[shape->width] = t->trends[place];
    return true;
}

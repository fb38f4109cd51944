/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - what a user has met, by the newest edges that a source tells of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/recommend/recommend.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define READER_HALVINGS_MAX 30.0 /* an edge that counts nothing would make an item that nobody has met */

struct weir_recommend_reader {
    const weir_recommend_rule *rule;
    weir_sample_source *source;
    weir_recommend_met *met;
    uint16_t user_type;
};

weir_err weir_recommend_reader_open(const weir_recommend_rule *rule, const weir_schema *schema,
                                    weir_sample_source *source, weir_recommend_reader **readerp) {
    *readerp = NULL;
    WEIR_ASSERT(rule->relation_count > 0 && rule->relation_count <= WEIR_RECOMMEND_RELATIONS_MAX);
    weir_recommend_reader *r = weir_calloc(1, sizeof *r);
    if (!r) return WEIR_NOMEM("to read what a user has met");
    r->rule = rule;
    r->source = source;
    r->user_type = (uint16_t)weir_schema_relation_at(schema, rule->relations[0].relation)->from;
    r->met = weir_calloc((size_t)rule->relation_count * WEIR_RECOMMEND_WINDOW, sizeof *r->met);
    if (!r->met) {
        weir_recommend_reader_close(r);
        return WEIR_NOMEM("to read what a user has met");
    }
    *readerp = r;
    return WEIR_OK;
}

void weir_recommend_reader_close(weir_recommend_reader *reader) {
    if (!reader) return;
    weir_free(reader->met);
    weir_free(reader);
}

/* The sum of equal items' weights must have one order, in every source: that of the weights themselves. */
static int reader_by_item(const void *a, const void *b) {
    const weir_recommend_met *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static weir_vertex reader_neighbor(const weir_recommend_reader *r, const weir_sample_window *window, uint32_t i) {
    const uint8_t *at = window->neighbors + (size_t)i * window->stride;
    weir_vertex wide;
    uint64_t narrow;
    if (!r->source->wide) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

/* Adds the edges of one relation. */
static weir_err reader_add(weir_recommend_reader *r, uint32_t which, const weir_sample_window *window,
                           int64_t before_us, uint32_t *countp) {
    const weir_recommend_relation *relation = &r->rule->relations[which];
    for (uint32_t i = 0; i < window->count; i++) {
        const int64_t time_us = weir_sample_window_time(window, i);
        if (time_us >= before_us) // RECOMMEND-R2; lists on disk may be out of order
            return WEIR_ERR(WEIR_ECORRUPT, "an edge of relation %u is out of the order of times; verify the data",
                            relation->relation);
        double weight = relation->weight, age_us = (double)before_us - (double)time_us;
        if (r->rule->half_life_us) weight *= exp2(-fmin(age_us / (double)r->rule->half_life_us, READER_HALVINGS_MAX));
        r->met[(*countp)++] = (weir_recommend_met){reader_neighbor(r, window, i), weight, which == 0};
    }
    return WEIR_OK;
}

weir_err weir_recommend_reader_read(weir_recommend_reader *r, weir_vertex user, int64_t before_us,
                                    const weir_recommend_met **metp, uint32_t *countp) {
    const uint64_t index = (uint64_t)user;
    uint32_t count = 0, kept = 0;
    *metp = r->met;
    *countp = 0;
    for (uint32_t i = 0; i < r->rule->relation_count; i++) {
        weir_sample_window window;
        const weir_sample_ask ask = {.parents = r->source->wide ? NULL : &index,
                                     .parent_ids = r->source->wide ? &user : NULL,
                                     .before_us = &before_us,
                                     .count = 1,
                                     .limit = WEIR_RECOMMEND_WINDOW,
                                     .relation = (uint16_t)r->rule->relations[i].relation,
                                     .type = r->user_type,
                                     .direction = WEIR_OUT};
        weir_err err = r->source->windows(r->source, &ask, &window);
        if (err) return err;
        WEIR_ASSERT(window.count <= WEIR_RECOMMEND_WINDOW); // RECOMMEND-R2
        err = reader_add(r, i, &window, before_us, &count);
        if (err) return err;
    }
    qsort(r->met, count, sizeof *r->met, reader_by_item);
    for (uint32_t i = 0; i < count; i++) {
        weir_recommend_met *last = kept ? &r->met[kept - 1] : NULL;
        if (last && last->item == r->met[i].item) {
            last->weight += r->met[i].weight;
            last->by_task |= r->met[i].by_task;
        } else {
            r->met[kept++] = r->met[i];
        }
    }
    *countp = kept;
    return WEIR_OK;
}

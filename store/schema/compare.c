/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - two schemas: every difference, and whether stored data survives it.
 *
 * Stored rows hold numbers: of vertex types, relations, labels, sources, of features in their owner, of listed values.
 * So nothing that has a number may go or move (SCHEMA-H4), and what a number says must stay what it was. What is only
 * looked at later, such as tasks, scaling or expiry, may change.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "schema_private.h"

#define SENTENCE_BYTES (WEIR_ERR_SENTENCE_MAX / 2) /* leaves room for what to do */

typedef struct comparer {
    const weir_schema *stored, *offered;
    weir_schema_difference visit;
    void *context;
    uint64_t said;
} comparer;

static weir_err compare_say(comparer *c, bool breaks, const char *format, ...) __attribute__((format(printf, 3, 4)));

static weir_err compare_say(comparer *c, bool breaks, const char *format, ...) {
    char sentence[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    c->said++;
    return c->visit(c->context, breaks, sentence);
}

/* --- numbering ----------------------------------------------------------------------------------------------- */

/* Anything whose array elements begin with the pointer to their name: sections, features, listed values. */
typedef struct compare_list {
    const void *elements;
    size_t stride;
    uint32_t count;
} compare_list;

static const char *compare_listed_name(const compare_list *list, uint32_t index) {
    WEIR_ASSERT(index < list->count);
    return *(const char *const *)((const char *)list->elements + index * list->stride);
}

static uint32_t compare_find_listed(const compare_list *list, uint32_t guess, const char *name) {
    if (guess < list->count && strcmp(compare_listed_name(list, guess), name) == 0) return guess;
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(compare_listed_name(list, i), name) == 0) return i;
    return WEIR_SCHEMA_NONE;
}

/* of: "" or " of relation 'paid'". */
static weir_err compare_listings(comparer *c, bool breaks, const char *noun, const char *of, const compare_list *stored,
                                 const compare_list *offered) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < stored->count && !err; i++) {
        const char *name = compare_listed_name(stored, i);
        uint32_t now = compare_find_listed(offered, i, name);
        if (now == WEIR_SCHEMA_NONE) {
            err = compare_say(c, breaks, "%s '%s'%s is gone", noun, name, of);
        } else if (now != i) {
            err = compare_say(c, breaks, "%s '%s'%s was number %" PRIu32 " and is number %" PRIu32, noun, name, of,
                              i + 1, now + 1);
        }
    }
    for (uint32_t i = 0; i < offered->count && !err; i++) {
        const char *name = compare_listed_name(offered, i);
        if (compare_find_listed(stored, i, name) == WEIR_SCHEMA_NONE)
            err = compare_say(c, false, "%s '%s'%s is new", noun, name, of);
    }
    return err;
}

static weir_err compare_values(comparer *c, const char *of, const weir_schema_values *stored,
                               const weir_schema_values *offered) {
    return compare_listings(c, true, "value", of, &(compare_list){stored->texts, sizeof *stored->texts, stored->count},
                            &(compare_list){offered->texts, sizeof *offered->texts, offered->count});
}

/* --- features ------------------------------------------------------------------------------------------------ */

static weir_err compare_feature(comparer *c, const char *of, const weir_schema_feature *stored,
                                const weir_schema_feature *offered) {
    if (stored->kind != offered->kind)
        return compare_say(c, true, "feature '%s'%s was a %s and is a %s", stored->name, of,
                           weir_schema_kind_words[stored->kind], weir_schema_kind_words[offered->kind]);
    if ((stored->buckets == 0) != (offered->buckets == 0))
        return compare_say(c, true, "feature '%s'%s was %s and is %s", stored->name, of,
                           stored->buckets ? "hashed" : "looked up", offered->buckets ? "hashed" : "looked up");
    if (stored->buckets != offered->buckets)
        return compare_say(c, true, "feature '%s'%s had %" PRIu32 " buckets and has %" PRIu32, stored->name, of,
                           stored->buckets, offered->buckets);
    if (stored->normalise != offered->normalise)
        return compare_say(c, false, "feature '%s'%s was normalised by '%s' and is by '%s'", stored->name, of,
                           weir_schema_normalise_words[stored->normalise],
                           weir_schema_normalise_words[offered->normalise]);
    char of_feature[WEIR_SCHEMA_WHAT_MAX];
    snprintf(of_feature, sizeof of_feature, " of feature '%s'%s", stored->name, of);
    return compare_values(c, of_feature, &stored->values, &offered->values);
}

static weir_err compare_features(comparer *c, const char *of, const weir_schema_feature *stored, uint32_t stored_count,
                                 const weir_schema_feature *offered, uint32_t offered_count) {
    weir_err err = compare_listings(c, true, "feature", of, &(compare_list){stored, sizeof *stored, stored_count},
                                    &(compare_list){offered, sizeof *offered, offered_count});
    for (uint32_t i = 0; i < stored_count && !err; i++) {
        uint32_t now = weir_schema_feature_find(offered, offered_count, stored[i].name);
        if (now != WEIR_SCHEMA_NONE) err = compare_feature(c, of, &stored[i], &offered[now]);
    }
    return err;
}

/* --- one definition of each section, the same name in both --------------------------------------------------- */

/* By name: a renumbering is said elsewhere, once. */
static weir_err compare_word(comparer *c, const char *what, const char *key, const char *stored, const char *offered) {
    return strcmp(stored, offered) == 0
               ? WEIR_OK
               : compare_say(c, true, "'%s' of %s was '%s' and is '%s'", key, what, stored, offered);
}

static weir_err compare_vertex(comparer *c, const char *what, uint32_t stored_id, uint32_t offered_id) {
    const weir_schema_vertex *stored = weir_schema_vertex_at(c->stored, stored_id);
    const weir_schema_vertex *offered = weir_schema_vertex_at(c->offered, offered_id);
    char of[WEIR_SCHEMA_WHAT_MAX];
    snprintf(of, sizeof of, " of %.200s", what);
    weir_err err =
        compare_word(c, what, "key", weir_schema_key_words[stored->key], weir_schema_key_words[offered->key]);
    return err ? err
               : compare_features(c, of, stored->features, stored->feature_count, offered->features,
                                  offered->feature_count);
}

static const char *compare_vertex_name(const weir_schema *schema, uint32_t id) {
    return weir_schema_vertex_at(schema, id)->name;
}

static const char *compare_relation_name(const weir_schema *schema, uint32_t id) {
    return weir_schema_relation_at(schema, id)->name;
}

static weir_err compare_relation(comparer *c, const char *what, uint32_t stored_id, uint32_t offered_id) {
    const weir_schema_relation *stored = weir_schema_relation_at(c->stored, stored_id);
    const weir_schema_relation *offered = weir_schema_relation_at(c->offered, offered_id);
    char of[WEIR_SCHEMA_WHAT_MAX];
    snprintf(of, sizeof of, " of %.200s", what);
    weir_err err = compare_word(c, what, "from", compare_vertex_name(c->stored, stored->from),
                                compare_vertex_name(c->offered, offered->from));
    if (!err)
        err = compare_word(c, what, "to", compare_vertex_name(c->stored, stored->to),
                           compare_vertex_name(c->offered, offered->to));
    return err ? err
               : compare_features(c, of, stored->features, stored->feature_count, offered->features,
                                  offered->feature_count);
}

static const char *compare_of_name(const weir_schema *schema, const weir_schema_aggregate *aggregate) {
    return aggregate->of == WEIR_SCHEMA_NONE
               ? "nothing"
               : weir_schema_relation_at(schema, aggregate->relation)->features[aggregate->of].name;
}

static const char *compare_ratio_name(const weir_schema *schema, const weir_schema_aggregate *aggregate) {
    return aggregate->ratio == WEIR_SCHEMA_NONE
               ? "nothing"
               : weir_schema_relation_at(schema, aggregate->between[0])->features[aggregate->ratio].name;
}

static const char *compare_end_name(const weir_schema *schema, uint32_t relation) {
    return relation == WEIR_SCHEMA_NONE ? "nothing" : compare_relation_name(schema, relation);
}

static bool compare_same_shares(const comparer *c, const weir_schema_aggregate *stored,
                                const weir_schema_aggregate *offered) {
    const weir_schema_share *x = &stored->share, *y = &offered->share;
    if (x->of == WEIR_SCHEMA_NONE || y->of == WEIR_SCHEMA_NONE) return x->of == y->of;
    return x->least >= y->least && x->least <= y->least && x->most >= y->most && x->most <= y->most &&
           strcmp(weir_schema_relation_at(c->stored, stored->relation)->features[x->of].name,
                  weir_schema_relation_at(c->offered, offered->relation)->features[y->of].name) == 0;
}

static bool compare_same_walks(const comparer *c, const weir_schema_aggregate *stored,
                               const weir_schema_aggregate *offered) {
    bool same = stored->through_count == offered->through_count && stored->crowd == offered->crowd &&
                stored->ordered == offered->ordered && compare_same_shares(c, stored, offered);
    for (uint32_t i = 0; same && i < stored->through_count; i++)
        same = stored->through[i].direction == offered->through[i].direction &&
               strcmp(compare_relation_name(c->stored, stored->through[i].relation),
                      compare_relation_name(c->offered, offered->through[i].relation)) == 0;
    return same;
}

static const char *compare_label_name(const weir_schema *schema, const weir_schema_aggregate *aggregate) {
    return aggregate->label == WEIR_SCHEMA_NONE ? "nothing" : weir_schema_label_at(schema, aggregate->label)->name;
}

/* By their texts; that a label's values moved is told of the label. */
static weir_err compare_is(comparer *c, const char *what, const weir_schema_aggregate *stored,
                           const weir_schema_aggregate *offered) {
    bool same = stored->is_count == offered->is_count;
    for (uint32_t i = 0; same && i < stored->is_count; i++)
        same = strcmp(weir_schema_label_at(c->stored, stored->label)->values.texts[stored->is[i]],
                      weir_schema_label_at(c->offered, offered->label)->values.texts[offered->is[i]]) == 0;
    return same ? WEIR_OK : compare_say(c, true, "'is' of %s lists other values", what);
}

static weir_err compare_duration(comparer *c, const char *what, const char *key, const char *zero_word,
                                 int64_t stored_us, int64_t offered_us) {
    char stored[WEIR_SCHEMA_DURATION_BYTES], offered[WEIR_SCHEMA_DURATION_BYTES];
    return compare_word(c, what, key, weir_schema_duration_text(stored_us, zero_word, stored),
                        weir_schema_duration_text(offered_us, zero_word, offered));
}

static weir_err compare_aggregate(comparer *c, const char *what, uint32_t stored_id, uint32_t offered_id) {
    const weir_schema_aggregate *stored = weir_schema_aggregate_at(c->stored, stored_id);
    const weir_schema_aggregate *offered = weir_schema_aggregate_at(c->offered, offered_id);
    const bool pair = stored->between[1] != WEIR_SCHEMA_NONE || offered->between[1] != WEIR_SCHEMA_NONE;
    const char *ends = pair ? "between" : "end";
    weir_err err = compare_word(c, what, "vertex", compare_vertex_name(c->stored, stored->vertex),
                                compare_vertex_name(c->offered, offered->vertex));
    if (!err)
        err = compare_word(c, what, "relation", compare_relation_name(c->stored, stored->relation),
                           compare_relation_name(c->offered, offered->relation));
    for (size_t i = 0; !err && i < 2; i++)
        err = compare_word(c, what, ends, compare_end_name(c->stored, stored->between[i]),
                           compare_end_name(c->offered, offered->between[i]));
    if (!err && !compare_same_walks(c, stored, offered))
        err = compare_say(c, true, "'through', 'crowd', 'ordered' or 'share' of %s leads elsewhere", what);
    if (!err)
        err = compare_word(c, what, "direction", weir_schema_direction_words[stored->direction],
                           weir_schema_direction_words[offered->direction]);
    if (!err)
        err = compare_word(c, what, "function", weir_schema_function_words[stored->function],
                           weir_schema_function_words[offered->function]);
    if (!err)
        err = compare_word(c, what, "of", compare_of_name(c->stored, stored), compare_of_name(c->offered, offered));
    if (!err)
        err = compare_word(c, what, "ratio", compare_ratio_name(c->stored, stored),
                           compare_ratio_name(c->offered, offered));
    if (!err)
        err = compare_word(c, what, "label", compare_label_name(c->stored, stored),
                           compare_label_name(c->offered, offered));
    if (!err && stored->label != WEIR_SCHEMA_NONE && offered->label != WEIR_SCHEMA_NONE)
        err = compare_is(c, what, stored, offered);
    if (!err) err = compare_duration(c, what, "window", NULL, stored->window_us, offered->window_us);
    return err ? err : compare_duration(c, what, "resolution", "exact", stored->resolution_us, offered->resolution_us);
}

static const char *compare_target_name(const weir_schema *schema, const weir_schema_label *label) {
    return label->on_relation ? compare_relation_name(schema, label->target)
                              : compare_vertex_name(schema, label->target);
}

static weir_err compare_label(comparer *c, const char *what, uint32_t stored_id, uint32_t offered_id) {
    const weir_schema_label *stored = weir_schema_label_at(c->stored, stored_id);
    const weir_schema_label *offered = weir_schema_label_at(c->offered, offered_id);
    char of[WEIR_SCHEMA_WHAT_MAX];
    snprintf(of, sizeof of, " of %.200s", what);
    weir_err err = stored->on_relation == offered->on_relation
                       ? compare_word(c, what, stored->on_relation ? "relation" : "vertex",
                                      compare_target_name(c->stored, stored), compare_target_name(c->offered, offered))
                       : compare_say(c, true, "%s was on a %s and is on a %s", what,
                                     stored->on_relation ? "relation" : "vertex type",
                                     offered->on_relation ? "relation" : "vertex type");
    return err ? err : compare_values(c, of, &stored->values, &offered->values);
}

static weir_err compare_source(comparer *c, const char *what, uint32_t stored_id, uint32_t offered_id) {
    return compare_word(c, what, "topic", weir_schema_source_at(c->stored, stored_id)->topic,
                        weir_schema_source_at(c->offered, offered_id)->topic);
}

/* --- sections ------------------------------------------------------------------------------------------------ */

static weir_err compare_slot(comparer *c, weir_schema_section_id section, uint32_t stored_id, uint32_t offered_id) {
    static weir_err (*const compare[WEIR_SCHEMA_SECTIONS])(comparer *, const char *, uint32_t, uint32_t) = {
        compare_vertex, compare_relation, compare_aggregate, compare_label, NULL, compare_source};
    char what[WEIR_SCHEMA_WHAT_MAX];
    uint64_t said = c->said;
    snprintf(what, sizeof what, "%s '%.64s'", weir_schema_sections[section].noun,
             weir_schema_slot_name(c->stored, section, stored_id));
    weir_err err = WEIR_OK; /* only models depend on a task, and they carry the hash */
    if (section != WEIR_SCHEMA_TASKS) err = compare[section](c, what, stored_id, offered_id);
    weir_buf stored = {0}, offered = {0};
    weir_schema_print_slot(c->stored, section, stored_id, &stored);
    weir_schema_print_slot(c->offered, section, offered_id, &offered);
    weir_err_keep(&err, weir_buf_err(&stored));
    weir_err_keep(&err, weir_buf_err(&offered));
    bool same = !err && stored.length == offered.length && memcmp(stored.bytes, offered.bytes, stored.length) == 0;
    weir_buf_free(&stored);
    weir_buf_free(&offered);
    if (err || same || c->said != said) return err;
    return compare_say(c, false, "%s has other settings, on which stored data does not depend", what);
}

static weir_err compare_section(comparer *c, weir_schema_section_id section) {
    const weir_schema_table *stored = &c->stored->tables[section], *offered = &c->offered->tables[section];
    size_t stride = weir_schema_sections[section].slot_bytes;
    bool breaks = section != WEIR_SCHEMA_TASKS;
    weir_err err = compare_listings(c, breaks, weir_schema_sections[section].noun, "",
                                    &(compare_list){stored->slots, stride, stored->count},
                                    &(compare_list){offered->slots, stride, offered->count});
    for (uint32_t id = 0; id < stored->count && !err; id++) {
        uint32_t now = weir_schema_find(c->offered, section, weir_schema_slot_name(c->stored, section, id));
        if (now != WEIR_SCHEMA_NONE) err = compare_slot(c, section, id, now);
    }
    return err;
}

weir_err weir_schema_compare(const weir_schema *stored, const weir_schema *offered, weir_schema_difference visit,
                             void *context) {
    comparer c = {.stored = stored, .offered = offered, .visit = visit, .context = context};
    weir_err err = WEIR_OK;
    if (strcmp(stored->name, offered->name) != 0)
        err = compare_say(&c, true, "the schema was '%s' and is '%s'", stored->name, offered->name);
    for (uint32_t section = 0; section < WEIR_SCHEMA_SECTIONS && !err; section++)
        err = compare_section(&c, (weir_schema_section_id)section);
    return err;
}

static weir_err compare_stop_at_break(void *context, bool breaks, const char *sentence) {
    (void)context;
    return breaks ? WEIR_ERR(WEIR_EVERSION,
                             "%s: stored data does not survive that; undo it and add what is new at the end, or fill a "
                             "new data folder from the log",
                             sentence)
                  : WEIR_OK;
}

weir_err weir_schema_compatible(const weir_schema *stored, const weir_schema *offered) {
    return weir_schema_compare(stored, offered, compare_stop_at_break, NULL);
}

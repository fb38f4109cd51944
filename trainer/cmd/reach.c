/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.c - --fanouts and --strategy: what holds for all relations, and behind it what differs for some.
 *
 *   --fanouts "15,10 paid_by=20,5 paid_by.in=0,0"
 *   --strategy "recent paid_by.in=weighted:amount paid_at=weighted:30d"
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>

#include "train_private.h"

#define REACH_NAME_MAX 512u

bool weir_cmd_train_list(const char *text, uint32_t least, uint32_t most, uint32_t room, uint32_t *numbers,
                         uint32_t *countp) {
    for (*countp = 0; *countp < room; text++) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);
        if (end == text || *text == '-' || number < least || number > most) return false;
        numbers[(*countp)++] = (uint32_t)number;
        if (!*end) return true;
        if (*end != ',') return false;
        text = end;
    }
    return false;
}

/* The entry of a relation and direction, made when it is first named. */
static weir_train_along *reach_along(weir_cmd_reach *reach, uint32_t relation, weir_direction direction) {
    weir_train_reach *out = &reach->reach;
    for (uint32_t i = 0; i < out->along_count; i++)
        if (reach->alongs[i].relation == relation && reach->alongs[i].direction == direction) return &reach->alongs[i];
    WEIR_ASSERT(out->along_count < sizeof reach->alongs / sizeof reach->alongs[0]);
    weir_train_along *along = &reach->alongs[out->along_count++];
    *along = (weir_train_along){.relation = (uint16_t)relation, .direction = direction};
    out->alongs = reach->alongs;
    return along;
}

/* "recent", "uniform", "full", "weighted:FEATURE", "weighted:HALF-LIFE". relation: whose feature it is; NONE: all have
 * the strategy, and only a half-life has a meaning. */
static weir_err reach_read_strategy(const weir_schema *schema, uint32_t relation, const char *text,
                                    weir_train_along *along) {
    static const char weighted[] = "weighted:";
    along->draws = true;
    if (strcmp(text, "recent") == 0)
        along->strategy = WEIR_SAMPLE_RECENT;
    else if (strcmp(text, "uniform") == 0)
        along->strategy = WEIR_SAMPLE_UNIFORM;
    else if (strcmp(text, "full") == 0)
        along->strategy = WEIR_SAMPLE_FULL;
    else if (strncmp(text, weighted, sizeof weighted - 1) != 0)
        return WEIR_ERR(WEIR_EUSAGE,
                        "--strategy knows recent, uniform, full, weighted:FEATURE and weighted:HALF-LIFE, "
                        "not '%.60s'",
                        text);
    else {
        const char *by = text + sizeof weighted - 1;
        along->strategy = WEIR_SAMPLE_WEIGHTED;
        along->weight = WEIR_SCHEMA_NONE;
        if (relation != WEIR_SCHEMA_NONE) {
            const weir_schema_relation *r = weir_schema_relation_at(schema, relation);
            along->weight = weir_schema_feature_find(r->features, r->feature_count, by);
            if (along->weight != WEIR_SCHEMA_NONE && r->features[along->weight].kind == WEIR_SCHEMA_NUMBER)
                return WEIR_OK;
            along->weight = WEIR_SCHEMA_NONE;
        }
        if (weir_duration_parse(by, &along->half_life_us) || along->half_life_us <= 0)
            return WEIR_ERR(
                WEIR_EUSAGE,
                "'%.60s' is neither a half-life such as 30d nor, behind RELATION=weighted:, a number feature of it",
                by);
    }
    return WEIR_OK;
}

/* One word of --fanouts or --strategy: "VALUE" for all, or "RELATION=VALUE", "RELATION.in=VALUE". */
static weir_err reach_read_word(weir_cmd_reach *reach, const weir_schema *schema, char *word, bool fanouts) {
    weir_train_reach *out = &reach->reach;
    char *value = strchr(word, '=');
    uint32_t count = 0;
    if (!value && fanouts && out->along_count) /* only fan-outs were read yet */
        return WEIR_ERR(WEIR_EUSAGE, "--fanouts begins with the numbers of all relations; put '%.60s' first", word);
    if (!value && fanouts) {
        if (!weir_cmd_train_list(word, 1, WEIR_TRAIN_FANOUT_MAX, WEIR_SAMPLE_HOPS_MAX, reach->fanouts, &out->layers))
            return WEIR_ERR(WEIR_EUSAGE, "--fanouts is 1 to %u numbers from 1 to %u, separated by commas",
                            WEIR_SAMPLE_HOPS_MAX, WEIR_TRAIN_FANOUT_MAX);
        out->fanouts = reach->fanouts;
        return WEIR_OK;
    }
    if (!value) {
        weir_train_along all = {0};
        weir_err err = reach_read_strategy(schema, WEIR_SCHEMA_NONE, word, &all);
        out->draws = true;
        out->strategy = all.strategy;
        out->half_life_us = all.half_life_us;
        return err;
    }

    *value++ = 0;
    char *side = strchr(word, '.');
    bool in = !side || strcmp(side, ".in") == 0, to = !side || strcmp(side, ".out") == 0;
    if (side && in + to) *side = 0;
    uint32_t relation = weir_schema_relation_find(schema, word);
    if (relation == WEIR_SCHEMA_NONE)
        return WEIR_ERR(WEIR_EUSAGE, "the schema has no relation '%.60s'; one may be followed by .in or .out", word);
    for (weir_direction direction = WEIR_OUT; direction <= WEIR_IN; direction++) {
        if (!(direction == WEIR_IN ? in : to)) continue;
        weir_train_along *along = reach_along(reach, relation, direction);
        uint32_t *numbers = reach->along_fanouts[along - reach->alongs];
        if (!fanouts) {
            weir_err err = reach_read_strategy(schema, relation, value, along);
            if (err) return err;
            continue;
        }
        if (!weir_cmd_train_list(value, 0, WEIR_TRAIN_FANOUT_MAX, WEIR_SAMPLE_HOPS_MAX, numbers, &count) ||
            count != out->layers)
            return WEIR_ERR(WEIR_EUSAGE, "--fanouts of '%s' is %u numbers from 0 to %u, one a layer", word, out->layers,
                            WEIR_TRAIN_FANOUT_MAX);
        along->fanouts = numbers;
    }
    return WEIR_OK;
}

weir_err weir_cmd_reach_read(const weir_cli *cli, const weir_schema *schema, weir_cmd_reach *reach) {
    static const char *const names[] = {"fanouts", "strategy"};
    reach->reach.out_only = weir_cli_given(cli, "out-only");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[REACH_NAME_MAX], *rest;
        if (!weir_cli_given(cli, names[i])) continue;
        if (strlen(weir_cli_text(cli, names[i])) >= sizeof text)
            return WEIR_ERR(WEIR_EUSAGE, "--%s has more than %u letters", names[i], REACH_NAME_MAX - 1);
        strcpy(text, weir_cli_text(cli, names[i]));
        char *word = strtok_r(text, " ", &rest);
        if (!word) return WEIR_ERR(WEIR_EUSAGE, "--%s is empty; omit it for the default", names[i]);
        for (; word; word = strtok_r(NULL, " ", &rest)) {
            weir_err err = reach_read_word(reach, schema, word, i == 0);
            if (err) return err;
        }
    }
    return WEIR_OK;
}

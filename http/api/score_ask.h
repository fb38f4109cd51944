/* SPDX-License-Identifier: Apache-2.0 */
/* score_ask.h - the body of a request for scores, read and bounded. */
#ifndef WEIR_HTTP_API_SCORE_ASK_H
#define WEIR_HTTP_API_SCORE_ASK_H

#include <weir/inference/score/score.h>

#include "private.h"

typedef struct weir_api_score_ask {
    /* targets: vertices of the graph, or the one that an event puts */
    weir_api_vertex vertices[WEIR_SCORE_BATCH_MAX];
    weir_score_ask asks[WEIR_SCORE_BATCH_MAX];
    uint32_t count;
    weir_api_message event; /* of a source of JSON as it stands in the body; bytes NULL: none */
    uint32_t source;
    const weir_mutation *mutations;
    size_t mutation_count;
    uint32_t reasons, columns, nodes_max;
    int64_t arrival_us;  /* monotonic */
    int64_t deadline_us; /* after the arrival; 0: none */
} weir_api_score_ask;

/* Keys live in the arena, the event there or in the body.  WEIR_EDATA names the member; WEIR_ELIMIT what is beside the
 * event is too long; WEIR_ENOMEM.  [any] */
weir_err weir_api_score_read(const weir_schema *schema, const char *body, size_t length, weir_arena *arena,
                             weir_api_score_ask *ask);
/* Copies what a mapper made of the event: it keeps that for one message only.  WEIR_ENOMEM. */
weir_err weir_api_score_keep_event(weir_api_score_ask *ask, weir_arena *arena, const weir_mapped *mapped);
/* The target's type and key, from the event that puts it.  WEIR_EDATA: the event puts no such vertex. */
weir_err weir_api_score_name_event(weir_api_score_ask *ask, const weir_schema *schema);

#endif /* WEIR_HTTP_API_SCORE_ASK_H */

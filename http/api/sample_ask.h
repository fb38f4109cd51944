/* SPDX-License-Identifier: Apache-2.0 */
/* sample_ask.h - the body of a request for a sample, read and bounded. */
#ifndef WEIR_HTTP_API_SAMPLE_ASK_H
#define WEIR_HTTP_API_SAMPLE_ASK_H

#include <weir/store/sample/sampler.h>

#include "private.h"

#define WEIR_API_SAMPLE_TARGETS 256u
#define WEIR_API_SAMPLE_STEPS   16u
#define WEIR_API_SAMPLE_EDGES   50000u /* of all targets together */

typedef struct weir_api_sample_target {
    weir_api_vertex vertex;
    int64_t before_us;
    uint32_t place; /* in the request */
} weir_api_sample_target;

typedef struct weir_api_sample_ask {
    const weir_schema *schema;
    weir_arena *arena;
    int64_t now_us;                                          /* of a target without a time */
    weir_api_sample_target targets[WEIR_API_SAMPLE_TARGETS]; /* by type */
    weir_sample_step steps[WEIR_API_SAMPLE_STEPS];
    weir_sample_opts opts;
    uint32_t target_count;
} weir_api_sample_ask;

/* now_us stands for a time that is not given. *askp lives in the arena.  WEIR_EDATA names the member; WEIR_ENOMEM.
 * [any] */
weir_err weir_api_sample_read(const weir_schema *schema, int64_t now_us, const char *body, size_t length,
                              weir_arena *arena, weir_api_sample_ask **askp);

#endif /* WEIR_HTTP_API_SAMPLE_ASK_H */

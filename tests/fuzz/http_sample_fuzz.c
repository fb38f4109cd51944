/* SPDX-License-Identifier: Apache-2.0 */
/* Any body of POST /v1/sample becomes a question within its limits, or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "../../http/api/sample_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition) {
    if (!condition) abort();
}

static weir_schema *payments(void) {
    static weir_schema *schema;
    const weir_schema_shipped *shipped = weir_schema_shipped_find("payments");
    if (!schema) must(!weir_schema_parse("payments", shipped->text, shipped->length, &schema));
    return schema;
}

static void check(const weir_api_sample_ask *ask) {
    must(ask->target_count > 0 && ask->target_count <= WEIR_API_SAMPLE_TARGETS);
    must(ask->opts.step_count > 0 && ask->opts.step_count <= WEIR_API_SAMPLE_STEPS);
    must((uint64_t)ask->opts.edges_max * ask->target_count <= WEIR_API_SAMPLE_EDGES && ask->opts.edges_max > 0);
    for (uint32_t i = 0; i < ask->target_count; i++) {
        must(ask->targets[i].place < ask->target_count);
        must(strlen(ask->targets[i].vertex.key) == ask->targets[i].vertex.key_length);
        must(!i || ask->targets[i - 1].vertex.type <= ask->targets[i].vertex.type);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_arena *arena;
    weir_api_sample_ask *ask;
    if (weir_arena_open(16u << 20, &arena)) return 0;
    weir_err err = weir_api_sample_read(payments(), 1, (const char *)data, size, arena, &ask);
    must(err ? !ask : ask != NULL);
    if (!err) check(ask);
    weir_arena_close(arena);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any body of POST /v1/score becomes targets or an event within its limits, or a sentence; and an event is cut out of
 * the body so that it is JSON by itself. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../../http/api/score_ask.h"

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

/* What was cut out is what a reader of the whole would have found, where the whole is JSON at all. */
static void check_event(const weir_api_score_ask *ask, const char *body, size_t size) {
    const weir_api_message *event = &ask->event;
    must(ask->count == 1 && ask->source < weir_schema_source_count(payments()));
    must(event->bytes > body && event->length && event->bytes + event->length < body + size);
    json_t *root = json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
    if (!root) return; /* the mapper's to refuse, or to take: it reads no more than it needs */
    json_t *cut = json_loadb(event->bytes, event->length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    must(json_equal(cut, json_object_get(root, "event")));
    json_decref(cut);
    json_decref(root);
}

static void check_targets(const weir_api_score_ask *ask) {
    must(ask->count > 0 && ask->count <= WEIR_SCORE_BATCH_MAX);
    for (uint32_t i = 0; i < ask->count; i++)
        must(strlen(ask->vertices[i].key) == ask->vertices[i].key_length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static weir_api_score_ask ask;
    weir_arena *arena;
    char *body = malloc(size + 1); /* the server's bodies are ended by a 0 too */
    if (!body || weir_arena_open(16u << 20, &arena)) abort();
    memcpy(body, data, size);
    body[size] = 0;
    memset(&ask, 0, sizeof ask);
    if (!weir_api_score_read(payments(), body, size, arena, &ask)) {
        must(ask.reasons <= WEIR_SCORE_REASONS_MAX);
        if (ask.event.bytes)
            check_event(&ask, body, size);
        else
            check_targets(&ask);
    }
    weir_arena_close(arena);
    free(body);
    return 0;
}

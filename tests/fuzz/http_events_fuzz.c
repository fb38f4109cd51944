/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body is cut into messages that lie in it, in order and without overlap, or refused. The first byte chooses the
 * format.
 */
#include <stdlib.h>

#include "../../http/api/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition) {
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_arena *arena;
    const weir_api_message *messages;
    size_t count;
    if (!size || weir_arena_open(16u << 20, &arena)) return 0;
    const char *body = (const char *)data + 1, *last = body;
    weir_err err =
        weir_api_split(data[0] & 1 ? WEIR_API_JSON : WEIR_API_LINES, body, size - 1, arena, &messages, &count);
    must(err ? !messages && !count : count > 0 && count <= WEIR_API_EVENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        must(messages[i].bytes >= last && messages[i].length > 0);
        last = messages[i].bytes + messages[i].length;
        must(last <= body + size - 1);
    }
    weir_arena_close(arena);
    return 0;
}

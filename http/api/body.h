/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - members of a JSON body; `where` names their object in messages. */
#ifndef WEIR_HTTP_API_BODY_H
#define WEIR_HTTP_API_BODY_H

#include <weir/store/base/json.h>

#include "private.h"

/* *textp is NULL when it is not there; borrowed from the tree. */
weir_err weir_api_body_text(const weir_json_node *object, const char *where, const char *name, const char **textp);
weir_err weir_api_body_need(const weir_json_node *object, const char *where, const char *name, const char **textp);
/* *valuep keeps its default when it is not there. */
weir_err weir_api_body_number(const weir_json_node *object, const char *where, const char *name, int64_t min,
                              int64_t max, int64_t *valuep);
/* Calls read with each item of the member, an array of 1 to max, and with its name: "targets[3]". */
typedef weir_err (*weir_api_body_item)(void *context, const weir_json_node *item, const char *where);
weir_err weir_api_body_items(const weir_json_node *object, const char *name, size_t max, weir_api_body_item read,
                             void *context);

/* The vertex that the members type and key name, with its key in the arena.  WEIR_EDATA a type that the schema does
 * not have, too; WEIR_ENOMEM. */
weir_err weir_api_body_vertex(const weir_json_node *object, const char *where, const weir_schema *schema,
                              weir_arena *arena, weir_api_vertex *vertexp);

#endif /* WEIR_HTTP_API_BODY_H */

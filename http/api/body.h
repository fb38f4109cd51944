/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - members of a JSON body; `where` names their object in messages. */
#ifndef WEIR_HTTP_API_BODY_H
#define WEIR_HTTP_API_BODY_H

#include <weir/store/base/json.h>

#include "private.h"

/* The body as a tree in the arena of its request.  WEIR_EDATA it is not JSON, or nested deeper; WEIR_ELIMIT it has
 * more in it than the arena holds; WEIR_ENOMEM; then *rootp is NULL. */
weir_err weir_api_body_json(const char *text, size_t length, unsigned depth_max, weir_arena *arena,
                            const weir_json_node **rootp);
/* WEIR_EDATA a member that is not among the names, which end with NULL. */
weir_err weir_api_body_members(const weir_json_node *object, const char *where, const char *const *names);
/* *textp is NULL when it is not there; borrowed from the tree. */
weir_err weir_api_body_text(const weir_json_node *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp);
weir_err weir_api_body_need(const weir_json_node *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp);
/* *valuep keeps its default when it is not there. */
weir_err weir_api_body_number(const weir_json_node *object, const char *where, const char *name, int64_t min,
                              int64_t max, int64_t *valuep);

/* The vertex that the members type and key name, with its key in the arena.  WEIR_EDATA a type that the schema does
 * not have, too; WEIR_ENOMEM. */
weir_err weir_api_body_vertex(const weir_json_node *object, const char *where, const weir_schema *schema,
                              weir_arena *arena, weir_api_vertex *vertexp);

#endif /* WEIR_HTTP_API_BODY_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - members of a JSON body; `where` names their object in messages. */
#ifndef WEIR_HTTP_API_BODY_H
#define WEIR_HTTP_API_BODY_H

#include <jansson.h>

#include "private.h"

/* Once, before any JSON is read. */
void weir_api_body_prepare(void);
/* What jansson reads, *rootp NULL where it is no JSON: then *error, which may be NULL, says why.  WEIR_ENOMEM, which
 * jansson takes for wrong JSON. */
weir_err weir_api_body_parse(const char *text, size_t length, size_t flags, json_error_t *error, json_t **rootp);
/* WEIR_ENOMEM; WEIR_EDATA it is no JSON, or nested deeper; then *rootp is NULL. The caller gives it back by
 * json_decref. */
weir_err weir_api_body_json(const char *text, size_t length, size_t depth_max, json_t **rootp);
/* WEIR_EDATA a member that is not among the names, which end with NULL. */
weir_err weir_api_body_members(const json_t *object, const char *where, const char *const *names);
/* *textp is NULL when it is not there; borrowed from the JSON. */
weir_err weir_api_body_text(const json_t *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp);
weir_err weir_api_body_need(const json_t *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp);
/* *valuep keeps its default when it is not there. */
weir_err weir_api_body_number(const json_t *object, const char *where, const char *name, int64_t min, int64_t max,
                              int64_t *valuep);

/* The vertex that the members type and key name, with its key in the arena: it outlives the JSON.  WEIR_EDATA a type
 * that the schema does not have, too; WEIR_ENOMEM. */
weir_err weir_api_body_vertex(const json_t *object, const char *where, const weir_schema *schema, weir_arena *arena,
                              weir_api_vertex *vertexp);

#endif /* WEIR_HTTP_API_BODY_H */

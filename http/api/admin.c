/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.c - POST /v1/admin/checkpoint: the store as a folder, while events go on.
 *
 * It waits for the disk, so it runs in the pool; one at a time. A checkpoint whose name is there already was written by
 * an earlier try: the answer is the same, so that who was cut off may ask again.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/file.h>

#include "body.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define DEPTH_MAX    4u

static weir_err read_ask(weir_http_request *request, const char **namep, bool *linksp) {
    static const char *const members[] = {"name", "hard_links", NULL};
    const weir_json_node *root;
    size_t length, name_length;
    const char *body = weir_http_body(request, &length);
    weir_err err = weir_api_body_json(body, length, DEPTH_MAX, weir_http_arena(request), &root);
    if (!err) err = weir_api_body_members(root, "the body", members);
    if (!err) err = weir_api_body_need(root, "the body", "name", namep, &name_length);
    if (err) return err;
    const weir_json_node *links = weir_json_find(root, "hard_links");
    if (links && links->token.kind != WEIR_JSON_BOOL)
        return WEIR_ERR(WEIR_EDATA, "hard_links must be true or false: whether files are shared with the store");
    *linksp = links && *links->token.bytes == 't';
    if (name_length && name_length <= WEIR_API_CHECKPOINT_NAME && strspn(*namep, NAME_LETTERS) == name_length &&
        **namep != '.')
        return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "name must be 1 to %u letters, digits, '-', '_' and '.', and not begin with '.'",
                    WEIR_API_CHECKPOINT_NAME);
}

static weir_err write_checkpoint(weir_api *api, const char *folder, bool links, bool *createdp) {
    weir_err err = weir_folder_create(api->checkpoints);
    *createdp = !err && !weir_path_exists(folder);
    if (err || !*createdp) return err;
    return links ? weir_graph_checkpoint_linked(api->graph, folder) : weir_graph_checkpoint(api->graph, folder);
}

static void answer(weir_api *api, uint32_t thread, weir_http_request *request, const char *folder, bool created) {
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_json_key(&json, "folder");
    weir_json_string(&json, folder);
    weir_json_key(&json, "created");
    weir_json_bool(&json, created);
    weir_json_key(&json, "shared");
    weir_json_bool(&json, weir_graph_checkpoint_shares(folder));
    weir_api_json_answer(api, thread, &json, request);
}

static weir_err checkpoint(weir_api *api, uint32_t thread, weir_http_request *request) {
    const char *name;
    bool created = false, links = false;
    weir_err err = read_ask(request, &name, &links);
    const char *folder = err ? NULL : weir_arena_printf(weir_http_arena(request), "%s/%s", api->checkpoints, name);
    if (!err && !folder) err = WEIR_NOMEM("for a path");
    weir_api_fresh_begin(api, thread, request); /* what was applied before is in it (A3) */
    if (!err && atomic_exchange(&api->checkpointing, 1)) {
        err = WEIR_ERR(WEIR_EBUSY, "another checkpoint is being written; try again when it is there");
    } else if (!err) {
        err = write_checkpoint(api, folder, links, &created);
        atomic_store(&api->checkpointing, 0);
    }
    if (!err) answer(api, thread, request, folder, created);
    return err;
}

weir_err weir_api_post_checkpoint(void *context, weir_http_request *request) {
    weir_api *api = context;
    if (!api->checkpoints) return WEIR_ERR(WEIR_EUNAVAILABLE, "this server has no folder for checkpoints");
    if (!weir_api_takes_json(request)) return WEIR_OK;
    weir_api_pool_run(api->pool, request, checkpoint);
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.c - POST /v1/admin/checkpoint: the store as a folder, while events go on.
 *
 * It waits for the disk, so it runs on a thread of the pool; one at a time. A checkpoint of this name that exists was
 * written by an earlier request: the answer is the same but for `created`, so a client that lost it may ask again.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/file.h>

#include "body.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define DEPTH_MAX    4u

static weir_err checkpoint_read_ask(weir_http_request *request, const char **namep, bool *linksp) {
    static const char *const members[] = {"name", "hard_links", NULL};
    const weir_json_node *root;
    size_t length;
    const char *body = weir_http_body(request, &length);
    weir_err err = weir_json_parse("the body", body, length, DEPTH_MAX, weir_http_arena(request), &root);
    if (!err) err = weir_json_only(root, "it", members);
    if (!err) err = weir_api_body_need(root, "the body", "name", namep);
    if (err) return err;
    const weir_json_node *links = weir_json_find(root, "hard_links");
    if (links && links->token.kind != WEIR_JSON_BOOL)
        return WEIR_ERR(WEIR_EDATA,
                        "hard_links must be true or false: whether the checkpoint shares its files with the store");
    *linksp = links && *links->token.bytes == 't';
    size_t name_length = strlen(*namep);
    if (name_length && name_length <= WEIR_API_CHECKPOINT_NAME && strspn(*namep, NAME_LETTERS) == name_length &&
        **namep != '.')
        return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "name must be 1 to %u letters, digits, '-', '_' or '.', and must not begin with '.'",
                    WEIR_API_CHECKPOINT_NAME);
}

static weir_err checkpoint_run(weir_api *api, uint32_t thread, weir_http_request *request) {
    const char *name;
    bool created = false, links = false;
    weir_err err = checkpoint_read_ask(request, &name, &links);
    const char *folder = err ? NULL : weir_arena_printf(weir_http_arena(request), "%s/%s", api->checkpoints, name);
    if (!err && !folder) err = WEIR_NOMEM("for a path");
    weir_api_fresh_begin(api, thread, request); // API-A3: what was applied before is in the checkpoint
    if (!err && atomic_exchange(&api->checkpointing, 1))
        err = WEIR_ERR(WEIR_EBUSY, "another checkpoint is being written; try again when it is finished");
    if (err) return err;

    err = weir_folder_create(api->checkpoints);
    created = !err && !weir_path_exists(folder);
    if (created)
        err = links ? weir_graph_checkpoint_linked(api->graph, folder) : weir_graph_checkpoint(api->graph, folder);
    atomic_store(&api->checkpointing, 0);
    if (err) return err;

    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_json_key_string(&json, "folder", folder);
    weir_json_key_bool(&json, "created", created);
    weir_json_key_bool(&json, "shared", weir_graph_checkpoint_shares(folder));
    weir_api_json_answer(api, thread, &json, request);
    return WEIR_OK;
}

weir_err weir_api_post_checkpoint(void *context, weir_http_request *request) {
    weir_api *api = context;
    if (!api->checkpoints)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this server writes no checkpoints: it has no folder for them");
    if (!weir_api_takes_json(request)) return WEIR_OK;
    weir_api_pool_run(api->pool, request, checkpoint_run);
    return WEIR_OK;
}

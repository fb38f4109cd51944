/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - one request to a server that runs: write a checkpoint. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/json.h>
#include <weir/trainer/client/client.h>

#include "nightly_private.h"

#define ASK_PATH            "/v1/admin/checkpoint"
#define ASK_ANSWER_S        600u /* until the checkpoint is written */
#define ASK_REPLY_BYTES_MAX 65536u

/* A text in the object that the server has answered. */
static weir_err ask_reply_member(const weir_buf *reply, const char *key, char *text, size_t size) {
    const char *bytes = reply->length ? reply->bytes : "";
    const weir_json_node *root, *node = NULL;
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse("the server's answer", bytes, reply->length, WEIR_JSON_DEPTH_MAX, arena, &root);
    if (!err) err = weir_json_need(root, key, WEIR_JSON_STRING, &node);
    if (!err) snprintf(text, size, "%s", node->text);
    weir_arena_close(arena);
    return err;
}

weir_err weir_night_ask_checkpoint(const weir_night *night, const char *name, char path[WEIR_NIGHT_PATH_MAX]) {
    const weir_client_opts opts = {.server = night->server,
                                   .option = "--server",
                                   .key_file = night->server_key_file,
                                   .start = "start `weir serve` or drop --server",
                                   .answer_s = ASK_ANSWER_S,
                                   .reply_bytes_max = ASK_REPLY_BYTES_MAX};
    char body[WEIR_NIGHT_NAME_MAX + 64], detail[256] = "";
    weir_client *client = NULL;
    weir_buf reply = {0};
    long status = 0;
    /* It is read within the hour and removed by the next night, so it may share the store's files. */
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"hard_links\":true}", name);
    weir_err err = weir_client_open(&opts, &client);
    if (!err) err = weir_client_ask(client, ASK_PATH, NULL, body, &reply, &status);

    /* An earlier try of the same night may have got as far: the server answers the same then. */
    if (!err && status == 200) {
        err = ask_reply_member(&reply, "folder", path, WEIR_NIGHT_PATH_MAX);
    } else if (!err) {
        (void)ask_reply_member(&reply, "detail", detail, sizeof detail);
        weir_client_plain(detail);
        err = WEIR_ERR(WEIR_EUNAVAILABLE, "the server wrote no checkpoint (status %ld): %s", status,
                       *detail ? detail : "it does not say why");
    }
    weir_client_close(client);
    weir_buf_free(&reply);
    return err;
}

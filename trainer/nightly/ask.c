/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - one request to a server that runs: write a checkpoint. */
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/json.h>

#include "nightly_private.h"

#define ASK_PATH            "/v1/admin/checkpoint"
#define ASK_CONNECT_S       30L
#define ASK_ANSWER_S        600L /* until the checkpoint is written */
#define ASK_REPLY_BYTES_MAX 65536u
#define ASK_KEY_BYTES_MAX   4096u

/* --server with the path of the request; without a scheme it is http. */
static weir_err ask_url(const char *server, CURLU **urlp) {
    char *scheme = NULL;
    CURLU *url = *urlp = curl_url();
    if (!url) return WEIR_NOMEM("for a request");
    bool good = !curl_url_set(url, CURLUPART_URL, server, CURLU_GUESS_SCHEME) &&
                !curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) &&
                (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                !curl_url_set(url, CURLUPART_PATH, ASK_PATH, 0) && !curl_url_set(url, CURLUPART_QUERY, NULL, 0);
    curl_free(scheme);
    if (good) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE, "--server %.100s is not an address like http://127.0.0.1:8080", server);
}

static weir_err ask_headers(const char *key_file, struct curl_slist **headersp) {
    char *key = NULL;
    size_t length;
    weir_buf line = {0};
    weir_err err = key_file ? weir_file_load(key_file, ASK_KEY_BYTES_MAX, &key, &length) : WEIR_OK;
    if (key) weir_buf_printf(&line, "Authorization: Bearer %.*s", (int)strcspn(key, "\r\n"), key);
    weir_buf_byte(&line, 0);
    if (!err) err = weir_buf_err(&line);
    struct curl_slist *first = err ? NULL : curl_slist_append(NULL, "Content-Type: application/json");
    *headersp = first;
    if (!err && (!first || (key && !curl_slist_append(first, line.bytes)))) err = WEIR_NOMEM("for a request");
    weir_buf_free(&line);
    weir_free(key);
    return err;
}

static size_t ask_take_reply(char *bytes, size_t size, size_t count, void *context) {
    weir_buf *reply = context;
    if (reply->length + size * count > ASK_REPLY_BYTES_MAX) return 0; /* curl ends the request */
    weir_buf_append(reply, bytes, size * count);
    return size * count;
}

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
    char body[WEIR_NIGHT_NAME_MAX + 64], problem[CURL_ERROR_SIZE] = "", detail[256] = "";
    struct curl_slist *headers = NULL;
    CURLU *url = NULL;
    weir_buf reply = {0};
    long status = 0;
    CURL *curl = curl_easy_init();
    weir_err err = curl ? ask_url(night->server, &url) : WEIR_NOMEM("for a request");
    if (!err) err = ask_headers(night->server_key_file, &headers);
    if (err) goto done;

    /* It is read within the hour and removed by the next night, so it may share the store's files. */
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"hard_links\":true}", name);
    curl_easy_setopt(curl, CURLOPT_CURLU, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* none, whatever the environment says: the data are on this machine */
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, ASK_CONNECT_S);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, ASK_ANSWER_S);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ask_take_reply);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply);
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
        err = WEIR_ERR(WEIR_EUNAVAILABLE, "the server %.100s cannot be asked: %s; start `weir serve` or drop --server",
                       night->server, *problem ? problem : curl_easy_strerror(code));
        goto done;
    }
    err = weir_buf_err(&reply);
    if (err) goto done;

    /* An earlier try of the same night may have got as far: the server answers the same then. */
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) {
        err = ask_reply_member(&reply, "folder", path, WEIR_NIGHT_PATH_MAX);
    } else {
        (void)ask_reply_member(&reply, "detail", detail, sizeof detail);
        err = WEIR_ERR(WEIR_EUNAVAILABLE, "the server wrote no checkpoint (status %ld): %s", status,
                       *detail ? detail : "it does not say why");
    }
done:
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    curl_url_cleanup(url);
    weir_buf_free(&reply);
    return err;
}

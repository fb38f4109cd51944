/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - one request to a server and its answer, by libcurl. */
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/trainer/client/client.h>

#define CLIENT_CONNECT_S     30L
#define CLIENT_KEY_BYTES_MAX 4096u
#define CLIENT_ADDRESS_MAX   300u /* a host has 253 bytes at most */

struct weir_client {
    weir_client_opts opts;
    CURL *curl;
    CURLU *url;
    struct curl_slist *headers;
    char *base; /* the path of the address */
    char address[CLIENT_ADDRESS_MAX];
};

static void client_keep_address(weir_client *c, const char *scheme) {
    char *host = NULL, *port = NULL;
    (void)curl_url_get(c->url, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(c->url, CURLUPART_PORT, &port, 0); /* most have none */
    snprintf(c->address, sizeof c->address, "%s://%s%s%s", scheme, host ? host : "", port ? ":" : "", port ? port : "");
    weir_client_plain(c->address);
    curl_free(host);
    curl_free(port);
}

/* The address that was given; without a scheme it is http. */
static weir_err client_read_url(weir_client *c) {
    char *scheme = NULL;
    c->url = curl_url();
    if (!c->url) return WEIR_NOMEM("for a request");
    bool good = !curl_url_set(c->url, CURLUPART_URL, c->opts.server, CURLU_GUESS_SCHEME) &&
                !curl_url_get(c->url, CURLUPART_SCHEME, &scheme, 0) &&
                (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                !curl_url_get(c->url, CURLUPART_PATH, &c->base, 0);
    if (good) client_keep_address(c, scheme);
    curl_free(scheme);
    if (good) return WEIR_OK;
    /* What it is may have a password in it. */
    return WEIR_ERR(WEIR_EUSAGE, "what %s names is not an address like http://127.0.0.1:8080", c->opts.option);
}

static weir_err client_make_headers(weir_client *c) {
    char *key = NULL;
    size_t length;
    weir_buf line = {0};
    weir_err err = c->opts.key_file ? weir_file_load(c->opts.key_file, CLIENT_KEY_BYTES_MAX, &key, &length) : WEIR_OK;
    if (!err && key && !strcspn(key, "\r\n"))
        err = WEIR_ERR(WEIR_EUSAGE, "%s has no key in its first line; write one there", c->opts.key_file);
    if (key) weir_buf_printf(&line, "Authorization: Bearer %.*s", (int)strcspn(key, "\r\n"), key);
    weir_buf_byte(&line, 0);
    if (!err) err = weir_buf_err(&line);
    struct curl_slist *first = err ? NULL : curl_slist_append(NULL, "Content-Type: application/json");
    c->headers = first;
    if (!err && (!first || (key && !curl_slist_append(first, line.bytes)))) err = WEIR_NOMEM("for a request");
    weir_buf_free(&line);
    weir_free(key);
    return err;
}

weir_err weir_client_open(const weir_client_opts *opts, weir_client **clientp) {
    *clientp = NULL;
    weir_client *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("for a request");
    c->opts = *opts;
    c->curl = curl_easy_init();
    weir_err err = c->curl ? client_read_url(c) : WEIR_NOMEM("for a request");
    if (!err) err = client_make_headers(c);
    if (err) {
        weir_client_close(c);
        return err;
    }
    *clientp = c;
    return WEIR_OK;
}

void weir_client_close(weir_client *client) {
    if (!client) return;
    curl_slist_free_all(client->headers);
    curl_easy_cleanup(client->curl);
    curl_url_cleanup(client->url);
    curl_free(client->base);
    weir_free(client);
}

const char *weir_client_address(const weir_client *client) {
    return client->address;
}

static size_t client_take_reply(char *bytes, size_t size, size_t count, void *context) {
    weir_buf *reply = context;
    weir_buf_append(reply, bytes, size * count);
    return reply->failed ? 0 : size * count; /* 0: curl ends the request */
}

/* "/base" and "/path" are "/base/path". */
static weir_err client_place(const weir_client *c, const char *path, const char *query) {
    weir_buf whole = {0};
    WEIR_ASSERT(path[0] == '/');
    if (c->opts.below) weir_buf_text(&whole, c->base);
    while (whole.length > 0 && whole.bytes[whole.length - 1] == '/')
        whole.length--;
    weir_buf_text(&whole, path);
    weir_err err = weir_buf_err(&whole);
    if (!err &&
        (curl_url_set(c->url, CURLUPART_PATH, whole.bytes, 0) || curl_url_set(c->url, CURLUPART_QUERY, query, 0)))
        err = WEIR_NOMEM("for a request");
    weir_buf_free(&whole);
    return err;
}

weir_err weir_client_ask(weir_client *client, const char *path, const char *query, const char *body, weir_buf *reply,
                         long *statusp) {
    char problem[CURL_ERROR_SIZE] = "";
    CURL *curl = client->curl;
    weir_err err = client_place(client, path, query);
    if (err) return err;
    weir_buf_clear(reply);
    reply->length_max = client->opts.reply_bytes_max;
    curl_easy_reset(curl); /* the connection stays */
    curl_easy_setopt(curl, CURLOPT_CURLU, client->url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
    if (body) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CLIENT_CONNECT_S);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)client->opts.answer_s);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, client_take_reply);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    if (reply->failed == WEIR_ENOMEM) return weir_buf_err(reply);
    if (reply->failed)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "the server %s gave an answer longer than %zu bytes; %s", client->address,
                        client->opts.reply_bytes_max, client->opts.start);
    if (code != CURLE_OK)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "the server %s cannot be asked: %s; %s", client->address,
                        *problem ? problem : curl_easy_strerror(code), client->opts.start);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, statusp);
    return WEIR_OK;
}

void weir_client_plain(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        /* C1 controls are two bytes, of which a terminal may see one */
        const bool pair = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (*c < 0x20 || *c == 0x7f || pair) *c = '?';
        if (pair) *++c = '?';
    }
}

void weir_client_escape(weir_buf *out, const char *text) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    for (; *text; text++) {
        if (strchr(plain, *text))
            weir_buf_byte(out, *text);
        else
            weir_buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

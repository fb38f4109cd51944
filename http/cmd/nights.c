/* SPDX-License-Identifier: Apache-2.0 */
/* nights.c - `weir nightly` as a child of the server, at the times of nightly.cron. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "serve_private.h"

#define WORDS_MAX 64u
#define TEXT_MAX  8192u

struct weir_serve_nights {
    const char *words[WORDS_MAX + 1];
    size_t count;
    char self[WEIR_SERVE_PATH_MAX], file[WEIR_SERVE_PATH_MAX], ranks[24];
    char store[WEIR_SERVE_PATH_MAX + 16], train[TEXT_MAX];
    weir_scheduler *scheduler;
};

static void word(weir_serve_nights *n, const char *text) {
    if (n->count < WORDS_MAX) n->words[n->count++] = text;
}

static void option(weir_serve_nights *n, const char *name, const char *value) {
    word(n, name);
    word(n, value);
}

static weir_err find_self(weir_serve_nights *n) {
    ssize_t length = readlink("/proc/self/exe", n->self, sizeof n->self - 1);
    if (length <= 0) return WEIR_ERRNO(errno, "cannot find this program's own file by /proc/self/exe");
    n->self[length] = 0;
    return WEIR_OK;
}

/* nightly.train, cut at its blanks. */
static weir_err train_words(weir_serve_nights *n, const char *options) {
    if (strlen(options) >= sizeof n->train) return WEIR_ERR(WEIR_ECONFIG, "nightly.train is too long");
    snprintf(n->train, sizeof n->train, "%s", options);
    char *rest = n->train;
    word(n, "--");
    for (char *one; (one = strsep(&rest, " \t"));)
        if (*one) word(n, one);
    return n->count < WORDS_MAX ? WEIR_OK : WEIR_ERR(WEIR_ECONFIG, "nightly.train has too many words");
}

static weir_err make_words(weir_serve_nights *n, const weir_serve_nights_opts *opts) {
    const weir_config *config = opts->config;
    const char *key = weir_config_text(config, WEIR_CONFIG_NIGHTLY_API_KEY_FILE);
    bool strict = weir_config_bool(config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE);
    snprintf(n->ranks, sizeof n->ranks, "%llu", (unsigned long long)weir_config_u64(config, WEIR_CONFIG_NIGHTLY_RANKS));
    snprintf(n->store, sizeof n->store, "store.path=%s", opts->store);
    word(n, n->self);
    word(n, "nightly");
    word(n, "--resume");
    if (opts->data)
        option(n, "--data", opts->data);
    else
        option(n, "--set", n->store);
    option(n, "--models", opts->models);
    option(n, "--folder", opts->nights);
    option(n, "--server", opts->url);
    if (*key) option(n, "--api-key-file", key);
    option(n, "--ranks", n->ranks);
    option(n, "--set", strict ? "models.require_signature=true" : "models.require_signature=false");
    return train_words(n, weir_config_text(config, WEIR_CONFIG_NIGHTLY_TRAIN));
}

static weir_err open_scheduler(weir_serve_nights *n, const weir_serve_nights_opts *opts) {
    const char *cron = weir_config_text(opts->config, WEIR_CONFIG_NIGHTLY_CRON);
    int length = snprintf(n->file, sizeof n->file, "%s/scheduled", opts->nights);
    if (length < 0 || (unsigned)length >= sizeof n->file)
        return WEIR_ERR(WEIR_ELIMIT, "the path of the nights is too long");
    const weir_scheduler_opts scheduler = {.cron = cron, .arguments = n->words, .file = n->file};
    weir_err err = weir_folder_create(opts->nights);
    if (!err) err = weir_scheduler_open(&scheduler, &n->scheduler);
    return weir_err_is(err, WEIR_EDATA) ? weir_err_prefix(err, "nightly.cron") : err;
}

weir_err weir_serve_nights_open(const weir_serve_nights_opts *opts, weir_serve_nights **nightsp) {
    *nightsp = NULL;
    if (!*weir_config_text(opts->config, WEIR_CONFIG_NIGHTLY_CRON)) return WEIR_OK;
    weir_serve_nights *n = weir_calloc(1, sizeof *n);
    if (!n) return WEIR_NOMEM("for a schedule");
    weir_err err = find_self(n);
    if (!err) err = make_words(n, opts);
    if (!err) err = open_scheduler(n, opts);
    if (err) {
        weir_serve_nights_close(n);
        return err;
    }
    *nightsp = n;
    return WEIR_OK;
}

weir_scheduler *weir_serve_nights_scheduler(const weir_serve_nights *nights) {
    return nights->scheduler;
}

void weir_serve_nights_close(weir_serve_nights *nights) {
    if (!nights) return;
    weir_scheduler_close(nights->scheduler);
    weir_free(nights);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nightly.c - GET /v1/nightly: the newest night of `weir nightly`, its epochs, and whether the next one is overdue.
 *
 * A timer outside starts the nights, so their history alone tells that it has stopped. The files are the night's own,
 * each with a check of its bytes; one that is damaged is left out, and the answer says so. Reading waits for the disk,
 * so it runs in the pool.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "private.h"

#define NIGHT_BYTES_MAX  (1u << 20)
#define EPOCHS_BYTES_MAX (8u << 20)
#define EPOCHS_MAX       1000u
#define PATH_BYTES       4096u
#define HISTORY_US       (60 * WEIR_US_PER_S) /* between two readings of the history for the gauge */

typedef struct nightly_history {
    const char *folder;
    int64_t now_us;
    char newest[256];         /* name; "": there is no night */
    int64_t begun_us;         /* when the first night began; 0: there is none */
    int64_t success_us;       /* when the last one that ended well did; 0: there is none */
    char trouble[PATH_BYTES]; /* of a file of the newest night; "": none */
} nightly_history;

/* NULL: it is not there, or h->trouble says what is wrong with it. */
static char *nightly_load(nightly_history *h, const char *night, const char *file, size_t bytes_max, size_t *lengthp) {
    char path[PATH_BYTES], sentence[WEIR_ERR_SENTENCE_MAX], *text = NULL;
    int length = *night ? snprintf(path, sizeof path, "%s/%s/%s", h->folder, night, file) : -1;
    if (length < 0 || (unsigned)length >= sizeof path || !weir_path_exists(path)) return NULL;
    weir_err err = weir_file_load(path, bytes_max, &text, lengthp);
    if (!err && !weir_json_checked(text, *lengthp))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s of night %s is damaged or of an older version; the next night begins anew",
                       file, night);
    if (!err) return text;
    weir_err_sentence(err, sentence, sizeof sentence);
    snprintf(h->trouble, sizeof h->trouble, "%s", sentence);
    weir_free(text);
    return NULL;
}

/* 0: the member is not a time, or one that a clock which was ahead has left: it would hide years of missing nights. */
static int64_t nightly_time(const nightly_history *h, const weir_json_node *night, const char *name) {
    const char *text = weir_json_node_text(weir_json_find(night, name));
    int64_t time_us;
    return weir_time_parse(text, strlen(text), &time_us) || time_us > h->now_us ? 0 : time_us;
}

/* The names are sorted, and are times unless --name said otherwise. */
static weir_err nightly_visit(void *context, const char *name) {
    nightly_history *h = context;
    size_t length;
    const weir_json_node *night = NULL;
    weir_arena *arena = NULL;
    if (strlen(name) >= sizeof h->newest) return WEIR_OK;
    h->trouble[0] = 0;
    char *text = nightly_load(h, name, "night.json", NIGHT_BYTES_MAX, &length);
    if (!text && !h->trouble[0]) return WEIR_OK; /* not a night */
    memcpy(h->newest, name, strlen(name) + 1);
    if (!text) return WEIR_OK;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse("night.json", text, length, WEIR_JSON_DEPTH_MAX, arena, &night);
    /* Its check is right, so it says nothing that we know: it must not hide the other nights. */
    if (weir_err_is(err, WEIR_EDATA) || weir_err_is(err, WEIR_ELIMIT)) err = WEIR_OK;
    const char *outcome = weir_json_node_text(weir_json_find(night, "outcome"));
    int64_t begun_us = nightly_time(h, night, "begun"), ended_us = nightly_time(h, night, "ended");
    bool well = strcmp(outcome, "promoted") == 0 || strcmp(outcome, "kept") == 0;
    if (begun_us && (!h->begun_us || begun_us < h->begun_us)) h->begun_us = begun_us;
    if (well && ended_us > h->success_us) h->success_us = ended_us;
    weir_arena_close(arena);
    weir_free(text);
    return err;
}

static weir_err nightly_read(const weir_api *api, nightly_history *h) {
    *h = (nightly_history){.folder = api->nights, .now_us = weir_clock_wall_us(api->clock)};
    return h->folder && weir_path_exists(h->folder) ? weir_folder_list(h->folder, nightly_visit, h) : WEIR_OK;
}

/* Since when the night after the last good one, or after the first of all, should have ended well; 0: none is expected
 * yet, as where no night was ever begun. */
static int64_t nightly_overdue_since(const weir_api *api, const nightly_history *h) {
    int64_t since_us = h->success_us ? h->success_us : h->begun_us;
    return api->nightly_every_us && since_us && h->now_us - since_us > api->nightly_every_us
               ? since_us + api->nightly_every_us
               : 0;
}

void weir_api_nightly_look(weir_api *api) {
    int64_t mono_us = weir_clock_mono_us(api->clock);
    nightly_history h;
    if (!api->nightly_every_us) return; /* no night is expected, so the gauge stays at 0 */
    if (api->nightly_looked_us && mono_us - api->nightly_looked_us < HISTORY_US) return;
    api->nightly_looked_us = mono_us ? mono_us : 1;
    weir_err err = nightly_read(api, &h);
    if (err) {
        weir_log_error("serve.nightly", weir_err_prefix(err, "cannot tell whether a night is overdue"));
        return;
    }
    int64_t due_us = nightly_overdue_since(api, &h);
    weir_metric_set(WEIR_METRIC_NIGHTLY_OVERDUE, due_us ? (h.now_us - due_us - 1) / WEIR_US_PER_S + 1 : 0);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* An object, byte for byte, if it is one. */
static bool nightly_write_object(weir_buf *out, const char *separator, const char *text, size_t length) {
    if (weir_json_check_object("it", text, length, WEIR_JSON_DEPTH_MAX)) return false;
    while (length && text[length - 1] != '}')
        length--;
    weir_buf_printf(out, "%s%.*s", separator, (int)length, text);
    return true;
}

static void nightly_write_time(weir_json *json, const char *name, int64_t time_us) {
    if (time_us)
        weir_json_key_time(json, name, time_us);
    else
        weir_json_key_string(json, name, NULL);
}

static weir_err nightly_answer(weir_api *api, uint32_t thread, weir_http_request *request) {
    nightly_history h;
    size_t length = 0, count = 0;
    weir_buf *out = weir_http_out(request);
    (void)thread;
    weir_err err = nightly_read(api, &h);
    if (err) return err;
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);

    /* Two members stand in files, as they are told. */
    char *night = nightly_load(&h, h.newest, "night.json", NIGHT_BYTES_MAX, &length);
    weir_json_key(&json, "night");
    if (!night || !nightly_write_object(out, "", night, length)) weir_buf_text(out, "null");
    char *epochs = nightly_load(&h, h.newest, "train/epochs.jsonl", EPOCHS_BYTES_MAX, &length);
    weir_buf_text(out, ",\"epochs\":[");
    for (const char *line = epochs; line && *line && count < EPOCHS_MAX;) {
        size_t bytes = strcspn(line, "\n");
        count += nightly_write_object(out, count ? "," : "", line, bytes);
        line += bytes + (line[bytes] == '\n');
    }
    weir_buf_byte(out, ']');
    json.after_key = false; /* the values were written past the writer */
    weir_free(night);
    weir_free(epochs);

    weir_json_key_string(&json, "trouble", *h.trouble ? h.trouble : NULL);
    nightly_write_time(&json, "last_success", h.success_us);
    nightly_write_time(&json, "overdue_since", nightly_overdue_since(api, &h));
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
    weir_http_reply(request, 200, "application/json");
    return WEIR_OK;
}

weir_err weir_api_get_nightly(void *context, weir_http_request *request) {
    weir_api *api = context;
    weir_api_pool_run(api->pool, request, nightly_answer);
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nightly.c - GET /v1/nightly: the newest night of `weir nightly`, its epochs, and when the next one begins.
 *
 * The files are the night's own, each with a check of its bytes; one that is damaged is left out, and the answer says
 * so. Reading waits for the disk, so it runs in the pool.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "private.h"

#define NIGHT_BYTES_MAX  (1u << 20)
#define EPOCHS_BYTES_MAX (8u << 20)
#define EPOCHS_MAX       1000u
#define PATH_BYTES       4096u

typedef struct newest {
    const char *folder;
    char name[256];
    char trouble[PATH_BYTES]; /* "": none */
} newest;

static weir_err see(void *context, const char *name) {
    newest *n = context;
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s/night.json", n->folder, name);
    if (length < 0 || (unsigned)length >= sizeof path || strlen(name) >= sizeof n->name) return WEIR_OK;
    if (weir_path_exists(path))
        memcpy(n->name, name, strlen(name) + 1); /* they are sorted by name, which is the time */
    return WEIR_OK;
}

/* NULL: it is not there, or n->trouble says why not. */
static char *load(newest *n, const char *file, size_t bytes_max, size_t *lengthp) {
    char path[PATH_BYTES], sentence[WEIR_ERR_SENTENCE_MAX], *text = NULL;
    int length = *n->name ? snprintf(path, sizeof path, "%s/%s/%s", n->folder, n->name, file) : -1;
    if (length < 0 || (unsigned)length >= sizeof path || !weir_path_exists(path)) return NULL;
    weir_err err = weir_file_load(path, bytes_max, &text, lengthp);
    if (!err && !weir_json_checked(text, *lengthp))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s of night %s is damaged, or of an older version; the next night begins anew",
                       file, n->name);
    if (!err) return text;
    weir_err_sentence(err, sentence, sizeof sentence);
    snprintf(n->trouble, sizeof n->trouble, "%s", sentence);
    weir_free(text);
    return NULL;
}

/* An object, byte for byte, if it is one. */
static bool put_object(weir_buf *out, const char *separator, const char *text, size_t length) {
    if (weir_json_check_object("it", text, length, WEIR_JSON_DEPTH_MAX)) return false;
    while (length && text[length - 1] != '}')
        length--;
    weir_buf_printf(out, "%s%.*s", separator, (int)length, text);
    return true;
}

static void put_night(newest *n, weir_buf *out) {
    size_t length = 0;
    char *text = load(n, "night.json", NIGHT_BYTES_MAX, &length);
    weir_buf_text(out, "{\"night\":");
    if (!text || !put_object(out, "", text, length)) weir_buf_text(out, "null");
    weir_free(text);
}

static void put_epochs(newest *n, weir_buf *out) {
    size_t length = 0, count = 0;
    char *text = load(n, "train/epochs.jsonl", EPOCHS_BYTES_MAX, &length);
    weir_buf_text(out, ",\"epochs\":[");
    for (const char *line = text; line && *line && count < EPOCHS_MAX;) {
        size_t bytes = strcspn(line, "\n");
        count += put_object(out, count ? "," : "", line, bytes);
        line += bytes + (line[bytes] == '\n');
    }
    weir_buf_byte(out, ']');
    weir_free(text);
}

static void put_trouble(const newest *n, weir_buf *out) {
    weir_buf_text(out, ",\"trouble\":");
    weir_json json = weir_json_begin(out);
    weir_json_string(&json, *n->trouble ? n->trouble : NULL);
}

static void put_time(weir_json *json, const char *key, int64_t time_us) {
    if (!time_us) return;
    weir_json_key(json, key);
    weir_api_json_time(json, time_us);
}

static void put_schedule(weir_api *api, weir_buf *out) {
    weir_scheduler_stats stats;
    weir_buf_text(out, ",\"schedule\":");
    weir_scheduler *scheduler = atomic_load(&api->scheduler);
    if (!scheduler) {
        weir_buf_text(out, "null}\n");
        return;
    }
    weir_scheduler_stats_get(scheduler, &stats);
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "cron");
    weir_json_string(&json, weir_scheduler_cron(scheduler));
    put_time(&json, "next", stats.next_us);
    put_time(&json, "last", stats.last_us);
    put_time(&json, "overdue_since", stats.due_us);
    weir_json_key(&json, "running");
    weir_json_bool(&json, stats.running);
    weir_json_key(&json, "starts");
    weir_json_u64(&json, stats.starts);
    weir_json_key(&json, "failures");
    weir_json_u64(&json, stats.failures);
    weir_json_object_end(&json);
    weir_buf_text(out, "}\n");
}

static weir_err nightly(weir_api *api, uint32_t thread, weir_http_request *request) {
    newest n = {.folder = api->nights, .name = ""};
    weir_buf *out = weir_http_out(request);
    (void)thread;
    bool any = n.folder && weir_path_exists(n.folder);
    weir_err err = any ? weir_folder_list(n.folder, see, &n) : WEIR_OK;
    if (err) return err;
    put_night(&n, out);
    put_epochs(&n, out);
    put_trouble(&n, out);
    put_schedule(api, out);
    weir_http_reply(request, 200, "application/json");
    return WEIR_OK;
}

weir_err weir_api_get_nightly(void *context, weir_http_request *request) {
    weir_api *api = context;
    weir_api_pool_run(api->pool, request, nightly);
    return WEIR_OK;
}

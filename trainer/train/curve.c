/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - what an epoch leaves for people: a line of JSON, and the curve so far as a picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "training_private.h"

#define CURVE_LOG_BYTES_MAX ((size_t)1 << 26)
#define CURVE_EPOCHS_MAX    2000u

typedef struct curve_values {
    double loss[CURVE_EPOCHS_MAX], validation[CURVE_EPOCHS_MAX];
} curve_values;

/* The last line has a check of the whole file. */
static void curve_write_line(weir_buf *line, const weir_train_epoch *e) {
    weir_json json = weir_json_begin(line);
    weir_json_object(&json);
    weir_json_key_u64(&json, "epoch", e->number);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"loss", e->loss},
        {"validation", e->validation},
        {"gradient_norm", e->gradient_norm},
        {"edges_sampled", (double)e->edges},
        {"remote_rows", (double)e->remote_rows},
        {"seconds", (double)e->elapsed_us * 1e-6},
        {"sample_seconds", (double)e->times.sample * 1e-6},
        {"exchange_seconds", (double)e->times.exchange * 1e-6},
        {"encode_seconds", (double)e->times.encode * 1e-6},
        {"compute_seconds", (double)e->times.compute * 1e-6},
        {"sum_seconds", (double)e->times.sum * 1e-6},
        {"exposed_seconds", (double)e->times.wait * 1e-6},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        weir_json_key_f64(&json, numbers[i].name, numbers[i].value);
    }
    weir_json_key_bool(&json, "best", e->best);
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(line, '\n');
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

/* The lines of the log are our own, so a number is found by its name. */
static double curve_number_behind(const char *line, const char *name) {
    const char *at = strstr(line, name);
    return at ? strtod(at + strlen(name), NULL) : (double)NAN;
}

static void curve_draw_line(weir_buf *svg, const double *values, uint32_t count, const char *colour, const char *name) {
    double least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    if (!(most > least)) most = least + 1;
    weir_buf_printf(svg, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (uint32_t i = 0; i < count; i++) {
        double x = count > 1 ? 40 + 540.0 * i / (count - 1) : 310;
        weir_buf_printf(svg, "%.1f,%.1f ", x, 220 - 180 * (values[i] - least) / (most - least));
    }
    weir_buf_printf(svg, "\"><title>%s, %.6g to %.6g</title></polyline>\n", name, least, most);
}

/* The whole log as a picture; its lines are cut into texts of their own on the way. */
static weir_err curve_write(const char *folder, char *log) {
    char path[4096];
    weir_buf svg = {0};
    uint32_t count = 0;
    curve_values *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("for the curve");
    for (char *line = log, *end; (end = strchr(line, '\n')) && count < CURVE_EPOCHS_MAX; line = end + 1) {
        *end = 0;
        c->loss[count] = curve_number_behind(line, "\"loss\":");
        c->validation[count++] = curve_number_behind(line, "\"validation\":");
    }
    WEIR_ASSERT(count > 0); /* the epoch at hand is in it */
    weir_buf_text(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 620 260\" font-family=\"sans-serif\" "
                        "font-size=\"12\" role=\"img\" aria-label=\"training loss and validation by epoch\">\n"
                        "<path d=\"M40 30V220H600\" fill=\"none\" stroke=\"#888\"/>\n");
    curve_draw_line(&svg, c->loss, count, "#c2410c", "loss");
    curve_draw_line(&svg, c->validation, count, "#0f766e", "validation");
    weir_buf_printf(&svg,
                    "<text x=\"40\" y=\"20\" fill=\"#c2410c\">loss %.4g</text>\n"
                    "<text x=\"160\" y=\"20\" fill=\"#0f766e\">validation %.4g</text>\n"
                    "<text x=\"600\" y=\"245\" text-anchor=\"end\" fill=\"#888\">epoch %u</text>\n</svg>\n",
                    c->loss[count - 1], c->validation[count - 1], count);
    snprintf(path, sizeof path, "%s/curve.svg", folder);
    weir_err err = weir_buf_err(&svg);
    if (!err) err = weir_file_replace(path, svg.bytes, svg.length);
    weir_buf_free(&svg);
    weir_free(c);
    return err;
}

/* The bytes of the lines before this epoch. Later ones are of a training that was ended after its last checkpoint. */
static size_t curve_lines_before(const char *text, uint32_t epoch) {
    const char *line = text;
    for (const char *end; (end = strchr(line, '\n')) && curve_number_behind(line, "\"epoch\":") < epoch;
         line = end + 1) {
    }
    return (size_t)(line - text);
}

weir_err weir_training_log_epoch(const weir_trained *t, const weir_train_epoch *epoch) {
    char path[4096], *old = NULL;
    size_t length = 0;
    weir_buf lines = {0};
    if (!t->opts.folder || weir_comm_rank(t->comm) != 0) return WEIR_OK;
    snprintf(path, sizeof path, "%s/epochs.jsonl", t->opts.folder);
    weir_err err = weir_path_exists(path) ? weir_file_load(path, CURVE_LOG_BYTES_MAX, &old, &length) : WEIR_OK;
    if (!err && old) {
        size_t covered = weir_json_checked(old, length);
        if (covered) {
            WEIR_ASSERT(covered + 2 <= length); /* behind it stands its check */
            memcpy(old + covered, "}\n", 3); /* a line that is kept loses its check: the new last line has one of all */
            weir_buf_append(&lines, old, curve_lines_before(old, epoch->number));
        } else {
            err = WEIR_ERR(WEIR_ECORRUPT, "%s is damaged or of an older version; remove it", path);
        }
    }
    weir_free(old);
    curve_write_line(&lines, epoch);
    if (!err) err = weir_buf_err(&lines);
    if (!err) err = weir_file_replace(path, lines.bytes, lines.length);
    if (!err) err = curve_write(t->opts.folder, lines.bytes);
    weir_buf_free(&lines);
    return err;
}

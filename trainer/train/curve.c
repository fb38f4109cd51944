/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - what an epoch leaves for people: a line of JSON, and the curve so far as a picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "training_private.h"

#define CURVE_LOG_BYTES_MAX ((size_t)1 << 26)
#define CURVE_EPOCHS_MAX    2000u

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
        {"rate", e->rate},
        {"edges_sampled", (double)e->edges},
        {"rows", (double)e->rows},
        {"remote_rows", (double)e->remote_rows},
        {"cached_rows", (double)e->cached_rows},
        {"handed_share", e->handed_share},
        {"slowest_rank", (double)e->slowest},
        {"slowest_rank_lag", e->lag},
        {"ready_batches", (double)e->ready},
        {"seconds", (double)e->elapsed_us * 1e-6},
        {"learning_seconds", (double)e->learning_us * 1e-6},
        {"sample_seconds", (double)e->times.sample * 1e-6},
        {"exchange_seconds", (double)e->times.exchange * 1e-6},
        {"encode_seconds", (double)e->times.encode * 1e-6},
        {"bring_seconds", (double)e->times.bring * 1e-6},
        {"pull_seconds", (double)e->times.pull * 1e-6},
        {"compute_seconds", (double)e->times.compute * 1e-6},
        {"sum_seconds", (double)e->times.sum * 1e-6},
        {"exposed_seconds", (double)e->times.wait * 1e-6},
        {"sum_exposed_seconds", (double)e->times.sum_wait * 1e-6},
        {"update_seconds", (double)e->times.update * 1e-6},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        weir_json_key_f64(&json, numbers[i].name, numbers[i].value);
    }
    weir_json_key_bool(&json, "best", e->best);
    weir_json_object_end_checked(&json, 0);
    weir_buf_byte(line, '\n');
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

/* Of a line of the log; NaN: what was no finite number stands there as null. */
typedef struct curve_epoch {
    double number, loss, validation;
} curve_epoch;

/* Reads the line that begins here, and returns where the next one does; NULL: there is none. */
static const char *curve_next(const char *line, curve_epoch *e) {
    const char *end = strchr(line, '\n');
    if (!end) return NULL;
    weir_json_reader r = weir_json_reader_of(line, (size_t)(end - line), WEIR_JSON_DEPTH_MAX);
    weir_json_token name, value;
    *e = (curve_epoch){(double)NAN, (double)NAN, (double)NAN};
    weir_json_enter(&r, "a line of the log is no object");
    while (weir_json_read_name(&r, &name) && weir_json_read(&r, &value) && weir_json_skip(&r, &value)) {
        double *to = weir_json_token_is(&name, "epoch")        ? &e->number
                     : weir_json_token_is(&name, "loss")       ? &e->loss
                     : weir_json_token_is(&name, "validation") ? &e->validation
                                                               : NULL;
        if (to && value.kind == WEIR_JSON_NUMBER) *to = strtod(value.bytes, NULL); /* a comma stands behind it */
    }
    return end + 1;
}

/* One line a run of epochs that have the number: where it is missing there is a gap, and a run of one is a dot. */
static void curve_draw(weir_buf *svg, const double *values, uint32_t count, const char *colour, const char *name,
                       unsigned place) {
    double least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        least = fmin(least, values[i]); /* of a number and NaN it is the number */
        most = fmax(most, values[i]);
    }
    if (!(most > least)) most = least + 1;
    weir_buf_printf(svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linecap=\"round\" d=\"", colour);
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(values[i])) continue;
        double x = count > 1 ? 40 + 540.0 * i / (count - 1) : 310, y = 220 - 180 * (values[i] - least) / (most - least);
        bool begins = i == 0 || isnan(values[i - 1]);
        weir_buf_printf(svg, begins ? "M%.1f,%.1fh0" : "L%.1f,%.1f", x, y);
    }
    if (isfinite(least))
        weir_buf_printf(svg, "\"><title>%s, %.6g to %.6g</title></path>\n", name, least, most);
    else
        weir_buf_printf(svg, "\"><title>%s, never a number</title></path>\n", name);
    weir_buf_printf(svg, "<text x=\"%u\" y=\"20\" fill=\"%s\">%s ", place, colour, name);
    if (isnan(values[count - 1]))
        weir_buf_text(svg, "is not a number</text>\n");
    else
        weir_buf_printf(svg, "%.4g</text>\n", values[count - 1]);
}

static weir_err curve_write(const char *folder, const char *log) {
    char path[4096];
    weir_buf svg = {0};
    uint32_t count = 0;
    curve_epoch e;
    double *loss = weir_calloc(CURVE_EPOCHS_MAX, sizeof *loss);
    double *validation = weir_calloc(CURVE_EPOCHS_MAX, sizeof *validation);
    weir_err err =
        loss && validation ? weir_path_join(path, sizeof path, folder, "curve.svg") : WEIR_NOMEM("for the curve");
    for (const char *line = log; !err && count < CURVE_EPOCHS_MAX && (line = curve_next(line, &e)); count++) {
        loss[count] = e.loss;
        validation[count] = e.validation;
    }
    WEIR_ASSERT(err || count > 0); /* the epoch at hand is in it */
    weir_buf_text(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 620 260\" font-family=\"sans-serif\" "
                        "font-size=\"12\" role=\"img\" aria-label=\"training loss and validation by epoch\">\n"
                        "<path d=\"M40 30V220H600\" fill=\"none\" stroke=\"#888\"/>\n");
    if (!err) curve_draw(&svg, loss, count, "#c2410c", "loss", 40);
    if (!err) curve_draw(&svg, validation, count, "#0f766e", "validation", 200);
    weir_buf_printf(&svg, "<text x=\"600\" y=\"245\" text-anchor=\"end\" fill=\"#888\">epoch %u</text>\n</svg>\n",
                    count);
    if (!err) err = weir_buf_err(&svg);
    if (!err) err = weir_file_replace(path, svg.bytes, svg.length);
    weir_buf_free(&svg);
    weir_free(loss);
    weir_free(validation);
    return err;
}

weir_err weir_training_log_epoch(const weir_trained *t, const weir_train_epoch *epoch) {
    char path[4096], *old = NULL;
    size_t length = 0;
    weir_buf lines = {0};
    if (!t->opts.folder || weir_comm_rank(t->comm) != 0) return WEIR_OK;
    weir_err err = weir_path_join(path, sizeof path, t->opts.folder, "epochs.jsonl");
    if (!err && weir_path_exists(path)) err = weir_file_load(path, CURVE_LOG_BYTES_MAX, &old, &length);
    if (old) {
        size_t covered = weir_json_checked(old, length);
        const char *kept =
            old; /* lines from this epoch on are of a training that was ended after its last checkpoint */
        curve_epoch e;
        if (covered) {
            WEIR_ASSERT(covered + 2 <= length); /* behind it stands its check */
            memcpy(old + covered, "}\n", 3); /* a line that is kept loses its check: the new last line has one of all */
            for (const char *next; (next = curve_next(kept, &e)) && e.number < epoch->number;)
                kept = next;
            weir_buf_append(&lines, old, (size_t)(kept - old));
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

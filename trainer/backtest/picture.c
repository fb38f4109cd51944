/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - the precision of a day's alerts, day after day, as a picture: a line a model, and a dot a day. */
#include <math.h>
#include <stdio.h>

#include <weir/store/base/file.h>

#include "backtest_private.h"

#define PICTURE_LEFT   56.0
#define PICTURE_RIGHT  720.0
#define PICTURE_TOP    44.0
#define PICTURE_BOTTOM 280.0
#define PICTURE_STEPS  4u /* of the axis of precision */
#define PICTURE_NAMES  7u /* of days below the other one, at most */

static const char *const picture_colours[WEIR_BACKTEST_MODELS] = {"#c2410c", "#0f766e", "#1d4ed8", "#6b7280"};

/* Whatever is drawn, and the end of its axis. */
typedef struct picture {
    const weir_backtest *b;
    const weir_backtest_results *r;
    double top;
} picture;

static double picture_value(const picture *p, uint32_t day, weir_backtest_model model) {
    return p->r->of_days[day * WEIR_BACKTEST_MODELS + model].precision;
}

static double picture_x(const picture *p, uint32_t day) {
    const uint32_t days = p->b->opts.days;
    if (days == 1) return (PICTURE_LEFT + PICTURE_RIGHT) / 2;
    return PICTURE_LEFT + 12 + (PICTURE_RIGHT - PICTURE_LEFT - 24) * day / (days - 1);
}

static double picture_y(const picture *p, double value) {
    return PICTURE_BOTTOM - (PICTURE_BOTTOM - PICTURE_TOP) * value / p->top;
}

/* The first round number that no day is above. */
static double picture_find_top(const picture *p) {
    static const double ends[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8};
    double most = 0;
    for (uint32_t day = 0; day < p->b->opts.days; day++)
        for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++)
            if (p->b->scores[m]) most = fmax(most, picture_value(p, day, m)); /* of a number and NaN: the number */
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (most <= ends[i]) return ends[i];
    return 1;
}

static void picture_draw_axes(const picture *p, weir_buf *svg) {
    const uint32_t days = p->b->opts.days, step = (days + PICTURE_NAMES - 1) / PICTURE_NAMES;
    char name[WEIR_BACKTEST_NAME_MAX];
    for (unsigned i = 0; i <= PICTURE_STEPS; i++) {
        const double value = p->top * i / PICTURE_STEPS, y = picture_y(p, value);
        weir_buf_printf(svg, "<path d=\"M%.0f %.1fH%.0f\" stroke=\"%s\"/>\n", PICTURE_LEFT, y, PICTURE_RIGHT,
                        i ? "#ddd" : "#888");
        weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", PICTURE_LEFT - 8, y + 4,
                        value);
    }
    for (uint32_t day = 0; day < days; day += step) {
        weir_backtest_name(p->b->days[day].from_us, name);
        weir_buf_printf(svg, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.10s</text>\n", picture_x(p, day),
                        PICTURE_BOTTOM + 20, name);
    }
    weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">day</text>\n",
                    (PICTURE_LEFT + PICTURE_RIGHT) / 2, PICTURE_BOTTOM + 40);
}

/* A day without targets is a gap. */
static void picture_draw_model(const picture *p, weir_backtest_model model, weir_buf *svg) {
    const char *colour = picture_colours[model], *move = "M";
    char name[WEIR_BACKTEST_NAME_MAX];
    weir_buf_printf(svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    for (uint32_t day = 0; day < p->b->opts.days; day++) {
        const double value = picture_value(p, day, model);
        if (isfinite(value)) weir_buf_printf(svg, "%s%.1f %.1f", move, picture_x(p, day), picture_y(p, value));
        move = isfinite(value) ? "L" : "M";
    }
    weir_buf_text(svg, "\"/>\n");
    for (uint32_t day = 0; day < p->b->opts.days; day++) {
        const double value = picture_value(p, day, model);
        if (!isfinite(value)) continue;
        weir_backtest_name(p->b->days[day].from_us, name);
        weir_buf_printf(svg,
                        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s, %s: %.4f</title></circle>\n",
                        picture_x(p, day), picture_y(p, value), colour, weir_backtest_models[model], name, value);
    }
}

weir_err weir_backtest_write_picture(const weir_backtest *b, const weir_backtest_results *r) {
    char path[WEIR_BACKTEST_PATH_MAX];
    picture p = {.b = b, .r = r, .top = 1};
    double legend = PICTURE_LEFT;
    weir_buf svg = {0};
    p.top = picture_find_top(&p);
    weir_buf_printf(&svg,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 330\" font-family=\"sans-serif\" "
                    "font-size=\"12\" fill=\"#444\" role=\"img\" aria-label=\"precision of %u alerts a day, by day\">\n"
                    "<rect width=\"760\" height=\"330\" fill=\"#fff\"/>\n"
                    "<text x=\"%.0f\" y=\"16\">precision of %u alerts a day</text>\n",
                    b->opts.budget, PICTURE_LEFT, b->opts.budget);
    picture_draw_axes(&p, &svg);
    for (weir_backtest_model m = 0; m < WEIR_BACKTEST_MODELS; m++) {
        if (!b->scores[m]) continue;
        weir_buf_printf(&svg, "<path d=\"M%.0f 30h16\" stroke=\"%s\" stroke-width=\"3\"/>\n", legend,
                        picture_colours[m]);
        weir_buf_printf(&svg, "<text x=\"%.0f\" y=\"34\">%s</text>\n", legend + 22, weir_backtest_models[m]);
        legend += 100;
        picture_draw_model(&p, m, &svg);
    }
    weir_buf_text(&svg, "</svg>\n");
    weir_err err = weir_buf_err(&svg);
    if (!err) err = weir_path_join(path, sizeof path, b->opts.folder, "backtest.svg");
    if (!err) err = weir_file_replace(path, svg.bytes, svg.length);
    weir_buf_free(&svg);
    return err;
}

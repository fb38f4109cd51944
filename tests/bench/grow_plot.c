/* SPDX-License-Identifier: Apache-2.0 */
/* grow_plot.c - the rows of `weir bench grow` as a picture: SVG by hand, since it is a few lines and texts. */
#include <math.h>
#include <stdio.h>

#include "grow_bench.h"

#define WIDTH        900.0
#define HEIGHT       800.0
#define LEFT         80.0
#define RIGHT        700.0 /* the legend stands behind it */
#define PANEL_HEIGHT 280.0

/* A value of a row; the name stands in the legend. */
typedef struct series {
    const char *name, *color, *dash;
    double (*value)(const grow_row *row);
} series;

typedef struct panel {
    const char *title;
    double top, low, high; /* of the axis */
    bool logarithmic;
    const series *of;
    size_t count;
} panel;

static double by_cpu(const grow_row *r) {
    return (double)r->step_records / fmax(r->feed_cpu_s, 1e-9) / 1000;
}
static double by_cpu_with_owed(const grow_row *r) {
    return (double)r->step_records / fmax(r->feed_cpu_s + r->owed_cpu_s, 1e-9) / 1000;
}
static double by_cpu_so_far(const grow_row *r) {
    return (double)r->records / fmax(r->so_far_cpu_s, 1e-9) / 1000;
}
static double first_p50(const grow_row *r) {
    return r->first.p50_us;
}
static double first_p99(const grow_row *r) {
    return r->first.p99_us;
}
static double hub_p50(const grow_row *r) {
    return r->hub.p50_us;
}
static double hub_p99(const grow_row *r) {
    return r->hub.p99_us;
}
static double features_p50(const grow_row *r) {
    return r->features.p50_us;
}
static double features_p99(const grow_row *r) {
    return r->features.p99_us;
}
static double newest_p50(const grow_row *r) {
    return r->newest.p50_us;
}
static double newest_p99(const grow_row *r) {
    return r->newest.p99_us;
}

static const series rates[] = {{"sealed", "#1b6ca8", "", by_cpu},
                               {"with owed", "#c1440e", "", by_cpu_with_owed},
                               {"so far", "#3a7d34", "", by_cpu_so_far}};
static const series reads[] = {
    {"neighbours p50", "#1b6ca8", "", first_p50},  {"neighbours p99", "#1b6ca8", "6 3", first_p99},
    {"hub p50", "#c1440e", "", hub_p50},           {"hub p99", "#c1440e", "6 3", hub_p99},
    {"features p50", "#3a7d34", "", features_p50}, {"features p99", "#3a7d34", "6 3", features_p99},
    {"scores p50", "#7b4fa3", "", newest_p50},     {"scores p99", "#7b4fa3", "6 3", newest_p99},
};

/* --- axes --------------------------------------------------------------------------------------------------------- */

static double share(double value, double low, double high, bool logarithmic) {
    if (logarithmic) return log(value / low) / log(high / low);
    return (value - low) / (high - low);
}

typedef struct range {
    double low, high;
} range;

static range records_of(const grow_run *runs, size_t count) {
    range x = {INFINITY, 0};
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < runs[i].count; r++) {
            x.low = fmin(x.low, (double)runs[i].rows[r].records);
            x.high = fmax(x.high, (double)runs[i].rows[r].records);
        }
    return x.high > x.low ? x : (range){1, 10};
}

static double place_x(double records, range x) {
    return LEFT + (RIGHT - LEFT) * share(records, x.low, x.high, true);
}

static double place_y(double value, const panel *p) {
    double at = share(fmax(value, p->low), p->low, p->high, p->logarithmic);
    return p->top + PANEL_HEIGHT * (1 - fmin(at, 1));
}

/* From 0 to a round number above all; or from one power of ten to another. */
static void fit(panel *p, const grow_run *runs, size_t count) {
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < runs[i].count; r++)
            for (size_t s = 0; s < p->count; s++) {
                double value = p->of[s].value(&runs[i].rows[r]);
                if (value > 0) low = fmin(low, value);
                high = fmax(high, value);
            }
    if (high <= 0) low = high = 1;
    double power = pow(10, floor(log10(high)));
    p->low = p->logarithmic ? pow(10, floor(log10(low))) : 0;
    p->high = p->logarithmic ? power * 10 : ceil(high / power) * power;
}

static void text(weir_buf *out, double x, double y, const char *anchor, const char *words) {
    weir_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words);
}

static void line(weir_buf *out, double x1, double y1, double x2, double y2) {
    weir_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", x1, y1, x2, y2);
}

/* Four to ten steps. */
static double tick_of(double high) {
    double power = pow(10, floor(log10(high)));
    return high / power < 2 ? power / 4 : high / power < 4 ? power / 2 : power;
}

static void draw_y(weir_buf *out, const panel *p) {
    char words[32];
    double tick = p->low;
    for (uint32_t i = 0; i <= 20 && tick <= p->high * 1.0001; i++) {
        double y = place_y(tick, p);
        line(out, LEFT, y, RIGHT, y);
        snprintf(words, sizeof words, "%g", tick);
        text(out, LEFT - 8, y + 4, "end", words);
        tick = p->logarithmic ? tick * 10 : tick + tick_of(p->high);
    }
}

static void draw_x(weir_buf *out, const panel *p, range x) {
    static const double steps[] = {1, 2, 5};
    char words[32];
    double bottom = p->top + PANEL_HEIGHT;
    for (int power = (int)floor(log10(x.low)), last = (int)floor(log10(x.high)); power <= last; power++)
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            double tick = pow(10, power) * steps[i];
            if (tick < x.low || tick > x.high) continue;
            line(out, place_x(tick, x), p->top, place_x(tick, x), bottom);
            snprintf(words, sizeof words, tick < 1e6 ? "%gk" : "%gM", tick < 1e6 ? tick / 1e3 : tick / 1e6);
            text(out, place_x(tick, x), bottom + 16, "middle", words);
        }
    text(out, (LEFT + RIGHT) / 2, bottom + 34, "middle", "sealed records");
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* The points of the second run are hollow. */
static void draw_series(weir_buf *out, const panel *p, const series *s, const grow_run *run, range x,
                        size_t run_number) {
    const char *marker = run_number ? "#fff" : s->color;
    weir_buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" points=\"",
                    s->color, s->dash);
    for (size_t r = 0; r < run->count; r++)
        weir_buf_printf(out, "%.1f,%.1f ", place_x((double)run->rows[r].records, x),
                        place_y(s->value(&run->rows[r]), p));
    weir_buf_text(out, "\"/>\n");
    for (size_t r = 0; r < run->count; r++)
        weir_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" stroke=\"%s\"/>\n",
                        place_x((double)run->rows[r].records, x), place_y(s->value(&run->rows[r]), p), marker,
                        s->color);
}

static void draw_legend(weir_buf *out, const panel *p, const grow_run *runs, size_t count) {
    double y = p->top + 10;
    for (size_t i = 0; i < count; i++) {
        weir_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", RIGHT + 20, y + 4,
                        runs[i].stream);
        y += 18;
        for (size_t s = 0; s < p->count; s++) {
            weir_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" ", RIGHT + 20, y,
                            RIGHT + 50, y, p->of[s].color);
            weir_buf_printf(out, "stroke-width=\"2\" stroke-dasharray=\"%s\"/>\n", p->of[s].dash);
            weir_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" stroke=\"%s\"/>\n", RIGHT + 35, y,
                            i ? "#fff" : p->of[s].color, p->of[s].color);
            text(out, RIGHT + 58, y + 4, "start", p->of[s].name);
            y += 18;
        }
        y += 8;
    }
}

static void draw(weir_buf *out, panel *p, const grow_run *runs, size_t count, range x) {
    fit(p, runs, count);
    weir_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"15\" font-weight=\"bold\">%s</text>\n", LEFT,
                    p->top - 14, p->title);
    draw_y(out, p);
    draw_x(out, p, x);
    for (size_t i = 0; i < count; i++)
        for (size_t s = 0; s < p->count; s++)
            draw_series(out, p, &p->of[s], &runs[i], x, i);
    draw_legend(out, p, runs, count);
}

void weir_grow_plot(const grow_run *runs, size_t count, weir_buf *out) {
    panel rate = {.title = "Thousand records a second of CPU", .top = 50, .of = rates, .count = 3};
    panel read = {.title = "Reads, microseconds", .top = 430, .logarithmic = true, .of = reads, .count = 8};
    range x = records_of(runs, count);
    weir_buf_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
                    "font-size=\"12\">\n",
                    WIDTH, HEIGHT);
    weir_buf_text(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    draw(out, &rate, runs, count, x);
    draw(out, &read, runs, count, x);
    weir_buf_text(out, "</svg>\n");
}

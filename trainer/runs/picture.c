/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - validation by epoch as a picture: a line a run, the best one marked. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/base/utf8.h>
#include <weir/trainer/runs/runs.h>

#define CURVES_LEFT    56.0
#define CURVES_RIGHT   600.0
#define CURVES_TOP     44.0
#define CURVES_BOTTOM  300.0
#define CURVES_STEPS   4u  /* of the axis of the figure                */
#define CURVES_NAMES   7u  /* of epochs below the other one, at most   */
#define CURVES_LEGEND  14u /* names beside the lines; the rest is a number */
#define CURVES_COLOURS 8u

/* Each is told from white and from near-black. */
static const char *const curves_colours[CURVES_COLOURS] = {"#2f7ed8", "#c9730f", "#12937f", "#b0539b",
                                                           "#7a8a0b", "#7667d8", "#3a93b8", "#8f7a66"};

typedef struct curves {
    const weir_runs_line *lines;
    size_t count;
    double least, most; /* ends of the axis of the figure */
    uint32_t epochs;    /* end of the other one           */
} curves;

static double curves_x(const curves *p, uint32_t epoch) {
    if (p->epochs < 2) return (CURVES_LEFT + CURVES_RIGHT) / 2;
    return CURVES_LEFT + 8 + (CURVES_RIGHT - CURVES_LEFT - 16) * (epoch - 1) / (p->epochs - 1);
}

static double curves_y(const curves *p, double value) {
    return CURVES_BOTTOM - (CURVES_BOTTOM - CURVES_TOP) * (value - p->least) / (p->most - p->least);
}

/* Ends of an axis at round numbers around all that is drawn. */
static void curves_find_ends(curves *p) {
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < p->count; i++) {
        for (size_t e = 0; e < p->lines[i].epoch_count; e++) {
            const weir_run_epoch *epoch = &p->lines[i].epochs[e];
            if (epoch->number > p->epochs) p->epochs = epoch->number;
            if (!isfinite(epoch->validation)) continue;
            least = fmin(least, epoch->validation);
            most = fmax(most, epoch->validation);
        }
    }
    if (!(most >= least)) least = most = 0;
    const double wide = fmax(most - least, fmax(fabs(most), 1e-3) * 1e-3);
    const double step = pow(10, floor(log10(wide)));
    p->least = floor(least / step) * step;
    p->most = ceil(most / step) * step;
    if (!(p->most > p->least)) p->most = p->least + step;
}

static void curves_put_name(weir_buf *svg, const char *name) {
    for (; *name; name++) {
        const char *entity = *name == '<' ? "&lt;" : *name == '>' ? "&gt;" : *name == '&' ? "&amp;" : NULL;
        if (*name == '"') entity = "&quot;";
        if (entity)
            weir_buf_text(svg, entity);
        else
            weir_buf_byte(svg, *name);
    }
}

static void curves_draw_axes(const curves *p, weir_buf *svg) {
    const uint32_t step = p->epochs > CURVES_NAMES ? (p->epochs + CURVES_NAMES - 1) / CURVES_NAMES : 1;
    for (unsigned i = 0; i <= CURVES_STEPS; i++) {
        const double value = p->least + (p->most - p->least) * i / CURVES_STEPS, y = curves_y(p, value);
        weir_buf_printf(svg, "<path class=\"%s\" d=\"M%.0f %.1fH%.0f\"/>\n", i ? "grid" : "axis", CURVES_LEFT, y,
                        CURVES_RIGHT);
        weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", CURVES_LEFT - 8, y + 4,
                        value);
    }
    for (uint32_t epoch = 1; epoch <= p->epochs; epoch += step)
        weir_buf_printf(svg, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%u</text>\n", curves_x(p, epoch),
                        CURVES_BOTTOM + 20, epoch);
    weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">epoch</text>\n",
                    (CURVES_LEFT + CURVES_RIGHT) / 2, CURVES_BOTTOM + 40);
}

/* What was no number leaves a gap; a number alone is a dot. */
static void curves_draw_line(const curves *p, const weir_runs_line *line, const char *colour, weir_buf *svg) {
    bool begins = true;
    weir_buf_printf(svg, "<path class=\"%s\" stroke=\"%s\" d=\"", line->best ? "best" : "run", colour);
    for (size_t e = 0; e < line->epoch_count; e++) {
        const weir_run_epoch *epoch = &line->epochs[e];
        const bool there = isfinite(epoch->validation);
        if (there)
            weir_buf_printf(svg, begins ? "M%.1f %.1fh0" : "L%.1f %.1f", curves_x(p, epoch->number),
                            curves_y(p, epoch->validation));
        begins = !there;
    }
    weir_buf_text(svg, "\"><title>");
    curves_put_name(svg, line->name);
    weir_buf_text(svg, line->best ? ", the best</title></path>\n" : "</title></path>\n");
    for (size_t e = 0; e < line->epoch_count; e++) {
        const weir_run_epoch *epoch = &line->epochs[e];
        if (epoch->number != line->best_epoch || !isfinite(epoch->validation)) continue;
        weir_buf_printf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>", curves_x(p, epoch->number),
                        curves_y(p, epoch->validation), line->best ? 6 : 3, colour);
        curves_put_name(svg, line->name);
        weir_buf_printf(svg, ", epoch %u: %.4f</title></circle>\n", epoch->number, epoch->validation);
    }
}

/* The best one first, whatever its place. */
static void curves_draw_legend(const curves *p, weir_buf *svg) {
    size_t row = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < p->count; i++) {
            if (p->lines[i].best != (pass == 0)) continue;
            const double y = CURVES_TOP + 6 + 18.0 * (double)row;
            if (row++ >= CURVES_LEGEND) continue;
            weir_buf_printf(svg, "<path class=\"%s\" stroke=\"%s\" d=\"M%.0f %.0fh16\"/>\n",
                            p->lines[i].best ? "best" : "run", curves_colours[i % CURVES_COLOURS], CURVES_RIGHT + 16,
                            y);
            weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.0f\"%s>", CURVES_RIGHT + 38, y + 4,
                            p->lines[i].best ? " font-weight=\"bold\"" : "");
            curves_put_name(svg, p->lines[i].name);
            weir_buf_text(svg, "</text>\n");
        }
    }
    if (row > CURVES_LEGEND)
        weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.0f\">and %zu more</text>\n", CURVES_RIGHT + 38,
                        CURVES_TOP + 10 + 18.0 * CURVES_LEGEND, row - CURVES_LEGEND);
}

void weir_runs_draw(weir_buf *svg, const weir_runs_line *lines, size_t count, const char *what) {
    curves p = {.lines = lines, .count = count};
    curves_find_ends(&p);
    weir_buf_text(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 350\" font-family=\"sans-serif\" "
                       "font-size=\"12\" role=\"img\" aria-label=\"");
    curves_put_name(svg, what);
    weir_buf_printf(svg,
                    ", by epoch\">\n"
                    "<style>text{fill:#444}.paper{fill:#fff}.axis{stroke:#888}.grid{stroke:#ddd}"
                    ".run,.best{fill:none;stroke-linecap:round}.run{stroke-width:1.5;opacity:.75}.best{stroke-width:4}"
                    "@media(prefers-color-scheme:dark){text{fill:#ccc}.paper{fill:#161616}.axis{stroke:#777}"
                    ".grid{stroke:#333}}</style>\n"
                    "<rect class=\"paper\" width=\"860\" height=\"350\"/>\n<text x=\"%.0f\" y=\"16\">",
                    CURVES_LEFT);
    curves_put_name(svg, what);
    weir_buf_text(svg, "</text>\n");
    curves_draw_axes(&p, svg);
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++)
            if (lines[i].best == (pass == 1)) /* the best one above the others */
                curves_draw_line(&p, &lines[i], curves_colours[i % CURVES_COLOURS], svg);
    curves_draw_legend(&p, svg);
    weir_buf_text(svg, "</svg>\n");
}

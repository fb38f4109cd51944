/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale_model.c - how long a step takes on machines that we do not have, from what was counted on this one.
 *
 *   exchange   each round: the latency, divided by the batches that are under way side by side; a message's overhead
 *              for each other rank; and the bytes over the wire. Of rows and edges the share (P - 1) / P lies
 *              elsewhere, as if vertices were dealt out by chance: a clustered graph that is cut well has less.
 *   compute    as measured on one rank: each rank has as many targets, whatever the number of ranks.
 *   sum        rings: 2 (P - 1) / P of the gradients over the wire, and the rows of embeddings that every rank tells
 *              all; of each sum twice log2 P latencies, as if none went on beside another, nor beside the way back.
 *
 * Batches are exchanged ahead, so a step takes the exchange, or compute and sum, whichever is longer.
 *
 * Memory is a part and the targets that the rank has itself, of which more ranks have less each, and what it knows of
 * all targets, which no number of ranks makes less. So that, or the number of targets that are refused, ends a graph
 * that grows, however short a step is. The network, the batches under way and a cache are left out: they do not grow
 * with the graph.
 */
#include <math.h>
#include <stdio.h>

#include <weir/trainer/train/targets.h>

#include "scale_bench.h"

#define TARGETS_REFUSED 4294967295.0                 /* so many are too many                                  */
#define TARGET          5.0                          /* bytes of each: its class, its place in an epoch's list */
#define JUDGED          12.0                         /* more of those for validation and test: day and score  */
#define HELD            (sizeof(weir_target) + 12.0) /* of each that it has: its id and its number, too */
#define GIB             1073741824.0

#define WIDTH  760.0
#define HEIGHT 450.0
#define LEFT   70.0
#define RIGHT  560.0
#define TOP    40.0
#define BOTTOM 370.0

static double wire_ms(const scale_model *m, double bytes) {
    return bytes * 8 / (m->gigabits * 1e9) * 1e3;
}

scale_step scale_step_of(const scale_model *m, uint32_t ranks) {
    double others = ranks - 1.0, share = others / ranks;
    return (scale_step){
        .exchange = m->rounds * (m->latency_us / m->ahead * (ranks > 1) + m->overhead_us * others) * 1e-3 +
                    wire_ms(m, m->remote_bytes * share),
        .compute = m->compute_ms,
        .sum = wire_ms(m, 2 * share * m->sum_bytes + others * m->told_bytes) +
               m->sums * 2 * ceil(log2(ranks)) * m->latency_us * 1e-3,
    };
}

double scale_longest(const scale_step *s) {
    return fmax(s->exchange, s->compute + s->sum);
}

const char *scale_bound(const scale_step *s) {
    if (s->exchange > s->compute + s->sum) return "exchange";
    return s->compute >= s->sum ? "compute" : "sum";
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

scale_memory scale_memory_of(const scale_model *m, uint32_t ranks) {
    double owner = ranks > 256 ? 2 : 1, part = (m->part_bytes_edge + HELD * m->targets_edge) / ranks;
    double targets = (TARGET + owner) * m->targets_edge + JUDGED * m->judged_edge;
    return (scale_memory){.part = m->edges * part / GIB,
                          .targets = m->edges * targets / GIB,
                          .target_count = m->edges * m->targets_edge,
                          .edges_memory = m->memory_gib * GIB / (part + targets),
                          .edges_targets = TARGETS_REFUSED / m->targets_edge};
}

const char *scale_end(const scale_memory *memory) {
    return memory->edges_memory < memory->edges_targets ? "memory" : "targets";
}

bool scale_fits(const scale_model *m, const scale_memory *memory) {
    return m->edges < fmin(memory->edges_memory, memory->edges_targets);
}

void scale_verdict(const scale_model *m, uint32_t ranks, char lines[SCALE_VERDICT][160]) {
    const scale_step step = scale_step_of(m, ranks);
    const scale_memory memory = scale_memory_of(m, ranks);
    snprintf(lines[0], sizeof lines[0], "%.3g edges on %u ranks: the time of a step is bound by %s", m->edges, ranks,
             scale_bound(&step));
    snprintf(lines[1], sizeof lines[1],
             "a rank needs %.2f GiB; %.2f of them, of all %.3g targets, do not shrink with more ranks",
             memory.part + memory.targets, memory.targets, memory.target_count);
    snprintf(lines[2], sizeof lines[2],
             "%s first: %g GiB of a rank hold %.3g edges, the limit of 2^32 targets allows %.3g%s",
             memory.edges_memory < memory.edges_targets ? "memory ends it" : "the limit of targets ends it",
             m->memory_gib, memory.edges_memory, memory.edges_targets,
             scale_fits(m, &memory) ? "" : "; this graph is too large");
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

typedef struct axes {
    double ranks, low, high; /* both logarithmic */
} axes;

static double place_x(const axes *a, double ranks) {
    return LEFT + (RIGHT - LEFT) * log2(ranks) / log2(a->ranks);
}

static double place_y(const axes *a, double ms) {
    return BOTTOM - (BOTTOM - TOP) * log(fmax(ms, a->low) / a->low) / log(a->high / a->low);
}

static double part_of(const scale_step *s, int which) {
    return which == 0 ? s->compute : which == 1 ? s->exchange : which == 2 ? s->sum : scale_longest(s);
}

void scale_plot(const scale_model *model, uint32_t most, const scale_row *rows, size_t count, weir_buf *svg) {
    static const char *const names[] = {"compute", "exchange", "sum of gradients", "a step"};
    static const char *const colours[] = {"#3a7d34", "#1b6ca8", "#c1440e", "#333333"};
    axes a = {most, INFINITY, 0};
    for (uint32_t ranks = 2; ranks <= most; ranks *= 2) {
        scale_step s = scale_step_of(model, ranks);
        for (int i = 0; i < 4; i++) {
            a.low = fmin(a.low, fmax(part_of(&s, i), 1e-3));
            a.high = fmax(a.high, part_of(&s, i));
        }
    }
    for (size_t i = 0; i < count; i++)
        a.high = fmax(a.high, rows[i].step_ms);
    a.low = pow(10, floor(log10(a.low)));
    a.high = pow(10, ceil(log10(a.high)));
    weir_buf_printf(svg,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
                    "font-size=\"12\" role=\"img\" aria-label=\"milliseconds of a training step by ranks\">\n"
                    "<text x=\"%.0f\" y=\"20\">milliseconds of a step by ranks: the model (lines), this machine (dots)"
                    "</text>\n",
                    WIDTH, HEIGHT, LEFT);
    for (int power = (int)lround(log10(a.low)); power <= (int)lround(log10(a.high)); power++) {
        double ms = pow(10, power);
        weir_buf_printf(svg,
                        "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.1f\" "
                        "text-anchor=\"end\">%g</text>\n",
                        LEFT, place_y(&a, ms), RIGHT, LEFT - 6, place_y(&a, ms) + 4, ms);
    }
    for (uint32_t ranks = 1; ranks <= most; ranks *= 4)
        weir_buf_printf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%u</text>\n", place_x(&a, ranks),
                        BOTTOM + 20, ranks);
    for (int i = 0; i < 4; i++) {
        weir_buf_printf(svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colours[i]);
        for (uint32_t ranks = 2; ranks <= most; ranks *= 2) {
            scale_step s = scale_step_of(model, ranks);
            weir_buf_printf(svg, "%c%.1f %.1f", ranks == 2 ? 'M' : 'L', place_x(&a, ranks),
                            place_y(&a, part_of(&s, i)));
        }
        weir_buf_printf(svg, "\"/><text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", RIGHT + 12, TOP + 20 * (i + 1),
                        colours[i], names[i]);
    }
    for (size_t i = 0; i < count; i++)
        weir_buf_printf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"none\" stroke=\"#333\"/>\n",
                        place_x(&a, rows[i].ranks), place_y(&a, rows[i].step_ms));
    char verdict[SCALE_VERDICT][160];
    scale_verdict(model, most, verdict);
    for (unsigned i = 0; i < SCALE_VERDICT; i++)
        weir_buf_printf(svg, "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", LEFT, BOTTOM + 42 + 16 * i, verdict[i]);
    weir_buf_text(svg, "</svg>\n");
}

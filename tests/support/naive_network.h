/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_network.h - the network of nn_fixture.h once more as naive loops in double: from names of tensors and lists of
 * edges, with nothing of the plan, the offsets or the kernels.
 */
#ifndef WEIR_NAIVE_NETWORK_H
#define WEIR_NAIVE_NETWORK_H

#include <stdarg.h>

#include "nn_fixture.h"

#define NN_HIDDEN_MAX 64u /* widest that it computes */
#define NN_EDGES_MAX  64u /* of one node, along one step */

/* FNV-1a, of more than bytes. */
#define NN_MIX(key, value) (((key) ^ (uint64_t)(value)) * 0x100000001b3u)

/* The tensor of that name, which printf composes. Each node asks for each of its tensors: what was found is kept by a
 * hash of the fixture's number, the format, and its %s and %u, because composing names and comparing them took most of
 * a test. */
__attribute__((format(printf, 3, 4))) static inline const double *naive_tensor(const nn_fixture *f,
                                                                               const double *params, const char *format,
                                                                               ...) {
    static struct { uint64_t key, offset; } seen[1024];
    uint64_t key = NN_MIX(0xcbf29ce484222325u, f->serial);
    va_list args;
    va_start(args, format);
    for (const char *at = format; *at; at++) {
        if (*at != '%')
            key = NN_MIX(key, *at);
        else if (*++at == 'u')
            key = NN_MIX(key, va_arg(args, unsigned));
        else
            for (const char *word = va_arg(args, const char *); *word; word++)
                key = NN_MIX(key, *word);
    }
    va_end(args);
    const size_t slot = (key >> 32) % (sizeof seen / sizeof *seen);
    if (seen[slot].key != key) {
        char name[WEIR_NN_TENSOR_NAME_MAX];
        va_start(args, format);
        vsnprintf(name, sizeof name, format, args);
        va_end(args);
        const weir_nn_tensor *tensor = weir_nn_tensor_find(f->nn, name);
        if (!tensor) fail_msg("no tensor %s", name);
        seen[slot].key = key;
        seen[slot].offset = tensor->offset;
    }
    return params + seen[slot].offset;
}

static inline void naive_where(const weir_block_view *v, uint32_t node, uint32_t *hopp, uint32_t *typep) {
    for (uint32_t i = 0; i < (v->hops + 1) * v->types; i++) {
        if (node < v->ranges[i].begin || node >= v->ranges[i].end) continue;
        *hopp = i / v->types;
        *typep = i % v->types;
        return;
    }
    fail_msg("node %u is nowhere", node);
}

static inline void naive_apply(uint32_t in, uint32_t out, const double *x, const double *weight, double *y) {
    for (uint32_t i = 0; i < in; i++) {
        for (uint32_t o = 0; o < out; o++)
            y[o] += x[i] * weight[i * out + o];
    }
}

static inline void naive_relu(uint32_t n, const double *bias, double *y) {
    for (uint32_t i = 0; i < n; i++)
        y[i] = fmax(0, y[i] + bias[i]);
}

/* What layer 1 sees of a type without an encoder is its numbers. */
static inline uint32_t naive_cols(const nn_fixture *f, uint32_t layer, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(f->shape, type);
    assert_int_equal(inputs->bare, nn_bare(f->encoders) || (f->encoders == NN_OF_CATEGORIES && type == 1));
    assert_true(inputs->width <= NN_WIDEST);
    return layer == 1 && inputs->bare ? inputs->width : weir_nn_hidden(f->shape);
}

/* Whether the layer is the last one, of a network without a head. */
static inline bool naive_answers(const nn_fixture *f, uint32_t layer) {
    return nn_headless(f->encoders) && layer == f->batch.block->hops;
}

static inline uint32_t naive_width(const nn_fixture *f, uint32_t layer) {
    return naive_answers(f, layer) ? weir_nn_outputs(f->shape) : weir_nn_hidden(f->shape);
}

static inline uint32_t naive_heads(const nn_fixture *f, uint32_t layer) {
    return naive_answers(f, layer) ? 1 : weir_nn_heads(f->shape);
}

/* From one node to the next, of what a layer sees. */
static inline uint32_t naive_stride(const nn_fixture *f, uint32_t layer) {
    uint32_t hidden = weir_nn_hidden(f->shape);
    return layer == 1 && hidden < NN_WIDEST ? NN_WIDEST : hidden;
}

static inline void naive_encode(const nn_fixture *f, const double *params, uint32_t node, double *h) {
    const weir_block_view *v = f->batch.block;
    uint32_t hop = 0, type = 0, hidden = weir_nn_hidden(f->shape);
    naive_where(v, node, &hop, &type);
    const weir_nn_inputs *inputs = weir_nn_vertex(f->shape, type);
    uint32_t row = v->input_of[node] - v->input_ranges[type].begin;
    double x[64] = {0};
    for (uint32_t i = 0; i < inputs->width; i++)
        x[i] = (double)f->numbers[type][row * inputs->width + i];
    if (inputs->bare) {
        memcpy(h, x, inputs->width * sizeof *h);
        return;
    }
    if (inputs->width)
        naive_apply(inputs->width, hidden, x, naive_tensor(f, params, "encode.%s.weight", inputs->name), h);
    for (uint32_t c = 0; c < inputs->category_count; c++) {
        double one = 1;
        uint32_t slot = f->slots[type][row * inputs->category_count + c];
        const double *table =
            inputs->categories[c].feature == WEIR_SCHEMA_NONE
                ? naive_tensor(f, params, "encode.%s.embedding", inputs->name)
                : naive_tensor(f, params, "encode.%s.%s.embedding", inputs->name, inputs->categories[c].name);
        if (slot != WEIR_NO_SLOT) naive_apply(1, hidden, &one, table + slot * hidden, h);
    }
    naive_relu(hidden, naive_tensor(f, params, "encode.%s.bias", inputs->name), h);
}

/* --- what is gathered along a step --- */

/* One step of one node: its edges, and what the layer sees of its children and itself. */
typedef struct naive_gather {
    const nn_fixture *f;
    const double *params, *below;
    uint32_t layer, step, node;
    uint32_t edges[NN_EDGES_MAX], count;
    uint32_t cols, parent_cols, width, hidden; /* width: of an edge's numbers and its code */
} naive_gather;

static inline const double *naive_row(const naive_gather *g, uint32_t node) {
    return g->below + node * naive_stride(g->f, g->layer);
}

static inline const double *naive_child(const naive_gather *g, uint32_t i) {
    return naive_row(g, g->f->batch.block->edges[g->step].children[g->edges[i]]);
}

/* A tensor of the step's relation and direction. */
static inline const double *naive_own(const naive_gather *g, const char *name) {
    const weir_sample_step *s = &nn_steps[g->step];
    return naive_tensor(g->f, g->params, "layer%u.%s.%s.%s", g->layer, weir_nn_edge(g->f->shape, s->relation)->name,
                        s->direction == WEIR_OUT ? "out" : "in", name);
}

static inline bool naive_same_type(const naive_gather *g) {
    return weir_nn_parent_of(g->f->shape, g->step) == weir_nn_child_of(g->f->shape, g->step);
}

/* An edge's numbers, and the code of its age. */
static inline void naive_edge(const naive_gather *g, uint32_t i, double *x) {
    const weir_block_view *v = g->f->batch.block;
    const uint32_t edge = g->edges[i], width = g->width - 8;
    const double age = (double)(v->before_us[v->groups[g->node]] - v->edges[g->step].times[edge]) / 1e6;
    const double first = log(2), space = (log1p(400.0 * 86400) - first) / 7;
    for (uint32_t c = 0; c < width; c++)
        x[c] = (double)g->f->edges[g->step][edge * width + c];
    for (uint32_t k = 0; k < 8; k++)
        x[width + k] = exp(-pow((log1p(age) - first - k * space) / space, 2));
}

/* Each returns how many rows of the weight are its own, and adds what it gathers times these to out. */

static inline uint32_t naive_mean(const naive_gather *g, double *out) {
    double m[NN_HIDDEN_MAX] = {0};
    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t c = 0; c < g->cols; c++)
            m[c] += naive_child(g, i)[c] / g->count;
    naive_apply(g->cols, g->hidden, m, naive_own(g, "weight"), out);
    return g->cols;
}

/* Of all heads: the scores of child i, and in value what is mixed of it. Of GAT, where the vertex is of the children's
 * type, the one behind the last is the vertex, by an edge of which nothing is known, and its query is made of its
 * value. */
static inline void naive_scores(const naive_gather *g, uint32_t i, double *value, double *scores) {
    const bool gat = g->f->network == WEIR_NN_GAT;
    const uint32_t heads = naive_heads(g->f, g->layer), wide = g->hidden / heads, cols = gat ? heads : g->hidden;
    const bool joined = gat && naive_same_type(g);
    double z[NN_HIDDEN_MAX] = {0}, edge[NN_WIDEST] = {0}, own[NN_HIDDEN_MAX] = {0};
    memset(value, 0, g->hidden * sizeof *value);
    naive_apply(g->cols, g->hidden, i < g->count ? naive_child(g, i) : naive_row(g, g->node), naive_own(g, "weight"),
                value);
    if (i < g->count) naive_edge(g, i, edge);
    if (joined) naive_apply(g->cols, g->hidden, naive_row(g, g->node), naive_own(g, "weight"), own);
    for (uint32_t c = 0; joined && c < g->hidden; c++)
        z[c / wide] += own[c] * naive_own(g, "query.weight")[c];
    if (!joined) naive_apply(g->parent_cols, cols, naive_row(g, g->node), naive_own(g, "query.weight"), z);
    naive_apply(g->width, cols, edge, naive_own(g, "edge.weight"), z);
    const double *a = naive_own(g, "score.weight");
    for (uint32_t c = 0; c < g->hidden; c++) {
        const uint32_t h = c / wide;
        if (c % wide == 0) scores[h] = 0;
        if (gat) z[h] += a[c] * value[c];
        if (!gat) scores[h] += a[c] * (z[c] + value[c] > 0 ? 1 : 0.2) * (z[c] + value[c]);
    }
    for (uint32_t h = 0; gat && h < heads; h++)
        scores[h] = z[h] > 0 ? z[h] : 0.2 * z[h];
}

/* What a share is multiplied with: the kernel's own mask, as of layers below. */
static inline void naive_kept_shares(const naive_gather *g, uint32_t count, uint32_t heads,
                                     weir_real kept[NN_EDGES_MAX * NN_HIDDEN_MAX]) {
    const weir_nn_drop *drop = g->f->drop;
    const uint32_t offsets[] = {0, count};
    const uint64_t key = g->node - g->f->batch.block->edges[g->step].parent_begin;
    for (uint32_t i = 0; i < count * heads; i++)
        kept[i] = 1;
    if (!drop || drop->shares == 0) return;
    weir_dropout dropout = weir_nn_dropout_of(drop, g->layer << 16 | (g->step + 1));
    dropout.rate = drop->shares;
    dropout.keys = drop->keys ? &drop->keys[g->node] : &key;
    weir_nn_kernels(g->f->nn)->segment_dropout(weir_nn_kernels(g->f->nn),
                                               &(weir_segments){.count = 1, .offsets = offsets}, heads, &dropout, kept);
}

static inline uint32_t naive_attention(const naive_gather *g, double *out) {
    const uint32_t heads = naive_heads(g->f, g->layer), wide = g->hidden / heads;
    static double values[NN_EDGES_MAX][NN_HIDDEN_MAX], scores[NN_EDGES_MAX][NN_HIDDEN_MAX];
    const uint32_t count = g->count + (g->f->network == WEIR_NN_GAT && naive_same_type(g));
    static weir_real kept[NN_EDGES_MAX * NN_HIDDEN_MAX];
    naive_kept_shares(g, count, heads, kept);
    for (uint32_t i = 0; i < count; i++)
        naive_scores(g, i, values[i], scores[i]);
    for (uint32_t c = 0; c < g->hidden; c++) {
        double sum = 0, best = -INFINITY, mixed = 0;
        for (uint32_t i = 0; i < count; i++)
            best = fmax(best, scores[i][c / wide]);
        for (uint32_t i = 0; i < count; i++) {
            sum += exp(scores[i][c / wide] - best);
            mixed += (double)kept[i * heads + c / wide] * exp(scores[i][c / wide] - best) * values[i][c];
        }
        if (count) out[c] += mixed / sum;
    }
    return g->cols;
}

/* One more than the edges of a child by the next hop's step along the same relation, back if it is followed back; where
 * there is no such step one more than `else_count`. */
static inline uint32_t naive_degree(const naive_gather *g, uint32_t of, uint32_t else_count) {
    const weir_block_view *v = g->f->batch.block;
    const weir_sample_step *s = &nn_steps[g->step];
    for (unsigned other = 0; other < 2; other++) {
        for (uint32_t t = 0; t < v->steps; t++) {
            const bool back = nn_steps[t].direction != s->direction;
            if (nn_steps[t].hop != s->hop + 1 || nn_steps[t].relation != s->relation || back != (other == 0)) continue;
            if (!back && !naive_same_type(g)) continue;
            uint32_t count = 0;
            for (uint32_t i = 0; i < v->edges[t].count; i++)
                count += v->edges[t].parents[i] == of;
            return 1 + count;
        }
    }
    return 1 + else_count;
}

static inline uint32_t naive_gcn(const naive_gather *g, double *out) {
    double m[NN_HIDDEN_MAX] = {0};
    for (uint32_t i = 0; i < g->count; i++) {
        const uint32_t child = g->f->batch.block->edges[g->step].children[g->edges[i]];
        const double weight = 1 / sqrt((1.0 + g->count) * naive_degree(g, child, g->count));
        for (uint32_t c = 0; c < g->cols; c++)
            m[c] += weight * naive_child(g, i)[c];
    }
    for (uint32_t c = 0; naive_same_type(g) && c < g->cols; c++)
        m[c] += naive_row(g, g->node)[c] / (1.0 + g->count);
    naive_apply(g->cols, g->hidden, m, naive_own(g, "weight"), out);
    return g->cols;
}

/* 0 where there are no children. */
static inline double naive_most(const naive_gather *g, uint32_t c) {
    double most = g->count ? naive_child(g, 0)[c] : 0;
    for (uint32_t i = 1; i < g->count; i++)
        most = fmax(most, naive_child(g, i)[c]);
    return most;
}

static inline uint32_t naive_max(const naive_gather *g, double *out) {
    double m[NN_HIDDEN_MAX] = {0};
    for (uint32_t c = 0; c < g->cols; c++)
        m[c] = naive_most(g, c);
    naive_apply(g->cols, g->hidden, m, naive_own(g, "weight"), out);
    return g->cols;
}

static inline uint32_t naive_gin(const naive_gather *g, double *out) {
    double sum[NN_HIDDEN_MAX] = {0}, z[NN_HIDDEN_MAX] = {0};
    for (uint32_t c = 0; c < g->cols; c++) {
        for (uint32_t i = 0; i < g->count; i++)
            sum[c] += g->f->each * naive_child(g, i)[c];
        if (naive_same_type(g)) sum[c] += (1 + *naive_own(g, "epsilon")) * naive_row(g, g->node)[c];
    }
    naive_apply(g->cols, g->hidden, sum, naive_own(g, "hidden.weight"), z);
    naive_relu(g->hidden, naive_own(g, "hidden.bias"), z);
    naive_apply(g->hidden, g->hidden, z, naive_own(g, "weight"), out);
    return g->hidden;
}

static inline uint32_t naive_pna(const naive_gather *g, double *out) {
    double m[9 * NN_HIDDEN_MAX] = {0}, scale = log(1 + g->f->each * g->count);
    for (uint32_t c = 0; g->count && c < g->cols; c++) {
        double mean = 0, squares = 0;
        for (uint32_t i = 0; i < g->count; i++)
            mean += naive_child(g, i)[c] / g->count;
        for (uint32_t i = 0; i < g->count; i++)
            squares += pow(naive_child(g, i)[c] - mean, 2) / g->count;
        const double said[] = {mean, naive_most(g, c), sqrt(squares + 1e-5)}, scales[] = {1, scale, 1 / scale};
        for (uint32_t k = 0; k < 9; k++)
            m[k * g->cols + c] = said[k % 3] * scales[k / 3];
    }
    naive_apply(9 * g->cols, g->hidden, m, naive_own(g, "weight"), out);
    return 9 * g->cols;
}

/* [mean of the edges' numbers | mean of their codes | log(1 + children)] */
static inline void naive_edges(const naive_gather *g, uint32_t rows, double *out) {
    double m[NN_WIDEST + 1] = {0}, edge[NN_WIDEST];
    assert_true(g->width <= NN_WIDEST);
    for (uint32_t i = 0; i < g->count; i++) {
        naive_edge(g, i, edge);
        for (uint32_t c = 0; c < g->width; c++)
            m[c] += edge[c] / g->count;
    }
    m[g->width] = log(1 + g->f->each * g->count);
    naive_apply(g->width + 1, g->hidden, m, naive_own(g, "weight") + rows * g->hidden, out);
}

static inline void naive_step(const nn_fixture *f, const double *params, uint32_t layer, uint32_t step, uint32_t node,
                              const double *below, double *out) {
    static uint32_t (*const ways[WEIR_NN_NETWORKS])(const naive_gather *, double *) = {
        [WEIR_NN_MEAN] = naive_mean,     [WEIR_NN_ATTENTION] = naive_attention,
        [WEIR_NN_GAT] = naive_attention, [WEIR_NN_GCN] = naive_gcn,
        [WEIR_NN_MAX] = naive_max,       [WEIR_NN_GIN] = naive_gin,
        [WEIR_NN_PNA] = naive_pna};
    const weir_block_edges *e = &f->batch.block->edges[step];
    naive_gather g = {.f = f, .params = params, .below = below, .layer = layer, .step = step, .node = node};
    g.cols = naive_cols(f, layer, nn_children[step]);
    g.parent_cols = naive_cols(f, layer, weir_nn_parent_of(f->shape, step));
    g.width = weir_nn_edge(f->shape, nn_steps[step].relation)->width + 8;
    g.hidden = naive_width(f, layer);
    for (uint32_t i = 0; i < e->count; i++)
        if (e->parents[i] == node) g.edges[g.count++] = i;
    assert_true(g.hidden <= NN_HIDDEN_MAX && g.count < NN_EDGES_MAX);
    naive_edges(&g, ways[f->network](&g, out), out);
}

/* --- a layer --- */

/* A GCN and a GAT have none where a loop stands for it: of the fixture's type a, hops 0 and 1 of which follow aa; a
 * third hop does not. */
static inline bool naive_has_self(const nn_fixture *f, uint32_t layer, uint32_t type) {
    const bool deep = nn_adds(f->encoders) && layer == 1;
    return (f->network != WEIR_NN_GCN && f->network != WEIR_NN_GAT) || type != 0 || deep;
}

static inline void naive_norm(uint32_t n, const double *gain, const double *shift, double *y) {
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += y[i] / n;
    for (uint32_t i = 0; i < n; i++)
        variance += (y[i] - mean) * (y[i] - mean) / n;
    for (uint32_t i = 0; i < n; i++)
        y[i] = (y[i] - mean) / sqrt(variance + 1e-5) * gain[i] + shift[i];
}

static inline void naive_norm_of(const nn_fixture *f, const double *params, uint32_t layer, uint32_t node, double *y) {
    uint32_t hop = 0, type = 0;
    naive_where(f->batch.block, node, &hop, &type);
    const char *name = weir_nn_vertex(f->shape, type)->name;
    const double *gain = naive_tensor(f, params, "layer%u.%s.norm.gain", layer, name);
    naive_norm(weir_nn_hidden(f->shape), gain, naive_tensor(f, params, "layer%u.%s.norm.bias", layer, name), y);
}

static inline void naive_layer(const nn_fixture *f, const double *params, uint32_t layer, uint32_t node,
                               const double *below, double *out) {
    uint32_t hop = 0, type = 0, hidden = naive_width(f, layer);
    const double one = 1;
    naive_where(f->batch.block, node, &hop, &type);
    const char *name = weir_nn_vertex(f->shape, type)->name;
    if (naive_has_self(f, layer, type))
        naive_apply(naive_cols(f, layer, type), hidden, below + node * naive_stride(f, layer),
                    naive_tensor(f, params, "layer%u.%s.self.weight", layer, name), out);
    for (uint32_t s = 0; s < f->batch.block->steps; s++) {
        const weir_block_edges *e = &f->batch.block->edges[s];
        if (node >= e->parent_begin && node < e->parent_end) naive_step(f, params, layer, s, node, below, out);
    }
    if (naive_answers(f, layer)) {
        naive_apply(1, hidden, &one, naive_tensor(f, params, "layer%u.%s.bias", layer, name), out);
        return;
    }
    naive_relu(hidden, naive_tensor(f, params, "layer%u.%s.bias", layer, name), out);
    if (nn_feeds_forward(f->encoders)) {
        double dense[NN_HIDDEN_MAX] = {0};
        naive_apply(hidden, hidden, out, naive_tensor(f, params, "layer%u.%s.dense.weight", layer, name), dense);
        naive_apply(1, hidden, &one, naive_tensor(f, params, "layer%u.%s.dense.bias", layer, name), dense);
        memcpy(out, dense, hidden * sizeof *out);
    }
    if (!nn_normless(f->encoders) && !nn_has_stream(f->encoders)) naive_norm_of(f, params, layer, node, out);
}

/* The mask is the kernel's own: what is dropped is tested apart, that it is dropped both ways here. */
static inline void naive_dropout(const nn_fixture *f, const weir_nn_drop *drop, uint32_t layer, uint32_t nodes,
                                 double *out) {
    uint32_t hidden = weir_nn_hidden(f->shape);
    weir_real *mask = fixture_array((size_t)nodes * hidden, sizeof *mask);
    weir_dropout dropout = weir_nn_dropout_of(drop, layer);
    for (size_t i = 0; i < (size_t)nodes * hidden; i++)
        mask[i] = 1;
    weir_nn_kernels(f->nn)->dropout(weir_nn_kernels(f->nn), nodes, hidden, &dropout, mask);
    for (size_t i = 0; i < (size_t)nodes * hidden; i++)
        out[i] *= (double)mask[i];
    free(mask);
}

/* The rows of the last of so many layers, to be freed. */
static inline double *naive_layers(const nn_fixture *f, const double *params, const weir_nn_drop *drop,
                                   uint32_t layers) {
    const weir_block_view *v = f->batch.block;
    double *below = fixture_array((size_t)v->nodes * naive_stride(f, 1), sizeof *below), *stream = NULL;
    for (uint32_t n = 0; n < v->nodes; n++)
        naive_encode(f, params, n, below + n * naive_stride(f, 1));
    for (uint32_t layer = 1; layer <= layers; layer++) {
        const uint32_t width = naive_width(f, layer), nodes = v->hop_end[v->hops - layer];
        double *out = fixture_array((size_t)v->nodes * width, sizeof *out);
        for (uint32_t n = 0; n < nodes; n++)
            naive_layer(f, params, layer, n, below, out + n * width);
        if (drop && !naive_answers(f, layer)) naive_dropout(f, drop, layer, nodes, out);
        const bool adds = nn_adds(f->encoders) && layer > 1 && !naive_answers(f, layer);
        const double *added = stream ? stream : below;
        for (size_t i = 0; adds && i < nodes * width; i++)
            out[i] += added[i];
        free(below);
        below = out;
        free(stream);
        stream = NULL;
        if (!nn_has_stream(f->encoders) || naive_answers(f, layer)) continue;
        stream = fixture_array((size_t)v->nodes * width, sizeof *stream);
        memcpy(stream, out, (size_t)nodes * width * sizeof *stream);
        for (uint32_t n = 0; n < nodes; n++)
            naive_norm_of(f, params, layer, n, out + n * width);
    }
    free(stream);
    return below;
}

/* drop may be NULL. logits: targets x outputs. */
static inline void naive_forward(const nn_fixture *f, const double *params, const weir_nn_drop *drop, double *logits) {
    const weir_block_view *v = f->batch.block;
    uint32_t hidden = weir_nn_hidden(f->shape), outputs = weir_nn_outputs(f->shape);
    if (naive_answers(f, v->hops)) {
        double *rows = naive_layers(f, params, drop, v->hops);
        memcpy(logits, rows, v->targets * outputs * sizeof *logits);
        free(rows);
        return;
    }
    double *most = fixture_array((size_t)v->targets * hidden, sizeof *most), one = 1;
    memset(logits, 0, v->targets * outputs * sizeof *logits);
    for (uint32_t layer = 1; layer <= v->hops; layer++) {
        const double *weight = naive_tensor(f, params, "head.weight");
        if (layer < v->hops && !nn_concat(f->encoders) && f->encoders != NN_MOST) continue;
        double *rows = naive_layers(f, params, drop, layer);
        if (nn_concat(f->encoders)) weight += (layer - 1) * hidden * outputs;
        for (uint32_t i = 0; i < v->targets * hidden; i++)
            most[i] = layer > 1 && f->encoders == NN_MOST ? fmax(most[i], rows[i]) : rows[i];
        for (uint32_t t = 0; (layer == v->hops || nn_concat(f->encoders)) && t < v->targets; t++)
            naive_apply(hidden, outputs, most + t * hidden, weight, logits + t * outputs);
        free(rows);
    }
    for (uint32_t t = 0; t < v->targets; t++)
        naive_apply(1, outputs, &one, naive_tensor(f, params, "head.bias"), logits + t * outputs);
    free(most);
}

#endif /* WEIR_NAIVE_NETWORK_H */

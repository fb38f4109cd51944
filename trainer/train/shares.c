/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.c - rows of embeddings on their way between the ranks that have them and those that compute with them.
 *
 * What a batch brings lies as its keys do (wants.c): rows of other ranks as they come, and this rank's own behind them.
 * Gradients go the same way back, and who has a row adds them rank after rank, its own where its number is: the same
 * bits for as many ranks (TRAIN-R4).
 */
#include <string.h>

#include <weir/inference/nn/tape.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "shares.h"

#define SHARES_NO_MEMORY "for embeddings; lower --hidden or the schema's buckets, or omit a type from --embed-vertices"
#define SHARES_PIECE     (1u << 18) /* numbers that are gathered at once */

/* --- whose each row is -------------------------------------------------------------------------------------------- */

/* Slots of what a rank says it has; the first to say so has it. */
static weir_err shares_assign(weir_train_shares_table *table, uint32_t rank, const char *slots, uint64_t bytes) {
    for (uint64_t at = 0; at + sizeof(uint32_t) <= bytes; at += sizeof(uint32_t)) {
        uint32_t slot;
        memcpy(&slot, slots + at, sizeof slot);
        if (slot >= table->slots)
            return WEIR_ERR(WEIR_ECORRUPT, "rank %u has another snapshot; all ranks need parts of one cutting", rank);
        if (table->owner_of[slot] > rank) table->owner_of[slot] = (uint16_t)rank;
    }
    return WEIR_OK;
}

/* Of known vertices. With parts, each rank tells the others the slots of its own. Without, each knows all. */
static weir_err shares_find_owners(const weir_train_shares *s, weir_train_shares_table *table,
                                   const weir_train_owners *owners, weir_comm *comm) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(owners->snapshot, table->type);
    const weir_nn_inputs *inputs = weir_nn_vertex(s->shape, table->type);
    weir_buf own = {0}, all = {0};
    weir_err err = WEIR_OK;
    memset(table->owner_of, UINT8_MAX, table->slots * sizeof *table->owner_of);
    for (uint64_t i = 0; !err && i < v->own; i++) {
        uint32_t slot = weir_nn_slot_of(inputs, v->ids[i].low);
        WEIR_ASSERT(slot != WEIR_NO_SLOT);
        if (owners->part)
            weir_buf_append(&own, &slot, sizeof slot);
        else
            err = shares_assign(table, weir_train_owner(owners, table->type, i), (const char *)&slot, sizeof slot);
    }
    if (!err) err = weir_buf_err(&own);
    if (!err && owners->part) err = weir_comm_gather(comm, own.bytes, own.length, &all, s->received_bytes);
    const char *at = all.bytes;
    for (uint32_t rank = 0; !err && owners->part && rank < s->ranks; at += s->received_bytes[rank++])
        err = shares_assign(table, rank, at, s->received_bytes[rank]);
    weir_buf_free(&own);
    weir_buf_free(&all);
    return err;
}

uint32_t weir_train_shares_count(const weir_train_shares_table *table, uint32_t rank) {
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < table->slots; slot++)
        count += table->owner_of[slot] == rank;
    return count;
}

/* Buckets are dealt out in turns: what is in one is hashed, so that turns are even whatever the values are. */
static weir_err shares_open_table(const weir_train_shares *s, weir_train_shares_table *table,
                                  const weir_train_owners *owners, weir_comm *comm) {
    const weir_nn_category *category = &weir_nn_vertex(s->shape, table->type)->categories[table->category];
    weir_err err = WEIR_OK;
    table->slots = category->slots;
    table->owner_of = weir_calloc(table->slots, sizeof *table->owner_of);
    if (!table->owner_of) return WEIR_NOMEM(SHARES_NO_MEMORY);
    if (category->feature == WEIR_SCHEMA_NONE) err = shares_find_owners(s, table, owners, comm);
    for (uint32_t slot = 0; category->feature != WEIR_SCHEMA_NONE && slot < table->slots; slot++)
        table->owner_of[slot] = (uint16_t)(slot % s->ranks);
    if (err) return err;
    uint32_t count = weir_train_shares_count(table, s->rank);
    table->own = weir_calloc(count + 1, sizeof *table->own);
    if (!table->own) return WEIR_NOMEM(SHARES_NO_MEMORY);
    for (uint32_t slot = 0; slot < table->slots; slot++)
        if (table->owner_of[slot] == s->rank) table->own[table->own_count++] = slot;
    WEIR_ASSERT(table->own_count == count);
    return WEIR_OK;
}

/* Which embeddings are shared out, into tables; NULL: counted alone. */
static uint32_t shares_list_tables(const weir_nn_shape *shape, weir_train_shares_table *tables) {
    uint32_t count = 0;
    for (uint32_t type = 0; type < weir_nn_types(shape); type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(shape, type);
        for (uint32_t c = 0; weir_nn_sees(shape, type) && c < inputs->category_count; c++) {
            const weir_nn_category *category = &inputs->categories[c];
            if (category->feature != WEIR_SCHEMA_NONE && category->slots < WEIR_TRAIN_SHARED_SLOTS_MIN) continue;
            if (tables) tables[count] = (weir_train_shares_table){.type = type, .category = c};
            count++;
        }
    }
    return count;
}

weir_err weir_train_shares_open(const weir_train_owners *owners, const weir_nn_shape *shape, weir_comm *comm,
                                weir_train_shares **sharesp) {
    uint32_t tables = shares_list_tables(shape, NULL);
    *sharesp = NULL;
    if (!tables) return WEIR_OK;
    if (owners->ranks >= UINT16_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%u ranks share embeddings; at most %u can", owners->ranks, UINT16_MAX - 1);
    weir_train_shares *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM(SHARES_NO_MEMORY);
    s->shape = shape;
    s->rank = owners->rank;
    s->ranks = owners->ranks;
    s->tables = weir_calloc(tables, sizeof *s->tables);
    s->served = weir_calloc(s->ranks, sizeof *s->served);
    s->wanted = weir_calloc(s->ranks, sizeof *s->wanted);
    s->received_bytes = weir_calloc(s->ranks, sizeof *s->received_bytes);
    bool all = s->tables && s->served && s->wanted && s->received_bytes;
    weir_err err = all ? WEIR_OK : WEIR_NOMEM(SHARES_NO_MEMORY);
    if (!err) s->table_count = shares_list_tables(shape, s->tables);
    WEIR_ASSERT(s->table_count <= UINT16_MAX); /* keys of wants.c; there are no more by WEIR_NN_PARAMETERS_MAX */
    for (uint32_t i = 0; !err && i < s->table_count; i++)
        err = shares_open_table(s, &s->tables[i], owners, comm);
    if (err) {
        weir_train_shares_close(s);
        return err;
    }
    *sharesp = s;
    return WEIR_OK;
}

void weir_train_shares_close(weir_train_shares *shares) {
    if (!shares) return;
    for (uint32_t i = 0; i < shares->table_count; i++) {
        weir_free(shares->tables[i].owner_of);
        weir_free(shares->tables[i].own);
    }
    weir_kernel_room_release(&shares->brought);
    weir_kernel_room_release(&shares->gradients);
    weir_kernel_room_release(&shares->packed);
    weir_kernel_room_release(&shares->rows);
    weir_buf_free(&shares->sent);
    weir_buf_free(&shares->received);
    weir_free(shares->tables);
    weir_free(shares->served);
    weir_free(shares->wanted);
    weir_free(shares->received_bytes);
    weir_free(shares);
}

weir_err weir_train_shares_network(const weir_train_shares *shares, const weir_kernels *kernels, weir_nn **nnp) {
    weir_nn_held *held = weir_calloc(shares->table_count, sizeof *held);
    *nnp = NULL;
    if (!held) return WEIR_NOMEM(SHARES_NO_MEMORY);
    for (uint32_t i = 0; i < shares->table_count; i++) {
        const weir_train_shares_table *table = &shares->tables[i];
        held[i] = (weir_nn_held){table->type, table->category, table->own, table->own_count};
    }
    weir_err err = weir_nn_open_share(shares->shape, kernels, held, shares->table_count, nnp);
    weir_free(held);
    return err;
}

uint32_t weir_train_shares_row(const weir_train_shares_table *table, uint32_t slot) {
    uint32_t begin = 0, end = table->own_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (table->own[middle] < slot)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* --- a batch ------------------------------------------------------------------------------------------------------ */

static const weir_train_served *shares_runs(const weir_train_wants *wants, size_t *countp) {
    *countp = wants->runs.length / sizeof(weir_train_served);
    return (const weir_train_served *)(const void *)wants->runs.bytes;
}

static const uint32_t *shares_rows(const weir_train_wants *wants, const weir_train_served *run) {
    return (const uint32_t *)(const void *)wants->rows.bytes + run->begin;
}

/* Where the rows of a table begin in the flat array. */
static uint64_t shares_offset(const weir_nn *nn, const weir_train_shares_table *table) {
    return weir_nn_plan_of(nn)->encode[table->type].categories[table->category];
}

weir_err weir_train_shares_mark(const weir_train_shares *s, const weir_train_wants *wants, weir_nn_rows *rows) {
    size_t runs;
    const weir_train_served *run = shares_runs(wants, &runs);
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < runs; i++) {
        const weir_train_shares_table *table = &s->tables[run[i].table];
        err = weir_nn_rows_of_held(rows, table->type, table->category, shares_rows(wants, &run[i]),
                                   run[i].end - run[i].begin);
    }
    return err;
}

/* What comes must be as much as was expected of each. numbers: in the kernels' memory. */
static weir_err shares_exchange(weir_train_shares *s, const weir_kernels *k, const weir_real *numbers,
                                const uint64_t *sent, const uint64_t *expected, weir_comm *comm) {
    weir_err err = WEIR_OK;
    const void *from = numbers;
    weir_buf_clear(&s->sent);
    weir_buf_clear(&s->received);
    if (!k->unified) {
        uint64_t bytes = 0;
        for (uint32_t rank = 0; rank < s->ranks; rank++)
            bytes += sent[rank];
        char *copy = weir_buf_reserve(&s->sent, bytes);
        if (copy) k->to_host(k, copy, numbers, bytes);
        from = copy;
        err = weir_buf_err(&s->sent);
    }
    if (!err) err = weir_comm_exchange(comm, from, sent, &s->received, s->received_bytes);
    for (uint32_t rank = 0; !err && rank < s->ranks; rank++)
        if (s->received_bytes[rank] != expected[rank])
            err = WEIR_ERR(WEIR_ECORRUPT,
                           "rank %u sent %llu bytes of embeddings in place of %llu; all ranks need the same program",
                           rank, (unsigned long long)s->received_bytes[rank], (unsigned long long)expected[rank]);
    return err;
}

weir_err weir_train_shares_pull(weir_train_shares *s, const weir_nn *nn, const weir_real *params,
                                const weir_train_wants *wants, weir_comm *comm, weir_nn_brought *broughtp) {
    const weir_kernels *k = weir_nn_kernels(nn);
    uint32_t hidden = weir_nn_hidden(s->shape);
    size_t row = hidden * sizeof *params, count = wants->keys.length / sizeof(uint64_t), packed = 0, runs;
    const weir_train_served *run = shares_runs(wants, &runs);
    for (uint32_t rank = 0; rank < s->ranks; rank++) {
        s->served[rank] = 0;
        s->wanted[rank] = wants->bytes[rank] / sizeof(uint64_t) * row;
    }
    for (size_t i = 0; i < runs; i++)
        if (run[i].rank != s->rank) s->served[run[i].rank] += (run[i].end - run[i].begin) * row;
    for (uint32_t rank = 0; rank < s->ranks; rank++)
        packed += s->served[rank] / row;
    const void *rows_of_batch;
    weir_err err = weir_kernel_room_grow(&s->brought, k, count * row);
    if (!err) err = weir_kernel_room_grow(&s->gradients, k, count * row);
    if (!err) err = weir_kernel_room_grow(&s->packed, k, packed * row);
    if (!err) err = weir_kernel_room_bring(&s->rows, k, wants->rows.bytes, wants->rows.length, &rows_of_batch);
    if (err) return err;

    /* Of this rank's rows: what others get, and what it reads itself. */
    weir_real *to = s->packed.memory, *brought = s->brought.memory,
              *own = brought ? brought + (size_t)wants->remote * hidden : NULL;
    for (size_t i = 0; i < runs; i++) {
        weir_real **at = run[i].rank == s->rank ? &own : &to;
        uint32_t rows = run[i].end - run[i].begin;
        k->zero(k, *at, rows * row);
        k->embed(k, rows, hidden, (const uint32_t *)rows_of_batch + run[i].begin, 1,
                 params + shares_offset(nn, &s->tables[run[i].table]), *at);
        *at += (size_t)rows * hidden;
    }
    WEIR_ASSERT(own == NULL || own == brought + count * hidden);
    err = k->finish(k);
    if (!err) err = shares_exchange(s, k, s->packed.memory, s->served, s->wanted, comm);
    if (err) return err;
    if (wants->remote) k->to_device(k, brought, s->received.bytes, wants->remote * row);
    if (count) k->zero(k, s->gradients.memory, count * row);
    *broughtp = (weir_nn_brought){brought, s->gradients.memory, (uint32_t)count};
    return WEIR_OK;
}

weir_err weir_train_shares_push(weir_train_shares *s, const weir_nn *nn, const weir_train_wants *wants, weir_comm *comm,
                                weir_real *gradients) {
    const weir_kernels *k = weir_nn_kernels(nn);
    uint32_t hidden = weir_nn_hidden(s->shape);
    size_t runs;
    const weir_train_served *run = shares_runs(wants, &runs);
    const void *rows_of_batch = k->unified ? wants->rows.bytes : s->rows.memory, *received; /* as it pulled them */
    weir_err err = shares_exchange(s, k, s->gradients.memory, s->wanted, s->served, comm);
    if (!err) err = weir_kernel_room_bring(&s->packed, k, s->received.bytes, s->received.length, &received);
    if (err) return err;
    const weir_real *from = received, *own = s->gradients.memory;
    if (own) own += (size_t)wants->remote * hidden;
    for (size_t i = 0; i < runs; i++) { /* by rank: TRAIN-R4 */
        const weir_real **at = run[i].rank == s->rank ? &own : &from;
        uint32_t rows = run[i].end - run[i].begin;
        k->embed_back(k, rows, hidden, (const uint32_t *)rows_of_batch + run[i].begin, 1, *at,
                      gradients + shares_offset(nn, &s->tables[run[i].table]));
        *at += (size_t)rows * hidden;
    }
    return WEIR_OK;
}

/* --- all rows ----------------------------------------------------------------------------------------------------- */

/* What a gathering is done in. */
typedef struct shares_gathering {
    const weir_train_shares *shares; /* NULL: this rank has all */
    bool puts;                       /* into the sink           */
    const weir_nn *nn;
    const weir_real *flat;
    weir_comm *comm;
    const weir_train_sink *sink;
    weir_real *piece; /* in the host's memory */
    weir_buf lent, received;
    uint64_t *lengths, *received_bytes, *places;
} shares_gathering;

/* The table of a tensor; NULL: every rank has all of it. */
static const weir_train_shares_table *shares_table_of(const weir_train_shares *s, const weir_nn *nn,
                                                      const weir_nn_tensor *tensor) {
    if (!tensor->held) return NULL;
    uint32_t i = 0;
    while (i < s->table_count && shares_offset(nn, &s->tables[i]) != tensor->offset)
        i++;
    WEIR_ASSERT(i < s->table_count);
    return &s->tables[i];
}

/* Rows [begin, end) of all, which lie next to each other in each share, to rank 0, and there into the piece. */
static weir_err shares_gather_rows(shares_gathering *g, const weir_train_shares_table *table,
                                   const weir_nn_tensor *tensor, uint32_t begin, uint32_t end) {
    uint32_t first = weir_train_shares_row(table, begin), last = weir_train_shares_row(table, end);
    size_t row = tensor->cols * sizeof *g->flat, bytes = (last - first) * row;
    weir_buf_clear(&g->lent);
    weir_buf_clear(&g->received);
    char *lent = weir_buf_reserve(&g->lent, bytes + 1);
    if (!lent) return weir_buf_err(&g->lent);
    const weir_kernels *k = weir_nn_kernels(g->nn);
    k->to_host(k, lent, g->flat + tensor->offset + (size_t)first * tensor->cols, bytes);
    g->lengths[0] = bytes;
    weir_err err = k->finish(k);
    if (!err) err = weir_comm_exchange(g->comm, lent, g->lengths, &g->received, g->received_bytes);
    if (err || g->shares->rank != 0) return err;
    for (uint32_t rank = 0, at = 0; rank < g->shares->ranks; at += (uint32_t)g->received_bytes[rank++])
        g->places[rank] = at;
    for (uint32_t slot = begin; slot < end; slot++) {
        uint64_t *place = &g->places[table->owner_of[slot]];
        if (*place + row > g->received.length)
            return WEIR_ERR(WEIR_ECORRUPT, "rank %u gave too few embeddings; all ranks need the same program",
                            table->owner_of[slot]);
        memcpy(g->piece + (size_t)(slot - begin) * tensor->cols, g->received.bytes + *place, row);
        *place += row;
    }
    return WEIR_OK;
}

static weir_err shares_gather_tensor(shares_gathering *g, const weir_nn_tensor *tensor) {
    const weir_train_shares_table *table = shares_table_of(g->shares, g->nn, tensor);
    const weir_kernels *k = weir_nn_kernels(g->nn);
    uint32_t rows = table ? table->slots : tensor->rows, at_once = SHARES_PIECE / tensor->cols;
    weir_err err = WEIR_OK;
    for (uint32_t begin = 0, end; !err && begin < rows; begin = end) {
        end = rows - begin < at_once ? rows : begin + at_once;
        size_t count = (size_t)(end - begin) * tensor->cols;
        if (table) {
            err = shares_gather_rows(g, table, tensor, begin, end);
        } else if (g->puts) {
            k->to_host(k, g->piece, g->flat + tensor->offset + (size_t)begin * tensor->cols, count * sizeof *g->piece);
            err = k->finish(k);
        }
        if (!err && g->puts) err = g->sink->put(g->sink->context, g->piece, count);
    }
    return err;
}

weir_err weir_train_shares_gather(const weir_train_shares *shares, const weir_nn *nn, const weir_real *flat,
                                  weir_comm *comm, const weir_train_sink *sink) {
    uint32_t tensors, ranks = shares ? shares->ranks : 1;
    const weir_nn_tensor *tensor = weir_nn_tensors(nn, &tensors);
    shares_gathering g = {.shares = shares, .nn = nn, .flat = flat, .comm = comm, .sink = sink};
    g.puts = !shares || shares->rank == 0;
    g.piece = weir_calloc(SHARES_PIECE, sizeof *g.piece);
    g.lengths = weir_calloc(ranks, sizeof *g.lengths);
    g.received_bytes = weir_calloc(ranks, sizeof *g.received_bytes);
    g.places = weir_calloc(ranks, sizeof *g.places);
    bool all = g.piece && g.lengths && g.received_bytes && g.places;
    weir_err err = all ? WEIR_OK : WEIR_NOMEM(SHARES_NO_MEMORY);
    for (uint32_t i = 0; !err && i < tensors; i++)
        err = shares_gather_tensor(&g, &tensor[i]);
    weir_buf_free(&g.lent);
    weir_buf_free(&g.received);
    weir_free(g.piece);
    weir_free(g.lengths);
    weir_free(g.received_bytes);
    weir_free(g.places);
    return err;
}

void weir_train_shares_take(const weir_train_shares *shares, const weir_nn *nn, const weir_real *all, weir_real *flat) {
    uint32_t tensors;
    const weir_nn_tensor *tensor = weir_nn_tensors(nn, &tensors);
    const weir_kernels *k = weir_nn_kernels(nn);
    for (uint32_t i = 0; i < tensors; i++) {
        size_t cols = tensor[i].cols, row = cols * sizeof *all;
        weir_real *to = flat + tensor[i].offset;
        const weir_train_shares_table *table = shares_table_of(shares, nn, &tensor[i]);
        for (uint32_t n = 0; table && n < table->own_count; n++)
            k->to_device(k, to + n * cols, all + table->own[n] * cols, row);
        if (!table) k->to_device(k, to, all, tensor[i].rows * row);
        all += (table ? table->slots : tensor[i].rows) * cols;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - a training that ends after some batches: what they needed, times how many there will be.
 *
 * A process is the rank that it is; or, where it pretends, one rank after the other for each batch. What another rank
 * would answer it then reads itself, so that it encodes as many rows as a rank does that is asked for as many as it
 * asks for.
 */
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>
#include <weir/trainer/train/plan.h>

#include "asks.h"
#include "batch.h"
#include "form.h"
#include "remote.h"
#include "targets_private.h"
#include "training_private.h"

#define PLAN_NO_MEMORY "while planning a training; lower --batch, --hidden or the fan-outs"

#define PLAN_NODE_BYTES 64u /* of a node in the sampler's tables, which are at least a quarter full */
/* Of a thread: its stack, and what the allocator keeps for it alone; as was seen. */
#define PLAN_THREAD_BYTES (256u << 10)

/* Those that go on side by side. */
enum { PLAN_SAMPLE, PLAN_ASK, PLAN_FETCH, PLAN_COMPUTE, PLAN_STAGES };

/* What the batches of one pass were to one rank. It travels between ranks. */
typedef struct plan_tally {
    uint64_t targets, edges, rows, remote, cached;
    uint64_t batch_bytes, nodes, exchanged; /* of the largest; exchanged: bytes that are held while they are */
    uint64_t brought;                       /* of it, embeddings that it brings, with their gradients        */
    int64_t us[WEIR_TRAIN_PLAN_BATCHES][PLAN_STAGES];
} plan_tally;

typedef struct plan_pass {
    weir_batches_opts opts;
    uint32_t epoch;      /* 0: it judges */
    uint32_t batches;    /* that are tried */
    uint64_t count;      /* targets of all batches that there are */
    plan_tally *tallies; /* one a rank, of this process from p->first on until they are gathered */
    double *sent;        /* one a rank: bytes of asks and answers, and of edges where parts end */
    uint64_t seed;       /* of what is drawn */
    weir_comm **channels;
    weir_comm_traffic traffic[WEIR_TRAIN_CHANNELS], pulled; /* as it was last looked at; pulled: of embeddings */
    uint64_t sampler_bytes, fetcher_bytes;
} plan_pass;

typedef struct plan_trial {
    weir_trained *t;
    weir_train_plan *plan;
    uint32_t first, mine; /* the ranks that this process is */
    plan_pass learn, judge;
    weir_train_sampler *sampler;
    weir_train_fetcher *fetcher;
    weir_train_batch *batch;
    uint64_t floats, told; /* numbers and bytes of all steps */
    /* Where ranks are pretended: how they would share large embeddings, or NULL; what of the network one would
     * have; which rows of its own and of others a batch reads; and which of embeddings that all have. */
    weir_train_shares *shares;
    weir_nn *nn;
    weir_train_wants wants;
    weir_nn_rows *read;
    weir_buf rows;      /* as the ranks of a batch tell each other of them, */
    uint64_t *row_ends; /* and where each rank's end                        */
    uint32_t *list;     /* of targets, of the pass at hand            */
} plan_trial;

static uint64_t plan_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- what a batch needs ------------------------------------------------------------------------------------------- */

static const weir_train_shares *plan_shares(const plan_trial *p) {
    return p->plan->pretended ? p->shares : p->t->shares;
}

/* What of its memory is written to: the rest of a block's worst case is addresses alone. */
static uint64_t plan_batch_bytes(const weir_nn_shape *shape, const weir_train_batch *batch, bool thinned, bool timed) {
    const weir_block_view *view = batch->nn.block;
    uint32_t steps;
    const weir_sample_step *step = weir_nn_steps(shape, &steps);
    uint64_t bytes = view->nodes * (sizeof *view->vertices + sizeof *view->groups + sizeof *view->input_of) +
                     view->hop_end[view->hops - 1] * sizeof *batch->keys;
    for (uint32_t i = 0; i < steps; i++) {
        const weir_block_edges *e = &view->edges[i];
        uint64_t numbers = weir_nn_edge(shape, step[i].relation)->width * sizeof(weir_real);
        bytes += (e->parent_end - e->parent_begin) * sizeof *e->offsets;
        bytes += e->count * (sizeof *e->parents + sizeof *e->children + sizeof *e->times + sizeof *e->refs +
                             sizeof *view->vertices + numbers);
        if (thinned) /* what a step sees of them lies beside */
            bytes += (e->parent_end - e->parent_begin + 1) * sizeof *e->offsets +
                     e->count * (sizeof *e->parents + sizeof *e->children + sizeof *e->times);
    }
    for (uint32_t type = 0; type < view->types; type++)
        bytes += (view->input_ranges[type].end - view->input_ranges[type].begin) *
                 weir_train_row_bytes(weir_nn_vertex(shape, type));
    if (timed) bytes += batch->remote * (sizeof(uint32_t) + 2 * sizeof(weir_train_last)); /* asks, by vertex */
    return bytes + view->inputs * 3 * sizeof(uint32_t) + batch->remote * 2 * sizeof(weir_train_ask);
}

/* Who asks sends asks, and who owns a row sends it; of ranks that are pretended. */
static weir_err plan_pretend_to_send(plan_trial *p, plan_pass *pass, uint32_t rank, plan_tally *tally) {
    const uint32_t ranks = pass->opts.owners.ranks;
    uint64_t answers = 0;
    if (ranks == 1) return WEIR_OK;
    for (uint32_t owner = 0; owner < ranks; owner++) {
        uint64_t asked, answered;
        weir_err err = weir_train_batch_expect(p->batch, p->fetcher, owner, &asked, &answered);
        if (err) return err;
        pass->sent[rank] += (double)asked;
        pass->sent[owner] += (double)answered;
        answers += answered;
    }
    answers += answers + answers / (ranks - 1); /* answers others; a rank at a time */
    if (answers > tally->exchanged) tally->exchanged = answers;
    return WEIR_OK;
}

/* What the stages that talk have sent and received since the last call, and what they hold of it. */
static void plan_count_traffic(const plan_trial *p, plan_pass *pass, plan_tally *tally) {
    uint64_t exchanged = weir_train_fetcher_bytes(p->fetcher);
    for (uint32_t i = 0; i < WEIR_TRAIN_CHANNELS; i++) {
        weir_comm_traffic now = weir_comm_traffic_of(pass->channels[i]), *last = &pass->traffic[i];
        pass->sent[p->first] += (double)(now.sent - last->sent);
        if (i == WEIR_TRAIN_CHANNEL_SAMPLE) exchanged += now.sent - last->sent + now.received - last->received;
        *last = now;
    }
    weir_comm_traffic now = weir_comm_traffic_of(p->t->comm);
    pass->sent[p->first] += (double)(now.sent - pass->pulled.sent);
    pass->pulled = now;
    if (exchanged > tally->exchanged) tally->exchanged = exchanged;
}

/* What a batch brings of embeddings, with their gradients, and what other ranks get of this one's, which is about as
 * much as this one of theirs. Who reads a row names it, and, learning, gives back a gradient. */
static weir_err plan_count_brought(plan_trial *p, plan_pass *pass, uint32_t rank, plan_tally *tally) {
    const weir_train_wants *wants = p->plan->pretended ? &p->wants : p->batch->wants;
    const weir_block_view *view = p->batch->own_count ? p->batch->nn.block : NULL;
    uint64_t row = weir_nn_hidden(p->t->shape) * sizeof(weir_real);
    if (!plan_shares(p)) return WEIR_OK;
    weir_err err =
        p->plan->pretended ? weir_train_wants_list(&p->wants, p->shares, rank, view, p->batch->nn.slots) : WEIR_OK;
    if (err) return err;
    uint64_t count = wants->keys.length / sizeof(uint64_t), brought = 2 * (count + wants->remote) * row;
    if (brought > tally->brought) tally->brought = brought;
    for (uint32_t owner = 0; p->plan->pretended && owner < p->plan->ranks; owner++) {
        uint64_t rows = wants->bytes[owner] / sizeof(uint64_t);
        pass->sent[owner] += (double)(rows * row);
        pass->sent[rank] += (double)(rows * (sizeof(uint64_t) + (pass->epoch ? row : 0)));
    }
    return WEIR_OK;
}

static void plan_count_memory(const plan_trial *p, plan_tally *tally) {
    uint64_t bytes = plan_batch_bytes(p->t->shape, p->batch, p->learn.opts.thinned > 0, !p->t->targets->one_time);
    if (bytes > tally->batch_bytes) tally->batch_bytes = bytes;
    if (p->batch->nn.block->nodes > tally->nodes) tally->nodes = p->batch->nn.block->nodes;
}

/* Which rows of embeddings, of those that all ranks have, a step of all ranks moves. */
static weir_err plan_count_sums(plan_trial *p, uint32_t rank) {
    weir_trained *t = p->t;
    if (!p->plan->pretended) {
        p->told += p->batch->heard ? p->batch->heard->length : 0;
        p->floats += weir_nn_rows_size(t->rows);
        return WEIR_OK;
    }
    if (rank == 0) weir_buf_clear(&p->rows);
    weir_err err = weir_nn_rows_of_batch(p->read, p->batch->own_count ? &p->batch->nn : NULL);
    if (!err) weir_nn_rows_write(p->read, &p->rows);
    p->row_ends[rank] = p->rows.length;
    if (!err) err = weir_buf_err(&p->rows);
    if (rank + 1 < p->plan->ranks) return err;
    for (uint32_t i = 0, at = 0; !err && i < p->plan->ranks; at = (uint32_t)p->row_ends[i++])
        err = weir_nn_rows_add(p->read, p->rows.bytes + at, p->row_ends[i] - at);
    p->told += p->rows.length;
    p->floats += weir_nn_rows_size(p->read);
    return err;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

/* How many batches are tried, and of how many targets. Of many, whole ones: plan_try spreads them over the list. */
static void plan_spread(uint64_t batch, plan_pass *pass) {
    uint64_t all = (pass->count + batch - 1) / batch;
    pass->batches = all < WEIR_TRAIN_PLAN_BATCHES ? (uint32_t)all : WEIR_TRAIN_PLAN_BATCHES;
    pass->opts.count = all > pass->batches ? pass->batches * batch : pass->count;
}

/* One batch of one rank, through the stages. */
static weir_err plan_try(plan_trial *p, plan_pass *pass, uint32_t number, uint32_t rank) {
    weir_trained *t = p->t;
    plan_tally *tally = &pass->tallies[rank - p->first];
    weir_clock *clock = weir_clock_system();
    weir_train_epoch epoch = {.number = pass->epoch};
    weir_nn_brought brought;
    weir_nn_batch nn;
    int64_t at_us[PLAN_STAGES + 1] = {weir_clock_mono_us(clock)}, counting_us;
    weir_train_slice slice = {.epoch = pass->epoch, .number = number, .seed = pass->seed};
    uint64_t all = (pass->count + t->opts.batch - 1) / t->opts.batch;
    slice.begin = number * all / pass->batches * t->opts.batch;
    slice.end = plan_least(slice.begin + t->opts.batch, pass->count);
    slice.last = slice.end == pass->count;
    slice.list = p->list + slice.begin;
    pass->opts.owners.rank = rank;
    pass->opts.owners.ranks = p->plan->ranks;
    weir_err err = weir_train_batch_sample(p->batch, p->sampler, &slice);
    at_us[PLAN_ASK] = weir_clock_mono_us(clock);
    if (!err && p->batch->own_count) plan_count_memory(p, tally);
    if (!err && p->batch->own_count && p->plan->pretended) err = plan_pretend_to_send(p, pass, rank, tally);
    counting_us = weir_clock_mono_us(clock) - at_us[PLAN_ASK];
    if (p->plan->pretended) { /* it reads what others would answer */
        pass->opts.owners.rank = 0;
        pass->opts.owners.ranks = 1;
    }
    if (!err) err = weir_train_batch_ask(p->batch);
    at_us[PLAN_FETCH] = weir_clock_mono_us(clock);
    if (!err) err = weir_train_batch_answer(p->batch, p->fetcher);
    if (!err) err = weir_train_batch_encode(p->batch, p->fetcher);
    at_us[PLAN_COMPUTE] = weir_clock_mono_us(clock);
    if (!err && pass->epoch) {
        err = weir_training_step(t, p->batch, &epoch);
    } else {
        if (!err) err = weir_training_bring(t, p->batch, t->params, &brought, &nn);
        if (!err && p->batch->own_count)
            err = weir_nn_forward(t->nn, t->params, &nn, NULL, t->workspace, t->logits, NULL);
    }
    at_us[PLAN_STAGES] = weir_clock_mono_us(clock);
    if (!err) err = plan_count_brought(p, pass, rank, tally);
    if (!err && !p->plan->pretended) plan_count_traffic(p, pass, tally);
    if (!err && pass->epoch) err = plan_count_sums(p, rank);
    for (unsigned stage = 0; stage < PLAN_STAGES; stage++)
        tally->us[number][stage] = at_us[stage + 1] - at_us[stage] - (stage == PLAN_ASK ? counting_us : 0);
    tally->targets += p->batch->own_count;
    tally->edges += p->batch->edges;
    tally->rows += p->batch->rows;
    tally->remote += p->batch->remote;
    tally->cached += p->batch->cached;
    return err;
}

/* The list is made already. */
static weir_err plan_pass_run(plan_trial *p, plan_pass *pass, weir_comm *(*channels)[WEIR_TRAIN_CHANNELS]) {
    weir_role role = weir_thread_role();
    weir_alloc_stats before, between, after;
    pass->opts = weir_training_stream_opts(p->t, channels);
    pass->opts.list = p->list;
    pass->opts.dealt = pass->epoch && p->t->opts.local;
    pass->opts.as_served = !pass->epoch;
    pass->opts.tells = pass->epoch && p->t->sums ? p->t->nn : NULL;
    pass->opts.hidden = pass->epoch ? p->t->opts.input_dropout : 0;
    pass->opts.thinned = pass->epoch ? p->t->opts.edge_dropout : 0;
    pass->opts.unknown = pass->epoch ? p->t->opts.unknown : 0;
    pass->channels = channels[0]; /* as of the first maker */
    pass->opts.owners.ranks = p->plan->ranks;
    pass->tallies = weir_calloc(p->mine, sizeof *pass->tallies);
    pass->sent = weir_calloc(p->plan->ranks, sizeof *pass->sent);
    weir_err err = pass->tallies && pass->sent ? WEIR_OK : WEIR_NOMEM(PLAN_NO_MEMORY);
    pass->pulled = weir_comm_traffic_of(p->t->comm);
    plan_spread(p->t->opts.batch, pass);
    weir_alloc_stats_get(&before);
    if (!err) err = weir_train_sampler_open(&pass->opts, pass->channels, &p->sampler);
    weir_alloc_stats_get(&between);
    if (!err) err = weir_train_fetcher_open(&pass->opts, &p->fetcher);
    weir_alloc_stats_get(&after);
    if (!err) err = weir_train_batch_open(&pass->opts, p->sampler, pass->channels, &p->batch);
    pass->sampler_bytes = between.live_bytes - before.live_bytes;
    pass->fetcher_bytes = after.live_bytes - between.live_bytes;
    weir_thread_adopt("plan", WEIR_ROLE_WORKER); /* as the threads are that the stages run on */
    for (uint32_t number = 0; !err && number < pass->batches; number++)
        for (uint32_t i = 0; !err && i < p->mine; i++)
            err = plan_try(p, pass, number, p->first + i);
    weir_thread_adopt("main", role);
    weir_train_batch_close(p->batch);
    weir_train_fetcher_close(p->fetcher);
    weir_train_sampler_close(p->sampler);
    p->batch = NULL;
    p->fetcher = NULL;
    p->sampler = NULL;
    return err;
}

/* --- from batches to a training ---------------------------------------------------------------------------------- */

/* The mean over batches of the slowest rank's: without the first batch, in which memory grows. */
static weir_train_plan_seconds plan_seconds(const plan_pass *pass, uint32_t ranks) {
    double least = 0, most = 0, squares = 0;
    uint32_t first = pass->batches > 1, count = pass->batches - first;
    for (uint32_t number = first; number < pass->batches; number++) {
        int64_t slowest_us = 0, stage_us = 0;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            int64_t sum_us = 0;
            for (unsigned stage = 0; stage < PLAN_STAGES; stage++) {
                int64_t us = pass->tallies[rank].us[number][stage];
                sum_us += us;
                if (us > stage_us) stage_us = us;
            }
            if (sum_us > slowest_us) slowest_us = sum_us;
        }
        least += (double)stage_us * 1e-6 / count;
        most += (double)slowest_us * 1e-6 / count;
        squares += (double)slowest_us * 1e-6 * (double)slowest_us * 1e-6 / count;
    }
    return (weir_train_plan_seconds){least, most, sqrt(fmax(squares - most * most, 0))};
}

static double plan_share(const plan_pass *pass) {
    return (double)pass->count / (double)pass->opts.count;
}

/* Bytes of one maker. */
typedef struct plan_maker {
    uint64_t batch, readers;
} plan_maker;

/* A maker is a thread with a sampler, a fetcher, a batch and what it exchanges for that; where parts end, with as much
 * again to draw for others. As many of them are at work as there are batches. */
static plan_maker plan_makers(const plan_trial *p, const plan_pass *pass, uint32_t rank, uint64_t batches) {
    const plan_tally *tally = &pass->tallies[rank - p->first];
    uint64_t ahead = p->t->opts.ahead, makers = plan_least(ahead, batches);
    uint64_t readers = ahead * pass->fetcher_bytes;
    readers += makers * plan_least(pass->sampler_bytes, tally->nodes * PLAN_NODE_BYTES);
    if (weir_train_remote_needed(&pass->opts.owners, p->t->shape, pass->opts.dealt)) readers *= 2;
    return (plan_maker){makers * (tally->batch_bytes + tally->exchanged), readers + ahead * PLAN_THREAD_BYTES};
}

/* Rows of embeddings that are other ranks'; and bytes of the maps that say whose each is. */
static uint64_t plan_elsewhere(const plan_trial *p, uint32_t rank, uint64_t *mapsp) {
    const weir_train_shares *shares = plan_shares(p);
    uint64_t elsewhere = 0;
    *mapsp = 0;
    for (uint32_t i = 0; shares && i < shares->table_count; i++) {
        const weir_train_shares_table *table = &shares->tables[i];
        uint32_t own = weir_train_shares_count(table, rank);
        elsewhere += table->slots - own;
        *mapsp += table->slots * sizeof *table->owner_of + own * sizeof *table->own;
    }
    return elsewhere;
}

/* Bytes that rank of this process needs. While an epoch is judged, the makers have batches of the next one. */
static void plan_rank_memory(const plan_trial *p, uint32_t rank, uint64_t program, weir_train_plan_rank *of) {
    const weir_trained *t = p->t;
    const weir_targets *targets = t->targets;
    uint64_t maps, elsewhere = plan_elsewhere(p, rank, &maps), whole = weir_nn_parameter_count(t->whole);
    uint64_t params = (whole - elsewhere * weir_nn_hidden(t->shape)) * sizeof(weir_real);
    const plan_tally *tallies[] = {&p->learn.tallies[rank - p->first], &p->judge.tallies[rank - p->first]};
    uint64_t learnt = targets->ends[WEIR_TARGETS_TRAIN];
    uint64_t listed = sizeof *p->list; /* of one that is learnt from */
    if (t->dealer) listed += sizeof *t->dealer->owner_of + sizeof *t->dealer->dealt;
    uint64_t judged = p->plan->validation > p->plan->test ? p->plan->validation : p->plan->test;
    plan_maker learn = plan_makers(p, &p->learn, rank, p->plan->steps);
    plan_maker judge = plan_makers(p, &p->judge, rank, judged);
    uint32_t tensors;
    const weir_nn_tensor *tensor = weir_nn_tensors(t->whole, &tensors);
    of->memory[WEIR_MEMORY_PROGRAM] = program;
    of->memory[WEIR_MEMORY_FILES] = weir_snapshot_bytes(t->opts.snapshot);
    of->memory[WEIR_MEMORY_LOADED] = t->opts.loaded ? weir_snapshot_load_bytes(t->opts.snapshot) : 0;
    of->memory[WEIR_MEMORY_TARGETS] =
        weir_targets_bytes(targets) + learnt * listed + (targets->count - learnt) * sizeof *t->scores;
    if (weir_train_learns_again(&t->opts)) /* the first learning's scores, until the second has its own */
        of->memory[WEIR_MEMORY_TARGETS] += (targets->count - learnt) * sizeof *t->scores;
    /* Now, the best, gradients and the average; rank 0 has all of them together for the model. */
    of->memory[WEIR_MEMORY_PARAMETERS] =
        (t->opts.average > 0 ? 4 : 3) * params + maps + (rank == 0 ? whole * sizeof(weir_real) : 0);
    of->memory[WEIR_MEMORY_OPTIMIZER] = 2 * params - elsewhere * sizeof(uint64_t);
    for (uint32_t i = 0; i < tensors; i++) /* of each row of an embedding: as of which step it is */
        of->memory[WEIR_MEMORY_OPTIMIZER] += tensor[i].looked_up ? tensor[i].rows * sizeof(uint64_t) : 0;
    of->memory[WEIR_MEMORY_BATCHES] = learn.batch + judge.batch;
    of->memory[WEIR_MEMORY_PASSES] =
        weir_nn_workspace_bytes(t->workspace) +
        (tallies[0]->brought > tallies[1]->brought ? tallies[0]->brought : tallies[1]->brought);
    of->memory[WEIR_MEMORY_READERS] = learn.readers + judge.readers;
    of->memory[WEIR_MEMORY_CACHE] = weir_train_cache_bytes(t->cache);
    of->sorting = 2 * targets->held * sizeof(weir_target_candidate); /* and as much for qsort */
    uint64_t working = 0, lasting = of->memory[WEIR_MEMORY_PROGRAM] + of->memory[WEIR_MEMORY_FILES];
    lasting += of->memory[WEIR_MEMORY_LOADED];
    for (weir_train_memory m = WEIR_MEMORY_TARGETS; m < WEIR_MEMORIES; m++)
        working += of->memory[m];
    of->peak = lasting + (working > of->sorting ? working : of->sorting);
}

static void plan_rank_rows(const plan_trial *p, uint32_t rank, weir_train_plan_rank *of) {
    const plan_tally *learn = &p->learn.tallies[rank];
    double steps = (double)p->learn.opts.count / p->t->opts.batch;
    of->rows = (double)learn->rows / steps;
    of->remote_rows = (double)learn->remote / steps;
    of->cached_rows = (double)learn->cached / steps;
    of->edges = (double)learn->edges / steps;
    of->sent_step = p->learn.sent[rank] / steps;
    of->sent_epoch = p->learn.sent[rank] * plan_share(&p->learn) + p->judge.sent[rank] * plan_share(&p->judge);
    /* Its rows of embeddings, for the checkpoint. */
    uint64_t row = weir_nn_hidden(p->t->shape) * sizeof(weir_real), arrays = weir_training_state_reals(p->t);
    const weir_train_shares *shares = plan_shares(p);
    for (uint32_t i = 0; shares && rank > 0 && i < shares->table_count; i++)
        of->sent_epoch += (double)(arrays * row * weir_train_shares_count(&shares->tables[i], rank));
}

/* What each process knows of its ranks to all. */
static weir_err plan_gather(plan_trial *p, weir_buf *all, void *of, size_t size) {
    uint32_t processes = weir_comm_ranks(p->t->comm);
    uint64_t *lengths = weir_calloc(processes, sizeof *lengths);
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM(PLAN_NO_MEMORY);
    if (!err) err = weir_comm_gather(p->t->comm, of, p->mine * size, all, lengths);
    weir_free(lengths);
    WEIR_ASSERT(err || all->length == p->plan->ranks * size);
    return err;
}

static weir_err plan_gather_pass(plan_trial *p, plan_pass *pass) {
    weir_buf all = {0};
    weir_err err = plan_gather(p, &all, pass->tallies, sizeof *pass->tallies);
    plan_tally *tallies = err ? NULL : weir_calloc(p->plan->ranks, sizeof *tallies);
    if (!err && !tallies) err = WEIR_NOMEM(PLAN_NO_MEMORY);
    if (tallies) {
        memcpy(tallies, all.bytes, all.length);
        weir_free(pass->tallies);
        pass->tallies = tallies;
        weir_comm_sum_doubles(p->t->comm, pass->sent, p->plan->ranks);
    }
    weir_buf_free(&all);
    return err;
}

static weir_err plan_count(plan_trial *p) {
    weir_trained *t = p->t;
    weir_train_plan *plan = p->plan;
    uint32_t tensors;
    const weir_nn_tensor *tensor = weir_nn_tensors(t->whole, &tensors);
    weir_buf shape = {0};
    weir_json json = weir_json_begin(&shape);
    plan->epochs = t->opts.epochs;
    t->opts.rate_rise = 0; /* steps of the rise bring all embeddings, and those that are tried stand for all steps */
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++)
        plan->targets[part] = t->targets->ends[part] - weir_targets_begin(t->targets, part);
    plan->validation = (plan->targets[WEIR_TARGETS_VALIDATION] + t->opts.batch - 1) / t->opts.batch;
    plan->test = (plan->targets[WEIR_TARGETS_TEST] + t->opts.batch - 1) / t->opts.batch;
    for (uint32_t epoch = t->opts.epochs; epoch > 0; epoch--) {
        p->learn.count = weir_training_list_epoch(t, epoch, p->list, &p->learn.seed);
        plan->first_steps = (p->learn.count + t->opts.batch - 1) / t->opts.batch;
        plan->steps += plan->first_steps;
    }
    plan->parameters = weir_nn_parameter_count(t->whole);
    for (uint32_t i = 0; i < tensors; i++)
        plan->embeddings += tensor[i].looked_up ? (uint64_t)tensor[i].rows * tensor[i].cols : 0;
    weir_nn_shape_print(t->shape, &json);
    plan->model_bytes = plan->parameters * sizeof(weir_real) + shape.length;
    for (uint32_t type = 0; type < weir_nn_types(t->shape); type++)
        plan->model_bytes += weir_nn_vertex(t->shape, type)->known_count * sizeof(uint64_t);
    plan->checkpoint_bytes = weir_training_state_bytes(t);
    weir_err err = weir_buf_err(&shape);
    weir_buf_free(&shape);
    return err;
}

static weir_err plan_fill(plan_trial *p, uint64_t program) {
    weir_train_plan *plan = p->plan;
    weir_buf all = {0};
    for (uint32_t i = 0; i < p->mine; i++)
        plan_rank_memory(p, p->first + i, program, &plan->of[i]);
    weir_err err = plan_gather(p, &all, plan->of, sizeof *plan->of);
    if (!err) memcpy(plan->of, all.bytes, all.length);
    weir_buf_free(&all);
    if (!err) err = plan_gather_pass(p, &p->learn);
    if (!err) err = plan_gather_pass(p, &p->judge);
    for (uint32_t rank = 0; !err && rank < plan->ranks; rank++)
        plan_rank_rows(p, rank, &plan->of[rank]);
    if (err) return err;
    plan->sampled = p->learn.batches;
    plan->sampled_judged = p->judge.batches;
    plan->step = plan_seconds(&p->learn, plan->ranks);
    plan->judge = plan_seconds(&p->judge, plan->ranks);
    if (plan->ranks == 1) return WEIR_OK;
    plan->summed_floats = (double)(plan->parameters - plan->embeddings) + (double)p->floats / p->learn.batches;
    plan->told_bytes = (double)p->told / p->learn.batches;
    return WEIR_OK;
}

/* What one rank would have of the network, which this process has whole. */
static weir_err plan_pretend(plan_trial *p) {
    weir_trained *t = p->t;
    weir_train_owners owners = weir_training_owners(t);
    owners.ranks = p->plan->ranks;
    weir_err err = weir_train_wants_open(owners.ranks, &p->wants);
    if (!err && owners.ranks > 1) err = weir_train_shares_open(&owners, t->shape, NULL, &p->shares);
    if (!err && p->shares) err = weir_train_shares_network(p->shares, weir_nn_kernels(t->whole), &p->nn);
    return err ? err : weir_nn_rows_open(p->nn ? p->nn : t->whole, &p->read);
}

static weir_err plan_run(plan_trial *p) {
    weir_trained *t = p->t;
    uint64_t begin = weir_targets_begin(t->targets, WEIR_TARGETS_VALIDATION);
    p->list = weir_calloc(t->targets->count, sizeof *p->list);
    weir_err err = p->list ? plan_count(p) : WEIR_NOMEM(PLAN_NO_MEMORY); /* leaves the list of the first epoch */
    p->learn.epoch = 1;
    if (!err && p->plan->pretended) err = plan_pretend(p);
    if (!err) err = plan_pass_run(p, &p->learn, t->learn_channels);
    p->judge.count = p->plan->targets[WEIR_TARGETS_VALIDATION];
    p->judge.seed = t->opts.sample_seed;
    for (uint64_t i = 0; i < p->judge.count; i++)
        p->list[i] = (uint32_t)(begin + i);
    return err ? err : plan_pass_run(p, &p->judge, t->judge_channels);
}

weir_err weir_train_plan_make(weir_comm *comm, const weir_train_opts *opts, uint32_t pretend, weir_train_plan **planp) {
    weir_train_opts own = *opts;
    struct rusage usage = {0};
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    *planp = NULL;
    if (pretend > WEIR_TRAIN_PLAN_RANKS_MAX || (pretend && (opts->part || opts->local || weir_comm_ranks(comm) > 1)))
        return weir_comm_fail(comm, WEIR_ERR(WEIR_EINVAL,
                                             "one process with the whole snapshot, and batches that are not local, can "
                                             "pretend to be 1 to %u ranks",
                                             WEIR_TRAIN_PLAN_RANKS_MAX));
    getrusage(RUSAGE_SELF, &usage);
    own.folder = own.trace = NULL;
    own.resume = false;
    weir_train_plan *plan = weir_calloc(1, sizeof *plan);
    plan_trial p = {.plan = plan, .first = pretend ? 0 : weir_comm_rank(comm), .mine = pretend ? pretend : 1};
    weir_err err = plan ? WEIR_OK : WEIR_NOMEM(PLAN_NO_MEMORY);
    if (!err) {
        plan->ranks = pretend ? pretend : weir_comm_ranks(comm);
        plan->pretended = pretend > 0;
        plan->of = weir_calloc(plan->ranks, sizeof *plan->of);
        p.row_ends = weir_calloc(plan->ranks, sizeof *p.row_ends);
        if (!plan->of || !p.row_ends) err = WEIR_NOMEM(PLAN_NO_MEMORY);
    }
    err = weir_comm_fail(comm, err);
    if (!err) err = weir_training_open(comm, &own, NULL, &p.t);
    if (!err) plan->set_up_seconds = (double)(weir_clock_mono_us(weir_clock_system()) - begin_us) * 1e-6;
    if (!err) err = weir_comm_fail(comm, plan_run(&p));
    if (!err) err = weir_comm_fail(comm, plan_fill(&p, (uint64_t)usage.ru_maxrss << 10)); /* kilobytes on Linux */
    weir_free(p.learn.tallies);
    weir_free(p.judge.tallies);
    weir_free(p.learn.sent);
    weir_free(p.judge.sent);
    weir_buf_free(&p.rows);
    weir_free(p.row_ends);
    weir_free(p.list);
    weir_nn_rows_close(p.read);
    weir_train_wants_close(&p.wants);
    weir_nn_close(p.nn);
    weir_train_shares_close(p.shares);
    weir_trained_close(p.t);
    if (err) {
        weir_train_plan_free(plan);
        return err;
    }
    *planp = plan;
    return WEIR_OK;
}

void weir_train_plan_free(weir_train_plan *plan) {
    if (!plan) return;
    weir_free(plan->of);
    weir_free(plan);
}

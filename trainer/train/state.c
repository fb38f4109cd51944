/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - a training on disk: FOLDER/checkpoint with plain arrays and a MANIFEST.
 *
 *   checkpoint.new written, synced ─► checkpoint becomes checkpoint.old ─► checkpoint.new checkpoint ─► old removed
 *
 * At every moment one of the two is whole; a training that was killed continues from there.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/snapshot/npy.h>
#include <weir/store/trust/trust.h>

#include "training_private.h"

enum { STATE_EPOCHS, STATE_BEST_EPOCH, STATE_BEST, STATE_STEPS, STATE_FINGERPRINT, STATE_COUNT };

#define STATE_PATH_BYTES 4096
#define STATE_MOMENT     (sizeof(weir_nn_moments) / sizeof(double))

/* The network, the targets, and what moves the parameters. */
uint64_t weir_training_fingerprint(const weir_trained *t) {
    const weir_train_opts *o = &t->opts;
    const double numbers[] = {o->rate,
                              o->decay,
                              o->dropout,
                              o->norm_max,
                              o->batch,
                              o->negatives,
                              o->positive_weight,
                              o->input_dropout,
                              (double)t->targets->ends[WEIR_TARGETS_TRAIN],
                              (double)t->targets->ends[WEIR_TARGETS_VALIDATION],
                              (double)t->targets->ends[WEIR_TARGETS_TEST],
                              (double)weir_snapshot_as_of_us(o->snapshot)};
    const uint64_t seeds[] = {o->seed, o->sample_seed};
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);
    weir_nn_shape_print(t->shape, &json);
    uint64_t hash = weir_xxh3(text.bytes, text.length, 0);
    hash = weir_xxh3(numbers, sizeof numbers, hash);
    hash = weir_xxh3(seeds, sizeof seeds, hash);
    const double embedding[] = {o->unknown, o->adagrad, o->embedding_rate};
    if (o->embedded_count || o->adagrad || o->embedding_rate > 0) hash = weir_xxh3(embedding, sizeof embedding, hash);
    for (uint32_t i = 0; i < weir_nn_types(t->shape); i++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(t->shape, i);
        if (inputs->known_count) hash = weir_xxh3(inputs->known, inputs->known_count * sizeof *inputs->known, hash);
    }
    const double schedule[] = {o->schedule, o->rate_rise, o->rate_end,
                               o->schedule == WEIR_TRAIN_COSINE ? o->epochs : 0};
    if (o->schedule || o->rate_rise) hash = weir_xxh3(schedule, sizeof schedule, hash);
    const double steps[] = {o->edge_dropout, o->focal};
    if (o->edge_dropout > 0 || o->focal > 0) hash = weir_xxh3(steps, sizeof steps, hash);
    /* Of another length than any above, so that one option is never taken for another. */
    const double later[5] = {o->attention_dropout, o->average, o->l2};
    if (o->attention_dropout > 0 || o->average > 0 || o->l2 > 0) hash = weir_xxh3(later, sizeof later, hash);
    if (o->local) hash = weir_xxh3(&o->local, sizeof o->local, hash);
    if (o->wire) hash = weir_xxh3(&o->wire, sizeof o->wire, hash);
    hash = weir_xxh3(&t->targets->digest, sizeof t->targets->digest, hash); /* masks of one size differ, too */
    weir_buf_free(&text);
    return hash;
}

/* --- save --------------------------------------------------------------------------------------------------------- */

static weir_err state_save_array(const weir_trained *t, const char *name, weir_npy_type type, const void *numbers,
                                 uint64_t count) {
    char path[STATE_PATH_BYTES], rest[64];
    weir_npy_writer *writer = NULL;
    snprintf(rest, sizeof rest, "checkpoint.new/%s.npy", name);
    weir_err err = weir_path_join(path, sizeof path, t->opts.folder, rest);
    if (!err) err = weir_npy_writer_open(path, type, count, 0, &writer);
    if (!err) err = weir_npy_write(writer, numbers, count);
    if (err) {
        weir_npy_writer_cancel(writer);
        return err;
    }
    return weir_npy_writer_close(writer);
}

/* What is laid out as the parameters are, in the order of its files. */
typedef struct state_reals {
    const char *name;
    weir_real *numbers;
} state_reals;

static uint32_t state_list_reals(const weir_trained *t, state_reals of[WEIR_TRAINING_REALS_MAX]) {
    of[0] = (state_reals){"params", t->params};
    of[1] = (state_reals){"best", t->best_params};
    of[2] = (state_reals){"moment1", weir_adamw_moments(t->adamw, 0)};
    of[3] = (state_reals){"moment2", weir_adamw_moments(t->adamw, 1)};
    of[4] = (state_reals){"average", t->average};
    return weir_training_state_reals(t);
}

uint32_t weir_training_state_reals(const weir_trained *t) {
    return t->opts.average > 0 ? WEIR_TRAINING_REALS_MAX : WEIR_TRAINING_REALS_MAX - 1;
}

static weir_err state_put(void *context, const weir_real *numbers, uint64_t count) {
    return weir_npy_write(context, numbers, count);
}

/* All rows of embeddings, whoever has them: a file is the same for any number of ranks. */
static weir_err state_save_reals(const weir_trained *t, const state_reals *of) {
    char path[STATE_PATH_BYTES], rest[64];
    weir_npy_writer *writer = NULL;
    weir_npy_type type = sizeof *of->numbers == 4 ? WEIR_NPY_F32 : WEIR_NPY_F64;
    snprintf(rest, sizeof rest, "checkpoint.new/%s.npy", of->name);
    weir_err err = weir_path_join(path, sizeof path, t->opts.folder, rest);
    if (!err) err = weir_npy_writer_open(path, type, weir_nn_parameter_count(t->whole), 0, &writer);
    const weir_train_sink sink = {state_put, writer};
    if (!err) err = weir_train_shares_gather(t->shares, t->nn, of->numbers, t->comm, &sink);
    return weir_npy_writer_end(writer, err);
}

/* The other ranks' part of that. */
static weir_err state_give_reals(const weir_trained *t) {
    state_reals of[WEIR_TRAINING_REALS_MAX];
    weir_err err = WEIR_OK;
    const uint32_t arrays = state_list_reals(t, of);
    for (uint32_t i = 0; !err && t->shares && i < arrays; i++)
        err = weir_train_shares_gather(t->shares, t->nn, of[i].numbers, t->comm, &(weir_train_sink){NULL, NULL});
    return err;
}

static weir_err state_remove(const char *path) {
    return weir_path_exists(path) ? weir_folder_remove(path) : WEIR_OK;
}

weir_err weir_training_state_save(const weir_trained *t) {
    char new[STATE_PATH_BYTES], now[STATE_PATH_BYTES], old[STATE_PATH_BYTES];
    state_reals reals[WEIR_TRAINING_REALS_MAX];
    if (!t->opts.folder) return WEIR_OK;
    if (weir_comm_rank(t->comm) != 0) return state_give_reals(t);
    const uint32_t arrays = state_list_reals(t, reals);
    uint64_t state[STATE_COUNT] = {[STATE_EPOCHS] = t->state.epochs,
                                   [STATE_BEST_EPOCH] = t->state.best_epoch,
                                   [STATE_STEPS] = weir_adamw_steps(t->adamw),
                                   [STATE_FINGERPRINT] = t->fingerprint};
    memcpy(&state[STATE_BEST], &t->state.best, sizeof t->state.best);
    uint32_t count;
    const weir_nn_moments *moments = weir_nn_learner_moments(t->learner, &count);
    WEIR_ASSERT(t->state.epochs > 0 && t->state.best_epoch > 0 && t->state.best_epoch <= t->state.epochs);
    weir_err err = weir_path_join(new, sizeof new, t->opts.folder, "checkpoint.new");
    if (!err) err = weir_path_join(now, sizeof now, t->opts.folder, "checkpoint");
    if (!err) err = weir_path_join(old, sizeof old, t->opts.folder, "checkpoint.old");

    /* The new one, whole and on disk. */
    if (!err) err = state_remove(new);
    if (!err) err = weir_folder_create(new);
    if (!err) err = state_save_array(t, "state", WEIR_NPY_U64, state, STATE_COUNT);
    if (!err) err = state_save_array(t, "moments", WEIR_NPY_F64, moments, count * STATE_MOMENT);
    for (uint32_t i = 0; !err && i < arrays; i++)
        err = state_save_reals(t, &reals[i]);
    if (!err) err = weir_manifest_write(new);

    /* It takes the place of the one before. */
    if (!err && weir_path_exists(now)) {
        err = state_remove(old);
        if (!err) err = weir_file_rename(now, old);
    }
    if (!err) err = weir_file_rename(new, now);
    return err ? err : state_remove(old);
}

uint64_t weir_training_state_bytes(const weir_trained *t) {
    uint32_t moments;
    weir_nn_learner_moments(t->learner, &moments);
    return weir_training_state_reals(t) * weir_nn_parameter_count(t->whole) * sizeof(weir_real) +
           moments * sizeof(weir_nn_moments) + STATE_COUNT * sizeof(uint64_t);
}

/* --- load --------------------------------------------------------------------------------------------------------- */

/* *mapp NULL after an error. */
static weir_err state_map_array(const char *folder, const char *name, weir_npy_type type, uint64_t count,
                                weir_npy_map **mapp, const void **numbersp) {
    char path[STATE_PATH_BYTES + 32];
    weir_npy_array array;
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    *mapp = NULL;
    weir_err err = weir_npy_map_open(path, mapp, &array);
    if (err) return err;
    *numbersp = array.data;
    if (array.type == type && array.count == count) return WEIR_OK;
    weir_npy_map_close(*mapp);
    *mapp = NULL;
    return WEIR_ERR(WEIR_EVERSION, "%s is of another network; remove the checkpoint to begin anew", path);
}

static weir_err state_load_array(const char *folder, const char *name, weir_npy_type type, void *numbers,
                                 uint64_t count) {
    weir_npy_map *map;
    const void *from = NULL;
    weir_err err = state_map_array(folder, name, type, count, &map, &from);
    if (!err) memcpy(numbers, from, count * weir_npy_size(type));
    weir_npy_map_close(map);
    return err;
}

/* Of embeddings, this rank's share. */
static weir_err state_load_reals(const weir_trained *t, const char *folder, const state_reals *of) {
    weir_npy_map *map;
    const void *all = NULL;
    weir_npy_type type = sizeof *of->numbers == 4 ? WEIR_NPY_F32 : WEIR_NPY_F64;
    weir_err err = state_map_array(folder, of->name, type, weir_nn_parameter_count(t->whole), &map, &all);
    if (!err) weir_train_shares_take(t->shares, t->nn, all, of->numbers);
    weir_npy_map_close(map);
    return err;
}

/* Every rank reads it: the folder is shared, or this is one machine. */
weir_err weir_training_state_load(weir_trained *t) {
    char folder[STATE_PATH_BYTES];
    uint64_t state[STATE_COUNT];
    if (!t->opts.folder) return WEIR_ERR(WEIR_ENOTFOUND, "there is no folder with a checkpoint");
    weir_err err = weir_path_join(folder, sizeof folder, t->opts.folder, "checkpoint");
    if (!err && !weir_path_exists(folder))
        err = weir_path_join(folder, sizeof folder, t->opts.folder, "checkpoint.old");
    if (!err && !weir_path_exists(folder))
        err = WEIR_ERR(WEIR_ENOTFOUND, "there is no checkpoint in %s", t->opts.folder);
    if (err) return err;
    err = weir_manifest_verify(folder);
    if (weir_err_is(err, WEIR_ENOTFOUND)) /* else it would be taken for none, and replaced */
        err = WEIR_ERR(WEIR_ECORRUPT, "the checkpoint %s has lost its MANIFEST; remove it to begin anew", folder);
    if (!err) err = state_load_array(folder, "state", WEIR_NPY_U64, state, STATE_COUNT);
    if (!err && state[STATE_FINGERPRINT] != t->fingerprint)
        err = WEIR_ERR(WEIR_EVERSION,
                       "the checkpoint %s is of other options, another seed, another snapshot or another version of "
                       "weir; remove it to begin anew",
                       folder);
    if (!err && (state[STATE_EPOCHS] == 0 || state[STATE_EPOCHS] > UINT32_MAX || state[STATE_BEST_EPOCH] == 0 ||
                 state[STATE_BEST_EPOCH] > state[STATE_EPOCHS]))
        err =
            WEIR_ERR(WEIR_ECORRUPT, "the checkpoint %s says epoch %llu, of them %llu the best; remove it to begin anew",
                     folder, (unsigned long long)state[STATE_EPOCHS], (unsigned long long)state[STATE_BEST_EPOCH]);
    uint32_t count;
    weir_nn_moments *moments = weir_nn_learner_moments(t->learner, &count);
    if (!err) err = state_load_array(folder, "moments", WEIR_NPY_F64, moments, count * STATE_MOMENT);
    if (!err) weir_nn_learner_finish(t->learner); /* the scales that the parameters have learnt with */
    state_reals reals[WEIR_TRAINING_REALS_MAX];
    const uint32_t arrays = state_list_reals(t, reals);
    for (uint32_t i = 0; !err && i < arrays; i++)
        err = state_load_reals(t, folder, &reals[i]);
    if (weir_err_is(err, WEIR_ENOTFOUND)) /* else it would be taken for no checkpoint, with half of it loaded */
        err = WEIR_ERR(WEIR_ECORRUPT, "the checkpoint %s lacks an array; remove it to begin anew", folder);
    if (err) return err;

    /* TRAIN-R2: an epoch begins with parameters, moments, mean and the count of steps alone; it draws by its number. */
    weir_adamw_steps_set(t->adamw, state[STATE_STEPS]);
    t->state = (weir_training_state){(uint32_t)state[STATE_EPOCHS], (uint32_t)state[STATE_BEST_EPOCH], 0};
    memcpy(&t->state.best, &state[STATE_BEST], sizeof t->state.best);
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scoring.h - threads that score what requests ask for, in batches across requests, by a model that can be swapped.
 *
 *   submit ──► queue ──► [worker] prepare each ─► one forward pass over all of them ─► done each
 *                                    ▲
 *                      the model: taken once a batch, so each request has one (SCORE-C4)
 *
 * A free worker takes what waits: the busier the server, the larger the batch, and no request waits for others
 * unless delay_us says so. A request whose time would be over before its turn comes is refused when it is submitted. A
 * batch that would be too late for one of its requests is run request by request, the most urgent first.
 *
 * THREADS: submit, swaps, models, watch_look and watch_state are [any]; callbacks run on a [worker] and must not
 *          wait.
 */
#ifndef WEIR_INFERENCE_SCORE_SCORING_H
#define WEIR_INFERENCE_SCORE_SCORING_H

#include <weir/inference/model/model.h>
#include <weir/inference/recommend/recommend.h>
#include <weir/inference/score/score.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SCORING_THREADS_MAX 64u
#define WEIR_SCORING_QUEUE       1024u /* requests that may wait */

typedef struct weir_scoring weir_scoring;

/* One request. A plain value. */
typedef struct weir_scoring_work {
    void *context;
    /* Sets at most WEIR_SCORE_BATCH_MAX asks, which the context keeps until done. An error, and WEIR_ELIMIT for more
     * asks, goes to done. */
    weir_err (*prepare)(void *context, uint32_t thread, const weir_score_model *model, const weir_score_ask **asksp,
                        uint32_t *countp);
    /* Called once. model is NULL when there is none, or the time was over before it was prepared. scores are one an
     * ask, borrowed for the call; NULL with an error, without a model or without asks. err is what prepare or the
     * scorer said, or WEIR_ETIMEOUT. */
    void (*done)(void *context, uint32_t thread, const weir_score_model *model, const weir_score *scores, weir_err err);
    int64_t deadline_us; /* monotonic: after it the request is not prepared; 0: none */
    uint32_t targets;    /* that prepare will ask for, as far as is known; 0: 1      */
} weir_scoring_work;

typedef struct weir_scoring_opts {
    weir_graph *graph; /* borrowed                                                            */
    uint32_t threads;  /* 0: 2                                                                */
    uint32_t batch;    /* requests that a worker takes at once; 0: WEIR_SCORE_BATCH_MAX       */
    int64_t delay_us;  /* how long a worker waits for more once it has one; 0: not at all     */
    /* For tests: the clock of the deadlines, borrowed (NULL: the system's), and how long a target is believed to take
     * (0: learnt). */
    weir_clock *clock;
    int64_t target_ns;
} weir_scoring_opts;

/* WEIR_EINVAL options out of range; WEIR_ENOMEM; WEIR_EUNAVAILABLE no thread could be started.  [owner] */
weir_err weir_scoring_open(const weir_scoring_opts *opts, weir_scoring **scoringp);
/* Answers what waits, then ends. NULL is allowed.  Blocks.  [owner] */
void weir_scoring_close(weir_scoring *scoring);
uint32_t weir_scoring_threads(const weir_scoring *scoring);
/* Copies the work.  WEIR_EBUSY too many wait already, or so many that its time would be over before its turn;
 * WEIR_ETIMEOUT its time is over already; WEIR_ECLOSED. After an error `done` is not called.  [any] */
weir_err weir_scoring_submit(weir_scoring *scoring, const weir_scoring_work *work);
/* From the next batch on, this model answers instead of the one before; shares it. NULL: none does.  [any] */
void weir_scoring_swap(weir_scoring *scoring, weir_score_model *model);
/* The model that answers now, shared with the caller; NULL: none.  [any] */
weir_score_model *weir_scoring_model(weir_scoring *scoring);
/* The same of a model that recommends: it stands beside the workers, who do not use it, and takes the place of one that
 * scores; a swap of either is one of both.  [any] */
void weir_scoring_swap_recommender(weir_scoring *scoring, weir_recommend_model *model);
weir_recommend_model *weir_scoring_recommender(weir_scoring *scoring);

/* --- the model that the register names -------------------------------------------------------------------------- */

typedef struct weir_scoring_watch weir_scoring_watch;

typedef struct weir_scoring_watch_opts {
    weir_scoring *scoring;     /* borrowed                                                                    */
    const weir_schema *schema; /* borrowed                                                                    */
    const char *folder;        /* of the register                                                             */
    const char *data_keys;     /* file of public keys, borrowed: counts if it is there at a load; NULL: never */
    const char *public_keys;   /* else this one, borrowed; it may be missing: nothing signed can be checked   */
    const char *seen;          /* file of the newest promotion that was seen, borrowed: an older one is refused;
                                  NULL: none is refused for its age                                           */
    bool accept_unsigned;
    const weir_kernels *kernels; /* of networks, borrowed, until no model is there any more; NULL: the processor's */
} weir_scoring_watch_opts;

/* What serves, and what is wrong. A plain value; texts are the caller's copy. */
typedef struct weir_scoring_state {
    uint64_t generation; /* of the register, when it was last believed; 0: none              */
    char serving[WEIR_MODEL_ID_MAX];
    char trouble[WEIR_ERR_SENTENCE_MAX]; /* why the register is not followed; "": it is, or names none */
} weir_scoring_state;

/* WEIR_ENOMEM; what weir_models_open reports.  [owner] */
weir_err weir_scoring_watch_open(const weir_scoring_watch_opts *opts, weir_scoring_watch **watchp);
void weir_scoring_watch_close(weir_scoring_watch *watch); /* NULL is allowed */
/* Reads the register if it has changed or was not believed, force: always, and loads what it names unless that serves.
 * A model that cannot be loaded is one line in the log, the one before goes on serving, and later looks try it again,
 * after longer and longer pauses.  Blocks on the disk.  [any] */
void weir_scoring_watch_look(weir_scoring_watch *watch, bool force);
void weir_scoring_watch_state(weir_scoring_watch *watch, weir_scoring_state *statep);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_SCORE_SCORING_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - what `weir serve` answers: events in, the graph as it is now out.
 *
 *   POST /v1/events ──► [writer] validate ─► append ─► group sync ─► acknowledge       (the log is the truth)
 *   GET  /v1/…      ──► freshness ─► read the living graph ─► JSON
 *
 * The table of routes is here, openapi.json describes it, and a test holds the two against each other.
 *
 * INVARIANTS: each is cited where the code keeps it, and by a test of the same name
 *
 *   API-A1  An event is acknowledged only when the log has it durably; the events of one request are taken all or none,
 *           unless a crash comes before the answer: then the log may have the first ones of them.
 *   API-A2  An event whose id a partition of its source remembers (repeats.h) is not appended again: if its content is
 *           the same, the answer is the first one's place, else the request is refused.
 *   API-A3  The freshness of an answer is determined before the graph is read: what it says was applied is in the
 *           answer. The end that it gives includes every event that was acknowledged before.
 *   API-A4  Ready is said only after all that the sources had at the start is applied, but for what open transactions
 *           held back then, and never while stopping or failed.
 *   API-A5  No answer comes from a store that is rebuilt from a log before it has all that was in the log at the start.
 */
#ifndef WEIR_HTTP_API_API_H
#define WEIR_HTTP_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/http/server/server.h>
#include <weir/inference/score/scoring.h>
#include <weir/ingest/eventlog/eventlog.h>
#include <weir/ingest/pipeline/pipeline.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>
#include <weir/store/graph/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_API_EVENTS_MAX    10000u      /* in one request                             */
#define WEIR_API_EVENTS_BYTES  (16u << 20) /* of its body                                */
#define WEIR_API_NEIGHBORS_MAX 1000u       /* of one relation and direction in an answer */
#define WEIR_API_KEYS_MAX      1024u

#define WEIR_API_CHECKPOINT_NAME 80u /* characters of a checkpoint's name at most */

typedef struct weir_api weir_api;
typedef struct weir_api_keys weir_api_keys;

typedef struct weir_api_opts {
    weir_graph *graph;          /* borrowed; outlives the handle                                             */
    weir_pipeline *pipeline;    /* borrowed; outlives the handle; started                                    */
    weir_eventlog *const *logs; /* one a source of the schema; NULL: its events are not appended here        */
    weir_scoring *scoring;      /* borrowed; closed before the handle, which its threads use; NULL: no scores */
    weir_scoring_watch *watch;  /* borrowed; NULL: the caller replaces models itself                        */
    weir_api_keys *keys;        /* borrowed; NULL: none                                                      */
    const char *checkpoints;    /* folder that they are written into; borrowed; NULL: none are written       */
    const char *nights;         /* folder of weir nightly; borrowed; NULL: there is none                     */
    int64_t nightly_every_us;   /* a night is expected to end well as often; 0: none is                      */
    uint32_t loops;             /* of the server that will run the handlers                                  */
    uint64_t behind_max;        /* records of a source before it is not ready and takes no events; 0: no limit   */
    int64_t stale_max_us;       /* how long a source may lack its brokers, or wait for an open transaction, before
                                   it is not ready; 0: for ever                                            */
    weir_clock *clock;          /* borrowed; NULL: the system's                                              */
} weir_api_opts;

/* Starts the writer, which first reads from store and log which event ids there are.  WEIR_ENOMEM, WEIR_EUNAVAILABLE.
 * [owner] */
weir_err weir_api_open(const weir_api_opts *opts, weir_api **apip);
/* The server must have stopped, which waits for all that was deferred. NULL is allowed.  [owner] */
void weir_api_close(weir_api *api);

/* For weir_http_opts: the context is the weir_api. */
const weir_http_route *weir_api_routes(size_t *countp);
bool weir_api_authenticate(void *context, const char *key, size_t length, weir_http_caller *callerp);
/* openapi.json, as served. */
const char *weir_api_openapi(size_t *lengthp);
/* The console page and its files, as served. */
const char *weir_api_page_html(size_t *lengthp);
const char *weir_api_page_js(size_t *lengthp);
const char *weir_api_page_css(size_t *lengthp);

/* Checks how far the pipeline is; true once it is ready (API-A4). Call it now and then until it is.  [owner] */
bool weir_api_look(weir_api *api);
/* Sets the gauge of overdue nights from their history, once a minute; call it now and then.  Blocks on the disk.
 * [owner] */
void weir_api_nightly_look(weir_api *api);
/* From now on /readyz says no.  [owner] */
void weir_api_stopping(weir_api *api);

/* --- keys ----------------------------------------------------------------------------------------------------- */

/* A file of lines: roles (reader, writer, admin, separated by commas), the SHA-256 of the key in hex, a name. '#'
 * begins a comment.  WEIR_ECONFIG names file and line, or says that there is no key; WEIR_ELIMIT a file above 1 MiB;
 * WEIR_EPERM others may change the file, and what to do; WEIR_ENOTFOUND and the like from file.h; WEIR_ENOMEM.  Blocks
 * on the disk.  [any] */
weir_err weir_api_keys_load(const char *path, weir_api_keys **keysp);
weir_err weir_api_keys_parse(const char *name, const char *text, size_t length, weir_api_keys **keysp);
/* From now on these are the keys; after an error they are what they were.  As weir_api_keys_load.  [any] */
weir_err weir_api_keys_reload(weir_api_keys *keys, const char *path);
/* Takes as long for a wrong key as for a right one.  [any] */
bool weir_api_keys_find(weir_api_keys *keys, const char *key, size_t length, weir_http_caller *callerp);
void weir_api_keys_free(weir_api_keys *keys);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_HTTP_API_API_H */

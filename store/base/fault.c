/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - one armed failure and one armed kill point, behind a word that is 0 in production. */
#include <weir/store/base/fault.h>

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/suggest.h>
#include <weir/store/base/thread.h>

#define SPEC_TEXT_MAX 256u /* of a path part and of a kill point's name, their end included */

typedef enum fault_kind { FAULT_FAIL, FAULT_SHORT, FAULT_PART } fault_kind;

typedef struct fault_spec {
    int op; /* a weir_fault_op, or OP_ANY */
    uint64_t nth;
    fault_kind kind;
    int errno_value;
    bool once;
    char path_part[SPEC_TEXT_MAX];
} fault_spec;

typedef struct kill_spec {
    uint64_t nth;
    char name[SPEC_TEXT_MAX];
} kill_spec;

enum { OP_ANY = -1 };
enum { ACTIVE_FAULT = 1, ACTIVE_KILL = 2, ACTIVE_WATCHER = 4 };

static atomic_uint active; /* [any] which of the three there are */
static weir_mutex lock = {PTHREAD_MUTEX_INITIALIZER, WEIR_RANK_LEAF, "fault"};
static fault_spec fault;           /* under lock */
static uint64_t seen;              /* under lock */
static kill_spec kill_at;          /* under lock */
static uint64_t passed;            /* under lock */
static weir_fault_watcher watcher; /* changed while no other thread uses files */
static void *watcher_context;

static const struct op_name {
    const char *name;
    int op;
} op_names[] = {
#define OP_NAME(op, name) {name, WEIR_FAULT_##op},
    WEIR_FAULT_OPERATIONS(OP_NAME)
#undef OP_NAME
        {"any", OP_ANY}};

#define ERRNO(name) \
    { #name, FAULT_FAIL, name }
static const struct what {
    const char *name;
    fault_kind kind;
    int errno_value;
} whats[] = {ERRNO(EIO),
             ERRNO(ENOSPC),
             ERRNO(EDQUOT),
             ERRNO(EACCES),
             ERRNO(EPERM),
             ERRNO(EROFS),
             ERRNO(ENOENT),
             ERRNO(EEXIST),
             ERRNO(EBUSY),
             ERRNO(EINVAL),
             ERRNO(EINTR),
             ERRNO(ENOMEM),
             ERRNO(EMFILE),
             ERRNO(EFBIG),
             ERRNO(EWOULDBLOCK),
             {"short", FAULT_SHORT, ENOSPC},
             {"part", FAULT_PART, 0}};
#undef ERRNO

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

const char *weir_fault_op_name(weir_fault_op op) {
    return op_names[op].name;
}

/* --- reading a spec ------------------------------------------------------------------------------------------- */

/* Takes the text up to the next ':' or the end out of *restp. */
static void spec_take_word(const char **restp, char *word, size_t size) {
    size_t length = strcspn(*restp, ":");
    size_t copied = length < size ? length : size - 1;
    memcpy(word, *restp, copied);
    word[copied] = 0;
    *restp += length + ((*restp)[length] == ':');
}

static weir_err spec_read_op(const char *word, int *opp) {
    weir_suggest suggest = weir_suggest_for(word);
    char hint[64];
    for (size_t i = 0; i < COUNT_OF(op_names); i++) {
        if (strcmp(word, op_names[i].name) == 0) {
            *opp = op_names[i].op;
            return WEIR_OK;
        }
        weir_suggest_offer(&suggest, op_names[i].name);
    }
#define LISTED(op, name) name ", "
    return WEIR_ERR(WEIR_EUSAGE, "'%s' is not an operation; use one of " WEIR_FAULT_OPERATIONS(LISTED) "any%s", word,
                    weir_suggest_text(&suggest, hint, sizeof hint));
#undef LISTED
}

static weir_err spec_read_nth(const char *word, uint64_t *nthp) {
    char *end;
    errno = 0;
    unsigned long long nth = strtoull(word, &end, 10);
    if (!isdigit((unsigned char)word[0]) || *end || errno || nth == 0) {
        return WEIR_ERR(WEIR_EUSAGE, "'%s' is not a count; write which one fails, counting from 1", word);
    }
    *nthp = nth;
    return WEIR_OK;
}

static weir_err spec_read_what(const char *word, fault_spec *spec) {
    weir_suggest suggest = weir_suggest_for(word);
    char hint[64];
    for (size_t i = 0; i < COUNT_OF(whats); i++) {
        if (strcmp(word, whats[i].name) == 0) {
            spec->kind = whats[i].kind;
            spec->errno_value = whats[i].errno_value;
            return WEIR_OK;
        }
        weir_suggest_offer(&suggest, whats[i].name);
    }
    return WEIR_ERR(WEIR_EUSAGE, "'%s' is not a failure; use EIO, ENOSPC, another errno, short or part%s", word,
                    weir_suggest_text(&suggest, hint, sizeof hint));
}

static weir_err spec_read_fault(const char *text, fault_spec *spec) {
    char word[32];
    *spec = (fault_spec){0};
    spec_take_word(&text, word, sizeof word);
    weir_err err = spec_read_op(word, &spec->op);
    spec_take_word(&text, word, sizeof word);
    if (!err) err = spec_read_nth(word, &spec->nth);
    spec_take_word(&text, word, sizeof word);
    if (!err) err = spec_read_what(word, spec);
    if (err) return err;
    bool moves_bytes = spec->op == OP_ANY || spec->op == WEIR_FAULT_READ || spec->op == WEIR_FAULT_WRITE;
    if (spec->kind != FAULT_FAIL && !moves_bytes) {
        return WEIR_ERR(WEIR_EUSAGE, "'%s' needs an operation that moves bytes: read, write or any", word);
    }
    if (strncmp(text, "once", 4) == 0 && (text[4] == ':' || !text[4])) {
        spec->once = true;
        text += text[4] ? 5 : 4;
    }
    size_t length = strlen(text);
    if (length >= sizeof spec->path_part) {
        return WEIR_ERR(WEIR_EUSAGE, "the path part has %zu bytes; at most %u are allowed", length, SPEC_TEXT_MAX - 1);
    }
    memcpy(spec->path_part, text, length);
    return WEIR_OK;
}

static void fault_activate(unsigned bit, bool on) {
    if (on) {
        atomic_fetch_or(&active, bit);
    } else {
        atomic_fetch_and(&active, ~bit);
    }
}

weir_err weir_fault_arm(const char *spec) {
    fault_spec parsed;
    fault_activate(ACTIVE_FAULT, false);
    if (!spec) return WEIR_OK;
    weir_err err = spec_read_fault(spec, &parsed);
    if (err) return weir_err_prefix(err, "the fault '%s'", spec);
    weir_mutex_lock(&lock);
    fault = parsed;
    seen = 0;
    weir_mutex_unlock(&lock);
    fault_activate(ACTIVE_FAULT, true);
    return WEIR_OK;
}

weir_err weir_fault_kill_arm(const char *spec) {
    kill_spec parsed = {0};
    fault_activate(ACTIVE_KILL, false);
    if (!spec) return WEIR_OK;
    const char *colon = strrchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : 0;
    if (length == 0 || length >= sizeof parsed.name) {
        return WEIR_ERR(WEIR_EUSAGE, "the kill point '%s' is not of the form name:count, as in eventlog.synced:7",
                        spec);
    }
    weir_err err = spec_read_nth(colon + 1, &parsed.nth);
    if (err) return weir_err_prefix(err, "the kill point '%s'", spec);
    memcpy(parsed.name, spec, length);
    weir_mutex_lock(&lock);
    kill_at = parsed;
    passed = 0;
    weir_mutex_unlock(&lock);
    fault_activate(ACTIVE_KILL, true);
    return WEIR_OK;
}

weir_err weir_fault_from_environment(void) {
    WEIR_ON_ROLE(MAIN);
    weir_err err = weir_err_prefix(weir_fault_arm(getenv("WEIR_FAULT")), "WEIR_FAULT");
    if (err) return err;
    return weir_err_prefix(weir_fault_kill_arm(getenv("WEIR_KILL_AT")), "WEIR_KILL_AT");
}

/* --- being passed --------------------------------------------------------------------------------------------- */

int weir_fault_check(weir_fault_op op, const char *path, size_t *bytesp) {
    unsigned what = atomic_load_explicit(&active, memory_order_relaxed);
    if (what & ACTIVE_WATCHER) watcher(watcher_context, op, path);
    if (!(what & ACTIVE_FAULT)) return 0;
    int error = 0;
    size_t bytes = bytesp ? *bytesp : 0;
    weir_mutex_lock(&lock);
    bool meant = (fault.op == OP_ANY || fault.op == (int)op) && strstr(path, fault.path_part);
    if (meant) seen++;
    if (meant && (seen == fault.nth || (seen > fault.nth && !fault.once))) {
        error = fault.errno_value;
        switch (fault.kind) {
        case FAULT_FAIL:
            bytes = 0;
            break;
        case FAULT_SHORT:
            bytes = seen == fault.nth ? bytes / 2 : 0;
            break;
        case FAULT_PART:
            bytes -= bytes / 2; /* never 0: that would be the end of the file */
            break;
        }
    }
    weir_mutex_unlock(&lock);
    WEIR_ASSERT(!bytesp || bytes <= *bytesp);
    if (bytesp) *bytesp = bytes;
    return error;
}

uint64_t weir_fault_seen(void) {
    weir_mutex_lock(&lock);
    uint64_t count = seen;
    weir_mutex_unlock(&lock);
    return count;
}

void weir_kill_point(const char *name) {
    if (!(atomic_load_explicit(&active, memory_order_relaxed) & ACTIVE_KILL)) return;
    weir_mutex_lock(&lock);
    if (strcmp(name, kill_at.name) == 0 && ++passed == kill_at.nth) kill(getpid(), SIGKILL);
    weir_mutex_unlock(&lock);
}

void weir_fault_watch(weir_fault_watcher new_watcher, void *context) {
    fault_activate(ACTIVE_WATCHER, false);
    watcher = new_watcher;
    watcher_context = context;
    fault_activate(ACTIVE_WATCHER, new_watcher != NULL);
}

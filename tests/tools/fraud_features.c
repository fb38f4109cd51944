/* SPDX-License-Identifier: Apache-2.0 */
#include "fraud_features.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/table.h>

#define HOUR_US  3600000000ll
#define DAY_US   (24 * HOUR_US)
#define RECENT   32u
#define NONE     UINT32_MAX
#define NEAR_MAX 96u

/* --- what is remembered ------------------------------------------------------------------------------------------- */

/* The newest RECENT partners of something. */
typedef struct recent {
    int64_t time[RECENT];
    uint32_t who[RECENT];
    uint32_t count;
} recent;

/* How often something happened, forgotten by half in a day and in a week. */
typedef struct fading {
    int64_t time;
    double day, week;
} fading;

typedef struct node {
    recent out; /* account: devices; device: accounts; card and merchant: merchants, accounts */
    recent in;  /* account: senders                                                           */
    recent to;  /* account: merchants and payees                                              */
    fading all, fresh;
    int64_t first, last, last_in;
    double amount_sum, amount_count, last_in_amount;
    uint32_t country, depth;
    uint64_t set; /* the last set that it was in */
} node;

typedef struct memo {
    uint32_t tag;
    uint64_t key;
    int64_t value;
} memo;

enum { ACCOUNT, CARD, DEVICE, MERCHANT, KINDS };

struct features {
    weir_table names; /* kind and number to node index */
    weir_table pairs; /* two nodes to the time of their first meeting */
    node *nodes;
    size_t node_count, node_capacity;
    uint64_t set; /* the set being gathered; 0 is none */
};

/* The value of the key, made with value missing when it is new. */
static weir_err memo_value(weir_table *table, uint64_t key, int64_t missing, int64_t **valuep) {
    memo *k = weir_table_first(table, key, sizeof *k);
    while (k && k->key != key)
        k = weir_table_next(table, k, sizeof *k);
    if (!k) {
        if (!weir_table_reserve(table, table->count + 1, sizeof *k)) return WEIR_NOMEM("for features; use fewer days");
        k = weir_table_add(table, key, sizeof *k);
        k->key = key;
        k->value = missing;
    }
    *valuep = &k->value;
    return WEIR_OK;
}

static weir_err node_index(features *f, uint32_t kind, uint64_t number, int64_t time_us, uint32_t *indexp) {
    int64_t *index = NULL;
    weir_err err = memo_value(&f->names, (uint64_t)(kind + 1) << 60 | number, -1, &index);
    if (err) return err;
    if (*index < 0) {
        if (f->node_count == f->node_capacity) {
            size_t capacity = f->node_capacity ? 2 * f->node_capacity : 4096;
            node *nodes = weir_realloc_array(f->nodes, capacity, sizeof *nodes);
            if (!nodes) return WEIR_NOMEM("for features; use fewer accounts");
            f->nodes = nodes;
            f->node_capacity = capacity;
        }
        *index = (int64_t)f->node_count++;
        f->nodes[*index] = (node){.first = time_us, .last = time_us, .country = NONE};
    }
    *indexp = (uint32_t)*index;
    return WEIR_OK;
}

/* Days since a and b first met; 0 when they meet now. */
static weir_err pair_age(features *f, uint32_t a, uint32_t b, int64_t time_us, float *agep) {
    int64_t *first = NULL;
    weir_err err = memo_value(&f->pairs, (uint64_t)(a + 1) << 32 | b, time_us, &first);
    if (err) return err;
    *agep = (float)((double)(time_us - *first) / (double)DAY_US);
    return WEIR_OK;
}

/* --- looking back ------------------------------------------------------------------------------------------------- */

static void recent_add(recent *r, int64_t time_us, uint32_t who) {
    uint32_t at = r->count++ % RECENT;
    r->time[at] = time_us;
    r->who[at] = who;
}

static uint32_t recent_held(const recent *r) {
    return r->count < RECENT ? r->count : RECENT;
}

static uint32_t recent_since(const recent *r, int64_t since) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < recent_held(r); i++)
        n += r->time[i] >= since;
    return n;
}

/* Begins an empty set of nodes: membership is a mark on the node, so that a look around costs no search. */
static void set_begin(features *f) {
    f->set++;
}

static bool set_add(features *f, uint32_t who) {
    if (who == NONE || f->nodes[who].set == f->set) return false;
    f->nodes[who].set = f->set;
    return true;
}

/* Appends the partners since then that are not yet in the set. */
static void recent_gather(features *f, const recent *r, int64_t since, uint32_t *list, uint32_t *countp, uint32_t max) {
    for (uint32_t i = 0; i < recent_held(r) && *countp < max; i++)
        if (r->time[i] >= since && set_add(f, r->who[i])) list[(*countp)++] = r->who[i];
}

static uint32_t recent_distinct(features *f, const recent *r, int64_t since) {
    uint32_t list[RECENT];
    uint32_t n = 0;
    set_begin(f);
    recent_gather(f, r, since, list, &n, RECENT);
    return n;
}

static void fading_to(fading *x, int64_t time_us) {
    double days = (double)(time_us - x->time) / (double)DAY_US;
    x->day *= exp2(-days);
    x->week *= exp2(-days / 7);
    x->time = time_us;
}

static void fading_add(fading *x) {
    x->day += 1;
    x->week += 1;
}

/* --- the message -------------------------------------------------------------------------------------------------- */

typedef struct pay {
    int64_t time_us;
    uint64_t number[KINDS], payee_number;
    uint32_t id[KINDS], payee;
    double amount;
    uint32_t channel, country, currency, mcc;
} pay;

static const char *find(const char *value, size_t length, const char *field, size_t *left) {
    const char *at = memmem(value, length, field, strlen(field));
    if (!at) return NULL;
    at += strlen(field);
    *left = length - (size_t)(at - value);
    return at;
}

/* Digits at the field, or NONE64 when the message has no such field. */
static uint64_t find_number(const char *value, size_t length, const char *field) {
    size_t left = 0;
    const char *at = find(value, length, field, &left);
    if (!at) return UINT64_MAX;
    uint64_t number = 0;
    for (; left && *at >= '0' && *at <= '9'; at++, left--)
        number = number * 10 + (uint64_t)(*at - '0');
    return number;
}

/* The first letters at the field as a number. */
static uint32_t find_letters(const char *value, size_t length, const char *field) {
    size_t left = 0;
    const char *at = find(value, length, field, &left);
    return at && left >= 3 ? (uint32_t)((at[0] & 31) << 10 | (at[1] & 31) << 5 | (at[2] & 31)) : 0;
}

static weir_err parse(const char *value, size_t length, int64_t time_us, pay *p) {
    *p = (pay){.time_us = time_us, .payee = NONE};
    p->number[ACCOUNT] = find_number(value, length, "\"account\":\"a");
    p->number[CARD] = find_number(value, length, "\"card\":\"c");
    p->number[DEVICE] = find_number(value, length, "\"device\":\"d");
    p->number[MERCHANT] = find_number(value, length, "\"merchant\":\"m");
    p->payee_number = find_number(value, length, "\"payee\":\"a");
    size_t left = 0;
    const char *amount = find(value, length, "\"amount\":", &left);
    if (p->number[ACCOUNT] == UINT64_MAX || p->number[DEVICE] == UINT64_MAX || !amount ||
        (p->number[MERCHANT] == UINT64_MAX) == (p->payee_number == UINT64_MAX))
        return WEIR_ERR(WEIR_EDATA, "a payment lacks account, device, amount, or one of merchant and payee");
    p->amount = strtod(amount, NULL);
    p->channel = find_letters(value, length, "\"channel\":\"");
    p->country = find_letters(value, length, "\"country\":\"") >> 5;
    p->currency = find_letters(value, length, "\"currency\":\"");
    uint64_t mcc = find_number(value, length, "\"mcc\":\"");
    p->mcc = mcc == UINT64_MAX ? 0 : (uint32_t)mcc;
    return WEIR_OK;
}

static weir_err resolve(features *f, pay *p) {
    weir_err err = WEIR_OK;
    for (uint32_t kind = 0; !err && kind < KINDS; kind++) {
        p->id[kind] = NONE;
        if (p->number[kind] != UINT64_MAX) err = node_index(f, kind, p->number[kind], p->time_us, &p->id[kind]);
    }
    if (!err && p->payee_number != UINT64_MAX) err = node_index(f, ACCOUNT, p->payee_number, p->time_us, &p->payee);
    return err;
}

/* --- features ----------------------------------------------------------------------------------------------------- */

static float days_since(int64_t now, int64_t then) {
    return (float)((double)(now - then) / (double)DAY_US);
}

static void row_features(const pay *p, float *row) {
    row[FEATURE_amount] = (float)p->amount;
    row[FEATURE_cents] = (float)fmod(round(p->amount * 100), 100);
    row[FEATURE_hour] = (float)(p->time_us % DAY_US) / (float)HOUR_US;
    row[FEATURE_weekday] = (float)((p->time_us / DAY_US + 3) % 7);
    row[FEATURE_channel] = (float)p->channel;
    row[FEATURE_country] = (float)p->country;
    row[FEATURE_currency] = (float)p->currency;
    row[FEATURE_mcc] = (float)p->mcc;
    row[FEATURE_has_card] = p->id[CARD] != NONE;
}

static void account_features(features *f, const pay *p, float *row) {
    const node *account = &f->nodes[p->id[ACCOUNT]];
    int64_t now = p->time_us;
    row[FEATURE_account_1h] = (float)recent_since(&account->out, now - HOUR_US);
    row[FEATURE_account_24h] = (float)recent_since(&account->out, now - DAY_US);
    row[FEATURE_account_gap] = days_since(now, account->last);
    row[FEATURE_account_age] = days_since(now, account->first);
    row[FEATURE_account_devices_7d] = (float)recent_distinct(f, &account->out, now - 7 * DAY_US);
    if (account->amount_count > 0)
        row[FEATURE_account_amount_ratio] = (float)(p->amount * account->amount_count / account->amount_sum);
    row[FEATURE_account_country_changed] = account->country != NONE && account->country != p->country;
    row[FEATURE_incoming_24h] = (float)recent_since(&account->in, now - DAY_US);
    if (!account->last_in) return;
    row[FEATURE_incoming_gap] = days_since(now, account->last_in);
    row[FEATURE_incoming_ratio] = (float)(p->amount / account->last_in_amount);
}

static void card_features(features *f, const pay *p, float *row) {
    if (p->id[CARD] == NONE) return;
    const node *card = &f->nodes[p->id[CARD]];
    row[FEATURE_card_1h] = (float)recent_since(&card->out, p->time_us - HOUR_US);
    row[FEATURE_card_24h] = (float)recent_since(&card->out, p->time_us - DAY_US);
    row[FEATURE_card_age] = days_since(p->time_us, card->first);
    row[FEATURE_account_merchants_24h] = (float)recent_distinct(f, &card->out, p->time_us - DAY_US);
}

static weir_err device_features(features *f, const pay *p, float *row) {
    const node *device = &f->nodes[p->id[DEVICE]];
    row[FEATURE_device_accounts_24h] = (float)recent_distinct(f, &device->out, p->time_us - DAY_US);
    row[FEATURE_device_accounts_7d] = (float)recent_distinct(f, &device->out, p->time_us - 7 * DAY_US);
    row[FEATURE_device_payments_24h] = (float)recent_since(&device->out, p->time_us - DAY_US);
    row[FEATURE_device_age] = days_since(p->time_us, device->first);
    return pair_age(f, p->id[ACCOUNT], p->id[DEVICE], p->time_us, &row[FEATURE_device_age_for_account]);
}

static weir_err merchant_features(features *f, const pay *p, float *row) {
    if (p->id[MERCHANT] == NONE) return WEIR_OK;
    node *merchant = &f->nodes[p->id[MERCHANT]];
    fading_to(&merchant->all, p->time_us);
    fading_to(&merchant->fresh, p->time_us);
    row[FEATURE_merchant_day] = (float)merchant->all.day;
    row[FEATURE_merchant_week] = (float)merchant->all.week;
    row[FEATURE_merchant_new_day] = (float)(merchant->fresh.day / (merchant->all.day + 1));
    row[FEATURE_merchant_new_week] = (float)(merchant->fresh.week / (merchant->all.week + 1));
    return pair_age(f, p->id[ACCOUNT], p->id[MERCHANT], p->time_us, &row[FEATURE_merchant_age_for_account]);
}

static weir_err payee_features(features *f, const pay *p, float *row) {
    if (p->payee == NONE) return WEIR_OK;
    const node *payee = &f->nodes[p->payee];
    row[FEATURE_payee_senders_24h] = (float)recent_distinct(f, &payee->in, p->time_us - DAY_US);
    row[FEATURE_payee_senders_7d] = (float)recent_distinct(f, &payee->in, p->time_us - 7 * DAY_US);
    row[FEATURE_payee_sent_24h] = (float)recent_since(&payee->out, p->time_us - DAY_US);
    return pair_age(f, p->id[ACCOUNT], p->payee, p->time_us, &row[FEATURE_payee_age_for_account]);
}

static uint32_t who_meet(const features *f, const uint32_t *accounts, uint32_t begin, uint32_t end, uint32_t target,
                         int64_t since) {
    uint32_t n = 0;
    for (uint32_t i = begin; i < end; i++) {
        const recent *to = &f->nodes[accounts[i]].to;
        for (uint32_t j = 0; j < recent_held(to); j++) {
            if (to->who[j] != target || to->time[j] < since) continue;
            n++;
            break;
        }
    }
    return n;
}

/* Accounts reached over shared devices in one step and in two; terminals of shops are no one's device. */
static void near_features(features *f, const pay *p, float *row) {
    int64_t since = p->time_us - 7 * DAY_US;
    uint32_t target = p->payee != NONE ? p->payee : p->id[MERCHANT];
    uint32_t accounts[NEAR_MAX] = {p->id[ACCOUNT]};
    uint32_t devices[NEAR_MAX] = {p->id[DEVICE]};
    uint32_t account_count = 1, device_count = 1, seen_accounts = 0, seen_devices = 0;
    set_begin(f);
    set_add(f, accounts[0]);
    set_add(f, devices[0]);
    for (int hop = 0; hop < 2; hop++) {
        for (; seen_accounts < account_count; seen_accounts++)
            recent_gather(f, &f->nodes[accounts[seen_accounts]].out, since, devices, &device_count, NEAR_MAX);
        for (; seen_devices < device_count; seen_devices++)
            recent_gather(f, &f->nodes[devices[seen_devices]].out, since, accounts, &account_count, NEAR_MAX);
        row[hop == 0 ? FEATURE_near_accounts : FEATURE_far_accounts] = (float)account_count;
        uint32_t known = who_meet(f, accounts, 1, account_count, target, p->time_us - 21 * DAY_US);
        row[hop == 0 ? FEATURE_target_of_near : FEATURE_target_of_far] = (float)known;
    }
    const recent *users = &f->nodes[p->id[DEVICE]].out;
    double sum = 0;
    for (uint32_t i = 0; i < recent_held(users); i++)
        sum += recent_distinct(f, &f->nodes[users->who[i]].out, since);
    if (users->count) row[FEATURE_device_neighbour_devices] = (float)(sum / recent_held(users));
}

static void chain_features(const features *f, const pay *p, float *row) {
    const node *account = &f->nodes[p->id[ACCOUNT]];
    bool funded = account->last_in && p->time_us - account->last_in < DAY_US / 2;
    row[FEATURE_chain_depth] = funded ? (float)account->depth : 0;
    if (p->payee == NONE) return;
    const recent *senders = &f->nodes[p->payee].in;
    float n = 0;
    for (uint32_t i = 0; i < recent_held(senders); i++) {
        const node *sender = &f->nodes[senders->who[i]];
        n += sender->last_in && senders->time[i] - sender->last_in < DAY_US && senders->time[i] >= sender->last_in;
    }
    row[FEATURE_payee_senders_funded] = n;
}

/* How often the other was, since then, at a place of the current set. */
static uint32_t at_places(const features *f, const recent *other, int64_t since) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < recent_held(other); i++)
        n += other->time[i] >= since && other->who[i] != NONE && f->nodes[other->who[i]].set == f->set;
    return n;
}

/* Do the merchant's last customers also meet elsewhere? */
static void merchant_two_hops(features *f, const pay *p, float *row) {
    if (p->id[MERCHANT] == NONE || p->id[CARD] == NONE) return;
    const node *merchant = &f->nodes[p->id[MERCHANT]];
    const node *card = &f->nodes[p->id[CARD]];
    int64_t since = p->time_us - 14 * DAY_US;
    double together = 0;
    uint32_t places[RECENT], place_count = 0;
    set_begin(f);
    recent_gather(f, &card->out, since, places, &place_count, RECENT);
    uint32_t held = recent_held(&merchant->out);
    for (uint32_t i = 0; i < held; i++) {
        const node *other = &f->nodes[merchant->out.who[i]]; /* a card */
        together += at_places(f, &other->out, since);
    }
    row[FEATURE_merchant_shared_customers] = held ? (float)(together / held) : 0;
    double fresh = 0;
    for (uint32_t i = 0; i < recent_held(&card->out); i++)
        if (card->out.who[i] != NONE) fresh = fmax(fresh, f->nodes[card->out.who[i]].fresh.day);
    row[FEATURE_card_merchants_shared] = (float)fresh;
}

static void remember(features *f, const pay *p, const float *row) {
    node *account = &f->nodes[p->id[ACCOUNT]];
    bool present = p->channel == ((('p' & 31) << 10) | (('o' & 31) << 5) | ('s' & 31)) ||
                   p->channel == ((('a' & 31) << 10) | (('t' & 31) << 5) | ('m' & 31));
    recent_add(&account->out, p->time_us, present ? NONE : p->id[DEVICE]);
    recent_add(&account->to, p->time_us, p->payee != NONE ? p->payee : p->id[MERCHANT]);
    account->last = p->time_us;
    account->amount_sum += p->amount;
    account->amount_count += 1;
    account->country = p->country;
    recent_add(&f->nodes[p->id[DEVICE]].out, p->time_us, p->id[ACCOUNT]);
    if (p->id[CARD] != NONE) recent_add(&f->nodes[p->id[CARD]].out, p->time_us, p->id[MERCHANT]);
    if (p->id[MERCHANT] != NONE) {
        node *merchant = &f->nodes[p->id[MERCHANT]];
        fading_add(&merchant->all);
        if (row[FEATURE_merchant_age_for_account] <= 0) fading_add(&merchant->fresh);
        recent_add(&merchant->out, p->time_us, p->id[CARD]);
    }
    if (p->payee == NONE) return;
    node *payee = &f->nodes[p->payee];
    recent_add(&payee->in, p->time_us, p->id[ACCOUNT]);
    payee->last_in = p->time_us;
    payee->last_in_amount = p->amount;
    payee->depth = 1 + (uint32_t)row[FEATURE_chain_depth];
}

weir_err features_of(features *f, const char *value, size_t length, int64_t time_us, float *row) {
    pay p;
    weir_err err = parse(value, length, time_us, &p);
    if (!err) err = resolve(f, &p);
    if (err) return err;
    for (int i = 0; i < FEATURES_END; i++)
        row[i] = -1;
    row_features(&p, row);
    account_features(f, &p, row);
    card_features(f, &p, row);
    err = device_features(f, &p, row);
    if (!err) err = merchant_features(f, &p, row);
    if (!err) err = payee_features(f, &p, row);
    if (err) return err;
    near_features(f, &p, row);
    chain_features(f, &p, row);
    merchant_two_hops(f, &p, row);
    remember(f, &p, row);
    return WEIR_OK;
}

weir_err features_open(features **featuresp) {
    *featuresp = weir_calloc(1, sizeof **featuresp);
    return *featuresp ? WEIR_OK : WEIR_NOMEM("for features; free some");
}

void features_close(features *f) {
    if (!f) return;
    weir_table_free(&f->names);
    weir_table_free(&f->pairs);
    weir_free(f->nodes);
    weir_free(f);
}

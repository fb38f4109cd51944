/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - the payments of foreign.h. Text is put together by hand: printf would cost more than all else. */
#include "foreign.h"

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#define START_US       1709251200000000ll /* 2024-03-01 */
#define STEP_US        172800             /* between two, at the mean: half a million a day */
#define MESSAGE_MAX    1024u
#define LEVELS_MIN     10u
#define LEVELS_MAX     22u
#define NETWORK_LEVELS 16u
#define RECENT_PAYERS  20000u

const char weir_bench_foreign_schema[] =
    "version: 1\n"
    "name: foreign\n"
    "vertices:\n"
    "  transfer:\n"
    "    expire: 400d\n"
    "    features:\n"
    "      minor: {kind: number, normalise: log-standard}\n"
    "      currency: {kind: category, values: [EUR, USD, JPY, PLN]}\n"
    "      purpose: {kind: category, buckets: 256}\n"
    "  payer: {}\n"
    "  payee: {}\n"
    "  terminal: {}\n"
    "  network: {key: integer}\n"
    "relations:\n"
    "  sent_by:\n"
    "    from: transfer\n"
    "    to: payer\n"
    "    expire: 400d\n"
    "    features:\n"
    "      minor: {kind: number, normalise: log-standard}\n"
    "  received_by:\n"
    "    from: transfer\n"
    "    to: payee\n"
    "    expire: 400d\n"
    "    features:\n"
    "      minor: {kind: number, normalise: log-standard}\n"
    "      currency: {kind: category, values: [EUR, USD, JPY, PLN]}\n"
    "  made_on: {from: transfer, to: terminal, expire: 400d}\n"
    "  routed_through: {from: transfer, to: network, expire: 400d}\n"
    "aggregates:\n"
    "  payer_1d: {vertex: payer, relation: sent_by, function: count, window: 1d}\n"
    "labels:\n"
    "  returned: {vertex: transfer, values: [kept, returned], absent: kept, lag: 30d}\n"
    "tasks:\n"
    "  return: {kind: classify, label: returned, positive: returned}\n"
    "sources:\n"
    "  transfers:\n"
    "    format: json\n"
    "    id: uid\n"
    "    time: {field: at.ms, format: ms}\n"
    "    mutations:\n"
    "      - put_vertex: transfer\n"
    "        key: uid\n"
    "        features:\n"
    "          minor: sum.minor\n"
    "          currency: sum.cur\n"
    "          purpose: {field: purpose, optional: true}\n"
    "      - put_edge: sent_by\n"
    "        from: uid\n"
    "        to: orig.iban\n"
    "        features: {minor: sum.minor}\n"
    "      - put_edge: received_by\n"
    "        from: uid\n"
    "        to: dest.alias\n"
    "        features: {minor: sum.minor, currency: sum.cur}\n"
    "      - put_edge: made_on\n"
    "        from: uid\n"
    "        to: dev.fp\n"
    "        when: {has: dev.fp}\n"
    "      - put_edge: routed_through\n"
    "        from: uid\n"
    "        to: net.as\n"
    "        when: {has: net.as}\n";

struct weir_bench_foreign {
    weir_rng rng;
    uint64_t messages, payers;
    int64_t now_us;
    size_t length;
    char message[MESSAGE_MAX];
};

/* As they stand in JSON: quotes, backslashes, a key's own separator, escapes of one and of two units, four scripts. */
static const char *const payees[] = {
    "B\303\244ckerei M\xc3\xbcller",
    "\xe3\x82\xab\xe3\x83\x95\xe3\x82\xa7",
    "\xd0\x9e\xd0\x9e\xd0\x9e \\\"\xd0\xa0\xd0\xbe\xd0\xbc\xd0\xb0\xd1\x88\xd0\xba\xd0\xb0\\\"",
    "a|b\\\\c",
    "caf\\u00e9 \\ud83c\\udf7a",
    "shop",
    "\xd9\x85\xd8\xaa\xd8\xac\xd8\xb1",
    "O'Neil & S\xc3\xb6hne <x>",
};
static const char tail[] =
    " formerly trading under a name that somebody has typed into a field which was never meant to be a key, and which "
    "therefore is as long as an address with all of its lines";

/* --- text --------------------------------------------------------------------------------------------------------- */

static void put_bytes(weir_bench_foreign *f, const char *bytes, size_t length) {
    memcpy(f->message + f->length, bytes, length);
    f->length += length;
}

#define PUT(f, literal) put_bytes(f, literal, sizeof(literal) - 1)

static void put_hex(weir_bench_foreign *f, uint64_t value, uint32_t digits) {
    static const char hex[] = "0123456789abcdef";
    for (uint32_t i = 0; i < digits; i++)
        f->message[f->length + i] = hex[value >> 4 * (digits - 1 - i) & 15];
    f->length += digits;
}

/* At least so many digits. */
static void put_decimal(weir_bench_foreign *f, uint64_t value, uint32_t digits) {
    char text[20];
    uint32_t at = sizeof text;
    for (; value || sizeof text - at < digits; value /= 10)
        text[--at] = (char)('0' + value % 10);
    put_bytes(f, text + at, sizeof text - at);
}

/* --- who ---------------------------------------------------------------------------------------------------------- */

/* Numbers one to one, so that keys of neighbouring numbers have nothing in common. */
static uint64_t mixed(uint64_t number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

/* From 1 on, the number n about 1/n as often as the first: each octave has the same share. */
static uint64_t long_tailed(weir_bench_foreign *f, uint32_t levels) {
    uint64_t octave = 1ull << weir_rng_below(&f->rng, levels);
    return octave + (weir_rng_u32(&f->rng) & (octave - 1));
}

/* A fifth is new, two fifths paid not long ago, the rest is anybody who ever paid. */
static uint64_t draw_payer(weir_bench_foreign *f) {
    uint64_t fifth = weir_rng_below(&f->rng, 5);
    if (fifth == 0 || f->payers == 0) return f->payers++;
    uint64_t recent = f->payers < RECENT_PAYERS ? f->payers : RECENT_PAYERS;
    return fifth < 3 ? f->payers - 1 - weir_rng_below(&f->rng, recent) : weir_rng_below(&f->rng, f->payers);
}

/* More payees appear as time goes by, ever more slowly. */
static uint64_t draw_payee(weir_bench_foreign *f) {
    uint32_t levels = LEVELS_MIN;
    while (levels < LEVELS_MAX && f->messages >> levels)
        levels++;
    return long_tailed(f, levels);
}

/* Most are up to two seconds old when they arrive, some a minute, few an hour. */
static int64_t draw_age_us(weir_bench_foreign *f) {
    uint64_t percent = weir_rng_below(&f->rng, 100);
    uint64_t most_us = percent < 90 ? 2000000u : percent < 99 ? 60000000u : 3600000000u;
    return (int64_t)weir_rng_below(&f->rng, most_us);
}

/* --- a message ---------------------------------------------------------------------------------------------------- */

static void put_id(weir_bench_foreign *f) {
    uint64_t high = weir_rng_u64(&f->rng), low = weir_rng_u64(&f->rng);
    PUT(f, "{\"v\":3,\"uid\":\"");
    put_hex(f, high >> 32, 8);
    PUT(f, "-");
    put_hex(f, high >> 16, 4);
    PUT(f, "-4");
    put_hex(f, high, 3);
    PUT(f, "-a");
    put_hex(f, low >> 48, 3);
    PUT(f, "-");
    put_hex(f, low, 12);
    PUT(f, "\",\"at\":{\"ms\":");
    put_decimal(f, (uint64_t)(f->now_us - draw_age_us(f)) / 1000, 1);
}

static void put_sum(weir_bench_foreign *f) {
    static const char currencies[] = "EUREURUSDJPYPLN";
    static const char *const purposes[] = {"SALA", "RENT", "GDDS", "", "SUBS", "", "TAXS", "OTHR"};
    const char *purpose = purposes[weir_rng_u32(&f->rng) & 7];
    PUT(f, "},\"sum\":{\"minor\":\"");
    put_decimal(f, long_tailed(f, 20) * 7, 1);
    PUT(f, "\",\"cur\":\"");
    put_bytes(f, currencies + 3 * weir_rng_below(&f->rng, 5), 3);
    PUT(f, "\"}");
    if (!*purpose) return;
    PUT(f, ",\"purpose\":\"");
    put_bytes(f, purpose, 4);
    PUT(f, "\"");
}

static void put_payee(weir_bench_foreign *f, uint64_t payee) {
    uint64_t mix = mixed(payee);
    const char *name = payees[mix & 7];
    PUT(f, "\"},\"dest\":{\"alias\":\"");
    put_bytes(f, name, strlen(name));
    PUT(f, " ");
    put_decimal(f, payee, 1);
    if ((mix >> 3 & 63) == 0) put_bytes(f, tail, sizeof tail - 1);
    PUT(f, "\"}");
}

/* One in ten is on another one of his terminals, one in fifty on one that many share. */
static void put_terminal(weir_bench_foreign *f, uint64_t payer) {
    uint64_t chance = weir_rng_below(&f->rng, 100);
    uint64_t terminal = chance < 2 ? weir_rng_below(&f->rng, 64) : (payer << 1 | (chance < 12)) + 64;
    PUT(f, ",\"dev\":{\"fp\":\"");
    put_hex(f, mixed(terminal), 16);
    PUT(f, "\"}");
}

static void put_network(weir_bench_foreign *f) {
    PUT(f, ",\"net\":{\"as\":");
    put_decimal(f, long_tailed(f, NETWORK_LEVELS), 1);
    PUT(f, ",\"hops\":[3,1]}");
}

void weir_bench_foreign_next(weir_bench_foreign *foreign, const char **valuep, size_t *lengthp, int64_t *arrived_usp) {
    weir_bench_foreign *f = foreign;
    uint64_t payer = draw_payer(f);
    f->now_us += (int64_t)weir_rng_below(&f->rng, 2 * STEP_US);
    f->length = 0;
    put_id(f);
    put_sum(f);
    PUT(f, ",\"orig\":{\"lang\":null,\"iban\":\"DE");
    put_decimal(f, mixed(payer), 20);
    put_payee(f, draw_payee(f));
    if (weir_rng_below(&f->rng, 100) < 60) put_terminal(f, payer);
    if (weir_rng_below(&f->rng, 100) < 45) put_network(f);
    PUT(f, ",\"memo\":\"\\u20ac\\t100 %\"}");
    f->messages++;
    *valuep = f->message;
    *lengthp = f->length;
    *arrived_usp = f->now_us;
}

weir_err weir_bench_foreign_open(uint64_t seed, weir_bench_foreign **foreignp) {
    *foreignp = weir_calloc(1, sizeof **foreignp);
    if (!*foreignp) return WEIR_NOMEM("for foreign payments");
    (*foreignp)->rng = weir_rng_stream(seed, 0, 0);
    (*foreignp)->now_us = START_US;
    return WEIR_OK;
}

void weir_bench_foreign_close(weir_bench_foreign *foreign) {
    weir_free(foreign);
}

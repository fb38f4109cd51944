/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_prop_test.c - random messages, written in random ways, against what they were made from.
 *
 * A value is drawn first, then spelled: the order of names, spaces, escapes, the form of numbers, names that nobody
 * asks for. What the mapper makes of it must be the value that was drawn; the expectation never looks at the text.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/row.h>

#include "weir_test.h"

static const char schema_text[] =
    "version: 1\nname: t\n"
    "vertices: {a: {features: {n: {kind: number}, c: {kind: category}, w: {kind: time}}}, b: {key: integer}}\n"
    "relations: {r: {from: a, to: b, features: {s: {kind: number}}}}\n"
    "sources: {s: {id: id, time: {field: t, format: us}, mutations: [\n"
    "  {put_vertex: a, key: deep.a, features: {n: {field: n, optional: true}, c: {field: deep.c, optional: true}, "
    "w: {field: w, format: us, optional: true}}},\n"
    "  {put_edge: r, from: deep.a, to: b, when: {has: b}, features: {s: {field: s, default: 2.5}}}]}}\n";

typedef struct value {
    char text[64]; /* as it is; escapes are the writer's affair */
    size_t length;
} value;

typedef struct drawn {
    value id, a, c;
    int64_t time_us, w, b;
    double n, s;
    bool has_n, has_c, has_w, has_b, has_s;
} drawn;

/* --- drawing ---------------------------------------------------------------------------------------------------- */

static uint32_t random_code(weir_rng *rng) {
    switch (weir_rng_below(rng, 6)) {
    case 0:
        return (uint32_t)weir_rng_below(rng, 0x20);
    case 1:
        return 0x80 + (uint32_t)weir_rng_below(rng, 0x780);
    case 2:
        return 0xe000 + (uint32_t)weir_rng_below(rng, 0x2000);
    case 3:
        return 0x10000 + (uint32_t)weir_rng_below(rng, 0x100000);
    default:
        return 0x20 + (uint32_t)weir_rng_below(rng, 0x5f);
    }
}

static size_t utf8(uint32_t code, char *out) {
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[length] | code);
    return length;
}

static value random_text(weir_rng *rng) {
    value v = {.length = 0};
    uint64_t characters = 1 + weir_rng_below(rng, 14);
    for (uint64_t i = 0; i < characters; i++)
        v.length += utf8(random_code(rng), v.text + v.length);
    return v;
}

static double random_number(weir_rng *rng) {
    double mantissa = (double)(int64_t)weir_rng_u64(rng);
    switch (weir_rng_below(rng, 3)) {
    case 0:
        return (double)((int64_t)weir_rng_below(rng, 2000000) - 1000000) / 100;
    case 1:
        return (double)((int64_t)weir_rng_below(rng, 1000) - 500);
    default:
        return ldexp(mantissa, (int)weir_rng_below(rng, 600) - 330);
    }
}

static int64_t random_time(weir_rng *rng) {
    return (int64_t)weir_rng_below(rng, 313000000000000000) - 60000000000000000;
}

static drawn draw(weir_rng *rng) {
    uint64_t bits = weir_rng_u64(rng);
    return (drawn){.id = random_text(rng),
                   .a = random_text(rng),
                   .c = random_text(rng),
                   .time_us = random_time(rng),
                   .w = random_time(rng),
                   .b = (int64_t)weir_rng_u64(rng) >> weir_rng_below(rng, 64),
                   .n = random_number(rng),
                   .s = random_number(rng),
                   .has_n = bits & 1,
                   .has_c = bits & 2,
                   .has_w = bits & 4,
                   .has_b = bits & 8,
                   .has_s = bits & 16};
}

/* --- spelling --------------------------------------------------------------------------------------------------- */

static void spell_space(weir_buf *out, weir_rng *rng) {
    static const char spaces[] = " \t\n\r";
    while (weir_rng_below(rng, 4) == 0)
        weir_buf_byte(out, spaces[weir_rng_below(rng, 4)]);
}

static uint32_t decode(const char *p, size_t *lengthp) {
    const unsigned char *u = (const unsigned char *)p;
    *lengthp = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    uint32_t code = *lengthp == 1 ? u[0] : u[0] & (0x3fu >> (*lengthp - 1));
    for (size_t i = 1; i < *lengthp; i++)
        code = code << 6 | (u[i] & 0x3f);
    return code;
}

static void spell_escape(weir_buf *out, uint32_t code) {
    if (code < 0x10000) {
        weir_buf_printf(out, "\\u%04x", code);
    } else {
        weir_buf_printf(out, "\\u%04X\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
}

static void spell_bytes(weir_buf *out, weir_rng *rng, const char *text, size_t length) {
    weir_buf_byte(out, '"');
    for (size_t i = 0, step; i < length; i += step) {
        uint32_t code = decode(text + i, &step);
        if (code < 0x20 || weir_rng_below(rng, 8) == 0) {
            spell_escape(out, code);
        } else if (code == '"' || code == '\\') {
            weir_buf_printf(out, "\\%c", (char)code);
        } else {
            weir_buf_append(out, text + i, step);
        }
    }
    weir_buf_byte(out, '"');
}

static void spell_name(weir_buf *out, weir_rng *rng, const char *name) {
    spell_space(out, rng);
    spell_bytes(out, rng, name, strlen(name));
    spell_space(out, rng);
    weir_buf_byte(out, ':');
    spell_space(out, rng);
}

static void spell_number(weir_buf *out, weir_rng *rng, double number) {
    bool quoted = weir_rng_below(rng, 4) == 0;
    if (quoted) weir_buf_byte(out, '"');
    if (weir_rng_below(rng, 2)) {
        weir_buf_printf(out, "%.17g", number);
    } else {
        weir_buf_printf(out, "%.17e", number);
    }
    if (quoted) weir_buf_byte(out, '"');
}

static void spell_integer(weir_buf *out, weir_rng *rng, int64_t number) {
    const char *quote = weir_rng_below(rng, 3) ? "" : "\"";
    weir_buf_printf(out, "%s%lld%s", quote, (long long)number, quote);
}

/* Something that nobody asks for. */
static void spell_noise(weir_buf *out, weir_rng *rng, int depth) {
    value text = random_text(rng);
    switch (weir_rng_below(rng, depth > 3 ? 4 : 6)) {
    case 0:
        weir_buf_text(out, "null");
        break;
    case 1:
        weir_buf_text(out, weir_rng_below(rng, 2) ? "true" : "false");
        break;
    case 2:
        spell_bytes(out, rng, text.text, text.length);
        break;
    case 3:
        weir_buf_printf(out, "%.17g", random_number(rng));
        break;
    case 4:
        weir_buf_byte(out, '[');
        spell_space(out, rng);
        if (weir_rng_below(rng, 2)) spell_noise(out, rng, depth + 1);
        spell_space(out, rng);
        weir_buf_byte(out, ']');
        break;
    default:
        weir_buf_byte(out, '{');
        spell_name(out, rng, "id");
        spell_noise(out, rng, depth + 1);
        weir_buf_byte(out, '}');
    }
}

typedef enum member { ID, TIME, DEEP, N, W, B, S, NOISE, MEMBERS } member;

static void spell_deep(weir_buf *out, weir_rng *rng, const drawn *d) {
    bool swapped = weir_rng_below(rng, 2);
    weir_buf_byte(out, '{');
    for (int i = 0; i < 2; i++) {
        bool second = (i == 1) != swapped;
        const value *v = second ? &d->c : &d->a;
        if (i == 1) weir_buf_byte(out, ',');
        spell_name(out, rng, second ? "c" : "a");
        if (second && !d->has_c) {
            weir_buf_text(out, "null");
        } else {
            spell_bytes(out, rng, v->text, v->length);
        }
        spell_space(out, rng);
    }
    weir_buf_byte(out, '}');
}

/* false: the member is left out. */
static bool spell_member(weir_buf *out, weir_rng *rng, const drawn *d, member m) {
    static const char *const names[] = {"id", "t", "deep", "n", "w", "b", "s", "noise"};
    const bool there[] = {true, true, true, d->has_n, d->has_w, d->has_b, d->has_s, weir_rng_below(rng, 2) != 0};
    bool null = !there[m] && weir_rng_below(rng, 2);
    if (!there[m] && !null) return false;
    spell_name(out, rng, names[m]);
    if (null) weir_buf_text(out, "null");
    if (null) return true;
    if (m == ID) spell_bytes(out, rng, d->id.text, d->id.length);
    if (m == TIME) spell_integer(out, rng, d->time_us);
    if (m == DEEP) spell_deep(out, rng, d);
    if (m == N) spell_number(out, rng, d->n);
    if (m == W) spell_integer(out, rng, d->w);
    if (m == B) spell_integer(out, rng, d->b);
    if (m == S) spell_number(out, rng, d->s);
    if (m == NOISE) spell_noise(out, rng, 0);
    return true;
}

static void spell(weir_buf *out, weir_rng *rng, const drawn *d) {
    member order[MEMBERS];
    bool first = true;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        uint32_t at = (uint32_t)weir_rng_below(rng, i + 1);
        order[i] = order[at];
        order[at] = (member)i;
    }
    spell_space(out, rng);
    weir_buf_byte(out, '{');
    for (size_t i = 0; i < MEMBERS; i++) {
        size_t before = out->length;
        if (!first) weir_buf_byte(out, ',');
        if (spell_member(out, rng, d, order[i])) {
            first = false;
        } else {
            out->length = before;
        }
        spell_space(out, rng);
    }
    weir_buf_byte(out, '}');
    spell_space(out, rng);
}

/* --- what it must become ---------------------------------------------------------------------------------------- */

static void check_vertex(const weir_mutation *m, const drawn *d) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME};
    weir_value values[3] = {{0}};
    assert_int_equal(m->kind, WEIR_PUT_VERTEX);
    assert_int_equal(m->key_length, d->a.length);
    assert_memory_equal(m->key, d->a.text, d->a.length);
    assert_int_equal(m->vertex, weir_vertex_id(&weir_id_key_public, "a", d->a.text, d->a.length));
    assert_int_equal(m->row != NULL, d->has_n || d->has_c || d->has_w);
    if (m->row) weir_row_read(kinds, 3, m->row, m->row_length, values);
    assert_int_equal(values[0].present, d->has_n);
    assert_int_equal(values[1].present, d->has_c);
    assert_int_equal(values[2].present, d->has_w);
    if (d->has_n) assert_memory_equal(&values[0].number, &d->n, sizeof d->n);
    if (d->has_c) assert_int_equal(values[1].text_length, d->c.length);
    if (d->has_c) assert_memory_equal(values[1].text, d->c.text, d->c.length);
    if (d->has_w) assert_int_equal(values[2].time_us, d->w);
}

static void check_edge(const weir_mutation *m, const drawn *d) {
    static const weir_value_kind kind = WEIR_VALUE_NUMBER;
    const double wanted = d->has_s ? d->s : 2.5;
    weir_value read;
    char key[32];
    int length = snprintf(key, sizeof key, "%lld", (long long)d->b);
    weir_vertex a = weir_vertex_id(&weir_id_key_public, "a", d->a.text, d->a.length),
                b = weir_vertex_id(&weir_id_key_public, "b", key, (size_t)length);
    assert_int_equal(m[0].kind, WEIR_PUT_VERTEX);
    assert_int_equal(m[0].vertex, b);
    assert_int_equal(m[0].key_length, length);
    assert_memory_equal(m[0].key, key, length);
    for (int half = 1; half < 3; half++) {
        assert_int_equal(m[half].kind, WEIR_PUT_EDGE);
        assert_int_equal(m[half].direction, half - 1);
        assert_int_equal(m[half].vertex, half == 1 ? a : b);
        assert_int_equal(m[half].neighbor, half == 1 ? b : a);
        weir_row_read(&kind, 1, m[half].row, m[half].row_length, &read);
        assert_memory_equal(&read.number, &wanted, sizeof wanted);
    }
}

static void check(const weir_mapped *mapped, const drawn *d) {
    assert_int_equal(mapped->count, d->has_b ? 4 : 1);
    assert_int_equal(mapped->time_us, d->time_us);
    assert_int_equal(mapped->event, weir_event_id(&weir_id_key_public, "event", d->id.text, d->id.length));
    assert_int_equal(mapped->event_id_length, d->id.length);
    assert_memory_equal(mapped->event_id, d->id.text, d->id.length);
    check_vertex(&mapped->mutations[0], d);
    if (d->has_b) check_edge(&mapped->mutations[1], d);
}

static void a_message_means_what_was_drawn(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_schema *schema;
    weir_mapper *mapper;
    weir_buf out = {0};
    assert_ok(weir_schema_parse("t", schema_text, strlen(schema_text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    for (uint64_t round = weir_test_rounds(20000); round > 0; round--) {
        drawn d = draw(&rng);
        weir_mapped mapped;
        weir_buf_clear(&out);
        spell(&out, &rng, &d);
        char *exact = weir_strndup(out.bytes, out.length);
        weir_err err = weir_mapper_map(mapper, 0, round, exact, out.length, &mapped);
        if (err) print_error("%.*s\n", (int)out.length, out.bytes);
        assert_ok(err);
        check(&mapped, &d);
        weir_free(exact);
    }
    weir_buf_free(&out);
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

/* One byte of a good message changed: it is taken or refused, and what is taken obeys the same limits. */
static void a_changed_byte_never_breaks_it(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_schema *schema;
    weir_mapper *mapper;
    weir_buf out = {0};
    assert_ok(weir_schema_parse("t", schema_text, strlen(schema_text), &schema));
    assert_ok(weir_mapper_open(schema, 0, &weir_id_key_public, &mapper));
    for (uint64_t round = weir_test_rounds(20000); round > 0; round--) {
        drawn d = draw(&rng);
        weir_mapped mapped;
        weir_buf_clear(&out);
        spell(&out, &rng, &d);
        out.bytes[weir_rng_below(&rng, out.length)] = (char)weir_rng_u32(&rng);
        char *exact = weir_malloc(out.length);
        memcpy(exact, out.bytes, out.length);
        weir_err err = weir_mapper_map(mapper, 0, round, exact, out.length, &mapped);
        if (err) assert_err(err, WEIR_EDATA, NULL);
        if (!err) assert_true(mapped.count == 1 || mapped.count == 4);
        weir_free(exact);
    }
    weir_buf_free(&out);
    weir_mapper_close(mapper);
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(a_message_means_what_was_drawn), WEIR_CASE(a_changed_byte_never_breaks_it))

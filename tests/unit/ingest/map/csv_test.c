/* SPDX-License-Identifier: Apache-2.0 */
/* csv_test.c - a line of cells: quoting, columns, what is refused and where. */
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/alloc.h>

#include "message.h"
#include "weir_test.h"

/* Four columns, of which the third is nobody's. */
static const uint32_t columns[4] = {1, 0, WEIR_SCHEMA_NONE, 2};

static weir_err read_line(const char *line, char separator, weir_arena *arena, weir_cell cells[3]) {
    static char *copy;
    weir_free(copy);
    size_t length = strlen(line);
    copy = weir_malloc(length ? length : 1);
    memcpy(copy, line, length);
    weir_arena_reset(arena);
    return weir_message_csv(separator, columns, 4, copy, length, arena, cells, 3);
}

static weir_arena *arena_open(void) {
    weir_arena *arena;
    assert_ok(weir_arena_open(2u << 20, &arena));
    return arena;
}

static void cells_come_by_their_columns(void **state) {
    (void)state;
    static const struct {
        const char *line, *texts[3]; /* of fields 0, 1, 2; NULL: absent */
        char separator;
    } cases[] = {
        {"a,b,c,d", {"b", "a", "d"}, ','},
        {"a,b,c,d\r\n", {"b", "a", "d"}, ','},
        {",,,", {NULL, NULL, NULL}, ','},
        {"\"\",b,\"\",\"d\"", {"b", NULL, "d"}, ','},
        {"\"a,1\",\"b\"\"c\",x,\"\"\"\"", {"b\"c", "a,1", "\""}, ','},
        {"a;b,c;;d", {"b,c", "a", "d"}, ';'},
        {"a\tb\t\t\"d\te\"", {"b", "a", "d\te"}, '\t'},
        {"a|\"b|b\"|c|d", {"b|b", "a", "d"}, '|'},
        {" a , b ,c, d ", {" b ", " a ", " d "}, ','},
        {"\xc3\xa9,b,c,\"\xf0\x9f\x99\x82\"", {"b", "\xc3\xa9", "\xf0\x9f\x99\x82"}, ','},
    };
    weir_arena *arena = arena_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_cell cells[3];
        assert_ok(read_line(cases[i].line, cases[i].separator, arena, cells));
        for (int f = 0; f < 3; f++) {
            const char *text = cases[i].texts[f];
            assert_int_equal(cells[f].kind, text ? WEIR_CELL_TEXT : WEIR_CELL_ABSENT);
            if (!text) continue;
            assert_int_equal(cells[f].length, strlen(text));
            assert_memory_equal(cells[f].text, text, strlen(text));
        }
    }
    weir_arena_close(arena);
}

static void what_is_no_line_is_refused_at_its_byte(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"", "byte 1: the line has too few cells"},
        {"a,b,c", "byte 6: the line has too few cells"},
        {"a,b,c,d,e", "byte 8: the line has too many cells"},
        {"a,b,c,d,", "byte 8: the line has too many cells"},
        {"a,b\"x,c,d", "byte 4: a quote inside a cell"},
        {"a,\"b\"x,c,d", "byte 6: a quote inside a cell, or something after a closing quote"},
        {"a,\"b,c,d", "byte 9: a quoted cell without a closing quote"},
        {"a,\"b\"\",c,d", "byte 11: a quoted cell without a closing quote"},
        {"a,b,c,\xff", "byte 7: a cell with bytes that are not UTF-8"},
        {"a,b,\"\xc3\",d", "byte 6: a cell with bytes that are not UTF-8"},
    };
    weir_arena *arena = arena_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_cell cells[3];
        weir_err err = read_line(cases[i].line, ',', arena, cells);
        if (!err) fail_msg("taken: %s", cases[i].line);
        assert_err(err, WEIR_EDATA, cases[i].says);
    }
    weir_arena_close(arena);
}

/* Each quoted cell takes as much memory as it has bytes, not as much as the line has left. */
static void many_quoted_cells_fit_into_memory(void **state) {
    (void)state;
    enum { CELLS = 512, BYTES = 2000 };
    uint32_t fields[CELLS];
    weir_cell cells[CELLS];
    char *line = weir_malloc(CELLS * (BYTES + 3)), *to = line;
    weir_arena *arena = arena_open();
    for (uint32_t i = 0; i < CELLS; i++) {
        fields[i] = i;
        if (i > 0) *to++ = ',';
        *to++ = '"';
        memset(to, 'x', BYTES);
        to += BYTES;
        *to++ = '"';
    }
    assert_ok(weir_message_csv(',', fields, CELLS, line, (size_t)(to - line), arena, cells, CELLS));
    for (uint32_t i = 0; i < CELLS; i++)
        assert_int_equal(cells[i].length, BYTES);
    weir_arena_close(arena);
    weir_free(line);
}

static void length_at_the_limit_and_one_past_it(void **state) {
    (void)state;
    weir_arena *arena = arena_open();
    weir_cell cells[3];
    char *line = weir_malloc(WEIR_MESSAGE_BYTES_MAX + 1);
    memset(line, 'x', WEIR_MESSAGE_BYTES_MAX + 1);
    memcpy(line, "a,b,c,", 6);
    assert_ok(weir_message_csv(',', columns, 4, line, WEIR_MESSAGE_BYTES_MAX, arena, cells, 3));
    assert_err(weir_message_csv(',', columns, 4, line, WEIR_MESSAGE_BYTES_MAX + 1, arena, cells, 3), WEIR_EDATA,
               "1048577 bytes");
    weir_free(line);
    weir_arena_close(arena);
}

WEIR_TESTS(WEIR_CASE(cells_come_by_their_columns), WEIR_CASE(what_is_no_line_is_refused_at_its_byte),
           WEIR_CASE(many_quoted_cells_fit_into_memory), WEIR_CASE(length_at_the_limit_and_one_past_it))

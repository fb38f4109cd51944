/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_json_fuzz.c - any bytes as a message of JSON: mutations whose rows can be read, or one sentence; and the same
 * again.
 *
 * The first byte chooses between the shipped schemas' sources and one that uses every rule.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/format/row.h>

static const char every_rule[] =
    "version: 1\nname: t\n"
    "vertices: {acc: {features: {num: {kind: number}, cat: {kind: category}, at: {kind: time}}}, shop: {key: "
    "integer}}\n"
    "relations: {paid: {from: acc, to: shop, features: {sum: {kind: number}}}}\n"
    "labels: {fraud: {vertex: acc, values: [no, yes]}, odd: {relation: paid, values: [a, b]}}\n"
    "sources: {s: {id: [id, n.id], time: {field: t, format: ms}, mutations: [\n"
    "  {put_vertex: acc, key: [a, n.a], features: {num: {field: x, optional: true}, cat: {field: c, default: d}, "
    "at: {field: w, optional: true}}},\n"
    "  {put_edge: paid, from: a, to: s, when: [{has: s}, {field: c, is_not: [q, r]}], features: {sum: n.sum}},\n"
    "  {put_label: fraud, key: a, when: {has: v}, value: v},\n"
    "  {put_label: odd, from: a, to: s, event: e, when: {has: e}, value: o},\n"
    "  {delete_vertex: acc, key: a, when: {has: gone}},\n"
    "  {delete_edge: paid, from: a, to: s, event: e, when: {field: gone, is: 'true'}}]}}\n";

#define MAPPERS 4u
static weir_mapper *mappers[MAPPERS];

static weir_mapper *open_mapper(const char *text, uint32_t source) {
    weir_schema *schema;
    weir_mapper *mapper;
    if (weir_schema_parse("fuzz", text, strlen(text), &schema)) abort();
    if (weir_mapper_open(schema, source, &weir_id_key_public, &mapper)) abort();
    return mapper;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    mappers[0] = open_mapper(every_rule, 0);
    mappers[1] = open_mapper(weir_schema_shipped_find("payments")->text, 0);
    mappers[2] = open_mapper(weir_schema_shipped_find("payments")->text, 1);
    mappers[3] = open_mapper(weir_schema_shipped_find("clicks")->text, 0);
    return 0;
}

static uint64_t sum(const void *bytes, size_t length, uint64_t total) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length; i++)
        total = total * 31 + p[i];
    return total;
}

static uint64_t digest(const weir_mapped *mapped) {
    uint64_t total = mapped->count;
    for (size_t i = 0; i < mapped->count; i++) {
        const weir_mutation *m = &mapped->mutations[i];
        total = sum(m->row, m->row_length, total);
        total = sum(m->key, m->key_length, total + weir_vertex_fold(m->vertex + m->neighbor) + m->event);
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    weir_mapped first, second;
    if (!mappers[0]) LLVMFuzzerInitialize(NULL, NULL);
    if (length == 0) return 0;
    weir_mapper *mapper = mappers[bytes[0] % MAPPERS];
    weir_err err = weir_mapper_map(mapper, 0, 1, bytes + 1, length - 1, &first);
    if (err && !weir_err_is(err, WEIR_EDATA)) abort();
    uint64_t before = err ? 0 : digest(&first);
    weir_err again = weir_mapper_map(mapper, 0, 1, bytes + 1, length - 1, &second);
    if (!err != !again || (!err && digest(&second) != before)) abort();
    return 0;
}

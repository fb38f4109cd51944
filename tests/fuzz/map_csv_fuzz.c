/* SPDX-License-Identifier: Apache-2.0 */
/* map_csv_fuzz.c - any bytes as a line of CSV, with each separator. */
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/buf.h>

static weir_mapper *mappers[4];

static weir_mapper *open_mapper(const char *separator) {
    weir_buf text = {0};
    weir_schema *schema;
    weir_mapper *mapper;
    weir_buf_printf(&text,
                    "version: 1\nname: t\n"
                    "vertices: {a: {features: {n: {kind: number}}}, b: {key: integer}}\n"
                    "relations: {r: {from: a, to: b, features: {c: {kind: category}}}}\n"
                    "sources: {s: {format: csv, separator: %s, columns: [id, t, a, b, n, unused, c], id: id, time: t, "
                    "mutations: [{put_vertex: a, key: a, features: {n: {field: n, optional: true}}}, "
                    "{put_edge: r, from: a, to: b, when: {has: b}, features: [c]}]}}\n",
                    separator);
    if (weir_schema_parse("fuzz", text.bytes, text.length, &schema)) abort();
    if (weir_mapper_open(schema, 0, &weir_id_key_public, &mapper)) abort();
    weir_buf_free(&text);
    return mapper;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static const char *const separators[] = {"comma", "semicolon", "tab", "pipe"};
    weir_mapped mapped;
    if (length == 0) return 0;
    unsigned which = bytes[0] % 4;
    if (!mappers[which]) mappers[which] = open_mapper(separators[which]);
    weir_err err = weir_mapper_map(mappers[which], 0, 1, bytes + 1, length - 1, &mapped);
    if (err && !weir_err_is(err, WEIR_EDATA)) abort();
    if (!err && mapped.count == 0) abort();
    return 0;
}

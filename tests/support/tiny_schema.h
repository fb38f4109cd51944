/* SPDX-License-Identifier: Apache-2.0 */
/* tiny_schema.h - two types of vertices, a relation, a feature each: what a test of the graph needs at least. */
#ifndef WEIR_TEST_TINY_SCHEMA_H
#define WEIR_TEST_TINY_SCHEMA_H

static const char tiny_schema[] = "version: 1\n"
                                  "name: tiny\n"
                                  "vertices:\n"
                                  "  a: {features: {x: {kind: number}}}\n"
                                  "  b: {}\n"
                                  "relations:\n"
                                  "  r: {from: a, to: b, features: {w: {kind: number}}}\n"
                                  "sources:\n"
                                  "  s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b, features: [w]}]}\n";

#endif /* WEIR_TEST_TINY_SCHEMA_H */

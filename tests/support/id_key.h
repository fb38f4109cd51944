/* SPDX-License-Identifier: Apache-2.0 */
/* id_key.h - the secret of a store that somebody else has open: out of its graph.yaml. */
#ifndef WEIR_TESTS_ID_KEY_H
#define WEIR_TESTS_ID_KEY_H

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/format/id.h>

#include "weir_test.h"

static inline weir_id_key id_key_of_store(const char *folder) {
    static const char before[] = "\nid_key: \"";
    weir_id_key key;
    char path[512], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/graph.yaml", folder);
    assert_ok(weir_file_load(path, 1u << 20, &text, &length));
    const char *at = strstr(text, before);
    assert_non_null(at);
    at += sizeof before - 1;
    for (size_t i = 0; i < sizeof key.bytes; i++)
        assert_int_equal(sscanf(at + 2 * i, "%2hhx", &key.bytes[i]), 1);
    weir_free(text);
    return key;
}

#endif /* WEIR_TESTS_ID_KEY_H */

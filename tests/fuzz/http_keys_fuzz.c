/* SPDX-License-Identifier: Apache-2.0 */
/* Any file of keys is read, or refused with its line. */
#include <stdlib.h>

#include <weir/http/api/api.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_api_keys *keys;
    weir_http_caller caller;
    weir_err err = weir_api_keys_parse("keys", (const char *)data, size, &keys);
    if (err ? keys != NULL : keys == NULL) abort();
    if (!err && weir_api_keys_find(keys, "abc", 3, &caller) && !caller.roles) abort();
    weir_api_keys_free(keys);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a model.json, or refused. */
#include <weir/inference/model/model.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)weir_model_json_file_check("model.json", (const char *)data, size);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are weights, or refused. */
#include <weir/inference/model/model.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)weir_model_weights_check("weights", data, size);
    return 0;
}

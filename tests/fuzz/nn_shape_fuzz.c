/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a shape or one sentence; a shape that was taken prints as text that is taken again, to the byte. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/nn/nn.h>
#include <weir/store/base/buf.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition) {
    if (!condition) abort();
}

static void print(const weir_nn_shape *shape, weir_buf *out) {
    weir_json json = weir_json_begin(out);
    weir_nn_shape_print(shape, &json);
    must(!weir_buf_err(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_nn_shape *shape = NULL, *again = NULL;
    weir_buf once = {0}, twice = {0};
    if (weir_nn_shape_read("model.json", (const char *)data, size, &shape)) return 0;
    weir_nn *nn = NULL;
    must(!weir_nn_open(shape, weir_kernels_cpu(), &nn));
    print(shape, &once);
    must(!weir_nn_shape_read("printed", once.bytes, once.length, &again));
    print(again, &twice);
    must(once.length == twice.length && memcmp(once.bytes, twice.bytes, once.length) == 0);
    weir_nn_close(nn);
    weir_nn_shape_free(shape);
    weir_nn_shape_free(again);
    weir_buf_free(&once);
    weir_buf_free(&twice);
    return 0;
}

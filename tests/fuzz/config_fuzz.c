/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are settings or one sentence; settings that were taken are printed as a file that is taken again. The first
 * line is also tried as an assignment and as a variable. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/conf/config.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition) {
    if (!condition) abort();
}

static void prints_what_it_takes(const weir_config *config) {
    weir_config *again;
    weir_buf out = {0};
    weir_config_print(config, &out);
    must(!weir_config_open(&again));
    must(!weir_buf_err(&out) && !weir_config_load_text(again, "printed", out.bytes, out.length));
    weir_config_free(again);
    weir_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char line[5000], variable[5010];
    size_t length = 0;
    while (length < size && length < sizeof line - 1 && data[length] != '\n' && data[length])
        length++;
    memcpy(line, data, length);
    line[length] = 0;
    snprintf(variable, sizeof variable, "WEIR_%s", line);
    char *environment[] = {variable, NULL};

    weir_config *config;
    must(!weir_config_open(&config));
    (void)weir_config_load_text(config, line, (const char *)data, size);
    (void)weir_config_load_environment(config, environment);
    (void)weir_config_set(config, line);
    prints_what_it_takes(config);
    weir_config_free(config);
    return 0;
}

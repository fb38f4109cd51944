/* SPDX-License-Identifier: Apache-2.0 */
/* size.c - "64MiB" to bytes. Powers of 1024 only, spelt so: 64MB would be two numbers to two readers. */
#include <weir/store/conf/config.h>

#include <string.h>

static weir_err size_wrong(const char *text) {
    return WEIR_ERR(WEIR_EDATA, "'%.60s' is not a size; write bytes (4096) or KiB, MiB, GiB, TiB, PiB (64MiB)", text);
}

weir_err weir_size_parse(const char *text, uint64_t *bytesp) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
    *bytesp = 0;
    uint64_t number = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
            return size_wrong(text);
    if (c == text) return size_wrong(text);
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(c, units[i])) continue;
        if (number > UINT64_MAX >> (10 * i)) return size_wrong(text);
        *bytesp = number << (10 * i);
        return WEIR_OK;
    }
    return size_wrong(text);
}

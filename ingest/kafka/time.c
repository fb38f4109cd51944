/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - a record's time as the text of a header: any program can read it, and Kafka does not judge it. */
#include <string.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/assert.h>

#include "client.h"

size_t weir_kafka_time_write(int64_t time_us, char text[WEIR_KAFKA_TIME_MAX]) {
    char digits[WEIR_KAFKA_TIME_MAX];
    size_t count = 0, length = 0;
    uint64_t left = time_us < 0 ? 0 - (uint64_t)time_us : (uint64_t)time_us;
    do {
        digits[count++] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (time_us < 0) text[length++] = '-';
    while (count > 0)
        text[length++] = digits[--count];
    WEIR_ASSERT(length <= WEIR_KAFKA_TIME_MAX);
    return length;
}

bool weir_kafka_time_read(const void *text, size_t length, int64_t *time_usp) {
    const char *at = text, *end = at + length;
    const bool negative = at < end && *at == '-';
    const uint64_t max = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t value = 0;
    if (negative) at++;
    if (at == end) return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return false;
        const uint64_t digit = (uint64_t)(*at - '0');
        if (value > (max - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *time_usp = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

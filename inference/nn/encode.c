/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - one vertex or edge becomes floats and slots; the same for a stored row and for plain values (NN-N2). */
#include <float.h>
#include <math.h>

#include <weir/store/base/assert.h>

#include "shape_private.h"

double weir_nn_number_raw(const weir_nn_number *number, const weir_value *values, const double *aggregates,
                          uint32_t aggregate, int64_t before_us) {
    double raw = NAN;
    if (number->kind == WEIR_NN_AGGREGATE) {
        if (aggregates) raw = aggregates[aggregate];
    } else if (values) {
        const weir_value *value = &values[number->source];
        double age_seconds = ((double)before_us - (double)value->time_us) * 1e-6;
        if (value->present) raw = number->kind == WEIR_NN_AGE ? log1p(fmax(age_seconds, 0)) : value->number;
    }
    if (number->normalise == WEIR_SCHEMA_NORMALISE_LOG_STANDARD) raw = copysign(log1p(fabs(raw)), raw);
    return isfinite(raw) ? raw : NAN;
}

/* Kept far inside of what a float holds: one absurd amount must not become an infinity, which would silence the whole
 * batch. */
static weir_real encode_keep_within(double value) {
    return (weir_real)fmax(-WEIR_NN_SCALED_MAX, fmin(WEIR_NN_SCALED_MAX, value));
}

static weir_real encode_scaled(const weir_nn_number *number, double raw) {
    const weir_nn_scale *s = &number->scale;
    switch (number->normalise) {
    case WEIR_SCHEMA_NORMALISE_STANDARD:
    case WEIR_SCHEMA_NORMALISE_LOG_STANDARD:
        raw = (raw - s->mean) / s->deviation;
        break;
    case WEIR_SCHEMA_NORMALISE_MIN_MAX:
        raw = s->max > s->min ? (raw - s->min) / (s->max - s->min) : 0;
        break;
    case WEIR_SCHEMA_NORMALISE_NONE:
        break;
    }
    return encode_keep_within(raw);
}

double weir_nn_decode(const weir_nn_number *number, double scaled) {
    const weir_nn_scale *s = &number->scale;
    double raw = scaled;
    if (number->normalise == WEIR_SCHEMA_NORMALISE_MIN_MAX) raw = scaled * (s->max - s->min) + s->min;
    if (number->normalise == WEIR_SCHEMA_NORMALISE_STANDARD || number->normalise == WEIR_SCHEMA_NORMALISE_LOG_STANDARD)
        raw = scaled * s->deviation + s->mean;
    const bool log = number->normalise == WEIR_SCHEMA_NORMALISE_LOG_STANDARD || number->kind == WEIR_NN_AGE;
    return log ? copysign(expm1(fabs(raw)), raw) : raw;
}

void weir_nn_encode(const weir_nn_inputs *inputs, const weir_schema_feature *features, const weir_value *values,
                    const double *aggregates, int64_t before_us, weir_real *numbers, uint32_t *slots) {
    uint32_t aggregate = 0;
    for (uint32_t i = 0; i < inputs->number_count; i++) {
        const weir_nn_number *number = &inputs->numbers[i];
        WEIR_ASSERT(number->column + (number->kind != WEIR_NN_AGGREGATE) < inputs->width);
        double raw = weir_nn_number_raw(number, values, aggregates, aggregate, before_us);
        bool missing = isnan(raw);
        numbers[number->column] = missing ? 0 : encode_scaled(number, raw);
        if (number->kind == WEIR_NN_AGGREGATE)
            aggregate++;
        else
            numbers[number->column + 1] = missing ? 1 : 0;
    }
    for (uint32_t c = 0; slots && c < inputs->category_count; c++) {
        const weir_nn_category *category = &inputs->categories[c];
        if (category->feature == WEIR_SCHEMA_NONE) {
            slots[c] = WEIR_NO_SLOT;
            continue;
        }
        const weir_value *value = values ? &values[category->feature] : NULL;
        uint32_t slot = value && value->present
                            ? weir_schema_category(&features[category->feature], value->text, value->text_length)
                            : 0;
        slots[c] = slot < category->slots ? slot : 0; /* a value that the schema has got since training */
    }
}

uint32_t weir_nn_slot_of(const weir_nn_inputs *inputs, uint64_t id) {
    uint32_t begin = 0, end = inputs->known_count;
    WEIR_ASSERT(inputs->known != NULL);
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (inputs->known[middle] < id)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < inputs->known_count && inputs->known[begin] == id ? begin : WEIR_NO_SLOT;
}

/* Rows of matrices are long, and nearly all are kept as they are. No loop has a double or a branch, so that each
 * takes many columns at once. */
static void encode_plain_row(uint32_t columns, const float *restrict row, weir_real *restrict numbers) {
    const float most = (float)WEIR_NN_SCALED_MAX;
    uint32_t beyond = 0;
    for (uint32_t i = 0; i < columns; i++)
        beyond |= !(fabsf(row[i]) <= most);
    for (uint32_t i = 0; !beyond && i < columns; i++)
        numbers[i] = row[i];
    for (uint32_t i = 0; beyond && i < columns; i++) {
        float value = fabsf(row[i]) <= FLT_MAX ? row[i] : 0;
        value = value > most ? most : value;
        numbers[i] = value < -most ? -most : value;
    }
}

void weir_nn_encode_matrix(const weir_nn_matrix *matrix, const float *row, weir_real *numbers) {
    double squares = 0;
    if (row && !matrix->unit) {
        encode_plain_row(matrix->columns, row, numbers + matrix->column);
        return;
    }
    for (uint32_t i = 0; row && i < matrix->columns; i++)
        squares += isfinite(row[i]) ? (double)row[i] * (double)row[i] : 0;
    double scale = squares > 0 ? 1 / sqrt(squares) : 1; /* a row of zeros stays one */
    for (uint32_t i = 0; i < matrix->columns; i++) {
        double value = row && isfinite(row[i]) ? (double)row[i] * scale : 0;
        numbers[matrix->column + i] = encode_keep_within(value);
    }
}

void weir_nn_encode_row(const weir_nn_inputs *inputs, const weir_schema_feature *features, const uint8_t *row,
                        size_t length, const double *aggregates, int64_t before_us, weir_real *numbers,
                        uint32_t *slots) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    WEIR_ASSERT(inputs->feature_count <= WEIR_ROW_FEATURES_MAX);
    if (row) weir_row_read(inputs->kinds, inputs->feature_count, row, length, values);
    weir_nn_encode(inputs, features, row ? values : NULL, aggregates, before_us, numbers, slots);
}

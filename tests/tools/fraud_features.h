/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fraud_features.h - a payment message as numbers: what its own row says, what one look around says, what two say.
 *
 * Reads the bytes of messages as any consumer would, in their order; a payment's features know nothing later than it.
 */
#ifndef WEIR_TESTS_FRAUD_FEATURES_H
#define WEIR_TESTS_FRAUD_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

/* X(name): the row's own fields. */
#define FEATURES_OF_ROW(X) \
    X(amount)              \
    X(cents)               \
    X(hour)                \
    X(weekday)             \
    X(channel)             \
    X(country)             \
    X(currency)            \
    X(mcc)                 \
    X(has_card)

/* X(name): counts and ages of what the row names; one hop. */
#define FEATURES_OF_COUNTS(X)   \
    X(card_1h)                  \
    X(card_24h)                 \
    X(card_age)                 \
    X(account_1h)               \
    X(account_24h)              \
    X(account_gap)              \
    X(account_age)              \
    X(account_amount_ratio)     \
    X(account_country_changed)  \
    X(account_devices_7d)       \
    X(account_merchants_24h)    \
    X(device_accounts_24h)      \
    X(device_accounts_7d)       \
    X(device_payments_24h)      \
    X(device_age)               \
    X(device_age_for_account)   \
    X(merchant_day)             \
    X(merchant_week)            \
    X(merchant_new_day)         \
    X(merchant_new_week)        \
    X(merchant_age_for_account) \
    X(payee_senders_24h)        \
    X(payee_senders_7d)         \
    X(payee_age_for_account)    \
    X(payee_sent_24h)           \
    X(incoming_24h)             \
    X(incoming_gap)             \
    X(incoming_ratio)

/* X(name): what the neighbours' neighbours look like. */
#define FEATURES_OF_TWO_HOPS(X)  \
    X(near_accounts)             \
    X(far_accounts)              \
    X(device_neighbour_devices)  \
    X(chain_depth)               \
    X(payee_senders_funded)      \
    X(merchant_shared_customers) \
    X(card_merchants_shared)     \
    X(target_of_near)            \
    X(target_of_far)

typedef enum feature {
#define FEATURE_ENUM(name) FEATURE_##name,
    FEATURES_OF_ROW(FEATURE_ENUM) FEATURES_ROW_END,
    FEATURES_ROW_LAST_ = FEATURES_ROW_END - 1,
    FEATURES_OF_COUNTS(FEATURE_ENUM) FEATURES_COUNTS_END,
    FEATURES_COUNTS_LAST_ = FEATURES_COUNTS_END - 1,
    FEATURES_OF_TWO_HOPS(FEATURE_ENUM) FEATURES_END
#undef FEATURE_ENUM
} feature;

typedef struct features features;

/* WEIR_ENOMEM. */
weir_err features_open(features **featuresp);
/* Fills row[0..FEATURES_END) for a payment message, then remembers it.  WEIR_EDATA a field is missing; WEIR_ENOMEM. */
weir_err features_of(features *f, const char *value, size_t length, int64_t time_us, float *row);
void features_close(features *f);

#endif /* WEIR_TESTS_FRAUD_FEATURES_H */

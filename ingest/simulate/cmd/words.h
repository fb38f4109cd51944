/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - what can be written behind `weir simulate`: commands, options, help; no code.
 *
 * `weir` links this much of its simulator, so that its completion and `weir help --all` list what the program
 * weir-simulate takes. That program adds the code.
 */
#ifndef WEIR_SIMULATE_WORDS_H
#define WEIR_SIMULATE_WORDS_H

#include <weir/store/cli/cli.h>

/* Their run is NULL. */
extern const weir_command weir_simulate_words_payments, weir_simulate_words_clicks;
/* Both, ended by NULL. */
extern const weir_command *const weir_simulate_words[];

#endif /* WEIR_SIMULATE_WORDS_H */

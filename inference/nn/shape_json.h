/* SPDX-License-Identifier: Apache-2.0 */
/* shape_json.h - words of a shape's JSON, by their enum and ended by NULL. */
#ifndef WEIR_INFERENCE_SHAPE_JSON_H
#define WEIR_INFERENCE_SHAPE_JSON_H

extern const char *const weir_nn_kind_words[]; /* by weir_value_kind */
extern const char *const weir_nn_normalise_words[];
extern const char *const weir_nn_strategy_words[];
extern const char *const weir_nn_direction_words[];
extern const char *const weir_nn_rows_words[];
extern const char *const weir_nn_encoder_words[]; /* by weir_nn_opts.bare */
extern const char *const weir_nn_norm_words[];    /* by weir_nn_norm */
extern const char *const weir_nn_head_words[];    /* by weir_nn_opts.headless */
extern const char *const weir_nn_jump_words[];

#endif /* WEIR_INFERENCE_SHAPE_JSON_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - tensors by name to and from the flat array of parameters. */
#include <math.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/conf/yaml.h>
#include <weir/inference/pack.h>

struct weir_pack {
    weir_model *model;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_real *params; /* in the kernels' memory */
    uint64_t sample_seed;
    double slope, offset;
};

static weir_err no_memory(void) {
    return WEIR_ERR(WEIR_ENOMEM, "no memory for a model");
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

typedef struct writing {
    weir_buf architecture, normalisation, calibration;
    weir_model_tensor *tensors;
    float *floats;
} writing;

static void write_texts(writing *w, const weir_pack_content *content) {
    weir_json json = weir_json_begin(&w->architecture);
    weir_nn_shape_print(weir_nn_shape_of(content->nn), &json);
    json = weir_json_begin(&w->normalisation);
    weir_json_object(&json);
    weir_json_key(&json, "sample_seed");
    weir_json_u64(&json, content->sample_seed);
    weir_json_object_end(&json);
    json = weir_json_begin(&w->calibration);
    weir_json_object(&json);
    weir_json_key(&json, "slope");
    weir_json_f64(&json, content->slope);
    weir_json_key(&json, "offset");
    weir_json_f64(&json, content->offset);
    weir_json_object_end(&json);
}

static weir_err write_tensors(writing *w, const weir_pack_content *content) {
    uint32_t count;
    const weir_nn_tensor *tensors = weir_nn_tensors(content->nn, &count);
    uint64_t numbers = weir_nn_parameter_count(content->nn);
    weir_real *host = weir_calloc(numbers, sizeof *host);
    w->tensors = weir_calloc(count, sizeof *w->tensors);
    w->floats = weir_calloc(numbers, sizeof *w->floats);
    weir_err err = host && w->tensors && w->floats ? WEIR_OK : no_memory();
    if (!err) weir_nn_kernels(content->nn)->to_host(host, content->params, numbers * sizeof *host);
    for (uint64_t i = 0; !err && i < numbers; i++)
        w->floats[i] = (float)host[i];
    for (uint32_t i = 0; !err && i < count; i++)
        w->tensors[i] =
            (weir_model_tensor){tensors[i].name, tensors[i].rows, tensors[i].cols, w->floats + tensors[i].offset};
    weir_free(host);
    return err;
}

static weir_err write_all(writing *w, weir_models *models, const weir_pack_content *content,
                          char id[WEIR_MODEL_ID_MAX]) {
    weir_model_write_opts opts = {
        .schema_hash = weir_schema_hash(content->schema),
        .task = weir_nn_task(weir_nn_shape_of(content->nn)),
        .metrics = content->metrics,
        .provenance = content->provenance,
        .key = content->key,
    };
    uint32_t count;
    write_texts(w, content);
    weir_err err = weir_buf_err(&w->architecture);
    if (!err) err = weir_buf_err(&w->normalisation);
    if (!err) err = weir_buf_err(&w->calibration);
    if (!err) err = write_tensors(w, content);
    if (err) return err;
    weir_nn_tensors(content->nn, &count);
    opts.tensors = w->tensors;
    opts.tensor_count = count;
    opts.architecture = w->architecture.bytes;
    opts.normalisation = w->normalisation.bytes;
    opts.calibration = w->calibration.bytes;
    return weir_models_add(models, &opts, id);
}

weir_err weir_pack_add(weir_models *models, const weir_pack_content *content, char id[WEIR_MODEL_ID_MAX]) {
    writing w = {.tensors = NULL};
    weir_err err = write_all(&w, models, content, id);
    weir_buf_free(&w.architecture);
    weir_buf_free(&w.normalisation);
    weir_buf_free(&w.calibration);
    weir_free(w.tensors);
    weir_free(w.floats);
    return err;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* A JSON object is YAML too; of its members, one number. */
static weir_err read_number(const weir_model *model, weir_model_text which, const char *key, double *valuep) {
    size_t length;
    const char *text = weir_model_text_of(model, which, &length);
    weir_yaml *yaml;
    weir_err err = weir_yaml_parse("model.json", text, length, &yaml);
    if (err) return err;
    const weir_yaml_node *root = weir_yaml_root(yaml);
    const weir_yaml_node *node = weir_yaml_node_kind(root) == WEIR_YAML_MAPPING ? weir_yaml_find(root, key) : NULL;
    err =
        node ? weir_yaml_f64(node, valuep) : WEIR_ERR(WEIR_EDATA, "model.json has no '%s'; train the model anew", key);
    if (!err && !isfinite(*valuep)) err = WEIR_ERR(WEIR_EDATA, "'%s' of model.json is no finite number", key);
    weir_yaml_free(yaml);
    return err;
}

static weir_err read_seed(const weir_model *model, uint64_t *seedp) {
    double seed;
    weir_err err = read_number(model, WEIR_MODEL_NORMALISATION, "sample_seed", &seed);
    if (!err && !(seed >= 0 && seed < 9007199254740992.0))
        err = WEIR_ERR(WEIR_EDATA, "'sample_seed' of model.json is not 0 to 2^53; train the model anew");
    if (!err) *seedp = (uint64_t)seed;
    return err;
}

static weir_err take_tensor(const weir_model *model, const weir_nn_tensor *wanted, weir_real *params) {
    const weir_model_tensor *found = weir_model_tensor_find(model, wanted->name);
    if (!found)
        return WEIR_ERR(WEIR_EDATA, "weights.safetensors has no tensor '%s'; train the model anew", wanted->name);
    if (found->rows != wanted->rows || found->cols != wanted->cols)
        return WEIR_ERR(WEIR_EDATA, "tensor '%s' is %llu x %llu, but the network in model.json needs %u x %u",
                        wanted->name, (unsigned long long)found->rows, (unsigned long long)found->cols, wanted->rows,
                        wanted->cols);
    for (uint64_t i = 0; i < found->rows * found->cols; i++)
        params[wanted->offset + i] = (weir_real)found->data[i];
    return WEIR_OK;
}

static weir_err take_params(weir_pack *pack) {
    const weir_kernels *kernels = weir_nn_kernels(pack->nn);
    uint64_t numbers = weir_nn_parameter_count(pack->nn);
    uint32_t count;
    const weir_nn_tensor *tensors = weir_nn_tensors(pack->nn, &count);
    weir_real *host = weir_calloc(numbers, sizeof *host);
    weir_err err = host ? kernels->alloc(numbers * sizeof *host, (void **)&pack->params) : no_memory();
    if (!err && weir_model_tensor_count(pack->model) != count)
        err = WEIR_ERR(WEIR_EDATA, "weights.safetensors has %zu tensors, but the network in model.json needs %u",
                       weir_model_tensor_count(pack->model), count);
    for (uint32_t i = 0; !err && i < count; i++)
        err = take_tensor(pack->model, &tensors[i], host);
    if (!err) kernels->to_device(pack->params, host, numbers * sizeof *host);
    weir_free(host);
    return err;
}

static weir_err make_network(weir_pack *pack, const weir_schema *schema) {
    size_t length;
    const char *text = weir_model_text_of(pack->model, WEIR_MODEL_ARCHITECTURE, &length);
    weir_err err = weir_nn_shape_read("model.json", text, length, &pack->shape);
    if (!err && schema) err = weir_nn_shape_fits(pack->shape, schema);
    if (!err) err = read_seed(pack->model, &pack->sample_seed);
    if (!err) err = read_number(pack->model, WEIR_MODEL_CALIBRATION, "slope", &pack->slope);
    if (!err) err = read_number(pack->model, WEIR_MODEL_CALIBRATION, "offset", &pack->offset);
    if (!err) err = weir_nn_open(pack->shape, weir_kernels_cpu(), &pack->nn);
    return err ? err : take_params(pack);
}

weir_err weir_pack_open(const char *folder, const weir_model_opts *opts, const weir_schema *schema, weir_pack **packp) {
    *packp = NULL;
    weir_pack *pack = weir_calloc(1, sizeof *pack);
    if (!pack) return no_memory();
    weir_err err = weir_model_open(folder, opts, &pack->model);
    if (!err) {
        err = make_network(pack, schema);
        if (err) err = weir_err_prefix(err, "%s", folder);
    }
    if (err) {
        weir_pack_close(pack);
        return err;
    }
    *packp = pack;
    return WEIR_OK;
}

void weir_pack_close(weir_pack *pack) {
    if (!pack) return;
    if (pack->params) weir_nn_kernels(pack->nn)->release(pack->params);
    weir_nn_close(pack->nn);
    weir_nn_shape_free(pack->shape);
    weir_model_close(pack->model);
    weir_free(pack);
}

const weir_nn *weir_pack_nn(const weir_pack *pack) {
    return pack->nn;
}

const weir_real *weir_pack_params(const weir_pack *pack) {
    return pack->params;
}

uint64_t weir_pack_sample_seed(const weir_pack *pack) {
    return pack->sample_seed;
}

double weir_pack_slope(const weir_pack *pack) {
    return pack->slope;
}

double weir_pack_offset(const weir_pack *pack) {
    return pack->offset;
}

const char *weir_pack_text(const weir_pack *pack, weir_model_text which) {
    size_t length;
    return weir_model_text_of(pack->model, which, &length);
}

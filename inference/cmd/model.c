/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - `weir model`: which models there are, whether they can be believed, and which one serves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/pack/pack.h>
#include <weir/inference/recommend/recommend.h>
#include <weir/store/base/file.h>
#include <weir/store/cli/cli.h>

#define PATH_BYTES_MAX 4096u

extern const weir_command weir_command_model;

/* What every command of the register needs. */
typedef struct cmd_model_session {
    weir_models *models;
    weir_model_trust trust;
    weir_models_entry serving;
    weir_err_kept unknown; /* why it is not known what serves */
} cmd_model_session;

/* A `current` that cannot be believed must neither hide the models nor stop a promotion. */
static weir_err cmd_model_session_open(const weir_cli *cli, cmd_model_session *s) {
    const weir_config *config = weir_cli_config(cli);
    const char *path = weir_cli_text(cli, "path");
    *s = (cmd_model_session){0};
    weir_err err = weir_model_trust_load(weir_config_text(config, WEIR_CONFIG_MODELS_PUBLIC_KEYS),
                                         !weir_config_bool(config, WEIR_CONFIG_MODELS_REQUIRE_SIGNATURE), &s->trust);
    if (!err)
        err = weir_models_open(path ? path : weir_config_text(config, WEIR_CONFIG_MODELS_PATH), weir_clock_system(),
                               &s->models);
    if (!err) weir_err_kept_set(&s->unknown, weir_models_current(s->models, &s->trust.opts, &s->serving));
    return err;
}

static weir_err cmd_model_print(weir_buf *out) {
    weir_err err = weir_buf_err(out);
    if (!err && out->length) err = weir_cli_output(out->bytes, out->length);
    weir_buf_free(out);
    return err;
}

/* The folder of the model that the command line names: an id, a path, or nothing for the one that serves. */
static weir_err cmd_model_named_folder(cmd_model_session *s, const char *name, char path[PATH_BYTES_MAX]) {
    if (!name && s->unknown.err) return weir_err_kept_get(&s->unknown);
    if (!name && !s->serving.generation) {
        return WEIR_ERR(WEIR_ENOTFOUND, "no model of %s serves yet; weir model promote makes one serve",
                        weir_models_folder(s->models));
    }
    if (!name || !strchr(name, '/'))
        return weir_models_path(s->models, name ? name : s->serving.id, path, PATH_BYTES_MAX);
    return weir_path_join(path, PATH_BYTES_MAX, name, NULL);
}

static weir_err cmd_model_named_model(cmd_model_session *s, const char *name, char path[PATH_BYTES_MAX],
                                      weir_model **modelp) {
    *modelp = NULL;
    weir_model_opts opts = s->trust.opts;
    weir_err err = cmd_model_named_folder(s, name, path);
    if (!name) opts.manifest = s->serving.manifest;
    return err ? err : weir_model_open(path, &opts, modelp);
}

/* --- list ------------------------------------------------------------------------------------------------------ */

typedef struct cmd_model_listing {
    cmd_model_session *session;
    weir_buf out;
} cmd_model_listing;

static weir_err cmd_model_list_model(void *context, const char *id) {
    cmd_model_listing *list = context;
    char path[PATH_BYTES_MAX], sentence[WEIR_ERR_SENTENCE_MAX] = "";
    weir_model *model = NULL;
    weir_err err = cmd_model_named_model(list->session, id, path, &model);
    if (err) weir_err_sentence(err, sentence, sizeof sentence);
    weir_buf_printf(&list->out, "%s %s  ", strcmp(id, list->session->serving.id) == 0 ? "*" : " ", id);
    if (model) {
        weir_buf_printf(&list->out, "%s  schema %016llx\n", weir_model_task(model),
                        (unsigned long long)weir_model_schema_hash(model));
    } else {
        weir_buf_printf(&list->out, "%s\n", sentence);
    }
    weir_model_close(model);
    return WEIR_OK;
}

static weir_err cmd_model_list_change(void *context, const weir_models_entry *entry) {
    char time[WEIR_TIME_TEXT_MAX];
    weir_time_format(entry->time_us, time);
    weir_buf_printf(context, "%llu  %s  %s  %s  %s\n", (unsigned long long)entry->generation, time,
                    entry->action == WEIR_MODELS_PROMOTE ? "promote " : "rollback", entry->id, entry->reason);
    return WEIR_OK;
}

static weir_err cmd_model_run_list(weir_cli *cli) {
    cmd_model_session s;
    cmd_model_listing list = {.session = &s};
    weir_err err = cmd_model_session_open(cli, &s);
    if (err) return err;
    bool history = weir_cli_given(cli, "history");
    err = history ? weir_models_history(s.models, &s.trust.opts, cmd_model_list_change, &list.out)
                  : weir_models_list(s.models, cmd_model_list_model, &list);
    if (!err) err = cmd_model_print(&list.out);
    weir_buf_free(&list.out);
    if (!err && !history)
        err = weir_models_current(s.models, &s.trust.opts, &s.serving); /* whether the stars are right */
    weir_models_close(s.models);
    return err;
}

/* --- show, verify ---------------------------------------------------------------------------------------------- */

/* The model's own text, which was checked to be one object. */
static void cmd_model_put_text(weir_buf *out, const char *key, const weir_model *model, weir_model_text which) {
    size_t length = 0;
    const char *text = weir_model_text_of(model, which, &length);
    while (length && text[length - 1] != '}')
        length--;
    weir_buf_printf(out, ",\"%s\":", key);
    weir_buf_append(out, text, length);
}

static void cmd_model_put_model(weir_buf *out, const char *path, const cmd_model_session *s, const weir_model *model) {
    static const char *const keys[] = {"architecture", "normalisation", "calibration", "metrics", "provenance"};
    const char *name = strrchr(path, '/') + 1;
    char hash[17];
    uint64_t parameters = 0;
    weir_pack_family family;
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key_string(&json, "id", name);
    weir_json_key_bool(&json, "serves", strcmp(name, s->serving.id) == 0);
    weir_json_key_string(&json, "task", weir_model_task(model));
    const char *name_of_family = weir_recommend_is_of(model)           ? WEIR_RECOMMEND_FAMILY
                                 : weir_pack_family_of(model, &family) ? "unknown"
                                                                       : weir_pack_family_name(family);
    weir_json_key_string(&json, "family", name_of_family);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)weir_model_schema_hash(model));
    weir_json_key_string(&json, "schema_hash", hash);

    weir_json_key(&json, "tensors");
    weir_json_object(&json);
    for (size_t i = 0; i < weir_model_tensor_count(model); i++) {
        const weir_model_tensor *t = weir_model_tensor_at(model, i);
        weir_json_key(&json, t->name);
        weir_json_array(&json);
        weir_json_u64(&json, t->rows);
        weir_json_u64(&json, t->cols);
        weir_json_array_end(&json);
        if (t->data) parameters += t->rows * t->cols;
    }
    weir_json_object_end(&json);
    weir_json_key_u64(&json, "parameters", parameters);

    for (int i = 0; i < WEIR_MODEL_TEXT_COUNT; i++)
        cmd_model_put_text(out, keys[i], model, i);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}

/* say: what to print of a model that is as it should be. */
static weir_err cmd_model_tell(const weir_cli *cli, void (*say)(weir_buf *out, const char *path,
                                                                const cmd_model_session *s, const weir_model *model)) {
    cmd_model_session s;
    char path[PATH_BYTES_MAX];
    weir_buf out = {0};
    weir_model *model = NULL;
    weir_err err = cmd_model_session_open(cli, &s);
    if (err) return err;
    err = cmd_model_named_model(&s, weir_cli_positional(cli, 0), path, &model);
    if (!err) {
        say(&out, path, &s, model);
        err = cmd_model_print(&out);
    }
    weir_model_close(model);
    weir_models_close(s.models);
    return err;
}

static weir_err cmd_model_run_show(weir_cli *cli) {
    return cmd_model_tell(cli, cmd_model_put_model);
}

static void cmd_model_put_verdict(weir_buf *out, const char *path, const cmd_model_session *s,
                                  const weir_model *model) {
    (void)model;
    weir_buf_printf(out, "%s is intact%s\n", path, s->trust.opts.accept_unsigned ? "" : " and signed by a trusted key");
}

static weir_err cmd_model_run_verify(weir_cli *cli) {
    return cmd_model_tell(cli, cmd_model_put_verdict);
}

/* --- promote, rollback ----------------------------------------------------------------------------------------- */

/* What a server would refuse is refused here, where the operator reads why. */
static weir_err cmd_model_check_serves(cmd_model_session *s, const char *name) {
    char path[PATH_BYTES_MAX];
    weir_model *model = NULL;
    weir_pack *pack = NULL;
    weir_recommend_model *recommender = NULL;
    weir_err err = cmd_model_named_model(s, name, path, &model);
    if (!err && weir_recommend_is_of(model)) {
        err = weir_recommend_model_open(model, "", NULL, &recommender); /* takes it over */
        weir_recommend_model_drop(recommender);
        return err;
    }
    if (!err) err = weir_pack_open(model, weir_kernels_cpu(), &pack);
    if (!err) err = weir_nn_shape_serves(weir_pack_look(pack).shape);
    weir_pack_close(pack);
    weir_model_close(model);
    return err;
}

/* Where unsigned models are accepted, the key may be missing: the promotion is then not signed. */
static weir_err cmd_model_load_signing_key(const weir_cli *cli, const cmd_model_session *s, weir_secret_key **keyp) {
    const char *given = weir_cli_text(cli, "key");
    const char *path = given ? given : weir_config_text(weir_cli_config(cli), WEIR_CONFIG_MODELS_SIGNING_KEY);
    *keyp = NULL;
    weir_err err = *path ? weir_secret_key_load(path, keyp) : WEIR_OK;
    if (given || !weir_err_is(err, WEIR_ENOTFOUND)) return err;
    if (s->trust.opts.accept_unsigned) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND,
                    "a promotion must be signed, and there is no secret key %s; name one with --key FILE or in the "
                    "setting models.signing_key",
                    path);
}

/* REGISTER:GENERATION */
static weir_err cmd_model_read_after(const weir_cli *cli, weir_models_change *change) {
    const char *text = weir_cli_text(cli, "after"), *colon = text ? strchr(text, ':') : NULL;
    char *end = NULL;
    if (!text) return WEIR_OK;
    if (colon && colon - text == WEIR_MODELS_REGISTER_MAX - 1) {
        snprintf(change->after_register, sizeof change->after_register, "%s", text);
        change->after_generation = strtoull(colon + 1, &end, 10);
        if (strspn(change->after_register, "0123456789abcdef") == WEIR_MODELS_REGISTER_MAX - 1 && end != colon + 1 &&
            !*end && colon[1] >= '0' && colon[1] <= '9' && change->after_generation < WEIR_MODELS_GENERATION_MAX)
            return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EUSAGE,
                    "--after takes 16 hex digits, a colon and a number, as the server's refusal prints them");
}

static weir_err cmd_model_change(weir_cli *cli, bool promote) {
    cmd_model_session s;
    weir_models_entry entry = {0};
    weir_secret_key *key = NULL;
    const char *reason = weir_cli_text(cli, "reason"), *id = promote ? weir_cli_positional(cli, 0) : NULL;
    weir_err err = cmd_model_session_open(cli, &s);
    if (err) return err;
    weir_models_change how = {.reason = reason ? reason : "by hand", .take_over = promote};
    if (promote) err = cmd_model_read_after(cli, &how);
    if (!err && promote) err = cmd_model_check_serves(&s, id);
    if (!err) err = cmd_model_load_signing_key(cli, &s, &key);
    how.key = key;
    if (!err)
        err = promote ? weir_models_promote(s.models, id, &how, &s.trust.opts, &entry)
                      : weir_models_rollback(s.models, &how, &s.trust.opts, &entry);
    weir_secret_key_free(key);
    weir_models_close(s.models);
    if (err) return err;

    weir_buf out = {0};
    if (s.serving.generation == entry.generation) {
        weir_buf_printf(&out, "%s already serves\n", entry.id);
    } else {
        weir_buf_printf(&out, "%s serves, generation %llu%s%s\n", entry.id, (unsigned long long)entry.generation,
                        s.serving.generation ? "; before it " : "", s.serving.id);
    }
    return cmd_model_print(&out);
}

static weir_err cmd_model_run_promote(weir_cli *cli) {
    return cmd_model_change(cli, true);
}

static weir_err cmd_model_run_rollback(weir_cli *cli) {
    return cmd_model_change(cli, false);
}

/* --- keygen ---------------------------------------------------------------------------------------------------- */

static weir_err cmd_model_create_folder_of(const char *path) {
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return WEIR_OK;
    if ((size_t)(slash - path) >= sizeof folder) return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", path);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return weir_folder_create(folder);
}

static weir_err cmd_model_run_keygen(weir_cli *cli) {
    const char *secret = weir_cli_text(cli, "secret"), *public_keys = weir_cli_text(cli, "public");
    weir_public_key key;
    weir_buf out = {0};
    if (!secret) secret = weir_config_text(weir_cli_config(cli), WEIR_CONFIG_MODELS_SIGNING_KEY);
    if (!public_keys) public_keys = weir_config_text(weir_cli_config(cli), WEIR_CONFIG_MODELS_PUBLIC_KEYS);
    weir_err err = cmd_model_create_folder_of(secret);
    if (!err) err = cmd_model_create_folder_of(public_keys);
    if (!err) err = weir_key_pair_write(secret, public_keys, &key);
    if (err) return err;
    weir_buf_printf(&out, "secret key in %s: needed to train and to promote\npublic key in %s: needed to serve\n",
                    secret, public_keys);
    return cmd_model_print(&out);
}

/* --- tables ---------------------------------------------------------------------------------------------------- */

#define PATH_OPTION \
    { "path", 'p', "DIR", "folder of the models (default: the setting models.path)", NULL }
#define REASON_OPTION \
    { "reason", 'r', "TEXT", "why, for the history (default: by hand)", NULL }

#define KEY_OPTION \
    { "key", 'k', "FILE", "secret key that signs the promotion (default: the setting models.signing_key)", NULL }

static const weir_option list_options[] = {
    PATH_OPTION, {"history", 0, NULL, "list the promotions instead, oldest first", NULL}, {0}};
static const weir_option path_options[] = {PATH_OPTION, {0}};
static const weir_option promote_options[] = {
    PATH_OPTION,
    REASON_OPTION,
    KEY_OPTION,
    {"after", 0, "REGISTER:GENERATION", "continue after what a server has seen, as its refusal prints it", NULL},
    {0}};
static const weir_option rollback_options[] = {PATH_OPTION, REASON_OPTION, KEY_OPTION, {0}};
static const weir_option keygen_options[] = {
    {"secret", 's', "FILE", "new file for the secret key (default: the setting models.signing_key)", NULL},
    {"public", 0, "FILE", "new file for the public key (default: the setting models.public_keys)", NULL},
    {0}};

static const weir_command list_command = {
    .name = "list",
    .summary = "list the models, oldest first; a star marks the one that serves",
    .description = "Each model is verified; if it cannot be opened, the reason stands behind its name.",
    .example = "weir model list\nweir model list --history",
    .options = list_options,
    .run = cmd_model_run_list,
};
static const weir_command show_command = {
    .name = "show",
    .summary = "print what a model is and how it scored, as JSON",
    .positional = "[MODEL]",
    .positional_max = 1,
    .description = "MODEL is a name from the list, or a folder if it has a slash. Without one: the model that serves.",
    .example = "weir model show\nweir model show 20261121T021458Z-1a2b3c4d",
    .options = path_options,
    .run = cmd_model_run_show,
};
static const weir_command verify_command = {
    .name = "verify",
    .summary = "check a model's signature, checksums and contents",
    .positional = "[MODEL]",
    .positional_max = 1,
    .description = "MODEL is a name from the list, or a folder if it has a slash. Without one: the model that serves.",
    .example = "weir model verify\nweir model verify ./20261121T021458Z-1a2b3c4d",
    .options = path_options,
    .run = cmd_model_run_verify,
};
static const weir_command promote_command = {
    .name = "promote",
    .summary = "verify a model and make it the one that serves",
    .positional = "MODEL",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "A running server takes it without a restart. The change happens whole or not at all. It is signed, and its "
        "generation is above every one before: a server follows no promotion that is not signed by a trusted key, and "
        "none that is older than what it has seen. An unsigned `current` is replaced, and its history is dropped.",
    .example = "weir model promote 20261121T021458Z-1a2b3c4d --reason 'half of the false alerts'\n"
               "weir model promote 20261121T021458Z-1a2b3c4d --key train.key --after 00c0ffee00c0ffee:7",
    .options = promote_options,
    .run = cmd_model_run_promote,
};
static const weir_command rollback_command = {
    .name = "rollback",
    .summary = "go back to the model that served before",
    .description = "Twice goes back two. The model is verified first, and the change is signed, as by promote: a new "
                   "generation that names an older model.",
    .example = "weir model rollback --reason 'alerts doubled'",
    .options = rollback_options,
    .run = cmd_model_run_rollback,
};
static const weir_command keygen_command = {
    .name = "keygen",
    .summary = "make a pair of keys to sign models and to verify them",
    .description = "Writes two new files and never overwrites one. Keep the secret key where models are trained, and "
                   "nowhere else; "
                   "only its owner can read it. To trust several trainers, join their public files into one.",
    .example = "weir model keygen\nweir model keygen --secret train.key --public train.pub",
    .options = keygen_options,
    .run = cmd_model_run_keygen,
};

static const weir_command *const commands[] = {
    &list_command, &show_command, &verify_command, &promote_command, &rollback_command, &keygen_command, NULL};

const weir_command weir_command_model = {
    .name = "model",
    .summary = "trained models: look at them, verify them, make one serve",
    .description = "A model is a signed folder. It is refused unless a key of models.public_keys has signed it.",
    .example = "weir model list\nweir model rollback",
    .subcommands = commands,
};

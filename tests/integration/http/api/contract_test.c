/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.json against a real `weir serve`: every operation succeeds as it says, every error that it names can be had,
 * and no answer is of a status, a type or a shape that it does not name.
 *
 * The requests are made from the file alone: parameters and bodies have an `example`, an `x-invalid` and an `x-missing`
 * value; `x-role` says who may ask, and `x-schema` of which shipped schema the server is (payments). An operation that
 * is added is tested without an edit here.
 */
#include "json_schema.h"
#include "model_register.h"
#include "serve_child.h"

#include <weir/http/api/api.h>
#include <weir/store/trust/trust.h>

#define REQUEST_MAX  65536
#define STATUSES_MAX 600

/* SHA-256 of "reader-key", "writer-key" and "admin-key". */
static const char keys_text[] =
    "# keys of the contract test\n"
    "reader  %s  contract-reader\nwriter  %s  contract-writer\nadmin  %s  contract-admin # all of it\n";

typedef struct contract {
    json_t *document;
    serve_child keyed, open, kafka; /* kafka: a broker that nobody is */
    serve_child tired;              /* as keyed, and has had too many wrong keys */
    const char *schema;
    struct contract *other; /* servers of the schema of clicks, whose model recommends */
} contract;

/* An operation, and which of its statuses have been seen. */
typedef struct operation {
    contract *all;
    const char *path;
    char method[8];
    json_t *of;
    bool seen[STATUSES_MAX];
} operation;

/* How a request differs from the one that succeeds. */
typedef struct twist {
    const char *key; /* "": none; NULL: the one of the role */
    const char *method;
    json_t *missing;          /* this path parameter has its x-missing value  */
    json_t *invalid;          /* this query parameter has its x-invalid value */
    const char *query;        /* more of it                                   */
    const char *content_type; /* of the body                                  */
    const char *host;
    bool invalid_body, conflicting_body, large_body, body_on_get, broken_path;
} twist;

/* --- making requests ------------------------------------------------------------------------------------------ */

static const char *text_of(json_t *value, char *buffer, size_t size) {
    if (json_is_string(value)) return json_string_value(value);
    snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
    return buffer;
}

static void append(char *buffer, const char *text) {
    size_t used = strlen(buffer);
    assert_true(used + strlen(text) < REQUEST_MAX);
    strcpy(buffer + used, text);
}

static void put_path(const operation *op, const twist *change, char *url) {
    json_t *parameters = json_object_get(op->of, "parameters"), *parameter;
    char name[64], number[32];
    size_t i;
    for (const char *from = op->path; *from; from++) {
        if (*from != '{') {
            char one[2] = {*from, 0};
            append(url, one);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)strcspn(from + 1, "}"), from + 1);
        json_array_foreach(parameters, i, parameter) {
            if (strcmp(json_string_value(json_object_get(parameter, "name")), name) != 0) continue;
            const char *value = parameter == change->missing ? "x-missing" : "example";
            append(url, text_of(json_object_get(parameter, value), number, sizeof number));
        }
        from += strlen(name) + 1;
    }
    if (change->broken_path) append(url, "%zz");
}

static void put_query(const operation *op, const twist *change, char *url) {
    json_t *parameter;
    char number[32];
    size_t i;
    const char *separator = "?";
    json_array_foreach(json_object_get(op->of, "parameters"), i, parameter) {
        json_t *value = json_object_get(parameter, parameter == change->invalid ? "x-invalid" : "example");
        if (strcmp(json_string_value(json_object_get(parameter, "in")), "query") != 0 || !value) continue;
        append(url, separator);
        append(url, json_string_value(json_object_get(parameter, "name")));
        append(url, "=");
        append(url, text_of(value, number, sizeof number));
        separator = "&";
    }
    if (!change->query) return;
    append(url, separator);
    append(url, change->query);
}

static json_t *content_of(const operation *op, const char *type) {
    json_t *content = json_object_get(json_object_get(op->of, "requestBody"), "content");
    return json_object_get(content, type ? type : "application/json");
}

static void put_body(const operation *op, const twist *change, const char *type, char *request) {
    char line[256], *text = NULL;
    const char *which = change->invalid_body ? "x-invalid" : change->conflicting_body ? "x-conflict" : "example";
    json_t *value = json_object_get(content_of(op, type), which);
    if (value && !json_is_string(value)) text = json_dumps(value, JSON_COMPACT);
    const char *body = text ? text : value ? json_string_value(value) : "";
    long long length = (long long)strlen(body);
    if (change->large_body)
        length = json_integer_value(json_object_get(json_object_get(op->of, "requestBody"), "x-bytes-max")) + 1;
    snprintf(line, sizeof line, "Content-Type: %s\r\nContent-Length: %lld\r\n\r\n",
             change->content_type ? change->content_type : type, length);
    append(request, line);
    append(request, body);
    free(text);
}

static const char *key_of(const operation *op, const char *role) {
    static char key[64];
    if (!role) role = json_string_value(json_object_get(op->of, "x-role"));
    if (!strcmp(role, "anyone")) role = "reader"; /* a wrong one would be counted there, too */
    snprintf(key, sizeof key, "%s-key", role);
    return key;
}

static void make_request(const operation *op, const twist *change, const char *type, char *request) {
    char line[256];
    request[0] = 0;
    append(request, change->method ? change->method : op->method);
    append(request, " ");
    put_path(op, change, request);
    put_query(op, change, request);
    snprintf(line, sizeof line, " HTTP/1.1\r\nHost: %s\r\n", change->host ? change->host : "localhost");
    append(request, line);
    const char *key = change->key ? change->key : key_of(op, NULL);
    if (*key) {
        snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", key);
        append(request, line);
    }
    if (json_object_get(op->of, "requestBody") && !change->method)
        put_body(op, change, type, request);
    else
        append(request, change->body_on_get ? "Content-Length: 1\r\n\r\nx" : "\r\n");
}

/* --- holding answers against the file ------------------------------------------------------------------------- */

static void check_answer(const operation *op, const http_answer *answer, const char *request) {
    char status[8], type[128] = "";
    snprintf(status, sizeof status, "%d", answer->status);
    json_t *response = json_object_get(json_object_get(op->of, "responses"), status), *content, *body;
    if (!response) fail_msg("%s\n… answers %s, which is not documented: %s", request, status, answer->body);
    assert_non_null(answer_header(answer, "Content-Type", type, sizeof type));
    type[strcspn(type, ";")] = 0;
    content = json_object_get(json_object_get(response, "content"), type);
    if (!content) fail_msg("%s\n… answers %s with type %s, which is not documented", request, status, type);
    char header[16];
    assert_non_null(answer_header(answer, "X-Request-Id", header, sizeof header));
    /* who has not reached its broker knows of no partition yet, and says nothing of any */
    if (json_object_get(json_object_get(response, "headers"), "Weir-Freshness") && answer->status == 200)
        assert_non_null(strstr(strstr(answer->head, "Weir-Freshness: "), op->all->schema));
    if (!strstr(type, "json")) return;
    body = json_loads(answer->body, JSON_REJECT_DUPLICATES, NULL);
    if (!body) fail_msg("%s\n… answers what is not JSON: %s", request, answer->body);
    if (!schema_holds(op->all->document, json_object_get(content, "schema"), body, ""))
        fail_msg("%s\n… answers what its schema forbids: %s", request, answer->body);
    json_decref(body);
}

/* Asks, and wants this status. */
static void ask(operation *op, const serve_child *child, const twist *change, const char *type, int status) {
    static char request[REQUEST_MAX];
    http_answer answer;
    make_request(op, change, type, request);
    client_ask(child->port, request, &answer);
    if (answer.status != status) fail_msg("%s\n… answers %d, not %d: %s", request, answer.status, status, answer.body);
    check_answer(op, &answer, request);
    op->seen[status] = true;
    answer_free(&answer);
}

/* --- what every operation must do ----------------------------------------------------------------------------- */

static bool has_status(const operation *op, const char *status) {
    return json_object_get(json_object_get(op->of, "responses"), status) != NULL;
}

static void succeeds(operation *op) {
    json_t *content = json_object_get(json_object_get(op->of, "requestBody"), "content"), *of;
    const char *type;
    const twist plain = {0}, admin = {.key = "admin-key"};
    if (!content) ask(op, &op->all->keyed, &plain, NULL, 200);
    json_object_foreach(content, type, of) {
        if (json_object_get(of, "example")) ask(op, &op->all->keyed, &plain, type, 200);
    }
    ask(op, &op->all->keyed, &admin, "application/json", 200);
    if (op->all->open.port) {
        const twist nobody = {.key = ""};
        ask(op, &op->all->open, &nobody, "application/json", 200);
    }
}

static void roles_are_asked_for(operation *op) {
    const serve_child *keyed = &op->all->keyed;
    const char *role = json_string_value(json_object_get(op->of, "x-role"));
    const twist none = {.key = ""}, wrong = {.key = "wrong-key"};
    const twist other = {.key = strcmp(role, "reader") ? "reader-key" : "writer-key"};
    if (!strcmp(role, "anyone")) {
        ask(op, keyed, &none, "application/json", 200);
        ask(op, &op->all->tired, &wrong, "application/json", 200);
        return;
    }
    ask(op, keyed, &none, "application/json", 401);
    ask(op, keyed, &wrong, "application/json", 401);
    ask(op, &op->all->tired, &wrong, "application/json", 429);
    ask(op, keyed, &other, "application/json", 403);
}

static void parameters_are_checked(operation *op) {
    const serve_child *keyed = &op->all->keyed;
    const twist unknown = {.query = "nonsense=1"}, broken = {.broken_path = true}, body = {.body_on_get = true};
    json_t *parameter;
    size_t i;
    ask(op, keyed, &unknown, "application/json", 400);
    if (strchr(op->path, '{')) ask(op, keyed, &broken, "application/json", 400);
    if (!json_object_get(op->of, "requestBody")) ask(op, keyed, &body, NULL, 400);
    json_array_foreach(json_object_get(op->of, "parameters"), i, parameter) {
        const twist missing = {.missing = parameter}, invalid = {.invalid = parameter};
        if (json_object_get(parameter, "x-missing")) ask(op, keyed, &missing, "application/json", 404);
        if (json_object_get(parameter, "x-invalid")) ask(op, keyed, &invalid, "application/json", 400);
    }
}

static void bodies_are_checked(operation *op) {
    const serve_child *keyed = &op->all->keyed;
    const twist conflict = {.conflicting_body = true}, invalid = {.invalid_body = true}, large = {.large_body = true},
                plain = {.content_type = "text/plain"};
    json_t *content = json_object_get(json_object_get(op->of, "requestBody"), "content"), *of;
    const char *type;
    if (!content) return;
    json_object_foreach(content, type, of) {
        if (json_object_get(of, "x-invalid")) ask(op, keyed, &invalid, type, has_status(op, "422") ? 422 : 400);
        if (json_object_get(of, "x-conflict")) ask(op, keyed, &conflict, type, 409);
    }
    ask(op, keyed, &large, "application/json", 413);
    ask(op, keyed, &plain, "application/json", 415);
}

static void the_rest(operation *op) {
    const contract *c = op->all;
    const twist method = {.method = "PATCH"}, host = {.host = "evil.example", .key = ""}, nobody = {.key = ""};
    ask(op, &c->keyed, &method, "application/json", 405);
    ask(op, &c->open, &host, "application/json", 421);
    if (!c->kafka.port) return;
    if (has_status(op, "501")) ask(op, &c->kafka, &nobody, "application/json", 501);
    if (!strcmp(op->path, "/readyz")) ask(op, &c->kafka, &nobody, "application/json", 503);
}

/* 503 of what is not a probe, and 504, need a broken disk or a full server; those are tested where they can be made. */
static void all_were_seen(const operation *op) {
    const char *status;
    json_t *response;
    json_object_foreach(json_object_get(op->of, "responses"), status, response) {
        if (!strcmp(status, "503") || !strcmp(status, "504") || (!strcmp(status, "501") && !op->all->kafka.port))
            continue;
        if (!op->seen[strtoul(status, NULL, 10)])
            fail_msg("%s %s: nothing makes it answer %s", op->method, op->path, status);
    }
}

/* --- cases ---------------------------------------------------------------------------------------------------- */

static void each_operation(contract *all, void (*act)(operation *op)) {
    const char *path, *method;
    json_t *methods, *of;
    json_object_foreach(json_object_get(all->document, "paths"), path, methods) {
        json_object_foreach(methods, method, of) {
            operation op = {.all = json_object_get(of, "x-schema") ? all->other : all, .path = path, .of = of};
            for (size_t i = 0; method[i] && i + 1 < sizeof op.method; i++)
                op.method[i] = (char)(method[i] & ~0x20);
            act(&op);
        }
    }
}

static void whole_contract(operation *op) {
    succeeds(op);
    roles_are_asked_for(op);
    parameters_are_checked(op);
    bodies_are_checked(op);
    the_rest(op);
    all_were_seen(op);
}

static void write_keys(const char *path) {
    static const char *const names[] = {"reader-key", "writer-key", "admin-key"};
    char digests[3][65];
    for (size_t i = 0; i < 3; i++) {
        uint8_t digest[32];
        weir_sha256_bytes(names[i], strlen(names[i]), digest);
        for (size_t j = 0; j < sizeof digest; j++)
            snprintf(digests[i] + 2 * j, 3, "%02x", digest[j]);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, keys_text, digests[0], digests[1], digests[2]) > 0);
    assert_int_equal(fclose(file), 0);
}

/* As many wrong keys as are told so. */
static void tire(const serve_child *child) {
    for (int status = 0; status != 429;) {
        http_answer answer;
        client_ask(child->port, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX-API-Key: wrong-key\r\n\r\n", &answer);
        status = answer.status;
        answer_free(&answer);
    }
}

/* Of another schema: their model recommends, and nothing is stored yet. */
static void start_other(contract *other) {
    char id[WEIR_MODEL_ID_MAX], models[512], keys[512];
    snprintf(models, sizeof models, "%s", weir_test_path("recommenders"));
    snprintf(keys, sizeof keys, "%s", weir_test_path("keys"));
    const char *const more[] = {"--schema", other->schema, "--models",
                                models,     "--set",       "models.require_signature=false",
                                "--keys",   keys,          NULL},
                      *const open[] = {"--schema", other->schema, "--models",
                                       models,     "--set",       "models.require_signature=false",
                                       NULL};
    register_make_recommender(models, id);
    serve_start(&other->keyed, weir_test_path("other-keyed"), more);
    serve_start(&other->tired, weir_test_path("other-tired"), more);
    serve_start(&other->open, weir_test_path("other-open"), open);
    tire(&other->tired);
    serve_await(&other->tired, "/readyz", NULL, 200, NULL);
    serve_await(&other->keyed, "/readyz", NULL, 200, NULL);
    serve_await(&other->open, "/readyz", NULL, 200, NULL);
}

static void every_operation_keeps_its_contract(void **state) {
    (void)state;
    contract other = {.schema = "clicks"}, all = {.schema = "payments", .other = &other};
    size_t length;
    const char *text = weir_api_openapi(&length);
    all.document = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(all.document);
    write_keys(weir_test_path("keys"));
    char id[WEIR_MODEL_ID_MAX];
    register_make_family(weir_test_path("models"), WEIR_PACK_BLEND, 16, 1, id); /* which tells most */
    const char *keys[] = {"--keys", weir_test_path("keys"),           "--models", weir_test_path("models"),
                          "--set",  "models.require_signature=false", NULL},
               *kafka[] = {"--kafka=127.0.0.1:1", "--set", "kafka.timeout=500ms", NULL};
    serve_start(&all.keyed, weir_test_path("keyed"), keys);
    serve_start(&all.tired, weir_test_path("tired"), keys);
    serve_start(&all.open, weir_test_path("open"), keys + 2);
    bool follows = strcmp(weir_test_sanitizer(), "thread") != 0; /* it does not follow the threads of librdkafka */
    if (follows) serve_start(&all.kafka, weir_test_path("kafka"), kafka);
    assert_true(all.keyed.port && all.open.port && !all.kafka.port == !follows);
    serve_await(&all.keyed, "/readyz", NULL, 200, NULL);
    serve_await(&all.open, "/readyz", NULL, 200, NULL);
    operation events = {.all = &all, .path = "/v1/events", .method = "POST"};
    events.of = json_object_get(json_object_get(json_object_get(all.document, "paths"), "/v1/events"), "post");
    const twist plain = {0}, nobody = {.key = ""};
    ask(&events, &all.keyed, &plain, "application/json", 200);
    ask(&events, &all.open, &nobody, "application/json", 200);
    serve_await(&all.keyed, "/v1/vertices/payment/p1", "X-API-Key: reader-key\r\n", 200, NULL);
    serve_await(&all.open, "/v1/vertices/payment/p1", NULL, 200, NULL);
    serve_await(&all.keyed, "/v1/vertices/account/a1", "X-API-Key: reader-key\r\n", 200, NULL);
    serve_await(&all.open, "/v1/vertices/account/a1", NULL, 200, NULL);
    tire(&all.tired);
    serve_await(&all.tired, "/readyz", NULL, 200, NULL);
    other.document = all.document;
    start_other(&other);
    each_operation(&all, whole_contract);
    assert_int_equal(serve_end(&other.tired, SIGTERM), 0);
    assert_int_equal(serve_end(&other.keyed, SIGTERM), 0);
    assert_int_equal(serve_end(&other.open, SIGTERM), 0);
    assert_int_equal(serve_end(&all.tired, SIGTERM), 0);
    assert_int_equal(serve_end(&all.keyed, SIGTERM), 0);
    assert_int_equal(serve_end(&all.open, SIGTERM), 0);
    if (follows) assert_int_equal(serve_end(&all.kafka, SIGTERM), 0);
    json_decref(all.document);
}

WEIR_TESTS(WEIR_CASE(every_operation_keeps_its_contract))

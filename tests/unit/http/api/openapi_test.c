/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.json against the table of routes: neither has what the other has not. */
#include <string.h>

#include <jansson.h>

#include <weir/http/api/api.h>

#include "weir_test.h"

static json_t *document_read(void) {
    size_t length;
    json_error_t error;
    const char *text = weir_api_openapi(&length);
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!document) fail_msg("openapi.json:%d:%d: %s", error.line, error.column, error.text);
    return document;
}

static json_t *operation_of(json_t *document, const weir_http_route *route) {
    char method[8] = "";
    for (size_t i = 0; route->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)(route->method[i] | 0x20);
    return json_object_get(json_object_get(json_object_get(document, "paths"), route->pattern), method);
}

static const char *role_name(weir_http_role role) {
    return role == WEIR_HTTP_ANYONE   ? "anyone"
           : role == WEIR_HTTP_READER ? "reader"
           : role == WEIR_HTTP_WRITER ? "writer"
                                      : "admin";
}

/* Every name that one side has in this place of a request, the other side has too. */
static void check_query(const weir_http_route *route, json_t *operation) {
    size_t documented = 0, known = 0, i;
    json_t *parameter;
    json_array_foreach(json_object_get(operation, "parameters"), i, parameter) {
        if (strcmp(json_string_value(json_object_get(parameter, "in")), "query") != 0) continue;
        const char *name = json_string_value(json_object_get(parameter, "name"));
        bool found = false;
        for (size_t j = 0; route->query && route->query[j]; j++)
            found = found || !strcmp(route->query[j], name);
        if (!found) fail_msg("%s: the route does not take '%s'", route->pattern, name);
        documented++;
    }
    while (route->query && route->query[known])
        known++;
    if (known != documented) fail_msg("%s: openapi.json leaves out a query parameter", route->pattern);
}

static void check_path(const weir_http_route *route, json_t *operation) {
    size_t i;
    json_t *parameter;
    char braced[64];
    json_array_foreach(json_object_get(operation, "parameters"), i, parameter) {
        if (strcmp(json_string_value(json_object_get(parameter, "in")), "path") != 0) continue;
        snprintf(braced, sizeof braced, "{%s}", json_string_value(json_object_get(parameter, "name")));
        assert_non_null(strstr(route->pattern, braced));
    }
}

static void check_body(const weir_http_route *route, json_t *operation) {
    json_t *body = json_object_get(operation, "requestBody");
    json_int_t limit = json_integer_value(json_object_get(body, "x-bytes-max"));
    if (limit != (json_int_t)route->body_bytes_max)
        fail_msg("%s: x-bytes-max is not %u", route->pattern, route->body_bytes_max);
}

static void every_route_is_documented(void **state) {
    (void)state;
    size_t count;
    json_t *document = document_read();
    const weir_http_route *routes = weir_api_routes(&count);
    for (size_t i = 0; i < count; i++) {
        json_t *operation = operation_of(document, &routes[i]);
        if (!operation) fail_msg("openapi.json has no %s %s", routes[i].method, routes[i].pattern);
        const char *role = json_string_value(json_object_get(operation, "x-role"));
        if (!role || strcmp(role, role_name(routes[i].role)) != 0)
            fail_msg("%s: x-role is %s", routes[i].pattern, role);
        bool secured = json_array_size(json_object_get(operation, "security")) > 0;
        assert_int_equal(secured, routes[i].role != WEIR_HTTP_ANYONE);
        check_query(&routes[i], operation);
        check_path(&routes[i], operation);
        check_body(&routes[i], operation);
    }
    json_decref(document);
}

static void every_operation_has_a_route(void **state) {
    (void)state;
    size_t count, operations = 0;
    json_t *document = document_read(), *methods;
    const char *path;
    (void)weir_api_routes(&count);
    json_object_foreach(json_object_get(document, "paths"), path, methods) {
        operations += json_object_size(methods);
    }
    assert_int_equal(operations, count); /* each route is one of them */
    json_decref(document);
}

WEIR_TESTS(WEIR_CASE(every_route_is_documented), WEIR_CASE(every_operation_has_a_route))

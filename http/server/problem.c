/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - errors as application/problem+json (RFC 9457). */
#include <stdarg.h>
#include <stdio.h>

#include <weir/store/base/log.h>

#include "private.h"

#define PROBLEM_DETAIL_MAX 1024u

typedef struct problem_status {
    unsigned status;
    const char *title, *slug;
} problem_status;

static const problem_status problem_statuses[] = {
    {500, "Internal Server Error", "internal"}, /* first: what stands for any other status */
    {200, "OK", ""},
    {202, "Accepted", ""},
    {400, "Bad Request", "bad-request"},
    {401, "Unauthorized", "no-key"},
    {403, "Forbidden", "forbidden"},
    {404, "Not Found", "not-found"},
    {405, "Method Not Allowed", "method"},
    {408, "Request Timeout", "too-slow"},
    {409, "Conflict", "conflict"},
    {413, "Content Too Large", "too-large"},
    {415, "Unsupported Media Type", "media-type"},
    {421, "Misdirected Request", "host"},
    {422, "Unprocessable Content", "invalid"},
    {429, "Too Many Requests", "too-many"},
    {501, "Not Implemented", "not-here"},
    {503, "Service Unavailable", "unavailable"},
    {504, "Gateway Timeout", "timeout"},
};

static const problem_status *problem_status_find(unsigned status) {
    for (size_t i = 0; i < sizeof problem_statuses / sizeof problem_statuses[0]; i++)
        if (problem_statuses[i].status == status) return &problem_statuses[i];
    return &problem_statuses[0];
}

const char *weir_http_status_title(unsigned status) {
    return problem_status_find(status)->title;
}

void weir_http_problem_write(weir_buf *out, unsigned status, const char *slug, const char *detail, const char *id) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key(&json, "type");
    char type[96];
    snprintf(type, sizeof type, "/problems/%.64s", slug ? slug : problem_status_find(status)->slug);
    weir_json_string(&json, type);
    weir_json_key_string(&json, "title", weir_http_status_title(status));
    weir_json_key_u64(&json, "status", status);
    weir_json_key_string(&json, "detail", detail);
    weir_json_key_string(&json, "request_id", id);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}

static void problem_reply(weir_http_request *request, unsigned status, const char *slug, const char *detail) {
    request->fixed = NULL;
    weir_buf_clear(&request->out);
    weir_http_problem_write(&request->out, status, slug, detail, request->id);
    weir_http_reply(request, status, "application/problem+json");
}

bool weir_http_problem(weir_http_request *request, unsigned status, const char *slug, const char *format, ...) {
    char detail[PROBLEM_DETAIL_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    problem_reply(request, status, slug, detail);
    return false;
}

static unsigned problem_status_of(weir_code code) {
    switch (code) {
    case WEIR_EDATA:
    case WEIR_EUSAGE:
    case WEIR_EINVAL:
        return 400;
    case WEIR_EPERM:
        return 403;
    case WEIR_ENOTFOUND:
        return 404;
    case WEIR_EEXIST:
        return 409;
    case WEIR_ELIMIT:
        return 413;
    case WEIR_EBUSY:
    case WEIR_EUNAVAILABLE:
    case WEIR_EFULL:
    case WEIR_EPOISONED:
    case WEIR_ENOMEM:
    case WEIR_ECLOSED:
        return 503;
    case WEIR_ETIMEOUT:
        return 504;
    default:
        return 500;
    }
}

/* What went wrong inside the server is told to its operator only; the id finds it in the log. */
void weir_http_problem_err(weir_http_request *request, weir_err err) {
    unsigned status = problem_status_of(weir_err_code(err));
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    if (status >= 500) {
        WEIR_LOG(WARN, "http.failed", sentence, WEIR_TEXT("code", weir_code_name(weir_err_code(err))),
                 WEIR_TEXT("request", request->id));
    }
    if (status == 500)
        snprintf(sentence, sizeof sentence, "internal error; search the server's log for the request_id");
    problem_reply(request, status, NULL, sentence);
}

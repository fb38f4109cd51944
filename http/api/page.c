/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - GET / and its two files: the console page.
 *
 * The files hold no data, so they need no key; the page gets what it shows from the API, with the key that its reader
 * types in if the server requires one. It loads nothing from other hosts, and the policy has the browser enforce that.
 */
#include "private.h"

#define POLICY "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static weir_err page_reply(weir_http_request *request, const char *type, const char *(*file)(size_t *lengthp)) {
    size_t length;
    const char *text = file(&length);
    weir_http_add_header(request, "Content-Security-Policy", POLICY);
    weir_http_add_header(request, "Referrer-Policy", "no-referrer");
    weir_http_reply_static(request, 200, type, text, length);
    return WEIR_OK;
}

weir_err weir_api_get_page(void *context, weir_http_request *request) {
    (void)context;
    return page_reply(request, "text/html; charset=utf-8", weir_api_page_html);
}

weir_err weir_api_get_page_script(void *context, weir_http_request *request) {
    (void)context;
    return page_reply(request, "text/javascript; charset=utf-8", weir_api_page_js);
}

weir_err weir_api_get_page_style(void *context, weir_http_request *request) {
    (void)context;
    return page_reply(request, "text/css; charset=utf-8", weir_api_page_css);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - where a server listens, read from text, and what counts as this machine. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "private.h"

static weir_err address_wrong(const char *text) {
    return WEIR_ERR(
        WEIR_ECONFIG,
        "cannot listen on '%.100s': not an address and a port; write for example 127.0.0.1:8080, [::1]:8080 or :8080",
        text);
}

static bool address_read_port(const char *text, uint16_t *portp) {
    size_t length = strlen(text);
    if (!length || length > 5 || strspn(text, "0123456789") != length) return false;
    unsigned long port = strtoul(text, NULL, 10);
    *portp = (uint16_t)port;
    return port <= UINT16_MAX;
}

static bool address_is_loopback(const struct sockaddr_storage *storage) {
    if (storage->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)storage)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *address = &((const struct sockaddr_in6 *)storage)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

static bool address_read_host(const char *host, uint16_t port, weir_http_address *address) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->storage;
    if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address->length = sizeof *v4;
        return true;
    }
    if (*host && inet_pton(AF_INET6, host, &v6->sin6_addr) != 1) return false;
    if (!*host) v6->sin6_addr = in6addr_any; /* takes IPv4 too */
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address->length = sizeof *v6;
    return true;
}

weir_err weir_http_address_read(const char *text, weir_http_address *addressp) {
    *addressp = (weir_http_address){0};
    char host[INET6_ADDRSTRLEN + 1] = "";
    const char *colon = strrchr(text, ':');
    uint16_t port;
    if (!colon || !address_read_port(colon + 1, &port)) return address_wrong(text);
    const char *begin = text, *end = colon;
    if (*begin == '[') {
        if (end == begin || end[-1] != ']') return address_wrong(text);
        begin++;
        end--;
    }
    size_t length = (size_t)(end - begin);
    if (length >= sizeof host || (begin == text && memchr(begin, ':', length))) return address_wrong(text);
    memcpy(host, begin, length);
    if (!address_read_host(host, port, addressp)) return address_wrong(text);
    addressp->loopback = address_is_loopback(&addressp->storage);
    return WEIR_OK;
}

void weir_http_address_text(const struct sockaddr *address, char *buffer, size_t size) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(buffer, size, "%s:%u", host, ntohs(v4->sin_port));
        return;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    snprintf(buffer, size, "[%s]:%u", host, ntohs(v6->sin6_port));
}

/* A page of another site that has its own name point here (DNS rebinding) sends that name. */
bool weir_http_host_is_local(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    if (!host) return true; /* HTTP/1.0, which no browser sends */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (!strncmp(host, names[i], length) && (!host[length] || host[length] == ':')) return true;
    }
    return false;
}

bool weir_http_origin_is_host(const char *origin, const char *host) {
    const char *end = strstr(origin, "://");
    return end && host && strcasecmp(end + 3, host) == 0;
}

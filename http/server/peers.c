/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - how many connections there are, in all and of each address.
 *
 * The table has room for as many addresses as connections from the start; an IPv6 peer is its /64, because a household
 * or a server gets no less.
 *
 * Wrong keys outlive the connection that they came on. They are kept in sets of a few places, of which the oldest gives
 * way: a client with more addresses than there are places is forgotten now and then, and costs no more memory.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/table.h>

#include "private.h"

typedef struct peer {
    uint32_t tag;
    uint32_t count; /* of its connections */
    uint64_t id;
} peer;

#define STRIKE_SETS 1024u
#define STRIKE_WAYS 4u

typedef struct peer_strikes {
    uint64_t id;
    int64_t since_us;
    uint32_t count; /* 0: free */
} peer_strikes;

struct weir_http_peers {
    weir_mutex mutex;
    uint32_t connections, connections_max, per_ip;
    weir_table table; /* under mutex, with connections */
    peer_strikes strikes[STRIKE_SETS][STRIKE_WAYS];
};

weir_err weir_http_peers_open(uint32_t connections, uint32_t per_ip, weir_http_peers **peersp) {
    *peersp = NULL;
    weir_http_peers *peers = weir_calloc(1, sizeof *peers);
    if (!peers || !weir_table_reserve(&peers->table, connections, sizeof(peer))) {
        weir_free(peers);
        return WEIR_NOMEM("for a table of %u connections", connections);
    }
    weir_mutex_init(&peers->mutex, WEIR_RANK_LEAF, "http peers");
    peers->connections_max = connections;
    peers->per_ip = per_ip;
    *peersp = peers;
    return WEIR_OK;
}

/* Of an IPv4 address, or of an IPv6 /64. */
static uint64_t peer_id(const struct sockaddr *address) {
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return weir_xxh3(&v4->sin_addr, 4, 4);
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(v6)) return weir_xxh3(v6->s6_addr + 12, 4, 4);
    return weir_xxh3(v6, 8, 6);
}

static peer *peer_find(weir_http_peers *peers, uint64_t id) {
    WEIR_ASSERT(weir_mutex_held(&peers->mutex));
    peer *found = weir_table_first(&peers->table, id, sizeof *found);
    while (found && found->id != id)
        found = weir_table_next(&peers->table, found, sizeof *found);
    return found;
}

bool weir_http_peers_enter(weir_http_peers *peers, const struct sockaddr *address, uint64_t *peerp) {
    *peerp = peer_id(address);
    weir_mutex_lock(&peers->mutex);
    peer *found = peer_find(peers, *peerp);
    bool room = peers->connections < peers->connections_max && (found ? found->count : 0) < peers->per_ip;
    if (room) {
        if (!found) found = weir_table_add(&peers->table, *peerp, sizeof *found);
        found->id = *peerp;
        found->count++;
        peers->connections++;
        weir_metric_set(WEIR_METRIC_HTTP_CONNECTIONS, peers->connections);
    }
    weir_mutex_unlock(&peers->mutex);
    return room;
}

bool weir_http_peers_crowded(weir_http_peers *peers) {
    weir_mutex_lock(&peers->mutex);
    bool crowded = peers->connections_max - peers->connections <= peers->connections_max / 16;
    weir_mutex_unlock(&peers->mutex);
    return crowded;
}

void weir_http_peers_leave(weir_http_peers *peers, uint64_t id) {
    weir_mutex_lock(&peers->mutex);
    peer *found = peer_find(peers, id);
    WEIR_ASSERT(found && peers->connections);
    peers->connections--;
    weir_metric_set(WEIR_METRIC_HTTP_CONNECTIONS, peers->connections);
    if (!--found->count) weir_table_remove(&peers->table, found, sizeof *found);
    weir_mutex_unlock(&peers->mutex);
}

/* The address's own place in its set, or the one that has been taken longest. */
static peer_strikes *peer_strikes_find(peer_strikes set[STRIKE_WAYS], uint64_t id) {
    peer_strikes *place = &set[0];
    for (uint32_t i = 0; i < STRIKE_WAYS; i++) {
        if (set[i].count && set[i].id == id) return &set[i];
        if (!set[i].count || (place->count && set[i].since_us < place->since_us)) place = &set[i];
    }
    return place;
}

uint32_t weir_http_peers_strike(weir_http_peers *peers, uint64_t id, int64_t now_us) {
    weir_mutex_lock(&peers->mutex);
    peer_strikes *s = peer_strikes_find(peers->strikes[id % STRIKE_SETS], id);
    if (!s->count || s->id != id || now_us - s->since_us >= WEIR_HTTP_STRIKES_US)
        *s = (peer_strikes){.id = id, .since_us = now_us};
    if (s->count < UINT32_MAX) s->count++;
    uint32_t count = s->count;
    weir_mutex_unlock(&peers->mutex);
    return count;
}

void weir_http_peers_close(weir_http_peers *peers) {
    if (!peers) return;
    weir_mutex_destroy(&peers->mutex);
    weir_table_free(&peers->table);
    weir_free(peers);
}

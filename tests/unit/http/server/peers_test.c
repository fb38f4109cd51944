/* SPDX-License-Identifier: Apache-2.0 */
/* Who may connect, against a count for each address. */
#include "weir_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <weir/store/base/rng.h>

#include "private.h"

enum { CONNECTIONS = 50, PER_IP = 4, ADDRESSES = 300 };

static bool enter(weir_http_peers *peers, uint32_t number, uint64_t *peerp) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000u + number)};
    return weir_http_peers_enter(peers, (const struct sockaddr *)(const void *)&address, peerp);
}

/* Many more addresses come and go than there is room for at a time. */
static void each_has_its_share_and_no_more(void **state) {
    (void)state;
    uint64_t ids[ADDRESSES];
    uint32_t counts[ADDRESSES] = {0}, all = 0;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_http_peers *peers;
    assert_ok(weir_http_peers_open(CONNECTIONS, PER_IP, &peers));
    for (uint64_t step = 0; step < weir_test_rounds(20000); step++) {
        uint32_t number = (uint32_t)weir_rng_below(&rng, weir_rng_below(&rng, 2) ? 5 : ADDRESSES);
        if (counts[number] && weir_rng_below(&rng, 2)) {
            weir_http_peers_leave(peers, ids[number]);
            counts[number]--;
            all--;
        } else {
            bool entered = enter(peers, number, &ids[number]);
            assert_int_equal(entered, all < CONNECTIONS && counts[number] < PER_IP);
            counts[number] += entered;
            all += entered;
        }
        for (uint32_t i = 0; all == CONNECTIONS && i < ADDRESSES; i++) /* all hang up */
            for (; counts[i]; counts[i]--, all--)
                weir_http_peers_leave(peers, ids[i]);
    }
    weir_http_peers_close(peers);
}

static weir_err open_and_close(void *context) {
    weir_http_peers *peers;
    (void)context;
    weir_err err = weir_http_peers_open(CONNECTIONS, PER_IP, &peers);
    weir_http_peers_close(peers);
    return err;
}

static void every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_close, NULL);
}

WEIR_TESTS(WEIR_CASE(each_has_its_share_and_no_more), WEIR_CASE(every_allocation))

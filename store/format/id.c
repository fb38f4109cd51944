/* SPDX-License-Identifier: Apache-2.0 */
/* id.c - names become numbers. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/format/id.h>

#define TYPE_MAX       249u /* a vertex type's name has less; a topic's may have that: Kafka's own limit */
#define FILE_MAX_BYTES 4096u
#define NAME_MAX_BYTES (1u + TYPE_MAX + 1u + WEIR_KEY_MAX) /* kind, type, 0, key */

/* An event that has a name, and one that is known by its place, never stand for each other. */
#define EVENT_NAMED 'e'
#define EVENT_AT    'p'

const weir_id_key weir_id_key_public = {"weir public key"};

_Static_assert(sizeof(weir_id_key) == WEIR_SIPHASH_KEY_BYTES, "an id's key is a key of SipHash");

weir_err weir_id_key_draw(weir_id_key *id_keyp) {
    size_t got = 0;
    *id_keyp = (weir_id_key){{0}};
    while (got < sizeof id_keyp->bytes) {
        ssize_t drawn = getrandom(id_keyp->bytes + got, sizeof id_keyp->bytes - got, 0);
        if (drawn < 0 && errno != EINTR)
            return WEIR_ERR(WEIR_EUNAVAILABLE, "the system gives no random numbers for a new store: %s",
                            strerror(errno));
        if (drawn > 0) got += (size_t)drawn;
    }
    return WEIR_OK;
}

bool weir_id_key_parse(const char *text, weir_id_key *id_keyp) {
    static const char digits[] = "0123456789abcdef";
    if (strlen(text) != WEIR_ID_KEY_DIGITS || strspn(text, digits) != WEIR_ID_KEY_DIGITS) return false;
    for (size_t i = 0; i < sizeof id_keyp->bytes; i++) {
        ptrdiff_t high = strchr(digits, text[2 * i]) - digits, low = strchr(digits, text[2 * i + 1]) - digits;
        WEIR_ASSERT(high >= 0 && high < 16 && low >= 0 && low < 16);
        id_keyp->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

weir_err weir_id_key_load(const char *path, weir_id_key *id_keyp) {
    char *text = NULL;
    size_t length;
    weir_err err = weir_file_load_as(path, WEIR_FILE_GUARDED | WEIR_FILE_SECRET, FILE_MAX_BYTES, &text, &length);
    if (!err && length && text[length - 1] == '\n') text[length - 1] = 0;
    if (!err && !weir_id_key_parse(text, id_keyp))
        err = WEIR_ERR(WEIR_EDATA, "%s is not a key of ids; make one: openssl rand -hex 16", path);
    weir_free(text);
    return err;
}

/* The 0 byte separates type and key, so that ("ab", "c") and ("a", "bc") differ. Returns the length. */
static size_t id_join(const char *type, const void *key, size_t key_length, char *bytes) {
    size_t type_length = strlen(type);
    WEIR_ASSERT(type_length <= TYPE_MAX && key_length <= WEIR_KEY_MAX);
    memcpy(bytes, type, type_length + 1);
    memcpy(bytes + type_length + 1, key, key_length);
    return type_length + 1 + key_length;
}

weir_vertex weir_vertex_id(const weir_id_key *id_key, const char *type, const char *key, size_t key_length) {
    char bytes[NAME_MAX_BYTES];
    uint64_t words[2];
    weir_siphash128(id_key->bytes, bytes, id_join(type, key, key_length, bytes), words);
    return weir_vertex_make(words[0], words[1]);
}

static uint64_t event_id(const weir_id_key *id_key, char kind, const char *source, const void *id, size_t length) {
    char bytes[NAME_MAX_BYTES];
    bytes[0] = kind;
    return weir_siphash(id_key->bytes, bytes, 1 + id_join(source, id, length, bytes + 1));
}

uint64_t weir_event_id(const weir_id_key *id_key, const char *source, const void *id, size_t id_length) {
    return event_id(id_key, EVENT_NAMED, source, id, id_length);
}

uint64_t weir_event_id_at(const weir_id_key *id_key, const char *source, uint32_t partition, uint64_t offset) {
    uint8_t position[12];
    weir_put_u32(position, partition);
    weir_put_u64(position + 4, offset);
    return event_id(id_key, EVENT_AT, source, position, sizeof position);
}

uint32_t weir_shard_of(weir_vertex vertex, uint32_t shards) {
    WEIR_ASSERT(shards > 0 && shards <= WEIR_SHARDS_MAX);
    uint64_t mixed = weir_vertex_low(vertex) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)((mixed >> 32) * shards >> 32);
}

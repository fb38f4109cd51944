/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - a librdkafka handle with our settings, and its log lines and errors as ours. */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/log.h>
#include <weir/store/base/thread.h>

#define WAIT_MAX_MS        3600000
#define TIMEOUT_MAX_US     (WAIT_MAX_MS * 1000ll)
#define CLOSE_WAIT_MS      1000
#define RECONNECT_WAIT_MAX "2000" /* ms; the default, 10 s, lets a broker that is back wait for us */
#define ERROR_TEXT_MAX     256u

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

/* Its own threads would otherwise log under the name of our main thread.  [any] */
static rd_kafka_resp_err_t kafka_client_adopt_thread(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name,
                                                     void *context) {
    (void)rk, (void)type, (void)name, (void)context;
    weir_thread_adopt("kafka", WEIR_ROLE_KAFKA);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t kafka_client_name_threads(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *context,
                                                     char *text, size_t text_size) {
    (void)conf, (void)context, (void)text, (void)text_size;
    return rd_kafka_interceptor_add_on_thread_start(rk, "weir", kafka_client_adopt_thread, NULL);
}

/* What the client calls an error is a broken connection that it is about to mend: what it cannot mend comes back from a
 * call as an error of ours. CONFWARN lines are about settings that we chose.  [any] */
static void kafka_client_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    const weir_log_field fields[] = {
        WEIR_TEXT("client", rk ? rd_kafka_name(rk) : "-"),
        WEIR_TEXT("facility", facility),
    };
    weir_log_level ours = level <= LOG_CRIT      ? WEIR_LOG_ERROR
                          : level <= LOG_WARNING ? WEIR_LOG_WARN
                          : level < LOG_DEBUG    ? WEIR_LOG_INFO
                                                 : WEIR_LOG_DEBUG;
    if (strcmp(facility, "CONFWARN") == 0) ours = WEIR_LOG_DEBUG;
    if (!weir_log_enabled(ours)) return;
    weir_log_write(ours, "kafka.client", fields, sizeof fields / sizeof fields[0], "%s", text);
}

static void kafka_client_note_error(rd_kafka_t *rk, int error, const char *reason, void *context) {
    (void)rk;
    weir_kafka_client *client = context;
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return; // says less than what came before it
    weir_mutex_lock(&client->fault->mutex);
    snprintf(client->fault->text, sizeof client->fault->text, "%s", reason);
    weir_mutex_unlock(&client->fault->mutex);
}

/* Counted before anything can come over it.  [any] */
static int kafka_client_connect(int fd, const struct sockaddr *address, int length, const char *id, void *context) {
    (void)id;
    atomic_fetch_add(&((weir_kafka_client *)context)->connects, 1);
    if (connect(fd, address, (socklen_t)length) == 0 || errno == EINPROGRESS) return 0;
    return errno;
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static weir_err kafka_client_check_opts(const weir_kafka_client_opts *opts) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *topic = opts->topic ? opts->topic : "";
    size_t length = strspn(topic, letters);
    if (!opts->brokers || !opts->brokers[0]) {
        return WEIR_ERR(WEIR_EINVAL, "no Kafka broker is named; give host:port, several separated by commas");
    }
    if (length == 0 || length > WEIR_KAFKA_TOPIC_MAX || topic[length] || !strcmp(topic, ".") || !strcmp(topic, "..")) {
        return WEIR_ERR(WEIR_EINVAL, "'%.64s' cannot name a topic; use 1 to %u letters, digits, '.', '_' and '-'",
                        topic, WEIR_KAFKA_TOPIC_MAX);
    }
    if (opts->timeout_us < WEIR_KAFKA_TIMEOUT_MIN_US || opts->timeout_us > TIMEOUT_MAX_US) {
        return WEIR_ERR(WEIR_EINVAL, "the Kafka timeout is %" PRId64 " us; it may be 100 ms to 1 h", opts->timeout_us);
    }
    return WEIR_OK;
}

static weir_err kafka_client_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char text[ERROR_TEXT_MAX];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "the Kafka client refuses the setting %s: %s", name, text);
}

static weir_err kafka_client_configure(weir_kafka_client *client, const weir_kafka_client_opts *opts,
                                       rd_kafka_conf_t **confp) {
    static const weir_kafka_setting settings[] = {
        {"client.id", "weir"},
        {"allow.auto.create.topics", "false"}, // KAFKA-K5
        {"socket.keepalive.enable", "true"},
        {"reconnect.backoff.max.ms", RECONNECT_WAIT_MAX},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < sizeof settings / sizeof settings[0]; i++) {
        err = kafka_client_set(conf, settings[i].name, settings[i].value);
    }
    for (size_t i = 0; !err && i < opts->setting_count; i++) {
        err = kafka_client_set(conf, opts->settings[i].name, opts->settings[i].value);
    }
    if (err) {
        rd_kafka_conf_destroy(conf);
        return err;
    }
    rd_kafka_conf_set_opaque(conf, client);
    rd_kafka_conf_set_log_cb(conf, kafka_client_log);
    rd_kafka_conf_set_error_cb(conf, kafka_client_note_error);
    rd_kafka_conf_set_connect_cb(conf, kafka_client_connect);
    if (opts->delivered) rd_kafka_conf_set_dr_msg_cb(conf, opts->delivered);
    rd_kafka_conf_interceptor_add_on_new(conf, "weir", kafka_client_name_threads, NULL);
    *confp = conf;
    return WEIR_OK;
}

weir_err weir_kafka_client_open(const weir_kafka_client_opts *opts, weir_kafka_client **clientp) {
    char text[ERROR_TEXT_MAX];
    rd_kafka_conf_t *conf;
    *clientp = NULL;
    weir_err err = kafka_client_check_opts(opts);
    if (err) return err;
    weir_kafka_client *client = weir_calloc(1, sizeof *client);
    if (!client) return WEIR_NOMEM("for a Kafka client");
    client->timeout_us = opts->timeout_us;
    client->leader = -1;
    client->owner = opts->owner;
    client->stop = opts->stop;
    client->context = opts->context;
    client->brokers = weir_strdup(opts->brokers);
    client->topic = weir_strdup(opts->topic);
    client->fault = weir_calloc(1, sizeof *client->fault);
    if (client->fault) weir_mutex_init(&client->fault->mutex, WEIR_RANK_LEAF, "kafka fault");
    if (!client->brokers || !client->topic || !client->fault) err = WEIR_NOMEM("for a Kafka client");
    if (!err) err = kafka_client_configure(client, opts, &conf);
    if (err) goto done;

    client->rk = rd_kafka_new(opts->type, conf, text, sizeof text);
    if (!client->rk) {
        rd_kafka_conf_destroy(conf); // rd_kafka_new takes it over only when it succeeds
        err = WEIR_ERR(WEIR_EUNAVAILABLE, "the Kafka client did not start: %s", text);
        goto done;
    }
    if (rd_kafka_brokers_add(client->rk, client->brokers) == 0) {
        err = WEIR_ERR(WEIR_EINVAL,
                       "'%.128s' is not a list of Kafka brokers; give host:port, several separated by commas",
                       client->brokers);
        goto done;
    }
    client->rkt = rd_kafka_topic_new(client->rk, client->topic, NULL);
    if (!client->rkt) err = weir_kafka_error(client, rd_kafka_last_error(), "open");
done:
    if (err)
        weir_kafka_client_close(client);
    else
        *clientp = client;
    return err;
}

void weir_kafka_client_close(weir_kafka_client *client) {
    if (!client) return;
    if (client->rk) {
        if (rd_kafka_type(client->rk) == RD_KAFKA_PRODUCER) {
            // Otherwise destroying would first wait for records that no caller waits for any more.
            rd_kafka_purge(client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
            rd_kafka_flush(client->rk, CLOSE_WAIT_MS);
        }
        if (client->rkt) rd_kafka_topic_destroy(client->rkt);
        rd_kafka_destroy_flags(client->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); // no group to leave
    }
    if (client->fault) weir_mutex_destroy(&client->fault->mutex);
    weir_free(client->fault);
    weir_free(client->brokers);
    weir_free(client->topic);
    weir_free(client);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

void weir_kafka_fault_text(const weir_kafka_client *client, char *text, size_t size) {
    struct weir_kafka_fault *fault = client->fault;
    weir_mutex_lock(&fault->mutex);
    snprintf(text, size, "%s%s", fault->text[0] ? ": " : "", fault->text);
    weir_mutex_unlock(&fault->mutex);
}

weir_code weir_kafka_code(rd_kafka_resp_err_t error) {
    switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return WEIR_CODE_OK;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return WEIR_ENOTFOUND;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
        return WEIR_ELIMIT;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
        return WEIR_EPERM;
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
        return WEIR_ETIMEOUT;
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR__UNDERFLOW:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
        return WEIR_ECORRUPT;
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
        return WEIR_EINVAL;
    default:
        return WEIR_EUNAVAILABLE;
    }
}

weir_err weir_kafka_error(const weir_kafka_client *client, rd_kafka_resp_err_t error, const char *doing) {
    char fault[WEIR_KAFKA_FAULT_MAX + 2];
    switch (error) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
        rd_kafka_poll(client->rk, 0); // brings the reason, if one waits
        weir_kafka_fault_text(client, fault, sizeof fault);
        return WEIR_ERR(WEIR_EUNAVAILABLE,
                        "no Kafka broker at %.128s answered within %" PRId64
                        " ms%s; start one (for development: ops/kafka up), or correct kafka.brokers",
                        client->brokers, client->timeout_us / 1000, fault);
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        return WEIR_ERR(WEIR_ENOTFOUND,
                        "no topic '%s' at %.128s; create it (for development: ops/kafka topic create %s), or correct "
                        "the name",
                        client->topic, client->brokers, client->topic);
    default:
        return WEIR_ERR(weir_kafka_code(error), "Kafka refused to %s topic '%s': %s", doing, client->topic,
                        rd_kafka_err2str(error));
    }
}

int weir_kafka_wait_ms(int64_t wait_us) {
    if (wait_us <= 0) return 0;
    return wait_us >= TIMEOUT_MAX_US ? WAIT_MAX_MS : (int)((wait_us + 999) / 1000);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - what was given, as the type that the command wants. */
#include "cli_private.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

/* A command that asks for an option which it does not list would never see it: our own mistake. */
static const weir_given *cli_given(const weir_cli *cli, const char *option) {
    WEIR_ON_ROLE(MAIN);
    const weir_option *known = cli->command->options;
    while (known && known->name && strcmp(known->name, option))
        known++;
    WEIR_ASSERT(known && known->name);
    return weir_cli_find(cli, option);
}

const char *weir_cli_text(const weir_cli *cli, const char *option) {
    const weir_given *found = cli_given(cli, option);
    return found ? found->value : NULL;
}

const char *weir_cli_text_at(const weir_cli *cli, const char *option, size_t index) {
    for (size_t i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i].option->name, option) == 0 && index-- == 0) return cli->given[i].value;
    return NULL;
}

bool weir_cli_given(const weir_cli *cli, const char *option) {
    return cli_given(cli, option) != NULL;
}

weir_err weir_cli_u64(const weir_cli *cli, const char *option, uint64_t min, uint64_t max, uint64_t *valuep) {
    const char *text = weir_cli_text(cli, option);
    if (!text) return WEIR_OK;
    char *end = NULL;
    errno = 0;
    unsigned long long value = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || value < min || value > max)
        return WEIR_ERR(WEIR_EUSAGE, "--%s is '%.60s'; it must be a whole number from %llu to %llu", option, text,
                        (unsigned long long)min, (unsigned long long)max);
    *valuep = value;
    return WEIR_OK;
}

weir_err weir_cli_f64(const weir_cli *cli, const char *option, double min, double max, double *valuep) {
    const char *text = weir_cli_text(cli, option);
    if (!text) return WEIR_OK;
    char *end = NULL;
    bool plain = *text && !text[strspn(text, "0123456789+-.eE")];
    double value = plain ? strtod(text, &end) : 0;
    if (!end || *end || !isfinite(value) || value < min || value > max)
        return WEIR_ERR(WEIR_EUSAGE, "--%s is '%.60s'; it must be a number from %g to %g", option, text, min, max);
    *valuep = value;
    return WEIR_OK;
}

weir_err weir_cli_us(const weir_cli *cli, const char *option, int64_t *usp) {
    const char *text = weir_cli_text(cli, option);
    int64_t us;
    if (!text) return WEIR_OK;
    if (weir_duration_parse(text, &us))
        return WEIR_ERR(WEIR_EUSAGE, "--%s is '%.60s'; it must be a duration such as 250ms, 90s, 15m, 36h or 7d",
                        option, text);
    *usp = us;
    return WEIR_OK;
}

weir_err weir_cli_time(const weir_cli *cli, const char *option, int64_t *wall_usp) {
    const char *text = weir_cli_text(cli, option);
    int64_t wall_us;
    if (!text) return WEIR_OK;
    if (weir_time_parse(text, strlen(text), &wall_us))
        return WEIR_ERR(WEIR_EUSAGE, "--%s is '%.60s'; it must be a time such as 2026-11-21 or 2026-11-21T10:00:00Z",
                        option, text);
    *wall_usp = wall_us;
    return WEIR_OK;
}

size_t weir_cli_positional_count(const weir_cli *cli) {
    return cli->positional_count;
}

const char *weir_cli_positional(const weir_cli *cli, size_t index) {
    return index < cli->positional_count ? cli->positional[index] : NULL;
}

const weir_config *weir_cli_config(const weir_cli *cli) {
    return cli->config;
}

const char *weir_cli_path(const weir_cli *cli) {
    return cli->path;
}

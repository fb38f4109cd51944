/* SPDX-License-Identifier: Apache-2.0 */
/* log_private.h - what the files behind `weir log` share. */
#ifndef WEIR_CMD_LOG_PRIVATE_H
#define WEIR_CMD_LOG_PRIVATE_H

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/cli/cli.h>

#define WEIR_CMD_LOG_PATH \
    { "path", 'p', "DIR", "folder of the log (default: eventlog.path of the configuration)", NULL }

extern const weir_command weir_cmd_log_ls, weir_cmd_log_cat, weir_cmd_log_append, weir_cmd_log_verify;

/* The first positional.  WEIR_EUSAGE it cannot be the name of a topic. */
weir_err weir_cmd_log_topic(const weir_cli *cli, const char **topicp);
/* --path, or the configuration's. */
const char *weir_cmd_log_folder(const weir_cli *cli);

/* The field `name` of a line that is one JSON object, as text: a string without its escapes, a number or boolean as it
 * is written. Reads no further than it must. Appends to out.  WEIR_EDATA names the byte, or says that there is no such
 * field or that it is null, an object or an array; WEIR_ENOMEM. */
weir_err weir_cmd_log_field(const char *line, size_t length, const char *name, weir_buf *out);

#define WEIR_CMD_LOG_DEPTH_MAX 64u /* of a value */

#endif /* WEIR_CMD_LOG_PRIVATE_H */

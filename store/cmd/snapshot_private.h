/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_private.h - what the files behind `weir snapshot` share. */
#ifndef WEIR_CMD_SNAPSHOT_PRIVATE_H
#define WEIR_CMD_SNAPSHOT_PRIVATE_H

#include <weir/store/base/buf.h>
#include <weir/store/cli/cli.h>
#include <weir/store/snapshot/snapshot.h>

/* One line of what was written to out, and what was left out. */
void weir_cmd_snapshot_stats(const weir_snapshot_stats *stats, const char *out, weir_buf *buf);

#endif /* WEIR_CMD_SNAPSHOT_PRIVATE_H */

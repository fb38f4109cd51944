/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - who can change a file. */
#ifndef WEIR_BASE_GUARD_H
#define WEIR_BASE_GUARD_H

#include <sys/stat.h>

#include <weir/store/base/err.h>

/* weir_path_guarded of a file that is open, by its status; the folders are looked up by the name. */
weir_err weir_guard_check(const char *path, const struct stat *status);

#endif /* WEIR_BASE_GUARD_H */

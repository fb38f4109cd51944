/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - a program on several ranks of this machine, as mpirun starts it. */
#ifndef RANKS_H
#define RANKS_H

#include <ctype.h>
#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weir_test.h"

/* Beside the program that is tested. */
static inline const char *ranks_train_program(void) {
    static char path[4096], weir[4096];
    snprintf(weir, sizeof weir, "%s", weir_test_program());
    snprintf(path, sizeof path, "%s/weir-train", dirname(weir));
    return path;
}

/* arguments end with NULL. One rank: without mpirun. More ranks than cores share them, and root may. */
static inline size_t ranks_argv(unsigned ranks, const char *program, const char *const *arguments, const char **argv) {
    static char number[16];
    const char *const launcher[] = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"};
    size_t count = 0;
    if (access("/usr/bin/mpirun", X_OK) != 0) weir_test_skip("there is no mpirun; install openmpi-bin");
    snprintf(number, sizeof number, "%u", ranks);
    for (size_t i = 0; ranks > 1 && i < sizeof launcher / sizeof *launcher; i++)
        argv[count++] = launcher[i];
    if (ranks > 1) argv[count++] = number;
    argv[count++] = program;
    while (*arguments)
        argv[count++] = *arguments++;
    argv[count] = NULL;
    return count;
}

/* One thread of BLAS each; shared memory is a file in the case's folder's place, whatever the machine mounts. */
static const char *const ranks_environment[] = {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
                                                "OMPI_MCA_btl_vader_single_copy_mechanism=none",
                                                "OMPI_MCA_mpi_yield_when_idle=1", NULL};

static inline void ranks_run(unsigned ranks, const char *program, const char *const *arguments,
                             weir_test_output *outputp) {
    const char *argv[64];
    ranks_argv(ranks, program, arguments, argv);
    weir_test_run(argv, ranks_environment, outputp);
}

/* This program's case `one_rank` on so many ranks, which must all end well; and what they said. */
static inline void ranks_again_and_say(unsigned ranks, weir_test_output *outputp) {
    const char *const arguments[] = {"one_rank", NULL};
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = 0;
    ranks_run(ranks, program, arguments, outputp);
    if (outputp->status) fail_msg("status %d\n%s\n%s", outputp->status, outputp->out, outputp->err);
}

static inline void ranks_again(unsigned ranks) {
    weir_test_output output;
    ranks_again_and_say(ranks, &output);
    weir_test_output_free(&output);
}

/* --- processes of ranks ------------------------------------------------------------------------------------------- */

/* Whether it is a weir-train that the launcher has started. */
static inline bool ranks_has_started(pid_t pid, pid_t launcher) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    char line[256];
    bool named = false, child = false;
    while (file && fgets(line, sizeof line, file)) {
        named |= strcmp(line, "Name:\tweir-train\n") == 0;
        child |= strncmp(line, "PPid:\t", 6) == 0 && strtol(line + 6, NULL, 10) == launcher;
    }
    if (file) assert_int_equal(fclose(file), 0);
    return named && child;
}

/* Whether it has opened the snapshot, which it does once MPI is there. */
static inline bool ranks_has_begun(pid_t rank) {
    char path[64], line[4400];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)rank);
    FILE *file = fopen(path, "r");
    bool begun = false;
    while (file && !begun && fgets(line, sizeof line, file))
        begun = strstr(line, "/snapshot/") != NULL;
    if (file) assert_int_equal(fclose(file), 0);
    return begun;
}

/* 0: none has begun. The launcher of Open MPI waits for ever where a rank dies that is still connecting to it. */
static inline pid_t ranks_find(pid_t launcher) {
    DIR *folder = opendir("/proc");
    pid_t found = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (pid && ranks_has_started(pid, launcher) && ranks_has_begun(pid)) found = pid;
    }
    assert_int_equal(closedir(folder), 0);
    return found;
}

#endif /* RANKS_H */

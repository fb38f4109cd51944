/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition_test.c - a graph cut as a user does it: in less memory than its edges take, where the kernel holds the
 * program to the budget, and by the masks that a training will name.
 */
#include "cli_support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* 30,000 vertices in a ring, each beside 40 others: two lists of 1,200,000 ends are 18 MiB, beside 3 by vertex. */
static const char ring[] = "awk 'BEGIN {print \"id\"; for (v = 0; v < 30000; v++) print v}' > n.csv;"
                           "awk 'BEGIN {print \"src,dst\"; for (v = 0; v < 30000; v++) for (k = 1; k <= 40; k++) print "
                           "v \",\" (v + k) % 30000}'"
                           " > e.csv; weir snapshot import ring --nodes n.csv --edges e.csv";

/* Of what a process may allocate ulimit -d is the limit, and what is mapped of files does not count. */
static void a_budget_holds(void **state) {
    (void)state;
    if (SANITIZED) weir_test_skip("a sanitizer keeps memory of its own");
    cli_must(ring, "1200000 edges");
    cli_must("ulimit -d 20480; weir partition ring --parts 2 --memory 20 --out small", "^metis ");
    weir_test_output output; /* without --memory it is too little: METIS says so, in more than a line */
    cli_bash(weir_test_folder(), "ulimit -d 20480; weir partition ring --parts 2 --out large", &output);
    assert_true(output.status != 0);
    weir_test_output_free(&output);
    cli_must("ls -A | grep -c scratch || true", "^0$");
}

/* Before anything large is read: the file that would be wrong is not looked at. */
static void less_than_vertices_take_is_refused_first(void **state) {
    (void)state;
    cli_must(ring, "1200000 edges");
    cli_must("weir partition ring --parts 2 --memory 64 --method random --out p", "^random ");
    cli_must("f=ring/relations/*/out/neighbors.npy; chmod u+w $f; head -c -8 $f > cut; head -c 8 /dev/zero >> cut;"
             "cp cut $f; echo done",
             "done");
    cli_refused("weir partition ring --parts 2 --memory 16 --out q",
                "30000 vertices.* take [0-9]+ MiB of memory wherever their edges lie, and 16 are allowed");
    cli_refused("weir partition ring --parts 2 --out q/", "q/ ends in '/'");
    cli_refused("weir partition ring --parts 2 --memory 64 --out q", "neighbors.npy");
}

static void masks_say_what_is_balanced(void **state) {
    (void)state;
    cli_must("awk 'BEGIN {print \"id,label,s\"; for (v = 0; v < 400; v++) print v \",\" v % 2 \",\""
             " (v % 10 < 4 ? \"train\" : v % 10 < 7 ? \"val\" : \"test\")}' > n.csv;"
             "awk 'BEGIN {print \"src,dst\"; for (v = 0; v < 400; v++) print v \",\" (v * 7 + 1) % 400}' > e.csv;"
             "weir snapshot import snap --nodes n.csv --edges e.csv --splits s",
             "400 vertices");
    const char *const by = "weir partition snap --parts 4 --balance training,validation,test --json --out ";
    char line[512];
    snprintf(line, sizeof line, "%s a --masks s | grep -o '\"of\":\"[a-z]*\",\"total\":[0-9]*' | tr '\\n' ' '", by);
    cli_must(line, "training\",\"total\":160 .*validation\",\"total\":120 .*test\",\"total\":120");
    snprintf(line, sizeof line, "%s b --masks s_val,s_train,s_test | grep -o '\"of\":\"[a-z]*\",\"total\":[0-9]*'", by);
    cli_must(line, "training\",\"total\":120");
    snprintf(line, sizeof line, "%s c --masks other", by);
    cli_refused(line, "no mask 'other_train'");
    snprintf(line, sizeof line, "%s c --masks s_train,s_val", by);
    cli_refused(line, "--masks is the name of a split, or three names");
}

WEIR_TESTS(WEIR_CASE(a_budget_holds), WEIR_CASE(less_than_vertices_take_is_refused_first),
           WEIR_CASE(masks_say_what_is_balanced))

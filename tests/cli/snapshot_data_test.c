/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_data_test.c - published data sets in, and out again: what comes out is what went in, as sort and cut see it,
 * and a second way through changes no byte.
 */
#include "cli_support.h"

/* $D is the folder of the data sets. */
static void must(const char *line, const char *pattern) {
    char with_data[8192];
    snprintf(with_data, sizeof with_data, "D=%s/tests/data; %s", getenv("WEIR_SOURCE_DIR"), line);
    cli_must(with_data, pattern);
}

static void cora_comes_out_as_it_went_in(void **state) {
    (void)state;
    must("weir snapshot import a --nodes $D/cora/nodes.csv --edges $D/cora/edges.csv --bits nonzero",
         "^a: 2708 vertices, 5429 edges, 2708 labels");
    must("weir snapshot check a && weir snapshot show a", "^vertices  paper: 2708, 0 features, 1 arrays beside them$");
    must("weir snapshot export a b && head -n 1 b/nodes.csv",
         "^id,type,timestamp,label.paper_label,bits.nonzero.1433$");
    must("diff <(cut -d, -f1,2 $D/cora/edges.csv | tail -n +2 | sort) <(cut -d, -f1,2 b/edges.csv | tail -n +2 | sort)"
         " && echo the same edges",
         "^the same edges$");
    must("diff <(cut -d, -f1,2,4 $D/cora/nodes.csv | tail -n +2 | sort) <(cut -d, -f1,4,5 b/nodes.csv | tail -n +2 | "
         "sort)"
         " && echo the same nodes",
         "^the same nodes$");
    must("cut -d, -f4 b/nodes.csv | sort | uniq -c | head -n 7 | awk '{printf \"%s \", $1}'",
         "^298 418 818 426 217 180 351 $");
}

static void undirected_edges_stand_both_ways(void **state) {
    (void)state;
    must("weir snapshot import a -u --nodes $D/cora/nodes.csv --edges $D/cora/edges.csv --bits nonzero"
         " && weir snapshot check a && weir snapshot export a b",
         "^a: 2708 vertices, 10858 edges, 2708 labels");
    must("both() { awk -F, 'NR > 1 {print $1\",\"$2; if ($1 != $2) print $2\",\"$1}' $1 | sort; };"
         "diff <(both $D/cora/edges.csv) <(cut -d, -f1,2 b/edges.csv | tail -n +2 | sort) && echo the same edges",
         "^the same edges$");
    must("printf 'id,type\\n1,a\\n2,b\\n' > n.csv; printf 'src,dst\\n1,2\\n' > e.csv;"
         "weir snapshot import c -u --nodes n.csv --edges e.csv 2>&1 || echo refused",
         "e.csv:2.*has a direction");
}

static void csv_is_a_fixpoint(void **state) {
    (void)state;
    must("weir snapshot import a --nodes $D/bitcoin_otc/nodes.csv --edges $D/bitcoin_otc/edges.csv",
         "^a: [0-9]+ vertices, 8000 edges");
    must("weir snapshot check a && weir snapshot export a b && head -n 1 b/edges.csv", ",timestamp,rating$");
    must("awk -F, 'NR > 1 {printf \"%s %s %.5f %d\\n\", $1, $2, $4, $5}' $D/bitcoin_otc/edges.csv | sort > in;"
         "awk -F, 'NR > 1 {printf \"%s %s %.5f %d\\n\", $1, $2, $6, $7}' b/edges.csv | sort > out;"
         "diff in out && wc -l < out",
         "^8000$");
    must("weir snapshot import c --nodes b/nodes.csv --edges b/edges.csv && weir snapshot export c d && diff -r b d"
         " && echo the same bytes",
         "^the same bytes$");
    must(
        "for f in $(cd a && find . -name '*.npy'); do cmp a/$f c/$f || case $f in *events*|*times*) ;; *) exit 1; esac;"
        " done; echo the same arrays",
        "^the same arrays$");
}

static void npz_is_a_fixpoint(void **state) {
    (void)state;
    must("weir snapshot import a --nodes $D/cora/nodes.csv --edges $D/cora/edges.csv --bits nonzero"
         " && weir snapshot export a a.npz --format npz",
         "^a as npz in a.npz$");
    must("weir snapshot import b --npz a.npz && weir snapshot check b && weir snapshot export b b.npz --format npz",
         "^b as npz in b.npz$");
    must("weir snapshot import c --npz b.npz && weir snapshot export c c.npz --format npz && cmp b.npz c.npz"
         " && echo the same bytes",
         "^the same bytes$");
    must(
        "weir snapshot export a csv-a && weir snapshot export b csv-b;"
        "diff <(cut -d, -f1,4 csv-a/nodes.csv | tail -n +2 | sort) <(cut -d, -f1,4 csv-b/nodes.csv | tail -n +2 | sort)"
        " && diff <(cut -d, -f1,2 csv-a/edges.csv | sort) <(cut -d, -f1,2 csv-b/edges.csv | sort) && echo the same "
        "graph",
        "^the same graph$");
}

static void types_texts_times_and_quotes(void **state) {
    (void)state;
    must("printf '%s\\n' 'id,type,timestamp,city,time.born,mask.train,matrix.x.2' 'a,user,1.5,\"Köln, \"\"am "
         "Rhein\"\"\",-1.25,1,0.5 -2'"
         " 'b,user,2,,,0,' 'a,item,,,,,' > n.csv; printf '%s\\n' 'src,src_type,dst,dst_type,type,timestamp,label,w' "
         "'a,user,a,item,buys,3,good,0.1' 'b,user,a,item,buys,3,bad,7' 'a,user,b,user,knows,,,' > e.csv;"
         " weir snapshot import a --nodes n.csv --edges e.csv",
         "^a: 3 vertices, 3 edges, 2 labels");
    must("weir snapshot check a && weir snapshot export a b && sort b/nodes.csv",
         "^a,user,1.500000,\"Köln, \"\"am Rhein\"\"\",-1.250000,1,0.5 -2$");
    must("cat b/nodes.csv", "^id,type,timestamp,text.city,time.born,mask.train,matrix.x.2$");
    must("cat b/edges.csv", "^a,a,buys,user,item,3,4,good,0.1$");
    must("weir snapshot import c --nodes b/nodes.csv --edges b/edges.csv && weir snapshot export c d && diff -r b d && "
         "echo same",
         "^same$");
}

/* A line for each time at which something changed; the label stands where it became known. What a line repeats, or does
 * not say, is no change. */
static void a_vertex_has_a_line_for_each_change(void **state) {
    (void)state;
    must("printf '%s\\n' id,timestamp,label,mask.m,x,y a,1,,1,5, a,3,yes,1,6, a,4,,1,6,2 a,5,,1,,2 b,2,no,0,1, > n.csv;"
         "printf '%s\\n' src,dst,timestamp a,b,9 c,c,1 > e.csv; echo c,7,,0,8, >> n.csv;"
         " weir snapshot import s --nodes n.csv --edges e.csv && weir snapshot check s && weir snapshot export s out",
         "^s: 3 vertices, 2 edges, 2 labels");
    must("sort out/nodes.csv",
         "^a,node,1,,5,,1\na,node,3,yes,6,,1\na,node,4,,6,2,1\nb,node,2,no,1,,0\nc,node,1,,,,0\nc,node,7,,8,,0\n");
    must("weir snapshot import t --nodes out/nodes.csv --edges out/edges.csv && weir snapshot export t again &&"
         " diff -r out again && echo same",
         "^same$");
    cli_refused("printf 'id,timestamp\\na,2\\na,1\\n' > n.csv; weir snapshot import u --nodes n.csv --edges e.csv",
                "n.csv:3: the id 'a' is there twice, and no timestamp says that this line is later");
}

/* What could not be opened is not made. */
static void a_type_has_no_more_arrays_than_are_read(void **state) {
    (void)state;
    must("masks() { printf id; printf ',mask.m%s' $(seq $1); printf '\\n1'; printf ',%.0s1' $(seq $1); echo; };"
         "masks 256 > most.csv; masks 257 > more.csv; printf 'src,dst\n1,1\n' > e.csv;"
         "weir snapshot import a --nodes most.csv --edges e.csv && weir snapshot check a",
         "^a: 1 vertices, 1 edges");
    cli_refused("weir snapshot import b --nodes more.csv --edges e.csv", "at most 256 arrays");
    must("test ! -e b && test ! -e b.partial && test ! -e b.store && test ! -e b.csv && echo clean", "^clean$");
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    must("printf 'src,dst\\n1,2\\n' > e.csv; printf 'id\\n1\\n' > n.csv; printf 'id\\n1\\n1\\n2\\n' > twice.csv;"
         "printf 'src,dst\\n1,2,3\\n' > wide.csv; printf 'src,dst\\n\"1,2\\n' > open.csv; printf 'a,b\\n' > names.csv;"
         "printf 'src,dst,timestamp\\n1,2,noon\\n' > noon.csv; weir snapshot import a --edges e.csv",
         "^a: 2 vertices, 1 edges");
    cli_refused("weir snapshot import b --nodes n.csv --edges e.csv", "e.csv:2: no node has the id '2'");
    cli_refused("weir snapshot import b --nodes twice.csv --edges e.csv", "twice.csv:3: the id '1' is there twice");
    cli_refused("weir snapshot import b --edges wide.csv", "wide.csv:2: there are more fields than names");
    cli_refused("weir snapshot import b --edges open.csv", "open.csv:2: a quote is not closed");
    cli_refused("weir snapshot import b --edges names.csv", "names.csv lacks the columns 'src' and 'dst'");
    cli_refused("weir snapshot import b --edges noon.csv", "noon.csv:2: column 'timestamp': 'noon' is not a time");
    must("printf 'id,label\\n1,%0256d\\n2,b\\n' 0 > long.csv; wc -c < long.csv", "^272$");
    cli_refused("weir snapshot import b --nodes long.csv --edges e.csv", "has more than 255 bytes");
    cli_refused("weir snapshot import b --npz e.csv", "e.csv is not an archive that can be read");
    cli_refused("weir snapshot import b", "name either --edges or --npz");
    must("mkdir c.store c.csv && touch c.store/mine c.csv/mine && echo made", "^made$");
    cli_refused("weir snapshot import c --edges e.csv", "c.store is there already");
    cli_refused("weir snapshot import c --npz e.csv", "c.csv is there already");
    must("ls c.store c.csv | grep -c mine && test ! -e c", "^2$");
    must("test ! -e b.store && test ! -e b.csv && test ! -e b && test ! -e a.npz.partial && echo clean", "^clean$");
}

WEIR_TESTS(WEIR_CASE(cora_comes_out_as_it_went_in), WEIR_CASE(undirected_edges_stand_both_ways),
           WEIR_CASE(csv_is_a_fixpoint), WEIR_CASE(npz_is_a_fixpoint), WEIR_CASE(types_texts_times_and_quotes),
           WEIR_CASE(a_vertex_has_a_line_for_each_change), WEIR_CASE(a_type_has_no_more_arrays_than_are_read),
           WEIR_CASE(what_is_wrong_is_named))

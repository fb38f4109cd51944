/* SPDX-License-Identifier: Apache-2.0 */
/* positions_test.c - the file of positions: kept, replaced whole, refused when damaged; and marks that thin out. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "positions.h"
#include "weir_test.h"

static weir_positions *open_fresh(void) {
    weir_positions *positions;
    assert_ok(weir_positions_open(weir_test_folder(), &positions));
    return positions;
}

static void rows_are_kept(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    static weir_position model[40][40];
    static bool there[40][40];
    weir_positions *positions = open_fresh();
    assert_true(weir_positions_are_new(positions));
    for (int i = 0; i < 3000; i++) {
        weir_position p = {(uint32_t)weir_rng_below(&rng, 40),
                           (uint32_t)weir_rng_below(&rng, 40),
                           weir_rng_u64(&rng),
                           weir_rng_u64(&rng),
                           weir_rng_u64(&rng),
                           {{weir_rng_u64(&rng), weir_rng_u64(&rng)}}};
        assert_ok(weir_positions_put(positions, &p));
        model[p.source][p.partition] = p;
        there[p.source][p.partition] = true;
        if (i % 500 != 0) continue;
        weir_positions_letters_set(positions, (weir_positions_letters){(uint64_t)i, 7});
        assert_ok(weir_positions_save(positions));
        weir_positions_close(positions);
        positions = open_fresh();
        assert_false(weir_positions_are_new(positions));
        assert_int_equal(weir_positions_letters_get(positions).from, i);
        assert_int_equal(weir_positions_letters_get(positions).born, 7);
    }
    for (uint32_t source = 0; source < 40; source++) {
        uint32_t partitions = 0;
        for (uint32_t partition = 0; partition < 40; partition++) {
            weir_position found;
            assert_int_equal(weir_positions_get(positions, source, partition, &found), there[source][partition]);
            if (!there[source][partition]) continue;
            assert_memory_equal(&found, &model[source][partition], sizeof found);
            assert_true(weir_positions_find_check(positions, source, found.check, &found));
            assert_int_equal(found.partition, partition);
            partitions = partition + 1;
        }
        assert_int_equal(weir_positions_partitions(positions, source), partitions);
    }
    weir_positions_close(positions);
}

/* An earlier save is there until the new one is whole. */
static void a_failed_save_keeps_the_old_file_and_is_tried_again(void **state) {
    (void)state;
    weir_position p = {1, 2, 3, 4, 5, {{0}}}, found;
    weir_positions *positions = open_fresh();
    assert_ok(weir_positions_put(positions, &p));
    assert_ok(weir_positions_save(positions));
    p.offset = 44;
    assert_ok(weir_positions_put(positions, &p));
    for (uint64_t nth = 1;; nth++) {
        char spec[64];
        snprintf(spec, sizeof spec, "any:%llu:EIO:once", (unsigned long long)nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_positions_save(positions);
        bool fired = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        if (!fired) {
            assert_ok(err);
            break;
        }
        weir_positions *other = open_fresh();
        assert_true(weir_positions_get(other, 1, 2, &found));
        assert_true(found.offset == 4 || found.offset == 44);
        weir_positions_close(other);
        if (!err) break; /* a close that fails behind the rename loses nothing */
    }
    assert_ok(weir_positions_save(positions));
    weir_positions_close(positions);
    positions = open_fresh();
    assert_true(weir_positions_get(positions, 1, 2, &found));
    assert_int_equal(found.offset, 44);
    weir_positions_close(positions);
}

static void every_flipped_bit_and_every_length_is_refused(void **state) {
    (void)state;
    weir_position p = {1, 2, 3, 4, 5, {{0}}};
    weir_positions *positions = open_fresh();
    char *bytes;
    size_t length;
    assert_ok(weir_positions_put(positions, &p));
    p.partition = 9;
    assert_ok(weir_positions_put(positions, &p));
    assert_ok(weir_positions_save(positions));
    weir_positions_close(positions);
    const char *path = weir_test_path("positions");
    assert_ok(weir_file_load(path, 4096, &bytes, &length));
    for (size_t bit = 0; bit < length * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        assert_ok(weir_file_replace(path, bytes, length));
        assert_err(weir_positions_open(weir_test_folder(), &positions), WEIR_ECORRUPT, "positions is damaged");
        assert_null(positions);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t cut = 0; cut < length; cut++) {
        assert_ok(weir_file_replace(path, bytes, cut));
        assert_err(weir_positions_open(weir_test_folder(), &positions), WEIR_ECORRUPT, "positions is damaged");
    }
    weir_free(bytes);
}

static void marks_give_the_greatest_that_is_sealed(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    static weir_marks marks;
    uint64_t offset = 0, sealed = 0, last = 0;
    weir_mark got;
    for (int i = 0; i < 20000; i++) {
        offset += 1 + weir_rng_below(&rng, 9);
        weir_marks_add(&marks, offset, offset * 3);
        assert_true(marks.count <= WEIR_MARKS_MAX);
        if (weir_rng_below(&rng, 200)) continue;
        sealed += weir_rng_below(&rng, offset - sealed + 1);
        if (!weir_marks_take(&marks, sealed, &got)) continue;
        assert_true(got.offset <= sealed && got.offset > last);
        assert_int_equal(got.check, got.offset * 3);
        for (uint32_t m = 0; m < marks.count; m++)
            assert_true(marks.marks[m].offset > sealed);
        last = got.offset;
    }
    assert_true(weir_marks_take(&marks, offset, &got));
    assert_int_equal(marks.count, 0);
    assert_false(weir_marks_take(&marks, offset, &got));
}

static weir_err open_and_save(void *context) {
    const weir_position p = {1, 2, 3, 4, 5, {{0}}};
    weir_positions *positions;
    weir_err err = weir_positions_open(context, &positions);
    if (err) return err;
    err = weir_positions_put(positions, &p);
    if (!err) err = weir_positions_save(positions);
    weir_positions_close(positions);
    return err;
}

static void fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    char folder[256];
    snprintf(folder, sizeof folder, "%s", weir_test_folder());
    weir_test_every_allocation(open_and_save, folder);
}

/* What is not verified is replaced and leaves no trace; the first that was stays the last for ever. */
static void only_verified_marks_are_kept_behind_the_newest(void **state) {
    (void)state;
    weir_position p = {0};
    weir_position_mark(&p, (weir_mark){10, 1}, 0, 0);
    weir_position_mark(&p, (weir_mark){20, 2}, 5, 1); /* 10 was not */
    assert_int_equal(p.check, 2);
    assert_int_equal(p.older[0].check, 0);
    for (uint64_t i = 3; i < 400; i++)
        weir_position_mark(&p, (weir_mark){10 * i, i}, 10 * i - 1, i);
    assert_int_equal(p.check, 399);
    assert_int_equal(p.older[0].check, 398);
    assert_int_equal(p.older[WEIR_POSITIONS_OLDER - 1].check, 2);
    for (size_t i = 1; i < WEIR_POSITIONS_OLDER; i++)
        assert_true(p.older[i].offset < p.older[i - 1].offset && p.older[i].offset == 10 * p.older[i].check);
    weir_position_mark(&p, (weir_mark){5000, 7}, 3990 - 1, 400);
    assert_int_equal(p.check, 7);
    assert_int_equal(p.older[0].check, 398);
}

/* Rows of 32 bytes, as written before there were older marks. */
static void the_file_of_an_earlier_version_is_read(void **state) {
    (void)state;
    uint8_t bytes[64] = "WEIRPOS1";
    char path[512];
    weir_position found;
    snprintf(path, sizeof path, "%s/positions", weir_test_folder());
    weir_put_u64(bytes + 8, 3);
    weir_put_u64(bytes + 16, 4);
    weir_put_u32(bytes + 24, 1);
    weir_put_u32(bytes + 32, 5);
    weir_put_u32(bytes + 36, 6);
    weir_put_u64(bytes + 40, 7);
    weir_put_u64(bytes + 48, 8);
    weir_put_u64(bytes + 56, 9);
    uint32_t crc = weir_crc32c(0, bytes, 28);
    weir_put_u32(bytes + 28, weir_crc32c(crc, bytes + 32, 32));
    assert_ok(weir_file_replace(path, bytes, sizeof bytes));
    for (int i = 0; i < 2; i++) {
        weir_positions *positions;
        assert_ok(weir_positions_open(weir_test_folder(), &positions));
        assert_int_equal(weir_positions_are_old(positions), i == 0);
        assert_true(weir_positions_get(positions, 5, 6, &found));
        assert_true(found.begin == 7 && found.offset == 8 && found.check == 9 && found.older[0].check == 0);
        found.older[0] = (weir_mark){0};
        assert_ok(weir_positions_put(positions, &found));
        assert_ok(weir_positions_save(positions)); /* as the version of today writes it */
        weir_positions_close(positions);
    }
}

WEIR_TESTS(WEIR_CASE(only_verified_marks_are_kept_behind_the_newest), WEIR_CASE(the_file_of_an_earlier_version_is_read),
           WEIR_CASE(rows_are_kept), WEIR_CASE(a_failed_save_keeps_the_old_file_and_is_tried_again),
           WEIR_CASE(every_flipped_bit_and_every_length_is_refused), WEIR_CASE(marks_give_the_greatest_that_is_sealed),
           WEIR_CASE(fails_cleanly_at_every_allocation))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_test.c - EVENTLOG-L3: a torn tail is cut, damage is refused, nothing acknowledged is lost, a refusal changes
 * nothing.
 *
 * Two logs are prepared. The "closed" one was closed, so all of it is acknowledged. The "crashed" one is a copy taken
 * while the log was open: its first records are acknowledged, the last ones are only in the file (an armed fault keeps
 * their sync from succeeding).
 */
#include "eventlog_private.h"

#include <weir/store/base/bytes.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/hash.h>

#include "eventlog_fixture.h"

enum { SYNCED = 12, WRITTEN = 20 };

static void prepare_closed(const char *folder, uint64_t segment_bytes, size_t records) {
    weir_eventlog *log = fixture_open(folder, 1, segment_bytes);
    for (size_t n = 0; n < records; n += 4) {
        fixture_append(log, 0, n, 4);
        assert_ok(weir_eventlog_sync(log));
    }
    assert_ok(weir_eventlog_close(log));
}

static void prepare_crashed(const char *folder) {
    const char *live = weir_test_path("live");
    weir_eventlog *log = fixture_open(live, 1, 0);
    for (uint64_t n = 0; n < SYNCED; n += 4) {
        fixture_append(log, 0, n, 4);
        assert_ok(weir_eventlog_sync(log));
    }
    fixture_append(log, 0, SYNCED, WRITTEN - SYNCED);
    assert_ok(weir_fault_arm("sync:1:EIO"));
    assert_err(weir_eventlog_sync(log), WEIR_EIO, NULL);
    assert_ok(weir_fault_arm(NULL));
    fixture_copy(live, folder);
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
    assert_ok(weir_folder_remove(live));
}

/* Where each record of a segment begins; the last entry is the end. */
static size_t positions_of(const fixture_bytes *file, uint64_t positions[], size_t capacity) {
    size_t count = 0;
    uint64_t at = ELOG_SEGMENT_HEADER;
    while (at < file->length) {
        assert_true(count < capacity);
        positions[count++] = at;
        at += weir_elog_record_length(file->bytes + at);
    }
    positions[count] = at;
    return count;
}

/* Opens a log with this content in its only segment. It recovers with at least `least` records, or refuses and
 * leaves the file alone. Returns the records, or UINT64_MAX. */
static uint64_t open_with(const char *folder, const uint8_t *bytes, size_t length, uint64_t least) {
    const char *path = fixture_segment(folder, 0, 0);
    weir_eventlog *log = NULL;
    fixture_store(path, bytes, length);
    weir_err err = fixture_try_open(folder, &log);
    if (err) {
        assert_err(err, WEIR_ECORRUPT, path);
        fixture_bytes after = fixture_load(path);
        assert_int_equal(after.length, length);
        assert_memory_equal(after.bytes, bytes, length);
        weir_free(after.bytes);
        return UINT64_MAX;
    }
    uint64_t records = fixture_check(log, 0, 0, 0);
    assert_true(records >= least);
    assert_int_equal(fixture_stats(log, 0).offset_durable, records);
    assert_int_equal(fixture_stats(log, 0).offset_end, records);
    fixture_append(log, 0, records, 3); /* and it goes on */
    assert_ok(weir_eventlog_close(log));
    log = fixture_open(folder, 1, 0);
    assert_int_equal(fixture_check(log, 0, 0, 0), records + 3);
    assert_ok(weir_eventlog_close(log));
    return records;
}

static void l3_cut_at_every_length_of_what_was_acknowledged(void **state) {
    (void)state;
    fixture_in_memory();
    const char *closed = weir_test_path("closed"), *folder = weir_test_path("log");
    prepare_closed(closed, 0, 8);
    fixture_bytes file = fixture_load(fixture_segment(closed, 0, 0));
    for (size_t length = 0; length <= file.length; length++) {
        fixture_copy(closed, folder);
        uint64_t records = open_with(folder, file.bytes, length, 8);
        assert_int_equal(records, length == file.length ? 8 : UINT64_MAX);
    }
    weir_free(file.bytes);
}

static void l3_cut_at_every_length(void **state) {
    (void)state;
    fixture_in_memory();
    const char *crashed = weir_test_path("crashed"), *folder = weir_test_path("log");
    uint64_t positions[WRITTEN + 1];
    prepare_crashed(crashed);
    fixture_bytes file = fixture_load(fixture_segment(crashed, 0, 0));
    assert_int_equal(positions_of(&file, positions, WRITTEN), WRITTEN);
    for (size_t length = 0; length <= file.length; length++) {
        fixture_copy(crashed, folder);
        uint64_t records = open_with(folder, file.bytes, length, SYNCED);
        if (length < positions[SYNCED]) {
            assert_int_equal(records, UINT64_MAX);
        } else {
            assert_true(positions[records] <= length);
            assert_true(records == WRITTEN || positions[records + 1] > length);
        }
    }
    weir_free(file.bytes);
}

static void l3_flip_every_byte(void **state) {
    (void)state;
    fixture_in_memory();
    const char *crashed = weir_test_path("crashed"), *folder = weir_test_path("log");
    uint64_t positions[WRITTEN + 1];
    prepare_crashed(crashed);
    fixture_bytes file = fixture_load(fixture_segment(crashed, 0, 0));
    assert_int_equal(positions_of(&file, positions, WRITTEN), WRITTEN);
    for (size_t at = 0; at < file.length; at++) {
        fixture_copy(crashed, folder);
        file.bytes[at] ^= 0x41;
        if (at == 7) { /* the version's digit becomes a letter: not a version, damage */
            assert_int_equal(open_with(folder, file.bytes, file.length, SYNCED), UINT64_MAX);
        } else {
            uint64_t records = open_with(folder, file.bytes, file.length, SYNCED);
            assert_true(records == UINT64_MAX ? at < positions[SYNCED] : at >= positions[records]);
        }
        file.bytes[at] ^= 0x41;
    }
    weir_free(file.bytes);
}

static void l3_flip_every_byte_of_what_was_acknowledged(void **state) {
    (void)state;
    fixture_in_memory();
    const char *closed = weir_test_path("closed"), *folder = weir_test_path("log");
    prepare_closed(closed, 0, 8);
    fixture_bytes file = fixture_load(fixture_segment(closed, 0, 0));
    for (size_t at = 0; at < file.length; at++) {
        fixture_copy(closed, folder);
        file.bytes[at] ^= 0x41;
        assert_int_equal(open_with(folder, file.bytes, file.length, 8), UINT64_MAX);
        file.bytes[at] ^= 0x41;
    }
    weir_free(file.bytes);
}

/* The marks only ever know less than the truth: whatever happens to them, the records stay, or open refuses. */
static void l3_marks_cut_and_flipped_at_every_byte(void **state) {
    (void)state;
    fixture_in_memory();
    const char *crashed = weir_test_path("crashed"), *folder = weir_test_path("log");
    char path[4096];
    prepare_crashed(crashed);
    fixture_bytes segment = fixture_load(fixture_segment(crashed, 0, 0));
    snprintf(path, sizeof path, "%s/t/durable", crashed);
    fixture_bytes marks = fixture_load(path);
    assert_int_equal(marks.length, 4 * ELOG_MARK_BYTES); /* 0, then one a sync */
    snprintf(path, sizeof path, "%s/t/durable", folder);
    for (size_t at = 0; at < marks.length; at++) {
        for (unsigned flip = 0; flip < 2; flip++) {
            weir_eventlog *log = NULL;
            fixture_copy(crashed, folder);
            marks.bytes[at] ^= flip ? 0x41 : 0;
            fixture_store(path, marks.bytes, flip ? marks.length : at);
            marks.bytes[at] ^= flip ? 0x41 : 0;
            weir_err err = fixture_try_open(folder, &log);
            if (err) {
                assert_err(err, WEIR_ECORRUPT, "no whole mark of partition 0");
                assert_true(!flip && at < ELOG_MARK_BYTES);
                continue;
            }
            assert_int_equal(fixture_check(log, 0, 0, 0), WRITTEN);
            assert_ok(weir_eventlog_close(log));
        }
    }
    weir_free(marks.bytes);
    weir_free(segment.bytes);
}

/* The counter-example to "a bad record with good ones behind it is damage": the first unsynced record did not reach the
 * disk, the ones behind it did. Nobody was told that any of them is durable. */
static void l3_a_hole_in_what_was_not_synced_is_a_torn_tail(void **state) {
    (void)state;
    fixture_in_memory();
    const char *folder = weir_test_path("log");
    uint64_t positions[WRITTEN + 1];
    prepare_crashed(folder);
    fixture_bytes file = fixture_load(fixture_segment(folder, 0, 0));
    positions_of(&file, positions, WRITTEN);
    memset(file.bytes + positions[SYNCED], 0, positions[SYNCED + 1] - positions[SYNCED]);
    assert_int_equal(open_with(folder, file.bytes, file.length, SYNCED), SYNCED);
    weir_free(file.bytes);
}

/* A power cut has taken all marks but the first, so only the records behind the damage can tell. */
static void l3_a_later_record_tells_of_acknowledged_damage(void **state) {
    (void)state;
    fixture_in_memory();
    const char *crashed = weir_test_path("crashed"), *folder = weir_test_path("log");
    uint64_t positions[WRITTEN + 1];
    char path[4096];
    prepare_crashed(crashed);
    fixture_bytes file = fixture_load(fixture_segment(crashed, 0, 0));
    positions_of(&file, positions, WRITTEN);
    snprintf(path, sizeof path, "%s/t/durable", crashed);
    assert_int_equal(truncate(path, ELOG_MARK_BYTES), 0);
    for (size_t n = 0; n < WRITTEN; n++) {
        uint64_t at = positions[n] + 4; /* its length: how far to the next record is unknown */
        fixture_copy(crashed, folder);
        file.bytes[at] ^= 0x41;
        uint64_t records = open_with(folder, file.bytes, file.length, 0);
        assert_int_equal(records, n < SYNCED ? UINT64_MAX : n);
        file.bytes[at] ^= 0x41;
    }
    weir_free(file.bytes);
}

static void l3_the_witness_names_both_places(void **state) {
    (void)state;
    fixture_in_memory();
    const char *folder = weir_test_path("log");
    uint64_t positions[WRITTEN + 1];
    char path[4096], expected[64];
    weir_eventlog *log = NULL;
    prepare_crashed(folder);
    fixture_bytes file = fixture_load(fixture_segment(folder, 0, 0));
    positions_of(&file, positions, WRITTEN);
    file.bytes[positions[5] + 40] ^= 1;
    fixture_store(fixture_segment(folder, 0, 0), file.bytes, file.length);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "all below 12 were acknowledged: the checksum");
    snprintf(path, sizeof path, "%s/t/durable", folder);
    assert_int_equal(truncate(path, ELOG_MARK_BYTES), 0);
    snprintf(expected, sizeof expected, "the record at byte %" PRIu64 " shows that all below 8", positions[8]);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, expected);
    weir_free(file.bytes);
}

/* Whoever may choose values must not be able to make a torn tail look like damage. */
static void l3_a_value_that_looks_like_a_record_is_no_witness(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_path("live"), 1, 0);
    uint8_t value[128];
    fixture_append(log, 0, 0, 1);
    assert_ok(weir_eventlog_sync(log));
    uint64_t offset;
    const weir_record forged = {.value = "x", .value_length = 1};
    weir_elog_origin guess = weir_elog_origin_of(NULL, 0, 0);
    weir_elog_record_encode(value, &guess, &forged, 3, 3);
    const weir_record record = {.value = value, .value_length = weir_elog_record_bytes(&forged)};
    assert_ok(weir_eventlog_append(log, 0, &record, 1, &offset));
    assert_ok(weir_fault_arm("sync:1:EIO"));
    assert_err(weir_eventlog_sync(log), WEIR_EIO, NULL);
    assert_ok(weir_fault_arm(NULL));
    weir_eventlog_close(log);
    fixture_bytes file = fixture_load(fixture_segment(weir_test_path("live"), 0, 0));
    file.bytes[ELOG_SEGMENT_HEADER + weir_elog_record_length(file.bytes + ELOG_SEGMENT_HEADER)] ^= 1;
    fixture_store(fixture_segment(weir_test_path("live"), 0, 0), file.bytes, file.length);
    log = fixture_open(weir_test_path("live"), 1, 0);
    assert_int_equal(fixture_stats(log, 0).offset_end, 1);
    assert_true(fixture_stats(log, 0).tail_cut_bytes > 0);
    assert_ok(weir_eventlog_close(log));
    weir_free(file.bytes);
}

static void l3_a_witness_is_found_at_every_distance(void **state) {
    (void)state;
    fixture_in_memory();
    const char *path = weir_test_path("file");
    weir_elog_origin origin = weir_elog_origin_of(NULL, 77, 0);
    uint8_t bytes[1024];
    const weir_record record = {.value = "v", .value_length = 1};
    for (size_t distance = 0; distance < 600; distance += 7) {
        weir_file *file = NULL;
        uint64_t claim, position;
        memset(bytes, 0x5A, sizeof bytes);
        weir_elog_record_encode(bytes + distance, &origin, &record, 10 + distance / ELOG_RECORD_HEADER, 10);
        fixture_store(path, bytes, sizeof bytes);
        assert_ok(weir_file_open(path, WEIR_FILE_READ, &file));
        assert_ok(weir_elog_segment_witness(file, &origin, 0, 9, &claim, &position));
        assert_int_equal(claim, distance / ELOG_RECORD_HEADER + 10 > 9 + distance / ELOG_RECORD_HEADER ? 0 : 10);
        assert_ok(weir_elog_segment_witness(file, &origin, 0, 10, &claim, &position));
        assert_int_equal(claim, 0); /* 10 is what the cut leaves: nothing is lost */
        weir_elog_record_encode(bytes + distance, &origin, &record, 10 + distance / ELOG_RECORD_HEADER,
                                distance >= ELOG_RECORD_HEADER ? 11 : 10);
        fixture_store(path, bytes, sizeof bytes);
        assert_ok(weir_elog_segment_witness(file, &origin, 0, 10, &claim, &position));
        assert_int_equal(claim, distance >= ELOG_RECORD_HEADER ? 11 : 0);
        assert_int_equal(position, claim ? distance : 0);
        assert_ok(weir_file_close(file));
    }
}

static void l3_an_earlier_segment_is_never_cut(void **state) {
    (void)state;
    fixture_in_memory();
    const char *folder = weir_test_path("log");
    prepare_closed(folder, WEIR_EVENTLOG_SEGMENT_MIN, 120);
    fixture_bytes file = fixture_load(fixture_segment(folder, 0, 0));
    size_t damaged_at = file.length - 5;
    file.bytes[damaged_at] ^= 1;
    fixture_store(fixture_segment(folder, 0, 0), file.bytes, file.length);
    weir_eventlog *log = fixture_open(folder, 1, WEIR_EVENTLOG_SEGMENT_MIN);
    weir_eventlog_reader *reader = NULL;
    weir_record records[64];
    size_t count;
    uint64_t read = 0;
    weir_err err = WEIR_OK;
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    while (!(err = weir_eventlog_reader_next(reader, records, 64, &count)) && count)
        read += count;
    assert_err(err, WEIR_ECORRUPT, fixture_segment(folder, 0, 0));
    assert_true(read > 20); /* all that lie before the damage */
    weir_eventlog_reader_close(reader);
    uint64_t second = log->partitions[0].row.segments[1].first;
    assert_int_equal(read, second - 1);
    assert_int_equal(fixture_check(log, 0, second, 0), 120);
    assert_ok(weir_eventlog_close(log));
    fixture_bytes after = fixture_load(fixture_segment(folder, 0, 0));
    assert_int_equal(after.length, file.length);
    assert_memory_equal(after.bytes, file.bytes, file.length);
    weir_free(after.bytes);
    weir_free(file.bytes);
}

static void l3_headers_of_named_segments_are_checked(void **state) {
    (void)state;
    fixture_in_memory();
    const char *closed = weir_test_path("closed"), *folder = weir_test_path("log");
    weir_eventlog *log = NULL;
    prepare_closed(closed, WEIR_EVENTLOG_SEGMENT_MIN, 120);
    fixture_bytes file = fixture_load(fixture_segment(closed, 0, 0));
    for (size_t at = 0; at < ELOG_SEGMENT_HEADER; at++) {
        fixture_copy(closed, folder);
        file.bytes[at] ^= 0x41;
        fixture_store(fixture_segment(folder, 0, 0), file.bytes, file.length);
        assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, fixture_segment(folder, 0, 0));
        file.bytes[at] ^= 0x41;
    }
    weir_free(file.bytes);
}

/* The process died between creating a segment and syncing its header: every state that leaves is repaired. */
static void l3_a_newborn_segment_is_given_its_header(void **state) {
    (void)state;
    fixture_in_memory();
    const char *closed = weir_test_path("closed"), *folder = weir_test_path("log");
    prepare_closed(closed, 0, 8);
    uint8_t header[ELOG_SEGMENT_HEADER];
    weir_eventlog *log = fixture_open_read_only(closed);
    weir_elog_segment_header_encode(header, &log->partitions[0].origin, 8);
    assert_ok(weir_eventlog_close(log));
    for (size_t length = 0; length <= sizeof header; length++) {
        for (unsigned zero = 0; zero < 2; zero++) {
            uint8_t bytes[ELOG_SEGMENT_HEADER] = {0};
            fixture_copy(closed, folder);
            if (!zero) memcpy(bytes, header, length);
            fixture_store(fixture_segment(folder, 0, 8), bytes, length);
            log = fixture_open_read_only(folder);
            assert_int_equal(fixture_check(log, 0, 0, 0), 8);
            assert_int_equal(fixture_stats(log, 0).time_last_us, 7);
            assert_ok(weir_eventlog_close(log));
            log = fixture_open(folder, 1, 0);
            assert_int_equal(fixture_check(log, 0, 0, 0), 8);
            assert_int_equal(fixture_stats(log, 0).time_last_us, 7);
            fixture_append(log, 0, 8, 4);
            assert_ok(weir_eventlog_close(log));
            log = fixture_open(folder, 1, 0);
            assert_int_equal(fixture_check(log, 0, 0, 0), 12);
            assert_int_equal(fixture_stats(log, 0).segments, 2);
            assert_ok(weir_eventlog_close(log));
        }
    }
}

static void l3_a_newborn_segment_that_does_not_fit_is_refused(void **state) {
    (void)state;
    fixture_in_memory();
    const char *folder = weir_test_path("log");
    weir_eventlog *log = NULL;
    prepare_closed(folder, 0, 8);
    fixture_store(fixture_segment(folder, 0, 9), "", 0);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "should be record 8, and the next segment begins at 9");
    assert_int_equal(unlink(fixture_segment(folder, 0, 9)), 0);
    fixture_store(fixture_segment(folder, 0, 7), "", 0); /* below the mark: it had records */
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "header");
}

static void l3_missing_segments_are_refused(void **state) {
    (void)state;
    fixture_in_memory();
    char folder[4096], path[4096];
    snprintf(folder, sizeof folder, "%s/log", weir_test_folder());
    weir_eventlog *log = NULL;
    const weir_eventlog_opts read_only = {.read_only = true};
    prepare_closed(folder, WEIR_EVENTLOG_SEGMENT_MIN, 120);
    log = fixture_open_read_only(folder);
    uint64_t last = log->partitions[0].row.segments[log->partitions[0].row.count - 1].first;
    uint64_t second = log->partitions[0].row.segments[1].first;
    assert_ok(weir_eventlog_close(log));

    snprintf(path, sizeof path, "%s/no-last", weir_test_folder());
    fixture_copy(folder, path);
    assert_int_equal(unlink(fixture_segment(path, 0, last)), 0);
    assert_err(fixture_try_open(path, &log), WEIR_ECORRUPT, "all below 120 were acknowledged");
    assert_err(weir_eventlog_open(path, "t", &read_only, &log), WEIR_ECORRUPT, "below 120");

    snprintf(path, sizeof path, "%s/none", weir_test_folder());
    fixture_copy(folder, path);
    assert_ok(weir_folder_remove(weir_test_path("none/t/00000")));
    assert_err(fixture_try_open(path, &log), WEIR_ECORRUPT, "no segments");
    assert_err(weir_eventlog_open(path, "t", &read_only, &log), WEIR_ECORRUPT, "no segments");

    snprintf(path, sizeof path, "%s/gap", weir_test_folder());
    fixture_copy(folder, path); /* not seen by open, but by whoever comes there */
    assert_int_equal(unlink(fixture_segment(path, 0, second)), 0);
    log = fixture_open(path, 1, 0);
    weir_eventlog_reader *reader = NULL;
    weir_record record;
    size_t count;
    assert_ok(weir_eventlog_reader_open(log, 0, second - 1, &reader));
    assert_ok(weir_eventlog_reader_next(reader, &record, 1, &count));
    assert_err(weir_eventlog_reader_next(reader, &record, 1, &count), WEIR_ECORRUPT, "missing");
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
}

static void l3_files_of_another_topic_are_refused(void **state) {
    (void)state;
    fixture_in_memory();
    const char *folder = weir_test_path("log");
    weir_eventlog *log = NULL;
    prepare_closed(folder, 0, 8);
    prepare_closed(weir_test_path("other"), 0, 8);
    fixture_bytes mine = fixture_load(fixture_segment(folder, 0, 0));
    fixture_bytes other = fixture_load(fixture_segment(weir_test_path("other"), 0, 0));
    fixture_store(fixture_segment(folder, 0, 0), other.bytes, other.length);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "belongs to another topic");
    /* Even records under a header of ours: their checksums are salted. */
    memcpy(other.bytes, mine.bytes, ELOG_SEGMENT_HEADER);
    fixture_store(fixture_segment(folder, 0, 0), other.bytes, other.length);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "the checksum of the record is wrong");
    fixture_store(fixture_segment(folder, 0, 0), mine.bytes, mine.length);
    fixture_store(weir_test_path("log/t/00000/1.seg"), "", 0);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "'1.seg' is not an offset");
    assert_int_equal(unlink(weir_test_path("log/t/00000/1.seg")), 0);
    fixture_store(weir_test_path("log/t/00000/99999999999999999999.seg"), "", 0);
    assert_err(fixture_try_open(folder, &log), WEIR_ECORRUPT, "is not an offset");
    weir_free(mine.bytes);
    weir_free(other.bytes);
}

static void l3_the_topic_file_flipped_at_every_byte(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = NULL;
    prepare_closed(weir_test_folder(), 0, 4);
    fixture_bytes file = fixture_load(weir_test_path("t/topic"));
    for (size_t at = 0; at < file.length; at++) {
        file.bytes[at] ^= 0x41;
        fixture_store(weir_test_path("t/topic"), file.bytes, file.length);
        assert_err(fixture_try_open(weir_test_folder(), &log), WEIR_ECORRUPT, "t/topic: damaged");
        file.bytes[at] ^= 0x41;
    }
    for (size_t length = 0; length < file.length; length++) {
        fixture_store(weir_test_path("t/topic"), file.bytes, length);
        assert_err(fixture_try_open(weir_test_folder(), &log), WEIR_ECORRUPT, "t/topic: damaged");
    }
    assert_int_equal(unlink(weir_test_path("t/topic")), 0);
    assert_err(fixture_try_open(weir_test_folder(), &log), WEIR_ECORRUPT, "has partition 00000 but no file 'topic'");
    weir_free(file.bytes);
}

WEIR_TESTS(WEIR_CASE(l3_cut_at_every_length_of_what_was_acknowledged), WEIR_CASE(l3_cut_at_every_length),
           WEIR_CASE(l3_flip_every_byte), WEIR_CASE(l3_flip_every_byte_of_what_was_acknowledged),
           WEIR_CASE(l3_marks_cut_and_flipped_at_every_byte),
           WEIR_CASE(l3_a_hole_in_what_was_not_synced_is_a_torn_tail),
           WEIR_CASE(l3_a_later_record_tells_of_acknowledged_damage), WEIR_CASE(l3_the_witness_names_both_places),
           WEIR_CASE(l3_a_value_that_looks_like_a_record_is_no_witness),
           WEIR_CASE(l3_a_witness_is_found_at_every_distance), WEIR_CASE(l3_an_earlier_segment_is_never_cut),
           WEIR_CASE(l3_headers_of_named_segments_are_checked), WEIR_CASE(l3_a_newborn_segment_is_given_its_header),
           WEIR_CASE(l3_a_newborn_segment_that_does_not_fit_is_refused), WEIR_CASE(l3_missing_segments_are_refused),
           WEIR_CASE(l3_files_of_another_topic_are_refused), WEIR_CASE(l3_the_topic_file_flipped_at_every_byte))

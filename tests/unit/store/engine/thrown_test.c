/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thrown_test.c - a std::bad_alloc leaves RocksDB in the middle of a call, of a read or of a write.
 *
 * Each allocation of a call is one process that finds no memory for it. They run beside each other, because all
 * of them wait for memory first, as the engine does.
 */
#include "weir_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/file.h>
#include <weir/store/engine/engine.h>

#include "reads.h"
#include "rocks.h"
#include "throwing_new.h"

#define RECORDS     1000u
#define MORE        50u
#define ABORTED_MAX 8u /* of a sweep: each leaves its folder behind */
#define AT_ONCE     24u

/* How a process ended; the first three are its status. */
typedef enum outcome { WHOLE, NOT_MET, TORN, ABORTED, OUTCOMES } outcome;

/* --- a store ---------------------------------------------------------------------------------------------------- */

static size_t key_of(uint64_t i, char key[32]) {
    return (size_t)snprintf(key, 32, "Kvertex%010llu", (unsigned long long)i);
}

static weir_err open_in(const char *folder, weir_engine **enginep) {
    const weir_engine_opts opts = {.create = true};
    return weir_engine_open(folder, &opts, enginep);
}

static weir_err fill(weir_engine *engine, uint64_t records, const char *value, weir_engine_writer **writerp) {
    char key[32];
    weir_err err = weir_engine_writer_open(engine, writerp);
    for (uint64_t i = 0; !err && i < records; i++) {
        err = weir_engine_writer_add(*writerp, key, key_of(i, key), value, strlen(value));
        if (!err) continue;
        weir_engine_writer_cancel(*writerp);
        *writerp = NULL;
    }
    return err;
}

static weir_err write_file(weir_engine *engine, uint64_t records, const char *value) {
    weir_engine_writer *writer;
    weir_err err = fill(engine, records, value, &writer);
    return err ? err : weir_engine_writer_ingest(writer);
}

static weir_err check(bool right, const char *what) {
    return right ? WEIR_OK : WEIR_ERR(WEIR_EINTERNAL, "%s", what);
}

static weir_err has(weir_engine *engine, uint64_t i, const char *value) {
    char key[32];
    weir_buf found_value = {0};
    bool found;
    weir_err err = engine_value(engine, key, key_of(i, key), &found_value, &found);
    if (!err) {
        bool right =
            found && found_value.length == strlen(value) && memcmp(found_value.bytes, value, found_value.length) == 0;
        err = check(right, "a record has another value than was written");
    }
    weir_buf_free(&found_value);
    return err;
}

/* --- what is thrown out of --------------------------------------------------------------------------------------- */

typedef struct point {
    char folder[512], copy[512];
    weir_engine *engine;
    weir_engine_writer *writer; /* filled, and not taken in yet */
    weir_err err;               /* of the call */
} point;

static weir_err get(point *p) {
    return has(p->engine, 17, "new");
}

static weir_err seek(point *p) {
    weir_engine_cursor *cursor;
    char key[32];
    size_t length = key_of(40, key);
    weir_err err = weir_engine_cursor_open(p->engine, WEIR_ENGINE_POINT, &cursor);
    if (err) return err;
    weir_engine_cursor_seek(cursor, key, length);
    if (weir_engine_cursor_valid(cursor)) weir_engine_cursor_seek_last(cursor, key, length);
    if (weir_engine_cursor_valid(cursor)) weir_engine_cursor_previous(cursor);
    err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err;
}

static weir_err go_file_by_file(point *p) {
    weir_engine_cursor *cursor;
    char key[32];
    uint64_t rank;
    bool found = false;
    size_t length = key_of(40, key), found_length;
    weir_err err = weir_engine_cursor_open_files(p->engine, key, 0, &cursor);
    if (err) return err;
    while (weir_engine_cursor_next_file(cursor, &rank)) {
        weir_engine_cursor_seek(cursor, key, length);
        if (!weir_engine_cursor_valid(cursor)) continue;
        const void *at = weir_engine_cursor_key(cursor, &found_length);
        found = found || (found_length == length && memcmp(at, key, length) == 0);
    }
    err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err ? err : check(found, "a record is in no file");
}

static weir_err scan(point *p) {
    uint64_t keys;
    weir_err err = count_keys(p->engine, &keys);
    return err ? err : check(keys == RECORDS, "some records are not there");
}

static weir_err stats(point *p) {
    weir_engine_stats stats;
    weir_engine_stats_get(p->engine, &stats);
    return WEIR_OK;
}

static weir_err checkpoint(point *p) {
    uint64_t shared;
    return weir_engine_checkpoint(p->engine, p->copy, true, &shared);
}

static weir_err take_in(point *p) {
    weir_engine_writer *writer = p->writer;
    p->writer = NULL;
    return weir_engine_writer_ingest(writer);
}

/* --- what has to be true afterwards ------------------------------------------------------------------------------- */

static weir_err reads(point *p) {
    weir_err err = seek(p);
    if (!err) err = scan(p);
    if (!err) err = stats(p);
    return err;
}

static weir_err goes_on(point *p) {
    weir_err err = reads(p);
    if (!err) err = has(p->engine, 17, "new");
    if (!err) err = write_file(p->engine, MORE, "newest");
    if (!err) err = weir_engine_compact(p->engine);
    if (!err) err = reads(p);
    if (!err) err = has(p->engine, MORE - 1, "newest");
    if (!err) err = has(p->engine, MORE, "old");
    if (!err && p->err) err = check(weir_err_is(p->err, WEIR_ENOMEM), "what was thrown out of does not say so");
    return err ? err : weir_engine_health(p->engine);
}

static outcome after_a_read(point *p) {
    assert_ok(goes_on(p));
    weir_engine_close(p->engine);
    return WHOLE;
}

/* Nothing was thrown: who lists files has waited. */
static outcome after_a_checkpoint(point *p) {
    weir_engine *copy;
    assert_ok(p->err);
    assert_ok(goes_on(p));
    assert_ok(open_in(p->copy, &copy));
    assert_ok(has(copy, 17, "new"));
    weir_engine_close(copy);
    weir_engine_close(p->engine);
    return WHOLE;
}

/* The next is taken, or refused with a sentence, and is not waited for. A file is seen whole, or not at all (N1). */
static outcome after_a_write(point *p) {
    static const char said[] = "RocksDB ran out of memory in the middle of a call; restart the process";
    assert_ok(reads(p));
    weir_err err = has(p->engine, 17, "newer");
    assert_ok(err ? has(p->engine, 17, "new") : WEIR_OK);
    assert_ok(has(p->engine, MORE - 1, err ? "new" : "newer"));
    weir_err refused = write_file(p->engine, MORE, "newest");
    if (!refused) {
        assert_ok(has(p->engine, 17, "newest"));
        assert_ok(weir_engine_health(p->engine));
    } else {
        assert_err(refused, WEIR_ENOMEM, said);
        assert_err(weir_engine_compact(p->engine), WEIR_ENOMEM, said);
        assert_err(weir_engine_mend(p->engine), WEIR_ENOMEM, "takes no more writes; restart the process");
        assert_ok(reads(p));
    }
    weir_engine_close(p->engine);
    return refused ? TORN : WHOLE;
}

/* --- every allocation --------------------------------------------------------------------------------------------- */

typedef struct act {
    weir_err (*run)(point *p);
    outcome (*after)(point *p);
    bool fills;     /* a file, before */
    unsigned every; /* of its allocations, from a random one on */
} act;

typedef struct try {
    const act *act;
    point *point;
    uint64_t nth;
    bool met;
}
try;

/* On a thread of its own, that reads again and ends: what is kept of a thread is looked at then. */
static void *run_act(void *context) {
    try *t = context;
    throwing_new_arm(t->nth);
    t->point->err = t->act->run(t->point);
    t->met = throwing_new_disarm();
    weir_err err = reads(t->point);
    return err ? t : NULL;
}

static outcome run_try(const act *a, uint64_t nth) {
    point p = {.err = WEIR_OK};
    try t = {.act = a, .point = &p, .nth = nth};
    pthread_t thread;
    void *failed;
    snprintf(p.folder, sizeof p.folder, "%s/engine-%llu", weir_test_folder(), (unsigned long long)nth);
    snprintf(p.copy, sizeof p.copy, "%s/copy-%llu", weir_test_folder(), (unsigned long long)nth);
    assert_ok(open_in(p.folder, &p.engine));
    assert_ok(write_file(p.engine, RECORDS, "old"));
    assert_ok(write_file(p.engine, MORE, "new"));
    if (a->fills) assert_ok(fill(p.engine, MORE, "newer", &p.writer));
    assert_int_equal(pthread_create(&thread, NULL, run_act, &t), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    if (t.met) return a->after(&p);
    assert_ok(p.err);
    weir_engine_close(p.engine);
    return NOT_MET;
}

static pid_t begin_try(const act *a, uint64_t nth) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm((unsigned)(weir_test_limit_ms() / 2000)); /* what hangs ends by a signal */
        outcome found = run_try(a, nth);
        fflush(NULL);
        _exit((int)found);
    }
    return child;
}

static outcome end_try(pid_t child, uint64_t nth) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) return ABORTED;
    if (!WIFEXITED(status) || WEXITSTATUS(status) >= ABORTED)
        fail_msg("allocation %llu: the process ended by %s %d", (unsigned long long)nth,
                 WIFEXITED(status) ? "status" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return (outcome)WEXITSTATUS(status);
}

/* A sanitizer, which takes ten times as long, sees fewer of them, others in each run. */
static void sweep(const act *a, unsigned counts[OUTCOMES]) {
    uint64_t step = weir_test_rounds(1) > 1 ? 1 : a->every * weir_test_part(5, 5);
    uint64_t nth = 1 + weir_test_seed() % step;
    memset(counts, 0, OUTCOMES * sizeof counts[0]);
    while (!counts[NOT_MET]) {
        pid_t children[AT_ONCE];
        for (uint64_t i = 0; i < AT_ONCE; i++)
            children[i] = begin_try(a, nth + i * step);
        for (uint64_t i = 0; i < AT_ONCE; i++)
            counts[end_try(children[i], nth + i * step)]++;
        if (counts[ABORTED] > ABORTED_MAX) fail_msg("more than %u tries were aborted", ABORTED_MAX);
        nth += AT_ONCE * step;
    }
    printf("%u whole, %u torn, %u aborted\n", counts[WHOLE], counts[TORN], counts[ABORTED]);
}

static void a_read_that_throws_leaves_the_store_writing(void **state) {
    (void)state;
    static const act acts[] = {{get, after_a_read, false, 1},
                               {seek, after_a_read, false, 1},
                               {go_file_by_file, after_a_read, false, 1},
                               {scan, after_a_read, false, 1},
                               {stats, after_a_read, false, 1}};
    unsigned counts[OUTCOMES];
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        sweep(&acts[i], counts);
        assert_true(counts[WHOLE] > 3 && counts[TORN] == 0 && counts[ABORTED] == 0);
    }
}

static void what_lists_files_waits_for_memory(void **state) {
    (void)state;
    static const act list = {checkpoint, after_a_checkpoint, false, 1};
    unsigned counts[OUTCOMES];
    sweep(&list, counts);
    assert_true(counts[WHOLE] > 3 && counts[TORN] == 0 && counts[ABORTED] == 0);
}

/* To make a file whole tears nothing, to take it in does. Two of some 930 allocations are made for a destructor of
 * RocksDB, or behind one that asserts: there the process ends, and the log has what it would have sealed. */
static void what_takes_a_file_in_throws_and_the_next_is_refused(void **state) {
    (void)state;
    static const act take = {take_in, after_a_write, true, 23};
    unsigned counts[OUTCOMES];
    sweep(&take, counts);
    assert_true(counts[WHOLE] > 0 && counts[TORN] > 3 && counts[ABORTED] <= 2);
}

/* --- a database that is never closed ------------------------------------------------------------------------------ */

typedef struct sorted_file {
    const char *folder;
    char path[600];
} sorted_file;

static weir_err find_file(void *context, const char *name) {
    sorted_file *file = context;
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".sst") == 0)
        snprintf(file->path, sizeof file->path, "%s/%s", file->folder, name);
    return WEIR_OK;
}

static sorted_file file_of(const char *folder) {
    sorted_file file = {.folder = folder};
    assert_ok(weir_folder_list(folder, find_file, &file));
    assert_true(file.path[0] != 0);
    return file;
}

static void flip(const char *path, long at) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    fputc(byte ^ 0x04, file);
    fclose(file);
}

/* Closed, its folder would stay locked, and what can be read and written would be lost. */
static void what_a_read_has_thrown_out_of_is_not_opened_again(void **state) {
    (void)state;
    point p = {.err = WEIR_OK};
    weir_engine *other;
    uint64_t keys;
    const char *folder = weir_test_path("engine");
    assert_ok(open_in(folder, &p.engine));
    assert_ok(write_file(p.engine, RECORDS, "old"));
    sorted_file file = file_of(folder);
    flip(file.path, 100);
    assert_err(count_keys(p.engine, &keys), WEIR_ECORRUPT, NULL);
    flip(file.path, 100);
    throwing_new_arm(1);
    assert_err(seek(&p), WEIR_ENOMEM, NULL);
    assert_true(throwing_new_disarm());
    assert_err(weir_engine_mend(p.engine), WEIR_ENOMEM, "cannot be opened again after it ran out of memory");
    assert_err(weir_engine_replace(p.engine, weir_test_path("beside")), WEIR_ENOMEM, "cannot be opened again");
    assert_ok(write_file(p.engine, MORE, "new"));
    assert_ok(reads(&p));
    assert_ok(has(p.engine, 17, "new"));
    weir_engine_close(p.engine);
    assert_err(open_in(folder, &other), WEIR_EBUSY, NULL);
}

/* --- a file that asks for too much -------------------------------------------------------------------------------- */

#define FOOTER_BYTES 53 /* one byte, two handles of two numbers each, zeros up to 41; a version and a mark */

static size_t read_number(const uint8_t *at, uint64_t *numberp) {
    size_t length = 0;
    *numberp = 0;
    do
        *numberp |= (uint64_t)(at[length] & 0x7f) << (7 * length);
    while (at[length++] & 0x80);
    return length;
}

static size_t write_number(uint8_t *at, uint64_t number) {
    size_t length = 0;
    for (; number >= 0x80; number >>= 7)
        at[length++] = (uint8_t)(number | 0x80);
    at[length++] = (uint8_t)number;
    return length;
}

/* The size of the first (0) or the second (1) block that the footer names. */
static void set_size(const char *path, unsigned which, uint64_t size) {
    uint8_t footer[FOOTER_BYTES], made[FOOTER_BYTES] = {0};
    uint64_t numbers[4];
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -FOOTER_BYTES, SEEK_END), 0);
    assert_int_equal(fread(footer, 1, sizeof footer, file), sizeof footer);
    size_t from = 1, to = 1;
    for (size_t i = 0; i < 4; i++)
        from += read_number(footer + from, &numbers[i]);
    numbers[1 + 2 * which] = size;
    for (size_t i = 0; i < 4; i++)
        to += write_number(made + to, numbers[i]);
    assert_true(to <= 41);
    made[0] = footer[0];
    memcpy(made + 41, footer + 41, FOOTER_BYTES - 41);
    assert_int_equal(fseek(file, -FOOTER_BYTES, SEEK_END), 0);
    assert_int_equal(fwrite(made, 1, sizeof made, file), sizeof made);
    fclose(file);
}

/* The store beside it goes on writing: nothing of it was thrown out of. */
static void a_file_that_asks_for_absurd_sizes_is_an_error(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1u << 30, 1ull << 40, 1ull << 62, UINT64_MAX - 5, UINT64_MAX};
    const char *folder = weir_test_path("engine"), *other = weir_test_path("other");
    point p = {.err = WEIR_OK};
    weir_rocks *rocks;
    weir_engine *engine;
    weir_rocks_status status;
    const weir_rocks_opts opts = {.create = true};
    const weir_engine_opts reading = {.read_only = true};
    assert_ok(open_in(folder, &engine));
    assert_ok(write_file(engine, RECORDS, "old"));
    weir_engine_close(engine);
    sorted_file file = file_of(folder);
    assert_ok(open_in(other, &p.engine));
    assert_ok(write_file(p.engine, RECORDS, "old"));
    assert_true(weir_rocks_open(weir_test_path("rocks"), &opts, &rocks, &status));
    assert_true(weir_rocks_check_file(rocks, file.path, &status));
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        set_size(file.path, i % 2, sizes[i / 2]);
        assert_false(weir_rocks_check_file(rocks, file.path, &status));
        assert_int_equal(status.kind, WEIR_ROCKS_CORRUPT);
        assert_err(weir_engine_open(folder, &reading, &engine), WEIR_ECORRUPT, file.path);
        assert_err(open_in(folder, &engine), WEIR_ECORRUPT, file.path);
        assert_false(weir_rocks_torn());
    }
    assert_ok(write_file(p.engine, MORE, "new"));
    assert_ok(goes_on(&p));
    assert_false(weir_rocks_held(rocks));
    weir_rocks_close(rocks);
    weir_engine_close(p.engine);
    assert_ok(open_in(other, &p.engine)); /* it was closed */
    weir_engine_close(p.engine);
}

WEIR_TESTS(WEIR_CASE(what_a_read_has_thrown_out_of_is_not_opened_again),
           WEIR_CASE(a_file_that_asks_for_absurd_sizes_is_an_error),
           WEIR_CASE(a_read_that_throws_leaves_the_store_writing), WEIR_CASE(what_lists_files_waits_for_memory),
           WEIR_CASE(what_takes_a_file_in_throws_and_the_next_is_refused))

/* SPDX-License-Identifier: Apache-2.0 */
/* store_test.c - `weir store` over a store that a pipeline has written; and that verify finds what does not belong. */
#include "cli_support.h"

#include <unistd.h>

#include <weir/store/graph/repair.h>

#include "../unit/ingest/pipeline/fixture.h"

static const char people[] = "version: 1\n"
                             "name: people\n"
                             "vertices:\n"
                             "  person: {key: integer, features: {age: {kind: number}}}\n"
                             "relations:\n"
                             "  knows: {from: person, to: person, features: {since: {kind: number}}}\n"
                             "labels:\n"
                             "  mood: {vertex: person, values: [good, bad]}\n"
                             "sources:\n"
                             "  people:\n"
                             "    id: id\n"
                             "    time: {field: t, format: s}\n"
                             "    mutations:\n"
                             "      - put_vertex: person\n"
                             "        key: a\n"
                             "        when: {has: age}\n"
                             "        features: [age]\n"
                             "      - put_edge: knows\n"
                             "        from: a\n"
                             "        to: b\n"
                             "        when: {has: b}\n"
                             "        features: {since: {field: since, optional: true}}\n"
                             "      - put_label: mood\n"
                             "        key: a\n"
                             "        when: {has: mood}\n"
                             "        value: mood\n";

static void make_store(fixture *f) {
    *f = (fixture){.schema = fixture_schema(people)};
    fixture_open(f);
    fixture_text(f, 0, 0, "{\"id\":\"1\",\"t\":1000,\"a\":1,\"age\":30}");
    fixture_text(f, 0, 0, "{\"id\":\"2\",\"t\":2000,\"a\":1,\"b\":2,\"since\":7}");
    fixture_text(f, 0, 1, "{\"id\":\"3\",\"t\":3000,\"a\":1,\"b\":3}");
    fixture_text(f, 0, 1, "{\"id\":\"4\",\"t\":4000,\"a\":1,\"mood\":\"bad\"}");
    fixture_text(f, 0, 1, "{\"id\":\"5\",\"t\":5000,\"a\":1,\"mood\":\"odd\"}");
    fixture_drain(f);
    fixture_stop(f);
}

static void check(const char *line, int status, const char *out_pattern) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == status, line, &output, "must end with the status expected");
    CLI_ASSERT(cli_matches(output.out, out_pattern), line, &output, out_pattern);
    CLI_ASSERT(status == 0 || cli_one_line(output.err), line, &output, "must say why in one sentence");
    weir_test_output_free(&output);
}

static void drop(fixture *f) {
    for (size_t i = 0; i < f->log_count; i++)
        assert_ok(weir_eventlog_close(f->logs[i]));
    weir_schema_free(f->schema);
}

static void answers_of_what_is_sealed(void **state) {
    (void)state;
    fixture f;
    make_store(&f);
    check("weir store stats -p store", 0, "^source people partition 1: sealed below offset 3$");
    check("weir store get person 001 -p store", 0,
          "^.\"type\":\"person\",\"key\":\"1\",.*\"age\":30.*\"mood\":\"bad\"");
    check("weir store get person 1 -p store -b 1970-01-01T00:30:00Z", 0, "\"age\":30\\},\"labels\":\\{\\}\\}$");
    check("weir store get person 9 -p store", 65, "^$");
    check("weir store get persom 1 -p store", 65, "^$");
    check("weir store neighbors person 1 knows -p store | head -n 1", 0,
          "\"key\":\"3\".*T00:50:00.*\"features\":\\{\\}");
    check("weir store neighbors person 1 knows -p store | tail -n 1", 0, "\"key\":\"2\".*\"since\":7");
    check("weir store neighbors person 2 knows -p store -d in -n 5", 0, "\"key\":\"1\"");
    check("weir store neighbors person 1 hates -p store", 65, "^$");
    check("weir store stats -p nowhere", 65, "^$");
    drop(&f);
}

static void a_damaged_schema_is_said_to_be_damaged(void **state) {
    (void)state;
    fixture f;
    make_store(&f);
    check("sed -i 's/vertices:/\tvertices:/' store/schema.yaml; weir store stats -p store", 65, "^$");
    cli_refused("weir store stats -p store", "cannot be read: store/schema.yaml:3:1: .*; .*restore a checkpoint");
    cli_refused("weir load --data . none.jsonl", "cannot be read: ./store/schema.yaml:3:1: ");
    drop(&f);
}

static void checkpoint_and_restore(void **state) {
    (void)state;
    fixture f;
    make_store(&f);
    check("weir store checkpoint copy -p store", 0, "^checkpoint of store in copy$");
    check("weir store checkpoint copy -p store", 65, "^$");
    check("weir store checkpoint links -p store --hard-links", 0, "hard links: what damages one damages both$");
    check("cat links/SHARED; ls copy", 0, "hard links to files of the store store");
    check("weir store restore copy -p again", 0, "^restored again from copy$");
    check("weir store verify --against-log -l log -p again", 0, "5 events replayed, .* 0 differences$");
    check("printf x >> copy/schema.yaml; weir store restore copy -p third", 65, "^$");
    drop(&f);
}

/* A batch that no event of the log says, in the place of one that the log has. */
static void feed_something_else(fixture *f) {
    weir_buf batches[2] = {{0}, {0}};
    const weir_batch_span span = {0, 0, 2, 3};
    weir_mutation edge = {.kind = WEIR_PUT_EDGE,
                          .offset = 2,
                          .vertex = weir_vertex_id(&weir_id_key_public, "person", "1", 1),
                          .event = 99};
    fixture_text(f, 0, 0, "{\"id\":\"6\",\"t\":6000,\"a\":1,\"b\":2}");
    assert_ok(weir_eventlog_sync(f->logs[0]));
    fixture_open_graph(f);
    for (uint32_t s = 0; s < 2; s++) {
        bool home = weir_shard_of(edge.vertex, 2) == s;
        weir_batch_begin(&batches[s]);
        if (home) weir_batch_add(&batches[s], &edge, 2);
        weir_batch_end(&batches[s], &span, home);
    }
    assert_ok(weir_graph_submit(f->graph, batches));
    assert_ok(weir_graph_close(f->graph));
    for (uint32_t s = 0; s < 2; s++)
        weir_buf_free(&batches[s]);
}

static void verify_against_log_finds_what_is_missing_and_what_is_more(void **state) {
    (void)state;
    fixture f;
    make_store(&f);
    check("weir store verify -p store", 0, "records are well formed$");
    check("weir store verify --against-log -l log -p store", 0, " 0 differences$");
    feed_something_else(&f);
    check("weir store verify --against-log -l log -p store", 65, "the log does not say so");
    check("weir store verify --against-log -l log -p store", 65, "it is missing");
    check("weir store verify --against-log -l log -p store", 65, " 4 differences$");
    check("mv log old; weir store verify --against-log -l log -p store", 65, "^$");
    drop(&f);
}

/* --- one id, other content --------------------------------------------------------------------------------------- */

/* The batches of what the graph is told of one record, and that all of the log up to it is in. */
typedef struct told {
    weir_buf batches[2];
    uint32_t counts[2];
    uint64_t offset;
} told;

static void tell(told *t, weir_mutation m) {
    uint32_t home = weir_shard_of(m.vertex, 2);
    m.offset = t->offset;
    weir_batch_add(&t->batches[home], &m, t->offset);
    t->counts[home]++;
}

/* since: what the store says in the place of what the message does; NULL: what the message does. */
static void tell_event(told *t, const fixture *f, const weir_mapped *event, const weir_value *since) {
    static const weir_value_kind number = WEIR_VALUE_NUMBER;
    uint8_t row[64];
    for (size_t i = 0; i < event->count; i++) {
        weir_mutation m = event->mutations[i];
        if (since && m.kind == WEIR_PUT_EDGE) {
            m.row_length = (uint32_t)weir_row_write(&number, since, 1, row);
            m.row = row;
        }
        tell(t, m);
    }
    tell(t, (weir_mutation){.kind = WEIR_NOTE_EVENT,
                            .vertex = weir_graph_source_vertex(f->graph, 0, 0),
                            .time_us = (int64_t)t->offset,
                            .event = event->event,
                            .content = event->content});
}

/* A store that was filled from the log below the offset, of which this message's event is all that it knows. */
static void fill_by_hand(fixture *f, uint64_t offset, const char *message, const weir_value *since) {
    told t = {.offset = offset};
    weir_mapper *mapper;
    weir_mapped event;
    uint32_t source;
    fixture_open_graph(f);
    assert_ok(weir_graph_source(f->graph, "people", weir_eventlog_creation_id(f->logs[0]), &source));
    assert_ok(weir_mapper_open(f->schema, 0, &weir_id_key_public, &mapper));
    assert_ok(weir_mapper_map(mapper, 0, offset, message, strlen(message), &event));
    for (uint32_t s = 0; s < 2; s++)
        weir_batch_begin(&t.batches[s]);
    tell_event(&t, f, &event, since);
    const weir_batch_span span = {source, 0, 0, offset + 1};
    for (uint32_t s = 0; s < 2; s++)
        weir_batch_end(&t.batches[s], &span, t.counts[s]);
    assert_ok(weir_graph_submit(f->graph, t.batches));
    assert_ok(weir_graph_close(f->graph));
    f->graph = NULL;
    for (uint32_t s = 0; s < 2; s++)
        weir_buf_free(&t.batches[s]);
    weir_mapper_close(mapper);
}

static const char first_said[] = "{\"id\":\"e1\",\"t\":1000,\"a\":1,\"b\":2,\"since\":10}";
static const char said_later[] = "{\"id\":\"e1\",\"t\":1000,\"a\":1,\"b\":2,\"since\":99}";

static void two_messages_of_one_id(fixture *f) {
    *f = (fixture){.schema = fixture_schema(people), .graph_opts = {.shards = 2}};
    fixture_open_logs(f);
    fixture_text(f, 0, 0, first_said);
    fixture_text(f, 0, 0, said_later);
    assert_ok(weir_eventlog_sync(f->logs[0]));
}

/* Such a store used to have no difference, for the log does say 99 somewhere; and the one built anew said 10. */
static void verify_against_log_finds_the_later_of_two_contents(void **state) {
    (void)state;
    fixture f;
    two_messages_of_one_id(&f);
    fill_by_hand(&f, 1, said_later, NULL);
    check("weir store neighbors person 1 knows -p store", 0, "\"since\":99");
    check("weir store verify --against-log -l log -p store", 65, "the log does not say so .kind E,");
    check("weir store verify --against-log -l log -p store", 65, "it is missing .kind E,");
    check("weir store verify --against-log -l log -p store", 65, "the log does not say so .kind I,");
    check("weir store verify --against-log -l log -p store", 65, "^2 events replayed, .* 6 differences$");
    drop(&f);
}

/* Of one event with one content, another row. */
static void verify_against_log_finds_another_row(void **state) {
    const weir_value ten = {.present = true, .number = 10}, other = {.present = true, .number = 11};
    (void)state;
    fixture f;
    two_messages_of_one_id(&f);
    fill_by_hand(&f, 0, first_said, &ten);
    check("weir store verify --against-log -l log -p store", 0, "^2 events replayed, .* 0 differences$");
    assert_ok(weir_folder_remove(weir_test_path("store")));
    fill_by_hand(&f, 0, first_said, &other);
    check("weir store verify --against-log -l log -p store", 65, "the log says otherwise .kind E,");
    check("weir store verify --against-log -l log -p store", 65, " 2 differences$");
    drop(&f);
}

static bool at_any_pace(void *context, uint64_t bytes) {
    (void)context, (void)bytes;
    return true;
}

/* One a second. */
static void put_people(fixture *f, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; i++) {
        char text[120];
        snprintf(text, sizeof text, "{\"id\":\"%llu\",\"t\":%llu,\"a\":%llu,\"b\":%llu,\"age\":%llu}",
                 (unsigned long long)i, (unsigned long long)(1000 + i), (unsigned long long)(i % 7),
                 (unsigned long long)i, (unsigned long long)(i % 90));
        fixture_text(f, 0, (uint32_t)(i % 2), text);
    }
    fixture_drain(f);
    assert_ok(weir_graph_seal(f->graph));
}

/* What a trim has taken out, and the bare puts that it has left, are no difference. */
static void a_trimmed_store_is_what_the_log_says(void **state) {
    (void)state;
    static const char kept[] = "version: 1\n"
                               "name: kept\n"
                               "vertices:\n"
                               "  person: {key: integer, expire: 90s, history: 10s, features: {age: {kind: number}}}\n"
                               "relations:\n"
                               "  knows: {from: person, to: person, expire: 60s, history: 10s}\n"
                               "sources:\n"
                               "  people:\n"
                               "    id: id\n"
                               "    time: {field: t, format: s}\n"
                               "    mutations:\n"
                               "      - {put_vertex: person, key: a, features: [age]}\n"
                               "      - {put_edge: knows, from: a, to: b}\n";
    fixture f = {.schema = fixture_schema(kept)};
    fixture_open(&f);
    put_people(&f, 0, 1000);
    for (uint32_t i = 0; i < weir_graph_shards(f.graph); i++)
        while (weir_graph_trim_due(f.graph, i)) /* the pipeline does it */
            usleep(10000);
    put_people(&f, 1000, 1010);
    weir_err err;
    while (
        weir_err_is(err = weir_graph_trim(f.graph, 0, at_any_pace, NULL), WEIR_EBUSY)) /* the pipeline does it, too */
        usleep(10000);
    assert_ok(err);
    fixture_stop(&f);
    check("weir store get person 3 -p store", 0, "\"age\":");
    check("weir store get person 500 -p store", 65, "^$");
    check("weir store verify -p store --against-log -l log", 0, " 0 differences$");
    check("weir snapshot build all -p store && weir snapshot check all", 0, "");
    /* A longer `history` brings nothing back; one end of an edge may be in a shard that was trimmed earlier. */
    check("sed -i '/history:/d' store/schema.yaml && ! grep -q history store/schema.yaml", 0, "");
    check("weir snapshot build longer -p store && weir snapshot check longer && cat longer/manifest.json", 0,
          "\"from_us\":19[0-9]{8},");
    drop(&f);
}

WEIR_TESTS(WEIR_CASE(a_trimmed_store_is_what_the_log_says), WEIR_CASE(answers_of_what_is_sealed),
           WEIR_CASE(a_damaged_schema_is_said_to_be_damaged), WEIR_CASE(checkpoint_and_restore),
           WEIR_CASE(verify_against_log_finds_what_is_missing_and_what_is_more),
           WEIR_CASE(verify_against_log_finds_the_later_of_two_contents),
           WEIR_CASE(verify_against_log_finds_another_row))

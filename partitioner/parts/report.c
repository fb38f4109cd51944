/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what a cutting cost and how good it is, as text and as JSON. */
#include "plan.h"

static const char *report_reason(const weir_parts_held *held) {
    static const char *const texts[] = {
        "held",
        "the least, as the sum is no multiple of the parts",
        "the least, as one vertex has as much",
        "the least, as heavy vertices are more than parts",
        "not held beside the other weights",
        "not held, as what was there stays; cut anew, without --like",
        "this method does not balance",
    };
    return held->total ? texts[held->reason] : "there is none";
}

static void report_put_balance(const weir_parts_held *held, weir_buf *out) {
    weir_buf_printf(out, "balance of %s: %.3f of at most %.3f: %s", held->name, held->reached, held->asked,
                    report_reason(held));
    if (held->reason == WEIR_PARTS_BESIDE && held->least > 1)
        weir_buf_printf(out, ", and by itself at least %.3f", held->least);
    weir_buf_printf(out, "\n");
}

static void report_put_balances(weir_json *json, const weir_parts_report *report) {
    weir_json_key(json, "balances");
    weir_json_array(json);
    for (uint32_t i = 0; i < report->balance_count; i++) {
        const weir_parts_held *held = &report->balances[i];
        weir_json_object(json);
        weir_json_key_string(json, "of", held->name);
        weir_json_key_u64(json, "total", held->total);
        weir_json_key_f64(json, "asked", held->asked);
        weir_json_key_f64(json, "reached", held->reached);
        weir_json_key_f64(json, "least", held->least);
        weir_json_key(json, "held");
        weir_json_bool(json, held->reason == WEIR_PARTS_HELD);
        weir_json_key_string(json, "why", report_reason(held));
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

void weir_parts_report_text(const weir_parts_report *report, weir_buf *out) {
    weir_buf_printf(out, "%u parts of %llu vertices (%llu to train on) and %llu edges, seed %llu\n", report->parts,
                    (unsigned long long)report->vertices, (unsigned long long)report->training,
                    (unsigned long long)report->edges, (unsigned long long)report->seed);
    if (report->like_stayed)
        weir_buf_printf(out, "%llu vertices stay in their part, %llu are new, %llu are gone\n",
                        (unsigned long long)report->like_stayed, (unsigned long long)report->like_new,
                        (unsigned long long)report->like_gone);
    weir_buf_printf(out, "%-8s %12s %7s  %26s  %12s %12s %9s\n", "", "cut edges", "of all",
                    "largest: vertices/training/degree", "total send", "largest send", "seconds");
    for (uint32_t i = 0; i < report->row_count; i++) {
        const weir_parts_quality *q = &report->rows[i];
        double share = report->edges ? 100.0 * (double)q->cut_edges / (double)report->edges : 0;
        weir_buf_printf(out, "%-8s %12llu %6.2f%%  %15.3f %8.3f %8.3f  %12llu %12llu %9.3f\n",
                        weir_parts_method_name(q->method), (unsigned long long)q->cut_edges, share, q->vertex_balance,
                        q->training_balance, q->degree_balance, (unsigned long long)q->halo,
                        (unsigned long long)q->send_max, q->seconds);
    }
    if (report->machines > 1 && report->row_count)
        weir_buf_printf(out, "%u machines of %u parts: %llu of the cut edges are between machines\n", report->machines,
                        report->parts / report->machines, (unsigned long long)report->rows[0].machine_cut_edges);
    for (uint32_t i = 0; i < report->balance_count; i++)
        report_put_balance(&report->balances[i], out);
    weir_buf_printf(out,
                    "of depth %u: %llu vertices and %llu entries of their lists over all parts, in the largest %llu "
                    "and %llu\n",
                    report->depth, (unsigned long long)report->here_vertices, (unsigned long long)report->here_edges,
                    (unsigned long long)report->here_vertices_max, (unsigned long long)report->here_edges_max);
    weir_buf_printf(out, "written in %.3f s; %.1f MiB of memory at most\n", report->write_seconds,
                    (double)report->peak_bytes / 1048576.0);
}

void weir_parts_report_json(const weir_parts_report *report, weir_buf *out) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    weir_json_key_u64(&json, "parts", report->parts);
    weir_json_key_u64(&json, "machines", report->machines);
    weir_json_key_u64(&json, "seed", report->seed);
    weir_json_key_u64(&json, "vertices", report->vertices);
    weir_json_key_u64(&json, "edges", report->edges);
    weir_json_key_u64(&json, "training", report->training);
    if (report->like_stayed) {
        weir_json_key_u64(&json, "stayed", report->like_stayed);
        weir_json_key_u64(&json, "new", report->like_new);
        weir_json_key_u64(&json, "gone", report->like_gone);
    }
    weir_json_key(&json, "methods");
    weir_json_array(&json);
    for (uint32_t i = 0; i < report->row_count; i++) {
        const weir_parts_quality *q = &report->rows[i];
        weir_json_object(&json);
        weir_json_key_string(&json, "method", weir_parts_method_name(q->method));
        weir_json_key_u64(&json, "cut_edges", q->cut_edges);
        weir_json_key_f64(&json, "vertex_balance", q->vertex_balance);
        weir_json_key_f64(&json, "training_balance", q->training_balance);
        weir_json_key_f64(&json, "degree_balance", q->degree_balance);
        weir_json_key_u64(&json, "machine_cut_edges", q->machine_cut_edges);
        weir_json_key_u64(&json, "halo", q->halo);
        weir_json_key_u64(&json, "halo_max", q->halo_max);
        weir_json_key_u64(&json, "send", q->halo);
        weir_json_key_u64(&json, "send_max", q->send_max);
        weir_json_key_f64(&json, "seconds", q->seconds);
        weir_json_object_end(&json);
    }
    weir_json_array_end(&json);
    report_put_balances(&json, report);
    weir_json_key_u64(&json, "depth", report->depth);
    weir_json_key_u64(&json, "here_vertices", report->here_vertices);
    weir_json_key_u64(&json, "here_vertices_max", report->here_vertices_max);
    weir_json_key_u64(&json, "here_edges", report->here_edges);
    weir_json_key_u64(&json, "here_edges_max", report->here_edges_max);
    weir_json_key_f64(&json, "write_seconds", report->write_seconds);
    weir_json_key_u64(&json, "peak_bytes", report->peak_bytes);
    weir_json_object_end(&json);
    weir_buf_byte(out, '\n');
}

/* SPDX-License-Identifier: Apache-2.0 */
/* spans.c - what a vertex has in force before a time: of snapshots and of parts. */
#include <weir/store/snapshot/snapshot.h>

/* Most vertices have one, and most targets look for the last: so the search begins there. */
bool weir_snapshot_span(const weir_snapshot_spans *spans, uint64_t vertex, int64_t before_us, uint64_t *placep) {
    int64_t low = spans->indptr[vertex], high = spans->indptr[vertex + 1];
    if (low < 0 || high > (int64_t)spans->count || low >= high) return false; /* Z2: files are believed nowhere */
    int64_t begin = low;
    if (spans->times[high - 1] < before_us) low = high;
    while (low < high) { /* those below low are older than the time */
        int64_t middle = low + (high - low) / 2;
        if (spans->times[middle] < before_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *placep = (uint64_t)(low - 1);
    return low > begin && before_us < spans->until_us[low - 1];
}

void weir_snapshot_labels_of_life(const weir_snapshot_vertices *vertices, uint64_t vertex, uint64_t life,
                                  const weir_snapshot_labels *labels, uint64_t *beginp, uint64_t *endp) {
    const weir_snapshot_spans *lives = &vertices->lives;
    bool is_first = life == (uint64_t)lives->indptr[vertex];
    bool is_last = life + 1 == (uint64_t)lives->indptr[vertex + 1];
    while (!is_last && *beginp < *endp && labels->times[*beginp] > lives->times[life + 1])
        ++*beginp;
    while (!is_first && *beginp < *endp && labels->times[*endp - 1] <= lives->times[life])
        --*endp;
}

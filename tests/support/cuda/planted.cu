/* SPDX-License-Identifier: Apache-2.0 */
/* planted.cu - see planted.h. The kernels are as ours are: launch.h for what is not C++, and streams for all work. */
#include "planted.h"

#include <vector>

#include "launch.h"

namespace {

constexpr unsigned block_threads = 128, everyone = 0xFFFFFFFFU;

/* Memory and streams of one program, given back at its end. */
struct device_use {
    cudaStream_t first = nullptr, second = nullptr;
    cudaEvent_t event = nullptr;
    std::vector<void *> device, pinned;

    device_use() {
        cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    }
    device_use(const device_use &) = delete;
    device_use &operator=(const device_use &) = delete;
    ~device_use() {
        cudaDeviceSynchronize();
        for (void *memory : device)
            cudaFree(memory);
        for (void *memory : pinned)
            cudaFreeHost(memory);
        cudaEventDestroy(event);
        cudaStreamDestroy(first);
        cudaStreamDestroy(second);
    }
    template <typename Value> Value *room(size_t count) {
        Value *memory = nullptr;
        cudaMalloc(&memory, count * sizeof(Value));
        device.push_back(memory);
        return memory;
    }
    template <typename Value> Value *locked(size_t count) {
        Value *memory = nullptr;
        cudaMallocHost(&memory, count * sizeof(Value));
        pinned.push_back(memory);
        return memory;
    }
    template <typename Value> Value *bring(const std::vector<Value> &values) {
        Value *memory = room<Value>(values.size());
        cudaMemcpyAsync(memory, values.data(), values.size() * sizeof(Value), cudaMemcpyHostToDevice, first);
        return memory;
    }
    template <typename Value> std::vector<Value> fetch(const Value *memory, size_t count) {
        std::vector<Value> values(count);
        cudaMemcpyAsync(values.data(), memory, count * sizeof(Value), cudaMemcpyDeviceToHost, first);
        return values;
    }
    bool well() {
        return cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess;
    }
};

std::vector<int> numbers(size_t count) {
    std::vector<int> values(count);
    for (size_t i = 0; i < count; i++)
        values[i] = static_cast<int>(i * 7 % 31);
    return values;
}

int sum_of(const std::vector<int> &values) {
    int sum = 0;
    for (const int value : values)
        sum += value;
    return sum;
}

__device__ __forceinline__ unsigned own_index() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

/* --- right ones ----------------------------------------------------------------------------------------------- */

/* A barrier left out makes the two faults of shared memory of it. */
template <bool after_store, bool after_step>
__global__ void __launch_bounds__(block_threads)
    sum_in_block(const int *__restrict__ values, unsigned count, int *__restrict__ sums) {
    WEIR_SHARED(int, partial, block_threads);
    const unsigned i = own_index();
    partial[threadIdx.x] = i < count ? values[i] : 0;
    if (after_store) __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        if (after_step) __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

template <bool after_store, bool after_step> bool run_sum_in_block() {
    device_use s;
    const std::vector<int> values = numbers(300);
    const unsigned blocks = 3;
    int *sums = s.room<int>(blocks);
    WEIR_LAUNCH((sum_in_block<after_store, after_step>), blocks, block_threads, 0, s.first, s.bring(values), 300U,
                sums);
    return sum_of(s.fetch(sums, blocks)) == sum_of(values) && s.well();
}

__global__ void sum_in_warps(const int *values, unsigned count, int *sum) {
    const unsigned i = own_index();
    int value = i < count ? values[i] : 0;
    for (unsigned step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(everyone, value, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}

bool run_sum_in_warps() {
    device_use s;
    const std::vector<int> values = numbers(200);
    int *sum = s.room<int>(1);
    cudaMemsetAsync(sum, 0, sizeof *sum, s.first);
    WEIR_LAUNCH(sum_in_warps, 4, 64, 0, s.first, s.bring(values), 200U, sum);
    return s.fetch(sum, 1)[0] == sum_of(values) && s.well();
}

constexpr unsigned side = 8;
typedef float tile_row[side + 1];

/* again: a second tile in the same array. Without the barrier between, who is fast overwrites what is still read. */
template <bool between> __global__ void transpose(const float *from, float *to, unsigned width, unsigned height) {
    WEIR_SHARED(tile_row, tile, side);
    for (unsigned again = 0; again < 2; again++) {
        const unsigned column = (blockIdx.x * 2 + again) * side, row = blockIdx.y * side;
        const unsigned x = threadIdx.x, y = threadIdx.y;
        if (column + x < width && row + y < height) tile[y][x] = from[(row + y) * width + column + x];
        __syncthreads();
        if (column + y < width && row + x < height) to[(column + y) * height + row + x] = tile[x][y];
        if (between) __syncthreads();
    }
}

template <bool between> bool run_transpose() {
    device_use s;
    const unsigned width = 30, height = 19;
    std::vector<float> values(width * height);
    for (size_t i = 0; i < values.size(); i++)
        values[i] = static_cast<float>(i);
    float *to = s.room<float>(values.size());
    WEIR_LAUNCH((transpose<between>), dim3(2, 3), dim3(side, side), 0, s.first, s.bring(values), to, width, height);
    const std::vector<float> turned = s.fetch(to, values.size());
    bool right = true;
    for (unsigned i = 0; i < width * height; i++)
        right = right && turned[i % width * height + i / width] == values[i];
    return right && s.well();
}

__global__ void histogram(const int *values, unsigned count, unsigned *bins, unsigned bin_count) {
    WEIR_SHARED_DYNAMIC(unsigned, own);
    for (unsigned i = threadIdx.x; i < bin_count; i += blockDim.x)
        own[i] = 0;
    __syncthreads();
    if (own_index() < count) atomicAdd(&own[static_cast<unsigned>(values[own_index()]) % bin_count], 1U);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < bin_count; i += blockDim.x)
        atomicAdd(&bins[i], own[i]);
}

bool run_histogram() {
    device_use s;
    const std::vector<int> values = numbers(250);
    const unsigned bin_count = 7;
    std::vector<unsigned> expected(bin_count);
    for (const int value : values)
        expected[static_cast<unsigned>(value) % bin_count]++;
    unsigned *bins = s.room<unsigned>(bin_count);
    cudaMemsetAsync(bins, 0, bin_count * sizeof *bins, s.first);
    const unsigned blocks = 260; /* more than have arrays at once */
    WEIR_LAUNCH(histogram, blocks, 32, bin_count * sizeof(unsigned), s.first, s.bring(values), 250U, bins, bin_count);
    return s.fetch(bins, bin_count) == expected && s.well();
}

__global__ void scan_in_block(int *values, int *sums) {
    WEIR_SHARED(int, partial, 64);
    int value = values[own_index()];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (unsigned step = 1; step < 64; step *= 2) {
        const int before = threadIdx.x >= step ? partial[threadIdx.x - step] : 0;
        __syncthreads();
        value += before;
        partial[threadIdx.x] = value;
        __syncthreads();
    }
    values[own_index()] = value;
    if (threadIdx.x == 63) sums[blockIdx.x] = value;
}

__global__ void scan_of_sums(int *sums, unsigned count) {
    int sum = 0;
    for (unsigned i = 0; i < count; i++) {
        const int own = sums[i];
        sums[i] = sum;
        sum += own;
    }
}

__global__ void add_sums(int *values, const int *sums) {
    values[own_index()] += __ldg(&sums[blockIdx.x]);
}

bool run_scan() {
    device_use s;
    const unsigned blocks = 4;
    std::vector<int> values = numbers(blocks * 64);
    int *scanned = s.bring(values), *sums = s.room<int>(blocks);
    WEIR_LAUNCH(scan_in_block, blocks, 64, 0, s.first, scanned, sums);
    WEIR_LAUNCH(scan_of_sums, 1, 1, 0, s.first, sums, blocks);
    WEIR_LAUNCH(add_sums, blocks, 64, 0, s.first, scanned, sums);
    for (size_t i = 1; i < values.size(); i++)
        values[i] += values[i - 1];
    return s.fetch(scanned, values.size()) == values && s.well();
}

__global__ void gather(const float4 *rows, const unsigned *wanted, float4 *gathered, unsigned count, unsigned fours) {
    for (unsigned i = own_index(); i < count * fours; i += gridDim.x * blockDim.x)
        gathered[i] = rows[wanted[i / fours] * fours + i % fours];
}

bool run_gather() {
    device_use s;
    const unsigned fours = 3;
    std::vector<float4> rows(10 * fours);
    for (unsigned i = 0; i < rows.size(); i++)
        rows[i] = make_float4(static_cast<float>(i), 1, 2, 3);
    const std::vector<unsigned> wanted = {9, 0, 3, 3, 7, 1, 2};
    const unsigned count = static_cast<unsigned>(wanted.size());
    float4 *gathered = s.room<float4>(count * fours);
    WEIR_LAUNCH(gather, 2, 32, 0, s.first, s.bring(rows), s.bring(wanted), gathered, count, fours);
    const std::vector<float4> values = s.fetch(gathered, count * fours);
    bool right = true;
    for (unsigned i = 0; i < values.size(); i++)
        right = right && values[i].x == static_cast<float>(wanted[i / fours] * fours + i % fours) && values[i].w == 3;
    return right && s.well();
}

__global__ void add_to(int *values, unsigned count, int more) {
    if (own_index() < count) values[own_index()] += more;
}

/* Without the event it is the fault of a kernel that begins before the copy has ended. */
template <bool joined> bool run_two_streams() {
    device_use s;
    const unsigned count = 100;
    int *values = s.room<int>(count), *locked = s.locked<int>(count);
    for (unsigned i = 0; i < count; i++)
        locked[i] = static_cast<int>(i);
    cudaMemsetAsync(values, 0, count * sizeof *values, s.second);
    cudaStreamSynchronize(s.second);
    cudaMemcpyAsync(values, locked, count * sizeof *values, cudaMemcpyHostToDevice, s.first);
    cudaEventRecord(s.event, s.first);
    if (joined) cudaStreamWaitEvent(s.second, s.event, 0);
    WEIR_LAUNCH(add_to, 2, 64, 0, s.second, values, count, 5);
    cudaStreamSynchronize(s.second);
    return s.fetch(values, count)[99] == 104 && s.well();
}

/* Two places of the ring, each filled by the host when the copy out of it has ended. */
struct ring {
    static constexpr unsigned places = 2, count = 40;
    int *locked[places], *values[places];
    cudaEvent_t copied[places], used[places];

    explicit ring(device_use &s) {
        for (unsigned i = 0; i < places; i++) {
            locked[i] = s.locked<int>(count);
            values[i] = s.room<int>(count);
            cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming);
            cudaEventCreateWithFlags(&used[i], cudaEventDisableTiming);
        }
    }
};

__global__ void add_all(const int *values, unsigned count, int *sum) {
    if (own_index() < count) atomicAdd(sum, values[own_index()]);
}

/* Without waiting, the host fills what is still copied. */
template <bool waits> bool run_ring() {
    device_use s;
    ring r(s);
    int *sum = s.room<int>(1), expected = 0;
    cudaMemsetAsync(sum, 0, sizeof *sum, s.first);
    for (unsigned round = 0; round < 6; round++) {
        const unsigned at = round % ring::places;
        if (waits) cudaEventSynchronize(r.copied[at]);
        for (unsigned i = 0; i < ring::count; i++) {
            r.locked[at][i] = static_cast<int>(round + i);
            expected += static_cast<int>(round + i);
        }
        cudaStreamWaitEvent(s.second, r.used[at], 0);
        cudaMemcpyAsync(r.values[at], r.locked[at], ring::count * sizeof(int), cudaMemcpyHostToDevice, s.second);
        cudaEventRecord(r.copied[at], s.second);
        cudaStreamWaitEvent(s.first, r.copied[at], 0);
        WEIR_LAUNCH(add_all, 1, 64, 0, s.first, r.values[at], unsigned{ring::count}, sum);
        cudaEventRecord(r.used[at], s.first);
    }
    return s.fetch(sum, 1)[0] == expected && s.well();
}

__device__ const int weights[4] = {1, 10, 100, 1000};

/* Lanes of a warp hand values on through shared memory: what __syncwarp orders, in halves of a warp too. */
__global__ void within_warps(int *values) {
    WEIR_SHARED(int, handed, 64);
    const unsigned lane = threadIdx.x % 32, half = lane / 16 * 16, warp = threadIdx.x - lane;
    const unsigned own_half = 0xFFFFU << half;
    handed[threadIdx.x] = static_cast<int>(lane) * weights[threadIdx.x % 4];
    __syncwarp(own_half);
    const int other = handed[warp + half + (lane + 1) % 16], first = handed[warp + half];
    __syncwarp(own_half);
    if (lane % 16 == 0) handed[warp + half] = first + 1;
    __syncwarp();
    values[threadIdx.x] = other + handed[warp] + handed[warp + 16];
}

bool run_within_warps() {
    device_use s;
    int *values = s.room<int>(64);
    WEIR_LAUNCH(within_warps, 1, 64, 0, s.first, values);
    const std::vector<int> got = s.fetch(values, 64);
    bool right = true;
    for (unsigned i = 0; i < 64; i++) {
        const unsigned next = i / 16 * 16 + (i + 1) % 16;
        right = right && got[i] == static_cast<int>(next % 32) * weights[next % 4] + 18;
    }
    return right && s.well();
}

/* Bytes beside each other of threads and of blocks, votes, and barriers that count. */
__global__ void votes(unsigned char *bytes, int *counts, double *scaled) {
    const unsigned lane = threadIdx.x % 32;
    bytes[own_index()] = static_cast<unsigned char>(threadIdx.x);
    bytes[own_index()] = static_cast<unsigned char>(bytes[own_index()] + 1);
    const int counted = __syncthreads_count(threadIdx.x % 3 == 0), any = __syncthreads_or(threadIdx.x == 5);
    const int all = __syncthreads_and(threadIdx.x != 5);
    const unsigned even = __ballot_sync(everyone, lane % 2 == 0);
    const int found = __any_sync(everyone, lane == 7) + __all_sync(everyone, lane < 32);
    const long from_next = __shfl_xor_sync(everyone, static_cast<long>(lane) << 40, 1) >> 40;
    const double up = __shfl_up_sync(everyone, static_cast<double>(lane), 1, 8);
    if (lane == 2) atomicAdd(scaled, up);
    if (lane == 2) counts[own_index() / 32] = counted + any + all + __popc(even) + found + static_cast<int>(from_next);
}

bool run_votes() {
    device_use s;
    unsigned char *bytes = s.room<unsigned char>(3 * 33 * 2);
    int *counts = s.room<int>(6);
    double *scaled = s.room<double>(1);
    cudaMemsetAsync(scaled, 0, sizeof *scaled, s.first);
    WEIR_LAUNCH(votes, 3, 64, 0, s.first, bytes, counts, scaled);
    const int counted = 22 + 1 + 0 + 16 + 2 + 3;
    return s.fetch(counts, 6) == std::vector<int>(6, counted) && s.fetch(scaled, 1)[0] == 6.0 &&
           s.fetch(bytes, 192)[191] == 64 && s.well();
}

/* Memory is given back while a kernel that uses it is still queued: that waits. */
bool run_free_at_once() {
    device_use s;
    int *values = nullptr, *sum = s.room<int>(1);
    cudaMalloc(&values, 64 * sizeof *values);
    cudaMemsetAsync(values, 0, 64 * sizeof *values, s.first);
    cudaMemsetAsync(sum, 0, sizeof *sum, s.first);
    WEIR_LAUNCH(add_to, 1, 64, 0, s.first, values, 64U, 3);
    WEIR_LAUNCH(add_all, 1, 64, 0, s.first, values, 64U, sum);
    return cudaFree(values) == cudaSuccess && s.fetch(sum, 1)[0] == 192 && s.well();
}

/* --- faults --------------------------------------------------------------------------------------------------- */

__global__ void write_at(int *values, long index) {
    if (own_index() == 3) values[index] = 1;
}

bool write_past_the_end() {
    device_use s;
    WEIR_LAUNCH(write_at, 2, 32, 0, s.first, s.room<int>(11), 11L);
    return s.well();
}

bool write_before_the_beginning() {
    device_use s;
    WEIR_LAUNCH(write_at, 2, 32, 0, s.first, s.room<int>(11), -1L);
    return s.well();
}

__global__ void write_past_shared(int *to) {
    WEIR_SHARED(int, values, 32);
    values[threadIdx.x + 1] = 1;
    __syncthreads();
    to[threadIdx.x] = values[threadIdx.x];
}

bool write_past_a_shared_array() {
    device_use s;
    WEIR_LAUNCH(write_past_shared, 1, 32, 0, s.first, s.room<int>(32));
    return s.well();
}

bool give_host_memory() {
    device_use s;
    std::vector<int> values(64);
    WEIR_LAUNCH(write_at, 1, 32, 0, s.first, values.data(), 0L);
    return s.well();
}

volatile int global_of_the_host = 3;

__global__ void read_global(int *to) {
    *to = global_of_the_host;
}

bool read_a_variable_of_the_host() {
    device_use s;
    WEIR_LAUNCH(read_global, 1, 1, 0, s.first, s.room<int>(1));
    return s.well();
}

bool use_after_free() {
    device_use s;
    int *values = nullptr;
    cudaMalloc(&values, 64 * sizeof *values);
    cudaMemsetAsync(values, 0, 64 * sizeof *values, s.first);
    cudaFree(values);
    WEIR_LAUNCH(add_to, 2, 32, 0, s.first, values, 64U, 1);
    return s.well();
}

bool read_what_nothing_wrote() {
    device_use s;
    int *values = s.room<int>(64);
    cudaMemsetAsync(values, 0, 63 * sizeof *values, s.first);
    WEIR_LAUNCH(add_to, 2, 32, 0, s.first, values, 64U, 1);
    return s.well();
}

bool fetch_what_nothing_wrote() {
    device_use s;
    int *values = s.room<int>(64), *others = s.room<int>(64);
    cudaMemsetAsync(values, 0, 63 * sizeof *values, s.first);
    cudaMemcpyAsync(others, values, 64 * sizeof *values, cudaMemcpyDeviceToDevice, s.first);
    s.fetch(others, 64);
    return s.well();
}

__global__ void read_shared_first(int *to) {
    WEIR_SHARED(int, values, 32);
    if (threadIdx.x != 9) values[threadIdx.x] = 1;
    to[threadIdx.x] = values[threadIdx.x];
}

bool read_shared_that_nothing_wrote() {
    device_use s;
    WEIR_LAUNCH(read_shared_first, 1, 32, 0, s.first, s.room<int>(32));
    return s.well();
}

/* Half of the warp leaves, and the mask names all of it. */
__global__ void shuffle_alone(int *values) {
    if (threadIdx.x >= 16) return;
    values[threadIdx.x] = __shfl_xor_sync(everyone, static_cast<int>(threadIdx.x), 1);
}

bool name_lanes_that_left() {
    device_use s;
    WEIR_LAUNCH(shuffle_alone, 1, 32, 0, s.first, s.room<int>(32));
    return s.well();
}

__global__ void shuffle_outside(int *values) {
    values[threadIdx.x] = __shfl_sync(0xFFFFU, static_cast<int>(threadIdx.x), 0);
}

bool name_others_only() {
    device_use s;
    WEIR_LAUNCH(shuffle_outside, 1, 32, 0, s.first, s.room<int>(32));
    return s.well();
}

/* Each half names the same lanes but one. */
__global__ void differ_in_masks(int *values) {
    __syncwarp(threadIdx.x < 16 ? everyone : everyone & ~1U);
    values[threadIdx.x] = 1;
}

bool name_other_lanes_than_others() {
    device_use s;
    WEIR_LAUNCH(differ_in_masks, 1, 32, 0, s.first, s.room<int>(32));
    return s.well();
}

__global__ void shuffle_from_outside(int *values) {
    if (threadIdx.x < 16) values[threadIdx.x] = __shfl_sync(0xFFFFU, static_cast<int>(threadIdx.x), 20);
}

bool shuffle_from_a_lane_outside() {
    device_use s;
    WEIR_LAUNCH(shuffle_from_outside, 1, 32, 0, s.first, s.room<int>(32));
    return s.well();
}

__global__ void barrier_for_some(int *values, bool returns) {
    if (threadIdx.x < 40) {
        if (returns) return;
        values[threadIdx.x] = __syncthreads_or(1);
    } else {
        __syncthreads();
    }
}

bool return_before_a_barrier() {
    device_use s;
    WEIR_LAUNCH(barrier_for_some, 1, 64, 0, s.first, s.room<int>(64), true);
    return s.well();
}

bool wait_at_two_barriers() {
    device_use s;
    WEIR_LAUNCH(barrier_for_some, 1, 64, 0, s.first, s.room<int>(64), false);
    return s.well();
}

__global__ void write_by_block(int *value) {
    if (threadIdx.x == 0) *value = static_cast<int>(blockIdx.x);
}

bool write_from_two_blocks() {
    device_use s;
    WEIR_LAUNCH(write_by_block, 2, 32, 0, s.first, s.room<int>(1));
    return s.well();
}

/* All read what the last block writes. */
__global__ void read_by_block(int *values) {
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) values[0] = 7;
    if (threadIdx.x == 1 && blockIdx.x < gridDim.x - 1) values[1 + blockIdx.x] = values[0];
}

bool read_what_another_block_writes() {
    device_use s;
    WEIR_LAUNCH(read_by_block, 3, 32, 0, s.first, s.bring(std::vector<int>(4)));
    return s.well();
}

/* Of two threads and no more, so that either may be the first. */
__global__ void hand_on(int *values) {
    if (threadIdx.x == 0) values[0] = 7;
    if (threadIdx.x == 32) values[1] = values[0];
}

bool hand_on_without_a_barrier() {
    device_use s;
    WEIR_LAUNCH(hand_on, 1, 64, 0, s.first, s.bring(std::vector<int>(2)));
    return s.well();
}

/* The thread that writes is also the last of the two that read. */
__global__ void read_and_write(int *values, unsigned writer) {
    const unsigned own = own_index();
    if (own != 0 && own != writer) return;
    values[1 + own] = values[0];
    if (own == writer) values[0] = 7;
}

template <unsigned writer> bool write_what_another_reads() {
    device_use s;
    WEIR_LAUNCH(read_and_write, 2, 64, 0, s.first, s.bring(std::vector<int>(129)), writer);
    return s.well();
}

__global__ void count_plainly(int *counter) {
    (*counter)++;
}

bool count_without_atomics() {
    device_use s;
    int *counter = s.bring(std::vector<int>(1));
    WEIR_LAUNCH(count_plainly, 1, 64, 0, s.first, counter);
    return s.fetch(counter, 1)[0] == 64 && s.well();
}

bool read_before_the_event() {
    device_use s;
    int *values = s.bring(numbers(64)), *locked = s.locked<int>(64);
    cudaMemcpyAsync(locked, values, 64 * sizeof *values, cudaMemcpyDeviceToHost, s.first);
    cudaEventRecord(s.event, s.first);
    const int got = locked[1];
    cudaEventSynchronize(s.event);
    return got == 7 && s.well();
}

bool read_misaligned() {
    device_use s;
    char *bytes = reinterpret_cast<char *>(s.room<int>(8));
    WEIR_LAUNCH(add_to, 1, 1, 0, s.first, reinterpret_cast<int *>(bytes + 2), 1U, 1);
    return s.well();
}

__global__ void share_too_much(int *to) {
    WEIR_SHARED(int, one, 8192);
    WEIR_SHARED(int, two, 8192);
    one[0] = two[0] = 1;
    *to = one[0] + two[0];
}

bool share_more_than_there_is() {
    device_use s;
    WEIR_LAUNCH(share_too_much, 1, 1, 0, s.first, s.room<int>(1));
    return s.well();
}

__global__ void take_a_turn(unsigned *next, unsigned *turns) {
    turns[own_index()] = atomicAdd(next, 1U);
}

} // namespace

const planted *planted_right(size_t *count) {
    static const planted programs[] = {
        {"reduction in a block", run_sum_in_block<true, true>, EMU_KINDS},
        {"reduction in warps", run_sum_in_warps, EMU_KINDS},
        {"transpose in tiles", run_transpose<true>, EMU_KINDS},
        {"histogram", run_histogram, EMU_KINDS},
        {"scan in three launches", run_scan, EMU_KINDS},
        {"gather of rows", run_gather, EMU_KINDS},
        {"two streams and an event", run_two_streams<true>, EMU_KINDS},
        {"ring of page-locked memory", run_ring<true>, EMU_KINDS},
        {"hand on within warps", run_within_warps, EMU_KINDS},
        {"votes and bytes", run_votes, EMU_KINDS},
        {"free at once", run_free_at_once, EMU_KINDS},
    };
    *count = sizeof programs / sizeof programs[0];
    return programs;
}

const planted *planted_faults(size_t *count) {
    static const planted programs[] = {
        {"no barrier after the store", run_sum_in_block<false, true>, EMU_RACE_IN_BLOCK},
        {"no barrier after a step", run_sum_in_block<true, false>, EMU_RACE_IN_BLOCK},
        {"no barrier between two uses of a tile", run_transpose<false>, EMU_RACE_IN_BLOCK},
        {"one past the end", write_past_the_end, EMU_OUT_OF_BOUNDS},
        {"one before the beginning", write_before_the_beginning, EMU_OUT_OF_BOUNDS},
        {"past a shared array", write_past_a_shared_array, EMU_OUT_OF_BOUNDS},
        {"a pointer of the host", give_host_memory, EMU_HOST_MEMORY},
        {"a variable of the host", read_a_variable_of_the_host, EMU_HOST_MEMORY},
        {"use after free", use_after_free, EMU_FREED_MEMORY},
        {"read of what nothing wrote", read_what_nothing_wrote, EMU_UNINITIALISED},
        {"copy to the host of what nothing wrote", fetch_what_nothing_wrote, EMU_UNINITIALISED},
        {"read of shared memory that nothing wrote", read_shared_that_nothing_wrote, EMU_UNINITIALISED},
        {"a mask with lanes that left", name_lanes_that_left, EMU_WRONG_MASK},
        {"a mask without the caller", name_others_only, EMU_WRONG_MASK},
        {"masks that differ", name_other_lanes_than_others, EMU_WRONG_MASK},
        {"a shuffle from outside of the mask", shuffle_from_a_lane_outside, EMU_WRONG_MASK},
        {"a barrier after a return", return_before_a_barrier, EMU_DIVERGENT_BARRIER},
        {"two barriers", wait_at_two_barriers, EMU_DIVERGENT_BARRIER},
        {"two blocks write a cell", write_from_two_blocks, EMU_RACE_BETWEEN_BLOCKS},
        {"a block reads what another writes", read_what_another_block_writes, EMU_RACE_BETWEEN_BLOCKS},
        {"a lane writes what another read", write_what_another_reads<1>, EMU_RACE_IN_BLOCK},
        {"a warp writes what another read", write_what_another_reads<32>, EMU_RACE_IN_BLOCK},
        {"a block writes what another read", write_what_another_reads<64>, EMU_RACE_BETWEEN_BLOCKS},
        {"no barrier between two threads", hand_on_without_a_barrier, EMU_RACE_IN_BLOCK},
        {"a counter that is not atomic", count_without_atomics, EMU_RACE_IN_BLOCK},
        {"a kernel before the copy", run_two_streams<false>, EMU_RACE_BETWEEN_STREAMS},
        {"the host reads before the event", read_before_the_event, EMU_RACE_WITH_HOST},
        {"the host fills what is copied", run_ring<false>, EMU_RACE_WITH_HOST},
        {"a misaligned pointer", read_misaligned, EMU_MISALIGNED},
        {"too much shared memory", share_more_than_there_is, EMU_SHARED_TOO_LARGE},
    };
    *count = sizeof programs / sizeof programs[0];
    return programs;
}

bool planted_stays_broken(void) {
    device_use s;
    int *values = s.room<int>(4);
    void *more = nullptr;
    WEIR_LAUNCH(write_at, 1, 32, 0, s.first, values, 4L);
    const bool noticed = cudaStreamSynchronize(s.first) == cudaErrorLaunchFailure;
    WEIR_LAUNCH(write_at, 1, 32, 0, s.first, values, 0L);
    return noticed && cudaGetLastError() == cudaErrorLaunchFailure && cudaGetLastError() == cudaErrorLaunchFailure &&
           cudaMalloc(&more, 4) == cudaErrorLaunchFailure && cudaFree(values) == cudaErrorLaunchFailure &&
           cudaMemset(values, 0, 4) == cudaErrorLaunchFailure && cudaDeviceSynchronize() == cudaErrorLaunchFailure &&
           cudaEventRecord(s.event, s.first) == cudaErrorLaunchFailure;
}

bool planted_calls_are_refused(void) {
    device_use s;
    int *values = s.room<int>(4), *locked = s.locked<int>(4), host[4] = {0};
    cudaStream_t gone = nullptr;
    bool right = cudaFree(values + 1) == cudaErrorInvalidValue && cudaFree(locked) == cudaErrorInvalidValue &&
                 cudaFree(host) == cudaErrorInvalidValue && cudaFree(nullptr) == cudaSuccess;
    right = right && cudaMemcpy(values, host, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection &&
            cudaMemcpy(values, nullptr, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue &&
            cudaMemcpy(values, host, 0, cudaMemcpyHostToDevice) == cudaSuccess &&
            cudaSetDevice(1) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice &&
            cudaGetLastError() == cudaSuccess;
    WEIR_LAUNCH(write_at, 1, 1025, 0, s.first, values, 0L);
    right = right && cudaPeekAtLastError() == cudaErrorInvalidConfiguration &&
            cudaGetLastError() == cudaErrorInvalidConfiguration;
    WEIR_LAUNCH(write_at, 0, 32, 0, s.first, values, 0L);
    right = right && cudaGetLastError() == cudaErrorInvalidConfiguration;
    cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking);
    right = right && cudaStreamDestroy(gone) == cudaSuccess &&
            cudaStreamSynchronize(gone) == cudaErrorInvalidResourceHandle && cudaGetLastError() != cudaSuccess;
    return right && s.well();
}

bool planted_memory_ends(void) {
    device_use s;
    size_t most = 0, left = 0;
    void *memory = nullptr;
    cudaDeviceProp properties;
    emu_limit(1000);
    bool right = cudaGetDeviceProperties(&properties, 0) == cudaSuccess && properties.totalGlobalMem == 1000;
    s.room<char>(600);
    right = right && cudaMalloc(&memory, 401) == cudaErrorMemoryAllocation && !memory &&
            cudaGetLastError() == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &most) == cudaSuccess;
    s.room<char>(400);
    return right && left == 400 && most == 1000 && s.well();
}

unsigned planted_order(void) {
    device_use s;
    const unsigned count = 4 * 64;
    unsigned *next = s.bring(std::vector<unsigned>(1)), *turns = s.room<unsigned>(count), number = 0;
    WEIR_LAUNCH(take_a_turn, 4, 64, 0, s.first, next, turns);
    for (const unsigned turn : s.fetch(turns, count))
        number = number * 31 + turn;
    return number;
}

bool planted_shares_first(void) {
    device_use s;
    int *sums = s.room<int>(3);
    WEIR_LAUNCH((sum_in_block<true, true>), 3, block_threads, 0, s.first, s.bring(numbers(300)), 300U, sums);
    WEIR_LAUNCH(add_to, 1, 3, 0, s.first, sums, 3U, 1);
    return s.well();
}

void planted_host_touches(void *) {
    device_use s;
    volatile int *values = s.room<int>(4);
    emu_host_reads(&values, sizeof values);
    values[1] = 1;
}

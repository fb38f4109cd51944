/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator.cc - the host's side of the emulated CUDA: streams, events, copies and launches.
 *
 * Work is only queued, and runs when the host waits for something, the head of one stream after another as they are
 * drawn; so what was not waited for has mostly not happened yet. In one seed of four it may run as soon as it is
 * queued, which is the other thing that a device does.
 *
 * What comes before what is known when work is queued, as it follows from streams and events alone. The order in which
 * work runs only decides what values are there.
 */
#include "emulator_state.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#define EMU_INSIDE
#include "cuda_runtime.h"

using emu::clock_vector;

namespace {

struct work {
    uint32_t number; /* its operation, 0: it only waits */
    uint64_t after;  /* the record that it waits for, 0: none */
    uint64_t record; /* the record that it is, 0: none */
    clock_vector clock;
    std::function<bool(const work &)> run;
};

} // namespace

struct emu_stream {
    uint32_t slot;
    bool destroyed;
    clock_vector clock;
    std::deque<std::unique_ptr<work>> queue;
};

struct emu_event {
    bool destroyed;
    uint64_t record; /* the last one */
    clock_vector clock;
};

namespace {

constexpr size_t usual_limit = 1024UL * 1024 * 1024;

/* What there is since the last emu_reset. The first stream is the one that is called NULL. */
struct runtime {
    std::vector<std::unique_ptr<emu_stream>> streams;
    std::vector<std::unique_ptr<emu_event>> events;
    std::vector<bool> recorded; /* by record */
    clock_vector host;
    uint32_t host_operation; /* what the host does now, 0: nothing yet */
    size_t limit;
    bool eager;
    bool broken; /* a launch was abandoned: as on a device, nothing works from then on */
    cudaError_t last;
    emu_counted counts;
};

runtime state;
std::recursive_mutex lock;

/* Every call of the host holds it. */
struct entered {
    std::lock_guard<std::recursive_mutex> guard{lock};
    entered() {
        if (state.streams.empty()) emu_reset(0);
    }
};

cudaError_t answer(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) state.last = error;
    return error;
}

void learn(clock_vector &clock, const clock_vector &from) {
    if (clock.size() < from.size()) clock.resize(from.size());
    for (size_t i = 0; i < from.size(); i++)
        clock[i] = std::max(clock[i], from[i]);
}

emu_stream *stream_of(cudaStream_t stream) {
    if (!stream) return state.streams[0].get();
    for (const std::unique_ptr<emu_stream> &known : state.streams)
        if (known.get() == stream && !known->destroyed) return stream;
    return nullptr;
}

bool event_is_known(cudaEvent_t event) {
    return std::any_of(state.events.begin(), state.events.end(), [=](const std::unique_ptr<emu_event> &known) {
        return known.get() == event && !known->destroyed;
    });
}

emu_stream *stream_new() {
    const uint32_t slot = static_cast<uint32_t>(state.streams.size()) + 1;
    state.streams.push_back(std::make_unique<emu_stream>());
    state.streams.back()->slot = slot;
    state.streams.back()->clock.assign(slot + 1, 0);
    return state.streams.back().get();
}

/* --- running -------------------------------------------------------------------------------------------------- */

void run_head(emu_stream &stream) {
    const std::unique_ptr<work> head = std::move(stream.queue.front());
    stream.queue.pop_front();
    if (head->record != 0) state.recorded[head->record] = true;
    if (!head->run || state.broken) return;
    emu::device_open();
    if (!head->run(*head)) state.broken = true;
    emu::device_close();
}

/* One head, of those that wait for nothing. False when there is none. */
bool run_one() {
    std::vector<emu_stream *> able;
    for (const std::unique_ptr<emu_stream> &stream : state.streams)
        if (!stream->queue.empty() &&
            (stream->queue.front()->after == 0 || state.recorded[stream->queue.front()->after]))
            able.push_back(stream.get());
    if (able.empty()) return false;
    run_head(*able[emu::draw.below(static_cast<uint32_t>(able.size()))]);
    return true;
}

template <typename Condition> void run_until(const Condition &met) {
    emu::device_open();
    while (!met() && run_one()) {
    }
    emu::device_close();
}

cudaError_t wait_for_stream(emu_stream &stream) {
    run_until([&] { return stream.queue.empty(); });
    learn(state.host, stream.clock);
    state.host_operation = 0;
    state.counts.syncs++;
    return state.broken ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t wait_for_all() {
    run_until([] { return false; });
    for (const std::unique_ptr<emu_stream> &stream : state.streams)
        learn(state.host, stream->clock);
    state.host_operation = 0;
    state.counts.syncs++;
    return state.broken ? cudaErrorLaunchFailure : cudaSuccess;
}

/* --- queuing -------------------------------------------------------------------------------------------------- */

/* What the host did before is before this; what it does from now on is not. */
work &queue(emu_stream &stream, const char *name, std::function<bool(const work &)> run) {
    learn(stream.clock, state.host);
    state.host[0]++;
    state.host_operation = 0;
    std::unique_ptr<work> made = std::make_unique<work>();
    const uint32_t turn = ++stream.clock[stream.slot];
    made->number = run ? emu::operation_new({stream.slot, turn, name}) : 0;
    made->clock = stream.clock;
    made->run = std::move(run);
    stream.queue.push_back(std::move(made));
    return *stream.queue.back();
}

void queued() {
    if (state.eager && emu::draw.below(2) == 0) run_one();
}

emu::actor actor_of(const work &done) {
    emu::actor who;
    who.operation = done.number;
    who.clock = &done.clock;
    return who;
}

/* A part of memory as a copy sees it: none of ours is the host's own. */
bool is_on_device(const void *memory) {
    return emu::space_of(reinterpret_cast<uintptr_t>(memory)) == emu::DEVICE;
}

bool is_pinned(const void *memory) {
    return emu::space_of(reinterpret_cast<uintptr_t>(memory)) == emu::PINNED;
}

/* Memory that is of no space of ours is not looked at. */
bool touch_part(const emu::actor &who, const void *memory, size_t bytes, unsigned mode) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    const emu::space in = emu::space_of(address);
    return in == emu::SPACES || emu::touch(who, in, address, bytes, mode);
}

bool run_copy(const work &done, void *to, const void *from, size_t bytes) {
    const emu::actor who = actor_of(done);
    const bool both = is_on_device(to) && is_on_device(from);
    if (!touch_part(who, from, bytes, emu::READS | (both ? unsigned{emu::UNCHECKED} : 0U)) ||
        !touch_part(who, to, bytes, emu::WRITES))
        return false;
    memmove(to, from, bytes);
    if (both) emu::carry_written(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), bytes);
    return true;
}

bool direction_is(const void *to, const void *from, cudaMemcpyKind kind) {
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !is_on_device(to) && !is_on_device(from);
    case cudaMemcpyHostToDevice:
        return is_on_device(to) && !is_on_device(from);
    case cudaMemcpyDeviceToHost:
        return !is_on_device(to) && is_on_device(from);
    case cudaMemcpyDeviceToDevice:
        return is_on_device(to) && is_on_device(from);
    default:
        return kind == cudaMemcpyDefault;
    }
}

void count_copy(const void *to, const void *from, size_t bytes) {
    uint64_t &counted = is_on_device(to)
                            ? is_on_device(from) ? state.counts.bytes_on_device : state.counts.bytes_to_device
                            : state.counts.bytes_to_host;
    state.counts.copies++;
    counted += bytes;
}

/* Memory that can be paged out is read into a place of the driver's before the call returns, or written before it
 * returns: as CUDA does. */
cudaError_t copy(const char *name, void *to, const void *from, size_t bytes, cudaMemcpyKind kind, emu_stream *stream,
                 bool waits) {
    if (state.broken) return cudaErrorLaunchFailure;
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    if (!to || !from) return cudaErrorInvalidValue;
    if (!direction_is(to, from, kind)) return cudaErrorInvalidMemcpyDirection;
    count_copy(to, from, bytes);
    if (is_on_device(to) && !is_on_device(from) && !is_pinned(from)) {
        const char *bytes_of = static_cast<const char *>(from);
        const std::shared_ptr<std::vector<char>> staged =
            std::make_shared<std::vector<char>>(bytes_of, bytes_of + bytes);
        queue(*stream, name, [=](const work &done) { return run_copy(done, to, staged->data(), bytes); });
        queued();
        return cudaSuccess;
    }
    queue(*stream, name, [=](const work &done) { return run_copy(done, to, from, bytes); });
    queued();
    if (is_on_device(to) && is_on_device(from)) return cudaSuccess;
    const bool paged = !is_on_device(to) && !is_pinned(to);
    return waits || paged ? wait_for_stream(*stream) : cudaSuccess;
}

cudaError_t fill(const char *name, void *memory, int value, size_t bytes, emu_stream *stream) {
    if (state.broken) return cudaErrorLaunchFailure;
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    if (!is_on_device(memory) && !is_pinned(memory)) return cudaErrorInvalidValue;
    state.counts.fills++;
    queue(*stream, name, [=](const work &done) {
        if (!touch_part(actor_of(done), memory, bytes, emu::WRITES)) return false;
        memset(memory, value, bytes);
        return true;
    });
    queued();
    return cudaSuccess;
}

cudaError_t allocate(emu::space in, void **memoryp, size_t bytes) {
    if (state.broken) return cudaErrorLaunchFailure;
    if (!memoryp) return cudaErrorInvalidValue;
    *memoryp = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (in == emu::DEVICE && (bytes > state.limit || state.counts.live_bytes > state.limit - bytes))
        return cudaErrorMemoryAllocation;
    const uintptr_t start = emu::memory_take(in, bytes);
    if (start == 0) return cudaErrorMemoryAllocation;
    *memoryp = reinterpret_cast<void *>(start);
    state.counts.allocations++;
    if (in == emu::DEVICE) state.counts.live_bytes += bytes;
    return cudaSuccess;
}

/* Memory is given back when nothing runs that could use it. */
cudaError_t release(emu::space in, void *memory) {
    size_t bytes = 0;
    if (state.broken) return cudaErrorLaunchFailure;
    if (!memory) return cudaSuccess;
    if (emu::space_of(reinterpret_cast<uintptr_t>(memory)) != in) return cudaErrorInvalidValue;
    const cudaError_t error = wait_for_all();
    if (error != cudaSuccess) return error;
    if (!emu::memory_give(in, reinterpret_cast<uintptr_t>(memory), &bytes)) return cudaErrorInvalidValue;
    state.counts.frees++;
    if (in == emu::DEVICE) state.counts.live_bytes -= bytes;
    return cudaSuccess;
}

bool launch_is_valid(const emu::launch &wanted) {
    uint64_t blocks = 1, threads = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (i > 0 && wanted.grid[i] > 65535) return false;
        blocks *= wanted.grid[i];
        threads *= wanted.block[i];
    }
    return blocks > 0 && blocks < UINT32_MAX && threads > 0 && threads <= emu::threads_max && wanted.block[2] <= 64 &&
           wanted.shared_bytes <= emu::shared_max;
}

/* An event is done when its last record is. */
bool event_is_done(const emu_event &event) {
    return event.record == 0 || state.recorded[event.record];
}

} // namespace

namespace emu {

/* Only page-locked memory is shared by the host and the device. */
void host_touch(uintptr_t address, size_t bytes, unsigned mode) {
    if (space_of(address) != PINNED) return;
    const entered guard;
    if (state.host_operation == 0) state.host_operation = operation_new({0, state.host[0], "the host"});
    actor who;
    who.operation = state.host_operation;
    who.clock = &state.host;
    touch(who, PINNED, address, bytes, mode);
}

} // namespace emu

/* --- what the test calls -------------------------------------------------------------------------------------- */

void emu_reset(uint64_t seed) {
    const std::lock_guard<std::recursive_mutex> guard(lock);
    emu::draw = {seed};
    emu::memory_reset();
    state = runtime();
    state.host.assign(1, 1);
    state.recorded.assign(1, true);
    state.limit = usual_limit;
    state.eager = emu::draw.below(4) == 0;
    stream_new();
}

emu_counted emu_counts(void) {
    return state.counts;
}

void emu_limit(size_t bytes) {
    state.limit = bytes;
}

void emu_host_reads(const void *memory, size_t bytes) {
    emu::host_touch(reinterpret_cast<uintptr_t>(memory), bytes, emu::READS);
}

void emu_host_writes(const void *memory, size_t bytes) {
    emu::host_touch(reinterpret_cast<uintptr_t>(memory), bytes, emu::WRITES);
}

/* --- CUDA ----------------------------------------------------------------------------------------------------- */

void emu_launch(const char *name, const uint32_t grid[3], const uint32_t block[3], size_t shared_bytes,
                emu_stream *stream, void (*call)(const void *), void (*destroy)(const void *), const void *parameters,
                size_t parameter_bytes) {
    const entered guard;
    const std::shared_ptr<const void> owned(parameters, destroy);
    emu::launch wanted = {
        name,           {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes, call, parameters,
        parameter_bytes};
    emu_stream *on = stream_of(stream);
    if (state.broken || !on || !launch_is_valid(wanted)) {
        answer(!on ? cudaErrorInvalidResourceHandle : cudaErrorInvalidConfiguration);
        return;
    }
    state.counts.launches++;
    queue(*on, name, [owned, wanted](const work &done) { return emu::launch_run(wanted, done.number, done.clock); });
    queued();
}

const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
        return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection:
        return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorNoDevice:
        return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
        return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
        return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
        return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
        return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
        return "cudaErrorLaunchFailure";
    default:
        return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t error) {
    return cudaGetErrorName(error);
}

cudaError_t cudaGetLastError(void) {
    const entered guard;
    const cudaError_t last = state.broken ? cudaErrorLaunchFailure : state.last;
    state.last = cudaSuccess;
    return last;
}

cudaError_t cudaPeekAtLastError(void) {
    const entered guard;
    return state.broken ? cudaErrorLaunchFailure : state.last;
}

cudaError_t cudaMalloc(void **memoryp, size_t bytes) {
    const entered guard;
    return answer(allocate(emu::DEVICE, memoryp, bytes));
}

cudaError_t cudaMallocHost(void **memoryp, size_t bytes) {
    const entered guard;
    return answer(allocate(emu::PINNED, memoryp, bytes));
}

cudaError_t cudaFree(void *memory) {
    const entered guard;
    return answer(release(emu::DEVICE, memory));
}

cudaError_t cudaFreeHost(void *memory) {
    const entered guard;
    return answer(release(emu::PINNED, memory));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    const entered guard;
    return answer(copy("cudaMemcpy", to, from, bytes, kind, stream_of(nullptr), true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    const entered guard;
    return answer(copy("cudaMemcpyAsync", to, from, bytes, kind, stream_of(stream), false));
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
    const entered guard;
    return answer(fill("cudaMemset", memory, value, bytes, stream_of(nullptr)));
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    const entered guard;
    return answer(fill("cudaMemsetAsync", memory, value, bytes, stream_of(stream)));
}

/* One that blocks would wait for the one called NULL, which is not emulated. */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *streamp, unsigned flags) {
    const entered guard;
    if (state.broken) return answer(cudaErrorLaunchFailure);
    if (!streamp || flags != cudaStreamNonBlocking) return answer(cudaErrorInvalidValue);
    *streamp = stream_new();
    return cudaSuccess;
}

/* What is queued there still runs. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    const entered guard;
    if (!stream || !stream_of(stream)) return answer(cudaErrorInvalidResourceHandle);
    stream->destroyed = true;
    return state.broken ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const entered guard;
    emu_stream *known = stream_of(stream);
    return answer(known ? wait_for_stream(*known) : cudaErrorInvalidResourceHandle);
}

/* Who asks again and again sees it done at some time. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    const entered guard;
    emu_stream *known = stream_of(stream);
    if (!known) return answer(cudaErrorInvalidResourceHandle);
    if (!known->queue.empty() && emu::draw.below(2) == 0) run_one();
    if (state.broken) return answer(cudaErrorLaunchFailure);
    if (!known->queue.empty()) return cudaErrorNotReady;
    learn(state.host, known->clock);
    state.host_operation = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const entered guard;
    emu_stream *known = stream_of(stream);
    if (state.broken) return answer(cudaErrorLaunchFailure);
    if (!known || !event_is_known(event)) return answer(cudaErrorInvalidResourceHandle);
    learn(known->clock, event->clock);
    queue(*known, "cudaStreamWaitEvent", nullptr).after = event->record;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *eventp, unsigned) {
    const entered guard;
    if (state.broken) return answer(cudaErrorLaunchFailure);
    if (!eventp) return answer(cudaErrorInvalidValue);
    state.events.push_back(std::make_unique<emu_event>());
    *eventp = state.events.back().get();
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const entered guard;
    emu_stream *known = stream_of(stream);
    if (state.broken) return answer(cudaErrorLaunchFailure);
    if (!known || !event_is_known(event)) return answer(cudaErrorInvalidResourceHandle);
    event->record = state.recorded.size();
    state.recorded.push_back(false);
    queue(*known, "cudaEventRecord", nullptr).record = event->record;
    event->clock = known->clock;
    queued();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const entered guard;
    if (!event_is_known(event)) return answer(cudaErrorInvalidResourceHandle);
    run_until([=] { return event_is_done(*event); });
    learn(state.host, event->clock);
    state.host_operation = 0;
    state.counts.syncs++;
    return answer(state.broken ? cudaErrorLaunchFailure : cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    const entered guard;
    if (!event_is_known(event)) return answer(cudaErrorInvalidResourceHandle);
    if (!event_is_done(*event) && emu::draw.below(2) == 0) run_one();
    if (state.broken) return answer(cudaErrorLaunchFailure);
    if (!event_is_done(*event)) return cudaErrorNotReady;
    learn(state.host, event->clock);
    state.host_operation = 0;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    const entered guard;
    if (!event_is_known(event)) return answer(cudaErrorInvalidResourceHandle);
    event->destroyed = true;
    return state.broken ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    const entered guard;
    return answer(wait_for_all());
}

cudaError_t cudaSetDevice(int device) {
    const entered guard;
    return answer(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceCount(int *countp) {
    *countp = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    const entered guard;
    if (device != 0) return answer(cudaErrorInvalidDevice);
    *properties = cudaDeviceProp();
    snprintf(properties->name, sizeof properties->name, "emulated device");
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->warpSize = warpSize;
    properties->maxThreadsPerBlock = static_cast<int>(emu::threads_max);
    properties->totalGlobalMem = state.limit;
    properties->sharedMemPerBlock = emu::shared_max;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *freep, size_t *totalp) {
    const entered guard;
    *totalp = state.limit;
    *freep = state.limit - state.counts.live_bytes;
    return answer(state.broken ? cudaErrorLaunchFailure : cudaSuccess);
}

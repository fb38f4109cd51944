/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_count.c - each kernel of the table once more: it passes its call on, and adds it to what was counted. */
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

#include "gpu_count.h"

typedef struct count_context {
    weir_kernels kernels; /* first: this is what callers hold */
    const weir_kernels *inner;
    bool beside;
    weir_err err; /* of what was waited for here, until `finish` */
} count_context;

static struct count_sums {
    weir_mutex mutex;
    gpu_counts pending, counts;
    atomic_bool timed;
} sums = {.mutex = {PTHREAD_MUTEX_INITIALIZER, WEIR_RANK_LEAF, "counts"}};

static const char *const count_names[GPU_KERNELS] = {
#define GPU_COUNTED(name, parameters, arguments, bytes, flops) [GPU_KERNEL_##name] = #name,
#include "gpu_counts.def"
#undef GPU_COUNTED
    [GPU_KERNEL_zero] = "zero",
    [GPU_KERNEL_copy] = "copy",
    [GPU_KERNEL_to_device] = "to_device",
    [GPU_KERNEL_to_host] = "to_host",
};

const char *weir_gpu_kernel_name(gpu_kernel kernel) {
    return count_names[kernel];
}

void weir_gpu_count_take(gpu_counts *countsp) {
    weir_mutex_lock(&sums.mutex);
    *countsp = sums.counts;
    memset(sums.counts.of, 0, sizeof sums.counts.of);
    sums.counts.allocations = 0;
    sums.pending = (gpu_counts){0};
    weir_mutex_unlock(&sums.mutex);
}

void weir_gpu_count_time(bool timed) {
    atomic_store(&sums.timed, timed);
}

static count_context *count_of(const weir_kernels *k) {
    return (count_context *)(void *)(uintptr_t)k;
}

static void count_wait(count_context *c) {
    const weir_err err = c->inner->finish(c->inner);
    if (!c->err) c->err = err;
}

/* What went before has ended when the clock begins. */
static int64_t count_begin(count_context *c) {
    if (!atomic_load(&sums.timed)) return 0;
    count_wait(c);
    return weir_clock_mono_us(weir_clock_system());
}

static void count_add(gpu_count *sum, const gpu_count *more) {
    sum->calls += more->calls;
    sum->bytes += more->bytes;
    sum->flops += more->flops;
    sum->timed += more->timed;
    sum->us += more->us;
}

/* Under the mutex. */
static void count_step(void) {
    for (gpu_kernel i = 0; i < GPU_KERNELS; i++)
        count_add(&sums.counts.of[i], &sums.pending.of[i]);
    sums.counts.allocations += sums.pending.allocations;
    sums.counts.until_us = (double)weir_clock_mono_us(weir_clock_system());
    sums.pending = (gpu_counts){0};
}

static void count_end(count_context *c, int64_t begun_us, gpu_kernel kernel, double bytes, double flops) {
    gpu_count one = {.calls = 1, .bytes = bytes, .flops = flops};
    if (begun_us) {
        count_wait(c);
        one.timed = 1;
        one.us = (double)(weir_clock_mono_us(weir_clock_system()) - begun_us);
    }
    weir_mutex_lock(&sums.mutex);
    count_add(c->beside ? &sums.counts.beside[kernel] : &sums.pending.of[kernel], &one);
    if (kernel == GPU_KERNEL_adamw) count_step();
    weir_mutex_unlock(&sums.mutex);
}

/* --- the kernels -------------------------------------------------------------------------------------------------- */

#define R    ((double)sizeof(weir_real))
#define I    ((double)sizeof(uint32_t))
#define E    ((double)s->entries)
#define N    ((double)s->count)
#define L    ((double)l->count * l->cols)
#define D(x) ((double)(x))

#define COUNT_BARE(...) __VA_ARGS__
#define GPU_COUNTED(name, parameters, arguments, bytes, flops)                                \
    static void counted_##name(const weir_kernels *k, COUNT_BARE parameters) {                \
        count_context *c = count_of(k);                                                       \
        const double bytes_ = (double)(bytes), flops_ = (double)(flops); /* maybe in place */ \
        const int64_t begun_us = count_begin(c);                                              \
        c->inner->name(c->inner, COUNT_BARE arguments);                                       \
        count_end(c, begun_us, GPU_KERNEL_##name, bytes_, flops_);                            \
    }
#include "gpu_counts.def"
#undef GPU_COUNTED

#undef R
#undef I
#undef E
#undef N
#undef L
#undef D

/* --- memory and contexts ------------------------------------------------------------------------------------------ */

static weir_err counted_alloc(const weir_kernels *k, size_t bytes, void **memoryp) {
    weir_mutex_lock(&sums.mutex);
    sums.pending.allocations++;
    weir_mutex_unlock(&sums.mutex);
    return count_of(k)->inner->alloc(count_of(k)->inner, bytes, memoryp);
}

static void counted_release(const weir_kernels *k, void *memory) {
    count_of(k)->inner->release(count_of(k)->inner, memory);
}

static void counted_to_device(const weir_kernels *k, void *to, const void *host, size_t bytes) {
    count_context *c = count_of(k);
    const int64_t begun_us = count_begin(c);
    c->inner->to_device(c->inner, to, host, bytes);
    count_end(c, begun_us, GPU_KERNEL_to_device, (double)bytes, 0);
}

static void counted_to_host(const weir_kernels *k, void *host, const void *from, size_t bytes) {
    count_context *c = count_of(k);
    const int64_t begun_us = count_begin(c);
    c->inner->to_host(c->inner, host, from, bytes);
    count_end(c, begun_us, GPU_KERNEL_to_host, (double)bytes, 0);
}

static void counted_zero(const weir_kernels *k, void *memory, size_t bytes) {
    count_context *c = count_of(k);
    const int64_t begun_us = count_begin(c);
    c->inner->zero(c->inner, memory, bytes);
    count_end(c, begun_us, GPU_KERNEL_zero, (double)bytes, 0);
}

static void counted_copy(const weir_kernels *k, void *to, const void *from, size_t bytes) {
    count_context *c = count_of(k);
    const int64_t begun_us = count_begin(c);
    c->inner->copy(c->inner, to, from, bytes);
    count_end(c, begun_us, GPU_KERNEL_copy, 2 * (double)bytes, 0);
}

static weir_err counted_finish(const weir_kernels *k) {
    count_context *c = count_of(k);
    count_wait(c);
    const weir_err err = c->err;
    c->err = WEIR_OK;
    return err;
}

static void counted_close(const weir_kernels *k) {
    count_context *c = count_of(k);
    if (c->beside) c->inner->close(c->inner);
    weir_free(c);
}

static weir_err counted_open(const weir_kernels *k, const weir_kernels **otherp);

static weir_err count_new(const weir_kernels *inner, bool beside, const weir_kernels **kernelsp) {
    count_context *c = weir_calloc(1, sizeof *c);
    *kernelsp = NULL;
    if (!c) return WEIR_NOMEM("for a context that counts");
    *c = (count_context){.kernels = *inner, .inner = inner, .beside = beside};
    c->kernels.unified = false;
    c->kernels.piece_bytes = 0;
#define GPU_COUNTED(name, parameters, arguments, bytes, flops) c->kernels.name = counted_##name;
#include "gpu_counts.def"
#undef GPU_COUNTED
    c->kernels.open = counted_open;
    c->kernels.close = counted_close;
    c->kernels.alloc = counted_alloc;
    c->kernels.release = counted_release;
    c->kernels.to_device = counted_to_device;
    c->kernels.to_host = counted_to_host;
    c->kernels.zero = counted_zero;
    c->kernels.copy = counted_copy;
    c->kernels.finish = counted_finish;
    *kernelsp = &c->kernels;
    return WEIR_OK;
}

static weir_err counted_open(const weir_kernels *k, const weir_kernels **otherp) {
    const weir_kernels *inner;
    *otherp = NULL;
    weir_err err = count_of(k)->inner->open(count_of(k)->inner, &inner);
    if (err) return err;
    err = count_new(inner, true, otherp);
    if (err) inner->close(inner);
    return err;
}

weir_err weir_gpu_count_open(const weir_kernels *inner, const weir_kernels **kernelsp) {
    return count_new(inner, false, kernelsp);
}

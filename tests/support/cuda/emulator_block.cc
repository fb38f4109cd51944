/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator_block.cc - the threads of a block, one fibre each, on the one thread that runs them.
 *
 * A fibre runs until it waits for others, ends, or has done as many accesses as were drawn for it; then one of those
 * that can go on is drawn. What a warp waits for is done when the last of its lanes comes. A barrier, and what can
 * never be done, shows when no fibre can go on.
 */
#include "emulator_state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "emulator_device.h"
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__x86_64__)
extern "C" void emu_switch(void **from, void *to);
#endif

namespace emu {

thread_local fibre *running __attribute__((tls_model("initial-exec")));

namespace {

/* --- switching ------------------------------------------------------------------------------------------------ */

constexpr size_t stack_bytes = 64 * 1024;

#if defined(__x86_64__)

/* What a call leaves to its caller to keep is kept by it; the rest lies on the stack that is left. swapcontext asks the
 * system for the mask of signals each time, which would be most of the time of a test. */
struct context {
    void *top;
};

asm(".pushsection .text\n"
    ".hidden emu_switch\n"
    ".globl emu_switch\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
    "    ret\n"
    ".size emu_switch, . - emu_switch\n"
    ".popsection\n");

void context_start(context *made, char *stack, void (*entry)()) {
    uintptr_t *top = reinterpret_cast<uintptr_t *>(stack + stack_bytes) - 8;
    std::fill_n(top, 8, uintptr_t{0});
    top[6] = reinterpret_cast<uintptr_t>(entry); /* after six registers, where ret takes it */
    made->top = top;
}

void context_switch(context *from, context *to) {
    emu_switch(&from->top, to->top);
}

#else

typedef ucontext_t context;

void context_start(context *made, char *stack, void (*entry)()) {
    getcontext(made);
    made->uc_stack.ss_sp = stack;
    made->uc_stack.ss_size = stack_bytes;
    made->uc_link = nullptr;
    makecontext(made, entry, 0);
}

void context_switch(context *from, context *to) {
    swapcontext(from, to);
}

#endif

enum waiting { READY, AT_BARRIER, AT_WARP, ENDED };

} // namespace

struct fibre {
    context place;
    char *stack;
    actor who;
    waiting state;
    uint32_t thread[3], turns; /* accesses until another may go */
    /* What it waits with. */
    int call;
    const void *called_from;
    uint32_t mask, from; /* from: the lane whose offer it asks for */
    uint64_t offer, answer;
};

namespace {

/* The lanes that a warp has, and in what order they met. */
struct warp {
    uint32_t time;
    uint32_t known[warp_lanes][warp_lanes]; /* of the first, how far it knows the second */
};

struct shared_array {
    const void *site;
    uintptr_t start;
};

/* Of the block that runs; there is one at a time. */
struct block_state {
    const launch *wanted;
    uint32_t index[3];
    unsigned threads, ended, at_barrier;
    bool abandoned;
    uint32_t pace; /* about how many accesses a fibre does in a row */
    context scheduler;
    fibre fibres[threads_max];
    warp warps[threads_max / warp_lanes];
    std::vector<fibre *> ready;
    std::vector<shared_array> arrays;
    size_t shared_used;
} now;

void switch_out() {
    fibre *self = running;
    context_switch(&self->place, &now.scheduler);
}

/* Nothing of this launch goes on; its fibres are left as they are. */
[[noreturn]] void abandon() {
    now.abandoned = true;
    switch_out();
    abort();
}

[[noreturn]] void abandon_with(emu_kind kind) {
    tell(kind, running->who, SPACES, 0, 0, 0, 0);
    abandon();
}

uint32_t draw_turns() {
    return 1 + draw.below(2 * now.pace);
}

void fibre_main() {
    now.wanted->call(now.wanted->parameters);
    running->state = ENDED;
    for (;;)
        switch_out();
}

/* A page that nothing may touch is below each stack. They stay for the next block. */
char *stack_new() {
    const size_t guard = 4096;
    void *memory = mmap(nullptr, guard + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
        perror("the emulator of CUDA makes a stack");
        abort();
    }
    return static_cast<char *>(memory) + guard;
}

void fibre_begin(unsigned i, uint32_t number, const clock_vector &clock, uint32_t block) {
    fibre &f = now.fibres[i];
    if (!f.stack) f.stack = stack_new();
    f.who = actor();
    f.who.operation = number;
    f.who.clock = &clock;
    f.who.in_kernel = true;
    f.who.block = block;
    f.who.thread = i;
    f.who.time = 1;
    f.who.known = now.warps[i / warp_lanes].known[i % warp_lanes];
    f.state = READY;
    f.turns = draw_turns();
    const uint32_t *size = now.wanted->block;
    f.thread[0] = i % size[0];
    f.thread[1] = i / size[0] % size[1];
    f.thread[2] = i / size[0] / size[1];
    context_start(&f.place, f.stack, fibre_main);
    now.ready.push_back(&f);
}

void block_begin(uint32_t number, const clock_vector &clock, uint32_t block) {
    const uint32_t *size = now.wanted->block, *grid = now.wanted->grid;
    now.threads = size[0] * size[1] * size[2];
    now.ended = now.at_barrier = 0;
    now.index[0] = block % grid[0];
    now.index[1] = block / grid[0] % grid[1];
    now.index[2] = block / grid[0] / grid[1];
    now.ready.clear();
    now.arrays.clear();
    now.shared_used = 0;
    shared_begin();
    for (unsigned i = 0; i < (now.threads + warp_lanes - 1) / warp_lanes; i++) {
        now.warps[i].time = 1;
        memset(now.warps[i].known, 0, sizeof now.warps[i].known);
    }
    for (unsigned i = 0; i < now.threads; i++)
        fibre_begin(i, number, clock, block);
}

/* --- barriers and warps --------------------------------------------------------------------------------------- */

void barrier_pass() {
    uint64_t count = 0;
    for (unsigned i = 0; i < now.threads; i++)
        count += now.fibres[i].offer != 0;
    for (unsigned i = 0; i < now.threads; i++) {
        fibre &f = now.fibres[i];
        const uint64_t answers[] = {0, count > 0, count == now.threads, count};
        f.answer = answers[f.call - EMU_BARRIER];
        f.who.epoch++;
        f.state = READY;
        now.ready.push_back(&f);
    }
    now.at_barrier = 0;
}

/* No fibre can go on. True when that was a barrier that all have reached. */
bool pass_or_tell() {
    fibre *first = nullptr, *in_warp = nullptr;
    bool same = now.at_barrier == now.threads;
    for (unsigned i = 0; i < now.threads; i++) {
        fibre &f = now.fibres[i];
        if (f.state == AT_BARRIER && !first) first = &f;
        if (f.state == AT_WARP && !in_warp) in_warp = &f;
        same = same && f.call == first->call;
    }
    if (same) {
        barrier_pass();
        return true;
    }
    const fibre *waits = in_warp ? in_warp : first;
    access_place = waits->called_from;
    tell(in_warp ? EMU_WRONG_MASK : EMU_DIVERGENT_BARRIER, waits->who, SPACES, 0, 0, 0, 0);
    return false;
}

fibre *lane_of(const fibre &of, unsigned lane) {
    const unsigned thread = of.who.thread / warp_lanes * warp_lanes + lane;
    return thread < now.threads ? &now.fibres[thread] : nullptr;
}

/* What the lanes of the mask did before they met comes before what each of them does now. */
void meet(const fibre &of) {
    warp &w = now.warps[of.who.thread / warp_lanes];
    uint32_t joined[warp_lanes] = {0};
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if ((of.mask >> lane & 1) == 0) continue;
        for (unsigned i = 0; i < warp_lanes; i++)
            joined[i] = std::max(joined[i], w.known[lane][i]);
    }
    for (unsigned lane = 0; lane < warp_lanes; lane++)
        if ((of.mask >> lane & 1) != 0) joined[lane] = w.time;
    w.time++;
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if ((of.mask >> lane & 1) == 0) continue;
        memcpy(w.known[lane], joined, sizeof joined);
        lane_of(of, lane)->who.time = w.time;
    }
}

bool all_have_come(const fibre &of) {
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if ((of.mask >> lane & 1) == 0) continue;
        const fibre *f = lane_of(of, lane);
        if (!f || f->state != AT_WARP || f->mask != of.mask || f->call != of.call) return false;
    }
    return true;
}

/* All answers are made before any lane goes on and offers something else. */
void answer_all(fibre &last) {
    uint32_t votes = 0;
    for (unsigned lane = 0; lane < warp_lanes; lane++)
        if ((last.mask >> lane & 1) != 0 && lane_of(last, lane)->offer != 0) votes |= 1U << lane;
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if ((last.mask >> lane & 1) == 0) continue;
        fibre *f = lane_of(last, lane);
        f->answer = last.call == EMU_WARP_BALLOT ? votes : last.call == EMU_WARP_ANY ? votes != 0 : votes == last.mask;
        if (last.call == EMU_WARP_SHUFFLE) f->answer = lane_of(last, f->from)->offer;
        f->state = READY;
        if (f != &last) now.ready.push_back(f);
    }
}

uint64_t wait_for_warp(const void *caller, int call, uint32_t mask, uint64_t offer, uint32_t from) {
    fibre *f = running;
    access_place = f->called_from = caller;
    f->call = call;
    f->mask = mask;
    f->offer = offer;
    f->from = from;
    if ((mask >> f->who.thread % warp_lanes & 1) == 0 || (mask >> from & 1) == 0) abandon_with(EMU_WRONG_MASK);
    f->state = AT_WARP;
    if (all_have_come(*f)) {
        meet(*f);
        answer_all(*f);
    } else {
        switch_out();
    }
    return f->answer;
}

/* The lane that a shuffle reads, by the rules of the parts of width lanes that it divides the warp into. */
uint32_t shuffle_source(int how, unsigned lane, int argument, int width) {
    const int size = width, base = static_cast<int>(lane) / size * size, own = static_cast<int>(lane);
    int source = own;
    if (how == EMU_SHUFFLE_FROM) source = base + (argument & (size - 1));
    if (how == EMU_SHUFFLE_UP && own - argument >= base) source = own - argument;
    if (how == EMU_SHUFFLE_DOWN && own + argument < base + size) source = own + argument;
    /* A part below may be read, one above may not. */
    if (how == EMU_SHUFFLE_XOR && (own ^ argument) < base + size) source = own ^ argument;
    return static_cast<uint32_t>(source) % warp_lanes;
}

/* --- running -------------------------------------------------------------------------------------------------- */

bool block_run() {
    while (now.ended < now.threads) {
        if (now.ready.empty() && !pass_or_tell()) return false;
        const size_t chosen = draw.below(static_cast<uint32_t>(now.ready.size()));
        fibre *f = now.ready[chosen];
        now.ready[chosen] = now.ready.back();
        now.ready.pop_back();
        running = f;
        context_switch(&now.scheduler, &f->place);
        running = nullptr;
        if (now.abandoned) return false;
        if (f->state == READY) now.ready.push_back(f);
        if (f->state == AT_BARRIER) now.at_barrier++;
        if (f->state == ENDED) now.ended++;
    }
    return true;
}

std::vector<uint32_t> blocks_in_an_order(uint32_t count) {
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = draw.below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

void maybe_switch() {
    fibre *f = running;
    if (--f->turns != 0) return;
    f->turns = draw_turns();
    switch_out();
}

/* The array of this place in the program, which the first thread that comes there makes. */
void *array_of(const void *site, size_t bytes, size_t alignment) {
    for (const shared_array &array : now.arrays)
        if (array.site == site) return reinterpret_cast<void *>(array.start);
    const uintptr_t start = shared_take(bytes, std::max<size_t>(alignment, 16));
    now.shared_used += bytes;
    if (start == 0 || now.shared_used > shared_max) abandon_with(EMU_SHARED_TOO_LARGE);
    now.arrays.push_back({site, start});
    return reinterpret_cast<void *>(start);
}

uint32_t low_bits(uint64_t value) {
    return static_cast<uint32_t>(value);
}

template <typename To, typename From> To same_bits(From value) {
    To to;
    static_assert(sizeof to == sizeof value, "one is read as the other");
    memcpy(&to, &value, sizeof to);
    return to;
}

uint64_t changed(int how, uint64_t old, uint64_t value, uint64_t compare) {
    switch (how) {
    case EMU_ATOMIC_ADD:
        return old + value;
    case EMU_ATOMIC_ADD_FLOAT:
        return same_bits<uint32_t>(same_bits<float>(low_bits(old)) + same_bits<float>(low_bits(value)));
    case EMU_ATOMIC_ADD_DOUBLE:
        return same_bits<uint64_t>(same_bits<double>(old) + same_bits<double>(value));
    case EMU_ATOMIC_MAX:
        return std::max(old, value);
    case EMU_ATOMIC_MIN:
        return std::min(old, value);
    case EMU_ATOMIC_MAX_SIGNED:
        return static_cast<int32_t>(old) > static_cast<int32_t>(value) ? old : value;
    case EMU_ATOMIC_MIN_SIGNED:
        return static_cast<int32_t>(old) < static_cast<int32_t>(value) ? old : value;
    case EMU_ATOMIC_OR:
        return old | value;
    case EMU_ATOMIC_AND:
        return old & value;
    case EMU_ATOMIC_EXCHANGE:
        return value;
    default: /* EMU_ATOMIC_COMPARE */
        return old == compare ? value : old;
    }
}

} // namespace

bool launch_run(const launch &wanted, uint32_t number, const clock_vector &clock) {
    static const uint32_t paces[] = {2, 8, 32, 256};
    now.wanted = &wanted;
    now.abandoned = false;
    now.pace = paces[draw.below(4)];
    for (const uint32_t block : blocks_in_an_order(wanted.grid[0] * wanted.grid[1] * wanted.grid[2])) {
        block_begin(number, clock, block);
        if (!block_run()) return false;
    }
    return true;
}

bool on_own_stack(uintptr_t address, size_t bytes) {
    const uintptr_t stack = reinterpret_cast<uintptr_t>(running->stack);
    return address - stack < stack_bytes && address - stack + bytes <= stack_bytes;
}

void kernel_misaligned(uintptr_t address, size_t bytes, unsigned mode) {
    tell(EMU_MISALIGNED, running->who, space_of(address), address, bytes, mode, 0);
    abandon();
}

void kernel_touch(uintptr_t address, size_t bytes, unsigned mode) {
    const space in = space_of(address);
    if (in != SPACES) {
        maybe_switch();
        if (!touch(running->who, in, address, bytes, mode)) abandon();
        return;
    }
    const launch &wanted = *now.wanted;
    const uintptr_t parameters = reinterpret_cast<uintptr_t>(wanted.parameters);
    const bool given =
        address - parameters < wanted.parameter_bytes && address - parameters + bytes <= wanted.parameter_bytes;
    if ((mode & WRITES) == 0 && (given || is_constant(address, bytes))) return;
    const bool nowhere = address < 65536; /* from a pointer to nothing */
    tell(nowhere ? EMU_OUT_OF_BOUNDS : EMU_HOST_MEMORY, running->who, SPACES, address, bytes, mode, 0);
    abandon();
}

} // namespace emu

/* --- what the header of the kernels calls --------------------------------------------------------------------- */

using emu::now;
using emu::running;

emu_index emu_thread_index(void) {
    return {running->thread[0], running->thread[1], running->thread[2]};
}

emu_index emu_block_index(void) {
    return {now.index[0], now.index[1], now.index[2]};
}

emu_index emu_block_size(void) {
    return {now.wanted->block[0], now.wanted->block[1], now.wanted->block[2]};
}

emu_index emu_grid_size(void) {
    return {now.wanted->grid[0], now.wanted->grid[1], now.wanted->grid[2]};
}

uint64_t emu_barrier(int call, uint64_t offer) {
    running->call = call;
    running->called_from = __builtin_return_address(0);
    running->offer = offer;
    running->state = emu::AT_BARRIER;
    emu::switch_out();
    return running->answer;
}

uint64_t emu_warp(int call, uint32_t mask, uint64_t offer) {
    return emu::wait_for_warp(__builtin_return_address(0), call, mask, offer, running->who.thread % emu::warp_lanes);
}

uint64_t emu_shuffle(int how, uint32_t mask, uint64_t offer, int argument, int width) {
    const bool power_of_two = width > 0 && width <= 32 && (width & (width - 1)) == 0;
    emu::access_place = __builtin_return_address(0);
    if (!power_of_two) emu::abandon_with(EMU_WRONG_MASK);
    const uint32_t from = emu::shuffle_source(how, running->who.thread % emu::warp_lanes, argument, width);
    return emu::wait_for_warp(__builtin_return_address(0), EMU_WARP_SHUFFLE, mask, offer, from);
}

/* Any of those who could be there just now: nothing more is promised of it. */
uint32_t emu_active_mask(void) {
    uint32_t mask = 0;
    for (unsigned lane = 0; lane < emu::warp_lanes; lane++) {
        const emu::fibre *f = emu::lane_of(*running, lane);
        if (f == running || (f && f->state == emu::READY && emu::draw.below(2) == 0)) mask |= 1U << lane;
    }
    return mask;
}

void *emu_shared(const void *site, size_t bytes, size_t alignment) {
    emu::access_place = __builtin_return_address(0);
    return emu::array_of(site, bytes, alignment);
}

void *emu_shared_dynamic(void) {
    static const char site = 0;
    return emu::array_of(&site, now.wanted->shared_bytes, 128);
}

uint64_t emu_atomic(int how, void *memory, size_t bytes, uint64_t value, uint64_t compare) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    uint64_t old = 0;
    emu::access_place = __builtin_return_address(0);
    if (address % bytes != 0) emu::kernel_misaligned(address, bytes, emu::READS | emu::WRITES);
    emu::kernel_touch(address, bytes, emu::READS | emu::WRITES | emu::ATOMIC);
    memcpy(&old, memory, bytes);
    const uint64_t made = emu::changed(how, old, value, compare);
    memcpy(memory, &made, bytes);
    return old;
}

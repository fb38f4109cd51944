/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator_memory.cc - the memory of the emulated device, and what is known of each byte of it.
 *
 * Three spaces: the device's, page-locked memory of the host, and the arrays of the block that runs. Each is a range of
 * addresses out of which allocations are cut one after the other, far apart and never at a place that was freed, so
 * that an address says which allocation was meant. Beside it lie a byte of state for each byte, and for each 4 bytes a
 * cell that says who wrote and who read them last.
 *
 * A cell holds one writer, and the readers of one warp as a set. Of readers in several warps or blocks it holds that
 * they are several: nothing but the barrier or the end of the launch comes between them and a writer. Where threads use
 * different bytes of a cell, it holds the last of them; what is lost so is a race not found, never one invented.
 */
#include "emulator_state.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emu {

generator draw = {0};
thread_local const void *access_place __attribute__((tls_model("initial-exec")));

namespace {

enum state : uint8_t { LIVE = 1, WRITTEN = 2, FREED = 4 };

/* Where an access stands in the order of all. */
struct stamp {
    uint32_t operation, block, epoch, time;
};

struct cell {
    stamp write, read;
    uint32_t lanes; /* of the readers' warp */
    uint16_t writer;
    uint8_t warp;
    uint8_t written, seen; /* which of its bytes */
    bool atomic, many_warps, many_blocks;
};

struct area {
    const char *name;
    size_t size, gap;
    uintptr_t base;
    size_t used;
    uint8_t *states;
    cell *cells;
    std::vector<block_of_memory> blocks;
};

constexpr size_t gibibyte = 1024UL * 1024 * 1024, page = 4096, place_alignment = 256;

area areas[SPACES] = {{"device", 8 * gibibyte, 64 * 1024, 0, 0, nullptr, nullptr, {}},
                      {"pinned", 8 * gibibyte, page, 0, 0, nullptr, nullptr, {}},
                      {"shared", 1024 * 1024, page, 0, 0, nullptr, nullptr, {}}};

std::vector<operation> operations;
std::vector<emu_finding> findings;
std::vector<uint32_t> finders;                          /* the operation of each */
std::vector<std::pair<uintptr_t, uintptr_t>> constants; /* from, to */
unsigned opened;
struct sigaction before_us;

uint8_t *reserve(size_t bytes, int protection) {
    void *memory = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("the emulator of CUDA reserves addresses");
        abort();
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE); /* a cell here and there should not cost 2 MiB */
    return static_cast<uint8_t *>(memory);
}

/* Says what happened; the access is then done again and ends the process as it would have. */
void touched_by_host(int number, siginfo_t *info, void *) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
    if (address - areas[DEVICE].base < areas[DEVICE].size) {
        static const char sentence[] = "the host touched device memory\n";
        if (write(STDERR_FILENO, sentence, sizeof sentence - 1) < 0) _exit(1);
    }
    sigaction(number, &before_us, nullptr);
}

int add_constants(struct dl_phdr_info *info, size_t, void *) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = info->dlpi_phdr[i];
        const bool loaded = part.p_type == PT_LOAD && (part.p_flags & PF_W) == 0;
        const uintptr_t start = info->dlpi_addr + part.p_vaddr;
        if (loaded || part.p_type == PT_GNU_RELRO) constants.emplace_back(start, start + part.p_memsz);
    }
    return 0;
}

void begin() {
    for (area &a : areas) {
        const bool host_reaches = &a != &areas[DEVICE];
        a.base = reinterpret_cast<uintptr_t>(reserve(a.size, host_reaches ? PROT_READ | PROT_WRITE : PROT_NONE));
        a.states = reserve(a.size, PROT_READ | PROT_WRITE);
        a.cells = reinterpret_cast<cell *>(reserve(a.size / 4 * sizeof(cell), PROT_READ | PROT_WRITE));
    }
    struct sigaction action = {};
    action.sa_sigaction = touched_by_host;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_us);
}

size_t pages(size_t bytes) {
    return (bytes + page - 1) / page * page;
}

/* The allocation that was most likely meant: the one that ends nearest before the address or begins nearest after. */
uint32_t nearest(const area &a, uintptr_t address) {
    const auto after =
        std::upper_bound(a.blocks.begin(), a.blocks.end(), address,
                         [](uintptr_t wanted, const block_of_memory &block) { return wanted < block.start; });
    if (a.blocks.empty()) return 0;
    if (after == a.blocks.begin()) return 1;
    const auto last = after - 1;
    const uintptr_t end = last->start + last->bytes;
    const bool later = after != a.blocks.end() && address >= end && after->start - address < address - end;
    return static_cast<uint32_t>((later ? after : last) - a.blocks.begin()) + 1;
}

/* --- order ---------------------------------------------------------------------------------------------------- */

bool operation_is_before(uint32_t number, const actor &who) {
    const operation &made = operations[number];
    return made.slot < who.clock->size() && (*who.clock)[made.slot] >= made.turn;
}

/* Of another thread in the same block. */
bool thread_is_before(const stamp &did, uint32_t thread, const actor &who) {
    if (did.epoch < who.epoch || thread == who.thread) return true;
    return thread / warp_lanes == who.thread / warp_lanes && who.known[thread % warp_lanes] >= did.time;
}

bool readers_are_before(const cell &c, const actor &who) {
    if (c.read.epoch < who.epoch) return true;
    if (c.many_warps || c.warp != who.thread / warp_lanes) return false;
    for (uint32_t lanes = c.lanes; lanes != 0; lanes &= lanes - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctz(lanes));
        if (lane != who.thread % warp_lanes && who.known[lane] < c.read.time) return false;
    }
    return true;
}

struct race {
    emu_kind kind;
    uint32_t other;
    bool is;
};

race with_operation(uint32_t number, const actor &who) {
    if (operation_is_before(number, who)) return {};
    const bool host = operations[number].slot == 0 || operations[who.operation].slot == 0;
    return {host ? EMU_RACE_WITH_HOST : EMU_RACE_BETWEEN_STREAMS, operations[number].slot, true};
}

/* Arrays of another block are other arrays, whose cells are not cleared. */
bool is_of_another_block(space in, const stamp &did, const actor &who) {
    return in == SHARED && (did.operation != who.operation || did.block != who.block);
}

race with_writer(space in, const cell &c, const actor &who, unsigned bytes, unsigned mode) {
    if ((c.written & bytes) == 0 || is_of_another_block(in, c.write, who)) return {};
    if (c.write.operation != who.operation) return with_operation(c.write.operation, who);
    if (!who.in_kernel || (c.atomic && (mode & ATOMIC) != 0)) return {};
    if (c.write.block != who.block) return {EMU_RACE_BETWEEN_BLOCKS, c.write.block, true};
    return {EMU_RACE_IN_BLOCK, c.writer, !thread_is_before(c.write, c.writer, who)};
}

race with_readers(space in, const cell &c, const actor &who, unsigned bytes) {
    if ((c.seen & bytes) == 0 || is_of_another_block(in, c.read, who)) return {};
    if (c.read.operation != who.operation) return with_operation(c.read.operation, who);
    if (!who.in_kernel) return {};
    if (c.many_blocks || c.read.block != who.block) return {EMU_RACE_BETWEEN_BLOCKS, c.read.block, true};
    const uint32_t own = c.warp == who.thread / warp_lanes ? 1U << (who.thread % warp_lanes) : 0,
                   lanes = c.lanes & ~own;
    const uint32_t one_of_them =
        lanes != 0 ? c.warp * warp_lanes + static_cast<uint32_t>(__builtin_ctz(lanes)) : EMU_HOST;
    return {EMU_RACE_IN_BLOCK, one_of_them, !readers_are_before(c, who)};
}

void note_writer(cell &c, const actor &who, unsigned bytes, unsigned mode) {
    const stamp now = {who.operation, who.block, who.epoch, who.time};
    const bool more = c.write.operation == now.operation && c.write.block == now.block && c.write.epoch == now.epoch &&
                      c.writer == static_cast<uint16_t>(who.thread) && c.atomic == ((mode & ATOMIC) != 0);
    c.write = now;
    c.writer = static_cast<uint16_t>(who.thread);
    c.written = static_cast<uint8_t>(more ? c.written | bytes : bytes);
    c.atomic = (mode & ATOMIC) != 0;
}

void note_reader(space in, cell &c, const actor &who, unsigned bytes) {
    const uint32_t lane = 1U << (who.thread % warp_lanes);
    const uint8_t warp = static_cast<uint8_t>(who.thread / warp_lanes);
    const uint8_t both = static_cast<uint8_t>(c.seen & bytes);
    bool alone = true;
    const stamp was = c.read;
    c.read = {who.operation, who.block, who.epoch, who.time};
    if (both == 0 || was.operation != who.operation || is_of_another_block(in, was, who)) {
        c.many_warps = c.many_blocks = false;
    } else if (was.block != who.block) {
        c.many_blocks = true;
        c.many_warps = false;
    } else if (was.epoch != who.epoch) {
        c.many_warps = false;
    } else if (c.warp != warp) {
        c.many_warps = true;
    } else {
        c.read = was;
        alone = readers_are_before(c, who);
        c.read = {who.operation, who.block, who.epoch, alone ? who.time : std::max(was.time, who.time)};
    }
    c.lanes = alone ? lane : c.lanes | lane;
    c.warp = warp;
    /* What all of the readers that are held have read. */
    c.seen = alone && !c.many_warps && !c.many_blocks ? static_cast<uint8_t>(bytes) : both;
}

/* Of one thread to one cell. */
race touch_cell(space in, cell &c, const actor &who, unsigned bytes, unsigned mode) {
    race found = with_writer(in, c, who, bytes, mode);
    if (!found.is && (mode & WRITES) != 0) found = with_readers(in, c, who, bytes);
    if ((mode & WRITES) != 0)
        note_writer(c, who, bytes, mode);
    else if ((mode & ATOMIC) == 0)
        note_reader(in, c, who, bytes);
    return found;
}

void touch_cells(space in, const actor &who, uintptr_t address, size_t bytes, unsigned mode) {
    const size_t first = address - areas[in].base, end = first + bytes;
    race told = {};
    for (size_t i = first / 4; i <= (end - 1) / 4; i++) {
        const size_t low = first > i * 4 ? first - i * 4 : 0, high = std::min<size_t>(end - i * 4, 4);
        const unsigned mask = (0xFU << low) & (0xFU >> (4 - high));
        const race found = touch_cell(in, areas[in].cells[i], who, mask, mode);
        if (found.is && !told.is) {
            told = found;
            tell(found.kind, who, in, address, bytes, mode, found.other);
        }
    }
}

/* What all of the bytes have, and what any has. */
struct summary {
    uint8_t all, any;
};

summary summary_of(const uint8_t *states, size_t bytes) {
    summary sum = {0xFF, 0};
    for (size_t i = 0; i < bytes; i++) {
        sum.all = static_cast<uint8_t>(sum.all & states[i]);
        sum.any = static_cast<uint8_t>(sum.any | states[i]);
    }
    return sum;
}

} // namespace

/* --- what the other files call -------------------------------------------------------------------------------- */

void memory_reset() {
    if (areas[0].base == 0) begin();
    for (area &a : areas) {
        /* What is shared has the cells of all blocks that have been, and `used` is of the last one alone. */
        const size_t used = &a == &areas[SHARED] ? a.size : pages(a.used);
        if (used == 0) continue;
        madvise(reinterpret_cast<void *>(a.base), used, MADV_DONTNEED);
        madvise(a.states, used, MADV_DONTNEED);
        madvise(a.cells, pages(used / 4 * sizeof(cell)), MADV_DONTNEED);
        a.used = 0;
        a.blocks.clear();
    }
    operations.assign(1, {0, 0, "nothing"});
    findings.clear();
    finders.clear();
    constants.clear();
    dl_iterate_phdr(add_constants, nullptr);
}

uint32_t operation_new(const operation &made) {
    operations.push_back(made);
    return static_cast<uint32_t>(operations.size() - 1);
}

const operation &operation_of(uint32_t number) {
    return operations[number];
}

static uintptr_t place(area &a, size_t bytes, size_t alignment) {
    const size_t at = (a.used + a.gap + alignment - 1) / alignment * alignment;
    if (bytes > a.size || at > a.size - bytes || a.size - bytes - at < a.gap) return 0;
    a.used = at + bytes;
    a.blocks.push_back({a.base + at, bytes, false});
    return a.base + at;
}

uintptr_t memory_take(space in, size_t bytes) {
    area &a = areas[in];
    const uintptr_t start = place(a, bytes, in == PINNED ? page : place_alignment);
    if (start == 0) return 0;
    memset(a.states + (start - a.base), in == PINNED ? LIVE | WRITTEN : LIVE, bytes);
    device_open();
    memset(reinterpret_cast<void *>(start), 0xFF, bytes); /* no number, in float and in double */
    device_close();
    return start;
}

bool memory_give(space in, uintptr_t start, size_t *bytesp) {
    area &a = areas[in];
    const uint32_t number = nearest(a, start);
    if (number == 0 || a.blocks[number - 1].start != start || a.blocks[number - 1].freed) return false;
    a.blocks[number - 1].freed = true;
    *bytesp = a.blocks[number - 1].bytes;
    memset(a.states + (start - a.base), FREED, *bytesp);
    return true;
}

space space_of(uintptr_t address) {
    for (unsigned i = 0; i < SPACES; i++)
        if (address - areas[i].base < areas[i].size) return static_cast<space>(i);
    return SPACES;
}

bool touch(const actor &who, space in, uintptr_t address, size_t bytes, unsigned mode) {
    area &a = areas[in];
    if (bytes == 0) return true;
    const size_t offset = address - a.base;
    const summary sum = bytes > a.size - offset ? summary{0, 0} : summary_of(a.states + offset, bytes);
    if ((sum.all & LIVE) == 0) {
        tell((sum.any & FREED) != 0 ? EMU_FREED_MEMORY : EMU_OUT_OF_BOUNDS, who, in, address, bytes, mode, 0);
        return false;
    }
    if ((mode & (READS | UNCHECKED)) == READS && (sum.all & WRITTEN) == 0)
        tell(EMU_UNINITIALISED, who, in, address, bytes, mode, 0);
    touch_cells(in, who, address, bytes, mode);
    if ((mode & WRITES) != 0 && (sum.all & WRITTEN) == 0)
        for (size_t i = 0; i < bytes; i++)
            a.states[offset + i] = static_cast<uint8_t>(a.states[offset + i] | WRITTEN);
    return true;
}

void carry_written(uintptr_t to, uintptr_t from, size_t bytes) {
    const area &source = areas[space_of(from)], &target = areas[space_of(to)];
    memmove(target.states + (to - target.base), source.states + (from - source.base), bytes);
}

void device_open() {
    const area &a = areas[DEVICE];
    if (opened++ == 0 && a.used > 0) mprotect(reinterpret_cast<void *>(a.base), pages(a.used), PROT_READ | PROT_WRITE);
}

void device_close() {
    const area &a = areas[DEVICE];
    if (--opened == 0 && a.used > 0) mprotect(reinterpret_cast<void *>(a.base), pages(a.used), PROT_NONE);
}

void shared_begin() {
    area &a = areas[SHARED];
    if (a.used > 0) memset(a.states, 0, a.used);
    a.used = 0;
    a.blocks.clear();
}

uintptr_t shared_take(size_t bytes, size_t alignment) {
    area &a = areas[SHARED];
    const uintptr_t start = place(a, bytes, alignment);
    if (start == 0) return 0;
    memset(a.states + (start - a.base), LIVE, bytes);
    memset(reinterpret_cast<void *>(start), 0xFF, bytes);
    return start;
}

bool is_constant(uintptr_t address, size_t bytes) {
    return std::any_of(constants.begin(), constants.end(), [=](const std::pair<uintptr_t, uintptr_t> &part) {
        return address >= part.first && address + bytes <= part.second;
    });
}

void tell(emu_kind kind, const actor &who, space in, uintptr_t address, size_t bytes, unsigned mode, uint32_t other) {
    for (size_t i = 0; i < findings.size(); i++)
        if (findings[i].kind == kind && finders[i] == who.operation) return;
    finders.push_back(who.operation);
    emu_finding found = {kind,  operations[who.operation].name, "",     who.block, who.thread, other, 0, 0,
                         bytes, (mode & WRITES) != 0,           nullptr};
    if (who.in_kernel) found.place = access_place;
    if (in != SPACES) {
        found.space = areas[in].name;
        found.allocation = nearest(areas[in], address);
        const uintptr_t start = found.allocation ? areas[in].blocks[found.allocation - 1].start : areas[in].base;
        found.offset = static_cast<int64_t>(address - start);
    }
    findings.push_back(found);
}

} // namespace emu

/* --- what the test calls -------------------------------------------------------------------------------------- */

const emu_finding *emu_findings(size_t *count) {
    *count = emu::findings.size();
    return emu::findings.data();
}

bool emu_found(emu_kind kind) {
    return std::any_of(emu::findings.begin(), emu::findings.end(),
                       [=](const emu_finding &found) { return found.kind == kind; });
}

const char *emu_kind_name(emu_kind kind) {
    static const char *const names[EMU_KINDS] = {
        "out of bounds",      "host memory",     "freed memory",        "misaligned",
        "uninitialised",      "race in a block", "race between blocks", "race between streams",
        "race with the host", "wrong mask",      "divergent barrier",   "too much shared memory"};
    return kind < EMU_KINDS ? names[kind] : "?";
}

/* Where the program was is told as what addr2line -e PROGRAM takes. */
void emu_print_findings(void) {
    for (const emu_finding &found : emu::findings) {
        Dl_info program = {};
        if (found.place) dladdr(found.place, &program);
        const uintptr_t place = reinterpret_cast<uintptr_t>(found.place);
        fprintf(stderr, "%s: %s, block %d thread %d, %s of %zu bytes at %s allocation %u %+lld; other %d; %s 0x%zx\n",
                found.name, emu_kind_name(found.kind), static_cast<int>(found.block), static_cast<int>(found.thread),
                found.writes ? "write" : "read", found.bytes, found.space, found.allocation,
                static_cast<long long>(found.offset), static_cast<int>(found.other),
                program.dli_fname ? program.dli_fname : "",
                static_cast<size_t>(place - reinterpret_cast<uintptr_t>(program.dli_fbase)));
    }
}

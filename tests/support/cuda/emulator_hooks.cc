/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator_hooks.cc - what code compiled with -fsanitize=thread calls before it accesses memory. Here it is the
 * emulator that answers, not the library of that sanitizer.
 *
 * gcc 12 and clang 14 differ in which of these they call; all of both are here, so that what is not there does not
 * link rather than go unseen.
 */
#include "emulator_state.h"

#include <cstring>

#include "emulator_device.h"

namespace {

/* In each of its callers, so that the place is the caller's caller. */
inline __attribute__((always_inline)) void seen(const void *memory, size_t bytes, unsigned mode) {
    emu::access_place = __builtin_return_address(0);
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    if (!emu::running)
        emu::host_touch(address, bytes, mode);
    else if (!emu::on_own_stack(address, bytes))
        emu::kernel_touch(address, bytes, mode);
}

/* Of one value, which lies at a multiple of its size. */
template <size_t bytes> inline __attribute__((always_inline)) void seen_aligned(const void *memory, unsigned mode) {
    emu::access_place = __builtin_return_address(0);
    constexpr size_t alignment = bytes < 8 ? bytes : 8;
    if (emu::running && reinterpret_cast<uintptr_t>(memory) % alignment != 0)
        emu::kernel_misaligned(reinterpret_cast<uintptr_t>(memory), bytes, mode);
    seen(memory, bytes, mode);
}

template <typename Word, typename Change> inline auto atomically(volatile Word *memory, const Change &change) {
    seen(const_cast<Word *>(memory), sizeof *memory, emu::READS | emu::WRITES | emu::ATOMIC);
    return change(memory);
}

} // namespace

#define EMU_HOOKS(bytes)                                        \
    void __tsan_read##bytes(void *memory) {                     \
        seen_aligned<bytes>(memory, emu::READS);                \
    }                                                           \
    void __tsan_write##bytes(void *memory) {                    \
        seen_aligned<bytes>(memory, emu::WRITES);               \
    }                                                           \
    void __tsan_read_write##bytes(void *memory) {               \
        seen_aligned<bytes>(memory, emu::READS | emu::WRITES);  \
    }                                                           \
    void __tsan_volatile_read##bytes(void *memory) {            \
        seen_aligned<bytes>(memory, emu::READS);                \
    }                                                           \
    void __tsan_volatile_write##bytes(void *memory) {           \
        seen_aligned<bytes>(memory, emu::WRITES);               \
    }                                                           \
    void __tsan_unaligned_read##bytes(void *memory) {           \
        seen(memory, bytes, emu::READS);                        \
    }                                                           \
    void __tsan_unaligned_write##bytes(void *memory) {          \
        seen(memory, bytes, emu::WRITES);                       \
    }                                                           \
    void __tsan_unaligned_read_write##bytes(void *memory) {     \
        seen(memory, bytes, emu::READS | emu::WRITES);          \
    }                                                           \
    void __tsan_unaligned_volatile_read##bytes(void *memory) {  \
        seen(memory, bytes, emu::READS);                        \
    }                                                           \
    void __tsan_unaligned_volatile_write##bytes(void *memory) { \
        seen(memory, bytes, emu::WRITES);                       \
    }

/* Atomics of the language. A kernel uses CUDA's; code of the host in the same file may have these, and the guard of a
 * variable in a function is one. */
#define EMU_ATOMIC_CHANGE(type, hook, change)                                                   \
    type hook(volatile void *memory, type value, int) {                                         \
        return atomically(static_cast<volatile type *>(memory),                                 \
                          [=](auto *place) { return change(place, value, __ATOMIC_SEQ_CST); }); \
    }
#define EMU_ATOMIC_COMPARE_HOOK(type, hook)                                                                          \
    bool hook(volatile void *memory, void *expected, type value, int, int) {                                         \
        return atomically(static_cast<volatile type *>(memory), [=](auto *place) {                                   \
            return __atomic_compare_exchange_n(place, static_cast<type *>(expected), value, false, __ATOMIC_SEQ_CST, \
                                               __ATOMIC_SEQ_CST);                                                    \
        });                                                                                                          \
    }
#define EMU_ATOMIC_HOOKS(bits, type)                                                          \
    type __tsan_atomic##bits##_load(const volatile void *memory, int) {                       \
        seen(const_cast<const void *>(memory), sizeof(type), emu::READS | emu::ATOMIC);       \
        return __atomic_load_n(static_cast<const volatile type *>(memory), __ATOMIC_SEQ_CST); \
    }                                                                                         \
    void __tsan_atomic##bits##_store(volatile void *memory, type value, int) {                \
        seen(const_cast<void *>(memory), sizeof(type), emu::WRITES | emu::ATOMIC);            \
        __atomic_store_n(static_cast<volatile type *>(memory), value, __ATOMIC_SEQ_CST);      \
    }                                                                                         \
    EMU_ATOMIC_CHANGE(type, __tsan_atomic##bits##_fetch_add, __atomic_fetch_add)              \
    EMU_ATOMIC_CHANGE(type, __tsan_atomic##bits##_fetch_sub, __atomic_fetch_sub)              \
    EMU_ATOMIC_CHANGE(type, __tsan_atomic##bits##_fetch_and, __atomic_fetch_and)              \
    EMU_ATOMIC_CHANGE(type, __tsan_atomic##bits##_fetch_or, __atomic_fetch_or)                \
    EMU_ATOMIC_CHANGE(type, __tsan_atomic##bits##_fetch_xor, __atomic_fetch_xor)              \
    EMU_ATOMIC_CHANGE(type, __tsan_atomic##bits##_exchange, __atomic_exchange_n)              \
    EMU_ATOMIC_COMPARE_HOOK(type, __tsan_atomic##bits##_compare_exchange_strong)              \
    EMU_ATOMIC_COMPARE_HOOK(type, __tsan_atomic##bits##_compare_exchange_weak)

/* Names that are the compiler's. NOLINTBEGIN(bugprone-reserved-identifier) */
extern "C" {

void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void *) {} /* clang gives it nothing, gcc says that it takes something */

EMU_HOOKS(1)
EMU_HOOKS(2)
EMU_HOOKS(4)
EMU_HOOKS(8)
EMU_HOOKS(16)

void __tsan_read_range(void *memory, long bytes) {
    seen(memory, static_cast<size_t>(bytes), emu::READS);
}

void __tsan_write_range(void *memory, long bytes) {
    seen(memory, static_cast<size_t>(bytes), emu::WRITES);
}

void __tsan_vptr_update(void *memory, void *) {
    seen(memory, sizeof(void *), emu::WRITES);
}

void __tsan_vptr_read(void **memory) {
    seen(memory, sizeof *memory, emu::READS);
}

EMU_ATOMIC_HOOKS(8, unsigned char)
EMU_ATOMIC_HOOKS(16, unsigned short)
EMU_ATOMIC_HOOKS(32, unsigned)
EMU_ATOMIC_HOOKS(64, unsigned long)

void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

void *emu_memcpy(void *to, const void *from, size_t bytes) {
    return emu_memmove(to, from, bytes);
}

void *emu_memmove(void *to, const void *from, size_t bytes) {
    if (bytes == 0) return to;
    seen(from, bytes, emu::READS);
    seen(to, bytes, emu::WRITES);
    return memmove(to, from, bytes);
}

void *emu_memset(void *to, int value, size_t bytes) {
    if (bytes == 0) return to;
    seen(to, bytes, emu::WRITES);
    return memset(to, value, bytes);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
    return emu_memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes) {
    return emu_memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes) {
    return emu_memset(to, value, bytes);
}

} /* extern "C" */
/* NOLINTEND(bugprone-reserved-identifier) */

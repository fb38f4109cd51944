/* SPDX-License-Identifier: Apache-2.0 */
/* throwing_new.cc - see throwing_new.h. Memory comes from the operators that would be there without these. */
#include "throwing_new.h"

#include <cstdlib>
#include <dlfcn.h>
#include <new>

namespace {

typedef void *(*allocate)(size_t bytes);
typedef void (*release)(void *memory);

thread_local uint64_t before; /* this one there is memory; 0: for all */
thread_local bool met;

bool finds_none() {
    if (before == 0) return false;
    if (before > 1) {
        before--;
        return false;
    }
    met = true;
    return true;
}

void ask() {
    for (unsigned asked = 0; asked < THROWING_NEW_ASKED_MAX; asked++) {
        std::new_handler handler = std::get_new_handler();
        if (!handler) throw std::bad_alloc();
        handler();
    }
    before = 0;
}

template <typename Function> Function behind(const char *name) {
    Function found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
    if (!found) abort();
    return found;
}

} // namespace

void throwing_new_arm(uint64_t nth) {
    before = nth;
    met = false;
}

bool throwing_new_disarm(void) {
    before = 0;
    return met;
}

void *operator new(size_t bytes) {
    static const allocate next = behind<allocate>("_Znwm");
    if (finds_none()) ask();
    return next(bytes);
}

void *operator new[](size_t bytes) {
    static const allocate next = behind<allocate>("_Znam");
    if (finds_none()) ask();
    return next(bytes);
}

void operator delete(void *memory) noexcept {
    static const release next = behind<release>("_ZdlPv");
    next(memory);
}

void operator delete[](void *memory) noexcept {
    static const release next = behind<release>("_ZdaPv");
    next(memory);
}

void operator delete(void *memory, size_t) noexcept {
    operator delete(memory);
}

void operator delete[](void *memory, size_t) noexcept {
    operator delete[](memory);
}

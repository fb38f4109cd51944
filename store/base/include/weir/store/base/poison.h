/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poison.h - memory that is taken and must not be touched now: under the address sanitizer a read or a write of it is
 * an error. Elsewhere these do nothing.
 */
#ifndef WEIR_STORE_BASE_POISON_H
#define WEIR_STORE_BASE_POISON_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_POISONS 1
#endif
#endif

#ifdef WEIR_POISONS
#include <sanitizer/asan_interface.h>
#define WEIR_POISON(memory, bytes)   ASAN_POISON_MEMORY_REGION((memory), (bytes))
#define WEIR_UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION((memory), (bytes))
#else
#define WEIR_POISON(memory, bytes)   ((void)(memory), (void)(bytes))
#define WEIR_UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif

#endif /* WEIR_STORE_BASE_POISON_H */

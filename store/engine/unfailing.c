/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unfailing.c - the slots through which a library of ELF calls malloc are written to. See unfailing.h.
 *
 * The dynamic linker keeps the address of each function that a library calls in a slot of that library's own. A
 * relocation says which slot is whose.
 */
#include "unfailing.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <lz4.h>

#define LIBRARY "/librocksdb.so"

#if defined(__aarch64__)
#define CALLED     R_AARCH64_JUMP_SLOT
#define POINTED_TO R_AARCH64_GLOB_DAT
#elif defined(__x86_64__)
#define CALLED     R_X86_64_JUMP_SLOT
#define POINTED_TO R_X86_64_GLOB_DAT
#else /* nothing is led where it is not known which relocations are slots of functions */
#define CALLED     UNKNOWN
#define POINTED_TO UNKNOWN
#endif
#define UNKNOWN UINT32_MAX

static void (*unfailing_wait)(void);

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void *unfailing_malloc(size_t bytes) {
    void *memory = malloc(bytes);
    for (; !memory && bytes; memory = malloc(bytes))
        unfailing_wait();
    return memory;
}

static int unfailing_memalign(void **memoryp, size_t alignment, size_t bytes) {
    int status;
    while ((status = posix_memalign(memoryp, alignment, bytes)) == ENOMEM)
        unfailing_wait();
    return status;
}

/* All 0 is how both begin; LZ4 frees them by free. */
static LZ4_stream_t *unfailing_stream(void) {
    return memset(unfailing_malloc(sizeof(LZ4_stream_t)), 0, sizeof(LZ4_stream_t));
}

static LZ4_streamDecode_t *unfailing_stream_decode(void) {
    return memset(unfailing_malloc(sizeof(LZ4_streamDecode_t)), 0, sizeof(LZ4_streamDecode_t));
}

/* --- what a thread ends with -------------------------------------------------------------------------------------- */

/* What C++ is asked to destroy when a thread ends, newest first. */
typedef struct unfailing_end {
    struct unfailing_end *next;
    void (*destroy)(void *object);
    void *object;
} unfailing_end;

static pthread_key_t unfailing_ends; /* of the thread that asks */

static void unfailing_ends_run(void *first) {
    for (unfailing_end *end = first, *next; end; end = next) {
        next = end->next;
        end->destroy(end->object);
        free(end);
    }
}

static int unfailing_thread_atexit(void (*destroy)(void *object), void *object, void *library) {
    (void)library; /* is never unloaded */
    unfailing_end *end = unfailing_malloc(sizeof *end);
    *end = (unfailing_end){.next = pthread_getspecific(unfailing_ends), .destroy = destroy, .object = object};
    while (pthread_setspecific(unfailing_ends, end) == ENOMEM)
        unfailing_wait();
    return 0;
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

/* What of a library's dynamic section is asked for. */
typedef struct unfailing_library {
    Elf64_Addr base;
    const Elf64_Sym *symbols;
    const char *names;
    const Elf64_Rela *called, *others;
    size_t called_bytes, others_bytes;
    Elf64_Addr locked, locked_end; /* whole pages that are read-only once it is loaded */
} unfailing_library;

static Elf64_Addr unfailing_page_of(Elf64_Addr at) {
    return at & ~((Elf64_Addr)sysconf(_SC_PAGESIZE) - 1);
}

static unfailing_library unfailing_library_of(const struct dl_phdr_info *info) {
    unfailing_library library = {.base = info->dlpi_addr};
    const Elf64_Dyn *entry = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        Elf64_Addr begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) entry = (const Elf64_Dyn *)begin;
        if (part->p_type != PT_GNU_RELRO) continue;
        library.locked = begin;
        library.locked_end = unfailing_page_of(begin + part->p_memsz);
    }
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        /* glibc has made addresses of these */
        const void *at = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB) library.symbols = at;
        if (entry->d_tag == DT_STRTAB) library.names = at;
        if (entry->d_tag == DT_JMPREL) library.called = at;
        if (entry->d_tag == DT_RELA) library.others = at;
        if (entry->d_tag == DT_PLTRELSZ) library.called_bytes = entry->d_un.d_val;
        if (entry->d_tag == DT_RELASZ) library.others_bytes = entry->d_un.d_val;
    }
    return library;
}

static bool unfailing_slot_set(const unfailing_library *library, Elf64_Addr *slot, Elf64_Addr function) {
    Elf64_Addr at = (Elf64_Addr)slot;
    bool is_locked = at >= library->locked && at < library->locked_end;
    if (is_locked && mprotect((void *)unfailing_page_of(at), sizeof *slot, PROT_READ | PROT_WRITE)) return false;
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
    return !is_locked || mprotect((void *)unfailing_page_of(at), sizeof *slot, PROT_READ) == 0;
}

static const struct {
    const char *name;
    Elf64_Addr address;
} unfailing_functions[] = {{"malloc", (Elf64_Addr)unfailing_malloc},
                           {"posix_memalign", (Elf64_Addr)unfailing_memalign},
                           {"LZ4_createStream", (Elf64_Addr)unfailing_stream},
                           {"LZ4_createStreamDecode", (Elf64_Addr)unfailing_stream_decode},
                           {"__cxa_thread_atexit", (Elf64_Addr)unfailing_thread_atexit}};
#define FUNCTIONS (sizeof unfailing_functions / sizeof unfailing_functions[0])

/* Bits of those of the functions that are called through some slot. */
static unsigned unfailing_slots_lead(const unfailing_library *library, const Elf64_Rela *relocations, size_t bytes) {
    unsigned led = 0;
    for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
        uint64_t type = ELF64_R_TYPE(relocations[i].r_info);
        if (type != CALLED && type != POINTED_TO) continue;
        const char *name = library->names + library->symbols[ELF64_R_SYM(relocations[i].r_info)].st_name;
        Elf64_Addr *slot = (Elf64_Addr *)(library->base + relocations[i].r_offset);
        for (unsigned f = 0; f < FUNCTIONS; f++)
            if (strcmp(name, unfailing_functions[f].name) == 0 &&
                unfailing_slot_set(library, slot, unfailing_functions[f].address))
                led |= 1u << f;
    }
    return led;
}

static int unfailing_library_lead(struct dl_phdr_info *info, size_t size, void *ledp) {
    (void)size;
    if (!strstr(info->dlpi_name, LIBRARY)) return 0;
    unfailing_library library = unfailing_library_of(info);
    if (!library.symbols || !library.names) return 1;
    *(unsigned *)ledp = unfailing_slots_lead(&library, library.called, library.called_bytes) |
                        unfailing_slots_lead(&library, library.others, library.others_bytes);
    return 1;
}

bool weir_unfailing_install(void (*wait)(void)) {
    unsigned led = 0;
    unfailing_wait = wait;
    if (CALLED == UNKNOWN) return false;
    if (pthread_key_create(&unfailing_ends, unfailing_ends_run)) return false;
    dl_iterate_phdr(unfailing_library_lead, &led);
    return led == (1u << FUNCTIONS) - 1;
}

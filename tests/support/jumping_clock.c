/* SPDX-License-Identifier: Apache-2.0 */
/* jumping_clock.c - preloaded into a program under test: its wall clock is ahead by the seconds in $WEIR_TEST_JUMP, a
 * file of 8 bytes that the test may change at any moment. What is monotonic stays so. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *ahead_s;

__attribute__((constructor)) static void jumping_clock_open(void) {
    const char *path = getenv("WEIR_TEST_JUMP");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) ahead_s = page;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock_id, struct timespec *tp) {
    long status = syscall(SYS_clock_gettime, clock_id, tp);
    if (status == 0 && clock_id == CLOCK_REALTIME && ahead_s) tp->tv_sec += *ahead_s;
    return (int)status;
}

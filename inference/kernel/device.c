/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the library of a device's kernels, looked for and loaded. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/inference/kernel/device.h>
#include <weir/store/base/file.h>

#define DEVICE_LIBRARY "libweir_cuda.so"

typedef weir_err (*device_open)(uint32_t number, const weir_kernels **kernelsp);

/* A program in PREFIX/bin or PREFIX/libexec/weir; a build folder has ../lib. */
static weir_err device_find(char path[PATH_MAX]) {
    static const char *const places[] = {"../lib", "../lib/weir", "../../lib/weir"};
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return WEIR_ERR(WEIR_EUNAVAILABLE, "the program cannot find its own folder in /proc/self/exe");
    program[length] = 0;
    *strrchr(program, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const int written = snprintf(path, PATH_MAX, "%s/%s/" DEVICE_LIBRARY, program, places[i]);
        if (written > 0 && written < PATH_MAX && weir_path_exists(path)) return WEIR_OK;
    }
    return WEIR_ERR(
        WEIR_EUNAVAILABLE,
        "there is no " DEVICE_LIBRARY " for the GPU beside %s; build weir with -DWEIR_CUDA=ON, or install it", program);
}

/* Its table must be the one that this program was compiled with: WEIR_KERNELS_SUM is of kernel.h. It stays loaded. */
static weir_err device_load(const char *path, device_open *openp) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return WEIR_ERR(WEIR_EUNAVAILABLE, "%s cannot be loaded: %s", path, why ? why : "no reason is given");
    }
    const char *const *sum = dlsym(library, "weir_cuda_sum");
    void *open = dlsym(library, "weir_cuda_open");
    if (!sum || !open || strcmp(*sum, WEIR_KERNELS_SUM) != 0) {
        dlclose(library);
        return WEIR_ERR(WEIR_EUNAVAILABLE, "%s is of another version of weir; build or install both anew", path);
    }
    memcpy(openp, &open, sizeof open); /* C has no cast from an object to a function */
    return WEIR_OK;
}

weir_err weir_kernels_open(const char *device, uint32_t number, const weir_kernels **kernelsp) {
    char path[PATH_MAX];
    device_open open;
    *kernelsp = NULL;
    if (strcmp(device, "cpu") == 0) {
        *kernelsp = weir_kernels_cpu();
        return WEIR_OK;
    }
    if (strcmp(device, "cuda") != 0)
        return WEIR_ERR(WEIR_EINVAL, "there is no device '%s'; there are cpu and cuda", device);
    weir_err err = device_find(path);
    if (!err) err = device_load(path, &open);
    return err ? err : open(number, kernelsp);
}

weir_err weir_kernels_open_or_cpu(const char *device, uint32_t number, const weir_kernels **kernelsp, weir_err *whyp) {
    weir_err err = weir_kernels_open(device, number, kernelsp);
    *whyp = WEIR_OK;
    if (!weir_err_is(err, WEIR_EUNAVAILABLE)) return err;
    *whyp = weir_err_prefix(err, "the processor computes in place of %s", device);
    *kernelsp = weir_kernels_cpu();
    return WEIR_OK;
}

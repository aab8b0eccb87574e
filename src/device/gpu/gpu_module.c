/* gpu_module.c - kernels for this chip, by name. */
#include "device/gpu/gpu_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status find_functions(struct gpu_device *gpu, const struct device_gpu_image *image,
                                  struct gpu_module *module, struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    module->functions = calloc(image->kernel_count + 1, sizeof(*module->functions));
    if (!module->functions)
        return error_set(err, STATUS_NO_MEMORY, "no memory for kernels");
    for (size_t i = 0; i < image->kernel_count; i++) {
        int code = runtime->function_find(runtime->self, module->handle, image->kernels[i],
                                          &module->functions[i]);
        if (code)
            return error_set(err, STATUS_UNSUPPORTED,
                             "kernel image: expected the kernel %s, found none (error %d, %s)",
                             image->kernels[i], code, runtime->error_name(runtime->self, code));
        code = runtime->function_allow_shared(runtime->self, module->functions[i],
                                              gpu->facts.chip.shared_bytes);
        if (code)
            return error_set(err, STATUS_UNSUPPORTED,
                             "kernel %s: expected %u bytes of shared memory to be allowed, found "
                             "error %d (%s)",
                             image->kernels[i], gpu->facts.chip.shared_bytes, code,
                             runtime->error_name(runtime->self, code));
    }
    return STATUS_OK;
}

static void *find_own(const struct device_gpu_image *image, const struct gpu_module *module,
                      const char *name)
{
    for (size_t i = 0; i < image->kernel_count; i++)
        if (strcmp(image->kernels[i], name) == 0)
            return module->functions[i];
    return NULL;
}

static void release(struct gpu_device *gpu, struct gpu_module *module)
{
    free(module->functions);
    if (module->handle)
        gpu->runtime.module_unload(gpu->runtime.self, module->handle);
    *module = (struct gpu_module){ 0 };
}

enum status gpu_module_load(struct device *device, const struct device_module *loaded,
                            uint32_t index, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    const struct gpu_runtime *runtime = &gpu->runtime;
    const struct device_gpu_image *image = loaded->gpu;
    if (!image)
        return error_set(err, STATUS_UNSUPPORTED,
                         "kernels: expected those of a GPU, found those of the host");
    struct gpu_module module = { .join = image->join };
    int code = 0;
    gpu_enter(gpu);
    for (size_t i = 0; image->codes[i].vendor && !module.handle; i++) {
        if (strcmp(image->codes[i].vendor, runtime->kind) == 0)
            code = runtime->module_load(runtime->self, image->codes[i].bytes, &module.handle);
        gpu->facts.chip.features = image->codes[i].features;
    }
    if (!module.handle && code == 0)
        return error_set(err, STATUS_UNSUPPORTED,
                         "kernels: this build has none for %s: it was made without clang-19",
                         runtime->title);
    if (!module.handle)
        return error_set(err, STATUS_UNSUPPORTED,
                         "kernels: expected code for %s in this build, found none that it takes "
                         "(error %d, %s)",
                         gpu->facts.name, code, runtime->error_name(runtime->self, code));
    enum status status = find_functions(gpu, image, &module, err);
    if (status) {
        release(gpu, &module);
        return status;
    }
    if (!gpu->inspect_function)
        gpu->inspect_function = find_own(image, &module, "inspect");
    if (!gpu->store_function)
        gpu->store_function = find_own(image, &module, "store_bytes");
    device->info.gpu_features = gpu->facts.chip.features;
    gpu->modules[index] = module;
    gpu->module_count = index + 1;
    return STATUS_OK;
}

enum status gpu_image_check(const struct gpu_device *gpu, const struct device_gpu_image *image,
                            struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    const char *last = "";
    char chips[96] = "";
    for (size_t i = 0; image->codes[i].vendor; i++) {
        const struct device_gpu_code *code = &image->codes[i];
        if (strcmp(code->vendor, runtime->kind) != 0)
            continue;
        if (runtime->code_fits(runtime->self, code))
            return STATUS_OK;
        if (strcmp(code->chip, last) == 0) /* machine code and PTX of one chip */
            continue;
        last = code->chip;
        size_t length = strlen(chips);
        snprintf(chips + length, sizeof(chips) - length, "%s%s", length ? ", " : "", code->chip);
    }
    if (!chips[0])
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: expected kernels for %s in this build, found none: it was made "
                         "without clang-19",
                         gpu->facts.name, runtime->title);
    return error_set(err, STATUS_UNSUPPORTED,
                     "%s: expected kernels for this chip in this build, found those of %s",
                     gpu->facts.name, chips);
}

void gpu_modules_release(struct gpu_device *gpu)
{
    for (size_t i = 0; i < gpu->module_count; i++)
        release(gpu, &gpu->modules[i]);
    gpu->module_count = 0;
}

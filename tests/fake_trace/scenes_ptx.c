/* scenes_ptx.c - the program's scenes with kernels whose PTX was loaded; what greta trace must say
 * of each is in tests/cli/trace_code_test.sh. */
#include "scenes.h"

/* add writes through its first pointer and reads through its second; packed reads through the first
 * word of its struct, and does nothing with the second. */
static const char code[] = ".version 8.5\n.target sm_90\n.address_size 64\n"
                           ".visible .entry _ZN4demo3addEPfPKfi(\n"
                           "  .param .u64 add_param_0, .param .u64 add_param_1,\n"
                           "  .param .u32 add_param_2\n) {\n"
                           "  ld.param.u64 %rd1, [add_param_0];\n"
                           "  ld.param.u64 %rd2, [add_param_1];\n"
                           "  ld.global.f32 %f1, [%rd2];\n"
                           "  st.global.f32 [%rd1], %f1;\n  ret;\n}\n"
                           ".visible .entry _ZN4demo6packedENS_4packE(\n"
                           "  .param .align 8 .b8 packed_param_0[32]\n) {\n"
                           "  ld.param.u64 %rd1, [packed_param_0];\n"
                           "  ld.global.f32 %f1, [%rd1];\n  ret;\n}\n";

static function kernel_of(const char *name)
{
    static void *module;
    function found = NULL;
    if (!module)
        cuModuleLoadData(&module, code);
    cuModuleGetFunction(&found, module, name);
    return found;
}

static void launch_packed(function packed, const struct scene *scene)
{
    struct {
        address first, second, rest[2];
    } pack = { scene->a, scene->b, { 0, 0 } };
    void *parameters[] = { &pack };
    cuLaunchKernel(packed, 1, 1, 1, 32, 1, 1, 0, scene->first, parameters, NULL);
}

/* Both sides only read. */
void proven_readers(struct scene *scene)
{
    launch(kernel_of("_ZN4demo3addEPfPKfi"), scene->b, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

/* The same without its code. */
void unproven_readers(struct scene *scene)
{
    launch(scene->add, scene->b, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

/* What the kernel writes is read, and what it reads is written. */
void proven_writer(struct scene *scene)
{
    launch(kernel_of("_ZN4demo3addEPfPKfi"), scene->b, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

void proven_reader_overwritten(struct scene *scene)
{
    launch(kernel_of("_ZN4demo3addEPfPKfi"), scene->b, scene->a, scene->first);
    cuMemsetD8Async(scene->a, 1, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

/* A pointer inside a struct that the kernel does not touch. */
void proven_struct(struct scene *scene)
{
    launch_packed(kernel_of("_ZN4demo6packedENS_4packE"), scene);
    cuMemsetD8Async(scene->b, 1, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

void unproven_struct(struct scene *scene)
{
    launch_packed(kernel("_ZN4demo6packedENS_4packE"), scene);
    cuMemsetD8Async(scene->b, 1, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

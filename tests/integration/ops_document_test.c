/* ops_document_test.c - docs/ops.md says what the contract rows and kernel tables say.
 *
 *     ops_document_test FILE           compares
 *     ops_document_test --write FILE   writes it again */
#include "base/text.h"
#include "ops/again.h"
#include "ops/gpu/gpu.h"
#include "ops/gpu/packing.h"
#include "ops/host/kernels.h"
#include "ops/host/matmul.h"
#include "ops/ops.h"
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const access_names[] = {
    [EVENT_READ] = "read", [EVENT_WRITE] = "write", [EVENT_UPDATE] = "update"
};

static void add_types(struct text *out, uint64_t bits)
{
    bool first = true;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!(bits >> dtype & 1))
            continue;
        text_addf(out, "%s%s", first ? "" : " ", dtype_name((enum dtype)dtype));
        first = false;
    }
}

static bool has_kernel(enum cpu_path path, const char *op)
{
    const struct device_image *image = host_kernels_image(path);
    for (size_t i = 0; i < image->count; i++)
        if (strcmp(image->entries[i].contract->name, op) == 0)
            return true;
    return false;
}

/* The same for every vendor, as are its plans and sources. The build knows which chips have code.
 */
static bool has_plan(const char *op)
{
    const struct device_gpu_image *image = gpu_kernels_image();
    for (size_t i = 0; i < image->count; i++)
        if (strcmp(image->entries[i].contract->name, op) == 0)
            return true;
    return false;
}

static void add_contracts(struct text *out)
{
    text_add(out, "| op | operand | access | types | shape |\n|---|---|---|---|---|\n");
    for (int op = 0; op < OPS_COUNT; op++) {
        const struct device_contract *contract = ops_contract((enum ops_op)op);
        for (int i = 0; i < contract->operand_count; i++) {
            const struct device_operand_rule *rule = &contract->operands[i];
            text_addf(out, "| %s | %s%s | %s | ", i ? "" : contract->name, rule->name,
                      rule->optional ? " (optional)" : "", access_names[rule->mode & EVENT_UPDATE]);
            add_types(out, rule->dtype_bits);
            text_addf(out, " | [%s]%s |\n", rule->shape,
                      rule->strided ? ", rows may be apart" : "");
        }
    }
}

static void add_backends(struct text *out)
{
    text_add(out, "| op |");
    for (int path = 0; path < CPU_PATH_COUNT; path++)
        text_addf(out, " host %s |", cpu_path_name((enum cpu_path)path));
    text_add(out, " cuda | hip |\n|---|---|---|---|---|---|\n");
    for (int op = 0; op < OPS_COUNT; op++) {
        const char *name = ops_contract((enum ops_op)op)->name;
        text_addf(out, "| %s |", name);
        for (int path = 0; path < CPU_PATH_COUNT; path++)
            text_add(out, has_kernel((enum cpu_path)path, name) ? " yes |" : " no |");
        text_add(out, has_plan(name) ? " yes | yes |\n" : " no | no |\n");
    }
}

/* The width of a row that fits every type's blocks, on a chip that has matrix units. */
#define GPU_K 2048u
#define GPU_MANY 64u

static const char *gpu_format(enum dtype dtype, uint64_t tokens)
{
    if (!gpu_can_multiply(dtype))
        return "-";
    switch (gpu_pack_format(DEVICE_GPU_WARP_MATRIX, dtype, GPU_K, tokens)) {
    case PACK_F32:
        return "f32";
    case PACK_QUANTS:
        return "8-bit blocks of 32";
    case PACK_BF16:
        return "bf16";
    default:
        return "f16, a factor for each row";
    }
}

/* A type with a kernel of its own is read as it is; the others are decoded to f32 first. */
static void add_matmul(struct text *out)
{
    static const char *const formats[] = {
        [HOST_ACT_F32] = "f32", [HOST_ACT_BF16] = "bf16", [HOST_ACT_Q8] = "8-bit blocks of 32"
    };
    text_add(out, "| weights |");
    for (int path = 0; path < CPU_PATH_COUNT; path++)
        text_addf(out, " host %s |", cpu_path_name((enum cpu_path)path));
    text_addf(out, " GPU, one token | GPU, %u tokens |\n|---|---|---|---|---|---|\n", GPU_MANY);
    uint64_t bits = ops_contract(OPS_MATMUL)->operands[0].dtype_bits;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!(bits >> dtype & 1))
            continue;
        text_addf(out, "| %s |", dtype_name((enum dtype)dtype));
        for (int path = 0; path < CPU_PATH_COUNT; path++) {
            const struct host_matmul_kernel *kernel = host_matmul_kernel((enum cpu_path)path,
                                                                         (enum dtype)dtype);
            text_addf(out, " %s |", kernel ? formats[kernel->act_format] : "-");
        }
        text_addf(out, " %s | %s |\n", gpu_format((enum dtype)dtype, 1),
                  gpu_format((enum dtype)dtype, GPU_MANY));
    }
}

static void add_tolerances(struct text *out)
{
    text_add(out, "| op | type | tolerance |\n|---|---|---|\n");
    for (int op = 0; op < OPS_COUNT; op++) {
        const struct device_contract *contract = ops_contract((enum ops_op)op);
        bool product = op == OPS_MATMUL || op == OPS_MATMUL_GROUP;
        uint64_t bits = product               ? ops_contract(OPS_MATMUL)->operands[0].dtype_bits
                        : op == OPS_KV_APPEND ? contract->operands[3].dtype_bits
                                              : UINT64_C(1) << DTYPE_F32;
        for (int dtype = 0; dtype < DTYPE_COUNT && ops_can_run_again((enum ops_op)op); dtype++)
            if (bits >> dtype & 1 && dtype != DTYPE_Q8_0_X8 && dtype != DTYPE_Q6_K_X8)
                text_addf(out, "| %s | %s | %g |\n", contract->name,
                          product || op == OPS_KV_APPEND ? dtype_name((enum dtype)dtype) : "",
                          ops_tolerance((enum ops_op)op, (enum dtype)dtype));
    }
}

static void render(struct text *out)
{
    text_add(out, "# Ops\n\nGenerated from `src/ops/contract.c` and the kernel tables by "
                  "`ops_document_test --write docs/ops.md`; a test\ncompares. Shapes are fastest "
                  "dimension first; a name stands for one number in a whole launch.\n\n"
                  "## Contracts\n\n");
    add_contracts(out);
    text_add(out,
             "\n## Kernels\n\nThe kernels of GPUs are one source for both vendors; `greta devices` "
             "says which chips a build has code for.\n\n");
    add_backends(out);
    text_add(
        out,
        "\n## Matmul: how activations are rounded\n\nOn the host the bits do not depend on tiling, "
        "batch or threads; each path has its own order of operations. On a GPU the\nsame calls "
        "give the same bits. Another batch may give other bits, within the same tolerance: a "
        "single token, a small and\na large batch use different kernels. Where they change over "
        "depends on the chip, the type and the length of rows.\n\n");
    add_matmul(out);
    text_add(out, "\n## How far two devices may differ\n\n`greta audit --compare host` compares "
                  "each op of a GPU with the host's, with the same inputs. This is the largest\n"
                  "difference allowed in a row, relative to the row's largest value; 0 means equal "
                  "values. The type is that of the weights\nof a matmul, or of the cache.\n\n");
    add_tolerances(out);
}

int main(int argument_count, char **arguments)
{
    bool write = argument_count == 3 && strcmp(arguments[1], "--write") == 0;
    if (argument_count != 2 && !write) {
        fprintf(stderr, "usage: ops_document_test [--write] FILE\n");
        return 2;
    }
    const char *path = arguments[argument_count - 1];
    struct text wanted;
    text_init(&wanted);
    render(&wanted);
    FILE *file = fopen(path, write ? "w" : "r");
    if (!file || wanted.failed) {
        fprintf(stderr, "%s: cannot open it\n", path);
        return 3;
    }
    int status = 0;
    if (write) {
        fputs(text_get(&wanted), file);
    } else {
        char *found = calloc(1, wanted.length + 2);
        size_t length = found ? fread(found, 1, wanted.length + 1, file) : 0;
        status = !found || length != wanted.length || memcmp(found, wanted.bytes, length) != 0;
        printf("%s: %s\n", path,
               status ? "does not say what the code says; generate it again"
                      : "is what the code says");
        free(found);
    }
    fclose(file);
    text_release(&wanted);
    return status;
}

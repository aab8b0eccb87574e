/* warpgroup.h - the matrix units of sm_90a, as four warps use them together: 64 rows times 256
 * rows, both of 64 halves, straight from shared memory; and the same for the emulator. Other chips
 * have none of it (HAS_WARPGROUPS).
 *
 * A panel in shared memory has rows of 128 bytes; the 16-byte segments of row r are exchanged by
 * segment ^ (r % 8), so that eight rows of a column of segments meet different banks. It begins at
 * a multiple of 1024 bytes. */
#ifndef GRETA_OPS_GPU_KERNELS_WARPGROUP_H
#define GRETA_OPS_GPU_KERNELS_WARPGROUP_H

#include "ops/gpu/kernels/portable.h"

#define WARPGROUP 128u
#define WARPGROUP_ROWS 64u
/* A thread's part of 64 x 256 sums: sums[4 * j + i] is row 16 * warp + lane / 4 + 8 * (i / 2),
 * column 8 * j + 2 * (lane % 4) + i % 2. */
#define WARPGROUP_SUMS 128

#if HAS_WARPGROUPS && !IS_EMULATED

/* Where a panel is, for the matrix unit: address, rows in eights 1024 bytes apart, segments
 * exchanged over 128 bytes. */
INLINE uint64_t panel_place(const SHARED uint8_t *panel)
{
    uint64_t address = (uint32_t)(uintptr_t)panel;
    return (address & 0x3FFFFu) >> 4 | UINT64_C(1) << 16 | UINT64_C(64) << 32 | UINT64_C(1) << 62;
}

#define SUMS_8(i)                                                                                  \
    "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]),     \
        "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)
#define NAMES_128                                                                                  \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70," \
    "%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93," \
    "%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,"    \
    "%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}"
#define STEP_16(type, at)                                                                          \
    "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " " NAMES_128 ", a" at ", b" at   \
    ", p, 1, 1, 0, 0;\n"
#define MULTIPLY_64(type)                                                                          \
    __asm__ volatile(                                                                              \
        "{\n.reg .pred p;\n.reg .b64 a0, a1, a2, a3, b0, b1, b2, b3;\nsetp.ne.b32 p, 1, 0;\n"      \
        "mov.b64 a0, %128;\nadd.s64 a1, %128, 2;\nadd.s64 a2, %128, 4;\nadd.s64 a3, %128, 6;\n"    \
        "mov.b64 b0, %129;\nadd.s64 b1, %129, 2;\nadd.s64 b2, %129, 4;\nadd.s64 b3, %129, 6;\n"    \
        "wgmma.fence.sync.aligned;\n" STEP_16(type, "0") STEP_16(type, "1") STEP_16(type, "2")     \
            STEP_16(type, "3") "wgmma.commit_group.sync.aligned;\n}"                               \
        : SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96)                                        \
        : "l"(panel_place(a)), "l"(panel_place(b))                                                 \
        : "memory")

/* Begins sums += a x b over 64 halves; a has 64 rows, b 256. */
INLINE void warpgroup_multiply(bool is_bf16, float sums[WARPGROUP_SUMS], const SHARED uint8_t *a,
                               const SHARED uint8_t *b)
{
    if (is_bf16)
        MULTIPLY_64("bf16");
    else
        MULTIPLY_64("f16");
}
/* The same of 64 rows of b, f16. */
#define WARPGROUP_SUMS_32 32
#define NAMES_32                                                                                   \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31}"
#define SMALL_BATCH_STEP_16(at)                                                                    \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " NAMES_32 ", a" at ", b" at               \
    ", p, 1, 1, 0, 0;\n"
INLINE void warpgroup_multiply_32(float sums[WARPGROUP_SUMS_32], const SHARED uint8_t *a,
                                  const SHARED uint8_t *b)
{
    __asm__ volatile(
        "{\n.reg .pred p;\n.reg .b64 a0, a1, a2, a3, b0, b1, b2, b3;\nsetp.ne.b32 p, 1, 0;\n"
        "mov.b64 a0, %32;\nadd.s64 a1, %32, 2;\nadd.s64 a2, %32, 4;\nadd.s64 a3, %32, 6;\n"
        "mov.b64 b0, %33;\nadd.s64 b1, %33, 2;\nadd.s64 b2, %33, 4;\nadd.s64 b3, %33, 6;\n"
        "wgmma.fence.sync.aligned;\n" SMALL_BATCH_STEP_16("0") SMALL_BATCH_STEP_16("1")
            SMALL_BATCH_STEP_16("2") SMALL_BATCH_STEP_16("3") "wgmma.commit_group.sync.aligned;\n}"
        : SUMS_32(0)
        : "l"(panel_place(a)), "l"(panel_place(b))
        : "memory");
}
/* The same over 32 halves with a in registers: words[4 * s + i] is row 16 * warp + lane / 4 + 8 *
 * (i % 2), columns 16 * s + 8 * (i / 2) + 2 * (lane % 4) and the next. They stay as they are until
 * warpgroup_wait has waited for the multiplication. b: as warpgroup_place gives it, of a panel, or
 * 64 bytes further in it. Sums: row as those of a, column of b. */
#define WARPGROUP_PLACE_BYTES 16u /* that one more is further */
INLINE uint64_t warpgroup_place(const SHARED uint8_t *panel)
{
    return panel_place(panel);
}
#define HELD_STEP_16(a, at)                                                                        \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " NAMES_32 ", {" a "}, b" at               \
    ", p, 1, 1, 0;\n"
INLINE void warpgroup_multiply_held(float sums[WARPGROUP_SUMS_32], const uint32_t a[8], uint64_t b)
{
    __asm__ volatile("{\n.reg .pred p;\n.reg .b64 b0, b1;\nsetp.ne.b32 p, 1, 0;\n"
                     "mov.b64 b0, %40;\nadd.s64 b1, %40, 2;\n"
                     "wgmma.fence.sync.aligned;\n" HELD_STEP_16("%32,%33,%34,%35", "0")
                         HELD_STEP_16("%36,%37,%38,%39", "1") "wgmma.commit_group.sync.aligned;\n}"
                     : SUMS_32(0)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
                       "r"(a[7]), "l"(b)
                     : "memory");
}
/* The same of 32 rows of b; the first half of sums. */
#define NAMES_16 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define HELD_32_STEP_16(a, at)                                                                     \
    "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 " NAMES_16 ", {" a "}, b" at               \
    ", p, 1, 1, 0;\n"
INLINE void warpgroup_multiply_held_32(float sums[WARPGROUP_SUMS_32], const uint32_t a[8],
                                       uint64_t b)
{
    __asm__ volatile(
        "{\n.reg .pred p;\n.reg .b64 b0, b1;\nsetp.ne.b32 p, 1, 0;\n"
        "mov.b64 b0, %24;\nadd.s64 b1, %24, 2;\n"
        "wgmma.fence.sync.aligned;\n" HELD_32_STEP_16("%16,%17,%18,%19", "0")
            HELD_32_STEP_16("%20,%21,%22,%23", "1") "wgmma.commit_group.sync.aligned;\n}"
        : SUMS_8(0), SUMS_8(8)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
          "l"(b)
        : "memory");
}
/* Waits until at most `pending` multiplications are under way. */
#define warpgroup_wait(pending)                                                                    \
    __asm__ volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")
/* What this thread stored to shared memory is seen by the matrix units after the next barrier. */
INLINE void warpgroup_publish(void)
{
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#elif HAS_WARPGROUPS

INLINE float half_at(bool is_bf16, const uint8_t *panel, uint32_t row, uint32_t k)
{
    uint16_t bits = *(const uint16_t *)(const void *)(panel + row * 128 +
                                                      ((k / 8) ^ (row % 8)) * 16 + k % 8 * 2);
    return is_bf16 ? float_of((uint32_t)bits << 16) : f16_value(bits);
}

/* The emulator multiplies when the result is waited for, from the operands as they are then; if
 * they differ from those at the start, they were changed too early. */
struct emulated_mma {
    struct emulator_mma base;
    float *sums;
    const uint8_t *a, *b;  /* panels */
    const uint32_t *words; /* or a in registers; b then from value `from` on */
    uint32_t count, from;
    bool is_bf16;
};

INLINE uint64_t digest_bytes(uint64_t digest, const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 4) {
        uint32_t word;
        memcpy(&word, (const uint8_t *)bytes + i, sizeof(word));
        digest = device_digest_word(digest ^ word, i);
    }
    return digest;
}
/* Panels are the same for all threads: the first of a warpgroup looks at them. */
INLINE uint64_t digest_product(const struct emulator_mma *base)
{
    const struct emulated_mma *product = (const void *)base;
    uint64_t digest = product->words ? digest_bytes(0, product->words, 8 * sizeof(uint32_t)) : 0;
    if (thread_index() % WARPGROUP)
        return digest;
    if (product->a)
        digest = digest_bytes(digest, product->a, WARPGROUP_ROWS * 128);
    return digest_bytes(digest, product->b, product->count / 4 * 8 * 128);
}

INLINE void multiply_panels_now(const struct emulator_mma *base)
{
    const struct emulated_mma *product = (const void *)base;
    float rows[2][64], *sums = product->sums;
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t k = 0; k < 64; k++)
            rows[r][k] = half_at(product->is_bf16, product->a,
                                 16 * (warp_index() % 4) + lane_index() / 4 + 8 * r, k);
    for (uint32_t j = 0; j < product->count / 4; j++)
        for (uint32_t c = 0; c < 2; c++)
            for (uint32_t k = 0; k < 64; k++) {
                float value = half_at(product->is_bf16, product->b,
                                      8 * j + 2 * (lane_index() % 4) + c, k);
                sums[4 * j + c] += rows[0][k] * value;
                sums[4 * j + 2 + c] += rows[1][k] * value;
            }
}
INLINE void multiply_held_now(const struct emulator_mma *base)
{
    const struct emulated_mma *product = (const void *)base;
    uint32_t all[WARP][8];
    emulator_warp_gather(product->words, all);
    for (uint32_t i = 0; i < product->count; i++)
        for (uint32_t k = 0; k < 32; k++) {
            const uint32_t *words = all[lane_index() / 4 * 4 + k % 8 / 2] + k / 16 * 4;
            uint16_t bits = (uint16_t)(words[i / 2 % 2 + 2 * (k % 16 / 8)] >> (16 * (k % 2)));
            product->sums[i] += f16_value(bits) *
                                half_at(false, product->b,
                                        i / 4 * 8 + 2 * (lane_index() % 4) + i % 2,
                                        product->from + k);
        }
}
INLINE void begin_panels(bool is_bf16, float *sums, uint32_t count, const uint8_t *a,
                         const uint8_t *b)
{
    struct emulated_mma product = {
        .base = { digest_product, multiply_panels_now, 0 },
        .sums = sums,
        .a = a,
        .b = b,
        .count = count,
        .is_bf16 = is_bf16,
    };
    emulator_mma_begin(&product.base, sizeof(product));
}
INLINE void warpgroup_multiply(bool is_bf16, float sums[WARPGROUP_SUMS], const SHARED uint8_t *a,
                               const SHARED uint8_t *b)
{
    begin_panels(is_bf16, sums, WARPGROUP_SUMS, a, b);
}
#define WARPGROUP_SUMS_32 32
INLINE void warpgroup_multiply_32(float sums[WARPGROUP_SUMS_32], const SHARED uint8_t *a,
                                  const SHARED uint8_t *b)
{
    begin_panels(false, sums, WARPGROUP_SUMS_32, a, b);
}
#define WARPGROUP_PLACE_BYTES 16u
INLINE uint64_t warpgroup_place(const SHARED uint8_t *panel)
{
    return (uint64_t)(uintptr_t)panel / WARPGROUP_PLACE_BYTES;
}
INLINE void begin_held(float *sums, uint32_t count, const uint32_t a[8], uint64_t place)
{
    uint32_t from = place * WARPGROUP_PLACE_BYTES % 128 ? 32 : 0;
    struct emulated_mma product = {
        .base = { digest_product, multiply_held_now, 0 },
        .sums = sums,
        .b = (const uint8_t *)(uintptr_t)(place * WARPGROUP_PLACE_BYTES) - 2 * from,
        .words = a,
        .count = count,
        .from = from,
    };
    emulator_mma_begin(&product.base, sizeof(product));
}
INLINE void warpgroup_multiply_held(float sums[WARPGROUP_SUMS_32], const uint32_t a[8],
                                    uint64_t place)
{
    begin_held(sums, WARPGROUP_SUMS_32, a, place);
}
INLINE void warpgroup_multiply_held_32(float sums[WARPGROUP_SUMS_32], const uint32_t a[8],
                                       uint64_t place)
{
    begin_held(sums, WARPGROUP_SUMS_32 / 2, a, place);
}
#define warpgroup_wait(pending) emulator_mma_wait(pending)
INLINE void warpgroup_publish(void)
{
}

#endif
#endif

/* half.c - f16 and bf16 to and from f32, in integer arithmetic.
 *
 * The results are those of the F16C instructions and of _Float16, on every machine: neither the
 * rounding mode nor flush-to-zero of the caller's thread can change them. f16 has 1 sign bit, 5
 * exponent bits with bias 15 and 10 mantissa bits; f32 has 8 with bias 127 and 23. */
#include "tensor/quant_impl.h"

#define F32_EXPONENT_MASK 0x7F800000u
#define F32_MANTISSA_MASK 0x007FFFFFu
#define F32_QUIET_BIT 0x00400000u
#define F16_INFINITY_BITS 0x7C00u
#define F16_QUIET_BIT 0x0200u

/* Bits of f32 2^-14, the smallest normal f16. */
#define F16_NORMAL_START 0x38800000u
/* Bits of f32 65520, halfway between 65504 and what would be 65536: ties to even, so infinity. */
#define F16_OVERFLOW_START 0x477FF000u
/* Exponent bias of f32 minus that of f16. */
#define BIAS_DIFFERENCE 112u
/* Mantissa bits of f32 minus those of f16. */
#define MANTISSA_DIFFERENCE 13u

/* mantissa * 2^-24, mantissa in 1..1023, as f32 bits: the top bit becomes the hidden one. */
static uint32_t normalise_subnormal(uint32_t mantissa)
{
    uint32_t exponent = BIAS_DIFFERENCE + 1;
    while (!(mantissa & 0x400u)) {
        mantissa <<= 1;
        exponent--;
    }
    return exponent << 23 | (mantissa & 0x3FFu) << MANTISSA_DIFFERENCE;
}

float f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = bits >> 10 & 31u;
    uint32_t mantissa = bits & 0x3FFu;
    uint32_t magnitude;
    if (exponent == 31 && mantissa != 0)
        magnitude = F32_EXPONENT_MASK | F32_QUIET_BIT | mantissa << MANTISSA_DIFFERENCE;
    else if (exponent == 31)
        magnitude = F32_EXPONENT_MASK;
    else if (exponent != 0)
        magnitude = (exponent + BIAS_DIFFERENCE) << 23 | mantissa << MANTISSA_DIFFERENCE;
    else if (mantissa != 0)
        magnitude = normalise_subnormal(mantissa);
    else
        magnitude = 0;
    return f32_from_bits(sign | magnitude);
}

/* Drops the lowest shift bits of value, 1 <= shift <= 31, to nearest, ties to even. */
static uint32_t shift_rounded(uint32_t value, uint32_t shift)
{
    uint32_t kept = value >> shift;
    uint32_t half = 1u << (shift - 1);
    uint32_t dropped = value & ((half << 1) - 1);
    return kept + (dropped > half || (dropped == half && (kept & 1)));
}

/* magnitude: f32 bits below 2^-14. The result counts units of 2^-24; 1024 of them are the smallest
 * normal f16, whose bits are 1024 as well, so a carry needs no care. */
static uint32_t round_to_subnormal(uint32_t magnitude)
{
    uint32_t exponent = magnitude >> 23;
    uint32_t mantissa = (magnitude & F32_MANTISSA_MASK) | 0x00800000u;
    /* The value is mantissa * 2^(exponent - 150), so the shift to units of 2^-24 is 126 - exponent;
     * from 25 on every value is below half a unit. */
    uint32_t shift = 126 - exponent;
    return shift >= 25 ? 0 : shift_rounded(mantissa, shift);
}

uint16_t f16_from_f32(float value)
{
    uint32_t bits = f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    uint32_t half;
    if (magnitude > F32_EXPONENT_MASK)
        half = F16_INFINITY_BITS | F16_QUIET_BIT |
               (magnitude & F32_MANTISSA_MASK) >> MANTISSA_DIFFERENCE;
    else if (magnitude >= F16_OVERFLOW_START)
        half = F16_INFINITY_BITS;
    else if (magnitude >= F16_NORMAL_START)
        half = shift_rounded(magnitude - (BIAS_DIFFERENCE << 23), MANTISSA_DIFFERENCE);
    else
        half = round_to_subnormal(magnitude);
    return (uint16_t)(sign | half);
}

float bf16_to_f32(uint16_t bits)
{
    return f32_from_bits((uint32_t)bits << 16);
}

uint16_t bf16_from_f32(float value)
{
    uint32_t bits = f32_bits(value);
    if ((bits & 0x7FFFFFFFu) > F32_EXPONENT_MASK)
        return (uint16_t)(bits >> 16 | 0x40u); /* quiet, so that dropping bits cannot make it inf */
    return (uint16_t)shift_rounded(bits, 16);
}

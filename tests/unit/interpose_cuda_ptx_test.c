/* interpose_cuda_ptx_test.c - what PTX shows of a kernel's parameters: never less than it does. */
#include "test.h"

#include "interpose/cuda/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT = 0, R = KERNEL_READS, W = KERNEL_WRITES, RW = KERNEL_READS | KERNEL_WRITES };

static struct kernel_uses got;
static char got_name[64];
static size_t got_count;

static void found(void *context, const char *name, size_t name_bytes,
                  const struct kernel_uses *uses)
{
    (void)context;
    got = *uses;
    snprintf(got_name, sizeof(got_name), "%.*s", (int)name_bytes, name);
    got_count++;
}

static void read_text(const char *text)
{
    got_count = 0;
    ptx_read(text, strlen(text), found, NULL);
}

#define HEAD                                                                                       \
    ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(\n"                          \
    "\t.param .u64 .ptr .global .align 4 k_param_0,\n\t.param .u64 k_param_1,\n"                   \
    "\t.param .u32 k_param_2,\n\t.param .align 8 .b8 k_param_3[24]\n)\n.maxntid 256, 1, 1\n{\n"    \
    "\t.reg .b64 %rd<9>;\n"
#define LOADED                                                                                     \
    "ld.param.u64 %rd1, [k_param_0];\n\tld.param.u64 %rd2, [k_param_1];\n"                         \
    "\tld.param.u32 %r1, [k_param_2];\n"

/* What becomes of words: parameter 0, parameter 1, parameter 2, the three of parameter 3. */
static const struct {
    const char *name, *body;
    uint8_t uses[6];
} rows[] = {
    { "nothing", "ret;", { NOT, NOT, NOT, NOT, NOT, NOT } },
    { "copied",
      "cvta.to.global.u64 %rd3, %rd1; ld.global.nc.f32 %f1, [%rd2+4]; st.global.f32 [%rd3], %f1;",
      { W, R, NOT, NOT, NOT, NOT } },
    { "offset added",
      "mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; ld.global.f32 %f1, [%rd5];",
      { R, NOT, R, NOT, NOT, NOT } },
    { "against the order of the text",
      "$L1: st.global.u32 [%rd5], 0; mov.u64 %rd5, %rd4; mov.u64 %rd4, %rd2; bra $L1;",
      { NOT, W, NOT, NOT, NOT, NOT } },
    { "one of two",
      "setp.gt.s32 %p1, %r1, 3; selp.b64 %rd3, %rd1, %rd2, %p1; st.u32 [%rd3], 1;",
      { W, W, W, NOT, NOT, NOT } },
    { "stored", "st.global.u64 [%rd1], %rd2;", { W, RW, NOT, NOT, NOT, NOT } },
    { "spilled",
      "st.local.u64 [%rd7], %rd2; ld.local.u64 %rd8, [%rd7]; st.u32 [%rd8], 1;",
      { NOT, RW, NOT, NOT, NOT, NOT } },
    { "added to",
      "atom.global.add.u32 %r2, [%rd1], 1; red.global.add.u32 [%rd2], 1;",
      { RW, RW, NOT, NOT, NOT, NOT } },
    { "given to a function",
      "{ .param .b64 param0; st.param.b64 [param0+0], %rd1; call.uni f, (param0); }",
      { RW, NOT, NOT, NOT, NOT, NOT } },
    { "an instruction to come", "frobnicate.u64 [%rd1], %rd2;", { RW, RW, NOT, NOT, NOT, NOT } },
    { "copied in the background",
      "cp.async.ca.shared.global [%r9], [%rd2], 16;",
      { NOT, R, NOT, NOT, NOT, NOT } },
    { "copied back in the background",
      "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r9], 16;",
      { RW, NOT, NOT, NOT, NOT, NOT } },
    { "halves",
      "mov.b64 {%r2, %r3}, %rd1; mov.b64 %rd3, {%r2, %r3}; st.u32 [%rd3], 1;",
      { W, NOT, NOT, NOT, NOT, NOT } },
    { "through lanes",
      "shfl.sync.idx.b32 %r2|%p1, %r1, 0, 31, -1; cvt.u64.u32 %rd3, %r2; st.u8 [%rd3], 1;",
      { NOT, NOT, W, NOT, NOT, NOT } },
    { "of a struct",
      "ld.param.u64 %rd3, [k_param_3]; ld.param.u64 %rd4, [k_param_3+16]; ld.u32 %r2, [%rd3]; "
      "st.u32 [%rd4], %r2;",
      { NOT, NOT, NOT, R, NOT, W } },
    { "of a struct, two at once",
      "ld.param.v2.u64 {%rd3, %rd4}, [k_param_3+8]; st.u32 [%rd4], 1;",
      { NOT, NOT, NOT, NOT, NOT, W } },
    { "of a struct, by its address",
      "mov.b64 %rd3, k_param_3; mov.u64 %rd4, %rd3; ld.param.u64 %rd5, [%rd4+8]; ld.u32 %r2, "
      "[%rd5];",
      { NOT, NOT, NOT, NOT, R, NOT } },
    { "of a struct, by its address, against the order of the text",
      "$L1: st.u32 [%rd5], 1; ld.param.u64 %rd5, [%rd4+8]; mov.u64 %rd4, %rd3; mov.b64 %rd3, "
      "k_param_3; bra $L1;",
      { NOT, NOT, NOT, NOT, W, NOT } },
    { "of a struct, its address moved on",
      "mov.b64 %rd3, k_param_3; add.s64 %rd4, %rd3, 8; ld.param.u64 %rd5, [%rd4]; ld.u32 %r2, "
      "[%rd5];",
      { NOT, NOT, NOT, RW, RW, RW } },
    { "of a struct, half a word",
      "ld.param.u32 %r2, [k_param_3+12]; cvt.u64.u32 %rd3, %r2; st.u8 [%rd3], 1;",
      { NOT, NOT, NOT, NOT, W, NOT } },
    { "of a struct, past its end",
      "ld.param.u64 %rd3, [k_param_3+24];",
      { NOT, NOT, NOT, RW, RW, RW } },
    { "registers without a mark",
      "{ .reg .b64 mine; mov.u64 mine, %rd1; st.u32 [mine], 1; }",
      { W, NOT, NOT, NOT, NOT, NOT } },
    { "after a predicate", "@!%p1 st.global.u32 [%rd1], 1;", { W, NOT, NOT, NOT, NOT, NOT } },
    { "in comments and lines",
      "// st.u32 [%rd1], 1;\n/* st.u32 [%rd1], 1; */ .loc 1 2 3\n.pragma \"st.u32 [%rd1], 1;\";",
      { NOT, NOT, NOT, NOT, NOT, NOT } },
};

static void words_are_followed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[4096];
        snprintf(text, sizeof(text), "%s%s%s\n}\n", HEAD, LOADED, rows[i].body);
        read_text(text);
        if (got_count != 1 || strcmp(got_name, "k") != 0)
            fail_msg("%s: expected one kernel, found %zu", rows[i].name, got_count);
        assert_int_equal(got.parameter_count, 4);
        assert_int_equal(got.sizes[2], 4);
        assert_int_equal(got.sizes[3], 24);
        assert_int_equal(got.words[3], 3);
        for (size_t j = 0; j < 6; j++)
            if (got.uses[j] != rows[i].uses[j])
                fail_msg("%s: word %zu: expected %d, found %d", rows[i].name, j, rows[i].uses[j],
                         got.uses[j]);
    }
}

/* Nothing is said of a kernel that is not understood; the next one is read. */
static void what_is_not_understood_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
    } texts[] = {
        { ".entry a() { ret; }\n.entry b ( .param .u64 p ) { ret; }", 2 },
        { ".entry a { ret; }", 1 },
        { ".entry a;\n.entry b() { ret; }", 1 },
        { ".entry a(.param .texref t) { ret; }\n.entry b() { ret; }", 1 },
        { ".entry a(.param .b8 p[9999999999]) { ret; }", 0 },
        { ".entry a(.param .b8 p[2056]) { ret; }", 0 },
        { ".entry a(.param .u64) { ret; }", 1 },
        { ".entry a(.param .u64 p, ) { ret; }", 1 },
        { ".entry a(.param .u64 p", 0 },
        { ".entry a(.param .u64 p) { {", 0 },
        { ".entry a(", 0 },
        { ".entry ", 0 },
        { ".func f() { ret; }", 0 },
        { "", 0 },
        { "/* .entry a() { ret; }", 0 },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        read_text(texts[i].text);
        if (got_count != texts[i].count)
            fail_msg("\"%s\": expected %zu kernels, found %zu", texts[i].text, texts[i].count,
                     got_count);
    }
}

/* More names, or a longer chain against the order of the text, than are followed. */
static void bounds(void **state)
{
    (void)state;
    static char text[1 << 20];
    size_t at = (size_t)snprintf(text, sizeof(text), "%s", HEAD);
    for (int i = 0; i < 40000; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "mov.u64 n%d, 0;\n", i);
    snprintf(text + at, sizeof(text) - at, "}\n.entry b() { ret; }");
    read_text(text);
    assert_int_equal(got_count, 1);
    assert_string_equal(got_name, "b");
    for (int links = 10; links <= 100; links += 90) {
        at = (size_t)snprintf(text, sizeof(text), "%s", HEAD);
        for (int i = links; i > 0; i--)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "mov.u64 n%d, n%d;\n", i, i - 1);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "ld.param.u64 n0, [k_param_0];\n");
        snprintf(text + at, sizeof(text) - at, "st.u32 [n%d], 1; }", links);
        read_text(text);
        assert_int_equal(got_count, links == 10 ? 1 : 0);
        if (got_count)
            assert_int_equal(got.uses[0], W);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_followed),
        cmocka_unit_test(what_is_not_understood_is_left_out),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

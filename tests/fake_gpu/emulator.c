/* emulator.c - see emulator.h. One thread of the host at a time runs grids. */
#define _GNU_SOURCE
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define WARP 32u
#define THREAD_LIMIT 1024u
#define STACK_BYTES 65536u
/* Where stacks begin differs by this: beginning all at the same place of a page, they would share a
 * few lines of the caches, and every switch would miss. */
#define STAGGER_BYTES 320u
#define STAGGERS 64u
#define COPY_LIMIT 256u
#define PRODUCT_LIMIT 4u
#define PRODUCT_BYTES 128u
#define SHARED_LIMIT 232448u
#define SHARED_POISON 0xEE

enum fiber_state { FIBER_READY, FIBER_IN_BLOCK_SYNC, FIBER_IN_WARP_SYNC, FIBER_DONE };

struct copy {
    uint8_t *target;
    const uint8_t *source;
    uint32_t bytes, group;
};

struct fiber {
    struct emulator_view view;
    bool waited;    /* came to early_wait */
    uint32_t swaps; /* warp operations so far: which half of the warp's slots is used */
    uint32_t group; /* of copies, being filled */
    uint32_t copy_count;
    struct copy copies[COPY_LIMIT];
    uint32_t product_count;
    _Alignas(16) uint8_t products[PRODUCT_LIMIT][PRODUCT_BYTES];
};

static struct fiber fibers[THREAD_LIMIT];
/* Apart from the rest, so that looking at all of them is quick. */
static uint8_t states[THREAD_LIMIT];       /* enum fiber_state */
static void *stack_pointers[THREAD_LIMIT]; /* while they do not run */
static uint32_t warp_slots[THREAD_LIMIT / WARP][2][WARP];
static uint32_t warp_words[THREAD_LIMIT / WARP][2][WARP][8];
static struct fiber *now;
static void *scheduler_stack;
static uint8_t *stacks;
/* Not on the heap: a kernel that faults is left by a jump. */
static _Alignas(1024) uint8_t shared[SHARED_LIMIT];
static emulated_kernel kernel_now;
static const struct gpu_call *call_now;
static bool only_early; /* no further than early_wait */
static uint64_t early_digest;

static float f16_values[65536];
const float *emulator_f16_values = f16_values;

static void fill_f16_values(void)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint32_t exponent = bits >> 10 & 31u, fraction = bits & 1023u;
        float magnitude = exponent == 0    ? ldexpf((float)fraction, -24)
                          : exponent == 31 ? (fraction ? NAN : INFINITY)
                                           : ldexpf((float)(fraction | 1024u), (int)exponent - 25);
        f16_values[bits] = bits & 0x8000u ? -magnitude : magnitude;
    }
}

static void fail(const char *words)
{
    fprintf(stderr, "emulated kernel: %s (block %u,%u thread %u)\n", words, now->view.block_x,
            now->view.block_y, now->view.thread);
    abort();
}

/* ---- Switching ------------------------------------------------------------------------------ */

static void run_fiber(void);

#if defined(__x86_64__)

/* Saves what a function must keep, changes stacks, restores. */
void emulator_switch(void **save, void *load);
__asm__(".text\n.globl emulator_switch\n.hidden emulator_switch\nemulator_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

static void *prepare_stack(uint8_t *stack, size_t bytes)
{
    uint64_t *top = (uint64_t *)(void *)(stack + bytes);
    *--top = 0;
    *--top = (uint64_t)(uintptr_t)run_fiber; /* where the first switch returns to */
    for (int i = 0; i < 6; i++)
        *--top = 0;
    return top;
}

#else

/* Slower: through the library, a context for each stack. */
static void emulator_switch(void **save, void *load)
{
    ucontext_t here;
    *save = &here;
    swapcontext(&here, load);
}

static void *prepare_stack(uint8_t *stack, size_t bytes)
{
    ucontext_t *context = (ucontext_t *)(void *)stack;
    getcontext(context);
    context->uc_stack.ss_sp = stack + sizeof(*context);
    context->uc_stack.ss_size = bytes - sizeof(*context);
    context->uc_link = NULL;
    makecontext(context, run_fiber, 0);
    return context;
}

#endif

static bool all_in_warp_sync(uint32_t first)
{
    for (uint32_t i = first; i < first + WARP; i++)
        if (states[i] != FIBER_IN_WARP_SYNC)
            return false;
    return true;
}

/* On with the warp's next thread, or with the first when all came to the same operation. The switch
 * is a direct one: most of a kernel's time goes into these, and by way of the scheduler it is two.
 */
static void yield(enum fiber_state state)
{
    uint32_t thread = now->view.thread, first = thread - thread % WARP, next = thread + 1;
    states[thread] = (uint8_t)state;
    while (next < first + WARP && states[next] != FIBER_READY)
        next++;
    if (next == first + WARP && all_in_warp_sync(first)) {
        memset(&states[first], FIBER_READY, WARP);
        next = first;
    }
    if (next == first + WARP) {
        emulator_switch(&stack_pointers[thread], scheduler_stack);
    } else {
        now = &fibers[next];
        emulator_switch(&stack_pointers[thread], stack_pointers[next]);
    }
}

static void run_fiber(void)
{
    kernel_now(*call_now);
    if (only_early)
        fail("a thread ended without waiting for the kernel before it");
    if (now->product_count)
        fail("a thread ended with multiply-adds under way");
    yield(FIBER_DONE);
    abort();
}

/* ---- What kernels call ---------------------------------------------------------------------- */

const struct emulator_view *emulator_view(void)
{
    return &now->view;
}

void emulator_block_sync(void)
{
    yield(FIBER_IN_BLOCK_SYNC);
}

void emulator_warp_sync(void)
{
    now->swaps++;
    yield(FIBER_IN_WARP_SYNC);
}

uint32_t emulator_warp_swap(uint32_t value, uint32_t distance)
{
    uint32_t lane = now->view.thread % WARP;
    uint32_t(*slots)[WARP] = &warp_slots[now->view.thread / WARP][now->swaps++ % 2];
    (*slots)[lane] = value;
    yield(FIBER_IN_WARP_SYNC);
    return (*slots)[lane ^ distance];
}

uint32_t emulator_warp_pick(uint32_t value, uint32_t lane)
{
    uint32_t(*slots)[WARP] = &warp_slots[now->view.thread / WARP][now->swaps++ % 2];
    (*slots)[now->view.thread % WARP] = value;
    yield(FIBER_IN_WARP_SYNC);
    return (*slots)[lane % WARP];
}

void emulator_warp_gather(const uint32_t words[8], uint32_t all[32][8])
{
    uint32_t(*slots)[WARP][8] = &warp_words[now->view.thread / WARP][now->swaps++ % 2];
    memcpy((*slots)[now->view.thread % WARP], words, sizeof((*slots)[0]));
    yield(FIBER_IN_WARP_SYNC);
    memcpy(all, *slots, sizeof(*slots));
}

void emulator_copy_async(uint8_t *target, const uint8_t *source, uint32_t bytes)
{
    if (now->copy_count == COPY_LIMIT)
        fail("too many background copies");
    if (((uintptr_t)target | (uintptr_t)source) % bytes)
        fail("a background copy that is not aligned to its bytes");
    now->copies[now->copy_count++] = (struct copy){ target, source, bytes, now->group };
    memset(target, SHARED_POISON, bytes);
}

void emulator_copy_commit(void)
{
    now->group++;
}

void emulator_copy_wait(uint32_t pending)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < now->copy_count; i++) {
        struct copy *copy = &now->copies[i];
        if (now->group - copy->group > pending)
            memcpy(copy->target, copy->source, copy->bytes);
        else
            now->copies[kept++] = *copy;
    }
    now->copy_count = kept;
}

void emulator_early_wait(void)
{
    now->waited = true;
    if (only_early)
        yield(FIBER_DONE);
}

void emulator_note_read(const void *bytes)
{
    uint64_t words[2];
    if (now->waited || now->view.block_x || now->view.block_y)
        return;
    memcpy(words, bytes, sizeof(words));
    for (uint32_t i = 0; i < 2; i++)
        early_digest += device_digest_word(words[i], early_digest + now->view.thread);
}

/* ---- Multiply-adds under way ----------------------------------------------------------------- */

void emulator_mma_begin(struct emulator_mma *product, uint32_t bytes)
{
    if (now->product_count == PRODUCT_LIMIT || bytes > PRODUCT_BYTES)
        fail("too many multiply-adds under way");
    product->began_with = product->digest(product);
    memcpy(now->products[now->product_count++], product, bytes);
}

void emulator_mma_wait(uint32_t pending)
{
    while (now->product_count > pending) {
        struct emulator_mma *product = (void *)now->products[0];
        if (product->digest(product) != product->began_with)
            fail("an operand of a multiply-add changed before it was waited for");
        product->multiply(product);
        now->product_count--;
        memmove(now->products[0], now->products[1], (size_t)now->product_count * PRODUCT_BYTES);
    }
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* Runs a warp until none of its threads can go on: each is in a barrier of the block, or done. */
static void run_warp(uint32_t first)
{
    uint32_t waiting = 0, done = 0;
    for (uint32_t i = first; i < first + WARP; i++)
        if (states[i] == FIBER_READY) { /* it and those after it run, until none can */
            now = &fibers[i];
            emulator_switch(&scheduler_stack, stack_pointers[i]);
        }
    for (uint32_t i = first; i < first + WARP; i++) {
        waiting += states[i] == FIBER_IN_WARP_SYNC;
        done += states[i] == FIBER_DONE;
    }
    now = &fibers[first];
    if (waiting && done)
        fail("a warp operation after some of its threads ended");
}

/* Lets threads go on if all came to a barrier of the block, those that ended left aside; false if
 * none did. */
static bool release_block(uint32_t threads)
{
    uint32_t waiting = 0, done = 0;
    for (uint32_t i = 0; i < threads; i++) {
        waiting += states[i] == FIBER_IN_BLOCK_SYNC;
        done += states[i] == FIBER_DONE;
    }
    if (waiting == 0 || waiting + done < threads)
        return false;
    for (uint32_t i = 0; i < threads; i++)
        if (states[i] == FIBER_IN_BLOCK_SYNC)
            states[i] = FIBER_READY;
    return true;
}

static void run_block(uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++)
        stack_pointers[i] = prepare_stack(stacks + (size_t)i * STACK_BYTES,
                                          STACK_BYTES - i % STAGGERS * STAGGER_BYTES);
    uint32_t done = 0;
    while (done < threads) {
        for (uint32_t first = 0; first < threads; first += WARP)
            run_warp(first);
        done = 0;
        for (uint32_t i = 0; i < threads; i++)
            done += states[i] == FIBER_DONE;
        if (done < threads && !release_block(threads)) {
            now = &fibers[0];
            fail("threads wait for each other at different places");
        }
    }
}

static void prepare_fibers(uint32_t x, uint32_t y, uint32_t grid_x, uint32_t threads,
                           uint32_t shared_bytes)
{
    memset(shared, SHARED_POISON, shared_bytes);
    for (uint32_t i = 0; i < threads; i++) {
        struct fiber *fiber = &fibers[i];
        states[i] = FIBER_READY;
        fiber->waited = false;
        fiber->swaps = fiber->group = fiber->copy_count = fiber->product_count = 0;
        fiber->view = (struct emulator_view){ i, threads, x, y, grid_x, shared };
    }
}

static void prepare(emulated_kernel kernel, const struct gpu_call *call, uint32_t threads,
                    uint32_t shared_bytes)
{
    if (!stacks) {
        stacks = mmap(NULL, (size_t)THREAD_LIMIT * STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED)
            abort();
        fill_f16_values();
    }
    if (shared_bytes > sizeof(shared) || threads > THREAD_LIMIT || threads % WARP)
        abort();
    kernel_now = kernel;
    call_now = call;
    only_early = false; /* a fault may have left it so */
    early_digest = 0;
}

uint64_t emulator_run_early(emulated_kernel kernel, const struct gpu_call *call, uint32_t grid_x,
                            uint32_t threads, uint32_t shared_bytes)
{
    prepare(kernel, call, threads, shared_bytes);
    prepare_fibers(0, 0, grid_x, threads, shared_bytes);
    only_early = true;
    run_block(threads);
    only_early = false;
    return early_digest;
}

uint64_t emulator_run(emulated_kernel kernel, const struct gpu_call *call, uint32_t grid_x,
                      uint32_t grid_y, uint32_t threads, uint32_t shared_bytes)
{
    prepare(kernel, call, threads, shared_bytes);
    for (uint32_t y = 0; y < grid_y; y++) {
        for (uint32_t x = 0; x < grid_x; x++) {
            prepare_fibers(x, y, grid_x, threads, shared_bytes);
            run_block(threads);
        }
    }
    return early_digest;
}

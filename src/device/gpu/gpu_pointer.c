/* gpu_pointer.c - what the runtime's pointer attributes say of an address (options.ask_pointers).
 */
#include "device/gpu/gpu_impl.h"

#include <stdio.h>

/* How many bytes of [address, address + bytes) are memory of this device according to the runtime
 * (all, those up to the end of its range, or none), and what the rest is. False if the runtime
 * returns an error: a pending fault belongs to the call that made it, not to this query. */
static bool ask(struct gpu_device *gpu, uint64_t address, uint64_t bytes, uint64_t *ret_bytes,
                const char **ret_words)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_pointer first = { 0 }, last = { 0 };
    if (runtime->pointer_ask(runtime->self, address, &first) ||
        runtime->pointer_ask(runtime->self, address + bytes - 1, &last))
        return false;
    uint64_t left = first.range_bytes - (address - first.range_start);
    *ret_words = first.words;
    *ret_bytes = bytes;
    if (!first.is_memory) {
        *ret_bytes = 0;
    } else if (first.range_bytes && left < bytes) {
        *ret_bytes = left;
        *ret_words = "its allocation ends before";
    } else if (!last.is_memory || last.range_start != first.range_start) {
        *ret_bytes = bytes - 1;
        *ret_words = last.is_memory ? "another allocation at its end" : last.words;
    }
    return true;
}

void gpu_pointers_probe(struct gpu_device *gpu, const struct device_memory *memory)
{
    const char *unused;
    uint64_t bytes;
    if (!gpu->pointers_known && gpu->device.options.ask_pointers)
        gpu->pointers_known = ask(gpu, memory->address, memory->bytes, &bytes, &unused) &&
                              bytes == memory->bytes;
}

void gpu_memory_ask(struct device *device, uint64_t address, uint64_t bytes,
                    struct device_pointer_facts *ret_facts)
{
    struct gpu_device *gpu = gpu_of(device);
    const char *words = "";
    *ret_facts = (struct device_pointer_facts){ .asked = gpu->pointers_known };
    if (!ret_facts->asked)
        return;
    gpu_enter(gpu);
    ret_facts->asked = ask(gpu, address, bytes, &ret_facts->bytes, &words);
    /* A kernel queued earlier may have met the missing memory already. Then its fault is the first
     * symptom, and the call that asks now ends with the lost device. */
    if (ret_facts->asked && ret_facts->bytes < bytes)
        ret_facts->asked = !gpu_find_fault(gpu);
    snprintf(ret_facts->words, sizeof(ret_facts->words), "%s",
             ret_facts->bytes < bytes && words ? words : "");
}

/* hip_fault.h - what AMD's runtime below HIP (libhsa) reports when a memory fault happens: the page
 * and the reason. Registering for it also keeps that runtime from ending the process. */
#ifndef GRETA_DEVICE_HIP_HIP_FAULT_H
#define GRETA_DEVICE_HIP_HIP_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in the vendor's header; a test compares where that is installed. */
struct hsa_memory_fault {
    uint64_t agent;
    uint64_t address;
    uint32_t reasons; /* bits: see hip_fault.c */
};
struct hsa_event {
    int type; /* 0: a memory fault */
    union {
        struct hsa_memory_fault fault;
    } data;
};

/* Opens libhsa-runtime64 and registers for its events, once per process: the library keeps the
 * function's address forever. False if that fails; words says why. */
bool hip_fault_listen(char *words, size_t words_bytes);

/* The first fault that was reported so far; false if there is none. reason: "no page there". */
bool hip_fault_find(uint64_t *ret_address, char *reason, size_t reason_bytes);

#endif

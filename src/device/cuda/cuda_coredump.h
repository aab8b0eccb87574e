/* cuda_coredump.h - GPU core dumps of a fault: part of device/cuda. */
#ifndef GRETA_DEVICE_CUDA_CUDA_COREDUMP_H
#define GRETA_DEVICE_CUDA_CUDA_COREDUMP_H

#include "base/dynlib.h"

/* True if the driver will write one to path. Call it after cuInit, before the context is made. */
bool cuda_coredump_arm(struct dynlib *library, const char *path);

#endif

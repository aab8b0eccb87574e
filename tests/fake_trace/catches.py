"""catches.py - a Python program over the driver: a kernel fails, the program catches the error, prints
it with its traceback and exits with 7."""

import ctypes
import sys
import traceback


class DriverError(Exception):
    pass


def check(code, name):
    if code:
        raise DriverError(f"{name} returned {code}")


def main():
    driver = ctypes.CDLL("libcuda.so.1")
    pinned, memory, kernel = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    check(driver.cuInit(0), "cuInit")
    check(driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)), "cuMemAlloc")
    check(driver.cuMemHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(4096), 0), "cuMemHostAlloc")
    check(driver.cuModuleGetFunction(ctypes.byref(kernel), None, b"out_of_bounds"), "cuModuleGetFunction")
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
    check(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, arguments, None), "cuLaunchKernel")
    check(driver.cuMemcpyDtoH_v2(pinned, memory, ctypes.c_size_t(4096)), "cuMemcpyDtoH")


try:
    main()
except DriverError as error:
    traceback.print_exc()
    print(f"caught: {error}")
    sys.exit(7)

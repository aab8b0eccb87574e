# A CUDA driver and a CUPTI for greta trace: the driver reports its calls as CUPTI does. Like
# the library under test they are never sanitized: the traced program is not.
foreach(driver greta_fake_trace_driver greta_fake_trace_driver_old)
    add_library(${driver} SHARED tests/fake_trace/fake_driver.c
                tests/fake_trace/fake_driver_memory.c tests/fake_trace/fake_kernels.c
                tests/fake_trace/fake_kinds.c tests/fake_trace/fake_proc.c tests/fake_trace/fake_shapes.c
                tests/fake_trace/fake_late.c tests/fake_trace/fake_dump.c tests/support/dump_build.c tests/support/elf_build.c
                src/base/status.c src/base/bytes.c src/base/text.c)
    target_include_directories(${driver} PRIVATE tests/support)
    target_compile_options(${driver} PRIVATE -fvisibility=hidden)
    # Like the real driver's, its functions call each other and not what was loaded before it.
    target_link_options(${driver} PRIVATE -Wl,-Bsymbolic)
    set_target_properties(${driver} PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
endforeach()
set_target_properties(greta_fake_trace_driver PROPERTIES
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
# One of CUDA 11: it has fewer functions.
target_compile_definitions(greta_fake_trace_driver_old PRIVATE FAKE_OLD)
set_target_properties(greta_fake_trace_driver_old PROPERTIES
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace_old)
add_library(greta_fake_trace_cupti SHARED tests/fake_trace/fake_cupti.c)
set_target_properties(greta_fake_trace_cupti PROPERTIES OUTPUT_NAME cupti SOVERSION 13
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
set(scenes tests/fake_trace/program.c tests/fake_trace/scenes.c tests/fake_trace/scenes_order.c
    tests/fake_trace/scenes_threads.c tests/fake_trace/scenes_contents.c
    tests/fake_trace/scenes_ptx.c tests/fake_trace/scenes_ranges.c tests/fake_trace/scenes_traps.c
    tests/fake_trace/scenes_traps_kernels.c tests/fake_trace/scenes_traps_process.c
    tests/fake_trace/scenes_dump.c)
add_executable(trace_program ${scenes})
# The same without being linked with the driver; and wrapping dlsym.
add_executable(trace_found ${scenes} tests/fake_trace/routes.c)
add_executable(trace_own_dlsym ${scenes} tests/fake_trace/routes.c tests/fake_trace/own_dlsym.c)
add_executable(trace_plain tests/fake_trace/plain.c)
add_library(greta_fake_trace_shim SHARED tests/fake_trace/shim.c)
set_target_properties(greta_fake_trace_shim PROPERTIES OUTPUT_NAME shim
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
set(trace_programs trace_program trace_found trace_own_dlsym trace_plain)
find_library(GRETA_STATIC_LIBC libc.a)
if(GRETA_STATIC_LIBC)
    add_executable(trace_static tests/fake_trace/static.c)
    target_link_options(trace_static PRIVATE -static)
    list(APPEND trace_programs trace_static)
endif()
set_target_properties(${trace_programs} PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
foreach(target greta_fake_trace_driver greta_fake_trace_driver_old greta_fake_trace_cupti
        greta_fake_trace_shim ${trace_programs})
    target_include_directories(${target} PRIVATE src)
    target_compile_options(${target} PRIVATE -fno-sanitize=all -g -O1)
    target_link_options(${target} PRIVATE -fno-sanitize=all)
    target_link_libraries(${target} PRIVATE greta_warnings)
endforeach()
target_link_libraries(greta_fake_trace_driver PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
target_link_libraries(greta_fake_trace_driver_old PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
target_link_libraries(greta_fake_trace_cupti PRIVATE greta_fake_trace_driver)
target_link_libraries(trace_program PRIVATE greta_fake_trace_driver Threads::Threads)
target_link_libraries(trace_found PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(trace_own_dlsym PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(trace_plain PRIVATE ${CMAKE_DL_LIBS})
target_link_libraries(greta_fake_trace_shim PRIVATE ${CMAKE_DL_LIBS})

# The preload library over a libamdhip64 that only answers, and over one that has next to nothing.
# Like the library the program is never sanitized, so there is none where all others are.
if(NOT GRETA_SANITIZE AND NOT GRETA_FUZZ)
    foreach(version now old)
        add_library(greta_fake_hip_${version} SHARED tests/fake_trace/fake_hip.c)
        set_target_properties(greta_fake_hip_${version} PROPERTIES OUTPUT_NAME amdhip64
            LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_hip_${version})
        target_include_directories(greta_fake_hip_${version} PRIVATE src tests/fake_trace)
        target_link_libraries(greta_fake_hip_${version} PRIVATE greta_warnings)
    endforeach()
    target_compile_definitions(greta_fake_hip_old PRIVATE FAKE_HIP_OLD)
    foreach(name hip_calls_test hip_work_test)
        add_executable(${name} tests/fake_trace/${name}.c)
        target_include_directories(${name} PRIVATE src tests/fake_trace)
        target_link_libraries(${name} PRIVATE greta_fake_hip_now greta_event greta_test_support
                              greta_warnings)
        add_dependencies(${name} greta_fake_hip_old greta_trace_hip)
    endforeach()
    foreach(row "hip_calls_now;hip_calls_test;now" "hip_calls_old;hip_calls_test;old"
                "hip_work_now;hip_work_test;now")
        list(GET row 0 name)
        list(GET row 1 program)
        list(GET row 2 version)
        add_test(NAME trace/${name} COMMAND ${program} ${version})
        set_tests_properties(trace/${name} PROPERTIES TIMEOUT 60 ENVIRONMENT
            "LD_PRELOAD=$<TARGET_FILE:greta_trace_hip>;LD_LIBRARY_PATH=$<TARGET_FILE_DIR:greta_fake_hip_${version}>")
    endforeach()
endif()

# Our own declarations of CUPTI's structs and of the driver's functions against the toolkit's, where
# there is one.
find_path(GRETA_CUPTI_INCLUDE cupti.h PATHS /usr/local/cuda/include
          /usr/local/cuda/extras/CUPTI/include)
if(GRETA_CUPTI_INCLUDE)
    add_executable(cupti_layout_test tests/tools/cupti_layout_test.c)
    target_include_directories(cupti_layout_test SYSTEM PRIVATE ${GRETA_CUPTI_INCLUDE})
    target_include_directories(cupti_layout_test PRIVATE src)
    add_test(NAME source/cupti_layout COMMAND cupti_layout_test)
    add_executable(cuda_signatures_test tests/tools/cuda_signatures_test.c tests/tools/cuda_types.c)
    target_include_directories(cuda_signatures_test SYSTEM PRIVATE ${GRETA_CUPTI_INCLUDE})
    target_include_directories(cuda_signatures_test PRIVATE src)
    add_test(NAME source/cuda_signatures COMMAND cuda_signatures_test)
endif()

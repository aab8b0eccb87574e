# A libcuda.so.1 that runs the kernels on a processor, so that the CUDA backend and every kernel are
# tested without a GPU. It needs the PTX of a real build, whose entries it looks for.
if(greta_kernel_count GREATER 0)
    # Like the kernels it is the same in every build, but for the one that counts their lines.
    get_filename_component(made ${greta_kernel_folder} DIRECTORY)
    if(GRETA_GPU_KERNELS_MADE AND EXISTS ${made}/fake_gpu/libcuda.so.1 AND NOT GRETA_COVERAGE)
        file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/fake_gpu)
        file(CREATE_LINK ${made}/fake_gpu ${CMAKE_BINARY_DIR}/fake_gpu SYMBOLIC)
    else()
        if(IS_SYMLINK ${CMAKE_BINARY_DIR}/fake_gpu) # of another build, which must keep its own
            file(REMOVE ${CMAKE_BINARY_DIR}/fake_gpu)
        endif()
        add_library(greta_fake_cuda SHARED tests/fake_gpu/adverse.c tests/fake_gpu/emulator.c
                    tests/fake_gpu/fake_cuda.c tests/fake_gpu/fake_memory.c tests/fake_gpu/fake_work.c
                    tests/fake_gpu/kernels.c tests/fake_gpu/late.c tests/fake_gpu/fake_dump.c
                    tests/support/dump_build.c tests/support/elf_build.c
                    src/base/status.c src/base/bytes.c src/base/text.c)
        set_target_properties(greta_fake_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                              LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_gpu)
        target_include_directories(greta_fake_cuda PRIVATE src tests/fake_gpu tests/support)
        # Fibers change stacks under a sanitizer's feet; kernels must not be contracted.
        target_compile_options(greta_fake_cuda PRIVATE -fvisibility=hidden -ffp-contract=off
                               -fno-sanitize=all -O2)
        target_link_options(greta_fake_cuda PRIVATE -fno-sanitize=all)
        target_link_libraries(greta_fake_cuda PRIVATE greta_warnings m)
    endif()
    if(NOT GRETA_GPU_KERNELS_MADE) # who made them looks at them
        find_program(GRETA_GPU_READELF llvm-readelf-19 REQUIRED)
        add_test(NAME source/kernel_metadata
                 COMMAND bash ${CMAKE_SOURCE_DIR}/tests/tools/kernel_metadata_test.sh
                         ${greta_kernel_folder} ${CMAKE_SOURCE_DIR} ${GRETA_GPU_READELF}
                         ${GRETA_GPU_PTXAS})
    endif()
    # A libamdhip64.so over libcuda: the HIP backend, unchanged, runs on what CUDA's runs on.
    add_library(greta_hip_over_cuda SHARED tests/hip_over_cuda/over_device.c
                tests/hip_over_cuda/over_kernel.c tests/hip_over_cuda/over_memory.c
                tests/hip_over_cuda/over_stream.c ${greta_codes})
    set_target_properties(greta_hip_over_cuda PROPERTIES OUTPUT_NAME amdhip64
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/hip_over_cuda)
    target_include_directories(greta_hip_over_cuda PRIVATE src tests/hip_over_cuda)
    # Programs that are not sanitized load it too.
    target_compile_options(greta_hip_over_cuda PRIVATE -fvisibility=hidden -fno-sanitize=all)
    target_link_options(greta_hip_over_cuda PRIVATE -fno-sanitize=all -Wl,-z,defs
        -Wl,--version-script=${CMAKE_SOURCE_DIR}/tests/hip_over_cuda/exports.map)
    target_link_libraries(greta_hip_over_cuda PRIVATE greta_warnings ${CMAKE_DL_LIBS})

    # A HIP program to trace, linked with that library and with the vendor's where it is installed.
    find_library(GRETA_HIP_LIBRARY amdhip64 PATHS $ENV{ROCM_PATH}/lib /opt/rocm/lib)
    if(GRETA_HIP_INCLUDE)
        set(hip_program_over greta_hip_over_cuda)
        set(hip_program_vendor ${GRETA_HIP_LIBRARY})
        foreach(name hip_program_over hip_program_vendor)
            if(${name})
                add_executable(${name} tests/hip_over_cuda/program.c)
                set_target_properties(${name} PROPERTIES
                                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/hip_program)
                target_include_directories(${name} SYSTEM PRIVATE ${GRETA_HIP_INCLUDE})
                target_include_directories(${name} PRIVATE src)
                target_compile_options(${name} PRIVATE -fno-sanitize=all)
                target_link_options(${name} PRIVATE -fno-sanitize=all -rdynamic)
                target_link_libraries(${name} PRIVATE ${${name}} greta_warnings)
            endif()
        endforeach()
    endif()

    # The same tests on the emulated GPU, and on a real one where there is one; of HIP likewise.
    set(fake_path ${CMAKE_BINARY_DIR}/fake_gpu)
    set(over_path ${CMAKE_BINARY_DIR}/hip_over_cuda)
    function(greta_gpu_test name) # then the program, and its arguments after the device
        foreach(way "fake_gpu;cuda:0;${fake_path}" "gpu;cuda:0;"
                    "fake_hip;hip:0;${over_path}:${fake_path}" "gpu_hip;hip:0;${over_path}")
            list(GET way 0 group)
            list(GET way 1 device)
            list(GET way 2 path)
            # The emulated driver is the same in every build and never sanitized. So what tests kernels
            # rather than the code around them is not run in sanitized builds; nor is what goes
            # through HIP's table, where the launches are the same.
            if(GRETA_SANITIZE AND (group STREQUAL "fake_hip" OR
               (group STREQUAL "fake_gpu" AND name MATCHES "^gpu_many_")))
                continue()
            endif()
            add_test(NAME ${group}/${name} COMMAND ${ARGV1} ${device} ${ARGV2})
            # The same of these, but for a look now and then: run by ./test --long. (Steps ahead
            # under AddressSanitizer: tests/cli generate on the same driver.)
            if(group STREQUAL "fake_gpu" AND
               ((GRETA_SANITIZE AND name MATCHES "^(gpu_strides|gpu_group|gpu_step|ops_matmul)_") OR
                (GRETA_SANITIZE MATCHES "address" AND name MATCHES "^(engine_ahead|session(_ahead|_failure|_prompt)?)_test$")))
                set_tests_properties(${group}/${name} PROPERTIES LABELS long)
            endif()
            set_tests_properties(${group}/${name} PROPERTIES TIMEOUT ${greta_test_timeout})
            # CUDA's work is done when it is waited for, as late as can be; HIP's when it is given.
            set(environment "LD_LIBRARY_PATH=${path}")
            # The same numbers every time here, so that what fails a test is a change; those on a GPU
            # draw new ones, and by hand GRETA_TEST_SEED gives any.
            if(group MATCHES "^fake")
                list(APPEND environment "GRETA_TEST_SEED=1")
            endif()
            if(group STREQUAL "fake_gpu")
                list(APPEND environment "FAKE_GPU_LATE=1")
            endif()
            if(name MATCHES "^gpu_(ops|experts|strides|step|group)_test$") # kernels for a few tokens, as on a chip that is not small
                list(APPEND environment "FAKE_GPU_PROCESSORS=132")
            endif()
            if(path)
                set_tests_properties(${group}/${name} PROPERTIES ENVIRONMENT "${environment}")
            endif()
            if(NOT group MATCHES "^fake")
                set_tests_properties(${group}/${name} PROPERTIES SKIP_RETURN_CODE 77)
            endif()
        endforeach()
    endfunction()
    foreach(name gpu_ops_test gpu_experts_test gpu_strides_test gpu_step_test gpu_group_test gpu_many_test gpu_many_rows_test
                 gpu_inspect_test gpu_limits_test gpu_engine_test engine_ahead_test engine_replay_test session_test
                 session_ahead_test session_failure_test session_prompt_test session_grammar_test ops_matmul_test
                 ops_layer_test ops_families_test
                 device_lost_test analyze_devices_test staging_view_test)
        greta_gpu_test(${name} ${name})
    endforeach()
    # The same on an emulated GPU of another kind: the environment says of which.
    function(greta_fake_gpu_test name program)
        add_test(NAME fake_gpu/${name} COMMAND ${program} cuda:0)
        set_tests_properties(fake_gpu/${name} PROPERTIES TIMEOUT ${greta_test_timeout}
                             ENVIRONMENT "LD_LIBRARY_PATH=${fake_path};GRETA_TEST_SEED=1;${ARGN}")
    endfunction()
    # A driver that cannot map memory into address ranges: guards are canaries alone.
    greta_fake_gpu_test(gpu_limits_zones_test gpu_limits_test FAKE_GPU_NO_RANGES=1)
    if(NOT GRETA_SANITIZE)
        greta_fake_gpu_test(gpu_inspect_zones_test gpu_inspect_test FAKE_GPU_NO_RANGES=1)
        add_test(NAME fake_hip/gpu_inspect_zones_test COMMAND gpu_inspect_test hip:0)
        set_tests_properties(fake_hip/gpu_inspect_zones_test PROPERTIES TIMEOUT ${greta_test_timeout}
            ENVIRONMENT "LD_LIBRARY_PATH=${over_path}:${fake_path};FAKE_GPU_NO_RANGES=1")
        # Few processors, so few blocks; on a chip of another kind heads share them.
        greta_fake_gpu_test(gpu_group_few_test gpu_group_test)
        greta_fake_gpu_test(gpu_ops_few_test gpu_ops_test FAKE_GPU_CHIP=80)
        # The same, and kernels that begin before the ones before them have ended.
        greta_fake_gpu_test(gpu_step_early_test gpu_step_test FAKE_GPU_EARLY=1)
        # On a chip with many SMs, and on one of another kind, a matmul is cut in other ways.
        foreach(name gpu_many gpu_many_rows)
            greta_fake_gpu_test(${name}_wide_test ${name}_test FAKE_GPU_PROCESSORS=132)
            greta_fake_gpu_test(${name}_older_test ${name}_test FAKE_GPU_CHIP=80)
            # Much of the same again: run by ./test --long.
            set_tests_properties(fake_gpu/${name}_wide_test fake_hip/${name}_test
                                 PROPERTIES LABELS long)
        endforeach()
        set_tests_properties(fake_hip/gpu_engine_test fake_hip/gpu_strides_test fake_hip/ops_matmul_test
                             fake_hip/engine_ahead_test fake_hip/session_test fake_hip/session_ahead_test
                             fake_hip/session_failure_test fake_hip/session_prompt_test fake_gpu/gpu_many_rows_older_test
                             PROPERTIES LABELS long)
    endif()
    # Two GPUs of one process; where there are two, also real ones.
    foreach(way "fake_gpu;LD_LIBRARY_PATH=${fake_path};FAKE_GPU_COUNT=2;FAKE_GPU_LATE=1" gpu)
        list(POP_FRONT way group)
        add_test(NAME ${group}/analyze_two_devices_test COMMAND analyze_devices_test cuda:1 cuda:0)
        set_tests_properties(${group}/analyze_two_devices_test PROPERTIES ENVIRONMENT "${way}"
                             TIMEOUT ${greta_test_timeout} SKIP_RETURN_CODE 77)
    endforeach()
    foreach(fault wild-pointer memory-vanished overrun)
        greta_gpu_test(fault_${fault} gpu_fault_test ${fault}@op=add,layer=3)
    endforeach()
    add_test(NAME fake_gpu/gpu_narrow_test COMMAND gpu_narrow_test cuda:0)
    set_tests_properties(fake_gpu/gpu_narrow_test PROPERTIES TIMEOUT ${greta_test_timeout}
                         ENVIRONMENT "LD_LIBRARY_PATH=${fake_path};FAKE_GPU_LATE=1")
    # What a log says that the device reads instead of the kernel's.
    foreach(kind mine others)
        add_test(NAME fake_gpu/fault_logged_${kind}
                 COMMAND gpu_fault_test cuda:0 overrun@op=add,layer=3 ${kind})
        set_tests_properties(fake_gpu/fault_logged_${kind} PROPERTIES TIMEOUT ${greta_test_timeout}
                             ENVIRONMENT "LD_LIBRARY_PATH=${fake_path};FAKE_GPU_LATE=1")
    endforeach()
    # The audit's instrument on a GPU: every planted fault must be found. An emulated GPU takes two
    # minutes for all of them, nearly all in kernels of the model, so it plants one of each kind.
    set(self_test ${CMAKE_SOURCE_DIR}/tests/gpu/self_test.sh $<TARGET_FILE:greta>)
    foreach(way "gpu;cuda:0;" "gpu_hip;hip:0;${over_path}")
        list(GET way 0 group)
        list(GET way 1 device)
        list(GET way 2 path)
        add_test(NAME ${group}/self_test COMMAND bash ${self_test} ${device})
        set_tests_properties(${group}/self_test PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
        if(path)
            set_tests_properties(${group}/self_test PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${path}")
        endif()
    endforeach()
    function(greta_fake_self_test name faults absent) # then more of the environment
        add_test(NAME fake_gpu/${name} COMMAND bash ${self_test} cuda:0 "${faults}" ${absent})
        set_tests_properties(fake_gpu/${name} PROPERTIES TIMEOUT 900
                             ENVIRONMENT "LD_LIBRARY_PATH=${fake_path};${ARGN}")
    endfunction()
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GRETA_SANITIZE AND NOT GRETA_COVERAGE)
        # Faults anywhere, each in two processes: 50 with --full, 1,000 more with --long.
        function(greta_placements_test name label count seed) # then more of the environment
            add_test(NAME ${name} COMMAND gpu_placements_test ${ARGV4} ${count} ${seed})
            set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS ${label}
                ENVIRONMENT "LD_LIBRARY_PATH=${fake_path};FAKE_GPU_LATE=1;${ARGV5}")
        endfunction()
        greta_placements_test(fake_gpu/placements full 25 1 cuda:0)
        greta_placements_test(fake_gpu/placements_older full 25 101 cuda:0 FAKE_GPU_CHIP=80)
        greta_placements_test(integration/placements full 50 1 host)
        foreach(part RANGE 1 2)
            greta_placements_test(fake_gpu/placements_many_${part} long 250 ${part}0000 cuda:0)
            greta_placements_test(fake_gpu/placements_many_older_${part} long 250 ${part}5000 cuda:0
                                  FAKE_GPU_CHIP=80)
        endforeach()
        greta_fake_self_test(self_test "" 0)
        set_tests_properties(fake_gpu/self_test PROPERTIES LABELS long)
        greta_fake_self_test(self_test_some
            "size-beyond-view,free-while-queued,skipped-wait,bad-index,slot-rewritten,overlapping-d2h,memory-vanished,overrun-into-guard,stale-graph,overrun,underrun,flipped-bit-in,lost-wakeup,unequal-matmul,nan-searched,fault-first-of-4,replay-last-of-8" 0)
        greta_fake_self_test(self_test_zones
            "free-while-queued,wild-pointer,memory-vanished,overrun-into-guard,overrun,underrun" 2
            FAKE_GPU_NO_RANGES=1)
    endif()
    if(NOT GRETA_SANITIZE) # with the runtime below HIP, which tells of the address
        add_test(NAME fake_hip/fault_told COMMAND gpu_fault_test hip:0 wild-pointer@op=add,layer=3)
        set_tests_properties(fake_hip/fault_told PROPERTIES TIMEOUT ${greta_test_timeout} ENVIRONMENT
            "LD_LIBRARY_PATH=${over_path}:${fake_path}:${CMAKE_BINARY_DIR}/fake_hsa")
    endif()
endif()

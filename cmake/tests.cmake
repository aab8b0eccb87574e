# Every test is one ctest test. A unit test tests/unit/<module>_<subject>_test.c links its module
# (and so what that may use) and nothing else; of device_host_x_test the module is device/host.

pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Threads that count lines wait for each other's counters.
set(greta_test_timeout 300)
if(GRETA_COVERAGE)
    set(greta_test_timeout 1200)
endif()

add_library(greta_test_support STATIC)
file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
list(FILTER support_sources EXCLUDE REGEX "_main\\.c$")
target_sources(greta_test_support PRIVATE ${support_sources})
target_include_directories(greta_test_support PUBLIC tests/support)
target_link_libraries(greta_test_support PUBLIC greta_base PkgConfig::CMOCKA
                      PRIVATE greta_warnings)

file(GLOB unit_tests CONFIGURE_DEPENDS tests/unit/*_test.c)
foreach(source IN LISTS unit_tests)
    get_filename_component(name ${source} NAME_WE)
    set(module "")
    foreach(candidate IN LISTS greta_modules)
        string(REPLACE "/" "_" candidate ${candidate})
        string(LENGTH ${candidate} length)
        string(LENGTH "${module}" best)
        if(name MATCHES "^${candidate}_" AND length GREATER best)
            set(module ${candidate})
        endif()
    endforeach()
    if(NOT module)
        message(FATAL_ERROR "${source}: its name begins with no module of src/layers.txt")
    endif()
    # These start no thread, so there is nothing for ThreadSanitizer to see.
    if(GRETA_SANITIZE MATCHES "thread" AND module MATCHES "^(tensor|tokenizer|model|ops)$")
        continue()
    endif()
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE greta_${module} greta_test_support greta_warnings m)
    add_test(NAME unit/${name} COMMAND ${name})
    set_tests_properties(unit/${name} PROPERTIES TIMEOUT ${greta_test_timeout} SKIP_RETURN_CODE 77
                         ENVIRONMENT "GRETA_SOURCE=${CMAKE_SOURCE_DIR}")
endforeach()

# Finds its own lines.
target_compile_options(base_lines_test PRIVATE -g)

# Where a vendor's header is installed, our declarations are held against it.
find_path(GRETA_CUDA_INCLUDE cuda.h PATHS $ENV{CUDA_PATH}/include /usr/local/cuda/include)
if(GRETA_CUDA_INCLUDE)
    target_include_directories(device_cuda_api_test SYSTEM PRIVATE ${GRETA_CUDA_INCLUDE})
    target_compile_definitions(device_cuda_api_test PRIVATE GRETA_HAS_CUDA_H)
endif()
find_path(GRETA_HIP_INCLUDE hip/hip_runtime_api.h
          PATHS $ENV{ROCM_PATH}/include $ENV{HIP_PATH}/include /opt/rocm/include)
if(GRETA_HIP_INCLUDE)
    target_include_directories(device_hip_api_test PRIVATE tests)
    foreach(name device_hip_api_test interpose_hip_calls_test)
        target_include_directories(${name} SYSTEM PRIVATE ${GRETA_HIP_INCLUDE})
        target_compile_definitions(${name} PRIVATE GRETA_HAS_HIP_H)
    endforeach()
endif()

find_path(GRETA_HSA_INCLUDE hsa/hsa_ext_amd.h)
if(GRETA_HSA_INCLUDE)
    target_compile_definitions(device_hip_fault_test PRIVATE GRETA_HAS_HSA_H)
endif()

# The runtime below HIP, as far as it tells of faults.
add_library(greta_fake_hsa SHARED tests/fake_gpu/fake_hsa.c)
set_target_properties(greta_fake_hsa PROPERTIES OUTPUT_NAME hsa-runtime64 SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_hsa)
target_include_directories(greta_fake_hsa PRIVATE src)
target_compile_options(greta_fake_hsa PRIVATE -fvisibility=hidden)
target_link_libraries(greta_fake_hsa PRIVATE greta_warnings)
add_test(NAME fake_gpu/hsa_faults COMMAND device_hip_fault_test libhsa-runtime64.so.1)
set_tests_properties(fake_gpu/hsa_faults PROPERTIES TIMEOUT 60 ENVIRONMENT
                     "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fake_hsa")

# Is the driver itself: what the emulated CUPTI calls there is the test's.
file(GLOB cuda_trace_sources CONFIGURE_DEPENDS src/interpose/cuda/*.c)
add_library(greta_test_trace_cuda STATIC ${cuda_trace_sources})
target_link_libraries(greta_test_trace_cuda PUBLIC greta_interpose ${CMAKE_DL_LIBS}
                      PRIVATE greta_warnings)
foreach(subject calls memory graphs)
    set(name interpose_cuda_${subject}_test)
    target_link_libraries(${name} PRIVATE greta_test_trace_cuda)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
    add_dependencies(${name} greta_fake_trace_cupti)
    set_property(TEST unit/${name} APPEND PROPERTY ENVIRONMENT
                 "GRETA_TRACE_CUPTI=$<TARGET_FILE:greta_fake_trace_cupti>")
endforeach()

target_link_libraries(interpose_hip_code_object_test PRIVATE greta_code_object)
target_sources(interpose_hip_kernels_test PRIVATE src/interpose/hip/kernels.c)
target_link_libraries(interpose_hip_kernels_test PRIVATE greta_code_object)
set_property(TEST unit/interpose_hip_code_object_test APPEND PROPERTY ENVIRONMENT
             "GRETA_CODE_OBJECT=${greta_kernel_folder}/gfx942.co")

# Tests of several modules together link all of them.
file(GLOB integration_tests CONFIGURE_DEPENDS tests/integration/*_test.c)
file(GLOB integration_support CONFIGURE_DEPENDS tests/integration/*.c)
list(REMOVE_ITEM integration_support ${integration_tests})
foreach(source IN LISTS integration_tests)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source} ${integration_support})
    target_include_directories(${name} PRIVATE tests/unit)
    target_link_libraries(${name} PRIVATE greta_cli greta_test_support greta_warnings m)
    if(name STREQUAL "ops_document_test")
        add_test(NAME integration/${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/docs/ops.md)
    else()
        add_test(NAME integration/${name} COMMAND ${name})
    endif()
    set_tests_properties(integration/${name} PROPERTIES TIMEOUT ${greta_test_timeout} SKIP_RETURN_CODE 77 ENVIRONMENT
        "GRETA=$<TARGET_FILE:greta>;GRETA_SOURCE=${CMAKE_SOURCE_DIR};GRETA_TEST_SEED=1")
endforeach()

# Every header compiles alone. (All builds would say the same.)
if(NOT GRETA_SANITIZE)
    file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR}/src CONFIGURE_DEPENDS src/*.h)
    list(FILTER headers EXCLUDE REGEX "/kernels/") # for other machines
    set(alone_sources "")
    foreach(header IN LISTS headers)
        string(MAKE_C_IDENTIFIER ${header} identifier)
        set(alone ${CMAKE_BINARY_DIR}/headers/${identifier}.c)
        file(CONFIGURE OUTPUT ${alone}
             CONTENT "#include \"@header@\"\nextern int greta_header_@identifier@;\n" @ONLY)
        list(APPEND alone_sources ${alone})
    endforeach()
    add_library(greta_headers_alone OBJECT ${alone_sources})
    target_include_directories(greta_headers_alone PRIVATE src)
    target_link_libraries(greta_headers_alone PRIVATE greta_warnings)
endif()

# Replays a fuzzing corpus without a fuzzer, so that any compiler can.
file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(fuzzer IN LISTS fuzzers)
    get_filename_component(name ${fuzzer} NAME_WE)
    add_executable(${name}_replay ${fuzzer} tests/support/replay_main.c)
    target_link_libraries(${name}_replay PRIVATE greta_model greta_event greta_analyze greta_report
                          greta_tokenizer greta_device_gpu greta_code_object greta_warnings)
    add_test(NAME fuzz/${name}_replay
             COMMAND ${name}_replay ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
endforeach()

add_test(NAME source/layers COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/check_layers.py
                                    ${CMAKE_SOURCE_DIR})
add_test(NAME source/layers_checker
         COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/tools/check_layers_test.py)

# Foreign programs, with planted bugs and without, under greta trace: where there is a GPU. What is
# loaded into a program that is not sanitized cannot be sanitized itself.
add_test(NAME source/foreign_judge
         COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/tools/foreign_run_test.py)
if(NOT GRETA_SANITIZE)
    add_test(NAME gpu/foreign
             COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/defects/foreign/run.py
                     $<TARGET_FILE:greta>)
    set_tests_properties(gpu/foreign PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()

# Documents, man pages and examples against the code; what is generated against what it is made from.
add_test(NAME source/docs
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/docs_test.py
                 ${CMAKE_SOURCE_DIR} $<TARGET_FILE:greta> ${CMAKE_BINARY_DIR})

add_test(NAME source/bench_page
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/bench_page_test.py
                 ${CMAKE_SOURCE_DIR})

# Machine code put into a library of llama.cpp's for chips it has none for.
add_test(NAME source/assemble
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/assemble_test.py
                 ${CMAKE_SOURCE_DIR})

# The stories the bundled model is taught a page with.
add_test(NAME source/story_long
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/story_long_test.py
                 ${CMAKE_SOURCE_DIR})

# The files of an audit as other programs see them.
add_test(NAME report/files
         COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/tools/report_files_test.py
                 ${CMAKE_SOURCE_DIR} $<TARGET_FILE:report_write_test>)
set_tests_properties(report/files PROPERTIES SKIP_RETURN_CODE 77)

# The program as people call it. Where ThreadSanitizer watches, only some of the commands that run a
# device in their own process: how audits end and what is traced is about other processes.
file(GLOB scripts CONFIGURE_DEPENDS tests/cli/*_test.sh)
if(GRETA_SANITIZE MATCHES "thread")
    list(FILTER scripts EXCLUDE REGEX
         "/(absurd_models|audit_ends|eval|general|gpu_limits|infer_taps|inspect|quantize|synth|tokenize|trace|trace_calls|trace_hip)_test\\.sh$")
endif()
foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME cli/${name} COMMAND bash ${script})
    # An audit starts dozens of children; sanitized ones are slow.
    set_tests_properties(cli/${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT
        "GRETA=$<TARGET_FILE:greta>;GRETA_KERNELS=${greta_kernel_folder};GRETA_BUILD=${CMAKE_BINARY_DIR};GRETA_SOURCE=${CMAKE_SOURCE_DIR}")
    # These begin first, so that none of them is what a core waits for at the end.
    if(name MATCHES "^(audit|audit_ends|eval|trace)_test$")
        set_tests_properties(cli/${name} PROPERTIES COST 100)
    endif()
    if(GRETA_SANITIZE AND name STREQUAL "audit_ends_test") # mostly children that are killed
        set_tests_properties(cli/${name} PROPERTIES LABELS long)
    endif()
endforeach()

# ThreadSanitizer must find a race that is planted, and none where a mark orders the streams.
if(GRETA_SANITIZE MATCHES "thread")
    add_executable(planted_race tests/sanitizer/planted_race.c)
    target_link_libraries(planted_race PRIVATE greta_device_host greta_test_support greta_warnings)
    target_include_directories(planted_race PRIVATE tests/unit)
    add_test(NAME sanitizer/planted_race
             COMMAND bash ${CMAKE_SOURCE_DIR}/tests/sanitizer/planted_race_test.sh
                     $<TARGET_FILE:planted_race>)
endif()

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
        add_library(greta_fake_cuda SHARED tests/fake_gpu/emulator.c tests/fake_gpu/fake_cuda.c
                    tests/fake_gpu/fake_memory.c tests/fake_gpu/fake_work.c
                    tests/fake_gpu/kernels.c tests/fake_gpu/late.c)
        set_target_properties(greta_fake_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                              LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_gpu)
        target_include_directories(greta_fake_cuda PRIVATE src tests/fake_gpu)
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
    target_compile_definitions(greta_hip_over_cuda PRIVATE GPU_CODE_COUNT=${greta_kernel_count})
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
    function(greta_gpu_test name) # then the program and its arguments behind the device
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
                (GRETA_SANITIZE MATCHES "address" AND name STREQUAL "engine_ahead_test")))
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
            if(name MATCHES "^gpu_(ops|strides|step|group)_test$") # kernels for a few tokens, as on a chip that is not small
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
    foreach(name gpu_ops_test gpu_strides_test gpu_step_test gpu_group_test gpu_many_test gpu_many_rows_test
                 gpu_inspect_test gpu_limits_test gpu_engine_test engine_ahead_test engine_replay_test
                 ops_matmul_test ops_layer_test)
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
        # A chip with many processors cuts products in other ways; so does one of another kind.
        foreach(name gpu_many gpu_many_rows)
            greta_fake_gpu_test(${name}_wide_test ${name}_test FAKE_GPU_PROCESSORS=132)
            greta_fake_gpu_test(${name}_older_test ${name}_test FAKE_GPU_CHIP=80)
            # Much of the same again: run by ./test --long.
            set_tests_properties(fake_gpu/${name}_wide_test fake_hip/${name}_test
                                 PROPERTIES LABELS long)
        endforeach()
        set_tests_properties(fake_hip/gpu_engine_test fake_hip/gpu_strides_test fake_hip/ops_matmul_test
                             fake_hip/engine_ahead_test fake_gpu/gpu_many_rows_older_test
                             PROPERTIES LABELS long)
    endif()
    foreach(fault wild-pointer memory-vanished overrun)
        greta_gpu_test(fault_${fault} gpu_fault_test ${fault}@op=add,layer=3)
    endforeach()
    # What a log says that the device is told to read instead of the kernel's.
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
    function(greta_fake_self_test name faults absent) # then what the environment says beside
        add_test(NAME fake_gpu/${name} COMMAND bash ${self_test} cuda:0 "${faults}" ${absent})
        set_tests_properties(fake_gpu/${name} PROPERTIES TIMEOUT 900
                             ENVIRONMENT "LD_LIBRARY_PATH=${fake_path};${ARGN}")
    endfunction()
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT GRETA_SANITIZE AND NOT GRETA_COVERAGE)
        greta_fake_self_test(self_test "" 0)
        set_tests_properties(fake_gpu/self_test PROPERTIES LABELS long)
        greta_fake_self_test(self_test_some
            "size-beyond-view,free-while-queued,skipped-wait,bad-index,slot-rewritten,overlapping-d2h,memory-vanished,overrun-into-guard,stale-graph,overrun,underrun,flipped-bit-in,lost-wakeup" 0)
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

# Every call that can fail, failing once: the linker gives them to tests/faults/fail_nth.c.
set(fault_calls malloc calloc realloc aligned_alloc strdup free mmap64 munmap mprotect pthread_create
    pthread_join open64 fopen64 fstat64 read write pwrite64 ftruncate64 posix_fallocate64 fsync link
    rename XXH64_createState EVP_MD_CTX_new EVP_DigestInit_ex EVP_DigestUpdate EVP_DigestFinal_ex
    dlopen)
list(TRANSFORM fault_calls PREPEND "LINKER:--wrap=" OUTPUT_VARIABLE fault_options)
add_library(greta_fail_nth STATIC tests/faults/fail_nth.c)
target_link_libraries(greta_fail_nth PUBLIC greta_test_support PkgConfig::XXHASH OpenSSL::Crypto
                      PRIVATE greta_warnings)
target_link_options(greta_fail_nth PUBLIC ${fault_options})
# Modules are linked whole, so that a call nobody makes is seen too.
set(fault_triples "")
set(fault_programs "")
foreach(row gguf:gguf:gguf device_host:device:device,device_host analyze:analyze:analyze)
    string(REPLACE ":" ";" row ${row})
    list(GET row 0 module)
    list(GET row 1 folder)
    list(GET row 2 whole)
    string(REPLACE "," ";" whole ${whole})
    set(name ${module}_faults_test)
    add_executable(${name} tests/faults/${name}.c)
    list(APPEND fault_programs ${name})
    target_include_directories(${name} PRIVATE tests/faults tests/unit)
    foreach(library IN LISTS whole)
        target_link_options(${name} PRIVATE
            "LINKER:--whole-archive,$<TARGET_FILE:greta_${library}>,--no-whole-archive")
    endforeach()
    target_link_libraries(${name} PRIVATE greta_${module} greta_fail_nth greta_warnings)
    add_test(NAME faults/${name} COMMAND ${name})
    set_tests_properties(faults/${name} PROPERTIES TIMEOUT ${greta_test_timeout} ENVIRONMENT
        "FAIL_NTH_SITES=${CMAKE_BINARY_DIR}/${name}.sites" FIXTURES_SETUP fault_sites)
    list(APPEND fault_triples
         ${folder}:$<TARGET_FILE:${name}>:${CMAKE_BINARY_DIR}/${name}.sites)
endforeach()
# A GPU, with its library's calls failing too: hundreds of lives of an emulated one, so not in each
# build (the harness counts what is not given back by itself).
if(greta_kernel_count GREATER 0 AND (CMAKE_BUILD_TYPE STREQUAL "Debug" OR GRETA_COVERAGE))
    set(name device_gpu_faults_test)
    add_executable(${name} tests/faults/${name}.c)
    list(APPEND fault_programs ${name} greta_hip_over_cuda greta_fake_hsa)
    if(TARGET greta_fake_cuda)
        list(APPEND fault_programs greta_fake_cuda)
    endif()
    target_include_directories(${name} PRIVATE tests/faults)
    target_link_options(${name} PRIVATE LINKER:--wrap=dlsym)
    foreach(library device_gpu device_cuda device_hip)
        target_link_options(${name} PRIVATE
            "LINKER:--whole-archive,$<TARGET_FILE:greta_${library}>,--no-whole-archive")
    endforeach()
    target_link_libraries(${name} PRIVATE greta_ops greta_device_all greta_fail_nth greta_warnings)
    foreach(row "cuda;${fake_path}" "hip;${over_path}:${fake_path}:${CMAKE_BINARY_DIR}/fake_hsa")
        list(GET row 0 kind)
        list(GET row 1 path)
        set(sites ${CMAKE_BINARY_DIR}/device_${kind}_faults.sites)
        add_test(NAME faults/device_${kind} COMMAND ${name} ${kind}:0)
        set_tests_properties(faults/device_${kind} PROPERTIES TIMEOUT ${greta_test_timeout}
            FIXTURES_SETUP fault_sites ENVIRONMENT "FAIL_NTH_SITES=${sites};LD_LIBRARY_PATH=${path}")
        list(APPEND fault_triples device/gpu:$<TARGET_FILE:${name}>:${sites}
             device/${kind}:$<TARGET_FILE:${name}>:${sites})
    endforeach()
endif()
# Only an unoptimised build says which line calls; ./test builds and runs these of it, and no others.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_custom_target(fault_tests DEPENDS ${fault_programs})
    add_test(NAME faults/sites COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/faults/sites.py
             ${CMAKE_SOURCE_DIR}/tests/faults/unreached.txt ${fault_triples})
    set_tests_properties(faults/sites PROPERTIES FIXTURES_REQUIRED fault_sites)
endif()

# A CUDA driver and a CUPTI for greta trace: the driver's calls are told as CUPTI tells them. Like
# the library under test they are never sanitized: the traced program is not.
add_library(greta_fake_trace_driver SHARED tests/fake_trace/fake_driver.c
            tests/fake_trace/fake_kinds.c tests/fake_trace/fake_shapes.c)
set_target_properties(greta_fake_trace_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
add_library(greta_fake_trace_cupti SHARED tests/fake_trace/fake_cupti.c)
set_target_properties(greta_fake_trace_cupti PROPERTIES OUTPUT_NAME cupti SOVERSION 13
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
add_executable(trace_program tests/fake_trace/program.c tests/fake_trace/scenes.c)
set_target_properties(trace_program PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_trace)
foreach(target greta_fake_trace_driver greta_fake_trace_cupti trace_program)
    target_compile_options(${target} PRIVATE -fno-sanitize=all -g -O1)
    target_link_options(${target} PRIVATE -fno-sanitize=all)
    target_link_libraries(${target} PRIVATE greta_warnings)
endforeach()
target_link_libraries(greta_fake_trace_driver PRIVATE ${CMAKE_DL_LIBS})
target_link_libraries(greta_fake_trace_cupti PRIVATE greta_fake_trace_driver)
target_link_libraries(trace_program PRIVATE greta_fake_trace_driver)

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
    add_executable(hip_calls_test tests/fake_trace/hip_calls_test.c)
    target_include_directories(hip_calls_test PRIVATE src tests/fake_trace)
    target_link_libraries(hip_calls_test PRIVATE greta_fake_hip_now greta_event greta_test_support
                          greta_warnings)
    add_dependencies(hip_calls_test greta_fake_hip_old greta_trace_hip)
    foreach(version now old)
        add_test(NAME trace/hip_calls_${version} COMMAND hip_calls_test ${version})
        set_tests_properties(trace/hip_calls_${version} PROPERTIES TIMEOUT 60 ENVIRONMENT
            "LD_PRELOAD=$<TARGET_FILE:greta_trace_hip>;LD_LIBRARY_PATH=$<TARGET_FILE_DIR:greta_fake_hip_${version}>")
    endforeach()
endif()

# Our own declarations of CUPTI's structs against the toolkit's, where there is one.
find_path(GRETA_CUPTI_INCLUDE cupti.h PATHS /usr/local/cuda/include
          /usr/local/cuda/extras/CUPTI/include)
if(GRETA_CUPTI_INCLUDE)
    add_executable(cupti_layout_test tests/tools/cupti_layout_test.c)
    target_include_directories(cupti_layout_test SYSTEM PRIVATE ${GRETA_CUPTI_INCLUDE})
    target_include_directories(cupti_layout_test PRIVATE src)
    add_test(NAME source/cupti_layout COMMAND cupti_layout_test)
endif()

# AddressSanitizer's leak check of clang 14 takes a block of thread-local memory whose address ends in
# 010 for one of glibc 2.19 and reads its size and place from the allocator's own header: one run in
# 256 dies of "Tracer caught signal 11" at exit. Such blocks are found through glibc's table anyway.
if(GRETA_SANITIZE MATCHES "address")
    get_property(greta_tests DIRECTORY PROPERTY TESTS)
    set_property(TEST ${greta_tests} APPEND PROPERTY ENVIRONMENT
                 "ASAN_OPTIONS=intercept_tls_get_addr=0;LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/leaks.supp:print_suppressions=0")
endif()

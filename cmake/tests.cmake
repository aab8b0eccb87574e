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

# They find their own lines.
target_compile_options(base_lines_test PRIVATE -g)
target_compile_options(coredump_program_lines_test PRIVATE -g)

# Where a vendor's header is installed, our declarations are compared with it.
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
list(FILTER cuda_trace_sources EXCLUDE REGEX "/(preload|wrappers|ranges_nvtx)\\.c$") # the other way in
add_library(greta_test_trace_cuda STATIC ${cuda_trace_sources})
target_link_libraries(greta_test_trace_cuda PUBLIC greta_interpose ${CMAKE_DL_LIBS}
                      PRIVATE greta_warnings)
foreach(subject calls contexts memory copies graphs)
    set(name interpose_cuda_${subject}_test)
    target_link_libraries(${name} PRIVATE greta_test_trace_cuda)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
    add_dependencies(${name} greta_fake_trace_cupti)
    set_property(TEST unit/${name} APPEND PROPERTY ENVIRONMENT
                 "GRETA_TRACE_CUPTI=$<TARGET_FILE:greta_fake_trace_cupti>")
endforeach()

target_link_libraries(interpose_cuda_ptx_test PRIVATE greta_cuda_image)
target_link_libraries(interpose_cuda_image_test PRIVATE greta_cuda_image PkgConfig::ZSTD)
target_link_libraries(interpose_hip_code_object_test PRIVATE greta_code_object)
target_sources(interpose_hip_kernels_test PRIVATE src/interpose/hip/kernels.c)
target_link_libraries(interpose_hip_kernels_test PRIVATE greta_code_object)
set_property(TEST unit/interpose_hip_code_object_test APPEND PROPERTY ENVIRONMENT
             "GRETA_CODE_OBJECT=${greta_kernel_folder}/gfx942.co")

# Tests of several modules together link all of them.
file(GLOB integration_tests CONFIGURE_DEPENDS tests/integration/*_test.c)
file(GLOB integration_support CONFIGURE_DEPENDS tests/integration/*.c)
list(REMOVE_ITEM integration_support ${integration_tests})
add_library(greta_integration_support STATIC ${integration_support})
target_include_directories(greta_integration_support PRIVATE tests/unit)
target_link_libraries(greta_integration_support PUBLIC greta_cli greta_test_support m
                      PRIVATE greta_warnings)
foreach(source IN LISTS integration_tests)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE tests/unit)
    target_link_libraries(${name} PRIVATE greta_integration_support greta_warnings)
    # Plants races in processes of their own: ThreadSanitizer would report those.
    if(GRETA_SANITIZE MATCHES "thread" AND name STREQUAL "campaign_defects_test")
        continue()
    endif()
    # These need a GPU, emulated or real: cmake/tests_gpu.cmake.
    if(name MATCHES "^(engine_replay_test|gpu_)" AND NOT name STREQUAL "gpu_inspect_test")
        continue()
    endif()
    if(name STREQUAL "ops_document_test")
        add_test(NAME integration/${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/docs/ops.md)
    else()
        add_test(NAME integration/${name} COMMAND ${name})
    endif()
    set_tests_properties(integration/${name} PROPERTIES TIMEOUT ${greta_test_timeout} SKIP_RETURN_CODE 77 ENVIRONMENT
        "GRETA=$<TARGET_FILE:greta>;GRETA_SOURCE=${CMAKE_SOURCE_DIR};GRETA_TEST_SEED=1")
endforeach()

# Every header compiles alone. (All builds would say the same; ./test --full makes this one.)
if(NOT GRETA_SANITIZE)
    file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR}/src CONFIGURE_DEPENDS src/*.h)
    list(FILTER headers EXCLUDE REGEX "/kernels/") # for other machines
    list(FILTER headers EXCLUDE REGEX "/runtime_calls\\.h$") # the same functions for two APIs
    set(alone_sources "")
    foreach(header IN LISTS headers)
        string(MAKE_C_IDENTIFIER ${header} identifier)
        set(alone ${CMAKE_BINARY_DIR}/headers/${identifier}.c)
        file(CONFIGURE OUTPUT ${alone}
             CONTENT "#include \"@header@\"\nextern int greta_header_@identifier@;\n" @ONLY)
        list(APPEND alone_sources ${alone})
    endforeach()
    add_library(greta_headers_alone OBJECT EXCLUDE_FROM_ALL ${alone_sources})
    target_include_directories(greta_headers_alone PRIVATE src)
    target_link_libraries(greta_headers_alone PRIVATE greta_warnings)
endif()

# Replays a fuzzing corpus without a fuzzer, so that any compiler can.
file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(fuzzer IN LISTS fuzzers)
    get_filename_component(name ${fuzzer} NAME_WE)
    add_executable(${name}_replay ${fuzzer} tests/support/replay_main.c)
    target_link_libraries(${name}_replay PRIVATE greta_model greta_event greta_analyze greta_report
                          greta_tokenizer greta_grammar greta_template greta_chat greta_device_gpu
                          greta_code_object greta_cuda_image
                          greta_inject
                          greta_warnings)
    add_test(NAME fuzz/${name}_replay
             COMMAND ${name}_replay ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
endforeach()

add_test(NAME source/layers COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/check_layers.py
                                    ${CMAKE_SOURCE_DIR})
add_test(NAME source/sizes COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/tools/check_sizes_test.py)
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
    # Page traps must leave clean programs clean.
    add_test(NAME gpu/foreign_traps
             COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/defects/foreign/run.py
                     $<TARGET_FILE:greta> --trap-host)
    set_tests_properties(gpu/foreign gpu/foreign_traps PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()

add_test(NAME source/copy_behaviour
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/copy_behaviour_test.py)

# Documents, man pages and examples against the code; what is generated against what it is made from.
add_test(NAME source/docs
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/docs_test.py
                 ${CMAKE_SOURCE_DIR} $<TARGET_FILE:greta> ${CMAKE_BINARY_DIR})

add_test(NAME source/bench_page
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/bench_page_test.py
                 ${CMAKE_SOURCE_DIR})

# A skipped test has a reason.
add_test(NAME source/skips
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/check_skips_test.py
                 ${CMAKE_SOURCE_DIR})

# Comments, pages and messages in the words of docs/glossary.md.
add_test(NAME source/words
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/words_test.py
                 ${CMAKE_SOURCE_DIR})

# Machine code put into a library of llama.cpp's for chips it has none for.
add_test(NAME source/assemble
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/assemble_test.py
                 ${CMAKE_SOURCE_DIR})

# The stories the bundled model is taught a page with.
add_test(NAME source/story_long
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/story_long_test.py
                 ${CMAKE_SOURCE_DIR})

# Chat templates as a user renders them: published ones, and random ones next to Jinja itself.
add_test(NAME cli/render_shared
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/render_shared_test.py
                 ${CMAKE_SOURCE_DIR} $<TARGET_FILE:greta>)
add_test(NAME cli/render_jinja
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/render_jinja_test.py
                 $<TARGET_FILE:greta>)
set_tests_properties(cli/render_shared cli/render_jinja PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)

# The files of an audit as other programs see them.
add_test(NAME report/files
         COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/tools/report_files_test.py
                 ${CMAKE_SOURCE_DIR} $<TARGET_FILE:report_write_test>)
set_tests_properties(report/files PROPERTIES SKIP_RETURN_CODE 77)

# What is written under random JSON schemas, judged by another program.
add_test(NAME grammar/schemas
         COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/tests/tools/grammar_schemas_test.py
                 $<TARGET_FILE:grammar_schema_test>)
set_tests_properties(grammar/schemas PROPERTIES SKIP_RETURN_CODE 77)

# The program as people call it. Where ThreadSanitizer watches, only some of the commands that run a
# device in their own process: how audits end and what is traced is about other processes, and the
# audit's self-test plants races.
file(GLOB scripts CONFIGURE_DEPENDS tests/cli/*_test.sh)
if(GRETA_SANITIZE MATCHES "thread")
    list(FILTER scripts INCLUDE REGEX
         "/(audit_lines|audit_threads|bench|default_model|devices|flight|hip|infer|infer_prompts)_test\\.sh$")
else()
    list(FILTER scripts EXCLUDE REGEX "/audit_threads_test\\.sh$")
endif()
# A kernel on the emulator takes seconds; without optimisation, minutes.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    list(FILTER scripts EXCLUDE REGEX "/eval_emulated_test\\.sh$")
endif()
foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME cli/${name} COMMAND bash ${script})
    # An audit starts dozens of children; sanitized ones are slow.
    set_tests_properties(cli/${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT
        "GRETA=$<TARGET_FILE:greta>;GRETA_KERNELS=${greta_kernel_folder};GRETA_BUILD=${CMAKE_BINARY_DIR};GRETA_SOURCE=${CMAKE_SOURCE_DIR};GRETA_SANITIZE=${GRETA_SANITIZE}")
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

include(cmake/tests_gpu.cmake)
include(cmake/tests_faults.cmake)
include(cmake/tests_trace.cmake)
include(cmake/tests_labels.cmake)

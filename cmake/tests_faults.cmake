# Every call that can fail, failing once: the linker redirects them to
# tests/faults/fail_nth_calls.c.
set(fault_calls malloc calloc realloc aligned_alloc strdup free mmap64 munmap mprotect pthread_create
    pthread_join open64 fopen64 fstat64 read write pwrite64 ftruncate64 posix_fallocate64 fsync link
    rename XXH64_createState EVP_MD_CTX_new EVP_DigestInit_ex EVP_DigestUpdate EVP_DigestFinal_ex
    dlopen)
list(TRANSFORM fault_calls PREPEND "LINKER:--wrap=" OUTPUT_VARIABLE fault_options)
add_library(greta_fail_nth STATIC tests/faults/fail_nth.c tests/faults/fail_nth_calls.c)
target_link_libraries(greta_fail_nth PUBLIC greta_test_support PkgConfig::XXHASH OpenSSL::Crypto
                      PRIVATE greta_warnings)
target_link_options(greta_fail_nth PUBLIC ${fault_options})
# Modules are linked whole, so that a call that no test makes is seen too.
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

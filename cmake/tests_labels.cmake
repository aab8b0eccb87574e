# Which command runs a test. ./test runs those without a label in the release build, and those labelled
# `untrusted` in the ASan+UBSan build; ./test --full adds `full`, ./test --long adds `long`. A label is
# given here, or by LABELS where the test is added.

get_property(greta_tests DIRECTORY PROPERTY TESTS)

# The code that reads bytes from outside: files, recordings, JSON, the kernel's log, code objects, and
# the calls of a program that is traced.
set(untrusted_tests
    "unit/base_(bytes|compress|lines|mapfile|symbols|text)_test"
    "unit/tensor_(npy|shape)_test"
    "unit/(chat|coredump|event|gguf|grammar|interpose|model|template|tokenizer)_.*"
    "unit/(analyze_foreign(_fault|_leak)?|analyze_save|analyze_unseen_order|campaign_archive|campaign_files|campaign_matrix|convert_quantize)_test"
    "unit/(device_gpu_log|evaluate_recording|report_json|report_sarif|report_summary|tap_folder)_test"
    "fuzz/.*"
    "cli/(absurd_models|coredump|flight|inspect|quantize|render|tokenize)_test")

# Repeats: the same code on another emulated chip, through another table, or as a command what a test
# of the engine or the device does too; and what only a change of a compiler or of the kernels makes
# different.
set(full_tests
    "source/kernel_metadata"
    "cli/(audit_transfers|eval_emulated|gpu_limits)_test"
    "fake_gpu/(gpu_many_older|gpu_group_few|gpu_inspect_zones|ops_matmul)_test"
    "fake_hip/(gpu_group|gpu_inspect_zones|gpu_step)_test")

# These begin first, so that none of them is what a core waits for at the end.
set(slow_tests
    "cli/(audit|audit_archive|audit_compare|audit_ends|audit_transfers|eval|gpu_limits|trace)_test"
    "fake_gpu/(engine_ahead|session_ahead|gpu_engine|gpu_many|gpu_many_older|ops_matmul)_test"
    "source/kernel_metadata")

list(JOIN untrusted_tests "|" untrusted_tests)
list(JOIN full_tests "|" full_tests)
list(JOIN slow_tests "|" slow_tests)
add_custom_target(untrusted_tests) # the programs that those tests run
add_dependencies(untrusted_tests report_write_test) # makes what cli/flight_test reads
foreach(test IN LISTS greta_tests)
    if(test MATCHES "^(${untrusted_tests})$")
        set_property(TEST ${test} APPEND PROPERTY LABELS untrusted)
        get_filename_component(program ${test} NAME)
        if(test MATCHES "^cli/")
            set(program greta)
        endif()
        add_dependencies(untrusted_tests ${program})
    endif()
    if(test MATCHES "^(${full_tests})$")
        set_property(TEST ${test} APPEND PROPERTY LABELS full)
    endif()
    if(test MATCHES "^(${slow_tests})$")
        set_property(TEST ${test} PROPERTY COST 100)
    endif()
endforeach()

# A sanitizer names lines with a symbolizer, and complains on standard error where it finds none: also
# in a run without a finding, when it compares a leak with tests/leaks.supp. So it is given one by its
# path, the compiler's own if possible, or is kept from looking for one.
string(REGEX REPLACE "\\..*" "" compiler_version ${CMAKE_C_COMPILER_VERSION})
find_program(GRETA_SYMBOLIZER NAMES llvm-symbolizer addr2line
             HINTS /usr/lib/llvm-${compiler_version}/bin NO_CACHE)
set(symbolizer symbolize=0)
if(GRETA_SYMBOLIZER)
    set(symbolizer external_symbolizer_path=${GRETA_SYMBOLIZER})
endif()
if(GRETA_SANITIZE MATCHES "address")
    # The leak check of clang 14 takes a block of thread-local memory whose address ends in 010 for one
    # of glibc 2.19 and reads its size and place from the allocator's own header: one run in 256 dies of
    # "Tracer caught signal 11" at exit. Such blocks are found through glibc's table anyway.
    set_property(TEST ${greta_tests} APPEND PROPERTY ENVIRONMENT
        "ASAN_OPTIONS=intercept_tls_get_addr=0:${symbolizer}"
        "UBSAN_OPTIONS=${symbolizer}"
        "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/leaks.supp:print_suppressions=0")
elseif(GRETA_SANITIZE MATCHES "thread")
    set_property(TEST ${greta_tests} APPEND PROPERTY ENVIRONMENT "TSAN_OPTIONS=${symbolizer}")
endif()

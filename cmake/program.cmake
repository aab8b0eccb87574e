# The program, its other name, and what is made from its command tables: man pages, completion.

set_property(SOURCE src/cli/help.c src/cli/run.c src/cli/manual.c src/cli/bench_report.c
             src/cli/cmd_audit.c src/cli/cmd_trace.c APPEND PROPERTY
             COMPILE_DEFINITIONS GRETA_VERSION="${PROJECT_VERSION}")
# The commit an audit binds its evidence to, as of the build and not of the configuration.
add_custom_target(greta_commit BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/greta_commit.h
                  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}
                          -DOUT=${CMAKE_BINARY_DIR}/generated/greta_commit.h
                          -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)
add_dependencies(greta_cli greta_commit)
target_include_directories(greta_cli PRIVATE ${CMAKE_BINARY_DIR}/generated)
set_property(SOURCE src/cli/cmd_audit.c src/cli/cmd_trace.c APPEND PROPERTY
             COMPILE_DEFINITIONS GRETA_COMMIT_HEADER="greta_commit.h")
# The model that is run when none is named: installed next to the program, linked into the build
# folder; src/cli/default_model.c looks in both places.
set(greta_model greta-stories-14m-q8_0.gguf)
file(RELATIVE_PATH greta_model_folder ${CMAKE_INSTALL_FULL_BINDIR}
     ${CMAKE_INSTALL_FULL_DATADIR}/greta)
set_property(SOURCE src/cli/default_model.c APPEND PROPERTY COMPILE_DEFINITIONS
             GRETA_MODEL_NAME="${greta_model}" GRETA_MODEL_FOLDER="${greta_model_folder}")
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/greta)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/models/${greta_model}
     ${CMAKE_BINARY_DIR}/share/greta/${greta_model} SYMBOLIC)
install(FILES models/${greta_model} DESTINATION ${CMAKE_INSTALL_DATADIR}/greta)

# Decoders and kernels must give the same bits whatever the compiler: no multiply-add that is not
# written as one.
foreach(module tensor ops)
    if(TARGET greta_${module})
        target_compile_options(greta_${module} PRIVATE -ffp-contract=off)
    endif()
endforeach()

add_executable(greta src/cli/main.c)
target_link_libraries(greta PRIVATE greta_cli greta_warnings)

install(TARGETS greta)
install(CODE "file(CREATE_LINK greta \
\"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/greta_infer\" SYMBOLIC)")
add_custom_command(TARGET greta POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -E create_symlink greta greta_infer)

# A fuzzing build has no main of its own to run; a sanitized one is slow but works.
set(pages ${CMAKE_BINARY_DIR}/man/greta.1)
add_custom_command(OUTPUT ${pages} DEPENDS greta
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
                   COMMAND greta manual > ${pages})
foreach(command infer chat audit trace flight coredump eval bench diff-taps inspect synth quantize devices render tokenize detokenize manual completion help)
    set(page ${CMAKE_BINARY_DIR}/man/greta-${command}.1)
    add_custom_command(OUTPUT ${page} DEPENDS greta ${CMAKE_BINARY_DIR}/man/greta.1
                       COMMAND greta manual ${command} > ${page})
    list(APPEND pages ${page})
endforeach()
set(completions "")
foreach(shell bash zsh fish)
    set(script ${CMAKE_BINARY_DIR}/completion/greta.${shell})
    add_custom_command(OUTPUT ${script} DEPENDS greta
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
                       COMMAND greta completion ${shell} > ${script})
    list(APPEND completions ${script})
endforeach()
add_custom_target(greta_documents ALL DEPENDS ${pages} ${completions})

install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/completion/greta.bash RENAME greta
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completion/greta.zsh RENAME _greta
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_BINARY_DIR}/completion/greta.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

if(GRETA_FUZZ)
    file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/fuzz_*.c)
    foreach(fuzzer IN LISTS fuzzers)
        get_filename_component(name ${fuzzer} NAME_WE)
        add_executable(${name} ${fuzzer})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        target_link_libraries(${name} PRIVATE greta_model greta_event greta_analyze greta_report
                          greta_tokenizer greta_grammar greta_template greta_chat greta_device_gpu
                          greta_code_object greta_cuda_image
                          greta_inject
                          greta_warnings)
    endforeach()
endif()

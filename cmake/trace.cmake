# The libraries that greta trace puts into foreign programs: libgreta_trace_<name>.so, from
# src/interpose/ and src/interpose/<folder>/. They need nothing but the C library, show nothing but
# their entry points, and are never built with sanitizers: the programs are not.

# without: files of the folder that belong to another library, as a regular expression.
function(greta_trace_library name folder map without)
    file(GLOB sources CONFIGURE_DEPENDS src/interpose/*.c src/interpose/${folder}/*.c
         src/event/*.c)
    list(FILTER sources EXCLUDE REGEX "/flight_pack\\.c$|/${folder}/(${without})\\.c$") # the former needs zstd
    list(APPEND sources src/base/status.c src/base/clock.c src/base/mapfile.c src/base/fault.c
         src/base/bytes.c src/base/text.c src/base/parallel.c)
    set(target greta_trace_${name})
    add_library(${target} SHARED ${sources})
    target_include_directories(${target} PRIVATE src)
    # xxhash as a header only: a library of that name in the program may be another version.
    target_compile_definitions(${target} PRIVATE XXH_INLINE_ALL)
    target_compile_options(${target} PRIVATE -fvisibility=hidden)
    if(GRETA_SANITIZE OR GRETA_FUZZ)
        target_compile_options(${target} PRIVATE -fno-sanitize=all)
        target_link_options(${target} PRIVATE -fno-sanitize=all)
    endif()
    set(map ${CMAKE_SOURCE_DIR}/src/interpose/${folder}/${map})
    target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,defs)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
    target_link_libraries(${target} PRIVATE greta_warnings Threads::Threads ${CMAKE_DL_LIBS})
    install(TARGETS ${target} DESTINATION ${CMAKE_INSTALL_LIBDIR}/greta)
endfunction()

greta_trace_library(cuda cuda exports.map "inject|cupti")
greta_trace_library(cupti cuda exports_cupti.map "preload|wrappers|ranges_nvtx|coredump|exit_guard")
greta_trace_library(hip hip exports.map "")
# Page traps: a library of its own, which only greta trace --trap-host preloads. Its wrappers have
# their own signatures of functions that the C library may declare with attributes.
file(GLOB pages_sources CONFIGURE_DEPENDS src/interpose/pages/*.c)
add_library(greta_trace_pages SHARED ${pages_sources} src/interpose/next_dlsym.c)
target_include_directories(greta_trace_pages PRIVATE src)
target_compile_options(greta_trace_pages PRIVATE -fvisibility=hidden -fno-builtin
                       -U_FORTIFY_SOURCE -U_FILE_OFFSET_BITS)
if(GRETA_SANITIZE OR GRETA_FUZZ)
    target_compile_options(greta_trace_pages PRIVATE -fno-sanitize=all)
    target_link_options(greta_trace_pages PRIVATE -fno-sanitize=all)
endif()
target_link_options(greta_trace_pages PRIVATE -Wl,-z,defs)
target_link_libraries(greta_trace_pages PRIVATE greta_warnings Threads::Threads ${CMAKE_DL_LIBS})
install(TARGETS greta_trace_pages DESTINATION ${CMAKE_INSTALL_LIBDIR}/greta)

# Their dlsym must leave no stack frame: what RTLD_NEXT means depends on the caller.
set_source_files_properties(src/interpose/cuda/preload.c src/interpose/hip/preload.c PROPERTIES
                            COMPILE_OPTIONS "-O2;-foptimize-sibling-calls")

# Reads foreign bytes: tests and fuzzers link it by itself.
add_library(greta_code_object STATIC src/interpose/hip/code_object.c src/interpose/hip/message.c)
target_link_libraries(greta_code_object PUBLIC greta_base PRIVATE greta_warnings)

add_library(greta_cuda_image STATIC src/interpose/cuda/images.c src/interpose/cuda/ptx.c
            src/interpose/cuda/ptx_flow.c src/interpose/cuda/ptx_statement.c)
target_link_libraries(greta_cuda_image PUBLIC greta_base ${CMAKE_DL_LIBS} PRIVATE greta_warnings)

# Where greta looks for them when it is installed, from the folder of its own program.
file(RELATIVE_PATH greta_library_folder ${CMAKE_INSTALL_FULL_BINDIR}/..
     ${CMAKE_INSTALL_FULL_LIBDIR}/greta)
target_compile_definitions(greta_campaign PRIVATE GRETA_LIBRARY_FOLDER="${greta_library_folder}")
add_dependencies(greta greta_trace_cuda greta_trace_cupti greta_trace_hip greta_trace_pages)

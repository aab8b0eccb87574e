# GPU kernels: one source, compiled by clang 19 for every chip below and embedded in the program. A
# build without that compiler works and says so in `greta devices`. Where NVIDIA's assembler is found
# the machine code is embedded too, which spares the driver that work at start. nvcc is not used where it
# is found: its code was measured and is not faster (bench/NOTES.md).
option(GRETA_GPU_KERNELS "Build the GPU kernels where clang-19 and lld-19 are found" ON)
# Chips the GPU kernels are built for. Not in the cache unless it was given: a build folder must not keep
# an older list.
if(NOT GRETA_GPU_CHIPS)
    set(GRETA_GPU_CHIPS sm_90a sm_90 sm_80 gfx942 gfx90a)
endif()
if(GRETA_GPU_KERNELS)
    find_program(GRETA_GPU_CLANG clang-19)
    find_program(GRETA_GPU_LLD ld.lld-19)
    find_program(GRETA_GPU_PTXAS ptxas PATHS /usr/local/cuda/bin)
endif()

set(greta_kernel_source ${CMAKE_SOURCE_DIR}/src/ops/gpu/kernels/image.c)
# They do not depend on how the host's code is built: a build may take those of another.
set(GRETA_GPU_KERNELS_MADE "" CACHE PATH "Folder with the kernels another build of this source made")
set(greta_kernel_folder ${CMAKE_BINARY_DIR}/kernels)
if(GRETA_GPU_KERNELS_MADE)
    set(greta_kernel_folder ${GRETA_GPU_KERNELS_MADE})
endif()
set(greta_kernel_flags -O3 -std=c17 -ffreestanding -fno-math-errno -ffp-contract=off -nogpulib
    -Wall -Wextra -Werror -Wno-pass-failed -I ${CMAKE_SOURCE_DIR}/src)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/kernels)

set(greta_kernel_files "")
set(greta_kernel_symbols "")
set(greta_kernel_rows "")
set(greta_kernel_count 0)

# As add_custom_command, unless the file is made already.
function(greta_kernel_command)
    if(NOT GRETA_GPU_KERNELS_MADE)
        add_custom_command(${ARGV})
    endif()
endfunction()

# Adds a file to what is embedded; features as in device.h.
function(greta_embed vendor chip file features)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER "gpu_code_${name}" symbol)
    list(APPEND greta_kernel_files ${file})
    string(APPEND greta_kernel_symbols
        "__asm__(\".section .rodata\\n.balign 64\\n.globl ${symbol}\\n${symbol}:\\n\"\n"
        "        \".incbin \\\"${file}\\\"\\n.byte 0\\n.globl ${symbol}_end\\n${symbol}_end:\\n\"\n"
        "        \".previous\\n\");\nextern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND greta_kernel_rows
        "    { \"${vendor}\", \"${chip}\", ${symbol}, ${symbol}_end, ${features} },\n")
    math(EXPR count "${greta_kernel_count} + 1")
    set(greta_kernel_files ${greta_kernel_files} PARENT_SCOPE)
    set(greta_kernel_symbols "${greta_kernel_symbols}" PARENT_SCOPE)
    set(greta_kernel_rows "${greta_kernel_rows}" PARENT_SCOPE)
    set(greta_kernel_count ${count} PARENT_SCOPE)
endfunction()

if(GRETA_GPU_CLANG AND GRETA_GPU_LLD)
    # Addresses in shared memory have 32 bits: fewer instructions make them.
    set(nvidia_short_addresses -Xclang -fcuda-short-ptr -mllvm -nvptx-short-ptr)
    set(nvidia_chips ${GRETA_GPU_CHIPS})
    list(FILTER nvidia_chips INCLUDE REGEX "^sm_")
    foreach(chip IN LISTS nvidia_chips)
        set(file ${greta_kernel_folder}/${chip}.ptx)
        set(features DEVICE_GPU_WARP_MATRIX)
        if(chip STREQUAL "sm_90a")
            set(features "${features} | DEVICE_GPU_WARPGROUPS")
        endif()
        greta_kernel_command(OUTPUT ${file}
            COMMAND ${GRETA_GPU_CLANG} --target=nvptx64-nvidia-cuda -march=${chip}
                    -Xclang -target-feature -Xclang +ptx80 ${nvidia_short_addresses}
                    ${greta_kernel_flags}
                    -MD -MF ${file}.d -MT ${file} -S ${greta_kernel_source} -o ${file}.plain
            COMMAND sed -E -f ${CMAKE_SOURCE_DIR}/cmake/launch_bounds.sed ${file}.plain > ${file}
            DEPENDS ${greta_kernel_source} ${CMAKE_SOURCE_DIR}/cmake/launch_bounds.sed
            DEPFILE ${file}.d COMMENT "GPU kernels for ${chip}" VERBATIM)
        if(chip STREQUAL "sm_90a" AND GRETA_GPU_PTXAS)
            set(machine_code ${greta_kernel_folder}/${chip}.cubin)
            greta_kernel_command(OUTPUT ${machine_code}
                COMMAND ${GRETA_GPU_PTXAS} -arch=${chip} -O3 ${file} -o ${machine_code}
                DEPENDS ${file} COMMENT "GPU machine code for ${chip}" VERBATIM)
            greta_embed(cuda ${chip} ${machine_code} "${features}")
        endif()
        greta_embed(cuda ${chip} ${file} "${features}")
    endforeach()
    set(amd_chips ${GRETA_GPU_CHIPS})
    list(FILTER amd_chips INCLUDE REGEX "^gfx")
    foreach(chip IN LISTS amd_chips)
        set(file ${greta_kernel_folder}/${chip}.co)
        greta_kernel_command(OUTPUT ${file}
            COMMAND ${GRETA_GPU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=${chip}
                    -mcode-object-version=5 ${greta_kernel_flags} -emit-llvm
                    -MD -MF ${file}.d -MT ${file} -S ${greta_kernel_source} -o ${file}.plain
            # Blocks have at most 256 threads; otherwise the compiler plans for 1024.
            COMMAND sed -E
                    "s/^(attributes #[0-9]+ = \\{)/\\1 \"amdgpu-flat-work-group-size\"=\"1,256\"/"
                    ${file}.plain > ${file}.ll
            COMMAND ${GRETA_GPU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=${chip}
                    -mcode-object-version=5 -O3 -nogpulib -Wno-override-module -Wno-pass-failed
                    ${file}.ll -o ${file}
            DEPENDS ${greta_kernel_source} DEPFILE ${file}.d
            COMMENT "GPU kernels for ${chip}" VERBATIM)
        greta_embed(hip ${chip} ${file} 0)
    endforeach()
else()
    message(STATUS "GPU kernels: not built (clang-19 and lld-19 are not here)")
endif()

set(greta_codes ${CMAKE_BINARY_DIR}/kernels/codes.c)
file(CONFIGURE OUTPUT ${greta_codes} @ONLY CONTENT "/* Made by cmake/kernels.cmake. */
#include \"ops/gpu/plan.h\"
@greta_kernel_symbols@
const struct device_gpu_code gpu_codes[] = {
@greta_kernel_rows@    { 0, 0, 0, 0, 0 },
};
")
set_source_files_properties(${greta_codes} PROPERTIES OBJECT_DEPENDS "${greta_kernel_files}")
target_sources(greta_ops PRIVATE ${greta_codes})

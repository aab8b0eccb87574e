# Benchmarks: built with everything else so that they do not rot, run by hand (bench/README.md).
file(GLOB bench_support CONFIGURE_DEPENDS bench/*.c)
set(bench_programs bench_matmul bench_decode bench_upload bench_grammar)
foreach(program IN LISTS bench_programs)
    list(FILTER bench_support EXCLUDE REGEX "/${program}\\.c$")
endforeach()
foreach(program IN LISTS bench_programs)
    add_executable(${program} bench/${program}.c ${bench_support})
    target_include_directories(${program} PRIVATE bench)
    target_link_libraries(${program} PRIVATE greta_cli greta_warnings m)
endforeach()

# greta compared with llama.cpp: its libraries are loaded when it runs (bench/peers.sh fetches them).
file(GLOB peers_sources CONFIGURE_DEPENDS bench/peers/*.c)
add_executable(bench_peers ${peers_sources} bench/bench_peaks.c bench/bench_probe.c)
target_include_directories(bench_peers PRIVATE bench bench/peers)
target_link_libraries(bench_peers PRIVATE greta_cli greta_warnings m ${CMAKE_DL_LIBS})

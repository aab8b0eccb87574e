# gpu_walk_test.sh - GRETA_GPU_WALK: the bundled model writes the same on the emulated driver with one
# kernel for a token and with one for each launch.
source "$(dirname "$0")/lib.sh"
[ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ] || exit 77
# A kernel on the emulator takes seconds; without optimisation, minutes.
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$GRETA_BUILD/CMakeCache.txt" || exit 77

for walk in 0 1; do
    expect_exit 0 env LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" GRETA_GPU_WALK=$walk "$GRETA" infer \
        -m "$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf" -p "Once upon a time" -n 4 --temp 0 --device cuda:0
    cp "$captured/out" "$walk.txt"
done
cmp 0.txt 1.txt || fail "the walk writes another text"
# A block that never comes ends the run, under the name of what was waited for; only a walk waits.
for row in 0:0: 1:1:rope; do
    walk=${row%%:*} rest=${row#*:}
    expect_exit "${rest%:*}" env LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" GRETA_GPU_WALK=$walk \
        FAKE_GPU_LOST_BLOCK=1 "$GRETA" infer -m "$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf" \
        -p "Once" -n 2 --temp 0 --device cuda:0
    [ -z "${rest#*:}" ] || expect_stderr "first fault: ${rest#*:}"
done

finish

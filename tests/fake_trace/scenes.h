/* scenes.h - what the scenes of the traced program share. */
#ifndef GRETA_TESTS_SCENES_H
#define GRETA_TESTS_SCENES_H

#include "fake_trace.h"

enum { BYTES = 1 << 16 };

struct scene {
    address a, b;
    stream first, second;
    unsigned char *pinned;
    function add;
};

void open_scene(struct scene *scene);
function kernel(const char *name);
void launch(function which, address target, address source, stream on);

/* In scenes.c, scenes_order.c, scenes_threads.c, scenes_contents.c, scenes_ptx.c and
 * scenes_ranges.c. SCENE(its name, its function). */
#define SCENES                                                                                     \
    SCENE("all-kinds", all_kinds)                                                                  \
    SCENE("pool-freed", pool_freed)                                                                \
    SCENE("pool-freed-elsewhere", pool_freed_elsewhere)                                            \
    SCENE("unmapped", unmapped)                                                                    \
    SCENE("unregistered", unregistered)                                                            \
    SCENE("registered-twice", registered_twice)                                                    \
    SCENE("all-shapes", all_shapes)                                                                \
    SCENE("rows-past-end", rows_past_end)                                                          \
    SCENE("planes-past-end", planes_past_end)                                                      \
    SCENE("fill-past-end", fill_past_end)                                                          \
    SCENE("peers-unordered", peers_unordered)                                                      \
    SCENE("waits", waits)                                                                          \
    SCENE("asked-too-early", asked_too_early)                                                      \
    SCENE("host-function", host_function)                                                          \
    SCENE("stale-node", stale_node)                                                                \
    SCENE("changed-node", changed_node)                                                            \
    SCENE("fault-at-free", fault_at_free)                                                          \
    SCENE("reset", reset)                                                                          \
    SCENE("after-reset", after_reset)                                                              \
    SCENE("host-to-host", host_to_host)                                                            \
    SCENE("staged", staged)                                                                        \
    SCENE("peers-ordered", peers_ordered)                                                          \
    SCENE("managed-copy", managed_copy)                                                            \
    SCENE("polled-flag", polled_flag)                                                              \
    SCENE("polled-flag-elsewhere", polled_flag_elsewhere)                                          \
    SCENE("polled-copy", polled_copy)                                                              \
    SCENE("held-back", held_back)                                                                  \
    SCENE("rewritten-before-flag", rewritten_before_flag)                                          \
    SCENE("rewritten-after-kernel", rewritten_after_kernel)                                        \
    SCENE("flag-of-another", flag_of_another)                                                      \
    SCENE("unordered-flag", unordered_flag)                                                        \
    SCENE("graph-with-function", graph_with_function)                                              \
    SCENE("graph-unordered", graph_unordered)                                                      \
    SCENE("weights", weights)                                                                      \
    SCENE("graph-taken-again", graph_taken_again)                                                  \
    SCENE("crowd", crowd)                                                                          \
    SCENE("default-streams", default_streams)                                                      \
    SCENE("unwritten", unwritten)                                                                  \
    SCENE("unwritten-within", unwritten_within)                                                    \
    SCENE("unwritten-end", unwritten_end)                                                          \
    SCENE("unwritten-reused", unwritten_reused)                                                    \
    SCENE("written-by-kernel", written_by_kernel)                                                  \
    SCENE("written-through-table", written_through_table)                                          \
    SCENE("written-in-part", written_in_part)                                                      \
    SCENE("written-after-blob", written_after_blob)                                                \
    SCENE("proven-readers", proven_readers)                                                        \
    SCENE("unproven-readers", unproven_readers)                                                    \
    SCENE("proven-writer", proven_writer)                                                          \
    SCENE("proven-reader-overwritten", proven_reader_overwritten)                                  \
    SCENE("proven-struct", proven_struct)                                                          \
    SCENE("unproven-struct", unproven_struct)                                                      \
    SCENE("ranges", ranges)

#define SCENE(name, function) void function(struct scene *scene);
SCENES
#undef SCENE

#endif

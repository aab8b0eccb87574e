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

/* In scenes*.c. SCENE(its name, its function). */
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
    SCENE("dump-streams", dump_streams)                                                            \
    SCENE("dump-equal", dump_equal)                                                                \
    SCENE("dump-equal-after-fill", dump_equal_after_fill)                                          \
    SCENE("dump-graph", dump_graph)                                                                \
    SCENE("dump-graph-waited", dump_graph_waited)                                                  \
    SCENE("dump-contexts", dump_contexts)                                                          \
    SCENE("dump-contexts-apart", dump_contexts_apart)                                              \
    SCENE("dump-unreported", dump_unreported)                                                      \
    SCENE("dump-callback", dump_callback)                                                          \
    SCENE("dump-crash", dump_crash)                                                                \
    SCENE("crowd", crowd)                                                                          \
    SCENE("default-streams", default_streams)                                                      \
    SCENE("unwritten", unwritten)                                                                  \
    SCENE("unwritten-within", unwritten_within)                                                    \
    SCENE("unwritten-end", unwritten_end)                                                          \
    SCENE("unwritten-reused", unwritten_reused)                                                    \
    SCENE("written-by-kernel", written_by_kernel)                                                  \
    SCENE("written-through-table", written_through_table)                                          \
    SCENE("written-in-part", written_in_part)                                                      \
    SCENE("written-elsewhere", written_elsewhere)                                                  \
    SCENE("written-from-array", written_from_array)                                                \
    SCENE("written-through-map", written_through_map)                                              \
    SCENE("written-after-blob", written_after_blob)                                                \
    SCENE("proven-readers", proven_readers)                                                        \
    SCENE("unproven-readers", unproven_readers)                                                    \
    SCENE("proven-writer", proven_writer)                                                          \
    SCENE("proven-reader-overwritten", proven_reader_overwritten)                                  \
    SCENE("proven-struct", proven_struct)                                                          \
    SCENE("unproven-struct", unproven_struct)                                                      \
    SCENE("ranges", ranges)                                                                        \
    SCENE("early-read", early_read)                                                                \
    SCENE("early-write", early_write)                                                              \
    SCENE("late-write", late_write)                                                                \
    SCENE("early-read-of-few", early_read_of_few)                                                  \
    SCENE("early-read-of-own", early_read_of_own)                                                  \
    SCENE("read-after-waits", read_after_waits)                                                    \
    SCENE("read-after-flag", read_after_flag)                                                      \
    SCENE("source-read", source_read)                                                              \
    SCENE("neighbours", neighbours)                                                                \
    SCENE("neighbour-then-early", neighbour_then_early)                                            \
    SCENE("edges-of-own", edges_of_own)                                                            \
    SCENE("given-again", given_again)                                                              \
    SCENE("waited-elsewhere", waited_elsewhere)                                                    \
    SCENE("many-traps", many_traps)                                                                \
    SCENE("kernel-early", kernel_early)                                                            \
    SCENE("kernel-looked-once", kernel_looked_once)                                                \
    SCENE("kernel-polled", kernel_polled)                                                          \
    SCENE("kernel-input", kernel_input)                                                            \
    SCENE("kernel-other-fields", kernel_other_fields)                                              \
    SCENE("kernel-let-go", kernel_let_go)                                                          \
    SCENE("managed-early", managed_early)                                                          \
    SCENE("managed-after-wait", managed_after_wait)                                                \
    SCENE("own-handler", own_handler)                                                              \
    SCENE("own-step-handler", own_step_handler)                                                    \
    SCENE("null-read", null_read)                                                                  \
    SCENE("blocked-signals", blocked_signals)                                                      \
    SCENE("trap-crowd", trap_crowd)                                                                \
    SCENE("forked", forked)                                                                        \
    SCENE("early-system-write", early_system_write)                                                \
    SCENE("late-system-read", late_system_read)                                                    \
    SCENE("early-file-write", early_file_write)                                                    \
    SCENE("neighbour-system-calls", neighbour_system_calls)                                        \
    SCENE("ring", ring)                                                                            \
    SCENE("signal-taken", signal_taken)

#define SCENE(name, function) void function(struct scene *scene);
SCENES
#undef SCENE

#endif

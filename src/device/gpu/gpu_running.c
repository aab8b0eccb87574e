/* gpu_running.c - what may have been running when the device was lost, in words.
 *
 * Crumbs and waits exclude launches; they do not single one out (enum crumb_order). The message
 * names a launch only if it is the only one left. The analysis of a recording knows more, such as
 * which streams waited for which; this is for runs without a recording. */
#include "device/gpu/gpu_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMED_LIMIT 3u

/* A launch that may have been running. */
struct runner {
    const char *op;
    struct event_scope scope;
    uint32_t stream_index;
    uint64_t event_id;
};

struct runners {
    struct runner named[NAMED_LIMIT]; /* launches that had begun come first */
    uint32_t begun;                   /* of them */
    uint64_t count;                   /* of all */
};

static void add(struct runners *runners, const struct runner *runner, bool begun)
{
    uint32_t kept = runners->count < NAMED_LIMIT ? (uint32_t)runners->count : NAMED_LIMIT;
    uint32_t place = begun ? runners->begun : kept;
    runners->count++;
    if (place >= NAMED_LIMIT)
        return;
    if (kept == NAMED_LIMIT)
        kept--;
    memmove(&runners->named[place + 1], &runners->named[place],
            (kept - place) * sizeof(runners->named[0]));
    runners->named[place] = *runner;
    runners->begun += begun;
}

/* A stream's launches one after the other. */
struct walk {
    struct runners *runners;
    uint32_t stream_index;
    bool early;
    uint32_t left; /* later launches that may be running as well */
};

static void pass(struct walk *walk, const struct gpu_history *given,
                 const struct gpu_graph_node *node, bool begun)
{
    struct runner runner = { given->op, given->scope, walk->stream_index, given->event_id };
    if (node) {
        runner.op = node->op;
        runner.scope = node->scope;
        runner.scope.step = given->scope.step;
    }
    if (begun || walk->left) {
        add(walk->runners, &runner, begun);
        walk->left -= !begun && !walk->early;
    }
}

/* A replay; node 0: it has not begun. */
static void pass_graph(struct walk *walk, const struct gpu_history *given, uint32_t node,
                       uint32_t launches)
{
    const struct gpu_graph *graph = given->graph;
    /* One kernel may do several launches of a graph. */
    if (walk->left == 1)
        walk->left = CRUMB_JOIN_LIMIT;
    for (uint32_t i = node ? node : 1; i <= graph->count; i++)
        if (graph->nodes[i - 1].is_launch)
            pass(walk, given, &graph->nodes[i - 1], node && i < node + launches);
    if (!walk->early && walk->left)
        walk->left = walk->left == CRUMB_JOIN_LIMIT;
}

/* The number may be the one that the replay before left: then the first kernel of this one was
 * about to leave its own. */
static bool may_be_stale(const struct gpu_history *before, uint32_t node)
{
    return before && before->graph && node > 1 && node + CRUMB_JOIN_LIMIT > before->graph->count &&
           node <= before->graph->count;
}

static void walk_stream(const struct gpu_device *gpu, const struct gpu_stream *stream,
                        struct runners *runners)
{
    const struct crumb_stream *crumbs = &gpu->page->streams[stream->index];
    uint64_t entered = crumb_entered(crumbs), done = crumb_finished(crumbs);
    uint64_t waited = __atomic_load_n(&gpu->waited[stream->index], __ATOMIC_RELAXED);
    uint32_t launches, node = crumb_node(crumbs, &launches);
    struct walk walk = { runners, stream->index, gpu->facts.early_start, 1 };
    if (waited > done)
        done = waited;
    if (entered && entered - 1 > done)
        done = entered - 1;
    uint64_t oldest = stream->given > GPU_HISTORY ? stream->given - GPU_HISTORY : 0;
    for (uint64_t i = oldest; i < stream->given; i++) {
        const struct gpu_history *given = &stream->history[i % GPU_HISTORY];
        const struct gpu_history *before = i > oldest ? &stream->history[(i - 1) % GPU_HISTORY]
                                                      : NULL;
        bool begun = given->event_id == entered;
        if (given->event_id <= done || (before && before->event_id == given->event_id))
            continue;
        if (given->graph && begun && (node == 0 || node > given->graph->count))
            node = 1; /* its first kernel was about to leave its number */
        if (given->graph && begun && may_be_stale(before, node)) {
            struct walk first = { runners, stream->index, false, 1 };
            pass_graph(&first, given, 0, 0);
        }
        if (given->graph)
            pass_graph(&walk, given, begun ? node : 0, launches);
        else if (given->is_launch || begun)
            pass(&walk, given, NULL, begun);
    }
}

static void write_runner(const struct runner *runner, char *words, size_t bytes)
{
    char layer[32] = "", step[32] = "";
    if (runner->scope.layer >= 0)
        snprintf(layer, sizeof(layer), ", layer %" PRId32, runner->scope.layer);
    if (runner->scope.step >= 0)
        snprintf(step, sizeof(step), ", step %" PRId32, runner->scope.step);
    snprintf(words, bytes, "%s%s%s%s%s, stream %" PRIu32 ", event %" PRIu64, runner->op, layer,
             step, runner->scope.tensor[0] ? ", tensor " : "", runner->scope.tensor,
             runner->stream_index, runner->event_id);
}

void gpu_describe_running(struct gpu_device *gpu, char *words, size_t bytes)
{
    struct runners runners = { .count = 0 };
    pthread_mutex_lock(&gpu->lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT && gpu->page; i++)
        if (gpu->streams[i])
            walk_stream(gpu, gpu->streams[i], &runners);
    pthread_mutex_unlock(&gpu->lock);
    size_t used = 0;
    words[0] = '\0';
    if (runners.count == 0)
        snprintf(words, bytes, "launch not known");
    else if (runners.count > 1)
        used = (size_t)snprintf(words, bytes, "one of %" PRIu64 " launches: ", runners.count);
    for (uint32_t i = 0; i < NAMED_LIMIT && i < runners.count && used < bytes; i++) {
        char one[160];
        write_runner(&runners.named[i], one, sizeof(one));
        used += (size_t)snprintf(words + used, bytes - used, "%s%s", i ? "; " : "", one);
    }
    if (runners.count > NAMED_LIMIT && used < bytes)
        snprintf(words + used, bytes - used, "; %" PRIu64 " more", runners.count - NAMED_LIMIT);
}

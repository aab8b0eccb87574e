/* analyze_order.h - three buffers and three streams, and a check of the one finding that calls on
 * them give: what the tests of happens-before share. */
#ifndef GRETA_TESTS_ANALYZE_ORDER_H
#define GRETA_TESTS_ANALYZE_ORDER_H

#include "analyze_fixture.h"

#include "analyze/analyze_impl.h"

enum { A = 1, B = 2, C = 3 }; /* buffers and streams */

/* Two buffers, one written by a copy in, and nothing pending. */
static inline void order_begin(struct script *script)
{
    script_open(script, AUDIT_LOG);
    for (uint32_t i = A; i <= C; i++) {
        script_buffer(script, i, i == A ? "a" : i == B ? "b" : "c", false);
        script_call(script, EVENT_STREAM_CREATE, i, 0);
        script_copy(script, EVENT_FILL, A, i, 0, BUFFER_BYTES, 0);
    }
    script_sync(script, A);
}

static inline void order_end(struct script *script, enum hypothesis hypothesis, uint64_t cause,
                             uint64_t other)
{
    const struct analysis *analysis = script_finish(script, NULL);
    if (!cause) {
        if (analysis->finding_count)
            fail_msg("expected no finding, found %s at event %ju",
                     hypothesis_info(analysis->findings[0].hypothesis)->slug,
                     (uintmax_t)analysis->findings[0].cause.event_id);
    } else {
        CHECK_FINDING(analysis, hypothesis, cause);
        assert_int_equal(find_finding(analysis, hypothesis)->other.event_id, other);
        assert_int_equal(analysis->finding_count, 1);
    }
    script_close(script);
}

#endif

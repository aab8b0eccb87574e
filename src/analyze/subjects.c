/* subjects.c - what a foreign program did, and whether it could be looked at: what the absence of
 * findings does not cover is said with the verdict. */
#include "analyze/analyze_impl.h"

const char *analyze_subject_name(enum analyze_subject subject)
{
    static const char *const names[] = { "copies",  "order",   "lifetimes",
                                         "sources", "kernels", "host-reads" };
    _Static_assert(COUNT_OF(names) == SUBJECT_COUNT, "every subject has a name");
    ASSERT((unsigned)subject < SUBJECT_COUNT);
    return names[subject];
}

static void note(struct analyze_subjects *subjects, enum analyze_subject subject, bool seen)
{
    *(seen ? &subjects->seen : &subjects->missed) |= UINT32_C(1) << subject;
}

static void note_host_reads(struct analyze_subjects *subjects, const struct event *event)
{
    note(subjects, SUBJECT_HOST_READS, (event->flags & EVENT_WATCHED) != 0);
}

void subjects_note(struct analyze_subjects *subjects, const struct event *event)
{
    if (!(event->flags & EVENT_FOREIGN))
        return;
    bool unwaited = !(event->flags & EVENT_SYNCHRONOUS);
    switch (event->kind) {
    case EVENT_BUFFER_CREATE:
        note(subjects, SUBJECT_LIFETIMES, true);
        return;
    case EVENT_COPY_IN:
        if (unwaited && !(event->flags & EVENT_PAGEABLE))
            note(subjects, SUBJECT_SOURCES, !(event->flags & EVENT_SAMPLED));
        break;
    case EVENT_COPY_OUT:
        if (unwaited)
            note_host_reads(subjects, event);
        break;
    case EVENT_LAUNCH:
    case EVENT_GRAPH_REPLAY:
        note(subjects, SUBJECT_KERNELS, false);
        if (event->flags & EVENT_MAY_TELL) /* it may write memory of the host */
            note_host_reads(subjects, event);
        note(subjects, SUBJECT_ORDER, true);
        return;
    case EVENT_HOST_TRAPS:
        /* The traps that are set now go, or no more fit. */
        if (event->host_traps.state != EVENT_TRAPS_ON && (subjects->seen >> SUBJECT_HOST_READS & 1))
            note(subjects, SUBJECT_HOST_READS, false);
        return;
    case EVENT_COPY_WITHIN:
    case EVENT_FILL:
        break;
    default:
        return;
    }
    note(subjects, SUBJECT_COPIES, true);
    note(subjects, SUBJECT_ORDER, true);
}

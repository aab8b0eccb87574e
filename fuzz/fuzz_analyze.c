/* fuzz_analyze.c - any events: the analysis stays within its bounds and its own rules.
 *
 * The input is a list of events in 16 bytes each, with fields small enough to meet each other: the
 * same few streams, buffers and objects. They go to an analyzer one by one and, as a flight file
 * with tables, checkpoint and crumbs, to the reading side. Its first byte chooses, also whether
 * they are of a foreign program: then 4 bytes more say what only those have. */
#include "analyze/analyze_impl.h"
#include "base/bytes.h"
#include "base/text.h"
#include "flight_file.h"
#include "report/finding.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 32u
#define ALLOCATIONS 8u
#define GRAPH_RECORDS 8u
#define EVENT_BYTES 16u
#define FOREIGN_EVENT_BYTES 20u

enum { WHOLE_FILE = 1, CHECKPOINT = 2, CLOSED = 4, DESCRIBE = 8, OLD_IDS = 16, FOREIGN = 32 };

static size_t input_bytes(uint8_t what)
{
    return what & FOREIGN ? FOREIGN_EVENT_BYTES : EVENT_BYTES;
}

static void require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

/* Mostly small numbers, sometimes the largest. */
static uint64_t stretch(uint8_t byte)
{
    return byte < 240 ? byte & 15u : UINT64_MAX - (byte & 15u);
}

/* What only events of a foreign program have. */
static void make_foreign(struct event *event, const uint8_t *in)
{
    event->flags = (uint32_t)(EVENT_FOREIGN | in[0] << 1 | (in[1] & 3u) << 9);
    event->stack_index = (in[2] >> 2) & 15u;
    /* Streams have default ones among them; objects graphs that are recorded into. */
    if (in[3] & 1)
        memset(event->words, 0, sizeof(event->words));
    if (event->kind == EVENT_LAUNCH)
        event->launch.name_index = in[2] >> 6;
    if (in[3] & 2)
        event->stream_index = in[3] >> 6;
    if (in[3] & 4)
        event->check = EVENT_CHECK_NONE;
    if ((in[3] & 8) && event_is_copy(event->kind))
        event->copy.bytes = event->accesses[0].bytes;
}

/* Whatever the kind makes of it: handles, addresses and sizes that meet those of other events. */
static void make_payload(struct event *event, const uint8_t *in)
{
    uint64_t object = stretch(in[5]), address = in[10] * UINT64_C(0x800);
    uint64_t bytes = stretch(in[11]) * 256u;
    switch (event_payload_of((enum event_kind)event->kind)) {
    case EVENT_PAYLOAD_BUFFER:
        event->buffer = (struct event_buffer){ bytes, address, object, (uint32_t)object, in[8] };
        break;
    case EVENT_PAYLOAD_COPY:
        event->copy = (struct event_copy){
            bytes,      address,   in[4] & 16 ? object : 0, (uint32_t)object, in[4] >> 4,
            in[8] & 3u, in[9] & 3u
        };
        break;
    case EVENT_PAYLOAD_TICKET:
        event->ticket = (struct event_ticket){ bytes,      address,   in[8], (uint32_t)object,
                                               in[4] >> 4, in[9] & 1u };
        break;
    case EVENT_PAYLOAD_GRAPH:
        event->graph = (struct event_graph){ object, in[11], in[4] >> 4 };
        break;
    case EVENT_PAYLOAD_FAULT:
        event->fault = (struct event_fault){ address, object, in[9] % EVENT_ADDRESS_COUNT };
        break;
    default: {
        const uint64_t words[EVENT_PAYLOAD_WORDS] = { object, stretch(in[9]), in[8], bytes };
        memcpy(event->words, words, sizeof(words));
    }
    }
}

static struct event make_event(const uint8_t *data, size_t index, uint64_t id, uint8_t what)
{
    const uint8_t *in = data + index * input_bytes(what);
    struct event event = { .id = id,
                           .kind = in[0] % EVENT_KIND_COUNT,
                           .outcome = in[1] % EVENT_OUTCOME_COUNT,
                           .phase = in[1] % EVENT_OUTCOME_COUNT ? EVENT_END : EVENT_BEGIN,
                           .check = in[2] % EVENT_CHECK_COUNT,
                           .operand = in[2] >> 4,
                           .stream_index = (uint32_t)stretch(in[3]),
                           .thread_index = in[4] & 7u,
                           .cause_id = in[6] & 128 ? stretch(in[6]) : id - (in[6] & 31u),
                           .begin_ns = id * 100000u + in[7] * 50000u,
                           .end_ns = id * 100000u + in[7] * 90000u,
                           .expected = in[8],
                           .found = stretch(in[9]),
                           .access_count = in[12] & 3u,
                           .scope = { in[13] & 3, in[13] >> 6, "t" },
                           .code = in[14] };
    make_payload(&event, in);
    event.op[0] = (char)('a' + in[15] % 4);
    for (uint8_t i = 0; i < event.access_count; i++)
        event.accesses[i] = (struct event_access){ .address = (in[12] >> 2) * UINT64_C(0x1000) +
                                                              i * 0x80u + (in[14] & 0xFu),
                                                   .bytes = stretch(in[11]) * 64u,
                                                   .buffer_index = (in[12] >> 2) & 7u,
                                                   .generation = in[15] >> 6,
                                                   .mode = (uint8_t)(1 + (in[15] + i) % 3),
                                                   .operand = i };
    if (what & FOREIGN)
        make_foreign(&event, in + EVENT_BYTES);
    return event;
}

static void check_result(struct analyzer *analyzer, bool describe)
{
    const struct analysis *result = analyzer_result(analyzer);
    require(result->root < (int32_t)result->finding_count, "the root is a finding");
    uint64_t before = 0;
    for (size_t i = 0; i < result->finding_count; i++) {
        const struct finding *finding = &result->findings[i];
        require(finding->consequence_of < (int32_t)result->finding_count, "an origin is a finding");
        require(finding->consequence_of != (int32_t)i, "nothing follows from itself");
        require(finding->order_id >= before, "findings are in order");
        before = finding->order_id;
        struct text text;
        text_init(&text);
        for (unsigned j = 0; describe && j < REPORT_LANGUAGE_COUNT; j++)
            report_finding_describe(finding, (enum report_language)j, &text);
        text_release(&text);
    }
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        require(result->coverage[i].checked <= result->coverage[i].total ||
                    !hypothesis_info((enum hypothesis)i)->exact,
                "no more is checked than there is");
    const struct analysis *analyses[] = { result };
    struct verdict_input input = { .analyses = analyses,
                                   .analysis_count = 1,
                                   .recorded_count = result->iteration_count };
    struct audit_verdict verdict;
    verdict_decide(&input, &verdict);
    require(verdict.outcome != AUDIT_CLEAN, "without a self-test nothing is clean");
}

static bool is_odd(void *context, uint32_t stack_index)
{
    (void)context;
    return stack_index & 1u;
}

static struct analyzer *create(void)
{
    struct analyze_options options = {
        .level = AUDIT_VERIFY, .finding_limit = 32, .hang_limit_ns = 1000000, .is_cached = is_odd
    };
    struct analyzer *analyzer;
    struct error err;
    return analyzer_create(&options, &analyzer, &err) ? NULL : analyzer;
}

static void feed(const uint8_t *data, size_t count, uint8_t what, const struct crumb_page *crumbs)
{
    struct analyzer *analyzer = create();
    struct analyzer *again = create();
    static uint8_t saved[FLIGHT_CHECKPOINT_BYTES];
    struct error err;
    for (size_t i = 0; analyzer && i < count; i++) {
        struct event event = make_event(data, i, i + 1, what);
        require(!analyzer_add(analyzer, &event, &err), "events in order are taken");
    }
    if (analyzer && again) {
        size_t bytes = analyzer_save(analyzer, saved, sizeof(saved));
        require(bytes > 0 && analyzer_restore(again, saved, bytes), "what is saved can be read");
        require(analyzer_result(again)->finding_count == analyzer_result(analyzer)->finding_count,
                "and is all of it");
        struct flight_info info = { .closed = (what & CLOSED) != 0 };
        analyzer->process_dead = !info.closed;
        require(!analyzer_finish(analyzer, crumbs, &info, 0, &err), "an analysis ends");
        check_result(analyzer, (what & DESCRIBE) != 0);
    }
    analyzer_destroy(analyzer);
    analyzer_destroy(again);
}

/* ---- As a file ------------------------------------------------------------------------------ */

static void put_record(struct flight_record *record, const struct event *event)
{
    record->event = *event;
    record->begin_checksum = flight_begin_checksum(&record->event);
    record->end_checksum = event->phase == EVENT_END ? flight_end_checksum(&record->event) : 0;
}

static void fill_file(uint8_t *file, const struct flight_layout *layout, const uint8_t *data,
                      size_t count, uint8_t what)
{
    struct flight_header *header = (struct flight_header *)file;
    flight_file_begin(file, layout, RECORDS, ALLOCATIONS, GRAPH_RECORDS, (what & FOREIGN) != 0);
    header->checksum = flight_header_checksum(header);
    ((struct flight_counters *)(file + FLIGHT_COUNTERS_OFFSET))->closed = (what & CLOSED) != 0;
    uint64_t first = what & OLD_IDS ? 1000 : 1;
    struct flight_record *ring = (struct flight_record *)(file + layout->ring_offset);
    struct flight_record *graphs = (struct flight_record *)(file + layout->graph_offset);
    struct flight_entry *entries = (struct flight_entry *)(file + layout->allocation_offset);
    for (size_t i = 0; i < count; i++) {
        struct event event = make_event(data, i, first + i, what);
        put_record(&ring[event.id % RECORDS], &event);
        if (i < GRAPH_RECORDS) {
            event.id = i + 1;
            put_record(&graphs[i], &event);
        }
        if (i >= ALLOCATIONS)
            continue;
        entries[i].allocation =
            (struct flight_allocation){ .address = event.words[0],
                                        .bytes = event.words[1],
                                        .created_id = event.words[2],
                                        .destroyed_id = event.found,
                                        .buffer_index = event.operand,
                                        .generation = (uint16_t)event.words[3] };
        entries[i].checksum = flight_entry_checksum(&entries[i].allocation);
    }
    struct flight_checkpoint_slot *slot =
        (struct flight_checkpoint_slot *)(file + layout->checkpoint_offset);
    slot->sequence = 1;
    slot->analysed_id = first + count / 2;
    slot->count = count * input_bytes(what) < sizeof(slot->bytes) ? count * input_bytes(what) : 0;
    memcpy(slot->bytes, data, (size_t)slot->count);
    static const uint8_t magic[] = { 'G', 'R', 'A', '1' };
    if (slot->count >= sizeof(magic))
        memcpy(slot->bytes, magic, sizeof(magic));
    if (what & CHECKPOINT)
        slot->checksum = flight_checkpoint_checksum(slot);
}

static void read_file(const uint8_t *data, size_t count, uint8_t what,
                      const struct crumb_page *crumbs)
{
    struct flight_layout layout = flight_layout_of(RECORDS, ALLOCATIONS, GRAPH_RECORDS,
                                                   (what & FOREIGN) != 0, 1, 0);
    uint8_t *file = calloc(1, (size_t)layout.file_bytes);
    struct analyzer *analyzer = create();
    struct flight_reader *reader;
    struct error err;
    if (file && analyzer) {
        fill_file(file, &layout, data, count, what);
        memcpy(file + layout.crumb_offset, crumbs, sizeof(*crumbs));
        require(!flight_open_memory(file, layout.file_bytes, "fuzz", &reader, &err), "it opens");
        require(!analyze_reader(analyzer, reader, &err), "any file of events can be analysed");
        check_result(analyzer, (what & DESCRIBE) != 0);
        flight_reader_close(reader);
    }
    analyzer_destroy(analyzer);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct crumb_page crumbs;
    if (size < 1 + input_bytes(size ? data[0] : 0))
        return 0;
    size_t count = (size - 1) / input_bytes(data[0]);
    if (count > 512)
        count = 512;
    memset(&crumbs, 0, sizeof(crumbs));
    for (size_t i = 0; i < 16; i++) {
        crumbs.streams[i].entered = data[1 + i] & 31u;
        crumbs.streams[i].finished = data[1 + i] >> 4;
        crumbs.streams[i].node = data[1 + i];
    }
    if (data[0] & WHOLE_FILE)
        read_file(data + 1, count, data[0], &crumbs);
    else
        feed(data + 1, count, data[0], &crumbs);
    return 0;
}

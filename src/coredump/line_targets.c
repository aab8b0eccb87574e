/* line_targets.c - the sections that a line table needs, and its relocations. */
#include "coredump/line_targets.h"

#include "coredump/line_run.h"

#include <stdlib.h>

static int compare_relocations(const void *a, const void *b)
{
    const struct relocation *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static enum status read_relocations(struct run *run, struct error *err)
{
    const struct elf *elf = &run->image->elf;
    struct elf_section section;
    struct error ignored;
    if (!run->image->line_relocations ||
        elf_section_at(elf, run->image->line_relocations, &section, &ignored) ||
        work_spend(run->work, section.bytes, &ignored))
        return STATUS_OK;
    bool has_addend = section.type == ELF_SECTION_ADDENDS;
    size_t bytes = has_addend ? 24 : 16, count = section.bytes / bytes;
    run->relocations = calloc(count + 1, sizeof(*run->relocations));
    if (!run->relocations)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for source lines", elf->source);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *entry = elf->data + section.offset + i * bytes;
        run->relocations[i] = (struct relocation){
            .at = bytes_load_u64(entry),
            .symbol = (uint32_t)(bytes_load_u64(entry + 8) >> 32),
            .has_addend = has_addend,
            .addend = has_addend ? bytes_load_u64(entry + 16) : 0,
        };
    }
    run->relocation_count = count;
    qsort(run->relocations, count, sizeof(*run->relocations), compare_relocations);
    return STATUS_OK;
}

static struct text_view section_text(const struct image *image, uint32_t index)
{
    struct elf_section section;
    struct error ignored;
    if (index == 0 || elf_section_at(&image->elf, index, &section, &ignored))
        return (struct text_view){ "", 0 };
    return (struct text_view){ (const char *)image->elf.data + section.offset, section.bytes };
}

static void set_all(const struct line_target *targets, size_t count, enum coredump_lines from,
                    enum coredump_lines to)
{
    for (size_t i = 0; i < count; i++)
        if (targets[i].place->lines == from)
            targets[i].place->lines = to;
}

enum status line_targets_find(const struct image *image, struct work *work,
                              const struct line_target *targets, size_t count, struct error *err)
{
    struct run run = { .image = image, .work = work, .targets = targets, .target_count = count };
    struct error used_up;
    ASSERT(count <= LINE_TARGET_LIMIT);
    for (size_t i = 0; i < count; i++)
        targets[i].place->lines = COREDUMP_LINES_NOT_HERE;
    run.sources = (struct line_sources){ section_text(image, image->lines),
                                         section_text(image, image->strings),
                                         section_text(image, image->line_names) };
    if (run.sources.lines.length == 0) {
        set_all(targets, count, COREDUMP_LINES_NOT_HERE, COREDUMP_LINES_NONE);
        return STATUS_OK;
    }
    if (work_spend(work, run.sources.lines.length, &used_up)) {
        set_all(targets, count, COREDUMP_LINES_NOT_HERE, COREDUMP_LINES_LIMIT);
        return STATUS_OK;
    }
    TRY(read_relocations(&run, err));
    line_run_units(&run);
    free(run.relocations);
    free(run.rows);
    if (run.no_memory)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for source lines", image->source);
    if (run.work_used_up)
        set_all(targets, count, COREDUMP_LINES_NOT_HERE, COREDUMP_LINES_LIMIT);
    if (run.damaged)
        set_all(targets, count, COREDUMP_LINES_NOT_HERE, COREDUMP_LINES_DAMAGED);
    return STATUS_OK;
}

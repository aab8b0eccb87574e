/* lines.c - one session of libdw for each file that is asked about.
 *
 * The files were written by somebody else's linker and may be damaged. If libdw faults on one, the
 * fault becomes a value (base/fault.h); what libdw held is leaked, and libdw is not used again. */
#include "base/lines.h"

#include "base/dynlib.h"
#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

/* From elfutils/libdwfl.h and libdw.h: handles that are only passed on, and how debug information
 * is found. */
struct dwfl_callbacks {
    void (*find_elf)(void);
    void (*find_debuginfo)(void);
    void (*section_address)(void);
    char **debuginfo_path; /* NULL: the library's default */
};

struct dwfl_api {
    void *(*begin)(const struct dwfl_callbacks *callbacks);
    void (*end)(void *session);
    void (*report_begin)(void *session);
    void *(*report_elf)(void *session, const char *name, const char *path, int file, uint64_t base,
                        bool add_p_vaddr);
    int (*report_end)(void *session, void *removed, void *argument);
    void *(*find_line)(void *module, uint64_t address);
    const char *(*line_info)(void *line, uint64_t *address, int *number, int *column,
                             uint64_t *time, uint64_t *bytes);
    /* The same through the compilation units. */
    void *(*next_unit)(void *module, void *unit, uint64_t *bias);
    int (*has_address)(void *unit, uint64_t address);
    void *(*unit_line)(void *unit, uint64_t address);
    const char *(*line_source)(void *line, uint64_t *time, uint64_t *bytes);
    int (*line_number)(void *line, int *number);
    /* Only their addresses are used: what libdw calls by itself. */
    void (*find_elf)(void);
    void (*find_debuginfo)(void);
    void (*section_address)(void);
};

static const struct dynlib_symbol symbols[] = {
    { "dwfl_begin", offsetof(struct dwfl_api, begin), false },
    { "dwfl_end", offsetof(struct dwfl_api, end), false },
    { "dwfl_report_begin", offsetof(struct dwfl_api, report_begin), false },
    { "dwfl_report_elf", offsetof(struct dwfl_api, report_elf), false },
    { "dwfl_report_end", offsetof(struct dwfl_api, report_end), false },
    { "dwfl_module_getsrc", offsetof(struct dwfl_api, find_line), false },
    { "dwfl_lineinfo", offsetof(struct dwfl_api, line_info), false },
    { "dwfl_module_nextcu", offsetof(struct dwfl_api, next_unit), false },
    { "dwarf_haspc", offsetof(struct dwfl_api, has_address), false },
    { "dwarf_getsrc_die", offsetof(struct dwfl_api, unit_line), false },
    { "dwarf_linesrc", offsetof(struct dwfl_api, line_source), false },
    { "dwarf_lineno", offsetof(struct dwfl_api, line_number), false },
    { "dwfl_build_id_find_elf", offsetof(struct dwfl_api, find_elf), false },
    /* The standard function asks debuginfod servers if the environment names some. */
    { "dwfl_build_id_find_debuginfo", offsetof(struct dwfl_api, find_debuginfo), false },
    { "dwfl_offline_section_address", offsetof(struct dwfl_api, section_address), false },
};

#define SOURCE_BYTES 256u

/* A report asks for the same places again and again, and a file has many units. */
struct known_line {
    uint64_t address;
    uint32_t line; /* 0: not known */
    char source[SOURCE_BYTES];
};

struct line_file {
    char *path;
    void *session; /* NULL: it could not be read */
    void *module;
    struct known_line *known;
    size_t known_count;
};

struct lines {
    struct dynlib *library; /* NULL: no line is known */
    struct dwfl_api api;
    struct dwfl_callbacks callbacks; /* borrowed by every session */
    struct line_file *files;
    size_t file_count;
    bool faulted; /* libdw is in an unknown state: it is neither used nor closed */
};

/* ---- What runs libdw ------------------------------------------------------------------------ */

/* Answers one question: opens the file if it is new, then finds the line. */
struct question {
    struct lines *lines;
    struct line_file *file;
    bool is_new;
    struct known_line answer;
};

static void open_session(const struct lines *lines, struct line_file *file)
{
    const struct dwfl_api *api = &lines->api;
    file->session = api->begin(&lines->callbacks);
    if (!file->session)
        return;
    api->report_begin(file->session);
    file->module = api->report_elf(file->session, file->path, file->path, -1, 0, true);
    if (api->report_end(file->session, NULL, NULL) != 0)
        file->module = NULL;
}

/* The end of a long path distinguishes files. */
static void copy_end(char *target, size_t target_bytes, const char *text)
{
    size_t length = strlen(text);
    if (length >= target_bytes) {
        text += length - (target_bytes - 1);
        length = target_bytes - 1;
    }
    memcpy(target, text, length);
    target[length] = '\0';
}

/* Uses the table that maps addresses to units. */
static const char *look_up(const struct dwfl_api *api, void *module, uint64_t address, int *number)
{
    void *line = api->find_line(module, address);
    return line ? api->line_info(line, NULL, number, NULL, NULL, NULL) : NULL;
}

/* Clang writes no such table, so all units are searched. */
static const char *search(const struct dwfl_api *api, void *module, uint64_t address, int *number)
{
    uint64_t bias = 0;
    for (void *unit = api->next_unit(module, NULL, &bias); unit;
         unit = api->next_unit(module, unit, &bias)) {
        if (api->has_address(unit, address - bias) != 1)
            continue;
        void *line = api->unit_line(unit, address - bias);
        if (line && api->line_number(line, number) == 0)
            return api->line_source(line, NULL, NULL);
    }
    return NULL;
}

static void answer(void *context)
{
    struct question *question = context;
    const struct dwfl_api *api = &question->lines->api;
    struct line_file *file = question->file;
    int number = 0;
    if (question->is_new)
        open_session(question->lines, file);
    if (!file->module)
        return;
    const char *source = look_up(api, file->module, question->answer.address, &number);
    if (!source)
        source = search(api, file->module, question->answer.address, &number);
    if (!source || source[0] == '\0' || number <= 0)
        return;
    copy_end(question->answer.source, sizeof(question->answer.source), source);
    question->answer.line = (uint32_t)number;
}

static void end_sessions(void *context)
{
    struct lines *lines = context;
    for (size_t i = 0; i < lines->file_count; i++)
        if (lines->files[i].session)
            lines->api.end(lines->files[i].session);
}

/* ---- The door ------------------------------------------------------------------------------- */

struct lines *lines_create(void)
{
    static const char *const names[] = { "libdw.so.1", NULL };
    struct error err;
    struct lines *lines = calloc(1, sizeof(*lines));
    if (!lines)
        return NULL;
    fault_install();
    if (dynlib_open(names, &lines->library, &err) ||
        dynlib_resolve(lines->library, symbols, COUNT_OF(symbols), &lines->api, &err)) {
        dynlib_close(lines->library);
        lines->library = NULL;
    }
    lines->callbacks = (struct dwfl_callbacks){ .find_elf = lines->api.find_elf,
                                                .find_debuginfo = lines->api.find_debuginfo,
                                                .section_address = lines->api.section_address };
    return lines;
}

void lines_destroy(struct lines *lines)
{
    struct fault_info unused;
    if (!lines)
        return;
    if (!lines->faulted)
        lines->faulted = !fault_run(end_sessions, lines, &unused);
    for (size_t i = 0; i < lines->file_count; i++) {
        free(lines->files[i].path);
        free(lines->files[i].known);
    }
    free(lines->files);
    /* Memory that libdw leaked may still be used at the end of the process. */
    if (!lines->faulted)
        dynlib_close(lines->library);
    free(lines);
}

/* NULL without memory. */
static struct line_file *find_file(struct lines *lines, const char *path, bool *ret_is_new)
{
    for (size_t i = 0; i < lines->file_count; i++)
        if (strcmp(lines->files[i].path, path) == 0) {
            *ret_is_new = false;
            return &lines->files[i];
        }
    char *copy = strdup(path);
    struct line_file *grown = copy ? realloc(lines->files, (lines->file_count + 1) * sizeof(*grown))
                                   : NULL;
    if (!grown) {
        free(copy);
        return NULL;
    }
    lines->files = grown;
    struct line_file *file = &grown[lines->file_count++];
    *file = (struct line_file){ .path = copy };
    *ret_is_new = true;
    return file;
}

static const struct known_line *find_known(const struct line_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->known_count; i++)
        if (file->known[i].address == address)
            return &file->known[i];
    return NULL;
}

/* Without memory the next call asks again. */
static void remember(struct line_file *file, const struct known_line *answer)
{
    struct known_line *grown = realloc(file->known, (file->known_count + 1) * sizeof(*grown));
    if (!grown)
        return;
    file->known = grown;
    grown[file->known_count++] = *answer;
}

bool lines_find(struct lines *lines, const char *path, uint64_t address, char *source,
                size_t source_bytes, uint32_t *ret_line)
{
    struct fault_info unused;
    struct question question = { .lines = lines, .answer = { .address = address } };
    source[0] = '\0';
    if (!lines->library || lines->faulted)
        return false;
    question.file = find_file(lines, path, &question.is_new);
    if (!question.file)
        return false;
    const struct known_line *known = find_known(question.file, address);
    if (known) {
        question.answer = *known;
    } else if (fault_run(answer, &question, &unused)) {
        remember(question.file, &question.answer);
    } else {
        lines->faulted = true;
        return false;
    }
    if (!question.answer.line)
        return false;
    copy_end(source, source_bytes, question.answer.source);
    *ret_line = question.answer.line;
    return true;
}

/* op_table.c - the ops that a device can launch: resolved when an image is loaded.
 *
 * A row has the contract of an op, its kernel and its shapes as numbers, so that a launch compares
 * no names and parses no text. Rows are only added, by the one thread that loads modules: a row is
 * published with op_count, and launches of other threads read the rows below it without a lock. */
#include "device/device_core.h"

#include <inttypes.h>
#include <string.h>

/* ---- Shapes --------------------------------------------------------------------------------- */

/* The names of a contract while its shapes are parsed. */
struct extent_names {
    struct {
        const char *text;
        size_t length;
    } list[CONTRACT_EXTENT_LIMIT];
    uint8_t count;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t dimension_length(const char *text)
{
    size_t length = 0;
    while ((text[length] >= 'a' && text[length] <= 'z') || is_digit(text[length]) ||
           text[length] == '_')
        length++;
    return length;
}

/* False if it is neither a name nor a number, or there are too many names. */
static bool parse_dimension(const char *text, size_t length, struct extent_names *names,
                            struct contract_dimension *ret_dimension)
{
    uint64_t number = 0;
    if (length == 0 || text[0] == '_')
        return false;
    if (is_digit(text[0])) {
        for (size_t i = 0; i < length; i++) {
            number = number * 10 + (uint64_t)(text[i] - '0');
            if (!is_digit(text[i]) || number > UINT32_MAX)
                return false;
        }
        *ret_dimension = (struct contract_dimension){ CONTRACT_NUMBER, (uint32_t)number };
        return true;
    }
    uint8_t id = 0;
    while (id < names->count &&
           (names->list[id].length != length || memcmp(names->list[id].text, text, length) != 0))
        id++;
    if (id == CONTRACT_EXTENT_LIMIT)
        return false;
    if (id == names->count) {
        names->list[names->count].text = text;
        names->list[names->count++].length = length;
    }
    *ret_dimension = (struct contract_dimension){ .extent = id };
    return true;
}

static enum status parse_shape(const struct device_contract *contract, uint32_t operand,
                               struct extent_names *names, struct contract_shape *ret_shape,
                               struct error *err)
{
    const struct device_operand_rule *rule = &contract->operands[operand];
    const char *text = rule->shape ? rule->shape : "";
    struct contract_shape shape = { .rank = 0 };
    bool more = true;
    while (more) {
        size_t length = dimension_length(text);
        if (shape.rank == SHAPE_RANK_LIMIT || (text[length] != '\0' && text[length] != ',') ||
            !parse_dimension(text, length, names, &shape.dimensions[shape.rank]))
            return error_set(err, STATUS_UNSUPPORTED,
                             "%s: operand %s: shape \"%s\" is malformed at \"%s\": expected 1 to "
                             "%d names or numbers with commas between them, at most %d names in "
                             "the contract",
                             contract->name, rule->name, rule->shape ? rule->shape : "", text,
                             SHAPE_RANK_LIMIT, CONTRACT_EXTENT_LIMIT);
        shape.rank++;
        more = text[length] == ',';
        text += length + more;
    }
    *ret_shape = shape;
    return STATUS_OK;
}

const char *contract_dimension_name(const struct device_contract *contract, uint32_t operand,
                                    uint32_t dimension, int *ret_length)
{
    const char *text = contract->operands[operand].shape;
    size_t length = dimension_length(text);
    for (; dimension > 0; dimension--) {
        text += length + 1;
        length = dimension_length(text);
    }
    *ret_length = (int)length;
    return text;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static size_t count_entries(const struct device_module *module)
{
    return module->host ? module->host->count : module->gpu->count;
}

/* Contract and kernel of an entry; false if there is no kernel. */
static bool read_entry(const struct device_module *module, size_t entry, struct op_row *row)
{
    if (module->host) {
        row->contract = module->host->entries[entry].contract;
        row->kernel.host = &module->host->entries[entry];
        return module->host->entries[entry].host != NULL;
    }
    row->contract = module->gpu->entries[entry].contract;
    row->kernel.gpu = module->gpu->entries[entry].plan;
    return row->kernel.gpu != NULL;
}

static enum status resolve_entry(const struct device *device, const struct device_module *module,
                                 uint32_t module_index, size_t entry, uint32_t row_count,
                                 struct op_row *ret_row, struct error *err)
{
    struct op_row row = { .kernel.module_index = module_index };
    bool has_kernel = read_entry(module, entry, &row);
    ASSERT(row.contract && row.contract->name);
    ASSERT(row.contract->params_bytes <= DEVICE_PARAMS_LIMIT_BYTES);
    ASSERT(row.contract->operand_count <= DEVICE_OPERAND_LIMIT);
    const char *name = row.contract->name;
    if (!has_kernel)
        return error_set(err, STATUS_UNSUPPORTED, "%s: the image has no kernel for this op", name);
    for (uint32_t i = 0; i < row_count; i++)
        if (strcmp(device->ops[i].contract->name, name) == 0)
            return error_set(err, STATUS_EXISTS, "%s: %s", name,
                             device->ops[i].kernel.module_index == module_index
                                 ? "the image has this op twice"
                                 : "an image with this op is loaded already");
    struct extent_names names = { .count = 0 };
    for (uint32_t i = 0; i < row.contract->operand_count; i++)
        TRY(parse_shape(row.contract, i, &names, &row.shapes[i], err));
    *ret_row = row;
    return STATUS_OK;
}

enum status op_table_prepare(struct device *device, const struct device_module *module,
                             uint32_t module_index, struct error *err)
{
    size_t count = count_entries(module);
    uint32_t used = device->op_count;
    if (count > DEVICE_OP_LIMIT - used)
        return error_set(err, STATUS_LIMIT,
                         "kernel images: expected at most %u ops in all, found %zu",
                         DEVICE_OP_LIMIT, used + count);
    for (uint32_t i = 0; i < count; i++)
        TRY(resolve_entry(device, module, module_index, i, used + i, &device->ops[used + i], err));
    return STATUS_OK;
}

void op_table_publish(struct device *device, const struct device_module *module)
{
    uint32_t count = (uint32_t)count_entries(module);
    __atomic_store_n(&device->op_count, device->op_count + count, __ATOMIC_RELEASE);
}

const struct op_row *op_table_find(const struct device *device,
                                   const struct device_contract *contract)
{
    uint32_t count = __atomic_load_n(&device->op_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (device->ops[i].contract == contract)
            return &device->ops[i];
    return NULL;
}

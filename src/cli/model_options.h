/* model_options.h - options of every command that runs a model. */
#ifndef GRETA_CLI_MODEL_OPTIONS_H
#define GRETA_CLI_MODEL_OPTIONS_H

#include "cli/cli.h"

/* For a command whose settings have kv_type, key_type and value_type, with AT(field) defined. */
#define CLI_CACHE_TYPE_OPTIONS                                                                     \
    { "--cache-type",                                                                              \
      "TYPE",                                                                                      \
      CLI_TEXT,                                                                                    \
      AT(kv_type),                                                                                 \
      "type of keys and values in the cache (default: f16)",                                       \
      "f32 f16 q8_0",                                                                              \
      false },                                                                                     \
        { "--cache-type-k|-ctk",                                                                   \
          "TYPE",                                                                                  \
          CLI_TEXT,                                                                                \
          AT(key_type),                                                                            \
          "the same: keys and values have one type",                                               \
          "f32 f16 q8_0",                                                                          \
          false },                                                                                 \
    {                                                                                              \
        "--cache-type-v|-ctv", "TYPE", CLI_TEXT, AT(value_type),                                   \
            "the same: keys and values have one type", "f32 f16 q8_0", false                       \
    }

#endif

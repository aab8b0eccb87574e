/* save.h - what writing and reading a checkpoint have in common. */
#ifndef GRETA_ANALYZE_SAVE_H
#define GRETA_ANALYZE_SAVE_H

#define SAVE_MAGIC UINT32_C(0x38415247) /* "GRA8" */
/* Before there were subjects. */
#define SAVE_MAGIC_NO_SUBJECTS UINT32_C(0x37415247) /* "GRA7" */
/* Before recordings could have several devices. */
#define SAVE_MAGIC_ONE_DEVICE UINT32_C(0x36415247) /* "GRA6" */
/* A reason is saved by its name. Older checkpoints have a sentence there, which names none. */
#define SAVED_REASON_BYTES 160

#endif

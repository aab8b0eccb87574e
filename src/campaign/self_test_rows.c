/* self_test_rows.c - what is planted, where, and what must be found. */
#include "campaign/self_test.h"

const struct self_test_row self_test_rows[] = {
    { "rope-position", "bad-index@op=rope,layer=2,step=1", JOB_INFER, AUDIT_LOG,
      HYPOTHESIS_BAD_POINTER, "rope", 2, 1, "rope_qk", 0 },
};
const size_t self_test_row_count = COUNT_OF(self_test_rows);

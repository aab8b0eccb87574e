/* rows.h - calls.def with all kinds of rows alike: define HIP_ROW(name, parameters, ...), include,
 * undefine. Included more than once, so it has no guard. */
#define HIP_ALLOC HIP_ROW
#define HIP_FREE HIP_ROW
#define HIP_COPY HIP_ROW
#define HIP_FILL HIP_ROW
#define HIP_SYNC HIP_ROW
#define HIP_QUERY HIP_ROW
#define HIP_RECORD HIP_ROW
#define HIP_WAIT HIP_ROW
#define HIP_CREATED HIP_ROW
#define HIP_HIDDEN HIP_ROW
#define HIP_CHANGED HIP_ROW
#define HIP_INSTANTIATE HIP_ROW
#define HIP_LAUNCH HIP_ROW
#define HIP_OTHER HIP_ROW
#define HIP_BY_HAND(name, parameters) HIP_ROW(name, parameters, by_hand)
#include "interpose/hip/calls.def"
#undef HIP_ALLOC
#undef HIP_FREE
#undef HIP_COPY
#undef HIP_FILL
#undef HIP_SYNC
#undef HIP_QUERY
#undef HIP_RECORD
#undef HIP_WAIT
#undef HIP_CREATED
#undef HIP_HIDDEN
#undef HIP_CHANGED
#undef HIP_INSTANTIATE
#undef HIP_LAUNCH
#undef HIP_OTHER
#undef HIP_BY_HAND

/* archive.h - audits that were made, in their artifacts folder: ARTIFACTS/DATE/ID.
 *
 * Everything there is hostile: a planted summary, links to elsewhere, thousands of entries. Folders
 * are opened without following links below ARTIFACTS, files are read up to a limit, and what does
 * not fit is counted. */
#ifndef GRETA_CAMPAIGN_ARCHIVE_H
#define GRETA_CAMPAIGN_ARCHIVE_H

#include "campaign/campaign.h"
#include "report/earlier.h"
#include "report/report.h"

/* True for "2026-11-15" and for "20261115-093012-4f2a". */
bool archive_is_day(const char *name);
bool archive_is_id(const char *name);

/* An audit's folder, open. */
struct archive_folder {
    int parent, self;     /* descriptors: of DATE and of ID */
    const char *day, *id; /* names of both */
};

/* Calls visit for every folder DATE/ID below artifacts, in no order, until it returns false or the
 * limit is reached. A missing artifacts folder has no audits. */
#define ARCHIVE_FOLDER_LIMIT 10000u
struct archive_walk {
    bool (*visit)(void *context, const struct archive_folder *folder);
    void *context;
    uint32_t folder_limit; /* 0: ARCHIVE_FOLDER_LIMIT */
    bool cut;              /* there were more */
};
MUST_CHECK enum status archive_walk(struct archive_walk *walk, const char *artifacts,
                                    struct error *err);

/* folder/summary.json, a regular file of at most limit bytes; name is for errors. */
MUST_CHECK enum status archive_read_summary(int folder, const char *name, uint64_t limit_bytes,
                                            struct report_summary *ret_summary, struct error *err);
/* True if state.json says that the audit is complete, or if there is none (as for a trace). False
 * if it cannot be read. */
bool archive_is_complete(int folder);

/* Bytes on the disk below the open folder; links count as themselves. */
uint64_t archive_bytes(int folder);
/* Removes what is in the open folder, the files that make it an audit last. No link is followed and
 * no other file system entered. */
MUST_CHECK enum status archive_empty(int folder, const char *name, struct error *err);

#define ARCHIVE_LAST_NAME "last"
/* Makes ARTIFACTS/last point to the finished audit in folder unless it points to a later one.
 * *ret_done: it points there now; false if folder is not ARTIFACTS/DATE/ID. */
MUST_CHECK enum status archive_point_last(const char *folder, const char *id, bool *ret_done,
                                          struct error *err);
/* The id of the audit that ARTIFACTS/last points to; "" if there is none. */
void archive_read_last(int artifacts, char ret_id[CAMPAIGN_ID_BYTES]);

#endif

/* identity.h - what evidence is bound to: this binary, this device; and the model that is used. */
#ifndef GRETA_CAMPAIGN_IDENTITY_H
#define GRETA_CAMPAIGN_IDENTITY_H

#include "campaign/campaign.h"
#include "campaign/files.h"
#include "campaign/job.h"

struct identity {
    char binary_sha256[FILES_SHA256_TEXT_BYTES];
    struct device_info device;
    char key[FILES_SHA256_TEXT_BYTES]; /* hash of binary and device: a self-test holds for these */
};

/* Opens the device for a moment, so that a missing device is reported before anything is made. */
MUST_CHECK enum status identity_find(const struct campaign_options *options,
                                     struct identity *ret_identity, struct error *err);

/* The model of an audit: the one given, or a small one made from the seed. */
struct audit_model {
    char path[FILES_PATH_BYTES];
    bool made; /* removed at the end */
    char sha256[FILES_SHA256_TEXT_BYTES];
};
MUST_CHECK enum status audit_model_open(const struct campaign_options *options,
                                        struct audit_model *model, struct error *err);
/* One like the small one, whose feed-forward is done by experts; without a hash. */
MUST_CHECK enum status audit_model_make_experts(const struct campaign_options *options,
                                                struct audit_model *model, struct error *err);
void audit_model_close(struct audit_model *model);

/* A job with everything the options say of the workload. */
struct job audit_job(const struct campaign_options *options, const struct audit_model *model,
                     const char *label);

/* A hash of model, device and everything that decides what is run: audits with the same key can be
 * compared. It leaves out seed, threads, level and matrix, which say how the run is looked at. */
MUST_CHECK enum status audit_workload_key(const struct campaign_options *options,
                                          const struct audit_model *model,
                                          const struct identity *identity,
                                          char ret_hex[FILES_SHA256_TEXT_BYTES], struct error *err);

/* A folder of our own below the temporary one, with run/ in it; removed with all it holds. */
MUST_CHECK enum status temporary_open(const struct campaign_options *options,
                                      char ret_folder[FILES_PATH_BYTES], struct error *err);
void temporary_close(const char *folder);

#endif

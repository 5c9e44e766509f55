/* SPDX-License-Identifier: Apache-2.0 */
/* keep_detail.h - how much of a Bundle's rollout is kept, for whoever has little room. */
#ifndef DROVER_ENGINE_KEEP_DETAIL_H
#define DROVER_ENGINE_KEEP_DETAIL_H

/* From the most to the least. What people did (pauses, approvals) and a halt are always kept. */
typedef enum keep_detail {
    KEEP_MEMBERS, /* who is in which partition */
    KEEP_BORDERS, /* between which names automatic partitions were cut, and nothing of who is in
                     others: whoever joined later may be in another one after a restart */
    KEEP_LEAST    /* nor who has failed, so that only later failures are counted; automatic
                     partitions are cut anew */
} keep_detail;

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A kernel for tests: it has the nodes of a recorded machine, keeps policies, and knows where pages were first touched. It takes the
 * place of policy.c.
 */
#ifndef FAKE_POLICY_H
#define FAKE_POLICY_H

#include "../library.h"

extern const char *fake_root;
extern int fake_refused;           /* errno of all calls about policies and pages, or 0 */
extern size_t fake_mbinds;         /* calls that were made */
extern _Thread_local int fake_cpu; /* where the calling thread runs */

/* Forgets all policies and pages. */
void fake_reset(void);
/* The calling thread touches [from, to): absent pages come where the policies say. `huge`: in whole huge pages. */
void fake_touch(const void *from, size_t bytes, bool huge);
/* Where pages come from that the calling thread touches first. */
int fake_thread_node(void);
/* The node of a page, or -1. */
int fake_node(const void *at);

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Unwinds the program's stack from a hook that the program called: the frames from the caller on. It uses only the
 * unwinder that is linked in, and allocates nothing.
 */
#ifndef FIRSTTOUCH_UNWIND_H
#define FIRSTTOUCH_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

#include "../include/firsttouch_ring.h" /* FT_STACK_MAX */

struct ft_unwound {
    uintptr_t first_ip; /* the return address of the hook */
    bool reached;       /* has the caller's frame been found? Our own frames come first. */
    bool interrupted;   /* was a frame interrupted by a signal, or the stack not unwound at all? */
    uint32_t depth;
    uintptr_t ips[FT_STACK_MAX];
    uintptr_t stack_pointers[FT_STACK_MAX]; /* in the frame, which is the CFA of the frame it called */
    uintptr_t frame_pointers[FT_STACK_MAX];
};

#if defined(__x86_64__)
#define FT_FRAME_POINTER_REGISTER 6
#else
#define FT_FRAME_POINTER_REGISTER 29
#endif

static inline _Unwind_Reason_Code ft_collect_frame(struct _Unwind_Context *context, void *data) {
    struct ft_unwound *unwound = data;
    int before_instruction = 0;
    uintptr_t ip = _Unwind_GetIPInfo(context, &before_instruction);
    if (!unwound->reached) {
        if (ip != unwound->first_ip) {
            return _URC_NO_REASON;
        }
        unwound->reached = true;
    }
    if (ip == 0) {
        return _URC_END_OF_STACK;
    }
    /* A frame that a signal interrupted made no call: no word of the stack holds its address. */
    unwound->interrupted |= before_instruction != 0;
    unwound->ips[unwound->depth] = ip;
    unwound->stack_pointers[unwound->depth] = _Unwind_GetCFA(context);
    unwound->frame_pointers[unwound->depth] = _Unwind_GetGR(context, FT_FRAME_POINTER_REGISTER);
    return ++unwound->depth == FT_STACK_MAX ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Pre-condition: called below the frame of the hook that returns to `caller_ip`. In code without unwind tables only the caller
 * is known: returns false. */
static inline bool ft_unwind_from(uintptr_t caller_ip, struct ft_unwound *unwound) {
    unwound->first_ip = caller_ip;
    unwound->reached = false;
    unwound->interrupted = false;
    unwound->depth = 0;
    _Unwind_Backtrace(ft_collect_frame, unwound);
    if (unwound->depth != 0) {
        return true;
    }
    unwound->ips[0] = caller_ip;
    unwound->depth = 1;
    unwound->interrupted = true;
    return false;
}

static inline _Unwind_Reason_Code ft_ignore_frame(struct _Unwind_Context *context, void *data) {
    (void)context, (void)data;
    return _URC_NO_REASON;
}

/* The unwinder builds a table on first use, under pthread_once: call this before there are threads and signals. */
static inline void ft_unwind_prepare(void) {
    _Unwind_Backtrace(ft_ignore_frame, NULL);
}

#endif

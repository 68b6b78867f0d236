/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Parallel regions, through the OpenMP tools interface (OpenMP 5.0, chapter 4). The few types needed are declared
 * here, because the build machine may lack the runtime's header.
 */
#include "agent.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef union {
    uint64_t value;
    void *pointer;
} ompt_data;

typedef void (*ompt_function)(void);
typedef ompt_function (*ompt_lookup)(const char *name);
typedef int (*ompt_set_callback)(int event, ompt_function callback);

struct ompt_start_result {
    int (*initialize)(ompt_lookup lookup, int initial_device, ompt_data *tool_data);
    void (*finalize)(ompt_data *tool_data);
    ompt_data tool_data;
};

enum { EVENT_PARALLEL_BEGIN = 3, EVENT_PARALLEL_END = 4, EVENT_IMPLICIT_TASK = 7 };
enum { SCOPE_BEGIN = 1 };
enum { TASK_INITIAL = 1 };

static uint64_t last_parallel_id;

static void on_parallel_begin(ompt_data *task, const void *frame, ompt_data *parallel, unsigned requested_threads,
                              int flags, const void *code) {
    (void)task, (void)frame, (void)flags;
    parallel->value = __atomic_add_fetch(&last_parallel_id, 1, __ATOMIC_RELAXED);
    if (!ft_silent()) {
        ft_record_plain(&(struct ft_record){.type = FT_REC_PARALLEL_BEGIN,
                                            .time_ns = ft_now(),
                                            .address = (uintptr_t)code,
                                            .size = requested_threads,
                                            .aux = parallel->value});
    }
}

static void on_parallel_end(ompt_data *parallel, ompt_data *task, int flags, const void *code) {
    (void)task, (void)flags;
    if (!ft_silent()) {
        ft_record_plain(&(struct ft_record){
            .type = FT_REC_PARALLEL_END, .time_ns = ft_now(), .address = (uintptr_t)code, .aux = parallel->value});
    }
}

static void on_implicit_task(int endpoint, ompt_data *parallel, ompt_data *task, unsigned team_size, unsigned number,
                             int flags) {
    (void)task;
    /* At the end, and in an initial task, the parallel region's data may be missing. */
    if (endpoint != SCOPE_BEGIN || (flags & TASK_INITIAL) != 0 || parallel == NULL || ft_silent()) {
        return;
    }
    ft_record_plain(&(struct ft_record){.type = FT_REC_IMPLICIT_TASK,
                                        .time_ns = ft_now(),
                                        .address = number,
                                        .size = team_size,
                                        .aux = parallel->value});
}

static int initialize(ompt_lookup lookup, int initial_device, ompt_data *tool_data) {
    (void)initial_device, (void)tool_data;
    ompt_set_callback set_callback = (ompt_set_callback)lookup("ompt_set_callback");
    if (set_callback == NULL) {
        return 0;
    }
    set_callback(EVENT_PARALLEL_BEGIN, (ompt_function)on_parallel_begin);
    set_callback(EVENT_PARALLEL_END, (ompt_function)on_parallel_end);
    set_callback(EVENT_IMPLICIT_TASK, (ompt_function)on_implicit_task);
    return 1;
}

static void finalize(ompt_data *tool_data) {
    (void)tool_data;
}

typedef struct ompt_start_result *(*ompt_start)(unsigned, const char *);

/* The runtime takes only one tool. The program's own has priority, whether linked in or named in OMP_TOOL_LIBRARIES.
 * (The next definition is often the runtime's placeholder, which returns NULL.) */
FT_EXPORT struct ompt_start_result *ompt_start_tool(unsigned omp_version, const char *runtime_version) {
    static struct ompt_start_result result = {initialize, finalize, {0}};
    ompt_start next = (ompt_start)dlsym(RTLD_NEXT, "ompt_start_tool");
    struct ompt_start_result *other = next != NULL ? next(omp_version, runtime_version) : NULL;
    if (other != NULL) {
        return other;
    }
    const char *libraries = getenv("OMP_TOOL_LIBRARIES");
    if (ft_silent() || (libraries != NULL && libraries[0] != '\0')) {
        return NULL;
    }
    return &result;
}

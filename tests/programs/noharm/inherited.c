// SPDX-License-Identifier: Apache-2.0 OR MIT
// Prints the state a process inherits over exec: signal mask and dispositions, limits, umask, niceness, personality,
// affinity, and the flags of prctl. This exposes a launcher that fails to restore one of them.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_status_lines(void) {
    const char *wanted[] = {"SigBlk:", "SigIgn:",    "SigPnd:",  "NoNewPrivs:",        "Seccomp:",    "CapEff:",
                            "CapAmb:", "TracerPid:", "Threads:", "Mems_allowed_list:", "THP_enabled:"};
    FILE *status = fopen("/proc/self/status", "r");
    char line[512];
    while (status && fgets(line, sizeof line, status))
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
                fputs(line, stdout);
    if (status)
        fclose(status);
}

int main(void) {
    print_status_lines();
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit;
        if (getrlimit(resource, &limit) == 0)
            printf("limit %d: %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
                   (unsigned long long)limit.rlim_max);
    }
    mode_t mask = umask(0);
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("umask %o, nice %d, personality %#x, cpus %d, policy %d\n", (unsigned)mask, getpriority(PRIO_PROCESS, 0),
           (unsigned)personality(0xffffffff), CPU_COUNT(&cpus), sched_getscheduler(0));
    printf("dumpable %d, parent-death signal ", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    int death_signal = -1;
    prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0);
    printf("%d, timer slack %d, subreaper ", death_signal, prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    int reaper = -1;
    prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0);
    printf("%d, no THP %d\n", reaper, prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    char directory[4096];
    printf("in %s\n", getcwd(directory, sizeof directory) ? directory : "?");
    return 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra {src} -o {out} -lpthread
// corpus: run = {out} threads 3
//
// Prints the CPUs on which each of its threads may run, a line each, in order of creation.
//   threads N   main before, N threads at the same time (pthread_create in turn), main after
//   turns N     as threads, but each ends before the next one is created
//   own N       as threads, but each with a CPU set of its own: CPU 0
//   c11 N       as threads, by thrd_create
//   fork        after a thread was created: a child by fork, and `children CMD` of it
//   spawn CMD   after a thread was created: CMD by posix_spawn, system, popen, fork and exec, vfork and exec
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

extern char **environ;

static void say(const char *who) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        printf("%s: unknown\n", who);
        return;
    }
    printf("%s:", who);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            printf(" %d", cpu);
        }
    }
    printf("\n");
    fflush(stdout);
}

enum { THREADS_MAX = 64 };

static struct one {
    char name[32];
    pthread_t thread;
    thrd_t c11;
    sem_t leave;
} all[THREADS_MAX];
static sem_t said;

static void *run(void *self) {
    struct one *one = self;
    say(one->name);
    sem_post(&said);
    sem_wait(&one->leave);
    return one;
}

static int run_c11(void *self) {
    run(self);
    return 42;
}

static int create(const char *how, int index) {
    struct one *one = &all[index];
    snprintf(one->name, sizeof one->name, "thread %d", index);
    int ok = sem_init(&one->leave, 0, 0) == 0;
    if (strcmp(how, "c11") == 0) {
        ok = ok && thrd_create(&one->c11, run_c11, one) == thrd_success;
    } else {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        if (strcmp(how, "own") == 0) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(0, &set);
            pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
        }
        ok = ok && pthread_create(&one->thread, &attributes, run, one) == 0;
        pthread_attr_destroy(&attributes);
    }
    return ok && sem_wait(&said) == 0;
}

static int join(const char *how, int index) {
    struct one *one = &all[index];
    sem_post(&one->leave);
    if (strcmp(how, "c11") == 0) {
        int result = 0;
        return thrd_join(one->c11, &result) == thrd_success && result == 42;
    }
    void *result = NULL;
    return pthread_join(one->thread, &result) == 0 && result == one;
}

static void start_others(char *self) {
    char *arguments[] = {self, "threads", "0", NULL};
    pid_t child;
    int status;
    if (posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0) {
        waitpid(child, &status, 0);
    }
    char command[4200];
    snprintf(command, sizeof command, "%s threads 0", self);
    if (system(command) != 0) {
        printf("system failed\n");
    }
    FILE *stream = popen(command, "w");
    if (stream != NULL) {
        pclose(stream);
    }
    fflush(stdout);
    if ((child = fork()) == 0) {
        say("forked");
        execv(self, arguments);
        _exit(1);
    }
    waitpid(child, &status, 0);
    if ((child = vfork()) == 0) {
        execve(self, arguments, environ);
        _exit(1);
    }
    waitpid(child, &status, 0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 1;
    int in_turn = strcmp(how, "turns") == 0;
    if (count >= THREADS_MAX || sem_init(&said, 0, 0) != 0) {
        return 1;
    }
    say("main");
    for (int i = 1; i <= count; i++) {
        if (!create(how, i) || (in_turn && !join(how, i))) {
            printf("thread %d failed\n", i);
            return 1;
        }
    }
    for (int i = 1; i <= count && !in_turn; i++) {
        if (!join(how, i)) {
            printf("thread %d failed\n", i);
            return 1;
        }
    }
    if (strcmp(how, "spawn") == 0) {
        start_others(argv[0]);
    }
    if (count > 0) {
        say("main");
    }
    return 0;
}

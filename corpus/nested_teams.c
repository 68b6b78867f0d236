// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = tile
// corpus: finding = mismatched-partition
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = words
// corpus: plan = interleave
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Two teams of two threads: the initialisation takes the outer team for rows of tiles, the use takes it for columns.

// By hand: member (outer, inner) places tile[outer][inner] and uses tile[inner][outer]. (0,0) and (1,1) keep their
// own; (0,1) and (1,0) trade. They are on different nodes both when threads are counted by birth (0,0) (1,0) |
// (0,1) (1,1) and by team (0,0) (0,1) | (1,0) (1,1), so half of the accesses are remote: 0.5.
// The inner threads of both teams are created at the same time, in any order. A plan identifies threads by order of creation,
// so it cannot give each thread its tile, and interleaves the pages.

#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

enum { TEAMS = 2, MEMBERS = 2, POINTS = 1 << 20 };
static const double RUN_S = 1.2;

static double tile[TEAMS][MEMBERS][POINTS]; // 8 MiB a tile, 32 MiB together @allocated
static bool stop;
static long sweeps;
static pthread_barrier_t in_step; // an OpenMP barrier would hold one inner team only

static void simulate(int outer, int inner, double end) {
    for (int i = 0; i < POINTS; i++)
        tile[outer][inner][i] = 1.0; // @first-touch
    pthread_barrier_wait(&in_step);
    while (!stop) {
        double *mine = tile[inner][outer];
        for (int i = 0; i < POINTS; i++)
            mine[i] += 1.0; // @used
        pthread_barrier_wait(&in_step);
        if (outer == 0 && inner == 0) {
            sweeps++;
            stop = omp_get_wtime() >= end;
        }
        pthread_barrier_wait(&in_step);
    }
}

int main(void) {
    const double end = omp_get_wtime() + RUN_S;
    pthread_barrier_init(&in_step, NULL, TEAMS * MEMBERS);
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(TEAMS)
    {
        const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(MEMBERS)
        simulate(outer, omp_get_thread_num(), end);
    }

    int bad = 0;
    for (int k = 0; k < TEAMS * MEMBERS; k++)
        for (int i = 0; i < POINTS; i++)
            bad |= tile[k / MEMBERS][k % MEMBERS][i] != 1.0 + (double)sweeps;
    puts(bad ? "bad" : "ok");
    return bad;
}

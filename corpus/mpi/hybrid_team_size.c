// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = mismatched-partition
// corpus: partition = block
// corpus: remote = 0.5
// corpus: job = 2 ranks on virtual:4
// corpus: ranks = 0 1
// corpus: build = mpicc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: why = In each rank a team of 2 initialises and a team of 4 computes, with the same loop and schedule.

// By hand: threads 0 and 1 of a rank place a half each, both on the rank's first node. Threads 2 and 3 (its second node) use the second half: 0.5.

#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { IO_THREADS = 2, THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB in each rank
static const double RUN_S = 1.2;

int main(int argc, char **argv) {
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    double *a = malloc(N * sizeof *a); // @allocated
    if (!a)
        MPI_Abort(MPI_COMM_WORLD, 1);
    omp_set_num_threads(IO_THREADS);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < N; i++)
        a[i] = (double)(i % 4); // @first-touch

    omp_set_num_threads(THREADS);
    int bad = 0, any_bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
        double sum = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < N; i++)
            sum += a[i]; // @used
        bad |= sum != 1.5 * (double)N;
    }
    MPI_Allreduce(&bad, &any_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        puts(any_bad ? "bad" : "ok");
    free(a);
    MPI_Finalize();
    return any_bad;
}

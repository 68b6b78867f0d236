// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: job = 2 ranks on virtual:4
// corpus: ranks = 0 1
// corpus: build = mpicc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: why = The main thread of each rank fills the rank's array in a plain loop; the threads of a rank have two nodes.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB in each rank
static const double RUN_S = 1.2;

int main(int argc, char **argv) {
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    double *a = malloc(N * sizeof *a); // @allocated
    if (!a)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < N; i++)
        a[i] = 1.0; // @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            a[i] += 1.0; // @used
    }

    long bad = 0, all_bad = 0;
    for (size_t i = 0; i < N; i += 512)
        bad += a[i] != 1.0 + (double)sweeps;
    MPI_Allreduce(&bad, &all_bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all_bad ? "bad" : "ok");
    free(a);
    MPI_Finalize();
    return all_bad != 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: job = 4 ranks on virtual:8
// corpus: ranks = 3
// corpus: build = mpicc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: why = The last rank has the inflow boundary and fills its field in a serial loop; the other ranks fill theirs in parallel.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)2 << 20; // doubles: 16 MiB in each rank
static const double RUN_S = 1.2;

static void interior(double *field) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        field[i] = 1.0;
}

static void inflow(double *field) {
    for (size_t i = 0; i < N; i++)
        field[i] = 1.0 + (double)(i % 2); // @first-touch
}

int main(int argc, char **argv) {
    int rank, size, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    double *field = malloc(N * sizeof *field); // @allocated
    if (!field)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == size - 1)
        inflow(field);
    else
        interior(field);

    long steps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; steps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            field[i] += 1.0; // @used
    }

    long bad = 0, all_bad = 0;
    for (size_t i = 0; i < N; i += 512)
        bad += field[i] != 1.0 + (double)steps;
    MPI_Allreduce(&bad, &all_bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all_bad ? "bad" : "ok");
    free(field);
    MPI_Finalize();
    return all_bad != 0;
}

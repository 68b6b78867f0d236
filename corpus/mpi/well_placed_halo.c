// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: finding = none
// corpus: partition = single
// corpus: remote = 0.0
// corpus: job = 4 ranks on virtual:2
// corpus: build = mpicc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: why = Pure MPI: each rank fills and uses a field of its own, and sends 1 MiB to its neighbour after every few sweeps.
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { SWEEPS = 8, HALO = 1 << 17 };     // doubles: 1 MiB
static const size_t N = (size_t)2 << 20; // doubles: 16 MiB in each rank
static const double RUN_S = 1.2;

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    double *field = malloc((N + HALO) * sizeof *field); // @allocated
    if (!field)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < N + HALO; i++)
        field[i] = 1.0; // @first-touch

    // The last part of the field is the neighbour's first part. Rank 0's clock decides for all when the job ends.
    const int to = (rank + size - 1) % size, from = (rank + 1) % size;
    long sweeps = 0, bad = 0, all_bad = 0;
    const double end = MPI_Wtime() + RUN_S;
    for (int stop = false; !stop;) {
        for (int sweep = 0; sweep < SWEEPS; sweep++, sweeps++)
            for (size_t i = 0; i < N; i++)
                field[i] += 1.0; // @used
        MPI_Sendrecv(field, HALO, MPI_DOUBLE, to, 0, field + N, HALO, MPI_DOUBLE, from, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        bad += field[N + HALO - 1] != 1.0 + (double)sweeps;
        stop = MPI_Wtime() >= end;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }

    for (size_t i = 0; i < N + HALO; i += 512)
        bad += field[i] != 1.0 + (double)sweeps;
    MPI_Allreduce(&bad, &all_bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all_bad ? "bad" : "ok");
    free(field);
    MPI_Finalize();
    return all_bad != 0;
}

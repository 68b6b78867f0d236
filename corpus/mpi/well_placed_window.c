// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = table
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: job = 4 ranks on virtual:2
// corpus: build = mpicc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: why = Near miss of shared_window: rank 0 allocates the window too, but each rank fills the quarter that it uses.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t N = (size_t)8 << 20; // doubles: 64 MiB
static const double RUN_S = 1.2;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm node;
    int rank, size, unit;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &size);

    double *table;
    MPI_Win window;
    MPI_Aint bytes = rank == 0 ? (MPI_Aint)(N * sizeof *table) : 0;
    MPI_Win_allocate_shared(bytes, sizeof *table, MPI_INFO_NULL, node, &table, &window); // @allocated
    MPI_Win_shared_query(window, 0, &bytes, &unit, &table);
    const size_t from = N / (size_t)size * (size_t)rank, to = from + N / (size_t)size;
    for (size_t i = from; i < to; i++)
        table[i] = 1.0; // @first-touch
    MPI_Barrier(node);

    long sweeps = 0;
    for (double end = MPI_Wtime() + RUN_S; MPI_Wtime() < end; sweeps++)
        for (size_t i = from; i < to; i++)
            table[i] += 1.0; // @used

    long bad = 0, all_bad = 0;
    for (size_t i = from; i < to; i += 512)
        bad += table[i] != 1.0 + (double)sweeps;
    MPI_Allreduce(&bad, &all_bad, 1, MPI_LONG, MPI_SUM, node);
    if (rank == 0)
        puts(all_bad ? "bad" : "ok");
    MPI_Win_free(&window);
    MPI_Finalize();
    return all_bad != 0;
}

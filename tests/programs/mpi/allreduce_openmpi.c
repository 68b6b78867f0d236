// corpus: build = mpicc.openmpi -O2 -g {src} -o {out}
// Ranks of one thread that add up a part of their array and then the sums of all, about once a millisecond: the cost of profiling ranks that wait for
// each other (scripts/bench-overhead).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 1 << 20, PART = ELEMENTS / 8, SWEEPS = 5 };

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    double *a = malloc(ELEMENTS * sizeof *a), sum = 0, all = 0;
    if (a == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (long i = 0; i < ELEMENTS; i++)
        a[i] = i;
    for (int round = 0; round < rounds; round++) {
        const long from = (long)round * PART % ELEMENTS;
        for (int sweep = 0; sweep < SWEEPS; sweep++)
            for (long i = from; i < from + PART; i++)
                sum += a[i];
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("sum %g\n", all);
    free(a);
    MPI_Finalize();
    return 0;
}

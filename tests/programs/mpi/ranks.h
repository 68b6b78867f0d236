// A job of MPI: each rank fills an array of its own and sums it for a while; the ranks exchange messages of 8 MiB, and rank 0 prints what all of them
// agree on. `ranks MODE RANK ROUNDS`: that rank ends as MODE says, after so many sums.
//
//   work    nothing happens
//   kill    it sends itself SIGKILL
//   abort   it calls MPI_Abort with 5
//   exit    it ends with status 3, after MPI_Finalize
//   term    it says that it waits, and waits for a signal
//   stdin   rank 0 prints the number of bytes on its standard input
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 20, ROUNDS = 60 };

static double use(double *array, int rounds) {
    double sum = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < COUNT; i++)
            sum += array[i];
    return sum;
}

static void exchange(double *array, int rank, int size) {
    double *other = malloc(COUNT * sizeof *other);
    MPI_Sendrecv(array, COUNT, MPI_DOUBLE, (rank + 1) % size, 7, other, COUNT, MPI_DOUBLE, (rank + size - 1) % size, 7,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double expected = (rank + size - 1) % size + 1;
    for (int i = 0; i < COUNT; i++)
        if (other[i] != expected) {
            fprintf(stderr, "rank %d: message is wrong at %d\n", rank, i);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    free(other);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "work";
    const int chosen = argc > 2 ? atoi(argv[2]) : -1;
    const int rounds = argc > 3 ? atoi(argv[3]) : ROUNDS;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *array = malloc(COUNT * sizeof *array);
    for (int i = 0; i < COUNT; i++)
        array[i] = rank + 1;
    double sum = use(array, rounds), all = 0;
    exchange(array, rank, size);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, sum %.0f\n", size, all), fflush(stdout);
    if (rank == chosen && strcmp(mode, "kill") == 0)
        raise(SIGKILL);
    if (rank == chosen && strcmp(mode, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (strcmp(mode, "term") == 0) {
        if (rank == 0)
            printf("waits\n"), fflush(stdout);
        pause();
    }
    if (rank == 0 && strcmp(mode, "stdin") == 0) {
        int bytes = 0;
        while (getchar() != EOF)
            bytes++;
        printf("%d bytes\n", bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(array);
    MPI_Finalize();
    return rank == chosen && strcmp(mode, "exit") == 0 ? 3 : 0;
}

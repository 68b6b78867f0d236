// The job of ranks.h, with the MPI that is named.
// corpus: build = mpicc.mpich -O2 -g {src} -o {out}
#include "ranks.h"

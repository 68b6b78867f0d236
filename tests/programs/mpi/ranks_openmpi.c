// The job of ranks.h, with the MPI that is named.
// corpus: build = mpicc.openmpi -O2 -g {src} -o {out}
#include "ranks.h"

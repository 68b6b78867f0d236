! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = a
! corpus: finding = none
! corpus: partition = block
! corpus: remote = 0.0
! corpus: job = 2 ranks on virtual:4
! corpus: build = mpifort -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: why = Near miss of hybrid_assignment: the threads of each rank initialise a in the same static loop that uses it.

program well_placed_hybrid
  use mpi
  use omp_lib
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4
  integer, parameter :: n = 4194304 ! 32 MiB in each rank
  real(dp), parameter :: run_s = 1.2_dp
  real(dp), allocatable :: a(:)
  real(dp) :: finish
  integer :: i, sweeps, rank, provided, bad, all_bad, error

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)

  allocate (a(n)) ! @allocated
  !$omp parallel do num_threads(threads) schedule(static)
  do i = 1, n
    a(i) = 1.0_dp ! @first-touch
  end do
  !$omp end parallel do

  sweeps = 0
  finish = omp_get_wtime() + run_s
  do while (omp_get_wtime() < finish)
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      a(i) = a(i) + 1.0_dp ! @used
    end do
    !$omp end parallel do
    sweeps = sweeps + 1
  end do

  bad = count(abs(a(::512) - (1.0_dp + sweeps)) > 0.0_dp)
  call MPI_Allreduce(bad, all_bad, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a)', trim(merge('ok ', 'bad', all_bad == 0))
  call MPI_Finalize(error)
  if (all_bad /= 0) stop 1
end program well_placed_hybrid

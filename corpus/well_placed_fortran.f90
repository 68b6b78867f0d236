! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = p
! corpus: finding = none
! corpus: partition = block
! corpus: remote = 0.0
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = Near miss of array_assignment and wrong_dimension: columns are assigned, and later used, in the same static loop.

program well_placed_fortran
  use omp_lib
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4
  integer, parameter :: rows = 8192, columns = 512 ! 64 KiB a column, 32 MiB
  real(dp), parameter :: run_s = 1.2_dp
  real(dp), allocatable :: p(:, :)
  real(dp) :: finish
  integer :: bad, j, sweeps

  allocate (p(rows, columns)) ! @allocated
  !$omp parallel do num_threads(threads) schedule(static)
  do j = 1, columns
    p(:, j) = 1.0_dp ! @first-touch
  end do
  !$omp end parallel do

  sweeps = 0
  finish = omp_get_wtime() + run_s
  do while (omp_get_wtime() < finish)
    !$omp parallel do num_threads(threads) schedule(static)
    do j = 1, columns
      p(:, j) = p(:, j) + 1.0_dp ! @used
    end do
    !$omp end parallel do
    sweeps = sweeps + 1
  end do

  bad = 0
  !$omp parallel do num_threads(threads) schedule(static) reduction(+:bad)
  do j = 1, columns
    bad = bad + count(abs(p(:, j) - (1.0_dp + sweeps)) > 0.0_dp)
  end do
  !$omp end parallel do
  if (bad > 0) then
    print '(a)', 'bad'
    stop 1
  end if
  print '(a)', 'ok'
end program well_placed_fortran

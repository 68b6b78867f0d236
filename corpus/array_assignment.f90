! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = a
! corpus: finding = serial-first-touch
! corpus: partition = block
! corpus: cause = fortran-assignment
! corpus: remote = 0.5
! corpus: fix = edit: !$omp parallel workshare num_threads(threads)
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = The whole-array assignment a = 1 is one line that looks like a declaration and runs in the main thread.

! (With a = 0 gfortran -O2 would merge the two statements into calloc, which touches nothing.)

program array_assignment
  use omp_lib
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4
  integer, parameter :: n = 4194304 ! 32 MiB
  real(dp), parameter :: run_s = 1.2_dp
  real(dp), allocatable :: a(:)
  real(dp) :: finish
  integer :: i, sweeps

  allocate (a(n)) ! @allocated
  a = 1.0_dp      ! @first-touch

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

  if (any(abs(a - (1.0_dp + sweeps)) > 0.0_dp)) then
    print '(a)', 'bad'
    stop 1
  end if
  print '(a)', 'ok'
end program array_assignment

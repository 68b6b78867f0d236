! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = b
! corpus: fix = edit: b(:, :) = 2*a + 1
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = gfortran executes an assignment to a whole allocatable array in one thread, also in a workshare: it may reallocate it.

program whole_assignment
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 1448
  real(dp), allocatable :: a(:, :), b(:, :)
  integer :: i, j, sweep
  allocate (a(n, n))
  allocate (b(n, n))
  call random_seed(put=[(i, i=1, 64)])
  call random_number(a)
  b = 2*a + 1
  do sweep = 1, 401
    !$omp parallel do num_threads(threads) schedule(static)
    do j = 1, n
      do i = 1, n
        b(i, j) = 3.0_dp - b(i, j)
      end do
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(b) + b(7, 9)
end program whole_assignment

! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = s%work
! corpus: fix = example
! corpus: says = s%work(:, j) = 0.5_dp
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = allocate fills a component with a number: the lines have that number, and no gap to fill in.

program component_source
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 1448
  type :: state
    real(dp), allocatable :: work(:, :)
  end type state
  type(state) :: s
  integer :: i, j, sweep
  allocate (s%work(n, n), source=0.5_dp)
  do sweep = 1, 401
    !$omp parallel do num_threads(threads) schedule(static)
    do j = 1, n
      do i = 1, n
        s%work(i, j) = 3.0_dp - s%work(i, j)
      end do
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(s%work) + s%work(7, 9)
end program component_source

! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = u
! corpus: fix = edit
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = The outer loop counts down: divided as it is, each thread would place the part of another one.

program counts_down_do
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 1448
  real(dp), allocatable :: u(:, :)
  integer :: i, j, sweep
  allocate (u(n, n))
  do j = n, 1, -1
    do i = 1, n
      u(i, j) = dble(i) + 0.5_dp * dble(j)
    end do
  end do
  do sweep = 1, 1001
    !$omp parallel do num_threads(threads) schedule(static)
    do j = 1, n
      do i = 1, n
        u(i, j) = 3.0_dp - u(i, j)
      end do
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(u) + u(7, 9)
end program counts_down_do

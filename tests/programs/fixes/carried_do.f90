! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = u
! corpus: fix = edit
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = Each element depends on the one before.

program carried_do
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 2097152
  real(dp), allocatable :: u(:)
  integer :: i, sweep
  allocate (u(n))
  u(1) = 1.0_dp
  do i = 2, n
    u(i) = 0.5_dp * u(i - 1) + 0.001_dp * dble(mod(i, 7))
  end do
  do sweep = 1, 1001
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      u(i) = 3.0_dp - u(i)
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(u) + u(7)
end program carried_do

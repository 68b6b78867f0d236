! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = u
! corpus: fix = edit
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = Both loops go backwards, one by its subscript and one by counting down: the same thread has the same part.

program both_backwards
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 2097152
  real(dp), allocatable :: u(:)
  integer :: i, sweep
  allocate (u(n))
  do i = 1, n
    u(n + 1 - i) = dble(mod(i, 11))
  end do
  do sweep = 1, 1001
    !$omp parallel do num_threads(threads) schedule(static)
    do i = n, 1, -1
      u(i) = 3.0_dp - u(i)
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(u) + u(7)
end program both_backwards

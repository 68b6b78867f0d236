! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = u
! corpus: fix = words
! corpus: says = to the threads with the last numbers
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = The subscript goes backwards where the array is used: a loop in order would place each part wrong.

program used_backwards
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 2097152
  real(dp), allocatable :: u(:)
  integer :: i, sweep
  allocate (u(n))
  do i = 1, n
    u(i) = dble(mod(i, 11))
  end do
  do sweep = 1, 1001
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      u(n + 1 - i) = 3.0_dp - u(n + 1 - i)
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(u) + u(7)
end program used_backwards

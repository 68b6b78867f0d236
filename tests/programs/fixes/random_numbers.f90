! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = u
! corpus: fix = edit
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = random_number gives the next values of one sequence.

program random_numbers
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 2097152
  real(dp), allocatable :: u(:)
  integer :: i, sweep
  integer :: seed(64)
  seed = 12345
  call random_seed(put=seed)
  allocate (u(n))
  do i = 1, n
    call random_number(u(i))
  end do
  do sweep = 1, 1001
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      u(i) = 3.0_dp - u(i)
    end do
    !$omp end parallel do
  end do
  print '(es24.16)', sum(u) + u(7)
end program random_numbers

! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = fields::u
! corpus: fix = edit
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = The array belongs to a module, and a subroutine of the module fills it.

module fields
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4, n = 2097152
  real(dp) :: u(n)
contains
  subroutine start()
    integer :: i
    do i = 1, n
      u(i) = 0.5_dp * dble(mod(i, 100))
    end do
  end subroutine start

  subroutine advance()
    integer :: i
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      u(i) = 3.0_dp - u(i)
    end do
    !$omp end parallel do
  end subroutine advance
end module fields

program module_array
  use fields
  implicit none
  integer :: sweep
  call start()
  do sweep = 1, 1001
    call advance()
  end do
  print '(es24.16)', sum(u) + u(7)
end program module_array

! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = t
! corpus: finding = serial-first-touch
! corpus: partition = block
! corpus: cause = fortran-assignment
! corpus: remote = 0.5
! corpus: fix = edit: !$omp parallel workshare num_threads(4)
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = allocate with source= allocates and fills the allocatable in one statement, in the main thread.

module heat
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4
  real(dp), allocatable :: t(:, :)
contains
  subroutine warm(by)
    real(dp), intent(in) :: by
    integer :: i, j
    !$omp parallel do num_threads(threads) schedule(static) private(i)
    do j = 1, size(t, 2)
      do i = 1, size(t, 1)
        t(i, j) = t(i, j) + by ! @used
      end do
    end do
    !$omp end parallel do
  end subroutine warm
end module heat

program allocate_source
  use omp_lib
  use heat
  implicit none
  integer, parameter :: n = 2048 ! 32 MiB
  real(dp), parameter :: run_s = 1.2_dp, start_temperature = 293.0_dp
  real(dp) :: finish
  integer :: sweeps

  allocate (t(n, n), source=start_temperature) ! @allocated @first-touch

  sweeps = 0
  finish = omp_get_wtime() + run_s
  do while (omp_get_wtime() < finish)
    call warm(0.5_dp)
    sweeps = sweeps + 1
  end do

  if (any(abs(t - (start_temperature + 0.5_dp*sweeps)) > 0.0_dp)) then
    print '(a)', 'bad'
    stop 1
  end if
  print '(a)', 'ok'
end program allocate_source

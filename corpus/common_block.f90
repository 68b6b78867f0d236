! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = u
! corpus: finding = serial-first-touch
! corpus: partition = block
! corpus: cause = loop
! corpus: remote = 0.5
! corpus: fix = edit: !$omp parallel do num_threads(4) schedule(static)
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = The COMMON block /fields/ is filled by a serial subroutine; it is never allocated, only a symbol names it.

program common_block
  use omp_lib
  implicit none
  integer, parameter :: dp = kind(1.0d0), n = 4194304 ! 32 MiB
  real(dp), parameter :: run_s = 1.2_dp
  real(dp) :: u(n) ! @allocated
  common /fields/ u
  real(dp) :: finish
  integer :: sweeps

  call initialise()

  sweeps = 0
  finish = omp_get_wtime() + run_s
  do while (omp_get_wtime() < finish)
    call step()
    sweeps = sweeps + 1
  end do

  if (any(abs(u - (1.0_dp + sweeps)) > 0.0_dp)) then
    print '(a)', 'bad'
    stop 1
  end if
  print '(a)', 'ok'
end program common_block

subroutine initialise()
  implicit none
  integer, parameter :: dp = kind(1.0d0), n = 4194304
  real(dp) :: u(n)
  common /fields/ u
  integer :: i
  do i = 1, n
    u(i) = 1.0_dp ! @first-touch
  end do
end subroutine initialise

subroutine step()
  implicit none
  integer, parameter :: dp = kind(1.0d0), n = 4194304, threads = 4
  real(dp) :: u(n)
  common /fields/ u
  integer :: i
  !$omp parallel do num_threads(threads) schedule(static)
  do i = 1, n
    u(i) = u(i) + 1.0_dp ! @used
  end do
  !$omp end parallel do
end subroutine step

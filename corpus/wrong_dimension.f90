! SPDX-License-Identifier: Apache-2.0 OR MIT
! corpus: object = p
! corpus: finding = mismatched-partition
! corpus: partition = block-cyclic
! corpus: remote = 0.5
! corpus: fix = words
! corpus: build = gfortran -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
! corpus: run = {out}
! corpus: why = The initialisation shares out the columns (contiguous in Fortran), the use shares out the rows.

! By hand: each thread uses a quarter of the rows of every column. The first half of the columns lies on node 0, the
! second on node 1, and in each half two threads of four are of the other node: 0.5.

program wrong_dimension
  use omp_lib
  implicit none
  integer, parameter :: dp = kind(1.0d0), threads = 4
  integer, parameter :: rows = 8192, columns = 512 ! 64 KiB a column, 32 MiB
  real(dp), parameter :: run_s = 1.2_dp
  real(dp), allocatable :: p(:, :)
  real(dp) :: finish
  integer :: first, i, j, sweeps

  allocate (p(rows, columns)) ! @allocated
  !$omp parallel do num_threads(threads) schedule(static) private(i)
  do j = 1, columns
    do i = 1, rows
      p(i, j) = 1.0_dp ! @first-touch
    end do
  end do
  !$omp end parallel do

  sweeps = 0
  finish = omp_get_wtime() + run_s
  do while (omp_get_wtime() < finish)
    !$omp parallel do num_threads(threads) schedule(static) private(i, j)
    do first = 1, rows, rows/threads
      do j = 1, columns
        do i = first, first + rows/threads - 1
          p(i, j) = p(i, j) + 1.0_dp ! @used
        end do
      end do
    end do
    !$omp end parallel do
    sweeps = sweeps + 1
  end do

  if (any(abs(p - (1.0_dp + sweeps)) > 0.0_dp)) then
    print '(a)', 'bad'
    stop 1
  end if
  print '(a)', 'ok'
end program wrong_dimension

! SPDX-License-Identifier: Apache-2.0 OR MIT
!
! placed [SECONDS]: placed.cpp in Fortran, whose module has no replicated tables.
program placed
    use, intrinsic :: iso_c_binding, only: c_int, c_size_t
    use, intrinsic :: iso_fortran_env, only: real64
    use omp_lib
    use firsttouch
    implicit none

    interface
        function node_numbers(nodes, capacity) bind(C, name="ft_nodes") result(known)
            import :: c_int, c_size_t
            integer(c_int), intent(out) :: nodes(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t) :: known
        end function node_numbers
    end interface

    integer, parameter :: n = 524288
    integer(c_int) :: nodes(64)
    integer :: known, i, failures = 0
    real(real64), pointer :: field(:)
    real(real64) :: seconds, end
    character(20) :: word

    call ft_join_openmp()
    known = int(node_numbers(nodes, 64_c_size_t))
    call check("blocked", ft_blocked())
    call check("blocked over nodes", ft_over_nodes(ft_blocked()))
    call check("cyclic", ft_cyclic(10000))
    call check("by bounds", ft_by_bounds([1, 100001, n + 1]))
    call check("weighted", ft_weighted([(real(i, real64), i=1, known)]))
    call check("interleaved", ft_interleaved())
    call check("bind", ft_bind(nodes(known)))

    seconds = 0
    call get_command_argument(1, word)
    if (word /= "") read (word, *) seconds
    call ft_allocate(field, [n], ft_blocked())
    field = 1
    end = omp_get_wtime() + seconds
    !$omp parallel
    do
        call add_one(field)
        if (omp_get_wtime() >= end) exit
    end do
    !$omp end parallel
    call verify("field", field, ft_blocked())
    call ft_deallocate(field)
    if (failures > 0) error stop 1

contains

    ! In a parallel region. (The loop begins with the access itself: emulated CPUs are interrupted, and sampled, where a loop begins.)
    subroutine add_one(array)
        real(real64), intent(inout) :: array(n)
        integer :: i

        !$omp do schedule(static)
        do i = 1, n
            array(i) = array(i) + 1
        end do
        !$omp end do nowait
    end subroutine add_one

    subroutine check(name, partition)
        character(*), intent(in) :: name
        type(ft_partition), intent(in) :: partition
        real(real64), pointer :: array(:)

        call ft_allocate(array, [n], partition)
        array = 1
        call verify(name, array, partition)
        call ft_deallocate(array)
    end subroutine check

    subroutine verify(name, array, partition)
        character(*), intent(in) :: name
        real(real64), intent(in) :: array(:)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict) :: verdict
        logical :: good

        call ft_verify(array, partition, verdict)
        good = verdict%share >= 0.99_real64 .and. verdict%present == verdict%pages
        print '(4a, f6.4, a, i0)', merge("ok   ", "FAIL ", good), "  placed: ", name, ": ", verdict%share, " of ", verdict%present
        if (.not. good) failures = failures + 1
    end subroutine verify
end program placed

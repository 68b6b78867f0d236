! SPDX-License-Identifier: Apache-2.0 OR MIT
!
! Tests of the Fortran module. What is present or mapped is asked of the kernel, and who owns what of the OpenMP runtime.
program fortran
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use omp_lib
    use firsttouch
    implicit none

    interface
        function mincore(address, bytes, states) bind(C) result(status)
            import :: c_int, c_ptr, c_size_t, c_signed_char
            type(c_ptr), value :: address
            integer(c_size_t), value :: bytes
            integer(c_signed_char), intent(out) :: states(*)
            integer(c_int) :: status
        end function mincore
        function team_node(team, thread) bind(C, name="ft_team_node") result(node)
            import :: c_int, c_size_t
            integer(c_int), value :: team
            integer(c_size_t), value :: thread
            integer(c_int) :: node
        end function team_node
        function move_pages(pid, count, pages, nodes, status, flags) bind(C, name="test_move_pages") result(answer)
            import :: c_int, c_long, c_ptr
            integer(c_int), value :: pid, flags
            integer(c_long), value :: count
            type(c_ptr), intent(in) :: pages(*)
            type(c_ptr), value :: nodes
            integer(c_int), intent(out) :: status(*)
            integer(c_long) :: answer
        end function move_pages
    end interface

    integer(int64), parameter :: page_bytes = 4096
    integer :: failures = 0

    call ft_join_openmp()
    call check("the team is OpenMP's", ft_team_size() == omp_get_max_threads())
    call bounds_are_openmp_s()
    call ranks_and_bounds()
    call arrays_that_exist()
    call columns_go_to_their_threads()
    call arguments_are_checked()
    if (failures > 0) error stop 1

contains

    subroutine check(name, good)
        character(*), intent(in) :: name
        logical, intent(in) :: good

        print '(3a)', merge("ok   ", "FAIL ", good), "  Fortran: ", name
        if (.not. good) failures = failures + 1
    end subroutine check

    ! Present pages of memory that begins at a page; -1 if it is not mapped.
    integer function present_pages(address, bytes)
        type(c_ptr), intent(in) :: address
        integer(int64), intent(in) :: bytes
        integer(c_signed_char) :: states(bytes / page_bytes + 1)

        present_pages = -1
        if (mincore(address, bytes, states) /= 0) return
        present_pages = count(iand(int(states(1:(bytes + page_bytes - 1) / page_bytes)), 1) == 1)
    end function present_pages

    subroutine bounds_are_openmp_s()
        integer, parameter :: extents(4) = [1, 7, 1000, 1003]
        integer :: threads, case, i, thread, owner(1003)
        integer(int64) :: bounds(8)
        logical :: same

        same = .true.
        do threads = 1, 7
            do case = 1, size(extents)
                !$omp parallel do schedule(static) num_threads(threads)
                do i = 1, extents(case)
                    owner(i) = omp_get_thread_num()
                end do
                bounds(1:threads + 1) = ft_static_bounds(int(extents(case), int64), threads)
                do thread = 0, threads - 1
                    same = same .and. all(owner(bounds(thread + 1):bounds(thread + 2) - 1) == thread)
                end do
                same = same .and. bounds(threads + 1) == extents(case) + 1
            end do
        end do
        call check("ft_static_bounds are those of schedule(static)", same)
    end subroutine bounds_are_openmp_s

    subroutine ranks_and_bounds()
        real(real64), pointer :: a(:)
        real(real32), pointer :: b(:, :)
        integer(int32), pointer :: c(:, :, :)
        complex(real64), pointer :: d(:)
        integer(int64), pointer :: e(:)
        type(c_ptr) :: address

        call ft_allocate(a, [1000000], ft_blocked())
        address = c_loc(a)
        call check("rank 1: nothing is touched", present_pages(address, 8000000_int64) == 0)
        a = 1
        call check("rank 1: all of it is there", present_pages(address, 8000000_int64) == 1954)
        call check("rank 1: where its threads are", ft_expect(a, ft_blocked(), 0.99_real64) == 1)
        call ft_deallocate(a)
        call check("rank 1: the pointer is null", .not. associated(a))
        call check("rank 1: the memory is unmapped", present_pages(address, 8000000_int64) == -1)
        call ft_allocate(b, [100, 500], ft_cyclic(10), lower=[0, -1])
        b = 2
        call check("rank 2: bounds", all(lbound(b) == [0, -1]) .and. all(ubound(b) == [99, 498]) .and. nint(sum(b)) == 100000)
        call ft_deallocate(b)
        call ft_allocate(c, [10_int64, 20_int64, 300_int64], ft_interleaved(), lower=[1_int64, 0_int64, 5_int64])
        c = 3
        call check("rank 3: bounds", all(ubound(c) == [10, 19, 304]) .and. sum(c) == 180000)
        call ft_deallocate(c)
        call ft_allocate(d, [100000], ft_weighted([1.0_real64, 2.0_real64]))
        d = (1, 1)
        call check("complex", nint(real(sum(d))) == 100000)
        call ft_deallocate(d)
        call ft_allocate(e, [0])
        call check("no elements", associated(e) .and. size(e) == 0)
        call ft_deallocate(e)
        call ft_allocate(e, [3], ft_by_bounds([1, 2, 4]))
        e = 7
        call check("few elements", sum(e) == 21)
        call ft_deallocate(e)
        call check("twice is no error", .not. associated(e))
        call ft_deallocate(e)
    end subroutine ranks_and_bounds

    subroutine arrays_that_exist()
        real(real64), allocatable, target :: a(:, :)
        type(ft_verdict) :: verdict
        integer(int64) :: moved

        allocate (a(1000, 1000))
        call ft_localise(a, ft_blocked())
        a = 1
        call ft_place(a, ft_blocked(), moved=moved)
        call ft_verify(a, ft_blocked(), verdict)
        call check("allocatable: localised, nothing left to move", moved == 0 .and. verdict%share > 0.99_real64)
        call check("allocatable: pages are counted", verdict%present > 1900 .and. sum(verdict%node_pages) == verdict%present)
        call check("allocatable: contents stay", nint(sum(a)) == 1000000)
        call check("a contiguous part", ft_expect(a(:, 1:500), ft_blocked(), 0.0_real64) == 1)
    end subroutine arrays_that_exist

    ! One thread touches all, so that only the policy can have placed the pages.
    subroutine columns_go_to_their_threads()
        integer, parameter :: rows = 5120, columns = 10
        real(real64), pointer :: a(:, :)
        integer :: owner(columns), column, wrong
        type(c_ptr) :: pages(1)
        integer(c_int) :: node(1)

        !$omp parallel do schedule(static)
        do column = 1, columns
            owner(column) = omp_get_thread_num()
        end do
        call ft_allocate(a, [rows, columns], ft_blocked())
        a = 1
        wrong = 0
        do column = 1, columns
            pages(1) = c_loc(a(rows / 2, column))
            node = -1
            if (move_pages(0, 1_c_long, pages, c_null_ptr, node, 0) /= 0) wrong = wrong + 1
            if (node(1) /= team_node(0, int(owner(column), c_size_t))) wrong = wrong + 1
        end do
        call check("columns go where a loop over few columns uses them", wrong == 0)
        call ft_deallocate(a)
    end subroutine columns_go_to_their_threads

    subroutine arguments_are_checked()
        real(real64), pointer :: a(:)
        real(real64), allocatable, target :: b(:, :)
        character(200) :: message
        integer :: stat

        nullify (a)
        call ft_allocate(a, [1000000], ft_by_bounds([1, 9, 5]), stat=stat, errmsg=message)
        call check("bounds that descend", stat == 22 .and. .not. associated(a) .and. index(message, "partition") > 0)
        call ft_allocate(a, [1000000], ft_blocked(-1), stat=stat)
        call check("a negative number of parts", stat == 22)
        call ft_allocate(a, [100000], ft_blocked(huge(1)), stat=stat)
        call check("more parts than a partition may have", stat == 22)
        call ft_allocate(a, [10], ft_blocked(2**20 + 1), stat=stat)
        call check("and so for few elements", stat == 22)
        call ft_allocate(a, [100000], ft_blocked(2**20), stat=stat)
        call check("as many parts as it may have", stat == 0)
        call ft_deallocate(a)
        call check("bounds for no threads, or too many", size(ft_static_bounds(10_int64, 0)) == 0 .and. &
            size(ft_static_bounds(10_int64, -5)) == 0 .and. size(ft_static_bounds(10_int64, huge(1))) == 0)
        call ft_allocate(a, [100000], ft_by_bounds([-4, -1]), stat=stat)
        call check("negative bounds", stat == 22)
        call ft_allocate(a, [100000], ft_cyclic(-3), stat=stat)
        call check("a negative chunk", stat == 22)
        call ft_allocate(a, [100000], ft_cyclic(2_int64**61), stat=stat)
        call check("a chunk of more bytes than a size can say is one chunk", stat == 0)
        call ft_deallocate(a)
        call ft_allocate(a, [2_int64**58], stat=stat, errmsg=message)
        call check("more memory than there is: "//trim(message), stat == 12)
        call ft_allocate(a, [2_int64**62], stat=stat)
        call check("more bytes than a size can say", stat == 12)
        allocate (b(1000, 1000), source=0.0_real64)
        call ft_place(b, ft_blocked(huge(1)), stat=stat)
        call check("place by too many parts", stat == 22)
        call check("expect by too many parts", ft_expect(b, ft_blocked(huge(1)), 0.5_real64) == -1)
        call ft_place(b(1:500, :), ft_blocked(), stat=stat)
        call check("a section that is not contiguous", stat == 22)
        call ft_join_team(3, 2, stat=stat)
        call check("a thread beyond its team", stat == 22)
    end subroutine arguments_are_checked
end program fortran

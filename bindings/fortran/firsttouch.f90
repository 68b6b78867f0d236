! SPDX-License-Identifier: Apache-2.0 OR MIT
!
! Module firsttouch: libfirsttouch (firsttouch.h) for Fortran 2008. Compile this file with your compiler and link -lfirsttouch.
! The procedures for each type and rank are written by `generate` from module.f90 of the source tree.
!
! Partitions divide the last dimension of an array, which is the outermost in memory: the elements of a vector, the columns of
! a matrix, the planes of a block. They divide it as `!$omp do schedule(static)` over that dimension does, exactly. Positions count
! from 1.
!
! Types: real32, real64, complex of real64, int32, int64. Ranks: 1 to 3. Arrays need to be contiguous; a section that is not is an
! error (EINVAL), because a copy of it would be placed.
!
! Errors: with `stat`, 0 or the number of the C library's error, and `errmsg` says what failed. Without `stat`, the program stops,
! as for `allocate`. Memory that the kernel does not place is given all the same: ft_last_doubt() says what was not done.
module firsttouch
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_int32_t, c_loc, c_null_ptr, c_ptr, &
        c_ptrdiff_t => c_intptr_t, c_size_t, c_associated
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    implicit none
    private

    public :: ft_partition, ft_verdict
    public :: ft_local, ft_blocked, ft_cyclic, ft_by_bounds, ft_weighted, ft_interleaved, ft_bind, ft_over_nodes, ft_for_team
    public :: ft_allocate, ft_deallocate, ft_place, ft_localise, ft_verify, ft_expect
    public :: ft_join_team, ft_join_openmp, ft_team_size, ft_static_bounds
    public :: ft_last_doubt, ft_clear_doubt

    integer, parameter, public :: ft_huge_pages = 1, ft_small_pages = 2, ft_keep_present = 4, ft_strict = 8

    integer(c_int32_t), parameter :: kind_local = 0, kind_blocked = 1, kind_cyclic = 2, kind_by_bounds = 3, kind_interleaved = 4, &
        kind_weighted = 5, kind_bind = 7
    integer(c_int32_t), parameter :: unit_threads = 0, unit_nodes = 1
    integer, parameter :: einval = 22
    integer, parameter :: max_parts = 2**20

    ! How the last dimension of an array is divided. The default is first touch, as for `allocate`.
    type :: ft_partition
        private
        integer(c_int32_t) :: kind = kind_local
        integer(c_int32_t) :: unit = unit_threads
        integer(int64) :: parts = 0
        integer(int64) :: chunk = 0
        integer(int64), allocatable :: bounds(:)
        real(real64), allocatable :: weights(:)
        integer(c_int32_t) :: node = 0
        integer(c_int32_t) :: team = 0
    end type ft_partition

    ! What ft_verify found: see ft_verdict in firsttouch.h. `share` is NaN if no page is present.
    type, bind(C) :: ft_verdict
        integer(c_size_t) :: pages = 0, present = 0, on_target = 0, border = 0
        real(c_double) :: share = 0
        integer(c_size_t) :: node_pages(64) = 0
        integer(c_int) :: error = 0
    end type ft_verdict

    ! struct ft_partition of firsttouch.h.
    type, bind(C) :: c_partition
        integer(c_int32_t) :: kind, unit
        integer(c_size_t) :: parts, chunk
        type(c_ptr) :: bounds, weights
        integer(c_int32_t) :: node, team
    end type c_partition

    type :: memory_range
        type(c_ptr) :: address = c_null_ptr
        integer(int64) :: bytes = 0
        integer(int64) :: extent = 0 ! of the last dimension
        logical :: contiguous = .true.
    end type memory_range

    interface ft_by_bounds
        procedure :: by_bounds_int32, by_bounds_int64
    end interface ft_by_bounds

    interface ft_cyclic
        procedure :: cyclic_int32, cyclic_int64
    end interface ft_cyclic

    interface ft_allocate
        procedure :: ft_allocate_real32_1
        procedure :: ft_allocate_real32_2
        procedure :: ft_allocate_real32_3
        procedure :: ft_allocate_real64_1
        procedure :: ft_allocate_real64_2
        procedure :: ft_allocate_real64_3
        procedure :: ft_allocate_complex64_1
        procedure :: ft_allocate_complex64_2
        procedure :: ft_allocate_complex64_3
        procedure :: ft_allocate_int32_1
        procedure :: ft_allocate_int32_2
        procedure :: ft_allocate_int32_3
        procedure :: ft_allocate_int64_1
        procedure :: ft_allocate_int64_2
        procedure :: ft_allocate_int64_3
        procedure :: ft_allocate_real32_1_default
        procedure :: ft_allocate_real32_2_default
        procedure :: ft_allocate_real32_3_default
        procedure :: ft_allocate_real64_1_default
        procedure :: ft_allocate_real64_2_default
        procedure :: ft_allocate_real64_3_default
        procedure :: ft_allocate_complex64_1_default
        procedure :: ft_allocate_complex64_2_default
        procedure :: ft_allocate_complex64_3_default
        procedure :: ft_allocate_int32_1_default
        procedure :: ft_allocate_int32_2_default
        procedure :: ft_allocate_int32_3_default
        procedure :: ft_allocate_int64_1_default
        procedure :: ft_allocate_int64_2_default
        procedure :: ft_allocate_int64_3_default
    end interface ft_allocate

    interface ft_deallocate
        procedure :: ft_deallocate_real32_1
        procedure :: ft_deallocate_real32_2
        procedure :: ft_deallocate_real32_3
        procedure :: ft_deallocate_real64_1
        procedure :: ft_deallocate_real64_2
        procedure :: ft_deallocate_real64_3
        procedure :: ft_deallocate_complex64_1
        procedure :: ft_deallocate_complex64_2
        procedure :: ft_deallocate_complex64_3
        procedure :: ft_deallocate_int32_1
        procedure :: ft_deallocate_int32_2
        procedure :: ft_deallocate_int32_3
        procedure :: ft_deallocate_int64_1
        procedure :: ft_deallocate_int64_2
        procedure :: ft_deallocate_int64_3
    end interface ft_deallocate

    interface ft_place
        procedure :: ft_place_real32_1
        procedure :: ft_place_real32_2
        procedure :: ft_place_real32_3
        procedure :: ft_place_real64_1
        procedure :: ft_place_real64_2
        procedure :: ft_place_real64_3
        procedure :: ft_place_complex64_1
        procedure :: ft_place_complex64_2
        procedure :: ft_place_complex64_3
        procedure :: ft_place_int32_1
        procedure :: ft_place_int32_2
        procedure :: ft_place_int32_3
        procedure :: ft_place_int64_1
        procedure :: ft_place_int64_2
        procedure :: ft_place_int64_3
    end interface ft_place

    interface ft_localise
        procedure :: ft_localise_real32_1
        procedure :: ft_localise_real32_2
        procedure :: ft_localise_real32_3
        procedure :: ft_localise_real64_1
        procedure :: ft_localise_real64_2
        procedure :: ft_localise_real64_3
        procedure :: ft_localise_complex64_1
        procedure :: ft_localise_complex64_2
        procedure :: ft_localise_complex64_3
        procedure :: ft_localise_int32_1
        procedure :: ft_localise_int32_2
        procedure :: ft_localise_int32_3
        procedure :: ft_localise_int64_1
        procedure :: ft_localise_int64_2
        procedure :: ft_localise_int64_3
    end interface ft_localise

    interface ft_verify
        procedure :: ft_verify_real32_1
        procedure :: ft_verify_real32_2
        procedure :: ft_verify_real32_3
        procedure :: ft_verify_real64_1
        procedure :: ft_verify_real64_2
        procedure :: ft_verify_real64_3
        procedure :: ft_verify_complex64_1
        procedure :: ft_verify_complex64_2
        procedure :: ft_verify_complex64_3
        procedure :: ft_verify_int32_1
        procedure :: ft_verify_int32_2
        procedure :: ft_verify_int32_3
        procedure :: ft_verify_int64_1
        procedure :: ft_verify_int64_2
        procedure :: ft_verify_int64_3
    end interface ft_verify

    interface ft_expect
        procedure :: ft_expect_real32_1
        procedure :: ft_expect_real32_2
        procedure :: ft_expect_real32_3
        procedure :: ft_expect_real64_1
        procedure :: ft_expect_real64_2
        procedure :: ft_expect_real64_3
        procedure :: ft_expect_complex64_1
        procedure :: ft_expect_complex64_2
        procedure :: ft_expect_complex64_3
        procedure :: ft_expect_int32_1
        procedure :: ft_expect_int32_2
        procedure :: ft_expect_int32_3
        procedure :: ft_expect_int64_1
        procedure :: ft_expect_int64_2
        procedure :: ft_expect_int64_3
    end interface ft_expect

    interface memory_of
        procedure :: memory_of_real32_1
        procedure :: memory_of_real32_2
        procedure :: memory_of_real32_3
        procedure :: memory_of_real64_1
        procedure :: memory_of_real64_2
        procedure :: memory_of_real64_3
        procedure :: memory_of_complex64_1
        procedure :: memory_of_complex64_2
        procedure :: memory_of_complex64_3
        procedure :: memory_of_int32_1
        procedure :: memory_of_int32_2
        procedure :: memory_of_int32_3
        procedure :: memory_of_int64_1
        procedure :: memory_of_int64_2
        procedure :: memory_of_int64_3
    end interface memory_of

    interface
        function c_alloc(bytes, partition, flags) bind(C, name="ft_alloc") result(address)
            import :: c_size_t, c_partition, c_int, c_ptr
            integer(c_size_t), value :: bytes
            type(c_partition), intent(in) :: partition
            integer(c_int), value :: flags
            type(c_ptr) :: address
        end function c_alloc

        subroutine c_free(address) bind(C, name="ft_free")
            import :: c_ptr
            type(c_ptr), value :: address
        end subroutine c_free

        function c_place(address, bytes, partition, flags) bind(C, name="ft_place") result(moved)
            import :: c_size_t, c_partition, c_int, c_ptr, c_ptrdiff_t
            type(c_ptr), value :: address
            integer(c_size_t), value :: bytes
            type(c_partition), intent(in) :: partition
            integer(c_int), value :: flags
            integer(c_ptrdiff_t) :: moved
        end function c_place

        function c_localise(address, bytes, partition) bind(C, name="ft_localise") result(status)
            import :: c_size_t, c_partition, c_int, c_ptr
            type(c_ptr), value :: address
            integer(c_size_t), value :: bytes
            type(c_partition), intent(in) :: partition
            integer(c_int) :: status
        end function c_localise

        function c_verify(address, bytes, partition, verdict) bind(C, name="ft_verify") result(status)
            import :: c_size_t, c_partition, c_int, c_ptr, ft_verdict
            type(c_ptr), value :: address
            integer(c_size_t), value :: bytes
            type(c_partition), intent(in) :: partition
            type(ft_verdict), intent(out) :: verdict
            integer(c_int) :: status
        end function c_verify

        function c_expect(address, bytes, partition, share) bind(C, name="ft_expect") result(answer)
            import :: c_size_t, c_partition, c_int, c_ptr, c_double
            type(c_ptr), value :: address
            integer(c_size_t), value :: bytes
            type(c_partition), intent(in) :: partition
            real(c_double), value :: share
            integer(c_int) :: answer
        end function c_expect

        function c_team_join(team, thread, threads) bind(C, name="ft_team_join") result(status)
            import :: c_int, c_size_t
            integer(c_int), value :: team
            integer(c_size_t), value :: thread, threads
            integer(c_int) :: status
        end function c_team_join

        function c_team_size(team) bind(C, name="ft_team_size") result(threads)
            import :: c_int, c_size_t
            integer(c_int), value :: team
            integer(c_size_t) :: threads
        end function c_team_size

        function c_nodes(nodes, capacity) bind(C, name="ft_nodes") result(count)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: nodes
            integer(c_size_t), value :: capacity
            integer(c_size_t) :: count
        end function c_nodes

        function c_last_doubt() bind(C, name="ft_last_doubt") result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function c_last_doubt

        ! Forgets the last doubt of this thread.
        subroutine ft_clear_doubt() bind(C, name="ft_clear_doubt")
        end subroutine ft_clear_doubt

        function c_strlen(text) bind(C, name="strlen") result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function c_strlen

        function c_strerror(error) bind(C, name="strerror") result(text)
            import :: c_ptr, c_int
            integer(c_int), value :: error
            type(c_ptr) :: text
        end function c_strerror

        ! Where glibc and musl keep errno.
        function c_errno_location() bind(C, name="__errno_location") result(address)
            import :: c_ptr
            type(c_ptr) :: address
        end function c_errno_location
    end interface

contains

    ! ---- Partitions ----

    type(ft_partition) function ft_local() result(partition)
    end function ft_local

    ! Equal contiguous parts, as schedule(static). Without `threads`: as many as the team has.
    type(ft_partition) function ft_blocked(threads) result(partition)
        integer, intent(in), optional :: threads

        partition%kind = kind_blocked
        if (present(threads)) partition%parts = threads
    end function ft_blocked

    ! Chunks of `chunk` positions of the last dimension, dealt to the threads in turn, as schedule(static, chunk).
    type(ft_partition) function cyclic_int64(chunk, threads) result(partition)
        integer(int64), intent(in) :: chunk
        integer, intent(in), optional :: threads

        partition%kind = kind_cyclic
        partition%chunk = chunk
        if (present(threads)) partition%parts = threads
    end function cyclic_int64

    type(ft_partition) function cyclic_int32(chunk, threads) result(partition)
        integer(int32), intent(in) :: chunk
        integer, intent(in), optional :: threads

        partition = cyclic_int64(int(chunk, int64), threads)
    end function cyclic_int32

    ! Part i is bounds(i) to bounds(i + 1) - 1, in positions from 1.
    type(ft_partition) function by_bounds_int64(bounds) result(partition)
        integer(int64), intent(in) :: bounds(:)

        partition%kind = kind_by_bounds
        allocate (partition%bounds, source=bounds - 1)
        partition%parts = size(bounds) - 1
    end function by_bounds_int64

    type(ft_partition) function by_bounds_int32(bounds) result(partition)
        integer(int32), intent(in) :: bounds(:)

        partition = by_bounds_int64(int(bounds, int64))
    end function by_bounds_int32

    ! Contiguous parts in proportion to the weights, for the nodes of this process in ascending order.
    type(ft_partition) function ft_weighted(weights) result(partition)
        real(real64), intent(in) :: weights(:)

        partition%kind = kind_weighted
        partition%unit = unit_nodes
        allocate (partition%weights, source=weights)
        partition%parts = size(weights)
    end function ft_weighted

    ! Pages in turn over all nodes that this process may use.
    type(ft_partition) function ft_interleaved() result(partition)
        partition%kind = kind_interleaved
        partition%unit = unit_nodes
    end function ft_interleaved

    ! All of it on one node, by the kernel's number.
    type(ft_partition) function ft_bind(node) result(partition)
        integer, intent(in) :: node

        partition%kind = kind_bind
        partition%unit = unit_nodes
        partition%node = node
    end function ft_bind

    ! The same partition with its parts numbered by nodes.
    type(ft_partition) function ft_over_nodes(partition) result(over_nodes)
        type(ft_partition), intent(in) :: partition

        over_nodes = partition
        over_nodes%unit = unit_nodes
    end function ft_over_nodes

    ! The same partition for the threads of another team than 0.
    type(ft_partition) function ft_for_team(partition, team) result(for_team)
        type(ft_partition), intent(in) :: partition
        integer, intent(in) :: team

        for_team = partition
        for_team%unit = unit_threads
        for_team%team = team
    end function ft_for_team

    ! The borders of schedule(static) for a loop of `extent` iterations: thread i (from 0) works on result(i + 1) to
    ! result(i + 2) - 1. The result has no elements if the number of threads is not 1 to 2**20.
    pure function ft_static_bounds(extent, threads) result(bounds)
        integer(int64), intent(in) :: extent
        integer, intent(in) :: threads
        integer(int64) :: bounds(borders_of(threads))
        integer :: thread

        if (size(bounds) == 0) return
        bounds(1) = 1
        do thread = 1, threads
            bounds(thread + 1) = bounds(thread) + extent / threads + merge(1, 0, thread <= mod(extent, int(threads, int64)))
        end do
    end function ft_static_bounds

    pure integer function borders_of(threads)
        integer, intent(in) :: threads

        borders_of = 0
        if (threads >= 1 .and. threads <= max_parts) borders_of = threads + 1
    end function borders_of

    ! The bytes of `slices` slices: 0 for a negative number, and at most what a size can say.
    elemental integer(int64) function scaled(slices, slice_bytes)
        integer(int64), intent(in) :: slices, slice_bytes

        scaled = huge(scaled)
        if (slices < 0) then
            scaled = 0
        else if (slice_bytes == 0 .or. slices <= huge(scaled) / max(slice_bytes, 1_int64)) then
            scaled = slices * slice_bytes
        end if
    end function scaled

    ! The C partition of `extent` slices of `slice_bytes` bytes. `bounds` and `weights` hold what `c` points to.
    subroutine in_bytes(partition, extent, slice_bytes, c, bounds, weights)
        type(ft_partition), intent(in) :: partition
        integer(int64), intent(in) :: extent, slice_bytes
        type(c_partition), intent(out) :: c
        integer(c_size_t), allocatable, target, intent(out) :: bounds(:)
        real(c_double), allocatable, target, intent(out) :: weights(:)

        c%kind = partition%kind
        c%unit = partition%unit
        c%parts = partition%parts
        c%chunk = scaled(partition%chunk, slice_bytes)
        c%bounds = c_null_ptr
        c%weights = c_null_ptr
        c%node = partition%node
        c%team = partition%team
        if (partition%kind == kind_blocked) then
            if (c%parts == 0 .and. c%unit == unit_nodes) c%parts = c_nodes(c_null_ptr, 0_c_size_t)
            if (c%parts == 0) c%parts = c_team_size(c%team)
            ! By bounds, because equal parts in bytes can differ from equal parts in slices by many pages. A count that is negative
            ! or too large stays, so that the library refuses it.
            if (c%parts > 0 .and. c%parts <= max_parts) then
                c%kind = kind_by_bounds
                bounds = (ft_static_bounds(extent, int(c%parts)) - 1) * slice_bytes
            end if
        else if (allocated(partition%bounds)) then
            bounds = scaled(partition%bounds, slice_bytes)
            if (any(partition%bounds < 0)) c%parts = 0 ! for the library to refuse: its bounds have no sign
        end if
        if (allocated(bounds)) c%bounds = c_loc(bounds)
        if (allocated(partition%weights)) then
            weights = partition%weights
            c%weights = c_loc(weights)
        end if
    end subroutine in_bytes

    ! ---- Teams ----

    ! The calling thread is number `thread` (from 0, as omp_get_thread_num) of the `threads` threads of `team`, and runs on the node
    ! where it is now. Call it in each thread of a parallel region, with OMP_PROC_BIND set.
    subroutine ft_join_team(thread, threads, team, stat)
        integer, intent(in) :: thread, threads
        integer, intent(in), optional :: team
        integer, intent(out), optional :: stat
        integer :: number, error

        number = 0
        if (present(team)) number = team
        error = 0
        if (c_team_join(int(number, c_int), int(thread, c_size_t), int(threads, c_size_t)) /= 0) error = last_error()
        call conclude("cannot join the team", error, stat)
    end subroutine ft_join_team

    ! All threads of a parallel region of default size join the team. Call it outside of parallel regions. Needs this file compiled
    ! with OpenMP; otherwise the calling thread is the team.
    subroutine ft_join_openmp(team)
        !$ use omp_lib, only: omp_get_thread_num, omp_get_num_threads
        integer, intent(in), optional :: team
        integer :: thread, threads

        !$omp parallel private(thread, threads)
        thread = 0
        threads = 1
        !$ thread = omp_get_thread_num()
        !$ threads = omp_get_num_threads()
        call ft_join_team(thread, threads, team)
        !$omp end parallel
    end subroutine ft_join_openmp

    integer function ft_team_size(team)
        integer, intent(in), optional :: team
        integer :: number

        number = 0
        if (present(team)) number = team
        ft_team_size = int(c_team_size(int(number, c_int)))
    end function ft_team_size

    ! ---- Doubts and errors ----

    ! What the last call of this thread that had a doubt could not do or assumed; empty if there was no doubt.
    function ft_last_doubt() result(text)
        character(:), allocatable :: text

        text = from_c(c_last_doubt())
    end function ft_last_doubt

    function from_c(address) result(text)
        type(c_ptr), intent(in) :: address
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer :: i

        text = ""
        if (.not. c_associated(address)) return
        call c_f_pointer(address, characters, [c_strlen(address)])
        text = repeat(" ", size(characters))
        do i = 1, size(characters)
            text(i:i) = characters(i)
        end do
    end function from_c

    integer function last_error()
        integer(c_int), pointer :: number

        call c_f_pointer(c_errno_location(), number)
        last_error = number
    end function last_error

    ! Hands the error to the caller, or stops the program if the caller does not ask for it.
    subroutine conclude(action, error, stat, errmsg)
        character(*), intent(in) :: action
        integer, intent(in) :: error
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: message

        if (present(stat)) stat = error
        if (error == 0) return
        if (error == einval) then
            message = "firsttouch: "//action//": the array is not contiguous, or the partition or team is invalid"
        else
            message = "firsttouch: "//action//": "//from_c(c_strerror(int(error, c_int)))
        end if
        if (present(errmsg)) errmsg = message
        if (present(stat)) return
        write (0, '(a)') message
        error stop 1
    end subroutine conclude

    ! ---- Memory ----

    subroutine allocate_bytes(address, extents, element_bytes, partition, flags, error)
        type(c_ptr), intent(out) :: address
        integer(int64), intent(in) :: extents(:)
        integer, intent(in) :: element_bytes
        type(ft_partition), intent(in), optional :: partition
        integer, intent(in), optional :: flags
        integer, intent(out) :: error
        type(ft_partition) :: wanted
        type(c_partition) :: c
        integer(c_size_t), allocatable, target :: bounds(:)
        real(c_double), allocatable, target :: weights(:)
        integer(int64) :: slice_bytes, last
        integer :: axis
        integer, parameter :: enomem = 12

        error = enomem
        last = extents(size(extents))
        slice_bytes = element_bytes
        do axis = 1, size(extents) - 1
            if (extents(axis) > huge(slice_bytes) / slice_bytes) return
            slice_bytes = slice_bytes * extents(axis)
        end do
        if (last > huge(slice_bytes) / slice_bytes) return
        if (present(partition)) wanted = partition
        call in_bytes(wanted, last, slice_bytes, c, bounds, weights)
        address = c_alloc(slice_bytes * last, c, flags_of(flags))
        error = 0
        if (.not. c_associated(address)) error = last_error()
    end subroutine allocate_bytes

    integer(c_int) function flags_of(flags)
        integer, intent(in), optional :: flags

        flags_of = 0
        if (present(flags)) flags_of = flags
    end function flags_of

    subroutine place_memory(memory, partition, flags, moved, stat, errmsg)
        type(memory_range), intent(in) :: memory
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_partition) :: c
        integer(c_size_t), allocatable, target :: bounds(:)
        real(c_double), allocatable, target :: weights(:)
        integer(c_ptrdiff_t) :: pages
        integer :: error

        pages = 0
        error = merge(0, einval, memory%contiguous)
        if (error == 0 .and. memory%bytes > 0) then
            call in_bytes(partition, memory%extent, memory%bytes / memory%extent, c, bounds, weights)
            pages = c_place(memory%address, memory%bytes, c, flags_of(flags))
            if (pages < 0) error = last_error()
        end if
        if (present(moved)) moved = max(0_int64, int(pages, int64))
        call conclude("cannot place an array", error, stat, errmsg)
    end subroutine place_memory

    subroutine localise_memory(memory, partition, stat, errmsg)
        type(memory_range), intent(in) :: memory
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_partition) :: c
        integer(c_size_t), allocatable, target :: bounds(:)
        real(c_double), allocatable, target :: weights(:)
        integer :: error

        error = merge(0, einval, memory%contiguous)
        if (error == 0 .and. memory%bytes > 0) then
            call in_bytes(partition, memory%extent, memory%bytes / memory%extent, c, bounds, weights)
            if (c_localise(memory%address, memory%bytes, c) /= 0) error = last_error()
        end if
        call conclude("cannot localise an array", error, stat, errmsg)
    end subroutine localise_memory

    subroutine verify_memory(memory, partition, verdict, stat, errmsg)
        type(memory_range), intent(in) :: memory
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_partition) :: c
        integer(c_size_t), allocatable, target :: bounds(:)
        real(c_double), allocatable, target :: weights(:)
        integer :: error

        ! Nothing can be said about no pages.
        error = merge(0, einval, memory%contiguous .and. memory%bytes > 0)
        if (error == 0) then
            call in_bytes(partition, memory%extent, memory%bytes / memory%extent, c, bounds, weights)
            if (c_verify(memory%address, memory%bytes, c, verdict) /= 0) error = last_error()
        end if
        call conclude("cannot verify where an array is", error, stat, errmsg)
    end subroutine verify_memory

    ! 1 if at least `share` of the present pages are on target, 0 if fewer are, -1 if that is not known, which is never a success.
    integer function expect_memory(memory, partition, share)
        type(memory_range), intent(in) :: memory
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share
        type(c_partition) :: c
        integer(c_size_t), allocatable, target :: bounds(:)
        real(c_double), allocatable, target :: weights(:)

        expect_memory = -1
        if (.not. memory%contiguous .or. memory%bytes == 0) return
        call in_bytes(partition, memory%extent, memory%bytes / memory%extent, c, bounds, weights)
        expect_memory = c_expect(memory%address, memory%bytes, c, share)
    end function expect_memory

    ! ---- One procedure for each type and rank ----

    subroutine ft_allocate_real32_1(array, extents, partition, lower, flags, stat, errmsg)
        real(real32), pointer, intent(inout) :: array(:)
        integer(int64), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(real32), pointer :: memory(:)
        type(c_ptr) :: address
        integer(int64) :: first(1)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_real32_1

    subroutine ft_allocate_real32_1_default(array, extents, partition, lower, flags, stat, errmsg)
        real(real32), pointer, intent(inout) :: array(:)
        integer(int32), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(1)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_real32_1(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_real32_1_default

    subroutine ft_deallocate_real32_1(array)
        real(real32), pointer, intent(inout) :: array(:)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1))))
        end if
        nullify (array)
    end subroutine ft_deallocate_real32_1

    subroutine ft_allocate_real32_2(array, extents, partition, lower, flags, stat, errmsg)
        real(real32), pointer, intent(inout) :: array(:, :)
        integer(int64), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(real32), pointer :: memory(:, :)
        type(c_ptr) :: address
        integer(int64) :: first(2)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_real32_2

    subroutine ft_allocate_real32_2_default(array, extents, partition, lower, flags, stat, errmsg)
        real(real32), pointer, intent(inout) :: array(:, :)
        integer(int32), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(2)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_real32_2(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_real32_2_default

    subroutine ft_deallocate_real32_2(array)
        real(real32), pointer, intent(inout) :: array(:, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2))))
        end if
        nullify (array)
    end subroutine ft_deallocate_real32_2

    subroutine ft_allocate_real32_3(array, extents, partition, lower, flags, stat, errmsg)
        real(real32), pointer, intent(inout) :: array(:, :, :)
        integer(int64), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(real32), pointer :: memory(:, :, :)
        type(c_ptr) :: address
        integer(int64) :: first(3)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64), max(extents(3), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):, first(3):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_real32_3

    subroutine ft_allocate_real32_3_default(array, extents, partition, lower, flags, stat, errmsg)
        real(real32), pointer, intent(inout) :: array(:, :, :)
        integer(int32), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(3)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_real32_3(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_real32_3_default

    subroutine ft_deallocate_real32_3(array)
        real(real32), pointer, intent(inout) :: array(:, :, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2), lbound(array, 3))))
        end if
        nullify (array)
    end subroutine ft_deallocate_real32_3

    subroutine ft_allocate_real64_1(array, extents, partition, lower, flags, stat, errmsg)
        real(real64), pointer, intent(inout) :: array(:)
        integer(int64), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(real64), pointer :: memory(:)
        type(c_ptr) :: address
        integer(int64) :: first(1)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_real64_1

    subroutine ft_allocate_real64_1_default(array, extents, partition, lower, flags, stat, errmsg)
        real(real64), pointer, intent(inout) :: array(:)
        integer(int32), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(1)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_real64_1(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_real64_1_default

    subroutine ft_deallocate_real64_1(array)
        real(real64), pointer, intent(inout) :: array(:)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1))))
        end if
        nullify (array)
    end subroutine ft_deallocate_real64_1

    subroutine ft_allocate_real64_2(array, extents, partition, lower, flags, stat, errmsg)
        real(real64), pointer, intent(inout) :: array(:, :)
        integer(int64), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(real64), pointer :: memory(:, :)
        type(c_ptr) :: address
        integer(int64) :: first(2)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_real64_2

    subroutine ft_allocate_real64_2_default(array, extents, partition, lower, flags, stat, errmsg)
        real(real64), pointer, intent(inout) :: array(:, :)
        integer(int32), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(2)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_real64_2(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_real64_2_default

    subroutine ft_deallocate_real64_2(array)
        real(real64), pointer, intent(inout) :: array(:, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2))))
        end if
        nullify (array)
    end subroutine ft_deallocate_real64_2

    subroutine ft_allocate_real64_3(array, extents, partition, lower, flags, stat, errmsg)
        real(real64), pointer, intent(inout) :: array(:, :, :)
        integer(int64), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(real64), pointer :: memory(:, :, :)
        type(c_ptr) :: address
        integer(int64) :: first(3)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64), max(extents(3), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):, first(3):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_real64_3

    subroutine ft_allocate_real64_3_default(array, extents, partition, lower, flags, stat, errmsg)
        real(real64), pointer, intent(inout) :: array(:, :, :)
        integer(int32), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(3)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_real64_3(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_real64_3_default

    subroutine ft_deallocate_real64_3(array)
        real(real64), pointer, intent(inout) :: array(:, :, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2), lbound(array, 3))))
        end if
        nullify (array)
    end subroutine ft_deallocate_real64_3

    subroutine ft_allocate_complex64_1(array, extents, partition, lower, flags, stat, errmsg)
        complex(real64), pointer, intent(inout) :: array(:)
        integer(int64), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        complex(real64), pointer :: memory(:)
        type(c_ptr) :: address
        integer(int64) :: first(1)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_complex64_1

    subroutine ft_allocate_complex64_1_default(array, extents, partition, lower, flags, stat, errmsg)
        complex(real64), pointer, intent(inout) :: array(:)
        integer(int32), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(1)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_complex64_1(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_complex64_1_default

    subroutine ft_deallocate_complex64_1(array)
        complex(real64), pointer, intent(inout) :: array(:)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1))))
        end if
        nullify (array)
    end subroutine ft_deallocate_complex64_1

    subroutine ft_allocate_complex64_2(array, extents, partition, lower, flags, stat, errmsg)
        complex(real64), pointer, intent(inout) :: array(:, :)
        integer(int64), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        complex(real64), pointer :: memory(:, :)
        type(c_ptr) :: address
        integer(int64) :: first(2)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_complex64_2

    subroutine ft_allocate_complex64_2_default(array, extents, partition, lower, flags, stat, errmsg)
        complex(real64), pointer, intent(inout) :: array(:, :)
        integer(int32), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(2)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_complex64_2(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_complex64_2_default

    subroutine ft_deallocate_complex64_2(array)
        complex(real64), pointer, intent(inout) :: array(:, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2))))
        end if
        nullify (array)
    end subroutine ft_deallocate_complex64_2

    subroutine ft_allocate_complex64_3(array, extents, partition, lower, flags, stat, errmsg)
        complex(real64), pointer, intent(inout) :: array(:, :, :)
        integer(int64), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        complex(real64), pointer :: memory(:, :, :)
        type(c_ptr) :: address
        integer(int64) :: first(3)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64), max(extents(3), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):, first(3):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_complex64_3

    subroutine ft_allocate_complex64_3_default(array, extents, partition, lower, flags, stat, errmsg)
        complex(real64), pointer, intent(inout) :: array(:, :, :)
        integer(int32), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(3)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_complex64_3(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_complex64_3_default

    subroutine ft_deallocate_complex64_3(array)
        complex(real64), pointer, intent(inout) :: array(:, :, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2), lbound(array, 3))))
        end if
        nullify (array)
    end subroutine ft_deallocate_complex64_3

    subroutine ft_allocate_int32_1(array, extents, partition, lower, flags, stat, errmsg)
        integer(int32), pointer, intent(inout) :: array(:)
        integer(int64), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int32), pointer :: memory(:)
        type(c_ptr) :: address
        integer(int64) :: first(1)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_int32_1

    subroutine ft_allocate_int32_1_default(array, extents, partition, lower, flags, stat, errmsg)
        integer(int32), pointer, intent(inout) :: array(:)
        integer(int32), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(1)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_int32_1(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_int32_1_default

    subroutine ft_deallocate_int32_1(array)
        integer(int32), pointer, intent(inout) :: array(:)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1))))
        end if
        nullify (array)
    end subroutine ft_deallocate_int32_1

    subroutine ft_allocate_int32_2(array, extents, partition, lower, flags, stat, errmsg)
        integer(int32), pointer, intent(inout) :: array(:, :)
        integer(int64), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int32), pointer :: memory(:, :)
        type(c_ptr) :: address
        integer(int64) :: first(2)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_int32_2

    subroutine ft_allocate_int32_2_default(array, extents, partition, lower, flags, stat, errmsg)
        integer(int32), pointer, intent(inout) :: array(:, :)
        integer(int32), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(2)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_int32_2(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_int32_2_default

    subroutine ft_deallocate_int32_2(array)
        integer(int32), pointer, intent(inout) :: array(:, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2))))
        end if
        nullify (array)
    end subroutine ft_deallocate_int32_2

    subroutine ft_allocate_int32_3(array, extents, partition, lower, flags, stat, errmsg)
        integer(int32), pointer, intent(inout) :: array(:, :, :)
        integer(int64), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int32), pointer :: memory(:, :, :)
        type(c_ptr) :: address
        integer(int64) :: first(3)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64), max(extents(3), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):, first(3):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_int32_3

    subroutine ft_allocate_int32_3_default(array, extents, partition, lower, flags, stat, errmsg)
        integer(int32), pointer, intent(inout) :: array(:, :, :)
        integer(int32), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(3)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_int32_3(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_int32_3_default

    subroutine ft_deallocate_int32_3(array)
        integer(int32), pointer, intent(inout) :: array(:, :, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2), lbound(array, 3))))
        end if
        nullify (array)
    end subroutine ft_deallocate_int32_3

    subroutine ft_allocate_int64_1(array, extents, partition, lower, flags, stat, errmsg)
        integer(int64), pointer, intent(inout) :: array(:)
        integer(int64), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64), pointer :: memory(:)
        type(c_ptr) :: address
        integer(int64) :: first(1)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_int64_1

    subroutine ft_allocate_int64_1_default(array, extents, partition, lower, flags, stat, errmsg)
        integer(int64), pointer, intent(inout) :: array(:)
        integer(int32), intent(in) :: extents(1)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(1)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(1)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_int64_1(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_int64_1_default

    subroutine ft_deallocate_int64_1(array)
        integer(int64), pointer, intent(inout) :: array(:)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1))))
        end if
        nullify (array)
    end subroutine ft_deallocate_int64_1

    subroutine ft_allocate_int64_2(array, extents, partition, lower, flags, stat, errmsg)
        integer(int64), pointer, intent(inout) :: array(:, :)
        integer(int64), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64), pointer :: memory(:, :)
        type(c_ptr) :: address
        integer(int64) :: first(2)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_int64_2

    subroutine ft_allocate_int64_2_default(array, extents, partition, lower, flags, stat, errmsg)
        integer(int64), pointer, intent(inout) :: array(:, :)
        integer(int32), intent(in) :: extents(2)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(2)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(2)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_int64_2(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_int64_2_default

    subroutine ft_deallocate_int64_2(array)
        integer(int64), pointer, intent(inout) :: array(:, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2))))
        end if
        nullify (array)
    end subroutine ft_deallocate_int64_2

    subroutine ft_allocate_int64_3(array, extents, partition, lower, flags, stat, errmsg)
        integer(int64), pointer, intent(inout) :: array(:, :, :)
        integer(int64), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int64), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64), pointer :: memory(:, :, :)
        type(c_ptr) :: address
        integer(int64) :: first(3)
        integer :: error

        first = 1
        if (present(lower)) first = lower
        if (any(extents <= 0)) then
            ! No memory to place; c_loc of an empty array is not defined.
            allocate (memory(max(extents(1), 0_int64), max(extents(2), 0_int64), max(extents(3), 0_int64)))
            error = 0
        else
            call allocate_bytes(address, extents, storage_size(array) / 8, partition, flags, error)
            if (error == 0) call c_f_pointer(address, memory, extents)
        end if
        if (error == 0) array(first(1):, first(2):, first(3):) => memory
        call conclude("cannot allocate an array", error, stat, errmsg)
    end subroutine ft_allocate_int64_3

    subroutine ft_allocate_int64_3_default(array, extents, partition, lower, flags, stat, errmsg)
        integer(int64), pointer, intent(inout) :: array(:, :, :)
        integer(int32), intent(in) :: extents(3)
        type(ft_partition), intent(in), optional :: partition
        integer(int32), intent(in), optional :: lower(3)
        integer, intent(in), optional :: flags
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(int64) :: first(3)

        first = 1
        if (present(lower)) first = lower
        call ft_allocate_int64_3(array, int(extents, int64), partition, first, flags, stat, errmsg)
    end subroutine ft_allocate_int64_3_default

    subroutine ft_deallocate_int64_3(array)
        integer(int64), pointer, intent(inout) :: array(:, :, :)

        if (.not. associated(array)) return
        if (size(array, kind=int64) == 0) then
            deallocate (array)
        else
            call c_free(c_loc(array(lbound(array, 1), lbound(array, 2), lbound(array, 3))))
        end if
        nullify (array)
    end subroutine ft_deallocate_int64_3

    function memory_of_real32_1(array) result(memory)
        real(real32), intent(in), target :: array(:)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 1, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1))
    end function memory_of_real32_1

    subroutine ft_place_real32_1(array, partition, flags, moved, stat, errmsg)
        real(real32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_real32_1

    subroutine ft_localise_real32_1(array, partition, stat, errmsg)
        real(real32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_real32_1

    subroutine ft_verify_real32_1(array, partition, verdict, stat, errmsg)
        real(real32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_real32_1

    integer function ft_expect_real32_1(array, partition, share)
        real(real32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_real32_1 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_real32_1

    function memory_of_real32_2(array) result(memory)
        real(real32), intent(in), target :: array(:, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 2, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1))
    end function memory_of_real32_2

    subroutine ft_place_real32_2(array, partition, flags, moved, stat, errmsg)
        real(real32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_real32_2

    subroutine ft_localise_real32_2(array, partition, stat, errmsg)
        real(real32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_real32_2

    subroutine ft_verify_real32_2(array, partition, verdict, stat, errmsg)
        real(real32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_real32_2

    integer function ft_expect_real32_2(array, partition, share)
        real(real32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_real32_2 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_real32_2

    function memory_of_real32_3(array) result(memory)
        real(real32), intent(in), target :: array(:, :, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 3, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1, 1))
    end function memory_of_real32_3

    subroutine ft_place_real32_3(array, partition, flags, moved, stat, errmsg)
        real(real32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_real32_3

    subroutine ft_localise_real32_3(array, partition, stat, errmsg)
        real(real32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_real32_3

    subroutine ft_verify_real32_3(array, partition, verdict, stat, errmsg)
        real(real32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_real32_3

    integer function ft_expect_real32_3(array, partition, share)
        real(real32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_real32_3 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_real32_3

    function memory_of_real64_1(array) result(memory)
        real(real64), intent(in), target :: array(:)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 1, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1))
    end function memory_of_real64_1

    subroutine ft_place_real64_1(array, partition, flags, moved, stat, errmsg)
        real(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_real64_1

    subroutine ft_localise_real64_1(array, partition, stat, errmsg)
        real(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_real64_1

    subroutine ft_verify_real64_1(array, partition, verdict, stat, errmsg)
        real(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_real64_1

    integer function ft_expect_real64_1(array, partition, share)
        real(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_real64_1 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_real64_1

    function memory_of_real64_2(array) result(memory)
        real(real64), intent(in), target :: array(:, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 2, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1))
    end function memory_of_real64_2

    subroutine ft_place_real64_2(array, partition, flags, moved, stat, errmsg)
        real(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_real64_2

    subroutine ft_localise_real64_2(array, partition, stat, errmsg)
        real(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_real64_2

    subroutine ft_verify_real64_2(array, partition, verdict, stat, errmsg)
        real(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_real64_2

    integer function ft_expect_real64_2(array, partition, share)
        real(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_real64_2 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_real64_2

    function memory_of_real64_3(array) result(memory)
        real(real64), intent(in), target :: array(:, :, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 3, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1, 1))
    end function memory_of_real64_3

    subroutine ft_place_real64_3(array, partition, flags, moved, stat, errmsg)
        real(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_real64_3

    subroutine ft_localise_real64_3(array, partition, stat, errmsg)
        real(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_real64_3

    subroutine ft_verify_real64_3(array, partition, verdict, stat, errmsg)
        real(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_real64_3

    integer function ft_expect_real64_3(array, partition, share)
        real(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_real64_3 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_real64_3

    function memory_of_complex64_1(array) result(memory)
        complex(real64), intent(in), target :: array(:)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 1, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1))
    end function memory_of_complex64_1

    subroutine ft_place_complex64_1(array, partition, flags, moved, stat, errmsg)
        complex(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_complex64_1

    subroutine ft_localise_complex64_1(array, partition, stat, errmsg)
        complex(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_complex64_1

    subroutine ft_verify_complex64_1(array, partition, verdict, stat, errmsg)
        complex(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_complex64_1

    integer function ft_expect_complex64_1(array, partition, share)
        complex(real64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_complex64_1 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_complex64_1

    function memory_of_complex64_2(array) result(memory)
        complex(real64), intent(in), target :: array(:, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 2, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1))
    end function memory_of_complex64_2

    subroutine ft_place_complex64_2(array, partition, flags, moved, stat, errmsg)
        complex(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_complex64_2

    subroutine ft_localise_complex64_2(array, partition, stat, errmsg)
        complex(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_complex64_2

    subroutine ft_verify_complex64_2(array, partition, verdict, stat, errmsg)
        complex(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_complex64_2

    integer function ft_expect_complex64_2(array, partition, share)
        complex(real64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_complex64_2 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_complex64_2

    function memory_of_complex64_3(array) result(memory)
        complex(real64), intent(in), target :: array(:, :, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 3, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1, 1))
    end function memory_of_complex64_3

    subroutine ft_place_complex64_3(array, partition, flags, moved, stat, errmsg)
        complex(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_complex64_3

    subroutine ft_localise_complex64_3(array, partition, stat, errmsg)
        complex(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_complex64_3

    subroutine ft_verify_complex64_3(array, partition, verdict, stat, errmsg)
        complex(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_complex64_3

    integer function ft_expect_complex64_3(array, partition, share)
        complex(real64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_complex64_3 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_complex64_3

    function memory_of_int32_1(array) result(memory)
        integer(int32), intent(in), target :: array(:)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 1, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1))
    end function memory_of_int32_1

    subroutine ft_place_int32_1(array, partition, flags, moved, stat, errmsg)
        integer(int32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_int32_1

    subroutine ft_localise_int32_1(array, partition, stat, errmsg)
        integer(int32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_int32_1

    subroutine ft_verify_int32_1(array, partition, verdict, stat, errmsg)
        integer(int32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_int32_1

    integer function ft_expect_int32_1(array, partition, share)
        integer(int32), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_int32_1 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_int32_1

    function memory_of_int32_2(array) result(memory)
        integer(int32), intent(in), target :: array(:, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 2, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1))
    end function memory_of_int32_2

    subroutine ft_place_int32_2(array, partition, flags, moved, stat, errmsg)
        integer(int32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_int32_2

    subroutine ft_localise_int32_2(array, partition, stat, errmsg)
        integer(int32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_int32_2

    subroutine ft_verify_int32_2(array, partition, verdict, stat, errmsg)
        integer(int32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_int32_2

    integer function ft_expect_int32_2(array, partition, share)
        integer(int32), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_int32_2 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_int32_2

    function memory_of_int32_3(array) result(memory)
        integer(int32), intent(in), target :: array(:, :, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 3, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1, 1))
    end function memory_of_int32_3

    subroutine ft_place_int32_3(array, partition, flags, moved, stat, errmsg)
        integer(int32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_int32_3

    subroutine ft_localise_int32_3(array, partition, stat, errmsg)
        integer(int32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_int32_3

    subroutine ft_verify_int32_3(array, partition, verdict, stat, errmsg)
        integer(int32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_int32_3

    integer function ft_expect_int32_3(array, partition, share)
        integer(int32), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_int32_3 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_int32_3

    function memory_of_int64_1(array) result(memory)
        integer(int64), intent(in), target :: array(:)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 1, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1))
    end function memory_of_int64_1

    subroutine ft_place_int64_1(array, partition, flags, moved, stat, errmsg)
        integer(int64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_int64_1

    subroutine ft_localise_int64_1(array, partition, stat, errmsg)
        integer(int64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_int64_1

    subroutine ft_verify_int64_1(array, partition, verdict, stat, errmsg)
        integer(int64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_int64_1

    integer function ft_expect_int64_1(array, partition, share)
        integer(int64), intent(in), target :: array(:)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_int64_1 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_int64_1

    function memory_of_int64_2(array) result(memory)
        integer(int64), intent(in), target :: array(:, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 2, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1))
    end function memory_of_int64_2

    subroutine ft_place_int64_2(array, partition, flags, moved, stat, errmsg)
        integer(int64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_int64_2

    subroutine ft_localise_int64_2(array, partition, stat, errmsg)
        integer(int64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_int64_2

    subroutine ft_verify_int64_2(array, partition, verdict, stat, errmsg)
        integer(int64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_int64_2

    integer function ft_expect_int64_2(array, partition, share)
        integer(int64), intent(in), target :: array(:, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_int64_2 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_int64_2

    function memory_of_int64_3(array) result(memory)
        integer(int64), intent(in), target :: array(:, :, :)
        type(memory_range) :: memory

        memory%contiguous = is_contiguous(array)
        memory%extent = size(array, 3, kind=int64)
        memory%bytes = size(array, kind=int64) * (storage_size(array) / 8)
        if (memory%bytes > 0) memory%address = c_loc(array(1, 1, 1))
    end function memory_of_int64_3

    subroutine ft_place_int64_3(array, partition, flags, moved, stat, errmsg)
        integer(int64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(in), optional :: flags
        integer(int64), intent(out), optional :: moved
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call place_memory(memory_of(array), partition, flags, moved, stat, errmsg)
    end subroutine ft_place_int64_3

    subroutine ft_localise_int64_3(array, partition, stat, errmsg)
        integer(int64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call localise_memory(memory_of(array), partition, stat, errmsg)
    end subroutine ft_localise_int64_3

    subroutine ft_verify_int64_3(array, partition, verdict, stat, errmsg)
        integer(int64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        type(ft_verdict), intent(out) :: verdict
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg

        call verify_memory(memory_of(array), partition, verdict, stat, errmsg)
    end subroutine ft_verify_int64_3

    integer function ft_expect_int64_3(array, partition, share)
        integer(int64), intent(in), target :: array(:, :, :)
        type(ft_partition), intent(in) :: partition
        real(real64), intent(in) :: share

        ft_expect_int64_3 = expect_memory(memory_of(array), partition, share)
    end function ft_expect_int64_3
end module firsttouch

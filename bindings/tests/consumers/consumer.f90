! SPDX-License-Identifier: Apache-2.0 OR MIT
program consumer
    use, intrinsic :: iso_fortran_env, only: int32
    use firsttouch
    implicit none
    integer(int32), pointer :: a(:)
    type(ft_verdict) :: verdict

    call ft_allocate(a, [100000], ft_blocked())
    a = 1
    call ft_verify(a, ft_blocked(), verdict)
    print *, verdict%present, "pages"
    if (verdict%present < 90) error stop 1
    call ft_deallocate(a)
end program consumer

! Arrays that have descriptors, and one that has none: `flang-22 -O1 -g -S -emit-llvm grids.f90` made
! grids.ll. Comments say the data that a line touches.
module grids
  implicit none
  type :: cell
    real(8) :: heat
    integer :: kind
  end type
  type(cell), allocatable :: cells(:, :)
  real(8), allocatable :: rows(:, :)
contains
  real(8) function hot(u, v, n, r)
    real(8), intent(in) :: u(:)
    integer, intent(in) :: n, r
    real(8), intent(in) :: v(n)
    integer :: i
    hot = u(r) ! real(kind=8)[].{data} and real(kind=8)[].{stride} and real(kind=8) and integer
    hot = hot + v(r) ! real(kind=8)
    do i = 1, n
      hot = hot + cells(i, r)%heat ! cell.heat
      hot = hot + cells(i, r)%kind ! cell.kind
      hot = hot + rows(i, r) ! real(kind=8)
    end do
  end function
end module

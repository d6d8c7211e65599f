! What Fortran data is made of; see shapes.c for what the comments say.
module shapes
  implicit none
  type point
    real(8) :: x, y
    integer :: id
  end type
  type, extends(point) :: marked
    character(8) :: label
    logical :: seen
  end type
  type grid
    integer :: rows
    type(point), allocatable :: points(:)
    real(8), pointer :: weight(:,:)
    type(point) :: corner(4)
  end type
  real(8) :: table(8, 4)
  integer, allocatable :: counts(:)
contains
  subroutine fixed(n, x, y)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)    !//= load n : integer
    real(8), intent(inout) :: y(n)
    integer :: i
    do i = 1, n
      y(i) = y(i) + 2 * x(i)       !//= load x : real(kind=8); load y : real(kind=8); store y : real(kind=8)
    end do
  end subroutine
  subroutine assumed(m)
    real(8), intent(inout) :: m(:,:) !//= load m : real(kind=8)[][].{extent}
    integer :: i, j
    do j = 1, size(m, 2)
      do i = 1, size(m, 1)
        m(i, j) = i * j            !//= store m : real(kind=8)
      end do
    end do
  end subroutine
  integer function found(points, id)
    type(point), intent(in) :: points(:)
    integer, intent(in) :: id
    do found = 1, size(points)
      if (points(found)%id == id) return !//= load points : point.id; load id : integer
    end do
  end function
  subroutine fill(g, n)
    type(grid), intent(inout) :: g
    integer, intent(in) :: n
    integer :: i
    g%rows = n                     !//= store g : grid.rows
    do i = 1, n
      g%points(i)%x = i            !//= store g.points : point.x
      g%points(i)%id = i           !//= store g.points : point.id
      g%weight(:, i) = i           !//= store g.weight : real(kind=8)
    end do
  end subroutine
  real(8) function total(g)
    type(grid), intent(in) :: g
    integer :: i
    total = 0
    do i = 1, g%rows               !//= load g : grid.rows
      total = total + g%points(i)%y * g%weight(i, 1) !//= load g.points : point.y; load g.weight : real(kind=8)
    end do
  end function
  subroutine mark(m, i)
    type(marked), intent(inout) :: m(:)
    integer, intent(in) :: i
    m(i)%seen = .true.             !//= store m : marked.seen
    m(i)%id = m(i)%id + 1          !//= store m : marked.point.id; load m : marked.point.id
  end subroutine
  real(8) function side(g, i)
    type(grid), intent(in) :: g
    integer, intent(in) :: i
    side = g%corner(i)%y           !//= load g : grid.corner[].y
  end function
  real(8) function entry_of(i, j)
    integer, intent(in) :: i, j
    entry_of = table(i, j)         !//= load table : real(kind=8)
  end function
  subroutine count_up(i)
    integer, intent(in) :: i
    counts(i) = counts(i) + 1      !//= load counts : integer; store counts : integer
  end subroutine
  integer function shared(i)
    integer, intent(in) :: i
    integer :: first, rest(9)
    common /block/ first, rest
    shared = first + rest(i)       !//= load first : integer; load rest : integer
    first = i                      !//= store first : integer
  end function
end module

program main
  use shapes
  type(grid) :: g
  type(marked) :: labels(5)
  real(8) :: x(50), m(7, 9)
  real(8), allocatable :: work(:)
  integer :: where
  x = 2
  allocate(work(50))               !//= alloc work : real(kind=8)
  work = 1                         !//= store work : real(kind=8)
  !dir$ noinline
  call fixed(50, x, work)
  !dir$ noinline
  call assumed(m)
  allocate(g%points(20), g%weight(20, 20), counts(10)) !//= alloc g : point.points; alloc g : real(kind=8).weight; alloc counts : integer
  counts = 0
  call fill(g, 20)
  labels%id = 1
  !dir$ noinline
  call mark(labels, 3)
  call count_up(4)
  !dir$ noinline
  where = found(g%points, 7)
  print *, total(g), where, side(g, 2), entry_of(3, 2), counts(4), shared(2), sum(m), sum(work), labels(3)%id, labels(3)%seen
  deallocate(work, g%points)
end program

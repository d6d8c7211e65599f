!mod$ v1 sum:a8bade8b277e332f
module grids
type::cell
real(8)::heat
integer(4)::kind
end type
type(cell),allocatable::cells(:,:)
real(8),allocatable::rows(:,:)
contains
function hot(u,v,n,r)
real(8),intent(in)::u(:)
integer(4),intent(in)::n
real(8),intent(in)::v(1_8:int(n,kind=8))
integer(4),intent(in)::r
real(8)::hot
end
end

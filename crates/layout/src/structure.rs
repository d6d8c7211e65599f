//! A structure as it was compiled.

/// A structure, class, union or array element type, with the layout that the compiler gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its name in the source.
    pub name: String,
    /// Size in bytes, at least 1.
    pub bytes: u64,
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// Direct members, in any order. Members may share bytes (unions, bit-fields, variants).
    pub members: Vec<StructureMember>,
}

/// A direct member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureMember {
    /// Its name; empty where the source gives none.
    pub name: String,
    /// Bytes from the beginning of the structure; of a bit-field, its first byte.
    pub offset: u64,
    /// Size in bytes; of a bit-field, the bytes that it has bits in. 0 for a flexible array.
    pub bytes: u64,
    /// Alignment in bytes, a power of two; of a bit-field, its type's.
    pub align: u64,
    /// Its kind of member.
    pub role: Role,
    /// The program's use of its address.
    pub address: AddressUse,
}

/// A member's kind, as far as edits must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value of any type but a pointer.
    Value,
    /// Several values: an array, or a record larger than any number.
    Several,
    /// A pointer or reference.
    Pointer,
    /// A bit-field.
    Bits,
    /// A base class.
    Base,
    /// The pointer to the virtual function table.
    VirtualTable,
    /// An array at the end whose length the type leaves open.
    FlexibleArray,
}

/// The program's use of the address of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressUse {
    /// It is not known to leave the expression that computes it.
    Kept,
    /// It is stored or passed on as a pointer to the member's own type.
    Taken,
    /// It becomes a pointer of another type, so that neighbours may be reached through it.
    Cast,
}

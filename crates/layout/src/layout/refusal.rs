//! Why an edit cannot be made.

/// Why an edit cannot be made, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The type has no such member.
    #[error("`{structure}` has no member `{member}`; it has {}", members.join(", "))]
    NoSuchMember {
        /// The type.
        structure: String,
        /// The name that was given.
        member: String,
        /// The members there are.
        members: Vec<String>,
    },
    /// An earlier edit removed the member.
    #[error("`{member}` was removed by an edit before this one")]
    Removed {
        /// The member.
        member: String,
    },
    /// Members share bytes, so one cannot change without the others.
    #[error("{} share their bytes (a union, bit-fields or variants) and only change together", members.join(", "))]
    Shared {
        /// The members.
        members: Vec<String>,
    },
    /// The language puts the member where it is.
    #[error("`{member}` is a base class or the pointer to virtual functions, which the compiler puts first")]
    Fixed {
        /// The member.
        member: String,
    },
    /// The program converts the member's address to a pointer of another type.
    #[error(
        "the address of `{member}` becomes a pointer of another type in this program, through which its \
         neighbours may be reached; moving members could break it"
    )]
    Cast {
        /// The member.
        member: String,
    },
    /// The structure ends with an array of unknown length.
    #[error(
        "`{structure}` ends with an array whose length its type does not tell: its objects lie in no array"
    )]
    Flexible {
        /// The type.
        structure: String,
    },
    /// The array of unknown length at the end cannot be moved.
    #[error("`{member}` is an array whose length its type does not tell: it stays behind the other members")]
    Last {
        /// The array.
        member: String,
    },
    /// Another edit has divided the type already.
    #[error("`{structure}` is divided into several arrays by an edit before this one")]
    Divided {
        /// The type.
        structure: String,
    },
    /// All members are hot.
    #[error("nothing of `{structure}` would be cold: all its members are named, or cannot move")]
    NothingCold {
        /// The type.
        structure: String,
    },
    /// All members would be removed.
    #[error("nothing of `{structure}` would be left")]
    NothingLeft {
        /// The type.
        structure: String,
    },
    /// Only pointers can become indices.
    #[error("`{member}` is not a pointer of 8 bytes, so it cannot become an index")]
    NoPointer {
        /// The member.
        member: String,
    },
    /// Pointers, arrays, bases and bit-fields cannot be narrowed.
    #[error("`{member}` is not one plain value; a pointer can become an index instead")]
    NoValue {
        /// The member.
        member: String,
    },
    /// The member is not larger than its new size.
    #[error("`{member}` has {bytes} bytes already, so it cannot be narrowed to {to}")]
    NotSmaller {
        /// The member.
        member: String,
        /// Its size.
        bytes: u64,
        /// The requested size.
        to: u64,
    },
    /// The edit changes where objects lie, not how a type is laid out.
    #[error("`{edit}` moves objects, it does not change a type")]
    NotOfAType {
        /// The edit in its short form.
        edit: String,
    },
    /// The description of the type contradicts itself.
    #[error("the layout of `{structure}` is not understood: {why}")]
    Broken {
        /// The type.
        structure: String,
        /// The fault.
        why: String,
    },
}

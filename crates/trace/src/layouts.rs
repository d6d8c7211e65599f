//! Layouts of types (SPEC §2.3): one list over all modules of a trace.
//!
//! A [`TypeLayout`] contains only layouts that stand before it, so following members or elements
//! always ends.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::format::{member_flag, type_flag};
use crate::sites::StringId;

/// Index of a layout over the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(pub u32);

/// The form of a type (`type_form.*` of the format).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A number, or something else without parts.
    Scalar,
    /// A pointer or reference.
    Pointer,
    /// An enumeration.
    Enumeration,
    /// An array: its elements, and how many in each dimension; 0 if that is not known.
    Array {
        /// The type of its elements, if that is known.
        element: Option<LayoutId>,
        /// Elements in each dimension, outermost first.
        extents: Vec<u64>,
    },
    /// A structure.
    Structure(Vec<Member>),
    /// A class.
    Class(Vec<Member>),
    /// A union.
    Union(Vec<Member>),
    /// One of several variants, selected by a discriminant: a part of a Rust enum.
    Variants(Vec<Member>),
    /// The descriptor of a Fortran array whose elements are elsewhere.
    Descriptor,
}

/// The kind of a member (`member_kind.*` of the format).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberKind {
    /// A data member.
    Field,
    /// A base class.
    Base,
    /// A base class whose place is known only at run time.
    VirtualBase,
    /// The pointer to the virtual table.
    Vptr,
    /// The member that selects the variant.
    Discriminant,
    /// All variants of a record.
    Variants,
    /// One of them, and the value of the discriminant that means it; `None`: every other.
    Variant(Option<u64>),
}

/// A part of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Field, base class, …
    pub kind: MemberKind,
    /// Name in the source.
    pub name: Option<StringId>,
    /// First bit, counted from the beginning of the type.
    pub first_bit: u64,
    /// Bits that it takes up.
    pub bits: u64,
    /// Its type, if that is known.
    pub ty: Option<LayoutId>,
    /// True if it is a bit-field.
    pub is_bit_field: bool,
}

/// The layout of a type: its members or elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeLayout {
    /// Name without typedefs; variants have none.
    pub name: Option<StringId>,
    /// Size in bytes.
    pub bytes: u64,
    /// True if only a declaration was seen.
    pub is_incomplete: bool,
    /// Its form.
    pub form: Form,
}

/// Uses of the addresses of a type's members, as far as they were seen. In Rust code none are seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// `type_flag.*` of the format.
    pub(crate) flags: u32,
    /// Indexed by member, `member_flag.*` of the format.
    pub(crate) members: Vec<u32>,
}

impl Uses {
    /// Returns whether a function that was seen looks into the type. If not, nothing else is known
    /// here.
    pub fn is_watched(&self) -> bool {
        self.flags & type_flag::WATCHED != 0
    }

    /// Returns whether a pointer to one is used as one to another record, or the other way round.
    pub fn is_cast(&self) -> bool {
        self.flags & type_flag::CAST != 0
    }

    /// Returns whether the address of a member is given to another function, stored, returned or
    /// made a number.
    pub fn escapes(&self, member: usize) -> bool {
        self.members.get(member).is_some_and(|flags| flags & member_flag::ESCAPES != 0)
    }
}

impl TypeLayout {
    /// Its members; none if it has no such thing.
    pub fn members(&self) -> &[Member] {
        match &self.form {
            Form::Structure(members)
            | Form::Class(members)
            | Form::Union(members)
            | Form::Variants(members) => members,
            _ => &[],
        }
    }

    /// Returns whether it is a structure, a class or a union.
    pub fn is_record(&self) -> bool {
        matches!(self.form, Form::Structure(_) | Form::Class(_) | Form::Union(_))
    }
}

/// All layouts of a trace, and which types and variables have them.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    pub(crate) layouts: Vec<TypeLayout>,
    pub(crate) uses: Vec<Uses>,
    /// Indexed by [`TypeId`](crate::sites::TypeId).
    pub(crate) of_types: Vec<Option<LayoutId>>,
    /// Variables with static storage, by their symbols.
    pub(crate) of_globals: BTreeMap<Arc<str>, LayoutId>,
}

impl Layouts {
    /// All layouts, each after those that it contains.
    pub fn all(&self) -> &[TypeLayout] {
        &self.layouts
    }

    /// One of them.
    pub fn layout(&self, id: LayoutId) -> &TypeLayout {
        &self.layouts[id.0 as usize]
    }

    /// Returns how the addresses of its members are used.
    pub fn uses(&self, id: LayoutId) -> &Uses {
        &self.uses[id.0 as usize]
    }

    /// Returns the layout of a type of a site. `None` if it has no parts, or its program was
    /// compiled by a memlode that did not record layouts.
    pub fn of_type(&self, ty: crate::sites::TypeId) -> Option<LayoutId> {
        *self.of_types.get(ty.0 as usize)?
    }

    /// Returns the layout of a variable with static storage, by its symbol.
    pub fn of_global(&self, symbol: &str) -> Option<LayoutId> {
        self.of_globals.get(symbol).copied()
    }
}

//! The section of a site table with the layouts of its types (SPEC §2.3).

use crate::bytes::{Malformed, Reader};
use crate::format::{member_flag, member_kind, type_flag, type_form};
use crate::layouts::{Form, MemberKind};

/// Layouts of the types of a table. Indices of strings and types are those of the table.
#[derive(Default)]
pub(crate) struct TableTypes {
    pub types: Vec<TableType>,
    /// For each type of the table's own list, its description.
    pub of_types: Vec<Option<u32>>,
    /// Symbol and type of variables with static storage.
    pub globals: Vec<(u32, u32)>,
}

pub(crate) struct TableType {
    pub name: Option<u32>,
    pub bytes: u64,
    pub flags: u32,
    pub form: TableForm,
}

/// The same as a [`Form`], in terms of the table.
pub(crate) enum TableForm {
    /// A form without anything behind it.
    Plain(Form),
    Array {
        element: Option<u32>,
        extents: Vec<u64>,
    },
    Members {
        code: u8,
        members: Vec<TableMember>,
    },
}

pub(crate) struct TableMember {
    pub kind: MemberKind,
    pub name: Option<u32>,
    pub first_bit: u64,
    pub bits: u64,
    pub ty: Option<u32>,
    pub flags: u32,
}

/// Why the section was refused.
pub(crate) enum TypesError {
    Malformed(Malformed),
    Invalid { entry: usize, what: &'static str },
}

impl From<Malformed> for TypesError {
    fn from(why: Malformed) -> TypesError {
        TypesError::Malformed(why)
    }
}

impl TableTypes {
    /// Reads the section of a table with these numbers of strings and types.
    pub fn read(reader: &mut Reader<'_>, strings: usize, types: usize) -> Result<TableTypes, TypesError> {
        let count = reader.count()?;
        let mut found = TableTypes { types: Vec::with_capacity(count), ..TableTypes::default() };
        for entry in 0..count {
            found.types.push(ty(reader, strings, entry)?);
        }
        let listed = reader.count()?;
        if listed != types {
            let what = "as many types are described as the table does not have";
            return Err(TypesError::Invalid { entry: listed, what });
        }
        for _ in 0..listed {
            found.of_types.push(reader.optional_index(count)?);
        }
        for _ in 0..reader.count()? {
            found.globals.push((reader.index(strings)?, reader.index(count)?));
        }
        Ok(found)
    }
}

/// Reads description number `entry`; the types that it contains have been described before it.
fn ty(reader: &mut Reader<'_>, strings: usize, entry: usize) -> Result<TableType, TypesError> {
    let code = reader.u8()?;
    let name = reader.optional_index(strings)?;
    let bytes = reader.varint()?;
    let flags = reader.u32()?;
    let form = match code {
        type_form::SCALAR => TableForm::Plain(Form::Scalar),
        type_form::POINTER => TableForm::Plain(Form::Pointer),
        type_form::ENUMERATION => TableForm::Plain(Form::Enumeration),
        type_form::DESCRIPTOR => TableForm::Plain(Form::Descriptor),
        type_form::ARRAY => {
            let element = reader.optional_index(entry)?;
            let extents = (0..reader.count()?).map(|_| reader.varint()).collect::<Result<_, _>>()?;
            TableForm::Array { element, extents }
        }
        type_form::STRUCTURE | type_form::CLASS | type_form::UNION | type_form::VARIANTS => {
            let count = reader.count()?;
            let mut members = Vec::with_capacity(count);
            for _ in 0..count {
                members.push(member(reader, strings, entry)?);
            }
            TableForm::Members { code, members }
        }
        _ => return Err(TypesError::Invalid { entry, what: "unknown form of a type" }),
    };
    Ok(TableType { name, bytes, flags, form })
}

fn member(reader: &mut Reader<'_>, strings: usize, entry: usize) -> Result<TableMember, TypesError> {
    let code = reader.u8()?;
    let name = reader.optional_index(strings)?;
    let (first_bit, bits) = (reader.varint()?, reader.varint()?);
    if first_bit.checked_add(bits).is_none() {
        return Err(TypesError::Invalid { entry, what: "a member ends beyond the address space" });
    }
    let ty = reader.optional_index(entry)?;
    let flags = reader.u32()?;
    let kind = match code {
        member_kind::FIELD => MemberKind::Field,
        member_kind::BASE => MemberKind::Base,
        member_kind::VIRTUAL_BASE => MemberKind::VirtualBase,
        member_kind::VPTR => MemberKind::Vptr,
        member_kind::DISCRIMINANT => MemberKind::Discriminant,
        member_kind::VARIANTS => MemberKind::Variants,
        member_kind::VARIANT => MemberKind::Variant(match reader.up_to(1)? {
            0 => None,
            _ => Some(reader.varint()?),
        }),
        _ => return Err(TypesError::Invalid { entry, what: "unknown kind of a member" }),
    };
    Ok(TableMember { kind, name, first_bit, bits, ty, flags })
}

impl TableType {
    pub fn is_incomplete(&self) -> bool {
        self.flags & type_flag::INCOMPLETE != 0
    }
}

impl TableMember {
    pub fn is_bit_field(&self) -> bool {
        self.flags & member_flag::BIT_FIELD != 0
    }
}

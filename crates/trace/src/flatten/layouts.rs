//! Layouts of types, from all tables: each once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Interner;
use crate::format::type_form;
use crate::layouts::{Form, LayoutId, Layouts, Member, TypeLayout, Uses};
use crate::sites::{StringId, TypeId};
use crate::table::{TableForm, TableType, TableTypes};

/// Collects layouts.
#[derive(Default)]
pub(super) struct LayoutBook {
    layouts: Interner<TypeLayout>,
    uses: Vec<Uses>,
    of_types: Vec<Option<LayoutId>>,
    of_globals: BTreeMap<StringId, LayoutId>,
}

impl LayoutBook {
    /// Adds the layouts of a table, whose strings and types have these numbers.
    pub fn add(&mut self, described: &TableTypes, strings: &[StringId], types: &[TypeId]) {
        let mut numbers: Vec<LayoutId> = Vec::with_capacity(described.types.len());
        for ty in &described.types {
            let (layout, uses) = layout(ty, strings, &numbers);
            let number = self.layouts.number(layout);
            self.uses.resize_with(self.layouts.values.len(), Uses::default);
            let known = &mut self.uses[number as usize];
            known.flags |= uses.flags;
            known.members.resize(uses.members.len(), 0);
            known.members.iter_mut().zip(uses.members).for_each(|(all, flags)| *all |= flags);
            numbers.push(LayoutId(number));
        }
        for (ty, layout) in types.iter().zip(&described.of_types) {
            let Some(layout) = layout else { continue };
            let at = ty.0 as usize;
            if self.of_types.len() <= at {
                self.of_types.resize(at + 1, None);
            }
            self.of_types[at].get_or_insert(numbers[*layout as usize]);
        }
        for &(symbol, layout) in &described.globals {
            self.of_globals.entry(strings[symbol as usize]).or_insert(numbers[layout as usize]);
        }
    }

    /// All that were added so far.
    pub fn layouts(&self, strings: &[Arc<str>]) -> Layouts {
        let symbol = |id: StringId| strings[id.0 as usize].clone();
        Layouts {
            layouts: self.layouts.values.clone(),
            uses: self.uses.clone(),
            of_types: self.of_types.clone(),
            of_globals: self.of_globals.iter().map(|(&id, &layout)| (symbol(id), layout)).collect(),
        }
    }
}

/// A description in terms of the whole trace. Flags about its uses are not part of it.
fn layout(ty: &TableType, strings: &[StringId], numbers: &[LayoutId]) -> (TypeLayout, Uses) {
    let string = |index: Option<u32>| index.map(|index| strings[index as usize]);
    let number = |index: Option<u32>| index.map(|index| numbers[index as usize]);
    let mut uses = Uses { flags: ty.flags, members: Vec::new() };
    let form = match &ty.form {
        TableForm::Plain(form) => form.clone(),
        TableForm::Array { element, extents } => {
            Form::Array { element: number(*element), extents: extents.clone() }
        }
        TableForm::Members { code, members } => {
            uses.members = members.iter().map(|member| member.flags).collect();
            let members = members.iter().map(|member| Member {
                kind: member.kind,
                name: string(member.name),
                first_bit: member.first_bit,
                bits: member.bits,
                ty: number(member.ty),
                is_bit_field: member.is_bit_field(),
            });
            let members = members.collect();
            match *code {
                type_form::CLASS => Form::Class(members),
                type_form::UNION => Form::Union(members),
                type_form::VARIANTS => Form::Variants(members),
                _ => Form::Structure(members),
            }
        }
    };
    let layout =
        TypeLayout { name: string(ty.name), bytes: ty.bytes, is_incomplete: ty.is_incomplete(), form };
    (layout, uses)
}

// Generated from the files beside it by `cargo xtask gen`. Do not edit.

pub(crate) mod align;
pub(crate) mod align_elements;
pub(crate) mod align_members;
pub(crate) mod align_records;
pub(crate) mod align_variables;
pub(crate) mod aosoa;
pub(crate) mod deal;
pub(crate) mod group;
pub(crate) mod index;
pub(crate) mod narrow;
pub(crate) mod pack;
pub(crate) mod pad;
pub(crate) mod pages;
pub(crate) mod per_thread;
pub(crate) mod place;
pub(crate) mod remove;
pub(crate) mod reorder;
pub(crate) mod shift;
pub(crate) mod shift_aliased;
pub(crate) mod soa;
pub(crate) mod split;

use crate::remedy::RegisteredRemedy;

/// All remedies, in the order in which they propose.
pub fn all() -> [RegisteredRemedy; 21] {
    [
        RegisteredRemedy::of::<reorder::Reorder>(),
        RegisteredRemedy::of::<split::Split>(),
        RegisteredRemedy::of::<soa::Soa>(),
        RegisteredRemedy::of::<aosoa::Aosoa>(),
        RegisteredRemedy::of::<index::Index>(),
        RegisteredRemedy::of::<align::Align>(),
        RegisteredRemedy::of::<remove::Remove>(),
        RegisteredRemedy::of::<narrow::Narrow>(),
        RegisteredRemedy::of::<pad::Pad>(),
        RegisteredRemedy::of::<shift::Shift>(),
        RegisteredRemedy::of::<group::Group>(),
        RegisteredRemedy::of::<pack::Pack>(),
        RegisteredRemedy::of::<pages::Pages>(),
        RegisteredRemedy::of::<place::Place>(),
        RegisteredRemedy::of::<align_records::AlignRecords>(),
        RegisteredRemedy::of::<align_members::AlignMembers>(),
        RegisteredRemedy::of::<align_elements::AlignElements>(),
        RegisteredRemedy::of::<deal::Deal>(),
        RegisteredRemedy::of::<align_variables::AlignVariables>(),
        RegisteredRemedy::of::<per_thread::PerThread>(),
        RegisteredRemedy::of::<shift_aliased::ShiftAliased>(),
    ]
}

// Generated from the files beside it by `cargo xtask gen`. Do not edit.

pub(crate) mod accesses;
pub(crate) mod alias;
pub(crate) mod cells;
pub(crate) mod contexts;
pub(crate) mod heap;
pub(crate) mod locks;
pub(crate) mod offenders;
pub(crate) mod ranges;
pub(crate) mod reloads;
pub(crate) mod reuse;
pub(crate) mod shared;
pub(crate) mod strides;
pub(crate) mod temporaries;
pub(crate) mod timeline;
pub(crate) mod values;
pub(crate) mod working_set;

use crate::Registered;

/// All analyses.
pub fn all() -> [Registered; 16] {
    [
        Registered::of::<accesses::Accesses>(),
        Registered::of::<alias::Alias>(),
        Registered::of::<cells::CellsOverTime>(),
        Registered::of::<contexts::Contexts>(),
        Registered::of::<heap::Heap>(),
        Registered::of::<locks::Locks>(),
        Registered::of::<offenders::Offenders>(),
        Registered::of::<ranges::Ranges>(),
        Registered::of::<reloads::Reloads>(),
        Registered::of::<reuse::Reuse>(),
        Registered::of::<shared::Shared>(),
        Registered::of::<strides::Strides>(),
        Registered::of::<temporaries::Temporaries>(),
        Registered::of::<timeline::Timeline>(),
        Registered::of::<values::Values>(),
        Registered::of::<working_set::WorkingSet>(),
    ]
}

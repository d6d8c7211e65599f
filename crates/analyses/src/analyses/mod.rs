// Generated from the files beside it by `cargo xtask gen`. Do not edit.

pub(crate) mod alias;
pub(crate) mod offenders;
pub(crate) mod reuse;
pub(crate) mod shared;
pub(crate) mod strides;
pub(crate) mod timeline;
pub(crate) mod working_set;

use crate::Known;

/// All analyses.
pub fn all() -> [Known; 7] {
    [
        Known::of::<alias::Alias>(),
        Known::of::<offenders::Offenders>(),
        Known::of::<reuse::Reuse>(),
        Known::of::<shared::Shared>(),
        Known::of::<strides::Strides>(),
        Known::of::<timeline::Timeline>(),
        Known::of::<working_set::WorkingSet>(),
    ]
}

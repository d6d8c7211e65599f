//! Loops of a trace as the simulator has them.

use memlode_simulate::{Strided, Tag};
use memlode_trace::event::Stride;

/// Puts a loop's strides, each with its site for a tag, in the place of others.
#[inline]
pub fn strided(strides: &[Stride], into: &mut Vec<Strided>) {
    into.clear();
    into.extend(strides.iter().map(|stride| Strided {
        address: stride.access.address,
        step: stride.step,
        bytes: stride.access.bytes,
        is_write: stride.is_write,
        tag: Tag::new(stride.access.site.0),
    }));
}

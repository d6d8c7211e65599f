//! Properties of ops.

use super::Op;

impl Op {
    /// The same op at another site.
    pub fn with_site(mut self, new: impl FnOnce(u32) -> u32) -> Op {
        match &mut self {
            Op::Access { site, .. }
            | Op::Derived { site, .. }
            | Op::Stride { site, .. }
            | Op::Range { site, .. }
            | Op::Masked { site, .. }
            | Op::Gather { site, .. }
            | Op::Alloc { site, .. }
            | Op::AllocArray { site, .. }
            | Op::Realloc { site, .. }
            | Op::Free { site, .. }
            | Op::Unmap { site, .. } => *site = new(*site),
            Op::Repeat { .. }
            | Op::Enter { .. }
            | Op::Exit
            | Op::Resume { .. }
            | Op::Value { .. }
            | Op::Stamp { .. }
            | Op::Sync { .. } => {}
        }
        self
    }

    pub fn is_repeat(self) -> bool {
        matches!(self, Op::Repeat { .. })
    }

    /// Returns whether it is more than accesses.
    pub fn is_mark(self) -> bool {
        matches!(
            self,
            Op::Enter { .. }
                | Op::Exit
                | Op::Resume { .. }
                | Op::Alloc { .. }
                | Op::AllocArray { .. }
                | Op::Realloc { .. }
                | Op::Free { .. }
                | Op::Unmap { .. }
                | Op::Stamp { .. }
                | Op::Sync { .. }
        )
    }

    /// Returns whether it is an access, or one of a loop that is one record.
    pub fn touches_memory(self) -> bool {
        self.is_access() || matches!(self, Op::Stride { .. })
    }

    pub fn is_access(self) -> bool {
        matches!(
            self,
            Op::Access { .. } | Op::Derived { .. } | Op::Range { .. } | Op::Masked { .. } | Op::Gather { .. }
        )
    }
}

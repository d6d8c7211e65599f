//! Members of objects by address, for accesses that reach them through a library's type: an atomic,
//! a smart pointer, a reference.

use memlode_trace::Trace;
use memlode_trace::event::ProcessId;
use memlode_trace::layouts::{Form, LayoutId, MemberKind};
use memlode_trace::sites::{Site, SiteId, SiteTable, StringId};

use crate::read::inside::alternatives;
use crate::read::libraries::is_library_type;

/// Blocks that may overlap the one that is looked for, as memory is used again.
const NEIGHBOURS: usize = 64;

/// A member of a type of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnMember {
    /// The type.
    pub ty: StringId,
    /// The member.
    pub member: StringId,
}

/// Returns whether a site leaves open which member of a type of the program it accesses.
pub(super) fn is_borrowed(names: &SiteTable, site: &Site) -> bool {
    let ty = site.ty.map(|ty| names.string(names.ty(ty).name));
    let is_one = site.member.is_some_and(|path| alternatives(names.string(path)).count() == 1);
    !is_one || ty.is_none_or(is_library_type)
}

/// Objects whose types are known.
pub(super) struct Objects<'t> {
    trace: &'t Trace,
    /// Process, first and last address, and allocation, in order.
    blocks: Vec<(ProcessId, u64, u64, SiteId)>,
}

impl<'t> Objects<'t> {
    /// Blocks by process, first and last address, and allocation; and the global variables of the
    /// trace.
    pub fn new(trace: &'t Trace, mut blocks: Vec<(ProcessId, u64, u64, SiteId)>) -> Objects<'t> {
        blocks.sort_by_key(|&(process, first, ..)| (process, first));
        Objects { trace, blocks }
    }

    /// The member at an address of a process: the innermost one that belongs to a type of the
    /// program. A member that is all there is of its type is skipped if the type itself is a
    /// member.
    pub fn member_at(&self, process: ProcessId, address: u64) -> Option<OwnMember> {
        let (ty, offset) = self.block_at(process, address).or_else(|| self.global_at(process, address))?;
        own_member(self.trace.sites(), ty, offset)
    }

    /// The type of the elements of a block, and the offset in it. Of several blocks that were at
    /// the address one after the other, all have to be of one allocation.
    fn block_at(&self, process: ProcessId, address: u64) -> Option<(LayoutId, u64)> {
        let end = self.blocks.partition_point(|&(of, first, ..)| (of, first) <= (process, address));
        let near = self.blocks[end.saturating_sub(NEIGHBOURS)..end].iter();
        let mut found = near.filter(|&&(of, _, last, _)| of == process && address <= last);
        let &(_, first, _, site) = found.next_back()?;
        if found.any(|&(_, other, _, by)| (other, by) != (first, site)) {
            return None;
        }
        let sites = self.trace.sites();
        Some((sites.layouts().of_type(sites.site(site).ty?)?, address - first))
    }

    fn global_at(&self, process: ProcessId, address: u64) -> Option<(LayoutId, u64)> {
        self.trace.images().iter().filter(|image| image.process == process).find_map(|image| {
            let globals = &self.trace.modules().get(image.module.0 as usize)?.globals;
            let holds = |begin: u64, bytes: u64| begin <= address && address - begin < bytes;
            let global = globals
                .iter()
                .find(|global| holds(global.address.wrapping_add(image.load_bias), global.bytes))?;
            let layout = self.trace.sites().layouts().of_global(&global.name)?;
            Some((layout, address - global.address.wrapping_add(image.load_bias)))
        })
    }
}

/// Follows members and elements inwards.
fn own_member(names: &SiteTable, mut ty: LayoutId, mut offset: u64) -> Option<OwnMember> {
    let layouts = names.layouts();
    let mut own = None;
    loop {
        let layout = layouts.layout(ty);
        if layout.bytes == 0 {
            return own;
        }
        // A block has one element or several.
        offset %= layout.bytes;
        if let Form::Array { element: Some(element), .. } = layout.form {
            ty = element;
            continue;
        }
        // Which part of a union is meant, its place does not say.
        if !matches!(layout.form, Form::Structure(_) | Form::Class(_)) {
            return own;
        }
        let holds = |first: u64, bits: u64| first <= offset * 8 && offset * 8 < first + bits;
        let member = layout.members().iter().find(|member| holds(member.first_bit, member.bits))?;
        if let (MemberKind::Field, Some(ty), Some(member)) = (member.kind, layout.name, member.name)
            && !is_library_type(names.string(ty))
            && (own.is_none() || layout.members().len() > 1)
        {
            own = Some(OwnMember { ty, member });
        }
        let Some(next) = member.ty else { return own };
        offset -= member.first_bit / 8;
        ty = next;
    }
}

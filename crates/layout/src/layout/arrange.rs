//! Members that share bytes, and the offsets that C gives to members in order.

use super::{Asked, Part, Refusal, Slot, Unit, least_common_multiple};
use crate::structure::{Role, Structure};

/// Groups members that share bytes. Empty members (of size 0) take part in nothing.
pub(super) fn units(structure: &Structure) -> Result<Vec<Unit>, Refusal> {
    let broken = |why: &str| Refusal::Broken { structure: structure.name.clone(), why: why.to_string() };
    if structure.bytes == 0 || !structure.align.is_power_of_two() {
        return Err(broken("it has no size, or its alignment is no power of two"));
    }
    let mut order: Vec<usize> = (0..structure.members.len()).collect();
    order.retain(|at| structure.members[*at].bytes > 0);
    order.sort_by_key(|at| structure.members[*at].offset);
    let mut units: Vec<Unit> = Vec::new();
    for at in order {
        let member = &structure.members[at];
        let end = member.offset.checked_add(member.bytes).filter(|end| *end <= structure.bytes);
        let Some(end) = end else {
            return Err(broken(&format!("member `{}` ends behind it", member.name)));
        };
        if !member.align.is_power_of_two() {
            return Err(broken(&format!("the alignment of `{}` is no power of two", member.name)));
        }
        // A packed member has the alignment of where the compiler put it. A bit-field's first byte may be
        // anywhere in the aligned unit that its type prescribes.
        let mut align = member.align.min(structure.align);
        if member.role != Role::Bits {
            align = align.min(1 << member.offset.trailing_zeros().min(62));
        }
        match units.last_mut() {
            Some(last) if member.offset < last.offset + last.bytes => {
                last.members.push(at);
                last.bytes = last.bytes.max(end - last.offset);
                last.align = last.align.max(align);
            }
            _ => units.push(Unit { members: vec![at], offset: member.offset, bytes: member.bytes, align }),
        }
    }
    if units.is_empty() {
        return Err(broken("it has no members"));
    }
    Ok(units)
}

impl Structure {
    /// The alignment that the structure has beyond that of its members, such as by `alignas`; else
    /// 1.
    pub(super) fn align_floor(&self) -> u64 {
        let sized = self.members.iter().filter(|member| member.role != Role::FlexibleArray);
        let members = sized.map(|member| member.align).max().unwrap_or(1);
        if self.align > members { self.align } else { 1 }
    }
}

impl Asked {
    /// No request beyond the members' needs.
    pub(super) const NOTHING: Asked = Asked { multiple: 1, align: 1 };
}

impl Part {
    /// A part with members in this order.
    pub(super) fn of(slots: Vec<Slot>, block: u32, asked: Asked) -> Part {
        let mut part = Part { slots, block, stride: 0, align: 1, asked };
        part.arrange();
        part
    }

    /// Gives each member the next offset that its alignment allows, and the part its size.
    pub(super) fn arrange(&mut self) {
        let mut end = 0_u64;
        self.align = 1;
        for slot in &mut self.slots {
            slot.offset = end + (slot.phase.wrapping_sub(end) & (slot.align - 1));
            // In a block a member's values lie one behind the other, each aligned.
            end = slot.offset + u64::from(self.block - 1) * slot.step() + slot.bytes;
            self.align = self.align.max(slot.align);
        }
        self.finish(end.max(1));
    }

    /// Gives the part its alignment, and its size from where its last member ends.
    pub(super) fn finish(&mut self, end: u64) {
        self.align = self.align.max(self.asked.align);
        self.stride = end.next_multiple_of(least_common_multiple(self.align, self.asked.multiple));
    }
}

impl Slot {
    /// Bytes from the value of one element to that of the next in the same block.
    pub fn step(&self) -> u64 {
        self.bytes.next_multiple_of(self.align)
    }
}

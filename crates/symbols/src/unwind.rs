//! The place of a function's frame, by the tables that programs have for exceptions and debuggers
//! (`.eh_frame`).

use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CommonInformationEntry, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry,
    LittleEndian, UnwindContext, UnwindSection, UnwindTableRow, X86_64,
};
use object::{Object, ObjectSection};

use crate::debug::Slice;
use crate::debug::sections::section;
use crate::instruction::Register;

/// The most rows of a function that are read.
const MOST_ROWS: usize = 1 << 16;
/// Bytes of the longest description of a function that calls are followed through.
const MOST_DESCRIBED: usize = 1 << 16;
/// Functions that are asked whether they keep a frame pointer, at most.
const MOST_ASKED: usize = 4096;

/// Code for which the frame is found in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameRow {
    /// Its first address, and the one behind it.
    pub code: (u64, u64),
    /// The register that the frame is counted from.
    pub register: Register,
    /// Bytes from there to the canonical address, where the caller's frame ends.
    pub offset: i64,
}

/// A part of the file.
pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;
/// The part of descriptions that functions share.
pub(crate) type Common<'a> = CommonInformationEntry<Bytes<'a>>;
/// The description of a function.
type Description<'a> = FrameDescriptionEntry<Bytes<'a>>;

/// The tables of a program.
pub(crate) struct FrameTables {
    pub tables: Slice,
    pub index: Slice,
    pub bases: BaseAddresses,
}

impl FrameTables {
    /// The tables of a file, if it has them.
    pub fn of(bytes: &Arc<[u8]>, image: &object::File<'_>) -> Option<FrameTables> {
        let address = |name| Some(image.section_by_name(name)?.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame")?)
            .set_eh_frame_hdr(address(".eh_frame_hdr")?)
            .set_text(address(".text").unwrap_or(0));
        let (tables, index) = (section(bytes, image, ".eh_frame")?, section(bytes, image, ".eh_frame_hdr")?);
        Some(FrameTables { tables, index, bases })
    }

    /// The frame's place for all code from `from` up to `to`, in the order of addresses: none where
    /// the program does not say it, or not by a register.
    pub fn rows(&self, from: u64, to: u64) -> Vec<FrameRow> {
        let mut found = Vec::new();
        let mut at = from;
        // A function's code may have several descriptions.
        while at < to && found.len() < MOST_ROWS {
            match self.described(at, &mut found) {
                Some(end) if end > at => at = end,
                _ => break,
            }
        }
        found
    }

    /// The code that is described together with an address: a function's.
    pub fn code_at(&self, address: u64) -> Option<(u64, u64)> {
        let tables = self.section();
        let described = self.description(&tables, address)?;
        Some((described.initial_address(), described.end_address()))
    }

    /// Returns whether code at an address has handlers of exceptions.
    pub fn has_handlers(&self, address: u64) -> bool {
        let tables = self.section();
        self.description(&tables, address).is_some_and(|described| described.lsda().is_some())
    }

    /// Adds the rows of the description of an address. Returns the address behind all that it
    /// describes.
    fn described(&self, at: u64, found: &mut Vec<FrameRow>) -> Option<u64> {
        let tables = self.section();
        let described = self.description(&tables, at)?;
        let mut context = UnwindContext::new();
        let mut rows = described.rows(&tables, &self.bases, &mut context).ok()?;
        while let Ok(Some(row)) = rows.next_row() {
            let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { continue };
            let Some(register) = u8::try_from(register.0).ok().filter(|number| *number < 16) else {
                continue;
            };
            if found.len() >= MOST_ROWS {
                break;
            }
            let code = (row.start_address(), row.end_address());
            found.push(FrameRow { code, register: Register(register), offset: *offset });
        }
        Some(described.end_address())
    }

    /// Passes on the rules for an address, if there are any, with what is common to those of several functions.
    pub fn rules<T>(
        &self,
        address: u64,
        take: impl FnOnce(&EhFrame<Bytes<'_>>, &Common<'_>, &UnwindTableRow<usize>) -> T,
    ) -> Option<T> {
        let tables = self.section();
        let described = self.description(&tables, address)?;
        if described.entry_len() > MOST_DESCRIBED {
            return None;
        }
        let mut context = UnwindContext::new();
        let row = described.unwind_info_for_address(&tables, &self.bases, &mut context, address).ok()?;
        Some(take(&tables, described.cie(), row))
    }

    /// Returns whether most functions that have a frame keep its address in rbp. `None`: none has one.
    pub fn keeps_frame_pointers(&self) -> Option<bool> {
        let tables = self.section();
        let index = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8).ok()?;
        let index = index.table()?;
        let (mut framed, mut kept) = (0_usize, 0_usize);
        let mut entries = index.iter(&self.bases);
        for _ in 0..MOST_ASKED {
            let Ok(Some((_, pointer))) = entries.next() else { break };
            let Ok(offset) = index.pointer_to_offset(pointer) else { continue };
            let Ok(described) = tables.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset) else {
                continue;
            };
            let (has_frame, has_pointer) = self.frame_of(&tables, &described);
            framed += usize::from(has_frame);
            kept += usize::from(has_pointer);
        }
        (framed > 0).then_some(2 * kept >= framed)
    }

    /// Returns whether the function at an address keeps its frame's address in rbp, where the tables
    /// describe it.
    pub fn keeps_frame_pointer(&self, address: u64) -> Option<bool> {
        let tables = self.section();
        self.description(&tables, address).map(|described| self.frame_of(&tables, &described).1)
    }

    /// Returns whether a function has a frame at all, and whether it keeps its address in rbp.
    fn frame_of(&self, tables: &EhFrame<Bytes<'_>>, described: &Description<'_>) -> (bool, bool) {
        let mut context = UnwindContext::new();
        let (mut has_frame, mut has_pointer) = (false, false);
        if described.entry_len() > MOST_DESCRIBED {
            return (false, false);
        }
        let Ok(mut rows) = described.rows(tables, &self.bases, &mut context) else { return (false, false) };
        while let Ok(Some(row)) = rows.next_row() {
            if let CfaRule::RegisterAndOffset { register, offset } = row.cfa() {
                has_pointer |= *register == X86_64::RBP;
                has_frame |= *register != X86_64::RSP || *offset != 8;
            }
        }
        (has_frame, has_pointer)
    }

    fn section(&self) -> EhFrame<Bytes<'_>> {
        let mut tables = EhFrame::new(&self.tables, LittleEndian);
        tables.set_address_size(8);
        tables
    }

    fn description<'a>(&'a self, tables: &EhFrame<Bytes<'a>>, at: u64) -> Option<Description<'a>> {
        let index = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8).ok()?;
        index.table()?.fde_for_address(tables, &self.bases, at, EhFrame::cie_from_offset).ok()
    }
}

//! The place of a function's frame, by the tables that programs have for exceptions and debuggers
//! (`.eh_frame`).

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};

use crate::instruction::Register;

/// The most rows of a function that are read.
const MOST_ROWS: usize = 1 << 16;

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

/// The frame's place for all code from `from` up to `to`, in the order of addresses: none where the
/// program does not say it, or not by a register.
pub(crate) fn frame_rows(program: &[u8], from: u64, to: u64) -> Vec<FrameRow> {
    let mut found = Vec::new();
    let mut at = from;
    // A function's code may have several descriptions.
    while at < to && found.len() < MOST_ROWS {
        match described(program, at, &mut found) {
            Some(end) if end > at => at = end,
            _ => break,
        }
    }
    found
}

/// Adds the rows of the description of an address. Returns the address behind all that it describes.
fn described(program: &[u8], at: u64, found: &mut Vec<FrameRow>) -> Option<u64> {
    let image = object::File::parse(program).ok()?;
    let tables = image.section_by_name(".eh_frame")?;
    let index = image.section_by_name(".eh_frame_hdr")?;
    let bases = BaseAddresses::default().set_eh_frame(tables.address()).set_eh_frame_hdr(index.address());
    let tables = EhFrame::new(tables.data().ok()?, LittleEndian);
    let index = EhFrameHdr::new(index.data().ok()?, LittleEndian).parse(&bases, 8).ok()?;
    let of = EhFrame::<EndianSlice<'_, LittleEndian>>::cie_from_offset;
    let described = index.table()?.fde_for_address(&tables, &bases, at, of).ok()?;
    let mut context = UnwindContext::new();
    let mut rows = described.rows(&tables, &bases, &mut context).ok()?;
    while let Ok(Some(row)) = rows.next_row() {
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { continue };
        let Some(register) = u8::try_from(register.0).ok().filter(|number| *number < 16) else { continue };
        if found.len() >= MOST_ROWS {
            break;
        }
        let code = (row.start_address(), row.end_address());
        found.push(FrameRow { code, register: Register(register), offset: *offset });
    }
    Some(described.end_address())
}

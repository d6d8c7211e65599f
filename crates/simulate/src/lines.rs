//! Cutting a range of bytes at line boundaries.

/// One reference per line that `[address, address + bytes)` touches, in ascending order, as
/// `(address, bytes)`.
///
/// To a cache, a copy of 4 KiB is not one access but 64 or 65: the caller makes one access of each
/// piece. A range that would run past the last address is cut there. `line_bytes` must be a power
/// of two.
pub fn touch_lines(address: u64, bytes: u64, line_bytes: u32) -> Lines {
    debug_assert!(line_bytes.is_power_of_two());
    // A range is kept as (next, left) with left - 1 at most the distance to the last address.
    let left = if bytes == 0 { 0 } else { (bytes - 1).min(u64::MAX - address).saturating_add(1) };
    Lines { next: address, left, line_bytes: u64::from(line_bytes) }
}

/// The iterator of [`touch_lines`].
#[derive(Clone, Debug)]
pub struct Lines {
    next: u64,
    left: u64,
    line_bytes: u64,
}

impl Iterator for Lines {
    type Item = (u64, u32);

    #[inline]
    fn next(&mut self) -> Option<(u64, u32)> {
        if self.left == 0 {
            return None;
        }
        let address = self.next;
        let bytes = (self.line_bytes - (address & (self.line_bytes - 1))).min(self.left);
        // Wraps to 0 only behind the last address, when nothing is left.
        self.next = address.wrapping_add(bytes);
        self.left -= bytes;
        Some((address, bytes as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_line_boundaries() {
        let pieces = |a, n| touch_lines(a, n, 64).collect::<Vec<_>>();
        assert_eq!(pieces(0x1000, 0), []);
        assert_eq!(pieces(0x1000, 64), [(0x1000, 64)]);
        assert_eq!(pieces(0x103f, 2), [(0x103f, 1), (0x1040, 1)]);
        assert_eq!(pieces(0x1020, 128), [(0x1020, 32), (0x1040, 64), (0x1080, 32)]);
        assert_eq!(touch_lines(u64::MAX, u64::MAX, 64).collect::<Vec<_>>(), [(u64::MAX, 1)]);
        assert_eq!(
            touch_lines(u64::MAX - 64, u64::MAX, 64).collect::<Vec<_>>(),
            [(u64::MAX - 64, 1), (u64::MAX - 63, 64)]
        );
    }
}

//! Accesses of a thread that are over for another thread: the other one comes after them under any
//! schedule.

/// Progress of each thread, and who made it.
pub(crate) struct Past {
    /// Indexed by thread: its maker, and which of the maker's releases it began with.
    makers: Vec<Option<(u32, u64)>>,
    /// Indexed by thread: its releases so far.
    pub releases: Vec<u64>,
    /// Indexed by thread: it has done all that it does.
    pub has_ended: Vec<bool>,
}

impl Past {
    pub fn new(makers: Vec<Option<(u32, u64)>>) -> Past {
        let count = makers.len();
        Past { makers, releases: vec![0; count], has_ended: vec![false; count] }
    }

    /// Returns whether `other`'s accesses before a number of its releases are over for `thread`:
    /// `other` has ended, or later made `thread` or one of its ancestors.
    pub fn is_over(&self, other: usize, releases: u64, thread: usize) -> bool {
        if self.has_ended[other] {
            return true;
        }
        let mut thread = thread;
        // No longer than there are threads, should a trace have them make each other.
        for _ in 0..self.makers.len() {
            let Some((maker, made)) = self.makers[thread] else { return false };
            if maker as usize == other {
                return releases < made;
            }
            thread = maker as usize;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Past;

    #[test]
    fn what_a_maker_did_before_is_over_and_what_it_did_after_is_not() {
        // 0 makes 1 by its second release, 1 makes 2 by its first.
        let mut past = Past::new(vec![None, Some((0, 2)), Some((1, 1))]);
        assert!(past.is_over(0, 1, 1) && past.is_over(0, 1, 2) && past.is_over(1, 0, 2));
        assert!(!past.is_over(0, 2, 1) && !past.is_over(0, 2, 2) && !past.is_over(1, 1, 2));
        assert!(!past.is_over(2, 0, 0));
        past.has_ended[2] = true;
        assert!(past.is_over(2, 7, 0) && past.is_over(2, 0, 1));
    }
}

//! The compiler's knowledge of each access besides its names: the work before it, and the loads
//! that it waits for (SPEC §2.4).

use crate::sites::SiteId;

/// A load whose value an access or a branch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Feed {
    /// The site of the load.
    pub site: SiteId,
    /// Executions of the site since then: 0 means the last one; at most [`Feed::MOST_BACK`].
    pub back: u8,
}

impl Feed {
    /// The largest recorded distance; loads that lie farther back have it, too.
    pub const MOST_BACK: u8 = 3;
}

/// Groups of loads. All groups are waited for. Of each group, it is the load that was executed last
/// in this thread; the value may be any one of the group's.
pub type Feeds = Box<[Box<[Feed]>]>;

/// Facts of a site. If it stands for several accesses of the machine code, instructions are means,
/// and loads are those of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// About how many instructions are executed from the access before to this one, its own
    /// included.
    pub before: f32,
    /// Mean number of instructions behind it, until a call, a branch, or another end of the
    /// segment.
    pub after: f32,
    /// The loads on whose values its address depends.
    pub address: Feeds,
    /// The loads on whose values the stored value depends.
    pub data: Feeds,
    /// The loads on which the branches behind it depend, up to the accesses that may come next.
    /// `None` if they are not known.
    pub branches: Option<Feeds>,
}

//! The compiler's knowledge of each access besides its names: what lies before it, and what it waits for (SPEC §2.4).

use crate::sites::SiteId;

/// A load whose value is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Feed {
    /// The site of the load.
    pub site: SiteId,
    /// Executions of the site since: 0 means the last one; at most [`Feed::MOST_BACK`].
    pub back: u8,
}

impl Feed {
    /// The largest distance that is told; loads that lie farther back have it, too.
    pub const MOST_BACK: u8 = 3;
}

/// Groups of loads. All groups are waited for, and of each the load that was executed last in this thread: the
/// others of the group are what the value may be instead.
pub type Feeds = Box<[Box<[Feed]>]>;

/// Facts of a site. Where it stands for several accesses of the machine code, instructions are means and feeds are
/// those of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// About how many instructions are executed from the access before to this one, its own included.
    pub before: f32,
    /// About how many are executed behind it, until a call, a branch, or what else ends a segment.
    pub after: f32,
    /// The loads of whose values its address is made.
    pub address: Feeds,
    /// The loads of whose values is made what it stores.
    pub data: Feeds,
    /// The loads that branches behind it hang on, up to the accesses that may come next. None where that is not known.
    pub branches: Option<Feeds>,
}

//! Sites of memlode's tables by the instructions that they became.
//!
//! A site is known by its line, column, inline chain, kind and size; an instruction has the same facts, by debug
//! information and its operands.

use std::collections::{BTreeSet, HashMap};

use memlode_trace::sites::{Location, Site, SiteId, SiteKind, SiteTable};

use crate::code::{AccessedMemory, CodeLine, FunctionCode, Version};
use crate::debug::DebugFrame;

/// Functions that an access was inlined through, each with line and column, the innermost first.
type Chain = Vec<(String, u32, u32)>;

/// A site by line: its chain, the kind of access and its bytes.
type SiteKey = (Chain, SiteKind, u32);

/// Sites and instructions of some functions, by their distinguishing facts.
pub struct CodeSites {
    sites: HashMap<SiteKey, Vec<SiteId>>,
    /// Lines with sites, by the innermost function and line.
    lines: BTreeSet<(String, u32, bool)>,
    uses: HashMap<SiteKey, u32>,
}

impl CodeSites {
    /// Prepares the `sites` of the functions whose code this is.
    pub fn of(
        names: &SiteTable,
        sites: impl IntoIterator<Item = SiteId>,
        code: &[FunctionCode],
    ) -> CodeSites {
        let mut known = CodeSites { sites: HashMap::new(), lines: BTreeSet::new(), uses: HashMap::new() };
        for id in sites {
            let site = names.site(id);
            if !matches!(site.kind, SiteKind::Load | SiteKind::Store | SiteKind::Update) {
                continue;
            }
            let chain = site_chain(names, site);
            if let Some((function, line, _)) = chain.first() {
                let kinds = [(site.kind != SiteKind::Store, false), (site.kind.is_write(), true)];
                let kinds = kinds.into_iter().filter(|(is_it, _)| *is_it);
                known.lines.extend(kinds.map(|(_, is_write)| (function.clone(), *line, is_write)));
            }
            for chain in with_and_without_column(chain) {
                known.sites.entry((chain, site.kind, site.bytes)).or_default().push(id);
            }
        }
        for line in code.iter().flat_map(|of| &of.lines) {
            let chain = code_chain(line);
            for (kind, bytes) in line.memory.iter().flat_map(kinds) {
                for chain in with_and_without_column(chain.clone()) {
                    *known.uses.entry((chain, kind, bytes)).or_default() += 1;
                }
            }
        }
        known
    }

    /// Returns whether a site of the line accesses memory as an instruction does.
    pub fn has_line(&self, line: &CodeLine) -> bool {
        let chain = code_chain(line);
        let Some((function, number, _)) = chain.first() else { return false };
        line.memory.iter().any(|used| {
            [(used.loads, false), (used.stores, true)].iter().any(|(is_it, is_write)| {
                *is_it && self.lines.contains(&(function.clone(), *number, *is_write))
            })
        })
    }

    /// The one site that an instruction can be, if no other instruction can be that site; a load and a store, if it is
    /// both.
    pub fn exactly(&self, version: Version, line: &CodeLine) -> Option<Vec<SiteId>> {
        self.matched(version, line, |key| {
            match (self.sites.get(key).map(Vec::as_slice), self.uses.get(key)) {
                (Some([site]), Some(1)) => Some(vec![*site]),
                _ => None,
            }
        })
    }

    /// All sites that an instruction can be, however many instructions there are of each.
    pub fn candidates(&self, version: Version, line: &CodeLine) -> Vec<SiteId> {
        self.matched(version, line, |key| self.sites.get(key).cloned()).unwrap_or_default()
    }

    fn matched(
        &self,
        version: Version,
        line: &CodeLine,
        find: impl Fn(&SiteKey) -> Option<Vec<SiteId>>,
    ) -> Option<Vec<SiteId>> {
        let [used] = &line.memory[..] else { return None };
        if version == Version::Recording {
            return None;
        }
        let of = |chain: &Chain| {
            let one = |kind| find(&(chain.clone(), kind, used.bytes));
            match (used.loads, used.stores) {
                (true, true) => one(SiteKind::Update).or_else(|| {
                    let (loads, stores) = (one(SiteKind::Load)?, one(SiteKind::Store)?);
                    Some([loads, stores].concat())
                }),
                (true, false) => one(SiteKind::Load),
                (false, true) => one(SiteKind::Store),
                (false, false) => None,
            }
        };
        let chain = code_chain(line);
        // What adds a loaded value has the column of the addition: then the line must do.
        of(&chain).or_else(|| of(&without_column(&chain)))
    }
}

fn site_chain(names: &SiteTable, site: &Site) -> Chain {
    let Some(location) = site.location else { return Chain::new() };
    let one = |at: &Location| (names.string(names.symbol(at.function)).to_string(), at.line, at.column);
    names.inline_chain(location).map(one).collect()
}

fn code_chain(line: &CodeLine) -> Chain {
    let one = |frame: &DebugFrame| {
        let (line, column) = frame.position.as_ref().map_or((0, 0), |at| (at.line, at.column));
        (frame.function.clone().unwrap_or_default(), line, column)
    };
    line.frames.iter().map(one).collect()
}

/// A chain without the column of the innermost place; columns count from 1.
fn without_column(chain: &Chain) -> Chain {
    let mut chain = chain.clone();
    if let Some(innermost) = chain.first_mut() {
        innermost.2 = 0;
    }
    chain
}

/// Both, where they differ.
fn with_and_without_column(chain: Chain) -> impl Iterator<Item = Chain> {
    let without = without_column(&chain);
    let differs = without != chain;
    std::iter::once(chain).chain(differs.then_some(without))
}

/// The kinds of sites that a use of memory can be, with its bytes.
fn kinds(used: &AccessedMemory) -> impl Iterator<Item = (SiteKind, u32)> {
    let bytes = used.bytes;
    let kinds = [
        (used.loads, SiteKind::Load),
        (used.stores, SiteKind::Store),
        (used.loads && used.stores, SiteKind::Update),
    ];
    kinds.into_iter().filter(|(is_it, _)| *is_it).map(move |(_, kind)| (kind, bytes))
}

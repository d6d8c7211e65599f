//! Places of accesses: a number for each thread and site, and for each address where the site alone
//! does not determine the object.

use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

/// The most addresses of a thread that have separate numbers.
const MOST: usize = 1 << 12;

/// The places of one thread.
pub(super) struct Places {
    /// The thread's number, and of how many.
    thread: u32,
    threads: u32,
    /// Sites of the trace.
    sites: u32,
    numbers: FxHashMap<(SiteId, u64), u32>,
    located: Vec<(SiteId, u64)>,
}

/// The meaning of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// The thread, by its number in the survey.
    pub thread: usize,
    pub site: SiteId,
    /// The address, if it has a separate number.
    pub address: Option<u64>,
}

impl Places {
    /// Places of thread number `thread` of `threads`.
    pub fn new(thread: u32, threads: u32, sites: u32) -> Places {
        Places { thread, threads, sites, numbers: FxHashMap::default(), located: Vec::new() }
    }

    /// The place of a site.
    pub fn of(&self, site: SiteId) -> u32 {
        self.thread * self.sites + site.0
    }

    /// The place of a site and an address, as long as there are not too many.
    pub fn at(&mut self, site: SiteId, address: u64) -> u32 {
        if let Some(&place) = self.numbers.get(&(site, address)) {
            return place;
        }
        if self.located.len() >= MOST {
            return self.of(site);
        }
        let place = self.threads * self.sites + self.located.len() as u32 * self.threads + self.thread;
        self.located.push((site, address));
        self.numbers.insert((site, address), place);
        place
    }

    /// Returns the meaning of a place of any thread; `places` are those of all threads, in order.
    pub fn look_up(all: &[&Places], place: u32) -> Located {
        let Places { threads, sites, .. } = *all[0];
        match place.checked_sub(threads * sites) {
            None => Located { thread: (place / sites) as usize, site: SiteId(place % sites), address: None },
            Some(number) => {
                let thread = (number % threads) as usize;
                let (site, address) = all[thread].located[(number / threads) as usize];
                Located { thread, site, address: Some(address) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_again() {
        let mut all: Vec<Places> = (0..3).map(|thread| Places::new(thread, 3, 10)).collect();
        let mut given = Vec::new();
        for (thread, site, address) in [
            (0, 1, None),
            (2, 9, None),
            (1, 4, Some(64)),
            (1, 4, Some(72)),
            (0, 4, Some(64)),
            (1, 5, Some(64)),
        ] {
            let places = &mut all[thread];
            let site = SiteId(site);
            let place = address.map_or(places.of(site), |address| places.at(site, address));
            given.push((place, Located { thread, site, address }));
        }
        assert_eq!(all[1].at(SiteId(4), 72), given[3].0, "the same again");
        let all: Vec<&Places> = all.iter().collect();
        for (place, located) in given {
            assert_eq!(Places::look_up(&all, place), located);
        }
    }
}

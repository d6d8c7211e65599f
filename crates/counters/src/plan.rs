//! Which ratios can be counted in the same run.

use crate::ratio::Ratio;
use crate::table::EventTable;

/// Ratios whose events fit the existing counters, so that no event has to share a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventGroup {
    /// The ratios.
    pub ratios: Vec<Ratio>,
    /// Their events, each once.
    pub events: Vec<String>,
}

/// Returns groups of all ratios that the processor can count: all events of a ratio are in one group, and no group takes more
/// general counters than there are.
pub fn groups(table: &EventTable) -> Vec<EventGroup> {
    let mut groups: Vec<EventGroup> = Vec::new();
    for ratio in Ratio::ALL {
        let events: Vec<&str> = table.ratio[&ratio].events().collect();
        if events.is_empty() {
            continue;
        }
        let fits = |group: &EventGroup| {
            let all = group.events.iter().map(String::as_str).chain(events.iter().copied());
            table.general(all) <= table.counters
        };
        let at = groups.iter().position(fits).unwrap_or_else(|| {
            groups.push(EventGroup { ratios: Vec::new(), events: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.ratios.push(ratio);
        for event in events {
            if group.events.iter().all(|known| known != event) {
                group.events.push(event.into());
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Formula;

    #[test]
    fn each_ratio_is_in_one_group_and_each_group_fits() {
        for name in EventTable::names() {
            let table = EventTable::named(name).unwrap();
            let groups = groups(&table);
            for group in &groups {
                assert!(
                    table.general(group.events.iter().map(String::as_str)) <= table.counters,
                    "{name}: {group:?}"
                );
            }
            for ratio in Ratio::ALL {
                let formula = &table.ratio[&ratio];
                let of: Vec<_> = groups.iter().filter(|group| group.ratios.contains(&ratio)).collect();
                match formula {
                    Formula::Missing { .. } => assert!(of.is_empty(), "{name}: {ratio:?}"),
                    Formula::Quotient { .. } => {
                        assert_eq!(of.len(), 1, "{name}: {ratio:?}");
                        assert!(
                            formula.events().all(|event| of[0].events.iter().any(|known| known == event))
                        );
                    }
                }
            }
            assert!(groups.len() <= 4, "{name}: {} runs for one value of each ratio", groups.len());
        }
    }
}

//! Events of a processor and the ratios that they make: the files of `machines/events/`.

use std::collections::BTreeMap;

use memlode_machine::Identity;
use serde::Deserialize;

use crate::ratio::Ratio;

/// The events of one family of processors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventTable {
    /// Short name, as in `--events`.
    pub name: String,
    /// The processors, for people.
    pub description: String,
    /// The table of libpfm4 that its codes are held against; none of a processor that libpfm4 does not know.
    pub libpfm: Option<String>,
    /// General counters that a hardware thread surely has, at least 2.
    pub counters: usize,
    identified_by: Vec<Identification>,
    /// Sources by short name.
    pub sources: BTreeMap<String, String>,
    /// Events by name.
    pub event: BTreeMap<String, RawEvent>,
    /// Formulas by ratio; each of [`Ratio::ALL`] has one.
    pub ratio: BTreeMap<Ratio, Formula>,
}

/// An event as the processor's event-select register takes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawEvent {
    /// Event, unit mask and counter mask in the places of the register, without the bits that choose user space and kernel.
    pub code: u64,
    /// The name in libpfm4, behind the table's; none if libpfm4 does not know it.
    pub libpfm: Option<String>,
    /// Short name of its source.
    pub source: String,
    /// A counter counts it that counts nothing else.
    #[serde(default)]
    pub fixed: bool,
}

/// The way a ratio is made of events.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Formula {
    /// The sum of some counts, times a factor, divided by another count.
    Quotient {
        /// Events that are added.
        sum: Vec<String>,
        /// The factor.
        #[serde(default = "one")]
        times: f64,
        /// The event that the sum is divided by.
        over: String,
        /// A note on it.
        note: Option<String>,
    },
    /// The processor cannot count it.
    Missing {
        /// The reason.
        missing: String,
    },
}

fn one() -> f64 {
    1.0
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identification {
    vendor: String,
    family: u32,
    models: Vec<Models>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Models {
    One(u32),
    Range(u32, u32),
}

impl Models {
    fn has(&self, model: u32) -> bool {
        match self {
            Models::One(one) => *one == model,
            Models::Range(first, last) => (*first..=*last).contains(&model),
        }
    }
}

/// Why a table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is none of this name.
    #[error("there are no events of `{name}`; there are those of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Names that there are.
        known: String,
    },
    /// The text is no table of events.
    #[error("events of {name}: {why}")]
    Invalid {
        /// The file's name.
        name: String,
        /// The fault.
        why: String,
    },
}

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../machines/events/", $name, ".toml")))),+];
    };
}

built_in!("skylake-sp", "icelake-sp", "sapphire-rapids", "granite-rapids", "zen3", "zen4");

impl EventTable {
    /// Reads a table.
    ///
    /// # Errors
    /// If the text is none, lacks a ratio, or speaks of an event or source that it does not have.
    pub fn parse(text: &str, name: &str) -> Result<EventTable, TableError> {
        let invalid = |why: String| TableError::Invalid { name: name.into(), why };
        let table: EventTable = toml::from_str(text).map_err(|why| invalid(why.to_string()))?;
        if table.counters < 2 {
            return Err(invalid(format!("{} counters are too few for a ratio: 2 at least", table.counters)));
        }
        for (event, raw) in &table.event {
            if !table.sources.contains_key(&raw.source) {
                return Err(invalid(format!(
                    "event `{event}` has the source `{}`, which is none",
                    raw.source
                )));
            }
        }
        for ratio in Ratio::ALL {
            let formula =
                table.ratio.get(&ratio).ok_or_else(|| invalid(format!("{ratio:?} has no formula")))?;
            if let Some(unknown) = formula.events().find(|event| !table.event.contains_key(*event)) {
                return Err(invalid(format!("{ratio:?} needs the event `{unknown}`, which is none")));
            }
            if table.general(formula.events()) > table.counters {
                return Err(invalid(format!("{ratio:?} needs more than {} counters", table.counters)));
            }
        }
        Ok(table)
    }

    /// Returns the built-in table of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<EventTable, TableError> {
        let known = || FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let text = FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let text = text.ok_or_else(|| TableError::Unknown { name: name.into(), known: known() })?;
        EventTable::parse(text, name)
    }

    /// Names of the built-in tables.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name)
    }

    /// Returns the built-in table of a processor, if there is one.
    pub fn of(identities: &[Identity]) -> Option<EventTable> {
        EventTable::names()
            .find_map(|name| EventTable::named(name).ok().filter(|table| table.fits(identities)))
    }

    fn fits(&self, identities: &[Identity]) -> bool {
        let fits = |known: &Identification, identity: &Identity| {
            known.vendor == identity.vendor
                && identity.family == Some(known.family)
                && identity.models.iter().any(|range| known.models.iter().any(|of| of.has(*range.start())))
        };
        self.identified_by.iter().any(|known| identities.iter().any(|identity| fits(known, identity)))
    }

    /// Returns how many general counters some events take.
    pub fn general<'a>(&self, events: impl Iterator<Item = &'a str>) -> usize {
        let mut names: Vec<&str> = events.filter(|event| !self.event[*event].fixed).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }

    /// Returns whether libpfm4 knows the code of each event of a formula.
    pub fn is_checked(&self, formula: &Formula) -> bool {
        self.libpfm.is_some() && formula.events().all(|event| self.event[event].libpfm.is_some())
    }
}

impl Formula {
    /// Returns the events that it is made of; the divisor is the last one.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        let (sum, over) = match self {
            Formula::Quotient { sum, over, .. } => (sum.as_slice(), Some(over)),
            Formula::Missing { .. } => (&[][..], None),
        };
        sum.iter().chain(over).map(String::as_str)
    }

    /// Returns its value, given counts by event; none if the divisor is zero or a count is missing.
    pub fn value(&self, count: impl Fn(&str) -> Option<u64>) -> Option<f64> {
        let Formula::Quotient { sum, times, over, .. } = self else { return None };
        let parts: Option<Vec<u64>> = sum.iter().map(|event| count(event)).collect();
        let divisor = count(over).filter(|divisor| *divisor > 0)?;
        Some(parts?.into_iter().map(|part| part as f64).sum::<f64>() * times / divisor as f64)
    }

    /// Returns it as text: `(A + B) / C`.
    pub fn text(&self) -> String {
        let Formula::Quotient { sum, times, over, .. } = self else { return String::new() };
        let joined = sum.join(" + ");
        let sum = if sum.len() > 1 { format!("({joined})") } else { joined };
        match times {
            1.0 => format!("{sum} / {over}"),
            times if *times < 1.0 => format!("{sum} / ({:.0} × {over})", 1.0 / times),
            times => format!("{times} × {sum} / {over}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_and_whole() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/events");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".toml", ""))
            .collect();
        files.sort();
        let mut names: Vec<&str> = EventTable::names().collect();
        names.sort_unstable();
        assert_eq!(files, names);
        for name in names {
            assert_eq!(EventTable::named(name).unwrap().name, name);
        }
    }

    #[test]
    fn a_processor_has_the_table_of_its_model() {
        let of = |vendor: &str, family, model| {
            let identity = Identity {
                vendor: vendor.into(),
                family: Some(family),
                models: vec![model..=model],
                features: Vec::new(),
            };
            EventTable::of(&[identity]).map(|table| table.name)
        };
        assert_eq!(of("GenuineIntel", 6, 0x8f).as_deref(), Some("sapphire-rapids"));
        assert_eq!(of("AuthenticAMD", 0x19, 0x11).as_deref(), Some("zen4"));
        assert_eq!(of("AuthenticAMD", 0x19, 0x21).as_deref(), Some("zen3"));
        assert_eq!(of("GenuineIntel", 6, 167), None);
        assert_eq!(of("AuthenticAMD", 6, 0x8f), None);
    }

    #[test]
    fn a_ratio_is_what_its_formula_says() {
        let table = EventTable::named("skylake-sp").unwrap();
        let locked = &table.ratio[&Ratio::LockedOperations];
        let count = |event: &str| Some(if event == "cycles" { 4000 } else { 10 });
        assert_eq!(locked.value(count), Some(0.05));
        assert_eq!(locked.text(), "20 × MEM_INST_RETIRED.LOCK_LOADS / cycles");
        assert_eq!(locked.value(|_| Some(0)), None);
        assert_eq!(locked.value(|event| (event == "cycles").then_some(1)), None);
        assert_eq!(table.ratio[&Ratio::VirtualCalls].value(count), None);
    }

    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        let text = FILES[0].1;
        for (from, to, why) in [
            ("over = \"instructions\"", "over = \"instruction\"", "the event `instruction`, which is none"),
            ("source = \"perfmon\"", "source = \"rumour\"", "the source `rumour`, which is none"),
            ("counters = 4", "counters = 1", "too few"),
            ("[ratio.load-rate]", "[ratio.load-rates]", "load-rates"),
            ("family = 6", "famly = 6", "famly"),
        ] {
            let error = EventTable::parse(&text.replacen(from, to, 1), "x").expect_err("refused").to_string();
            assert!(error.contains(why), "{from}: {error}");
        }
    }
}

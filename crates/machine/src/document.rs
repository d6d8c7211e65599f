//! A TOML table that is read key by key, remembers which keys were read, and reports errors with
//! their line.

use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::machine::MachineError;

/// The text of one file and its name, for messages.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub text: &'a str,
    pub file: &'a str,
}

impl<'a> Document<'a> {
    /// The root table.
    pub fn parse(self) -> Result<Spanned<DeTable<'a>>, MachineError> {
        DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.error(&span, error.message().replace('\n', "; "))
        })
    }

    /// A complaint about a place in the file.
    pub fn error(self, span: &Range<usize>, message: String) -> MachineError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        MachineError::Invalid { file: self.file.to_string(), line, message }
    }
}

/// One table of the file.
pub struct Table<'t, 'a> {
    document: Document<'a>,
    /// Its name in messages: empty for the root, else `level 2 ` and the like.
    name: String,
    entries: &'t DeTable<'a>,
    span: Range<usize>,
    asked: Vec<&'static str>,
}

impl<'t, 'a> Table<'t, 'a> {
    pub fn new(
        document: Document<'a>,
        name: String,
        entries: &'t DeTable<'a>,
        span: Range<usize>,
    ) -> Table<'t, 'a> {
        Table { document, name, entries, span, asked: Vec::new() }
    }

    /// A complaint about a key's value, or about the whole table when the key is absent.
    pub fn error(&self, key: &str, message: String) -> MachineError {
        let span = self.entries.get(key).map_or(self.span.clone(), Spanned::span);
        self.document.error(&span, format!("{}`{key}`: {message}", self.name))
    }

    pub fn optional(&mut self, key: &'static str) -> Option<&'t DeValue<'a>> {
        self.asked.push(key);
        self.entries.get(key).map(Spanned::get_ref)
    }

    fn required(&mut self, key: &'static str, expected: &str) -> Result<&'t DeValue<'a>, MachineError> {
        self.optional(key).ok_or_else(|| self.error(key, format!("missing; expected {expected}")))
    }

    pub fn string(&mut self, key: &'static str) -> Result<String, MachineError> {
        let value = self.required(key, "a string")?;
        let text = value.as_str().ok_or_else(|| self.error(key, unexpected("a string", value)))?;
        if text.trim().is_empty() {
            return Err(self.error(key, "expected a string, found an empty one".into()));
        }
        if text.contains(char::is_control) {
            return Err(
                self.error(key, "a control character, such as a line break, is no part of a name".into())
            );
        }
        Ok(text.to_string())
    }

    pub fn strings(&mut self, key: &'static str) -> Result<Vec<String>, MachineError> {
        let expected = "a list of strings";
        let value = self.required(key, expected)?;
        let strings = value.as_array().and_then(|array| {
            array.iter().map(|item| item.get_ref().as_str().map(str::to_string)).collect::<Option<Vec<_>>>()
        });
        strings.ok_or_else(|| self.error(key, unexpected(expected, value)))
    }

    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Result<u64, MachineError> {
        let value = self.required(key, &whole_number(&range))?;
        self.in_range(key, value, &range)
    }

    pub fn integer_or(
        &mut self,
        key: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, MachineError> {
        self.optional(key).map_or(Ok(default), |value| self.in_range(key, value, &range))
    }

    /// A number within bounds, possibly absent.
    pub fn number(&mut self, key: &'static str, least: f64, most: f64) -> Result<Option<f64>, MachineError> {
        let Some(value) = self.optional(key) else { return Ok(None) };
        let parsed = match value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        let within = parsed.filter(|number: &f64| (least..=most).contains(number));
        let wrong = || self.error(key, unexpected(&format!("a number from {least} to {most}"), value));
        within.map(Some).ok_or_else(wrong)
    }

    /// A table in this one, possibly absent.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Table<'t, 'a>>, MachineError> {
        let Some(value) = self.optional(key) else { return Ok(None) };
        let entries = value
            .as_table()
            .ok_or_else(|| self.error(key, unexpected(&format!("a table headed [{key}]"), value)))?;
        let span = self.entries.get(key).map_or(self.span.clone(), Spanned::span);
        Ok(Some(Table::new(self.document, format!("{}{key}: ", self.name), entries, span)))
    }

    /// A list of integers and of pairs `[first, last]`.
    pub fn ranges(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Vec<RangeInclusive<u64>>, MachineError> {
        let expected = "a list of whole numbers and of pairs [first, last]";
        let value = self.required(key, expected)?;
        let wrong = || self.error(key, unexpected(expected, value));
        let items = value.as_array().ok_or_else(wrong)?.iter().map(|item| match item.get_ref() {
            DeValue::Array(pair) => {
                let pair: Vec<_> = pair.iter().collect();
                let [first, last] = pair[..] else { return Err(wrong()) };
                let first = self.in_range(key, first.get_ref(), &range)?;
                Ok(first..=self.in_range(key, last.get_ref(), &(first..=*range.end()))?)
            }
            number => self.in_range(key, number, &range).map(|number| number..=number),
        });
        items.collect()
    }

    /// An integer number of bytes, or a string such as `"1.25 MiB"`.
    pub fn bytes(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Result<u64, MachineError> {
        let expected = "a size such as \"32 KiB\", \"1.25 MiB\" or a number of bytes";
        let value = self.required(key, expected)?;
        let Some(text) = value.as_str() else { return self.in_range(key, value, &range) };
        let bytes = size(text).ok_or_else(|| self.error(key, unexpected(expected, value)))?;
        if !range.contains(&bytes) {
            let (low, high) = (range.start(), range.end());
            return Err(self.error(key, format!("expected {low} to {high} bytes, found \"{text}\"")));
        }
        Ok(bytes)
    }

    /// A list of sizes as [`Table::bytes`] reads them.
    pub fn sizes(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Result<Vec<u64>, MachineError> {
        let expected = "a list of sizes such as [\"4 KiB\", \"2 MiB\"]";
        let value = self.required(key, expected)?;
        let items = value.as_array().and_then(|array| {
            let bytes = |item: &Spanned<DeValue>| item.get_ref().as_str().and_then(size);
            array.iter().map(bytes).collect::<Option<Vec<_>>>()
        });
        let sizes = items.filter(|sizes| !sizes.is_empty());
        let sizes = sizes.ok_or_else(|| self.error(key, unexpected(expected, value)))?;
        match sizes.iter().find(|bytes| !range.contains(bytes)) {
            None => Ok(sizes),
            Some(bytes) => {
                let (low, high) = (range.start(), range.end());
                Err(self.error(key, format!("expected sizes of {low} to {high} bytes, found {bytes}")))
            }
        }
    }

    /// One of a few strings, possibly absent.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, MachineError> {
        let Some(value) = self.optional(key) else { return Ok(None) };
        self.chosen(key, value, choices).map(Some)
    }

    /// A list of some of a few strings, possibly absent.
    pub fn choices<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Vec<T>, MachineError> {
        let Some(value) = self.optional(key) else { return Ok(Vec::new()) };
        let expected = "a list of strings";
        let items = value.as_array().ok_or_else(|| self.error(key, unexpected(expected, value)))?;
        items.iter().map(|item| self.chosen(key, item.get_ref(), choices)).collect()
    }

    fn chosen<T: Copy>(&self, key: &str, value: &DeValue, choices: &[(&str, T)]) -> Result<T, MachineError> {
        let chosen = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        chosen.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            self.error(key, unexpected(&format!("one of {}", names.join(", ")), value))
        })
    }

    /// An array of tables, possibly absent.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Table<'t, 'a>>, MachineError> {
        let Some(value) = self.optional(key) else { return Ok(Vec::new()) };
        let wrong = || self.error(key, unexpected(&format!("tables headed [[{key}]]"), value));
        let items = value.as_array().ok_or_else(wrong)?;
        let tables = items.iter().enumerate().map(|(i, item)| {
            let entries = item.get_ref().as_table().ok_or_else(wrong)?;
            Ok(Table::new(self.document, format!("{key} {}: ", i + 1), entries, item.span()))
        });
        tables.collect()
    }

    /// Refuses keys that were not read: a misspelt key must not be ignored.
    pub fn finish(self) -> Result<(), MachineError> {
        match self.entries.keys().find(|key| !self.asked.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(key) => {
                let known = self.asked.join(", ");
                let message = format!("{}unknown key `{}`; known keys: {known}", self.name, key.get_ref());
                Err(self.document.error(&key.span(), message))
            }
        }
    }

    fn in_range(&self, key: &str, value: &DeValue, range: &RangeInclusive<u64>) -> Result<u64, MachineError> {
        let wrong = || self.error(key, unexpected(&whole_number(range), value));
        let integer = value.as_integer().ok_or_else(wrong)?;
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| wrong())?;
        if range.contains(&number) { Ok(number) } else { Err(wrong()) }
    }
}

fn whole_number(range: &RangeInclusive<u64>) -> String {
    format!("a whole number from {} to {}", range.start(), range.end())
}

fn unexpected(expected: &str, found: &DeValue) -> String {
    let found = match found {
        DeValue::String(text) => format!("\"{}\"", text.escape_debug()),
        DeValue::Integer(number) => {
            let prefix = match number.radix() {
                16 => "0x",
                8 => "0o",
                2 => "0b",
                _ => "",
            };
            format!("{prefix}{}", number.as_str())
        }
        DeValue::Float(number) => number.as_str().to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Array(_) => "an array".to_string(),
        DeValue::Table(_) => "a table".to_string(),
        DeValue::Datetime(_) => "a date".to_string(),
    };
    format!("expected {expected}, found {found}")
}

/// `"38.5 MiB"` in bytes, if it is a whole number of them.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let unit = match &text[split..] {
        "B" => 1u64,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let number = text[..split].trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.len() <= 6 && s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u64.pow(fraction.len() as u32);
    let scaled = format!("{whole}{fraction}").parse::<u64>().ok()?.checked_mul(unit)?;
    scaled.is_multiple_of(scale).then_some(scaled / scale)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("32 KiB", Some(32 << 10)),
            ("1.25MiB", Some(1280 << 10)),
            ("38.5 MiB", Some(77 << 19)),
            ("64 B", Some(64)),
            ("999999 GiB", Some(999_999 << 30)),
            ("0.3 KiB", None),
            ("32 KB", None),
            ("-1 KiB", None),
            ("1e3 KiB", None),
            ("KiB", None),
            ("12", None),
            ("", None),
        ] {
            assert_eq!(super::size(text), bytes, "{text}");
        }
    }
}

//! Edits as TOML: `[[edit]]` tables, for files that are kept.
//!
//! ```toml
//! [[edit]]
//! split = "arc"
//! hot = ["cost", "tail"]
//! by = "index"
//!
//! [[edit]]
//! reorder = "node"
//! members = ["key", "next"]
//! ```

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::clause::{Argument, Clause, EditError, Word};
use crate::edit::{Edit, VERBS};

/// Reads edits from a TOML document.
///
/// # Errors
/// An [`EditError`] points at the first key or value that is not understood.
pub fn edits_from_toml(text: &str) -> Result<Vec<Edit>, EditError> {
    let document = DeTable::parse(text).map_err(|error| {
        EditError::at(text, &error.span().unwrap_or(0..0), error.message().replace('\n', "; "))
    })?;
    let mut edits = Vec::new();
    for (key, value) in document.get_ref() {
        let tables = value.get_ref().as_array().filter(|_| key.get_ref() == "edit");
        let Some(tables) = tables else {
            let message = "a file of edits has tables `[[edit]]` and nothing else";
            return Err(EditError::at(text, &key.span(), message));
        };
        for table in tables.iter() {
            let DeValue::Table(entries) = table.get_ref() else {
                return Err(EditError::at(text, &table.span(), "an edit is a table"));
            };
            edits.push(Edit::understand(text, &clause(text, entries, table)?)?);
        }
    }
    Ok(edits)
}

fn clause(text: &str, entries: &DeTable, table: &Spanned<DeValue>) -> Result<Clause, EditError> {
    let mut verb = None;
    let mut items = Vec::new();
    let mut arguments = Vec::new();
    for (key, value) in entries {
        let word = Word { text: key.get_ref().to_string(), span: key.span() };
        let values = words(text, value)?;
        if VERBS.contains(&word.text.as_str()) {
            if verb.is_some() {
                return Err(EditError::at(
                    text,
                    &word.span,
                    "one table is one edit, this is its second verb",
                ));
            }
            verb = Some((word, values));
        } else if word.text == "members" {
            items = values;
        } else {
            arguments.push(Argument { key: word, values });
        }
    }
    let (verb, subjects) = verb.ok_or_else(|| {
        EditError::at(text, &table.span(), format!("an edit has one of the keys {}", VERBS.join(", ")))
    })?;
    Ok(Clause { verb, subjects, items, arguments })
}

/// The words of a string, a number, or a list of these.
fn words(text: &str, value: &Spanned<DeValue>) -> Result<Vec<Word>, EditError> {
    let word = |value: &Spanned<DeValue>| match value.get_ref() {
        DeValue::String(string) => Ok(Word { text: string.to_string(), span: value.span() }),
        DeValue::Integer(number) => Ok(Word { text: number.to_string(), span: value.span() }),
        _ => Err(EditError::at(text, &value.span(), "a string or a whole number is expected here")),
    };
    match value.get_ref() {
        DeValue::Array(list) if !list.is_empty() => list.iter().map(word).collect(),
        DeValue::Array(_) => Err(EditError::at(text, &value.span(), "this list is empty")),
        _ => Ok(vec![word(value)?]),
    }
}

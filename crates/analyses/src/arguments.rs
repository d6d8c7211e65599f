//! Arguments that a user gives to an analysis.

use std::str::FromStr;

use crate::Meta;

/// Arguments of an analysis: `least=100,most=20`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Vec<(String, String)>);

/// Why arguments cannot be used, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadArgument(pub String);

impl FromStr for Arguments {
    type Err = BadArgument;

    fn from_str(text: &str) -> Result<Arguments, BadArgument> {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
            None => Err(BadArgument(format!("`{pair}` is no argument: expected name=value"))),
        };
        text.split(',').filter(|part| !part.is_empty()).map(pair).collect::<Result<_, _>>().map(Arguments)
    }
}

impl Arguments {
    /// One argument.
    pub fn one(name: &str, value: impl ToString) -> Arguments {
        Arguments(vec![(name.to_string(), value.to_string())])
    }

    /// The value of an argument, if it is given. `expected` describes valid values.
    pub fn get<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, BadArgument> {
        let Some((_, text)) = self.0.iter().rev().find(|(given, _)| given == name) else { return Ok(None) };
        let value = text.parse();
        value
            .map(Some)
            .map_err(|_| BadArgument(format!("`{text}` is no value for {name}: expected {expected}")))
    }

    /// Refuses what is given and not known.
    pub(crate) fn check(&self, meta: &Meta) -> Result<(), BadArgument> {
        let is_known = |name: &String| meta.arguments.iter().any(|known| known.name == name);
        let Some((name, _)) = self.0.iter().find(|(name, _)| !is_known(name)) else { return Ok(()) };
        let all: Vec<&str> = meta.arguments.iter().map(|argument| argument.name).collect();
        Err(BadArgument(if all.is_empty() {
            format!("{} has no arguments", meta.id)
        } else {
            format!("{} has no argument `{name}`; it has {}", meta.id, all.join(", "))
        }))
    }
}

//! One command written for many: `{NAME}` stands for each value of a list in turn.

use crate::Error;

/// A name and the values that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Stands in a command as `{name}`.
    pub name: String,
    /// At least one.
    pub values: Vec<String>,
}

/// More values than this are taken for a mistake.
const MOST: usize = 1000;

impl Parameter {
    /// A list, as in `gcc,clang`.
    ///
    /// # Errors
    /// If the list or the name is empty.
    pub fn list(name: &str, values: &str) -> Result<Parameter, Error> {
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if name.is_empty() || values.iter().any(String::is_empty) {
            return Err(Error::Usage(format!("the parameter list `{name}` has an empty name or value")));
        }
        Ok(Parameter { name: name.into(), values })
    }

    /// The numbers from `from` to `to`, `step` apart.
    ///
    /// # Errors
    /// If they are none, or too many.
    pub fn scan(name: &str, from: &str, to: &str, step: Option<&str>) -> Result<Parameter, Error> {
        let number = |text: &str| {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            value.ok_or_else(|| Error::Usage(format!("`{text}` in the parameter scan `{name}` is no number")))
        };
        let (first, last, step) = (number(from)?, number(to)?, number(step.unwrap_or("1"))?);
        let count = (last - first) / step;
        if name.is_empty() || !(0.0..MOST as f64).contains(&count) {
            return Err(Error::Usage(format!(
                "the parameter scan `{name}` from {from} to {to} has no values, or more than {MOST}"
            )));
        }
        // 0.1 three times is not 0.3: as many digits as the step has are enough.
        let digits = |text: f64| format!("{text}").split_once('.').map_or(0, |(_, digits)| digits.len());
        let digits = digits(step).max(digits(first));
        let value = |at: usize| format!("{:.digits$}", first + step * at as f64);
        let count = (count + 1e-9) as usize;
        Ok(Parameter { name: name.into(), values: (0..=count).map(value).collect() })
    }
}

/// Each command with each combination of values in place of the names that it has.
///
/// # Errors
/// If a parameter stands in no command.
pub fn expand(commands: Vec<Vec<String>>, parameters: &[Parameter]) -> Result<Vec<Vec<String>>, Error> {
    let mut expanded = commands;
    for Parameter { name, values } in parameters {
        let placeholder = format!("{{{name}}}");
        let has = |words: &[String]| words.iter().any(|word| word.contains(&placeholder));
        if !expanded.iter().any(|words| has(words)) {
            return Err(Error::Usage(format!(
                "no command has {placeholder}, which a parameter is given for"
            )));
        }
        let one = |words: Vec<String>| -> Vec<Vec<String>> {
            if !has(&words) {
                return vec![words];
            }
            let with = |value: &String| words.iter().map(|word| word.replace(&placeholder, value)).collect();
            values.iter().map(with).collect()
        };
        expanded = expanded.into_iter().flat_map(one).collect();
        if expanded.len() > MOST {
            return Err(Error::Usage(format!("the parameters make more than {MOST} commands")));
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn combinations_in_order() {
        let parameters = [
            Parameter::list("cc", "gcc,clang").expect("a list"),
            Parameter::scan("n", "1", "2", Some("0.5")).expect("a scan"),
        ];
        let expanded = expand(vec![words("{cc} -n{n}"), words("true")], &parameters).expect("commands");
        let texts: Vec<String> = expanded.iter().map(|words| words.join(" ")).collect();
        let expected =
            ["gcc -n1.0", "gcc -n1.5", "gcc -n2.0", "clang -n1.0", "clang -n1.5", "clang -n2.0", "true"];
        assert_eq!(texts, expected);
        let scan = Parameter::scan("n", "0", "0.3", Some("0.1")).expect("a scan");
        assert_eq!(scan.values, ["0.0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn wrong_ones_are_refused() {
        assert!(expand(vec![words("true")], &[Parameter::list("n", "1").expect("a list")]).is_err());
        assert!(Parameter::list("n", "1,,2").is_err());
        for (from, to, step) in
            [("1", "x", None), ("2", "1", None), ("1", "2", Some("0")), ("0", "1e9", None)]
        {
            assert!(Parameter::scan("n", from, to, step).is_err(), "{from} {to} {step:?}");
        }
    }
}

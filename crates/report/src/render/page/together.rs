//! Words on members that are used together: in one residency of their lines.

use serde::Serialize;

use super::plain;
use crate::model::{Density, Evidence, Finding, Report};
use crate::render::terminal::findings::{at_other_times, used};
use crate::render::text::{count, printable};

/// The members that are used with one of a finding, while their lines are in a cache.
#[derive(Debug, PartialEq, Serialize)]
pub struct TogetherWords {
    /// The type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The member of the finding.
    pub member: String,
    /// The members that are used in half of the residencies in which it is used or more, itself
    /// among them.
    pub with: Vec<String>,
    /// Sentences: the members that are used, those that are used at other times, and how that is
    /// known.
    pub sentences: Vec<String>,
}

/// Finds the words on each member that a finding is about, the costliest first.
pub fn words(report: &Report) -> Vec<TogetherWords> {
    let mut all: Vec<TogetherWords> = Vec::new();
    for found in &report.findings {
        let one = found.evidence.iter().find_map(|evidence| match evidence {
            Evidence::Density(density) => of(found, density),
            _ => None,
        });
        let is_known = |one: &TogetherWords| {
            all.iter().any(|known| (&known.ty, &known.member) == (&one.ty, &one.member))
        };
        all.extend(one.filter(|one| !is_known(one)));
    }
    all
}

fn of(found: &Finding, density: &Density) -> Option<TogetherWords> {
    let member = found.subject.data.member.clone()?;
    let apart = match &at_other_times(density)[..] {
        [] => "All of them are used with it.".to_string(),
        [one] => format!("{} is mostly used at other times.", printable(one)),
        others => format!("{} are mostly used at other times.", printable(&others.join(", "))),
    };
    let known = match density.stays {
        Some(stays) => format!("{} residencies of lines that were followed show it.", count(stays)),
        None => "Too few lines were followed: counts alone show it, and are a bound.".to_string(),
    };
    let used = used(density);
    let sentences =
        vec![plain(&format!("{}{}.", used[..1].to_uppercase(), &used[1..])), plain(&apart), known];
    Some(TogetherWords { ty: density.ty.clone(), member, with: density.used_with.clone(), sentences })
}

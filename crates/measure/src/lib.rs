//! Measures programs of any kind, instrumented or not, and distinguishes a difference from noise
//! and from memory layout.
//!
//! ```
//! use memlode_measure::stats::{Effect, random};
//!
//! // Logarithms of ratios of times that were taken in pairs: the second program takes 2% longer.
//! let differences: Vec<f64> = (0..40).map(|pair| 0.02 + 0.001 * f64::from(pair % 5 - 2)).collect();
//! let effect = Effect::of(&differences, 1, &mut random(1));
//! assert!(effect.is_claimed() && (effect.ratio - 1.02).abs() < 0.001);
//! ```
//!
//! A time depends on the addresses of code and data: on the length of the environment, the order of
//! the link, the physical pages. Runs at one layout repeat that layout's luck. So [`bench`]
//! compares programs at the layout given and over random ones, and reports how much of a difference
//! is layout.
//!
//! [`process`] runs one program at one layout and measures it; [`stats`] knows numbers only.

pub mod bench;
pub mod bias;
pub mod folder_check;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod inside;
pub mod link;
pub mod machine;
pub mod names;
pub mod process;
pub mod stat;
pub mod stats;
pub mod validate;

pub use error::Error;

mod error;

/// The words of a command line, split as a shell would.
///
/// # Errors
/// If a quote does not end.
pub fn split(line: &str) -> Result<Vec<String>, Error> {
    let split = shell_words::split(line);
    split
        .ok()
        .filter(|words| !words.is_empty())
        .ok_or_else(|| Error::Usage(format!("`{line}` has no words, or a quote that does not end")))
}

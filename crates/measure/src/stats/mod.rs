//! Numbers that samples support: location, interval, test, and the size of effect that would have
//! been found.
//!
//! Everything here works on differences of logarithms of times that were measured side by side in
//! random order. If neither side is faster, such a difference is as likely positive as negative,
//! for any noise and any drift: the signed-rank test needs nothing else to keep its rate of false
//! alarms.

mod correlation;
mod effect;
mod location;
mod quantile;
mod signed_rank;

pub use correlation::{pearson, spearman};
pub use effect::{CLAIM, Effect, POWER};
pub use location::{improvement, location};
pub use quantile::{median, quantile};
pub use signed_rank::{pseudomedian, signed_rank};

/// Random numbers that a seed determines, on every machine and in every version.
pub type Random = rand_chacha::ChaCha8Rng;

/// The generator of a seed.
pub fn random(seed: u64) -> Random {
    rand::SeedableRng::seed_from_u64(seed)
}

//! Arguments that several commands share, and their parsing.

pub mod dashes;
#[cfg(feature = "measure")]
pub mod launch;
pub mod machine;
pub mod numbers;
pub mod only;
pub mod order;
pub mod part;
pub mod passed_on;
pub mod setup;
pub mod times;
pub mod traces;

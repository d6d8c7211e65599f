//! Arguments that several commands share, and what is typed for them.

pub mod numbers;
pub mod part;
pub mod passed_on;
pub mod setup;
pub mod times;
pub mod traces;

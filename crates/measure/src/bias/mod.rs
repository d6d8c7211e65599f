//! What moves times although no program changed: where data and code happen to lie.

pub mod allocators;
pub mod counters;
pub mod environment;
pub mod links;
pub mod pages;

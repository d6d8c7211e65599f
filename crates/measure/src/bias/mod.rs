//! Effects that move times although no program changed: where data and code happen to lie.

pub mod allocators;
pub mod blocks;
pub mod calls;
pub mod counter_sweep;
pub mod counters;
pub mod environment;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod function;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod heap;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod link_aliasing;
pub mod links;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod page_names;
pub mod pages;
pub mod sweep;
mod ticks;

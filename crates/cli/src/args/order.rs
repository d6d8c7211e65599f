//! The order in which threads are replayed.

use clap::{Parser, ValueEnum};
use memlode_attribute::sharing::Order;

/// In which order threads are replayed.
#[derive(Clone, Copy, Debug, Parser)]
pub struct OrderArgs {
    /// For what threads lose to each other: as if each had a core of its own, or none earlier than it was recorded
    /// (default: parallel, if the creation of all threads was recorded)
    #[arg(long, value_name = "ORDER")]
    threads: Option<ThreadOrder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ThreadOrder {
    Parallel,
    Recorded,
}

impl OrderArgs {
    /// Returns the requested order.
    pub fn order(self) -> Option<Order> {
        self.threads.map(|order| match order {
            ThreadOrder::Parallel => Order::Parallel,
            ThreadOrder::Recorded => Order::Recorded,
        })
    }
}

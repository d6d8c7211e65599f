//! Real processes, recorded. The programs are in `record/test`.

mod build;
mod children;
mod collector;
mod endings;
mod guests;
mod handlers;
mod images;
mod record;
mod threads;
mod unchanged;

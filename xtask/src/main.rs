//! `cargo xtask`: code generation and checks of the tree.
fn main() {}

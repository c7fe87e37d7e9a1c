//! The `treering` command.
fn main() {}

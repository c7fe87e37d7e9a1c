//! Benchmarks live in `benches/`; this library only gives them a crate to hang on.

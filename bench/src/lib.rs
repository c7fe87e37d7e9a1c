//! Benchmarks live in `benches/`; this library gives them a crate to hang on, and holds the comparison with other engines.

#[cfg(feature = "peers")]
pub mod peers;

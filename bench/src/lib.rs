//! Benchmarks live in `benches/`; this library gives them a crate to hang on, and holds the comparisons of page layouts and with other engines.

pub mod layouts;
#[cfg(feature = "peers")]
pub mod peers;

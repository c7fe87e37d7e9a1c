//! Comparisons of page layouts, and of Treering with other engines. The crate also carries the
//! microbenchmarks in `benches/`.

pub mod layouts;
#[cfg(feature = "peers")]
pub mod peers;

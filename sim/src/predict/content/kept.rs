//! Samples that earlier predictions of the same trace have made.
//!
//! Compressing the sample takes most of a prediction's time, and it depends on few options: many
//! designs that differ in how they use their memory have the same pages. So the workload keeps all
//! samples, by everything that they depend on. A sample is some kilobytes.

use std::convert::Infallible;
use std::hash::Hash as _;
use std::sync::Arc;

use treering_engine::{Options, TreeKind};
use xxhash_rust::xxh3::Xxh3;

use super::{Compression, Stored};
use crate::predict::leaf::LeafLevel;
use crate::predict::workload::Workload;

/// The sample of these leaves, which is made if there is none yet.
pub(super) fn kept(
    workload: &Workload,
    level: &LeafLevel,
    options: &Options,
    compression: &Compression,
    make: impl FnOnce() -> Stored,
) -> Arc<Stored> {
    let of = identity(workload, level, options, compression);
    let Ok(stored) = (workload.samples).get_or_make(of, || Ok::<_, Infallible>(make()));
    stored
}

/// A hash of everything that a sample depends on, besides the trace.
fn identity(
    workload: &Workload,
    level: &LeafLevel,
    options: &Options,
    compression: &Compression,
) -> u128 {
    let mut hasher = Xxh3::new();
    let is_bf = matches!(options.tree, TreeKind::Bf(_));
    (options.page_size, options.mod_log, is_bf).hash(&mut hasher);
    (compression.codec, compression.seed).hash(&mut hasher);
    (workload.zeros.to_bits(), level.weight.to_bits()).hash(&mut hasher);
    (&level.order, &level.starts).hash(&mut hasher);
    for leaf in &level.leaves {
        (
            leaf.writes.to_bits(),
            leaf.layout,
            leaf.loaded,
            leaf.fence_len,
        )
            .hash(&mut hasher);
    }
    hasher.digest128()
}

#[cfg(test)]
mod tests {
    use treering_engine::TreeSpec;
    use treering_traces::generate::{GenParams, Workload as Kind, build};

    use super::super::{sample, sizes};
    use super::*;
    use crate::csd::Codec;
    use crate::predict::workload::Span;

    #[test]
    fn what_a_sample_depends_on_tells_it_from_others() {
        let (header, mut source) = build(&GenParams::new(Kind::Zipf, 300)).expect("parameters");
        let span = Span::after(header.warmup_ops);
        let workload = Workload::analyze(&mut *source, span).expect("a trace");
        let zlib = Compression {
            codec: Codec::Zlib(1),
            extent_header: 0.0,
            seed: 1,
        };
        let of = |spec: &str, how: &Compression| {
            let spec: TreeSpec = spec.parse().expect("a tree");
            let options = spec.options().expect("a tree of pages");
            let choice = options.leaf_layouts();
            let level = LeafLevel::grow(&workload, options.page_size, choice);
            sizes(&workload, &level, &options, Some(how));
            sample(&workload, &level, &options, how)
        };
        let first = of("bf+shadow(T=2KiB)", &zlib);
        let same = of("bf(promote=0,relog=0)+shadow(T=2KiB)", &zlib);
        assert!(Arc::ptr_eq(&first, &same), "memory is used in another way");
        let others = [
            of("bf+shadow(T=3KiB)", &zlib),
            of("bf+shadow", &zlib),
            of("bminus", &zlib),
            of("bf+shadow(T=2KiB)", &Compression { seed: 2, ..zlib }),
            of(
                "bf+shadow(T=2KiB)",
                &Compression {
                    codec: Codec::Zlib(6),
                    ..zlib
                },
            ),
        ];
        for other in &others {
            assert!(!Arc::ptr_eq(&first, other));
        }
        assert_eq!(workload.samples.len(), 1 + others.len());
    }
}

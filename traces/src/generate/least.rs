//! A lower bound of the size of a trace file, before it is generated.
//!
//! Lines have a known length. Packed keys have an entropy: a load in random order is one of many
//! permutations, and each uniform choice is one of many records. Everything else may compress to
//! nothing.

use super::{GenParams, Order, Workload};
use crate::format::Encoding;

/// The bytes around a key in a line of the shortest operation, a get.
const LINE_BYTES: u64 = r#"{"op":"get","key":""}"#.len() as u64 + 1;

impl GenParams {
    /// Returns a lower bound of the bytes of this trace's file.
    #[must_use]
    pub fn least_bytes(&self, encoding: Encoding) -> u64 {
        let loaded = match self.no_load {
            true => 0,
            false => self.records,
        };
        match encoding {
            Encoding::JsonLines => {
                let line = LINE_BYTES + u64::from(self.key_bytes());
                let lines = loaded.saturating_add(self.operations());
                lines.saturating_mul(line)
            }
            Encoding::Packed => {
                let records = self.records.max(1) as f64;
                // log2(n!) is at least n log2(n / e).
                let load = match self.order {
                    Order::Random => loaded as f64 * (records.log2() - std::f64::consts::LOG2_E),
                    Order::Sorted => 0.0,
                };
                let chosen = match self.workload {
                    Workload::Uniform => self.operations() as f64 * records.log2(),
                    _ => 0.0,
                };
                ((load.max(0.0) + chosen) / 8.0) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Writer, generate::build};

    #[test]
    fn no_file_is_smaller_and_those_of_uniform_keys_are_not_much_larger() {
        let folder = tempfile::tempdir().expect("a folder");
        for (workload, _) in Workload::ALL {
            for order in [Order::Random, Order::Sorted] {
                // The bytes of longer keys, apart from their number, hardly compress.
                for (name, encoding, key_size) in [
                    ("t.jsonl", Encoding::JsonLines, Some(24)),
                    ("t.trz", Encoding::Packed, Some(8)),
                ] {
                    let params = GenParams {
                        order,
                        key_size,
                        ..GenParams::new(workload, 20_000)
                    };
                    let path = folder.path().join(name);
                    let (header, mut source) = build(&params).expect("valid parameters");
                    let mut writer = Writer::create(&path, header).expect("made");
                    let mut op = Op::default();
                    while source.next_op(&mut op).expect("generated") {
                        writer.write(&op).expect("written");
                    }
                    writer.finish().expect("finished");
                    let bytes = path.metadata().expect("a file").len();
                    let least = params.least_bytes(encoding);
                    assert!(
                        least <= bytes,
                        "{workload:?} {order:?} {name}: {least} > {bytes}"
                    );
                    let most = match (encoding, workload) {
                        (Encoding::JsonLines, _) => Some(2 * least),
                        (Encoding::Packed, Workload::Uniform) => Some(12 * least),
                        (Encoding::Packed, _) => None,
                    };
                    assert!(
                        most.is_none_or(|most| bytes <= most),
                        "{workload:?} {order:?} {name}: {bytes} are far above {least}"
                    );
                    std::fs::remove_file(path).expect("removed");
                }
            }
        }
    }
}

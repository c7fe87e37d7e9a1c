//! Key sets, the trees of them, and the space that the paper's trees took.

use std::io::Read;

use treering_engine::node::{LayoutChoice, PageLayout};
use treering_sim::layouts::keys;
use treering_sim::layouts::{Counts, PageTree};
use treering_sim::predict::space::KeySample;

/// Bytes of a node, as in the paper.
pub(crate) const NODE: usize = 4096;
/// Bytes of a value: a tuple identifier (§4 "Experimental Setup").
const VALUE: [u8; 8] = *b"8 bytes.";
/// Seed of everything random.
pub(crate) const SEED: u64 = 1;

/// The paper's configurations (§4), and its adaptive tree (§5).
pub(crate) const LAYOUTS: [LayoutChoice; 8] = [
    LayoutChoice::of(PageLayout::Baseline),
    LayoutChoice::of(PageLayout::Prefix),
    LayoutChoice::of(PageLayout::Slotted),
    LayoutChoice::of(PageLayout::Hints),
    LayoutChoice::of(PageLayout::Fingerprint),
    LayoutChoice::of(PageLayout::SemiDense),
    LayoutChoice::of(PageLayout::FullyDense),
    LayoutChoice::ADAPTIVE,
];

/// Bytes per record of all nodes in the paper's raw data (Figures 7, 9, 10, 12), in the order of
/// [`LAYOUTS`]. Each key set has 300 MB, in random order. `None` if unknown.
pub(crate) fn paper(set: &str) -> [Option<f64>; 8] {
    match set {
        "dense" => [26.64, 24.51, 29.09, 29.66, 25.09, 17.80, 14.24].map(Some),
        "sparse" => [26.12, 24.34, 30.12, 30.62, 25.96, f64::NAN, f64::NAN]
            .map(|bytes: f64| Some(bytes).filter(|bytes| bytes.is_finite())),
        _ => [None; 7],
    }
    .into_iter()
    .chain([None])
    .collect::<Vec<_>>()
    .try_into()
    .expect("one for each layout")
}

/// A set of strings as keys.
pub(crate) struct Set {
    /// The keys, in random order.
    pub(crate) keys: Vec<Vec<u8>>,
}

impl Set {
    /// Reads a file with one key per line.
    pub(crate) fn read(path: &str) -> Result<Set, String> {
        let mut text = Vec::new();
        let mut input = treering_traces::input::open(path).map_err(|e| e.to_string())?;
        (input.read_to_end(&mut text)).map_err(|e| format!("{path}: {e}"))?;
        let keys = keys::lines(&text, SEED).into_iter().map(<[u8]>::to_vec);
        Ok(Set {
            keys: keys.collect(),
        })
    }

    /// Removes the prefix that most URLs of a site share, which leaves the titles of its pages.
    pub(crate) fn titles(&self) -> Set {
        let title = |key: &Vec<u8>| {
            let at = key.windows(6).position(|bytes| bytes == b"/wiki/")?;
            Some(key[at + 6..].to_vec()).filter(|title| !title.is_empty())
        };
        let mut seen = std::collections::HashSet::new();
        let titles = self.keys.iter().filter_map(title);
        Set {
            keys: titles.filter(|title| seen.insert(title.clone())).collect(),
        }
    }
}

/// Numbers as big-endian keys of four bytes.
pub(crate) fn bytes(numbers: &[u32]) -> Vec<[u8; 4]> {
    numbers.iter().map(|number| number.to_be_bytes()).collect()
}

/// Builds a tree of pages and counts its space.
pub(crate) fn measure<K: AsRef<[u8]>>(choice: LayoutChoice, keys: &[K]) -> Counts {
    let mut tree = PageTree::new(choice, NODE);
    for key in keys {
        if let Err(refused) = tree.put(key.as_ref(), &VALUE) {
            println!("a key of {} bytes: {refused}", key.as_ref().len());
        }
    }
    tree.counts()
}

/// Samples a share of the keys.
pub(crate) fn sample<K: AsRef<[u8]>>(keys: &[K], share: f64, seed: u64) -> KeySample {
    let records: Vec<_> = (keys.iter())
        .map(|key| (key.as_ref(), VALUE.len() as u32))
        .collect();
    KeySample::draw(&records, NODE, share, seed).expect("what is in memory can be read")
}

/// Share of leaves that are dense.
pub(crate) fn dense(counts: &Counts) -> f64 {
    let shares = PageLayout::DENSE.map(|layout| counts.share_of(layout));
    shares.iter().sum()
}

/// Formats a relative difference in per cent.
pub(crate) fn off(measured: f64, paper: f64) -> String {
    format!("{:+.1} %", 100.0 * (measured / paper - 1.0))
}

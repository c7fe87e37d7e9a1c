//! Reading structures of file systems out of an image: numbers, blocks, sets of blocks, bounds.

use treering_engine::BLOCK_SIZE;

use crate::error::DriveError;
use crate::image::Image;
use crate::recording::Extent;

pub(super) const BLOCK: u64 = BLOCK_SIZE as u64;

/// The `N` bytes at `at`; zeros where `bytes` is too short, so callers check counts before.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = at.checked_add(N).and_then(|end| bytes.get(at..end));
    found.and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

pub(super) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(super) fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// The error for a structure that is not as it should be.
pub(super) fn bad(
    place: impl Into<String>,
    expected: impl Into<String>,
    found: impl ToString,
) -> DriveError {
    DriveError::Bad {
        file: "disk".into(),
        place: place.into(),
        expected: expected.into(),
        found: found.to_string(),
    }
}

/// An image that is read within bounds and with a budget, so that no damage makes a walk endless.
pub(super) struct Reader<'a> {
    image: &'a Image,
    /// Blocks that may still be read.
    budget: u64,
}

impl<'a> Reader<'a> {
    /// A walk reads no block twice, so it may read as many as there are, and some small ones.
    pub(super) fn new(image: &'a Image) -> Reader<'a> {
        let budget = image.blocks() + 1024;
        Reader { image, budget }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.image.blocks()
    }

    /// Reads `len` bytes from the byte `at` on.
    pub(super) fn read(&mut self, what: &str, at: u64, len: u64) -> Result<Vec<u8>, DriveError> {
        let size = self.image.blocks() * BLOCK;
        if at.checked_add(len).is_none_or(|end| end > size) {
            let found = format!("bytes {at} to {}", at.saturating_add(len));
            return Err(bad(what, format!("a place below {size}"), found));
        }
        let cost = len.div_ceil(BLOCK);
        let rest = self.budget.checked_sub(cost);
        self.budget = rest.ok_or_else(|| bad(what, "structures that end", "a circle of them"))?;
        let mut bytes = vec![0; len as usize];
        let read = self.image.read(at, &mut bytes);
        read.map_err(DriveError::system(what))?;
        Ok(bytes)
    }
}

/// A set of blocks that grows block by block.
#[derive(Default)]
pub(super) struct Blocks(Vec<Extent>);

impl Blocks {
    pub(super) fn add(&mut self, lba: u64, blocks: u64) {
        match self.0.last_mut() {
            Some(last) if last.lba.checked_add(last.blocks) == Some(lba) => {
                last.blocks = last.blocks.saturating_add(blocks);
            }
            _ if blocks > 0 => self.0.push(Extent { lba, blocks }),
            _ => {}
        }
    }

    /// The blocks of `bytes` bytes from the byte `at` on.
    pub(super) fn add_bytes(&mut self, at: u64, bytes: u64) {
        let first = at / BLOCK;
        self.add(first, at.saturating_add(bytes).div_ceil(BLOCK) - first);
    }

    pub(super) fn extents(self) -> Vec<Extent> {
        merge(self.0)
    }
}

/// The block behind an extent; numbers that a damaged image gives may be any.
pub(super) fn end(extent: &Extent) -> u64 {
    extent.lba.saturating_add(extent.blocks)
}

/// Sorted extents without overlaps, as few as possible.
pub(crate) fn merge(mut extents: Vec<Extent>) -> Vec<Extent> {
    extents.sort_unstable_by_key(|e| e.lba);
    let mut merged: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents.into_iter().filter(|e| e.blocks > 0) {
        match merged.last_mut() {
            Some(last) if extent.lba <= end(last) => {
                last.blocks = end(&extent).max(end(last)) - last.lba;
            }
            _ => merged.push(extent),
        }
    }
    merged
}

/// What of `all` is not in `known`; both as of [`merge`].
pub(crate) fn without(all: &[Extent], known: &[Extent]) -> Vec<Extent> {
    let mut rest = Vec::new();
    let mut known = known.iter().peekable();
    for extent in all {
        let (mut at, last) = (extent.lba, end(extent));
        while at < last {
            while known.next_if(|k| end(k) <= at).is_some() {}
            let (from, to) = match known.peek() {
                Some(k) if k.lba < last => (k.lba.max(at), end(k).min(last)),
                _ => (last, last),
            };
            if from > at {
                let blocks = from - at;
                rest.push(Extent { lba: at, blocks });
            }
            at = to;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(lba: u64, blocks: u64) -> Extent {
        Extent { lba, blocks }
    }

    #[test]
    fn differences_of_sets_of_blocks_are_exact() {
        let all = merge(vec![e(10, 5), e(0, 5), e(4, 2), e(30, 1)]);
        assert_eq!(all, [e(0, 6), e(10, 5), e(30, 1)]);
        assert_eq!(
            without(&all, &[e(1, 2), e(11, 1), e(14, 17)]),
            [e(0, 1), e(3, 3), e(10, 1), e(12, 2)]
        );
        assert_eq!(without(&all, &[]), all);
        assert_eq!(without(&all, &[e(0, 100)]), []);
    }
}

//! Tests of the page layer: the bytes on the device, a model of a whole leaf level, ordinary cases,
//! damage, record lists.

mod adapt;
mod adversarial;
mod bytes;
mod codec;
mod contention;
mod damage;
mod dense;
mod model;
mod ordinary;

use super::{ChangeMap, PageLayout, PageMut, PageRef, SEGMENT_BYTES, check_structure};
use crate::types::PageId;

/// A page that verifies its own change tracking: every change goes through [`Tracked::change`],
/// which compares the bytes before and after.
#[derive(Clone)]
pub(super) struct Tracked {
    pub(super) bytes: Vec<u8>,
}

impl Tracked {
    pub(super) fn new(
        layout: PageLayout,
        page_size: usize,
        id: u64,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Tracked {
        // Stale bytes of the frame's previous page must not show through.
        let mut page = Tracked {
            bytes: vec![0xa5; page_size],
        };
        page.change(|p| p.init(layout, PageId(id), lower, upper))
            .unwrap();
        page
    }

    pub(super) fn view(&self) -> PageRef<'_> {
        PageRef::new(&self.bytes)
    }

    /// Runs `change` and verifies the contract of change tracking: a refused change alters neither
    /// bytes nor map; a change marks every segment that differs; the structure holds afterwards.
    pub(super) fn change<T, E>(
        &mut self,
        change: impl FnOnce(&mut PageMut<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.bytes.clone();
        let mut map = ChangeMap::new();
        let result = change(&mut PageMut::new(&mut self.bytes, &mut map));
        if result.is_err() {
            assert!(before == self.bytes, "a refused change left traces");
            assert!(map.is_clean(), "a refused change marked segments");
        }
        let old = before.chunks(SEGMENT_BYTES);
        let new = self.bytes.chunks(SEGMENT_BYTES);
        for (segment, (old, new)) in old.zip(new).enumerate() {
            assert!(
                old == new || map.is_marked(segment),
                "segment {segment} changed unmarked: {old:02x?} became {new:02x?}"
            );
        }
        assert_eq!(check_structure(&self.bytes), Ok(()));
        result
    }
}

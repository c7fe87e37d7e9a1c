//! Tests of what a chunk holds when it changes its use.

use super::*;
use crate::device::MemPm;
use crate::options::LeafFormat;

#[test]
fn what_was_a_chunk_of_records_is_zeros_before_it_is_one_of_logs() {
    let medium = Arc::new(Medium::new(Arc::new(MemPm::new(1 << 14))));
    let geometry = Geometry::plan(medium.len(), 1024, LeafFormat::Lodge).unwrap();
    geometry.format(&medium).unwrap();
    let opened = || {
        let uses = geometry.load_uses(&medium).unwrap();
        let space = Space::new(Arc::clone(&medium), geometry, uses);
        space.recovered_leaves(&BTreeSet::from([geometry.first_leaf()]), Time(0));
        space.recovered_records(&[]);
        space
    };
    let offset = opened().allocate_record(1024, Room::Delete).unwrap();
    medium.store(offset, &[7; 1024]).unwrap();
    medium
        .write_back(offset..offset + 1024, IoClass::Page)
        .unwrap();
    medium.fence();
    let chunk = geometry.chunk_of(offset).unwrap();
    let space = opened();
    let mut taken = false;
    while let Some((log, zeros)) = space.allocate_version_log(Room::Delete).unwrap() {
        taken |= log == chunk;
        assert!(zeros);
    }
    let mut bytes = [1; 1024];
    medium.load(offset, &mut bytes, IoClass::Log).unwrap();
    assert!(taken && bytes == [0; 1024]);
    assert_eq!(opened().use_of(chunk), Use::Log(Time(0)));
    // A chunk that was a log's stays as it is.
    medium.store(offset, &[7; 1024]).unwrap();
    space.free_version_log(chunk);
    assert_eq!(
        space.allocate_version_log(Room::Delete).unwrap(),
        Some((chunk, false))
    );
}

//! Tests that every tree in the registry can be opened by name on a device of its family, and on no
//! other.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, MemDevice, MemPm, PmDevice};
use treering_engine::prelude::*;
use treering_engine::{AnyDevice, Error, Family, open};

fn device(family: Family) -> AnyDevice {
    match family {
        Family::Pages => {
            let device: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(1 << 15));
            device.into()
        }
        Family::Pm => {
            let device: Arc<dyn PmDevice> = Arc::new(MemPm::new(32 << 20));
            device.into()
        }
    }
}

#[test]
fn every_tree_opens_by_name_and_keeps_its_data() {
    for name in TreeSpec::names() {
        let spec: TreeSpec = name.parse().expect(name);
        let device = device(spec.family());
        for round in 0..3_u32 {
            let store = open(&spec, device.clone()).expect(name);
            assert_eq!(
                store.range::<&[u8]>(..).count(),
                300 * round as usize,
                "{name}"
            );
            for n in 0..300 {
                let key = (300 * round + n).to_be_bytes();
                store.put(&key, &[round as u8; 40]).expect(name);
            }
        }
    }
}

#[test]
fn a_tree_on_a_device_of_another_family_is_refused_by_name() {
    for (name, other, says) in [
        ("bf", Family::Pm, "bf; it runs on block device"),
        (
            "lodge",
            Family::Pages,
            "lodge; it runs on persistent memory",
        ),
    ] {
        let spec: TreeSpec = name.parse().expect(name);
        let refused = open(&spec, device(other)).err().expect("is refused");
        assert!(matches!(refused, Error::BadOption { name: "tree", .. }));
        assert!(refused.to_string().contains(says), "{refused}");
    }
}

//! Record lists: round trip, and refusal of everything else.

use proptest::prelude::*;

use crate::node::Suffix;
use crate::node::records::{RecordsFlaw, decode, encode, encode_suffixes};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs() -> impl Strategy<Value = Pairs> {
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    prop::collection::btree_map(bytes.clone(), bytes, 0..20)
        .prop_map(|map| map.into_iter().collect())
}

proptest! {
    #[test]
    fn lists_survive_the_round_trip(pairs in pairs()) {
        let list = encode(pairs.iter().map(|(k, v)| (k, v)));
        let decoded = decode(&list).unwrap();
        prop_assert_eq!(decoded.len(), pairs.len());
        let back: Pairs = decoded.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        prop_assert_eq!(back, pairs);
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_noticed(pairs in pairs(), extra in any::<u8>()) {
        let mut list = encode(pairs.iter().map(|(k, v)| (k, v)));
        for cut in 0..list.len() {
            prop_assert!(decode(&list[..cut]).is_err(), "cut at {}", cut);
        }
        list.push(extra);
        prop_assert!(decode(&list).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_what_decodes_is_a_list(
        bytes in prop::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..60)
    ) {
        if let Ok(list) = decode(&bytes) {
            let pairs: Pairs = list.map(|(k, v)| (k, v.to_vec())).collect();
            prop_assert!(pairs.is_sorted_by(|a, b| a.0 < b.0));
            let again = encode(pairs.iter().map(|(k, v)| (k, v)));
            prop_assert!(decode(&again).unwrap().eq(decode(&bytes).unwrap()));
        }
    }

    #[test]
    fn a_prefix_stored_once_is_in_every_key(prefix in prop::collection::vec(any::<u8>(), 0..300), pairs in pairs()) {
        let suffixes = pairs.iter().map(|(k, v)| (Suffix::stored(k), v.as_slice()));
        let list = encode_suffixes(&prefix, pairs.len(), suffixes);
        let keys: Vec<_> = pairs.iter().map(|(k, _)| [prefix.as_slice(), k].concat()).collect();
        let back: Vec<_> = decode(&list).unwrap().map(|(k, _)| k).collect();
        prop_assert_eq!(back, keys);
    }
}

#[test]
fn damage_is_told_with_its_place() {
    let unsorted = encode([(b"b", b"1"), (b"a", b"2")]);
    let damage = decode(&unsorted).unwrap_err();
    assert_eq!((damage.at, damage.why), (6, RecordsFlaw::OutOfOrder));
    assert_eq!(
        damage.to_string(),
        "record list, byte 6: expected a key greater than the one before"
    );
    let twice = encode([(b"a", b"1"), (b"a", b"2")]);
    assert_eq!(decode(&twice).unwrap_err().why, RecordsFlaw::OutOfOrder);
    assert_eq!(decode(&[]).unwrap_err().why, RecordsFlaw::Cut);
    assert_eq!(
        decode(&[0, 0, 9]).unwrap_err().why,
        RecordsFlaw::TrailingBytes(1)
    );
    assert_eq!(decode(&[0x80, 0]).unwrap_err().why, RecordsFlaw::BadLength);
    assert_eq!(decode(&[0xff; 9]).unwrap_err().why, RecordsFlaw::BadLength);
}

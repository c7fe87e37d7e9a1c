//! POSIX access control lists, as the extended attributes `system.posix_acl_access` and
//! `system.posix_acl_default` have them.
//!
//! ```text
//! list    version 2 u32   entries
//! entry   tag u16   permissions u16   id u32        all little-endian
//! ```
//!
//! The kernel decides by them who may do what, and refuses lists that make no sense. It leaves to
//! the file system what follows from a list (`FUSE_POSIX_ACL`): permission bits and access list say
//! the same, and what is made in a directory inherits its default list, which then counts instead
//! of the umask (`FUSE_DONT_MASK`).

use super::state::Answer;

/// The extended attribute of the list that decides on access.
pub(super) const ACCESS: &[u8] = b"system.posix_acl_access";
/// The extended attribute of the list that a directory hands down.
pub(super) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: [u8; 4] = [2, 0, 0, 0];
const ENTRY: usize = 8;

const OWNER: u16 = 0x01;
const OWNING_GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Acl(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    permissions: u32,
    id: [u8; 4],
}

impl Acl {
    /// Decodes a list.
    pub(super) fn decode(bytes: &[u8]) -> Answer<Acl> {
        let entries = bytes.strip_prefix(&VERSION);
        let entries = entries.filter(|entries| entries.len() % ENTRY == 0);
        let entries = entries.ok_or(fuser::Errno::EINVAL)?.chunks_exact(ENTRY);
        let entries = entries.map(|entry| Entry {
            tag: u16::from_le_bytes([entry[0], entry[1]]),
            permissions: u32::from(entry[2] & 7),
            id: [entry[4], entry[5], entry[6], entry[7]],
        });
        Ok(Acl(entries.collect()))
    }

    /// Encodes the list.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_vec();
        for entry in &self.0 {
            bytes.extend_from_slice(&entry.tag.to_le_bytes());
            // Three bits.
            bytes.extend_from_slice(&(entry.permissions as u16).to_le_bytes());
            bytes.extend_from_slice(&entry.id);
        }
        bytes
    }

    /// Whether it says no more than permission bits can say.
    pub(super) fn is_minimal(&self) -> bool {
        let minimal = |entry: &Entry| [OWNER, OWNING_GROUP, OTHERS].contains(&entry.tag);
        self.0.iter().all(minimal)
    }

    /// The nine permission bits that it amounts to.
    pub(super) fn bits(&self) -> u32 {
        self.classes()
            .map(|(shift, at)| self.0[at].permissions << shift)
            .sum()
    }

    /// Makes it amount to these permission bits, as `chmod` does.
    pub(super) fn set_bits(&mut self, mode: u32) {
        for (shift, at) in self.classes().collect::<Vec<_>>() {
            self.0[at].permissions = mode >> shift & 7;
        }
    }

    /// Takes from it what a program that makes a node does not ask for.
    pub(super) fn limit(&mut self, mode: u32) {
        self.set_bits(self.bits() & mode);
    }

    /// The entries that permission bits stand for, and by how much these are shifted. With a mask,
    /// the bits of the group are those of the mask.
    fn classes(&self) -> impl Iterator<Item = (u32, usize)> {
        let find = |tag| self.0.iter().position(|entry| entry.tag == tag);
        let group = find(MASK).or_else(|| find(OWNING_GROUP));
        let classes = [(6, find(OWNER)), (3, group), (0, find(OTHERS))];
        classes
            .into_iter()
            .filter_map(|(shift, at)| Some((shift, at?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u16 = 0x02;

    fn acl(entries: &[(u16, u32)]) -> Acl {
        let entry = |(tag, permissions): &(u16, u32)| Entry {
            tag: *tag,
            permissions: *permissions,
            id: if *tag == USER { [1, 0, 0, 0] } else { [255; 4] },
        };
        Acl(entries.iter().map(entry).collect())
    }

    #[test]
    fn a_list_survives_its_encoding_and_others_are_refused() {
        let list = acl(&[
            (OWNER, 7),
            (USER, 6),
            (OWNING_GROUP, 5),
            (MASK, 7),
            (OTHERS, 0),
        ]);
        let bytes = list.encode();
        assert_eq!(bytes.len(), 4 + 5 * 8);
        assert_eq!(Acl::decode(&bytes).expect("a list"), list);
        assert!(Acl::decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(Acl::decode(&[3, 0, 0, 0]).is_err());
        assert!(Acl::decode(b"").is_err());
    }

    #[test]
    fn the_bits_of_the_group_are_those_of_the_mask() {
        let mut list = acl(&[
            (OWNER, 7),
            (USER, 7),
            (OWNING_GROUP, 7),
            (MASK, 5),
            (OTHERS, 1),
        ]);
        assert_eq!((list.bits(), list.is_minimal()), (0o751, false));
        list.set_bits(0o640);
        let expected = [
            (OWNER, 6),
            (USER, 7),
            (OWNING_GROUP, 7),
            (MASK, 4),
            (OTHERS, 0),
        ];
        assert_eq!(list, acl(&expected));
        let mut list = acl(&[(OWNER, 7), (OWNING_GROUP, 5), (OTHERS, 5)]);
        assert_eq!((list.bits(), list.is_minimal()), (0o755, true));
        list.limit(0o660);
        assert_eq!(list.bits(), 0o640);
    }
}

//! What operations are called elsewhere, and which of ours they are.

use super::emit::Fault;
use crate::OpKind;

/// What an operation of the input is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One of ours. A scan without a length of its own reads one record (a seek).
    Op(OpKind),
    /// A real operation, but nothing that a key-value store does.
    NoCounterpart,
}

/// The meaning of an operation's name; upper or lower case, `_` or `-` or nothing within. `None` if it is no name at all.
#[inline]
pub(super) fn word(name: &[u8]) -> Option<Meaning> {
    // One letter, or the commonest words: no copy.
    match name {
        b"r" | b"R" | b"Read" | b"read" | b"get" | b"GET" => return Some(Meaning::Op(OpKind::Get)),
        b"w" | b"W" | b"Write" | b"write" | b"set" | b"SET" => {
            return Some(Meaning::Op(OpKind::Put));
        }
        _ => {}
    }
    let mut plain = [0; 24];
    let mut len = 0;
    for &byte in name.iter().filter(|b| !matches!(b, b'_' | b'-')) {
        if !byte.is_ascii_alphabetic() {
            return None;
        }
        *plain.get_mut(len)? = byte.to_ascii_lowercase();
        len += 1;
    }
    let kind = match &plain[..len] {
        b"" => return None,
        b"read" | b"rd" | b"get" | b"gets" | b"getlease" | b"multiget" | b"lookup" => OpKind::Get,
        b"write" | b"wr" | b"put" | b"set" | b"add" | b"insert" | b"update" | b"replace"
        | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" | b"merge" | b"setlease"
        | b"putentity" => OpKind::Put,
        b"d" | b"del" | b"delete" | b"remove" | b"singledelete" | b"discard" | b"trim"
        | b"unmap" => OpKind::Delete,
        b"scan" | b"seek" | b"seekforprev" | b"iterate" => OpKind::Scan,
        _ => return Some(Meaning::NoCounterpart),
    };
    Some(Meaning::Op(kind))
}

/// Whether the operation of this name changes a value and leaves the time at which it expires
/// (memcached, `doc/protocol.txt`: append and prepend ignore an expiry, incr and decr have none).
pub(super) fn keeps_expiry(name: &[u8]) -> bool {
    [&b"append"[..], b"prepend", b"incr", b"decr"]
        .iter()
        .any(|kept| name.eq_ignore_ascii_case(kept))
}

/// The meaning of a SCSI operation code (SBC-4 table 33; the codes that move or unmap blocks).
pub(super) fn scsi(code: u64) -> Meaning {
    match code {
        // READ (6), (10), (16), (12)
        0x08 | 0x28 | 0x88 | 0xa8 => Meaning::Op(OpKind::Get),
        // WRITE (6), (10), (16), (12); WRITE AND VERIFY (10), (16), (12); WRITE SAME (10), (16); COMPARE AND WRITE
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae | 0x41 | 0x93 | 0x89 => {
            Meaning::Op(OpKind::Put)
        }
        // UNMAP
        0x42 => Meaning::Op(OpKind::Delete),
        _ => Meaning::NoCounterpart,
    }
}

/// A flag of 0 or 1, of which `write` is the one that means a write.
pub(super) fn flag(field: &[u8], write: u8) -> Result<OpKind, Fault> {
    match field {
        [byte @ (b'0' | b'1')] if byte - b'0' == write => Ok(OpKind::Put),
        b"0" | b"1" => Ok(OpKind::Get),
        _ => Err(Fault::bad(
            format!("{write} for a write or {} for a read", 1 - write),
            field,
        )),
    }
}

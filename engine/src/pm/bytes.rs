//! [`Bytes`], a key or value in memory: eight bytes are kept in a word, any other length on the
//! heap.

/// A key or a value, loaded from a slot's word or from a record.
#[derive(Clone, Debug)]
pub(crate) struct Bytes(BytesOf);

#[derive(Clone, Debug)]
enum BytesOf {
    Word([u8; 8]),
    Record(Vec<u8>),
}

impl Bytes {
    /// Returns the eight bytes of a slot's word.
    pub(super) fn of_word(word: u64) -> Bytes {
        Bytes(BytesOf::Word(word.to_be_bytes()))
    }

    /// Returns the bytes of a record.
    pub(super) fn of_record(bytes: Vec<u8>) -> Bytes {
        Bytes(BytesOf::Record(bytes))
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes(match bytes.try_into() {
            Ok(word) => BytesOf::Word(word),
            Err(_) => BytesOf::Record(bytes.to_vec()),
        })
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Bytes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Bytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            BytesOf::Word(bytes) => bytes,
            BytesOf::Record(bytes) => bytes,
        }
    }
}

/// Returns the word that holds these bytes, if there are eight. Words compare as their bytes do.
pub(crate) fn word_of(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

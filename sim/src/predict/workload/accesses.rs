//! The operations of a trace in their order, in four bytes each: what a count of each key loses.
//!
//! ```text
//! word:  code 3 bits | value 29 bits
//!        0 get, 1 put, 2 delete    number of the key
//!        3 scan                    number of the key; the next word is the length
//!        4 pass                    so many operations on keys outside the sample
//!        5 length                  of the values of puts from here on
//!        6 rest                    so many operations on pages outside a sample; the next word is
//!                                  puts 16 bits | accesses to pages beyond one an operation, 16
//!        7 add                     number of a key that gets a record on a page outside a sample;
//!                                  the next word is the page
//! ```
//!
//! The pass knows the number of each key, so models that need the order of the accesses
//! ([`crate::predict::played`]) read this list instead of the trace: no key is decoded, hashed or
//! compared again. Up to [`IN_MEMORY`] words are held in memory. Older ones are in a temporary file
//! without a name, which is written and read in order and ends with the process.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use treering_traces::OpKind;

use crate::codec::{Decoder, Encoder, malformed};

/// Words held in memory: 2 MiB.
const IN_MEMORY: usize = 1 << 19;

/// Words written to the file, or read from it, at a time.
const AT_A_TIME: usize = 1 << 16;

/// Bits of a word's value.
const VALUE_BITS: u32 = 29;
const VALUE_MASK: u32 = (1 << VALUE_BITS) - 1;

const GET: u32 = 0;
const PUT: u32 = 1;
const DELETE: u32 = 2;
const SCAN: u32 = 3;
const PASS: u32 = 4;
const LENGTH: u32 = 5;
const REST: u32 = 6;
const ADD: u32 = 7;

/// An access to a key of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Number of the operation, from 0 on.
    pub(crate) time: u64,
    pub(crate) kind: OpKind,
    /// Number of the key.
    pub(crate) key: u32,
    /// Bytes of the value of a put (those beyond 512 MiB are not counted), records that a scan asks
    /// for; 0 for other operations.
    pub(crate) len: u32,
}

/// Operations on pages outside a sample that change nothing but the end of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) ops: u32,
    /// Those that are puts.
    pub(crate) puts: u32,
    /// Accesses to pages, beyond one for each operation.
    pub(crate) further: u32,
}

impl Rest {
    /// Most operations, and most further accesses.
    pub(crate) const MOST: u32 = 0xffff;
}

/// A put that makes a record on a page outside a sample, without a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) key: u32,
    pub(crate) page: u32,
}

/// What a list of accesses holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Step(Step),
    Rest(Rest),
    Add(Added),
}

/// The list of accesses.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// The older words.
    file: Option<File>,
    in_file: u64,
    words: Vec<u32>,
    /// Length of the value of the last put.
    put_len: u32,
    /// Why the order was lost: the file could not be written or read.
    lost: Option<io::ErrorKind>,
}

impl Accesses {
    /// Adds an operation on key number `key`, after `passed` operations outside the sample. `len`
    /// is as in [`Step`].
    pub(crate) fn push(&mut self, passed: u64, kind: OpKind, key: u32, len: u32) {
        self.pass(passed);
        let value = len.min(VALUE_MASK);
        if kind == OpKind::Put && value != self.put_len {
            self.put_len = value;
            self.word(LENGTH << VALUE_BITS | value);
        }
        let code = match kind {
            OpKind::Get => GET,
            OpKind::Put => PUT,
            OpKind::Delete => DELETE,
            OpKind::Scan => SCAN,
        };
        self.word(code << VALUE_BITS | key);
        if kind == OpKind::Scan {
            self.word(len);
        }
    }

    /// Adds operations on pages outside a sample, at most [`Rest::MOST`].
    pub(crate) fn push_rest(&mut self, rest: Rest) {
        self.word(REST << VALUE_BITS | rest.ops);
        self.word(rest.puts << 16 | rest.further);
    }

    /// Adds a put that makes a record on a page outside a sample.
    pub(crate) fn push_added(&mut self, passed: u64, Added { key, page }: Added) {
        self.pass(passed);
        self.word(ADD << VALUE_BITS | key);
        self.word(page);
    }

    /// Notes operations outside the sample.
    pub(crate) fn pass(&mut self, mut count: u64) {
        while count > 0 {
            let some = count.min(u64::from(VALUE_MASK));
            self.word(PASS << VALUE_BITS | some as u32);
            count -= some;
        }
    }

    fn word(&mut self, word: u32) {
        if self.words.len() == IN_MEMORY {
            self.spill();
        }
        if self.words.len() == self.words.capacity() {
            let more = (self.words.len() / 4).clamp(4096, IN_MEMORY - self.words.len());
            self.words.reserve_exact(more);
        }
        self.words.push(word);
    }

    /// Moves the words in memory to the file.
    fn spill(&mut self) {
        if self.lost.is_none() {
            self.lost = self.append().err().map(|error| error.kind());
        }
        self.words.clear();
    }

    fn append(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let mut bytes = Vec::with_capacity(4 * AT_A_TIME);
        for words in self.words.chunks(AT_A_TIME) {
            bytes.clear();
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            file.write_all(&bytes)?;
        }
        self.in_file += self.words.len() as u64;
        Ok(())
    }

    /// Renumbers the keys after some were dropped from the sample: `to[old]` is the new number, or
    /// `None` for a dropped key.
    pub(super) fn renumber(&mut self, to: impl Fn(u32) -> Option<u32>) {
        let old = std::mem::take(self);
        let lost = old.lost;
        let mut passed = 0;
        let mut time = 0;
        let result = old.each(|step| {
            passed += step.time - time;
            time = step.time + 1;
            match to(step.key) {
                Some(key) => {
                    self.push(passed, step.kind, key, step.len);
                    passed = 0;
                }
                None => passed += 1,
            }
        });
        match result {
            Ok(end) => self.pass(passed + (end - time)),
            Err(error) => self.lost = Some(error.kind()),
        }
        self.lost = self.lost.or(lost);
    }

    /// Why the order of the accesses is not known, if it is not.
    pub(crate) fn lost(&self) -> Option<io::ErrorKind> {
        self.lost
    }

    /// Calls `f` for each access in order, in a list without a rest. Returns the number of
    /// operations.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(crate) fn each(&self, mut f: impl FnMut(Step)) -> io::Result<u64> {
        self.each_event(|_, event| {
            if let Event::Step(step) = event {
                f(step);
            }
        })
    }

    /// Calls `f` for each access or rest in order, with the number of its first operation. Returns
    /// the number of operations.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(crate) fn each_event(&self, mut f: impl FnMut(u64, Event)) -> io::Result<u64> {
        let mut reader = Reader {
            time: 0,
            first: None,
            put_len: 0,
        };
        self.each_piece(|words| {
            for word in words {
                reader.read(u32::from_le_bytes(*word), &mut f);
            }
            Ok(())
        })?;
        Ok(reader.time)
    }

    /// Calls `f` for [`AT_A_TIME`] words at a time, or fewer.
    fn each_piece(&self, mut f: impl FnMut(&[[u8; 4]]) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = vec![0; 4 * AT_A_TIME];
        if let Some(file) = &self.file {
            let mut file = file.try_clone()?;
            file.seek(SeekFrom::Start(0))?;
            let mut left = self.in_file;
            while left > 0 {
                let some = left.min(AT_A_TIME as u64) as usize;
                file.read_exact(&mut bytes[..4 * some])?;
                f(bytes[..4 * some].as_chunks().0)?;
                left -= some as u64;
            }
        }
        for words in self.words.chunks(AT_A_TIME) {
            bytes.clear();
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            f(bytes.as_chunks().0)?;
        }
        Ok(())
    }

    /// Writes the list: pieces, each as planes of bytes, and an empty one.
    pub(super) fn save(&self, out: &mut Encoder<'_>) -> io::Result<()> {
        if let Some(kind) = self.lost {
            return Err(kind.into());
        }
        let mut planes = Vec::with_capacity(4 * AT_A_TIME);
        self.each_piece(|words| {
            planes.clear();
            for plane in 0..4 {
                planes.extend(words.iter().map(|word| word[plane]));
            }
            out.bytes(&planes)
        })?;
        out.bytes(&[])
    }

    /// Reads what [`Accesses::save`] wrote.
    pub(super) fn load(from: &mut Decoder<'_>) -> io::Result<Accesses> {
        let mut accesses = Accesses::default();
        loop {
            let planes = from.bytes()?;
            if planes.is_empty() {
                return Ok(accesses);
            }
            if !planes.len().is_multiple_of(4) {
                return Err(malformed("a piece of the accesses has the wrong length"));
            }
            let count = planes.len() / 4;
            for at in 0..count {
                let byte = |plane: usize| planes[plane * count + at];
                accesses.word(u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]));
            }
        }
    }
}

struct Reader {
    time: u64,
    /// The first word of a scan or a rest, while the second is still to come.
    first: Option<u32>,
    put_len: u32,
}

impl Reader {
    #[inline]
    fn read(&mut self, word: u32, f: &mut impl FnMut(u64, Event)) {
        let (kind, key, len) = match self.first.take() {
            Some(first) if first >> VALUE_BITS != SCAN => return self.elsewhere(first, word, f),
            Some(first) => (OpKind::Scan, first & VALUE_MASK, word),
            None => {
                let value = word & VALUE_MASK;
                match word >> VALUE_BITS {
                    GET => (OpKind::Get, value, 0),
                    PUT => (OpKind::Put, value, self.put_len),
                    DELETE => (OpKind::Delete, value, 0),
                    SCAN | REST | ADD => {
                        self.first = Some(word);
                        return;
                    }
                    LENGTH => {
                        self.put_len = value;
                        return;
                    }
                    _ => {
                        self.time += u64::from(value);
                        return;
                    }
                }
            }
        };
        let step = Step {
            time: self.time,
            kind,
            key,
            len,
        };
        f(self.time, Event::Step(step));
        self.time += 1;
    }

    #[inline]
    fn elsewhere(&mut self, first: u32, second: u32, f: &mut impl FnMut(u64, Event)) {
        let value = first & VALUE_MASK;
        let (ops, event) = match first >> VALUE_BITS {
            ADD => {
                let (key, page) = (value, second);
                (1, Event::Add(Added { key, page }))
            }
            _ => {
                let rest = Rest {
                    ops: value,
                    puts: second >> 16,
                    further: second & 0xffff,
                };
                (value, Event::Rest(rest))
            }
        };
        f(self.time, event);
        self.time += u64::from(ops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(accesses: &Accesses) -> (Vec<Step>, u64) {
        let mut steps = Vec::new();
        let end = accesses.each(|step| steps.push(step)).unwrap();
        (steps, end)
    }

    fn step(time: u64, kind: OpKind, key: u32, len: u32) -> Step {
        Step {
            time,
            kind,
            key,
            len,
        }
    }

    #[test]
    fn accesses_come_back_in_order_with_their_times() {
        let mut accesses = Accesses::default();
        accesses.push(0, OpKind::Put, 7, 100);
        accesses.push(3, OpKind::Scan, 2, 1 << 30);
        accesses.push(0, OpKind::Delete, 0, 0);
        accesses.pass(5);
        let expected = vec![
            step(0, OpKind::Put, 7, 100),
            step(4, OpKind::Scan, 2, 1 << 30),
            step(5, OpKind::Delete, 0, 0),
        ];
        assert_eq!(steps(&accesses), (expected, 11));
    }

    #[test]
    fn a_long_list_goes_through_the_file() {
        let mut accesses = Accesses::default();
        let count = 2 * IN_MEMORY as u64 + 10;
        for i in 0..count {
            accesses.push(0, OpKind::Get, (i % 1000) as u32, 0);
        }
        assert!(accesses.file.is_some() && accesses.words.capacity() <= IN_MEMORY);
        let mut expected = 0;
        let end = accesses.each(|found| {
            assert_eq!(
                found,
                step(expected, OpKind::Get, (expected % 1000) as u32, 0)
            );
            expected += 1;
        });
        assert_eq!((end.unwrap(), expected), (count, count));
    }

    #[test]
    fn dropped_keys_leave_their_time() {
        let mut accesses = Accesses::default();
        for key in [4, 1, 2, 3, 4] {
            accesses.push(1, OpKind::Put, key, 10 * key);
        }
        accesses.pass(2);
        accesses.renumber(|key| (key % 2 == 0).then_some(key / 2));
        let expected = vec![
            step(1, OpKind::Put, 2, 40),
            step(5, OpKind::Put, 1, 20),
            step(9, OpKind::Put, 2, 40),
        ];
        assert_eq!(steps(&accesses), (expected, 12));
    }
}

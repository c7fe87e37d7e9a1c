//! Trims on a file whose system refuses, fails or half makes the holes: a trim is a hint, so no
//! block but the trimmed ones changes, and these are old or zeros until they are written again.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use treering_engine::device::{BlockDevice, FileDevice, FileIo, FileOptions, Kernel};
use treering_engine::{BLOCK_SIZE, IoClass, Lba};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const EPERM: i32 = 1;
const EOPNOTSUPP: i32 = 95;
const ENOSYS: i32 = 38;

/// A file in memory. `answers` are the errors of the next holes, each with the number of blocks
/// that are zeros already when it is told.
#[derive(Default)]
struct Memory {
    bytes: Mutex<Vec<u8>>,
    answers: Mutex<VecDeque<(i32, usize)>>,
    asked: Mutex<Vec<(u64, u64)>>,
}

struct System(Arc<Memory>);

impl Kernel for System {
    fn write_at(&self, bytes: &[u8], offset: u64, _: IoClass) -> io::Result<usize> {
        let all = &mut *self.0.bytes.lock().unwrap();
        all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let all = self.0.bytes.lock().unwrap();
        buf.copy_from_slice(&all[offset as usize..][..buf.len()]);
        Ok(buf.len())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let block = BLOCK_SIZE as u64;
        (self.0.asked.lock().unwrap()).push((offset / block, len / block));
        let answer = self.0.answers.lock().unwrap().pop_front();
        let zeros = answer.map_or(len as usize, |(_, blocks)| blocks * BLOCK_SIZE);
        self.0.bytes.lock().unwrap()[offset as usize..][..zeros].fill(0);
        answer.map_or(Ok(()), |(errno, _)| {
            Err(io::Error::from_raw_os_error(errno))
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
}

const BLOCKS: u64 = 8;

/// A device whose blocks are all 1, and what its system has seen.
fn device(answers: &[(i32, usize)]) -> (FileDevice, Arc<Memory>) {
    let memory = Arc::new(Memory::default());
    *memory.bytes.lock().unwrap() = vec![1; BLOCKS as usize * BLOCK_SIZE];
    memory.answers.lock().unwrap().extend(answers);
    let choices = FileOptions::from(FileIo::Buffered);
    let kernel = Box::new(System(Arc::clone(&memory)));
    (FileDevice::over(kernel, BLOCKS, &choices), memory)
}

fn punch(device: &FileDevice, lba: u64, blocks: u64) {
    device.trim(Lba(lba), blocks).expect("a hint");
    device.reclaim(Lba(0)..Lba(0));
}

fn asked(memory: &Memory) -> Vec<(u64, u64)> {
    std::mem::take(&mut memory.asked.lock().unwrap())
}

/// The byte of each block, all of whose bytes are alike.
fn content(device: &FileDevice) -> Vec<u8> {
    let byte = |lba| {
        let mut block = [0; BLOCK_SIZE];
        device.read(Lba(lba), &mut block, IoClass::Page).unwrap();
        assert!(block.iter().all(|b| *b == block[0]), "block {lba}");
        block[0]
    };
    (0..BLOCKS).map(byte).collect()
}

#[test]
fn a_hole_that_fails_takes_nothing_but_what_was_trimmed() {
    for errno in [EPERM, EIO, EINVAL, ENOSPC, EOPNOTSUPP, ENOSYS] {
        for done in 0..=2 {
            let (device, _) = device(&[(errno, done)]);
            punch(&device, 2, 2);
            let expected = |i: u8| u8::from(!(2..2 + done as u8).contains(&i));
            let expected: Vec<u8> = (0..8).map(expected).collect();
            assert_eq!(content(&device), expected, "error {errno} after {done}");
            // The store goes on, and what is written now stays.
            device.flush().expect("a flush has its own errors");
            device
                .write(Lba(2), &[7; BLOCK_SIZE], IoClass::Page)
                .expect("written");
            for _ in 0..3 {
                device.reclaim(Lba(0)..Lba(0));
                device.flush().expect("flushed");
                assert_eq!(content(&device)[2], 7, "error {errno}");
            }
        }
    }
}

#[test]
fn an_interrupted_hole_is_punched_at_once() {
    let (device, memory) = device(&[(EINTR, 0), (EINTR, 1)]);
    punch(&device, 2, 2);
    assert_eq!(asked(&memory), [(2, 2); 3]);
    assert_eq!(content(&device), [1, 1, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn a_full_file_system_is_asked_again_but_not_for_what_was_written_since() {
    let (device, memory) = device(&[(ENOSPC, 1)]);
    punch(&device, 2, 4);
    assert_eq!(asked(&memory), [(2, 4)]);
    let written = device.write(Lba(3), &[7; BLOCK_SIZE], IoClass::Page);
    written.expect("written");
    device.reclaim(Lba(0)..Lba(0));
    assert_eq!(asked(&memory), [(2, 1), (4, 2)]);
    assert_eq!(content(&device), [1, 1, 0, 7, 0, 0, 1, 1]);
    device.reclaim(Lba(0)..Lba(0));
    assert_eq!(asked(&memory), [], "all are holes");
}

#[test]
fn a_file_system_without_holes_is_asked_once_and_one_that_fails_for_other_blocks() {
    for (errno, again) in [(EOPNOTSUPP, 0), (ENOSYS, 0), (EIO, 1), (EPERM, 1)] {
        let (device, memory) = device(&[(errno, 0)]);
        punch(&device, 2, 2);
        assert_eq!(asked(&memory), [(2, 2)]);
        punch(&device, 5, 1);
        assert_eq!(asked(&memory).len(), again, "error {errno}");
        assert_eq!(content(&device)[..5], [1; 5]);
    }
}

//! Completion times of a compressing drive: a codec before the flash, and a buffer in between.
//!
//! ```text
//!  write   codec (latency, throughput) ──▶ buffer: acknowledged ──▶ full flash page: programmed
//!                                              │                      in the background
//!                                              └ buffer full: waits for the oldest program
//!  read    flash pages of the extent ──▶ codec;  all zeros, or still in the buffer: no flash
//!  gc      read and program; nobody waits for it, but other requests queue behind it
//! ```
//!
//! A flash page holds parts of many extents, so it can be programmed only when it is full. The
//! buffer before it must therefore survive a power loss, and a write is done and durable as soon as
//! it is in the buffer. A flush does not wait for anything else.

use std::collections::VecDeque;

use super::ftl::ExtentOps;
use super::profile::CsdProfile;
use crate::ssd::timing::{Flash, Taken};

/// One recorded operation.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// This many blocks were compressed.
    Compress(u32),
    /// This many blocks were decompressed.
    Decompress(u32),
    Read(u32),
    Program(u32),
    GcRead(u32),
    Erase,
    /// A call of the engine has returned.
    EndOfCall,
}

/// Operations since they were last served.
#[derive(Default)]
pub(super) struct Recorder {
    steps: Vec<Step>,
    last_read: Option<u64>,
}

impl Recorder {
    pub(super) fn compress(&mut self, blocks: u32) {
        self.steps.push(Step::Compress(blocks));
    }

    pub(super) fn decompress(&mut self, blocks: u32) {
        if blocks > 0 {
            self.steps.push(Step::Decompress(blocks));
        }
    }

    /// Neighbouring extents share a flash page, which is read only once per call.
    pub(super) fn read(&mut self, page: u64) {
        if self.last_read != Some(page) {
            self.steps.push(Step::Read(page as u32));
        }
        self.last_read = Some(page);
    }

    pub(super) fn end_call(&mut self) {
        self.last_read = None;
        if !matches!(self.steps.last(), None | Some(Step::EndOfCall)) {
            self.steps.push(Step::EndOfCall);
        }
    }
}

impl ExtentOps for Recorder {
    fn program(&mut self, page: u64) {
        self.steps.push(Step::Program(page as u32));
    }

    fn gc_read(&mut self, page: u64) {
        self.steps.push(Step::GcRead(page as u32));
    }

    fn erase(&mut self, _: u32) {
        self.steps.push(Step::Erase);
    }
}

/// The codec's times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct CodecTimes {
    compress: u64,
    decompress: u64,
    /// Time between two blocks at full throughput.
    block: u64,
}

/// Codec, buffer and flash, and the times when each is free.
pub(super) struct Pipeline {
    codec: CodecTimes,
    flash: Flash,
    compressor_free: u64,
    decompressor_free: u64,
    /// Completion times of the flash pages in the buffer, oldest first.
    buffer: VecDeque<u64>,
    buffer_pages: usize,
}

/// Duration of a call on an idle drive.
#[derive(Default)]
struct Alone {
    compressed: u64,
    decompressed: u64,
    pages: u64,
}

impl Pipeline {
    pub(super) fn new(profile: &CsdProfile) -> Pipeline {
        let ns = |us: f64| (us * 1000.0).round() as u64;
        Pipeline {
            codec: CodecTimes {
                compress: ns(profile.compress_us),
                decompress: ns(profile.decompress_us),
                block: (4096.0 * 1000.0 / profile.codec_mb_per_s).round() as u64,
            },
            flash: Flash::new(&profile.flash),
            compressor_free: 0,
            decompressor_free: 0,
            buffer: VecDeque::new(),
            buffer_pages: profile.buffer_pages as usize,
        }
    }

    /// Nanoseconds to write this many blocks at once on an idle drive.
    pub(super) fn write_ns(&self, blocks: u64) -> u64 {
        let blocks = Alone {
            compressed: blocks,
            ..Alone::default()
        };
        self.alone(&blocks)
    }

    /// Nanoseconds to read this many blocks from this many flash pages at once on an idle drive.
    pub(super) fn read_ns(&self, blocks: u64, pages: u64) -> u64 {
        let blocks = Alone {
            decompressed: blocks,
            pages,
            ..Alone::default()
        };
        self.alone(&blocks)
    }

    fn alone(&self, call: &Alone) -> u64 {
        let codec = |latency: u64, blocks: u64| match blocks {
            0 => 0,
            n => latency + (n - 1) * self.codec.block,
        };
        codec(self.codec.compress, call.compressed)
            + codec(self.codec.decompress, call.decompressed)
            + self.flash.reads_alone(call.pages)
    }

    /// Serves everything recorded, beginning at `at`.
    pub(super) fn serve(&mut self, recorder: &mut Recorder, at: u64) -> Taken {
        let (mut begins, mut ends, mut service) = (at, at, 0);
        // When the current call's data leaves the codec, and when its flash reads are done.
        let (mut compressed, mut sensed) = (at, at);
        let mut alone = Alone::default();
        for step in recorder.steps.drain(..) {
            match step {
                Step::Compress(blocks) => {
                    let done = pass(
                        &mut self.compressor_free,
                        begins,
                        (self.codec.compress, self.codec.block),
                        blocks,
                    );
                    compressed = compressed.max(done);
                    ends = ends.max(done);
                    alone.compressed += u64::from(blocks);
                }
                Step::Read(page) => {
                    sensed = sensed.max(self.flash.read(page, begins));
                    alone.pages += 1;
                }
                Step::Decompress(blocks) => {
                    let done = pass(
                        &mut self.decompressor_free,
                        sensed.max(begins),
                        (self.codec.decompress, self.codec.block),
                        blocks,
                    );
                    ends = ends.max(done);
                    alone.decompressed += u64::from(blocks);
                }
                Step::Program(page) => {
                    ends = ends.max(self.buffered_program(page, compressed.max(begins)));
                }
                Step::GcRead(page) => {
                    self.flash.read(page, begins);
                }
                Step::Erase => self.flash.erase(begins),
                Step::EndOfCall => {
                    service += self.alone(&std::mem::take(&mut alone));
                    begins = ends;
                }
            }
        }
        service += self.alone(&alone);
        Taken {
            done_ns: ends,
            service_ns: service.min(ends - at),
        }
    }

    /// Programs a page from the buffer; returns when the buffer had room for it.
    fn buffered_program(&mut self, page: u32, ready: u64) -> u64 {
        while self.buffer.front().is_some_and(|&done| done <= ready) {
            self.buffer.pop_front();
        }
        let room = if self.buffer.len() < self.buffer_pages {
            ready
        } else {
            self.buffer.pop_front().unwrap_or(ready)
        };
        let done = self.flash.program(page, room);
        // Dies finish in any order; the buffer frees its pages in program order.
        let done = self.buffer.back().map_or(done, |&last| last.max(done));
        self.buffer.push_back(done);
        room
    }
}

/// Sends blocks through one direction of the codec; returns when the last is done.
fn pass(free: &mut u64, at: u64, (latency, block): (u64, u64), blocks: u32) -> u64 {
    let begins = at.max(*free);
    *free = begins + u64::from(blocks) * block;
    begins + latency + u64::from(blocks.saturating_sub(1)) * block
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One channel, one die; tR 10, tProg 100, tErase 1000, transfer 4.096 µs; codec 5 µs, a block
    /// each 4.096 µs; a buffer of one page.
    fn pipeline() -> Pipeline {
        let (_, mut profile) = super::super::profile::builtin("csd").expect("built in");
        profile.flash.channels = 1;
        profile.flash.dies_per_channel = 1;
        profile.flash.read_us = 10.0;
        profile.flash.program_us = 100.0;
        profile.flash.erase_us = 1000.0;
        profile.flash.channel_mb_per_s = 1000.0;
        profile.compress_us = 5.0;
        profile.decompress_us = 5.0;
        profile.codec_mb_per_s = 1000.0;
        profile.buffer_pages = 1;
        Pipeline::new(&profile)
    }

    #[test]
    fn a_write_is_done_when_it_is_compressed_and_buffered() {
        let mut pipeline = pipeline();
        let mut recorder = Recorder::default();
        recorder.compress(1);
        recorder.program(0);
        recorder.end_call();
        let taken = pipeline.serve(&mut recorder, 500);
        assert_eq!((taken.done_ns, taken.service_ns), (5_500, 5_000));
        assert_eq!(pipeline.write_ns(2), 5_000 + 4_096);
    }

    #[test]
    fn a_write_waits_for_room_in_the_buffer() {
        let mut pipeline = pipeline();
        let mut recorder = Recorder::default();
        for page in 0..2 {
            recorder.compress(1);
            recorder.program(page);
            recorder.end_call();
        }
        let taken = pipeline.serve(&mut recorder, 0);
        // The first page leaves the codec at 5 µs and is programmed after transfer and tProg.
        assert_eq!(taken.done_ns, 5_000 + 4_096 + 100_000);
        assert_eq!(taken.service_ns, 10_000);
    }

    #[test]
    fn a_read_senses_each_page_once_and_decompresses_each_block() {
        let mut pipeline = pipeline();
        let mut recorder = Recorder::default();
        recorder.read(3);
        recorder.read(3);
        recorder.decompress(2);
        recorder.end_call();
        let taken = pipeline.serve(&mut recorder, 0);
        assert_eq!(taken.done_ns, 10_000 + 4_096 + 5_000 + 4_096);
        assert_eq!(taken.service_ns, taken.done_ns);
        assert_eq!(pipeline.read_ns(2, 1), taken.service_ns);
    }
}

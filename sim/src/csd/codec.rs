//! The codecs of compressing drives, which compress one block at a time.
//!
//! The drive of B⁻-tree §4.1 uses zlib ("zlib compression on each 4KB block"); a profile can select
//! the others. A block that does not shrink is stored uncompressed.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use treering_engine::BLOCK_SIZE;

/// A compression codec and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// zlib (RFC 1950), level 1 to 9.
    Zlib(u32),
    /// Zstandard, level 1 to 22.
    Zstd(i32),
    /// LZ4 block format.
    Lz4,
}

impl Codec {
    /// Parses the `codec` and `level` of a profile.
    ///
    /// # Errors
    /// A message that says what was found and expected.
    pub fn parse(name: &str, level: u32) -> Result<Codec, String> {
        let within = |most: u32| {
            if (1..=most).contains(&level) {
                return Ok(());
            }
            Err(format!("level = {level}, expected 1 to {most} for {name}"))
        };
        match name {
            "zlib" => within(9).map(|()| Codec::Zlib(level)),
            "zstd" => within(22).map(|()| Codec::Zstd(level as i32)),
            "lz4" => within(1).map(|()| Codec::Lz4),
            _ => Err(format!("codec = {name:?}, expected zlib, zstd or lz4")),
        }
    }

    /// `zlib`, `zstd` or `lz4`.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Zlib(_) => "zlib",
            Codec::Zstd(_) => "zstd",
            Codec::Lz4 => "lz4",
        }
    }
}

/// Size of a buffer for compressed blocks: no codec exceeds it (deflate and LZ4 grow a block by
/// less than 1/128, zstd by less than 1/8).
const MOST: usize = BLOCK_SIZE + BLOCK_SIZE / 8 + 64;

enum Engine {
    Zlib(Box<Compress>),
    Zstd(Box<zstd::bulk::Compressor<'static>>),
    Lz4(Box<lz4_flex::block::CompressTable>),
}

/// Compresses blocks one after another.
pub struct Compressor {
    engine: Engine,
    out: Box<[u8; MOST]>,
}

impl Compressor {
    /// A compressor for `codec`.
    pub fn new(codec: Codec) -> Compressor {
        let engine = match codec {
            Codec::Zlib(level) => {
                Engine::Zlib(Box::new(Compress::new(Compression::new(level), true)))
            }
            // Only an allocation can fail here: a level out of range is clamped.
            Codec::Zstd(level) => Engine::Zstd(Box::new(
                zstd::bulk::Compressor::new(level).expect("memory for a zstd context"),
            )),
            Codec::Lz4 => Engine::Lz4(Box::default()),
        };
        Compressor {
            engine,
            out: Box::new([0; MOST]),
        }
    }

    /// The compressed form of one block; `None` if it is not smaller than the block.
    pub fn compress(&mut self, block: &[u8; BLOCK_SIZE]) -> Option<&[u8]> {
        let out = &mut self.out[..];
        let len = match &mut self.engine {
            Engine::Zlib(zlib) => {
                zlib.reset();
                match zlib.compress(block, out, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => Some(zlib.total_out() as usize),
                    Ok(_) | Err(_) => None,
                }
            }
            Engine::Zstd(zstd) => zstd.compress_to_buffer(block, out).ok(),
            Engine::Lz4(table) => lz4_flex::block::compress_into_with_table(block, out, table).ok(),
        };
        len.filter(|&len| len < BLOCK_SIZE)
            .map(|len| &self.out[..len])
    }

    /// Stored size of a block: that of its compressed form or, if that is not smaller, of the
    /// block.
    pub fn size(&mut self, block: &[u8; BLOCK_SIZE]) -> u16 {
        self.compress(block).map_or(BLOCK_SIZE, <[u8]>::len) as u16
    }
}

/// Decompresses blocks.
pub struct Decompressor {
    engine: Inverse,
}

enum Inverse {
    Zlib(Box<Decompress>),
    Zstd(Box<zstd::bulk::Decompressor<'static>>),
    Lz4,
}

impl Decompressor {
    /// A decompressor for `codec`.
    pub fn new(codec: Codec) -> Decompressor {
        let engine = match codec {
            Codec::Zlib(_) => Inverse::Zlib(Box::new(Decompress::new(true))),
            Codec::Zstd(_) => Inverse::Zstd(Box::new(
                zstd::bulk::Decompressor::new().expect("memory for a zstd context"),
            )),
            Codec::Lz4 => Inverse::Lz4,
        };
        Decompressor { engine }
    }

    /// Decompresses into `block`; returns whether the result is exactly one block.
    #[must_use]
    pub fn decompress(&mut self, compressed: &[u8], block: &mut [u8; BLOCK_SIZE]) -> bool {
        let found = match &mut self.engine {
            Inverse::Zlib(zlib) => {
                zlib.reset(true);
                let end = zlib.decompress(compressed, block, FlushDecompress::Finish);
                matches!(end, Ok(Status::StreamEnd)).then(|| zlib.total_out() as usize)
            }
            Inverse::Zstd(zstd) => zstd.decompress_to_buffer(compressed, &mut block[..]).ok(),
            Inverse::Lz4 => lz4_flex::block::decompress_into(compressed, block).ok(),
        };
        found == Some(BLOCK_SIZE)
    }
}

//! RocksDB block cache traces in the readable form of `block_cache_trace_analyzer`
//! (`-human_readable_trace_file_path`).
//!
//! ```text
//! time_us,block_id,block_type,block_size,cf_id,cf_name,level,sst_fd,caller,no_insert,get_id,
//!     get_key_id,referenced_size,is_hit,key_in_block,keys_in_block,table_id,seqno,block_key_size,
//!     get_key_size,block_offset
//! 1605820800000123,1,9,4096,0,default,1,12,1,0,7,3,120,1,1,40,13,0,16,24,8192
//! ```
//!
//! 21 columns, and one line for each lookup of a block in the cache. Every line is a get of a
//! block, whether or not the block was cached, and whoever asked for it: readers, iterators or
//! compactions (`caller`). A key is the block's number in 8 bytes, big-endian. The analyzer numbers
//! blocks in the order of their first access. The block's offset in its file would keep neighbours
//! together, but the analyzer takes it from the cache key, where RocksDB no longer stores it since
//! version 7. Block types: 7 index, 8 filter, 9 data, 10 compression dictionary, 11 range
//! deletions.
//!
//! Source: RocksDB, `trace_replay/block_cache_tracer.cc` (`WriteHumanReadableTraceRecord`),
//! `include/rocksdb/trace_record.h`; its wiki, "Block cache analysis and simulation tools".

use crate::OpKind;
use crate::import::emit::{Emit, Fault, KeyOp};
use crate::import::expire::Ttl;
use crate::import::fields::{number, scaled, split};
use crate::import::plugin::TextFormat;

#[derive(Debug)]
pub(super) struct BlockCache;

impl TextFormat for BlockCache {
    fn line(&mut self, line: &[u8], out: &mut Emit<'_>) -> Result<(), Fault> {
        const LAYOUT: &str = "`time_us,block_id,block_type,block_size,cf_id,cf_name,level,…`";
        let columns: [&[u8]; 21] = split(line, b',', LAYOUT)?;
        let [at, block, kind, size] = [columns[0], columns[1], columns[2], columns[3]];
        if !matches!(number(kind, "a block type")?, 7..=11) {
            return Err(Fault::bad("a block type from 7 to 11", kind));
        }
        number(size, "a block size in bytes")?;
        // The name of a column family is text; all other columns are numbers.
        number(columns[4], "a column family's id")?;
        for column in &columns[6..] {
            number(column, "a level, a file, a caller and so on")?;
        }
        let op = KeyOp {
            kind: OpKind::Get,
            key: &number(block, "a block id")?.to_be_bytes(),
            value_len: 0,
            scan_len: 0,
            client: b"",
            time_ns: Some(scaled(at, 1000, "a time in us")?),
            ttl: Ttl::Keep,
        };
        out.key_op(op, 1)
    }
}

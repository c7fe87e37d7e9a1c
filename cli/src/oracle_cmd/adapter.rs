//! `--as-adapter`: one of our trees, in a real file, behind the protocol of docs/EXEC.md.
//!
//! So our own stores are judged as any other engine is: killed, and cut off on a drive that records
//! what the file device really asks of the system.

use std::str::FromStr as _;
use std::sync::Arc;

use treering_engine::device::FileDevice;
use treering_engine::{
    Durability, Family, Kv, LogPacking, Options, Result, Store, TreeSpec, node, required_blocks,
};
use treering_oracle::exec::serve::{ServeError, serve_stdio};
use treering_oracle::{Disk, DiskKind, Engine, Limits, Promise};
use treering_sim::replay::Acknowledge;

use crate::args::OracleArgs;
use crate::failure::{self, Failure};

/// Name of the store in the folder that `open` names.
const STORE: &str = "store";

/// Size of the log. The largest batch of the oracle's programs fits.
const LOG_BYTES: u64 = 2 << 20;

/// A checkpoint after a few dozen writes.
const CHECKPOINT_BYTES: u64 = 16 << 10;

/// Pages that a new file has room for, few enough that it soon grows.
const FIRST_PAGES: u64 = 4;

/// The longest records, which span several blocks outside the leaves.
const MAX_RECORD: usize = 16 << 10;

/// Serves the tree until the requests end.
pub(super) fn run(args: &OracleArgs) -> std::result::Result<(), Failure> {
    let tree = args.tree.as_deref().unwrap_or_default();
    let spec = TreeSpec::from_str(tree)
        .map_err(|e| Failure::usage(format!("--as-adapter: --tree {tree}: {e}")))?;
    let options = match spec.options() {
        Some(options) if spec.family() == Family::Pages => options,
        _ => {
            return Err(Failure::usage(format!(
                "--as-adapter: --tree {tree} lives in persistent memory, which is never a file \
                 here; expected btree, bf, bminus or a spec of one of them"
            )));
        }
    };
    let log_bytes = args.log_size.unwrap_or(LOG_BYTES);
    let options = Options {
        durability: match args.durability.map(|when| when.0) {
            None | Some(Acknowledge::Commit) => Durability::PerCommit,
            Some(Acknowledge::Deferred) => Durability::Deferred,
            Some(Acknowledge::Interval(every)) => Durability::Grouped(every),
        },
        cache_bytes: args.cache.unwrap_or(options.least_cache_bytes()),
        log_bytes,
        checkpoint_log_bytes: args.checkpoint_every.unwrap_or(CHECKPOINT_BYTES),
        log_buffer_bytes: log_bytes / 16,
        ..options
    };
    options
        .check()
        .map_err(|e| failure::engine("--as-adapter", e))?;
    let engine = InFile {
        name: spec.to_string(),
        options,
    };
    serve_stdio(&engine).map_err(|e| match e {
        ServeError::Line { .. } => Failure::usage(format!("--as-adapter: {e}")),
        ServeError::Io(_) => Failure::cannot_run(format!("--as-adapter: {e}")),
    })
}

/// A tree of pages whose stores are real files.
struct InFile {
    name: String,
    options: Options,
}

impl Engine for InFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Folder
    }

    fn promise(&self) -> Promise {
        match self.options.durability {
            Durability::PerCommit => Promise::OnReturn,
            Durability::Deferred | Durability::Grouped(_) => Promise::OnSync,
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            max_key: node::limits(self.options.page_size).max_key,
            max_record: MAX_RECORD,
            empty_key: true,
        }
    }

    fn batch_bytes(&self) -> Option<u64> {
        Some(self.options.log_bytes / 16)
    }

    fn atomic_bytes(&self) -> u64 {
        match self.options.log_packing {
            // It writes its last block again.
            LogPacking::Packed => 4096,
            LogPacking::Sparse => 512,
        }
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Folder(folder) = disk else {
            unreachable!("the folder that `open` names is what it asks for");
        };
        let path = folder.join(STORE);
        if !path.exists() {
            // As `Store::open_path` makes it, but smaller.
            FileDevice::create(&path, required_blocks(&self.options, FIRST_PAGES))?;
        }
        let store = Store::open_path(&path, |options| {
            *options = Options {
                limit_bytes: options.limit_bytes,
                create: options.create,
                ..self.options.clone()
            };
        })?;
        Ok(Arc::new(store))
    }

    fn close(&self, store: Arc<dyn Kv>) -> Option<Result<()>> {
        let store: Arc<dyn std::any::Any + Send + Sync> = store;
        let store = Arc::into_inner(store.downcast::<Store>().ok()?)?;
        Some(store.close())
    }
}

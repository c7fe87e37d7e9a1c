//! Engines in shared libraries: nine C functions instead of a pipe.
//!
//! [`header`] makes `treering_kv.h` from the table of functions. A library is trusted: it runs in
//! the oracle's own process, so a wild pointer of it ends the oracle.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libloading::Library;
use treering_engine::{Batch, Error, Kv, Lsn, Result, Visitor};

use super::claims::{Claims, Consistency, Durable, Has};
use super::error::ExecError;
use crate::engine::{Disk, DiskKind, Engine, Limits, Promise};

/// The functions: name, declaration and what it does.
const FUNCTIONS: [(&str, &str, &str); 9] = [
    (
        "treering_claims",
        "const char *treering_claims(void)",
        "The claims of docs/EXEC.md, as a JSON object.",
    ),
    (
        "treering_open",
        "int treering_open(const char *dir, void **store)",
        "Opens the store in a folder, or makes one.",
    ),
    (
        "treering_get",
        "int treering_get(void *store, const unsigned char *key, size_t key_len,\n                 treering_row found, void *context)",
        "Calls `found` once with the record, if the key is there.",
    ),
    (
        "treering_put",
        "int treering_put(void *store, const unsigned char *key, size_t key_len,\n                 const unsigned char *value, size_t value_len)",
        "Sets a key.",
    ),
    (
        "treering_delete",
        "int treering_delete(void *store, const unsigned char *key, size_t key_len)",
        "Removes a key, if it is there.",
    ),
    (
        "treering_scan",
        "int treering_scan(void *store, const unsigned char *bound, size_t bound_len, int back,\n                  treering_row row, void *context)",
        "Calls `row` with each record at or above `bound`, ascending; if `back`, with each below it\n * (all if it is NULL), descending; until `row` returns something other than 0.",
    ),
    (
        "treering_batch",
        "int treering_batch(void *store, const treering_change *changes, size_t number)",
        "Makes changes that take effect together. Only called if \"batch\" is claimed.",
    ),
    (
        "treering_sync",
        "int treering_sync(void *store)",
        "Makes all writes so far durable.",
    ),
    (
        "treering_close",
        "int treering_close(void *store)",
        "Closes the store. All its writes are then durable.",
    ),
];

/// The text of `treering_kv.h`.
#[must_use]
pub fn header() -> String {
    let mut text = "\
/* A key-value engine as a shared library, for `treering oracle --so FILE`; see docs/EXEC.md.
 * Generated from model/oracle/src/exec/so.rs. Every function but the first returns 0, or the number
 * of an error after which nothing has changed. */
#ifndef TREERING_KV_H
#define TREERING_KV_H

#include <stddef.h>

#ifdef __cplusplus
extern \"C\" {
#endif

/* Takes a record. Returns 0 to go on. The bytes are copied. */
typedef int (*treering_row)(void *context, const unsigned char *key, size_t key_len,
                            const unsigned char *value, size_t value_len);

/* A change of a batch. A value of NULL removes the key. */
typedef struct {
  const unsigned char *key;
  size_t key_len;
  const unsigned char *value;
  size_t value_len;
} treering_change;

"
    .to_owned();
    for (_, declaration, what) in FUNCTIONS {
        text += &format!("/* {what} */\n{declaration};\n\n");
    }
    text += "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
    text
}

type Row = unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize) -> c_int;

#[repr(C)]
struct Change {
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
}

/// The functions of a loaded library.
struct Functions {
    open: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int,
    get: unsafe extern "C" fn(*mut c_void, *const u8, usize, Row, *mut c_void) -> c_int,
    put: unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize) -> c_int,
    delete: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int,
    scan: unsafe extern "C" fn(*mut c_void, *const u8, usize, c_int, Row, *mut c_void) -> c_int,
    batch: unsafe extern "C" fn(*mut c_void, *const Change, usize) -> c_int,
    sync: unsafe extern "C" fn(*mut c_void) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
    // invariant: outlives the functions, which are its code.
    _library: Library,
}

/// An engine in a shared library.
#[derive(Clone)]
pub struct So {
    functions: Arc<Functions>,
    claims: Claims,
    name: &'static str,
    /// Held during each call, unless the library claims to be concurrent.
    turn: Arc<Mutex<()>>,
}

impl So {
    /// Loads a library.
    ///
    /// # Errors
    /// It cannot be loaded, a function is missing, or its claims are wrong.
    pub fn load(file: &Path) -> Result<So, ExecError> {
        let program = file.display().to_string();
        let missing = |why: libloading::Error| ExecError::Start {
            program: program.clone(),
            why: why.to_string(),
        };
        // SAFETY: the user asks for this library to be run.
        let library = unsafe { Library::new(file) }.map_err(missing)?;
        macro_rules! function {
            ($at:expr) => {
                // SAFETY: the header declares the function with this type.
                *unsafe { library.get(FUNCTIONS[$at].0.as_bytes()) }.map_err(missing)?
            };
        }
        let claims: unsafe extern "C" fn() -> *const c_char = function!(0);
        let functions = Functions {
            open: function!(1),
            get: function!(2),
            put: function!(3),
            delete: function!(4),
            scan: function!(5),
            batch: function!(6),
            sync: function!(7),
            close: function!(8),
            _library: library,
        };
        // SAFETY: the header declares that it takes nothing and returns a string.
        let text = unsafe { claims() };
        let broken = |expected: String| ExecError::Broken {
            name: program.clone(),
            line: 1,
            expected: format!("{expected} in what treering_claims returns"),
            found: "something else".into(),
        };
        if text.is_null() {
            return Err(broken("a string".into()));
        }
        // SAFETY: it is not null, and the header asks for a string.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        let claims = Claims::read(&text).map_err(broken)?;
        Ok(So {
            functions: Arc::new(functions),
            name: String::leak(format!("so:{}", claims.name)),
            claims,
            turn: Arc::default(),
        })
    }

    fn is_done(&self, status: c_int) -> Result<()> {
        match status {
            0 => Ok(()),
            number => Err(Error::Foreign {
                engine: self.name,
                why: format!("error {number}"),
            }),
        }
    }
}

impl Engine for So {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Folder
    }

    fn promise(&self) -> Promise {
        self.claims.durable.promise()
    }

    fn limits(&self) -> Limits {
        self.claims.limits()
    }

    fn batch_bytes(&self) -> Option<u64> {
        self.claims.has(Has::Batch).then_some(u64::MAX)
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Folder(folder) = disk else {
            unreachable!("it asked for a folder");
        };
        let folder = CString::new(folder.as_os_str().as_encoded_bytes());
        let folder = folder.expect("no path has a zero");
        let mut store = null_mut();
        let _turn = self.turn();
        // SAFETY: both pointers are valid for the call.
        let status = unsafe { (self.functions.open)(folder.as_ptr(), &raw mut store) };
        self.is_done(status)?;
        Ok(Arc::new(Store {
            so: self.clone(),
            folder,
            store: Mutex::new(Handle(store)),
        }))
    }

    fn keeps_all_when_dropped(&self) -> bool {
        true
    }

    fn is_linearizable(&self) -> bool {
        self.claims.consistency == Consistency::Linearizable
    }
}

impl So {
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let alone = !self.claims.has(Has::Concurrent);
        alone.then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Handle(*mut c_void);

// SAFETY: a library is called from one thread at a time, or claims that any may call.
unsafe impl Send for Handle {}

struct Store {
    so: So,
    folder: CString,
    store: Mutex<Handle>,
}

/// Where the rows of a call go. A panic must not cross the library, so it is kept until then.
struct Rows<'a, 'b> {
    visit: &'a mut Visitor<'b>,
    panic: Option<Box<dyn std::any::Any + Send>>,
}

/// Hands a row to the visitor of a [`Rows`].
unsafe extern "C" fn row(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
) -> c_int {
    // SAFETY: the context is that of `Store::rows`, which is waiting for the call to end.
    let rows = unsafe { &mut *context.cast::<Rows<'_, '_>>() };
    // SAFETY: the header says that the library passes bytes that are valid during the call.
    let (key, value) = unsafe { (bytes(key, key_len), bytes(value, value_len)) };
    let visited = std::panic::AssertUnwindSafe(|| (rows.visit)(key, value));
    match std::panic::catch_unwind(visited) {
        Ok(ControlFlow::Continue(())) => 0,
        Ok(ControlFlow::Break(())) => 1,
        Err(panic) => {
            rows.panic = Some(panic);
            1
        }
    }
}

/// # Safety
/// The bytes are valid for as long as they are used, if there are any.
unsafe fn bytes<'a>(at: *const u8, len: usize) -> &'a [u8] {
    match len {
        0 => &[],
        // SAFETY: as the caller says.
        _ => unsafe { std::slice::from_raw_parts(at, len) },
    }
}

impl Store {
    fn at(&self) -> *mut c_void {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Makes a call that delivers rows.
    fn rows(
        &self,
        visit: &mut Visitor<'_>,
        call: impl FnOnce(*mut c_void, *mut c_void) -> c_int,
    ) -> Result<()> {
        let mut rows = Rows { visit, panic: None };
        let turn = self.so.turn();
        let status = call(self.at(), (&raw mut rows).cast());
        drop(turn);
        if let Some(panic) = rows.panic {
            std::panic::resume_unwind(panic);
        }
        self.so.is_done(status)
    }

    fn wrote(&self, call: impl FnOnce(*mut c_void) -> c_int) -> Result<Lsn> {
        let _turn = self.so.turn();
        self.so.is_done(call(self.at()))?;
        // It syncs everything or nothing.
        Ok(Lsn(1))
    }
}

impl Kv for Store {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let mut found = false;
        let mut take = |_: &[u8], bytes: &[u8]| {
            found = true;
            value.extend_from_slice(bytes);
            ControlFlow::Break(())
        };
        self.rows(&mut take, |store, context| {
            // SAFETY: the store is open, and all pointers are valid for the call.
            unsafe { (self.so.functions.get)(store, key.as_ptr(), key.len(), row, context) }
        })?;
        Ok(found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        let put = self.so.functions.put;
        // SAFETY: the store is open, and all pointers are valid for the call.
        self.wrote(|store| unsafe {
            put(store, key.as_ptr(), key.len(), value.as_ptr(), value.len())
        })
    }

    fn delete(&self, key: &[u8]) -> Result<Lsn> {
        let delete = self.so.functions.delete;
        // SAFETY: as above.
        self.wrote(|store| unsafe { delete(store, key.as_ptr(), key.len()) })
    }

    fn write(&self, batch: &Batch) -> Result<Lsn> {
        let change = |(key, value): (&[u8], Option<&[u8]>)| Change {
            key: key.as_ptr(),
            key_len: key.len(),
            value: value.map_or(null(), <[u8]>::as_ptr),
            value_len: value.map_or(0, <[u8]>::len),
        };
        let changes: Vec<Change> = batch.iter().map(change).collect();
        let write = self.so.functions.batch;
        // SAFETY: as above.
        self.wrote(|store| unsafe { write(store, changes.as_ptr(), changes.len()) })
    }

    fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.rows(visit, |store, context| {
            // SAFETY: as above.
            unsafe { (self.so.functions.scan)(store, from.as_ptr(), from.len(), 0, row, context) }
        })
    }

    fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        if !self.so.claims.has(Has::ScanBack) {
            return super::store::scan_downwards(self, before, visit);
        }
        let (bound, len) = before.map_or((null(), 0), |key| (key.as_ptr(), key.len()));
        self.rows(visit, |store, context| {
            // SAFETY: as above.
            unsafe { (self.so.functions.scan)(store, bound, len, 1, row, context) }
        })
    }

    fn sync(&self, _: Lsn) -> Result<()> {
        let _turn = self.so.turn();
        if self.so.claims.durable != Durable::Close {
            // SAFETY: the store is open.
            return self
                .so
                .is_done(unsafe { (self.so.functions.sync)(self.at()) });
        }
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the store is open, and nobody uses it meanwhile.
        let closed = unsafe { (self.so.functions.close)(store.0) };
        self.so.is_done(closed)?;
        // SAFETY: both pointers are valid for the call.
        let opened = unsafe { (self.so.functions.open)(self.folder.as_ptr(), &raw mut store.0) };
        self.so.is_done(opened)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _turn = self.so.turn();
        // SAFETY: the store is open, and never used again.
        let _ = unsafe { (self.so.functions.close)(self.at()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TREERING_WRITE_API=1` renews it.
    #[test]
    fn the_header_is_as_generated() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../adapters/exec/c/treering_kv.h"
        );
        if std::env::var_os("TREERING_WRITE_API").is_some() {
            std::fs::write(file, header()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), header());
    }

    #[test]
    fn what_is_no_library_cannot_be_started() {
        let error = So::load(Path::new("/no/such/library.so")).err().unwrap();
        assert!(matches!(error, ExecError::Start { .. }), "{error}");
    }
}

//! The operation: a trace is a sequence of these.

/// The longest key that a trace can carry, in bytes.
pub const MAX_KEY: usize = 65_535;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OpKind {
    /// Look up a key.
    Get = 0,
    /// Set a key.
    Put = 1,
    /// Remove a key.
    Delete = 2,
    /// Read `scan_len` records, starting at a key.
    Scan = 3,
}

impl OpKind {
    /// All kinds, in report order.
    pub const ALL: [OpKind; 4] = [OpKind::Get, OpKind::Put, OpKind::Delete, OpKind::Scan];

    /// The name in trace files and reports.
    pub fn name(self) -> &'static str {
        match self {
            OpKind::Get => "get",
            OpKind::Put => "put",
            OpKind::Delete => "delete",
            OpKind::Scan => "scan",
        }
    }
}

/// One operation of a trace.
///
/// Readers fill the caller's `Op` again and again, so a replay does not allocate per operation. A
/// trace holds no values: a replay generates them from a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// The key. Keys are ordered by their bytes.
    pub key: Vec<u8>,
    /// Value length in bytes of a put; 0 for other kinds.
    pub value_len: u32,
    /// Number of records that a scan reads; 0 for other kinds.
    pub scan_len: u32,
    /// Which client issued it, counted from 0.
    pub client: u32,
    /// When it was issued, in nanoseconds since the trace began.
    pub time_ns: Option<u64>,
    /// Share of the value's bytes that are zero, in units of 1/255; `None` means the trace's
    /// default.
    pub zeros: Option<u8>,
}

impl Default for Op {
    fn default() -> Self {
        Op {
            kind: OpKind::Get,
            key: Vec::new(),
            value_len: 0,
            scan_len: 0,
            client: 0,
            time_ns: None,
            zeros: None,
        }
    }
}

impl Op {
    /// Returns the user bytes that this operation writes: key and value of a put, key of a delete.
    /// They are the denominator of every write amplification.
    ///
    /// ```
    /// use treering_traces::{Op, OpKind};
    ///
    /// let key = b"user7".to_vec();
    /// let put = Op { kind: OpKind::Put, key, value_len: 100, ..Op::default() };
    /// assert_eq!(put.user_bytes(), 105);
    /// ```
    pub fn user_bytes(&self) -> u64 {
        match self.kind {
            OpKind::Put => self.key.len() as u64 + u64::from(self.value_len),
            OpKind::Delete => self.key.len() as u64,
            OpKind::Get | OpKind::Scan => 0,
        }
    }
}

/// The first line of a trace, which describes it. The counts are exact: a writer fills them in when
/// it finishes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Header {
    /// Always [`Header::SCHEMA`].
    pub schema: String,
    /// A short name, used in reports.
    pub name: String,
    /// Where the operations come from: a generator with its parameters, or a format and file name.
    pub source: String,
    /// Number of operations.
    pub ops: u64,
    /// How many of the first operations are warm-up (the load phase of a generated trace).
    pub warmup_ops: u64,
    /// Number of distinct keys, if the writer knows it.
    pub records: Option<u64>,
    /// Default share of zero bytes in values, 0 to 1. B⁻-tree §4.1 uses one half.
    pub zeros: f64,
    /// Seed of a generated trace.
    pub seed: Option<u64>,
    /// Whether keys are blocks of a drive ([`crate::Blocks`]), which exist before the trace begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub addresses: bool,
}

impl Header {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "treering.trace/1";

    /// Returns a header with a name and a source, without warm-up, whose values have half their
    /// bytes zero.
    pub fn named(name: impl Into<String>, source: impl Into<String>) -> Header {
        Header {
            schema: Header::SCHEMA.into(),
            name: name.into(),
            source: source.into(),
            ops: 0,
            warmup_ops: 0,
            records: None,
            zeros: 0.5,
            seed: None,
            addresses: false,
        }
    }
}

/// A stream of operations that fills the caller's buffer.
///
/// ```
/// use treering_traces::{Op, OpKind, OpSource, TraceError};
///
/// /// Puts of keys that count down to 1.
/// struct Countdown(u8);
///
/// impl OpSource for Countdown {
///     fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
///         if self.0 == 0 {
///             return Ok(false);
///         }
///         *op = Op { kind: OpKind::Put, key: vec![self.0], value_len: 8, ..Op::default() };
///         self.0 -= 1;
///         Ok(true)
///     }
/// }
///
/// let (mut source, mut op, mut keys) = (Countdown(3), Op::default(), vec![]);
/// while source.next_op(&mut op)? {
///     keys.extend_from_slice(&op.key);
/// }
/// assert_eq!(keys, [3, 2, 1]);
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
pub trait OpSource {
    /// Reads the next operation into `op`. Returns `false` at the end.
    ///
    /// # Errors
    /// [`crate::TraceError`] names the file, the place and what was expected.
    fn next_op(&mut self, op: &mut Op) -> Result<bool, crate::TraceError>;
}

impl<S: OpSource + ?Sized> OpSource for Box<S> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, crate::TraceError> {
        (**self).next_op(op)
    }
}

//! Builders of binary traces that follow the layouts in the documentation of their formats.

/// An event of blktrace, with the fields that matter.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) time_ns: u64,
    pub(crate) sector: u64,
    pub(crate) bytes: u32,
    pub(crate) action: u32,
    pub(crate) device: (u32, u32),
    pub(crate) tail: &'a [u8],
}

/// Encodes a `struct blk_io_trace` of a given version and byte order.
pub(crate) fn blktrace(event: Event<'_>, version: u32, is_big: bool) -> Vec<u8> {
    let mut record = Vec::new();
    let mut put = |le: &[u8]| {
        let mut field = le.to_vec();
        if is_big {
            field.reverse();
        }
        record.extend(field);
    };
    let (major, minor) = event.device;
    put(&(0x6561_7400 | version).to_le_bytes());
    put(&0u32.to_le_bytes());
    put(&event.time_ns.to_le_bytes());
    put(&event.sector.to_le_bytes());
    put(&event.bytes.to_le_bytes());
    put(&event.action.to_le_bytes());
    put(&4711u32.to_le_bytes());
    put(&(major << 20 | minor).to_le_bytes());
    put(&0u32.to_le_bytes());
    put(&0u16.to_le_bytes());
    put(&(event.tail.len() as u16).to_le_bytes());
    record.extend(event.tail);
    record
}

/// Encodes the header of an lcs trace.
pub(crate) fn lcs_header(version: u64, requests: i64, objects: i64) -> Vec<u8> {
    let mut header = vec![0; 8192];
    let mut put = |at: usize, field: [u8; 8]| header[at..at + 8].copy_from_slice(&field);
    let magic = 0x1234_5678_9abc_def0u64.to_le_bytes();
    put(0, magic);
    put(8, version.to_le_bytes());
    put(16, 1u64.to_le_bytes());
    put(24, requests.to_le_bytes());
    put(32, objects.to_le_bytes());
    put(8184, magic);
    header
}

/// A cache request, with libCacheSim's fields.
#[derive(Clone, Copy, Default)]
pub(crate) struct CacheRequest {
    pub(crate) time_s: u32,
    pub(crate) id: u64,
    pub(crate) size: u32,
    pub(crate) op: u8,
    pub(crate) tenant: u32,
    pub(crate) ttl_s: u32,
}

/// Encodes a request as an lcs record.
pub(crate) fn lcs_record(version: u64, request: CacheRequest) -> Vec<u8> {
    let CacheRequest {
        time_s, id, size, ..
    } = request;
    let mut record = [&time_s.to_le_bytes()[..], &id.to_le_bytes()].concat();
    match version {
        1 | 2 => record.extend(size.to_le_bytes()),
        _ => record.extend(i64::from(size).to_le_bytes()),
    }
    if version >= 2 {
        record.extend((u32::from(request.op) | request.tenant << 8).to_le_bytes());
    }
    if version >= 3 {
        record.extend(request.ttl_s.to_le_bytes());
    }
    record.extend((-1i64).to_le_bytes());
    let features = match version {
        4.. => 1 << (version - 4),
        _ => 0,
    };
    record.extend([0x5a; 4].repeat(features));
    record
}

/// Encodes a whole lcs trace.
pub(crate) fn lcs(version: u64, requests: &[CacheRequest]) -> Vec<u8> {
    let mut trace = lcs_header(version, requests.len() as i64, 1);
    trace.extend(requests.iter().flat_map(|r| lcs_record(version, *r)));
    trace
}

/// Encodes a request as a 27-byte oracleGeneral record.
pub(crate) fn oracle(request: CacheRequest) -> Vec<u8> {
    let mut record = request.time_s.to_le_bytes().to_vec();
    record.extend(request.id.to_le_bytes());
    record.extend(request.size.to_le_bytes());
    record.extend([request.op, 0, 0]);
    record.extend((-1i64).to_le_bytes());
    record
}

//! The drive below the store: classes of blocks, each with a number and a write rate, through the FTL's mixed form.

use serde::Serialize;

/// The drive as the predictor needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceParams {
    /// Blocks of 4 KiB that the drive shows.
    pub capacity_blocks: u64,
    /// Physical pages of 4 KiB that its log can use (`T` of DEVICES §1.1): without free reserve and frontier.
    pub physical_pages: f64,
    /// Pages of an erase block.
    pub pages_per_block: u32,
}

/// What the drive writes, over user bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceWa {
    /// Host and garbage collection.
    pub total: f64,
    /// Garbage collection alone.
    pub gc: f64,
    /// `T / U` with `U` the pages in use, averaged over time.
    pub effective_alpha: f64,
}

/// Host writes by kind of block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Pages in use and block writes of each kind.
    pub kinds: Vec<(f64, f64)>,
}

impl Traffic {
    /// Adds `pages` blocks that are written `writes` times together.
    pub fn add(&mut self, pages: f64, writes: f64) {
        if pages > 0.0 {
            self.kinds.push((pages, writes));
        }
    }
}

/// Write amplification of the drive under `traffic`, over `user_bytes`.
#[must_use]
pub fn predict(device: &DeviceParams, traffic: &Traffic, user_bytes: f64) -> DeviceWa {
    let writes: f64 = traffic.kinds.iter().map(|k| k.1).sum();
    let pages: f64 = traffic.kinds.iter().map(|k| k.0).sum();
    let alpha = device.physical_pages / pages.max(1.0);
    if writes <= 0.0 {
        return DeviceWa {
            total: 0.0,
            gc: 0.0,
            effective_alpha: alpha,
        };
    }
    let amplification = mixed(traffic, pages, writes, alpha);
    let host = writes * 4096.0 / user_bytes;
    DeviceWa {
        total: host * amplification,
        gc: host * (amplification - 1.0),
        effective_alpha: alpha,
    }
}

/// Hot and cold in one log, FIFO cleaning (Desnoyers 2014; DEVICES §1.2): `p_i = exp(-(r_i/f_i) alpha/A)`,
/// `A = sum r_i / (1 - sum ...)`: of what is cleaned the share still valid is copied.
fn mixed(traffic: &Traffic, pages: f64, writes: f64, alpha: f64) -> f64 {
    // A block is cleaned after T/A host writes per page of log; class i survives with p_i and is copied until it dies:
    // its share of log writes is r_i / (1 - p_i).
    let log_writes = |a: f64| -> f64 {
        let each = |&(n, w): &(f64, f64)| {
            let (f, r) = (n / pages, w / writes);
            if r <= 0.0 {
                // Cold pages are copied once a turn: the limit of r/(1 - exp(-(r/f) alpha/A)).
                f * a / alpha
            } else {
                r / -(-(r / f) * alpha / a).exp_m1()
            }
        };
        traffic.kinds.iter().map(each).sum()
    };
    if alpha <= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (1.0, 1.0e6);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if log_writes(middle) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

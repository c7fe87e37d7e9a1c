//! Checks of generator parameters.

use super::keys::{key_space, stride_at};
use super::mix::Mix;
use super::params::{GenParams, Workload};
use crate::TraceError;

impl GenParams {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`TraceError::BadParameter`] names the parameter as on the command line, and says what is
    /// wrong.
    pub fn check(&self) -> Result<(), TraceError> {
        self.check_shares()?;
        self.check_counts()?;
        self.check_relevance()?;
        if let Some(theta) = self.theta
            && !(0.0..=Self::MAX_THETA).contains(&theta)
        {
            return Err(TraceError::parameter(
                "theta",
                format!("expected 0 to {}, found {theta}", Self::MAX_THETA),
            ));
        }
        if let Some(size) = self.value_size {
            size.check()?;
        }
        if self.workload == Workload::Mixgraph {
            self.mixgraph.check(self.records)?;
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), TraceError> {
        if self.records == 0 || self.records > Self::MAX_RECORDS {
            return Err(TraceError::parameter(
                "records",
                format!("expected 1 to 2^40, found {}", self.records),
            ));
        }
        if self.workload == Workload::Load {
            if let Some(ops) = self.ops {
                return Err(TraceError::parameter(
                    "ops",
                    format!("a load has one operation a record; leave --ops {ops} out"),
                ));
            }
            if self.no_load {
                return Err(TraceError::parameter(
                    "no-load",
                    "a load without its load would be empty",
                ));
            }
        }
        if self.operations() > Self::MAX_RECORDS {
            return Err(TraceError::parameter(
                "ops",
                format!("at most 2^40, found {}", self.operations()),
            ));
        }
        if self.clients == 0 {
            return Err(TraceError::parameter(
                "clients",
                "expected at least 1, found 0",
            ));
        }
        if self.shift_every == Some(0) {
            return Err(TraceError::parameter(
                "shift-every",
                "expected at least 1, found 0",
            ));
        }
        if self.max_scan == Some(0) {
            return Err(TraceError::parameter(
                "max-scan",
                "expected at least 1, found 0",
            ));
        }
        let size = self.key_bytes();
        let needed = self.records + Mix::new(self).inserts();
        if size == 0 || size > Self::MAX_KEY_SIZE || key_space(size) < needed {
            return Err(TraceError::parameter(
                "key-size",
                format!(
                    "{needed} distinct keys take {} to {} bytes, found {size}",
                    (1..8).find(|&k| key_space(k) >= needed).unwrap_or(8),
                    Self::MAX_KEY_SIZE
                ),
            ));
        }
        if let Some(density) = self.density {
            if !(density > 0.0 && density <= 1.0) {
                return Err(TraceError::parameter(
                    "density",
                    format!("expected a share above 0, up to 1, found {density}"),
                ));
            }
            if needed.saturating_mul(stride_at(density)) > key_space(size) {
                return Err(TraceError::parameter(
                    "density",
                    format!("{needed} keys of {size} bytes are denser than {density}"),
                ));
            }
        }
        Ok(())
    }

    fn check_shares(&self) -> Result<(), TraceError> {
        let shares = [
            ("writes", self.writes),
            ("deletes", self.deletes),
            ("scans", self.scans),
            ("hot-ops", self.hot_ops),
            ("hot-keys", self.hot_keys),
            ("zeros", Some(self.zeros)),
        ];
        for (name, share) in shares {
            if let Some(share) = share
                && !(0.0..=1.0).contains(&share)
            {
                return Err(TraceError::parameter(
                    name,
                    format!("expected a share from 0 to 1, found {share}"),
                ));
            }
        }
        let [writes, deletes, scans] = self.shares();
        // Decimal shares such as 0.7 + 0.2 + 0.1 may exceed 1 by rounding.
        if writes + deletes + scans > 1.0 + 1e-9 {
            return Err(TraceError::parameter(
                "writes",
                format!(
                    "writes, deletes and scans together must not exceed 1, \
                     found {writes} + {deletes} + {scans}"
                ),
            ));
        }
        Ok(())
    }

    /// Refuses parameters without effect, because the user must have misunderstood something.
    fn check_relevance(&self) -> Result<(), TraceError> {
        let name = self.workload.name();
        let refuse = |flag, why: &str| Err(TraceError::parameter(flag, format!("{name} {why}")));
        if self.workload.has_fixed_mix() {
            let why = "has a fixed mix of operations; take zipf or uniform to choose one";
            if self.writes.is_some() {
                return refuse("writes", why);
            }
            if self.deletes.is_some() {
                return refuse("deletes", why);
            }
            if self.scans.is_some() {
                return refuse("scans", why);
            }
        }
        if self.theta.is_some() && !self.workload.has_theta() {
            return refuse("theta", "has no Zipf exponent");
        }
        if !self.workload.has_hot_records() {
            let why = "has no hot records; take hotspot or shifting";
            if self.hot_ops.is_some() {
                return refuse("hot-ops", why);
            }
            if self.hot_keys.is_some() {
                return refuse("hot-keys", why);
            }
        }
        if self.shift_every.is_some() && self.workload != Workload::Shifting {
            return refuse("shift-every", "has no hot records that move; take shifting");
        }
        Ok(())
    }
}

//! Running means.

/// The mean of a quantity, from a sample after each of the host's writes.
#[derive(Debug, Default)]
pub(crate) struct Mean {
    sum: u128,
    samples: u64,
}

impl Mean {
    pub(crate) fn add(&mut self, sample: u64) {
        self.sum += u128::from(sample);
        self.samples += 1;
    }

    /// The mean, or `now` if there are no samples.
    pub(crate) fn or(&self, now: u64) -> f64 {
        match self.samples {
            0 => now as f64,
            samples => self.sum as f64 / samples as f64,
        }
    }
}

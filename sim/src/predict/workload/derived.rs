//! What earlier reports about the same trace have worked out.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

/// Values of one or more types, by a hash of everything that they depend on besides the trace.
#[derive(Debug, Default)]
pub(crate) struct Derived(Mutex<Vec<(u128, Arc<dyn Any + Send + Sync>)>>);

impl Derived {
    /// The value with this hash, which is made if there is none yet.
    ///
    /// # Errors
    /// That of `make`.
    pub(crate) fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        of: u128,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let values = self.0.lock();
        let known = values.iter().find(|(known, _)| *known == of);
        let known = known.map(|(_, value)| Arc::clone(value));
        drop(values);
        if let Some(Ok(value)) = known.map(Arc::downcast) {
            return Ok(value);
        }
        // Others may go on meanwhile, and perhaps make the same.
        let value = Arc::new(make()?);
        self.0.lock().push((of, value.clone()));
        Ok(value)
    }

    /// How many values there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

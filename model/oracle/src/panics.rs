//! Catches panics of an engine, which are findings. The message is kept instead of printed.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// The message of the last panic on this thread, while [`catch`] listens.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
    static LISTENING: RefCell<u32> = const { RefCell::new(0) };
}

fn listen_once() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if LISTENING.with(|depth| *depth.borrow() == 0) {
                before(info);
                return;
            }
            let payload = info.payload();
            let message = (payload.downcast_ref::<&str>().copied())
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            let place = info
                .location()
                .map(|l| format!(" at {}:{}", l.file(), l.line()));
            let said = format!("{message}{}", place.unwrap_or_default());
            HEARD.with(|heard| *heard.borrow_mut() = Some(said));
        }));
    });
}

/// Returns what `run` returns.
///
/// # Errors
/// The message of its panic, on one line.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    listen_once();
    LISTENING.with(|depth| *depth.borrow_mut() += 1);
    // Whatever the panic left half-done is dropped with the run.
    let caught = panic::catch_unwind(AssertUnwindSafe(run));
    LISTENING.with(|depth| *depth.borrow_mut() -= 1);
    caught.map_err(|_| {
        let said = HEARD.with(|heard| heard.borrow_mut().take());
        said.unwrap_or_else(|| "no message".into())
            .replace('\n', " ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message_and_place() {
        let said = catch(|| panic!("latch {} is lost", 7)).unwrap_err();
        assert!(said.starts_with("latch 7 is lost at "), "{said}");
        assert_eq!(catch(|| 5), Ok(5));
    }
}

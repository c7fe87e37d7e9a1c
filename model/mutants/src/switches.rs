//! The switches of generated mutants: `TREERING_MUTANT=N` switches one on, and
//! `TREERING_MUTANT_HITS=FILE` appends the number of each mutant that is reached.
#![allow(missing_docs, unreachable_pub, dead_code, clippy::all)]

use std::io::Write;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

const UNKNOWN: u32 = u32::MAX;
const NONE: u32 = u32::MAX - 1;
static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static HIT: [AtomicBool; COUNT_OF_MUTANTS] = [const { AtomicBool::new(false) }; COUNT_OF_MUTANTS];
static HITS: OnceLock<Option<Mutex<std::fs::File>>> = OnceLock::new();

#[cold]
fn learn() -> u32 {
    let named = std::env::var("TREERING_MUTANT").ok();
    let active = named.map_or(NONE, |n| n.parse().expect("TREERING_MUTANT is a number"));
    ACTIVE.store(active, Relaxed);
    active
}

#[cold]
fn first(n: u32) {
    let hits = HITS.get_or_init(|| {
        let path = std::env::var_os("TREERING_MUTANT_HITS")?;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        Some(Mutex::new(file.expect("a file for hits")))
    });
    if let Some(file) = hits {
        let mut file = file.lock().expect("nobody panics with it");
        writeln!(file, "{n}").expect("hits can be written");
    }
}

#[inline]
fn on(n: u32) -> bool {
    if !HIT[n as usize].load(Relaxed) && !HIT[n as usize].swap(true, Relaxed) {
        first(n);
    }
    let active = match ACTIVE.load(Relaxed) {
        UNKNOWN => learn(),
        active => active,
    };
    active == n
}

#[inline]
pub fn lt<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool {
    if on(n) { a <= b } else { a < b }
}
#[inline]
pub fn le<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool {
    if on(n) { a < b } else { a <= b }
}
#[inline]
pub fn gt<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool {
    if on(n) { a >= b } else { a > b }
}
#[inline]
pub fn ge<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool {
    if on(n) { a > b } else { a >= b }
}
#[inline]
pub fn eq<T: PartialEq + ?Sized>(n: u32, a: &T, b: &T) -> bool {
    on(n) != (a == b)
}
#[inline]
pub fn ne<T: PartialEq + ?Sized>(n: u32, a: &T, b: &T) -> bool {
    on(n) != (a != b)
}
#[inline]
pub fn plus<T: Add<Output = T> + Sub<Output = T>>(n: u32, a: T, b: T) -> T {
    if on(n) { a - b } else { a + b }
}
#[inline]
pub fn minus<T: Add<Output = T> + Sub<Output = T>>(n: u32, a: T, b: T) -> T {
    if on(n) { a + b } else { a - b }
}
#[inline]
pub fn yes(n: u32, c: bool) -> bool {
    on(n) || c
}
#[inline]
pub fn no(n: u32, c: bool) -> bool {
    !on(n) && c
}
#[inline]
pub fn flip(n: u32, c: bool) -> bool {
    on(n) != c
}
#[inline]
pub fn keep(n: u32) -> bool {
    !on(n)
}
pub trait Next {
    fn next(self) -> Self;
}
macro_rules! whole {
    ($($t:ty)*) => { $(impl Next for $t {
        #[inline]
        fn next(self) -> Self { self.wrapping_add(1) }
    })* };
}
whole!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
#[inline]
pub fn one_more<T: Next>(n: u32, v: T) -> T {
    if on(n) { v.next() } else { v }
}

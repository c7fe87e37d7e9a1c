//! The invariants of `MiniPage.tla`, by the same names.

use super::MiniPage;
use super::bug::Bug;
use super::records::{ABSENT, Kind, NOBODY, Page};
use super::room::{CLIENTS, Pages, Set};
use super::state::{Call, State, Step};

/// An invariant.
pub(super) type Invariant = fn(&MiniPage, &State) -> bool;

/// All invariants, by name.
pub(super) const INVARIANTS: [(&str, Invariant); 15] = [
    ("TypeInv", MiniPage::type_inv),
    ("PartitionInv", MiniPage::partition_inv),
    ("RouteInv", MiniPage::route_inv),
    ("LockInv", MiniPage::lock_inv),
    ("ArrivalInv", MiniPage::arrival_inv),
    ("RecordInv", MiniPage::record_inv),
    ("CapacityInv", MiniPage::capacity_inv),
    ("CacheInv", MiniPage::cache_inv),
    ("PhantomInv", MiniPage::phantom_inv),
    ("MirrorInv", MiniPage::mirror_inv),
    ("NoLossInv", MiniPage::no_loss_inv),
    ("ScanInv", MiniPage::scan_inv),
    ("AnswerInv", MiniPage::answer_inv),
    ("DeadlockInv", MiniPage::deadlock_inv),
    ("OutdatedInv", MiniPage::outdated_inv),
];

impl MiniPage {
    fn pages<'a>(&self, s: &'a State) -> &'a [Page] {
        &s.page[..usize::from(self.pages)]
    }

    /// The pages of `Actual`, one bit each from the lowest.
    fn actual(&self, s: &State) -> Pages {
        let mut used = 0;
        for (i, page) in self.pages(s).iter().enumerate() {
            used |= Pages::from(page.high != 0) << i;
        }
        for client in &s.client {
            if matches!(client.step, Step::Divided | Step::Joined) {
                used &= !(1 << (client.right - 1));
            }
        }
        used
    }

    /// The page of `Actual` that has the key, if any.
    fn home<'a>(&self, s: &'a State, actual: Pages, key: u8) -> Option<&'a Page> {
        let pages = self.pages(s).iter().enumerate();
        let mut covering = pages
            .filter_map(|(i, page)| (actual >> i & 1 == 1 && page.covers(key)).then_some(page));
        let home = covering.next();
        if covering.next().is_some() {
            None
        } else {
            home
        }
    }

    /// Each value is in the set that its variable ranges over. Holds by construction, except for
    /// the numbers.
    fn type_inv(&self, s: &State) -> bool {
        let content = |c: u8| usize::from(c) <= self.values.len();
        let page = |p: &Page| {
            p.low <= self.keys
                && p.high <= self.keys + 1
                && p.leaf.iter().all(|c| content(*c))
                && p.mini.rec.iter().all(|r| content(r.value()))
        };
        let client = s
            .client
            .iter()
            .all(|c| c.at <= self.pages && c.right <= self.pages);
        client && self.pages(s).iter().all(page) && s.inner.iter().all(|p| *p <= self.pages)
    }

    fn partition_inv(&self, s: &State) -> bool {
        let actual = self.actual(s);
        self.all_keys().all(|k| self.home(s, actual, k).is_some())
    }

    fn route_inv(&self, s: &State) -> bool {
        s.inner_lock != NOBODY || self.all_keys().all(|k| s.page(s.child(k)).covers(k))
    }

    fn lock_inv(&self, s: &State) -> bool {
        let mut pages = self.pages(s).iter();
        pages.all(|p| p.writer == NOBODY || p.readers == 0)
    }

    fn arrival_inv(&self, s: &State) -> bool {
        s.client.iter().all(|c| {
            !matches!(c.step, Step::Get | Step::Write | Step::Scan)
                || s.page(c.at).covers(c.call.target())
        })
    }

    fn record_inv(&self, s: &State) -> bool {
        self.pages(s).iter().all(|p| {
            let held = |k: u8| p.in_leaf(k) != ABSENT || p.mini.record(k).is_some();
            self.all_keys().all(|k| !held(k) || p.covers(k))
        })
    }

    fn capacity_inv(&self, s: &State) -> bool {
        let fits = |p: &Page| {
            p.mini.used() <= p.mini.size && super::records::present(&p.leaf) <= self.capacity
        };
        self.pages(s).iter().all(fits)
    }

    fn each_record(&self, s: &State, kind: Kind, holds: fn(u8, u8) -> bool) -> bool {
        self.pages(s).iter().all(|p| {
            let mut pairs = p.mini.rec.iter().zip(p.leaf);
            pairs.all(|(r, content)| r.kind() != kind || holds(r.value(), content))
        })
    }

    fn cache_inv(&self, s: &State) -> bool {
        self.each_record(s, Kind::Cache, |cached, content| cached == content)
    }

    fn phantom_inv(&self, s: &State) -> bool {
        self.each_record(s, Kind::Phantom, |_, content| content == ABSENT)
    }

    fn mirror_inv(&self, s: &State) -> bool {
        self.pages(s).iter().all(|p| {
            let mut pairs = p.mini.rec.iter().zip(p.leaf);
            !p.mini.mirror || pairs.all(|(r, content)| content == ABSENT || r.is_some())
        })
    }

    fn no_loss_inv(&self, s: &State) -> bool {
        let actual = self.actual(s);
        self.all_keys().all(|k| {
            let home = self.home(s, actual, k);
            home.is_some_and(|page| page.says(k) == s.holds(k))
        })
    }

    fn scan_inv(&self, s: &State) -> bool {
        s.client.iter().all(|client| {
            let Call::Scan { cursor, rows } = client.call else {
                return true;
            };
            let mut keys = rows.iter().map(|(key, _)| key).chain([cursor]);
            let mut last = keys.next().unwrap_or(0);
            keys.all(|key| std::mem::replace(&mut last, key) < key)
        })
    }

    fn answer_inv(&self, s: &State) -> bool {
        s.honest
    }

    /// `WaitsFor`, one bit for each client.
    fn waits_for(&self, s: &State, c: u8) -> Set {
        let bit = |client: u8| if client == NOBODY { 0 } else { 1 << client };
        let step = s.client(c).step;
        let (for_inner, for_right) = match self.bug {
            Bug::InnerBeforeRight => (Step::Left, Step::InnerFirst),
            _ => (Step::Both, Step::Left),
        };
        if step == for_inner || self.wants_split(s, c) {
            bit(s.inner_lock)
        } else if step == for_right {
            let right = s.page(s.child(s.page_of(c).high));
            right.readers | bit(right.writer)
        } else {
            0
        }
    }

    /// Who starts again reads the version again.
    fn outdated_inv(&self, s: &State) -> bool {
        self.all_clients().all(|c| {
            let step = s.client(c).step;
            s.outdated >> c & 1 == 0 || matches!(step, Step::Version | Step::Child)
        })
    }

    fn deadlock_inv(&self, s: &State) -> bool {
        let mut waits = [0; CLIENTS];
        for c in self.all_clients() {
            waits[usize::from(c)] = self.waits_for(s, c);
        }
        // A set of clients, each of which waits for another one in the set, is a deadlock.
        (1..(1 as Set) << self.clients.len()).all(|set| {
            let mut members = self.all_clients().filter(|c| set >> c & 1 == 1);
            members.any(|c| waits[usize::from(c)] & set == 0)
        })
    }
}

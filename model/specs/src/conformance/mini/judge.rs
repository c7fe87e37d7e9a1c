//! The judge: takes, for each recorded event, the steps of the mirror that correspond to it.

use std::collections::{BTreeMap, BTreeSet};

use treering_engine::PageId;
use treering_engine::mini::events::{Event, LeafImage, MiniImage};

use super::scale::{self, LEAF_CAPACITY, Row, Scale};
use super::tla;
use crate::Mirror;
use crate::conformance::behaviour::{InTla as _, KEPT};
use crate::conformance::led::{Notes, Recorded, holds, told};
use crate::conformance::refused::{self, Accepted, Tally, same};
use crate::conformance::situations::Situations;
use crate::mirror::wide::mini_page::records::{Content, Page};
use crate::mirror::wide::mini_page::{Action, Call, MiniPage, State, Step};
use crate::value::state_text;

/// An event of the tree that the mirror does not allow.
pub type Refusal = refused::Refusal<Heard, Action>;

/// A recorded event of a client, or of the engine on its behalf.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The client calls a get of a key.
    Get(u8),
    /// The client calls a write of a key. `Absent` deletes it.
    Write(u8, Content),
    /// The client calls a scan of all keys.
    Scan,
    /// The client calls a downward scan of all keys below this one.
    ScanBack(u8),
    /// The client's get returned this.
    Got(Content),
    /// The client's write returned.
    Done,
    /// The client's scan returned these keys and values.
    Rows(Vec<(u8, Content)>),
    /// The client's call failed.
    Failed(String),
    /// An event of the tree.
    Tree(Box<Event>),
}

impl Heard {
    /// The kind of the event.
    #[must_use]
    pub fn kind(&self) -> String {
        let text = match self {
            Heard::Tree(event) => format!("{event:?}"),
            other => format!("{other:?}"),
        };
        let name = text.split([' ', '(', '{']).next();
        name.unwrap_or_default().to_owned()
    }
}

/// A downward scan. The spec only has the page that the scan is at.
pub(super) struct Down {
    /// The scan continues below this key.
    before: u8,
    /// The rows that it has collected.
    rows: Vec<(u8, Content)>,
}

/// Judges one recording.
pub struct Judge {
    pub(super) mirror: MiniPage,
    pub(super) state: State,
    pub(super) scale: Scale,
    /// The sizes of mini-pages, in records.
    pub(super) sizes: &'static [u8],
    /// The spec's numbers of pages.
    pub(super) pages: BTreeMap<PageId, u8>,
    /// Pages whose mini-page is merged. A later event tells what becomes of the mini-page.
    pub(super) merged: BTreeSet<u8>,
    /// Downward scans, by client.
    pub(super) down: BTreeMap<u8, Down>,
    /// The additional client that the engine does not have.
    pub(super) nobody: u8,
    pub(super) notes: Notes<MiniPage>,
}

impl Judge {
    /// A judge for a tree of one empty leaf, with keys 1 to `keys`, whose mini-pages take up to so
    /// many per cent of a page.
    ///
    /// # Panics
    /// If the mirror has no room for as many.
    #[must_use]
    pub fn new(clients: u8, keys: u8, max_mini_page: u8) -> Self {
        let sizes = scale::sizes(max_mini_page);
        let mirror = MiniPage::unbounded(
            usize::from(clients) + 1,
            keys.into(),
            sizes.to_vec(),
            LEAF_CAPACITY,
        );
        let mut notes = Notes::default();
        notes.keep(KEPT);
        Self {
            state: mirror.first(),
            mirror,
            scale: Scale::new(keys),
            sizes,
            pages: BTreeMap::new(),
            merged: BTreeSet::new(),
            down: BTreeMap::new(),
            nobody: clients,
            notes,
        }
    }

    /// Notes the situations from now on.
    pub(super) fn note_situations(&mut self) {
        self.notes.note_situations();
    }

    /// Notes so many of the last steps from now on.
    pub(super) fn note_steps(&mut self, steps: usize) {
        self.notes.keep(steps);
    }

    /// The noted steps as a behaviour.
    pub(super) fn recorded(&self) -> Option<Recorded> {
        self.notes.recording(&self.mirror, self.constants_of_spec())
    }

    /// The situations in which each action was taken, as far as they were noted.
    pub(super) fn situations(&self) -> Situations {
        self.notes.situations()
    }

    /// The counts of accepted events and steps.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.notes.tally
    }

    /// Takes the steps of one event.
    ///
    /// # Errors
    /// If the mirror has no such steps, or an invariant does not hold after them.
    pub(crate) fn hear(&mut self, client: u8, heard: Heard) -> Result<(), Box<Refusal>> {
        let before = self.state;
        self.notes.hears();
        let judged =
            self.judge(client, &heard)
                .and_then(|()| match self.mirror.broken(&self.state) {
                    None => Ok(()),
                    Some(name) => self
                        .notes
                        .claim(Err(format!("{name} does not hold after it")), || {
                            holds(name)
                        }),
                });
        let number = self.notes.tally.heard + 1;
        judged.map_err(|why| {
            let told = told(number, &why, &heard);
            let now = Box::new(self.state);
            let now = (&self.mirror, &now);
            let behaviour = self.notes.finding(now, self.constants_of_spec(), &told);
            Box::new(Refusal {
                number,
                client: Some(client),
                heard,
                why,
                state: state_text(&self.mirror.variables(&before)),
                enabled: self.mirror.enabled(&before, client),
                behaviour,
            })
        })?;
        self.notes.tally.heard = number;
        Ok(())
    }

    fn judge(&mut self, c: u8, heard: &Heard) -> Accepted {
        match heard {
            Heard::Get(key) => self.take(Action::Call(c, Call::get(*key))),
            Heard::Write(key, value) => {
                let (key, value) = (*key, *value);
                self.take(Action::Call(c, Call::Write { key, value }))
            }
            Heard::Scan => self.take(Action::Call(c, Call::scan())),
            Heard::ScanBack(before) => {
                self.take(Action::Call(c, Call::scan()))?;
                self.goes_down(c, *before, Vec::new());
                Ok(())
            }
            Heard::Got(value) => {
                match *self.call(c) {
                    Call::Get { got, .. } => {
                        let is = same("the answer", *value, got);
                        let value = tla::content(*value);
                        let got = format!("call[c{}].got = {value}", c + 1);
                        self.notes.claim(is, || holds(&got))?;
                    }
                    _ => return Err("the client has no get outstanding".into()),
                }
                self.take(Action::Return(c))
            }
            Heard::Done => self.take(Action::Return(c)),
            Heard::Rows(rows) => {
                let found = match self.down.remove(&c) {
                    Some(down) => down.rows,
                    None => self.call(c).rows(),
                };
                self.notes.claim(same("the rows", rows, &found), || {
                    let rows = rows
                        .iter()
                        .map(|(key, value)| format!("<<{key}, {}>>", tla::content(*value)));
                    let rows: Vec<String> = rows.collect();
                    holds(&format!("call[c{}].rows = <<{}>>", c + 1, rows.join(", ")))
                })?;
                self.take(Action::Return(c))
            }
            Heard::Failed(why) => Err(format!("a store in memory should not fail: {why}")),
            Heard::Tree(event) => self.tree(c, event),
        }
    }

    fn tree(&mut self, c: u8, event: &Event) -> Accepted {
        match event {
            Event::Descends => self.descends(c),
            Event::Restarted { page } => {
                self.settle(*page)?;
                if self.mirror.is_valid(&self.state, c) {
                    // The change has not been reported yet.
                    self.notes.tally.took("(EarlyRestart)");
                    return Ok(());
                }
                self.take(Action::Restart(c))
            }
            Event::ReadMini { page, mini } => {
                self.arrives(c, *page)?;
                self.same_mini(*page, mini.as_ref(), without_bits)?;
                self.take(Action::ReadMini(c))
            }
            Event::ReadLeaf { page } => {
                self.arrives(c, *page)?;
                self.take(Action::ReadLeaf(c))
            }
            Event::Declined { page } => self.declines(c, *page),
            Event::Promoted { page, mini } => {
                self.upgrades(c, *page)?;
                self.take(Action::Promote(c))?;
                self.is_used(c)?;
                self.adopt_bits(*page, mini.as_ref())?;
                self.same_mini(*page, mini.as_ref(), |row| row)
            }
            Event::Grown { page, mini } => {
                self.upgrades(c, *page)?;
                let p = self.number(*page)?;
                // In the spec a mirror has room for a whole leaf.
                if !self.page(p).mini.mirror {
                    self.take(Action::Grow(c))?;
                }
                self.adopt_bits(*page, mini.as_ref())?;
                self.same_mini(*page, mini.as_ref(), |row| row)
            }
            Event::Full { page } => match self.step(c) {
                Step::Loaded => self.declines(c, *page),
                Step::Child => Ok(()),
                other => {
                    let why = format!("the client needs no room, but is at {other:?}");
                    self.notes
                        .claim(Err(why), || format!("Decline(c{})", c + 1))
                }
            },
            Event::Written { page, mini } => {
                self.upgrades(c, *page)?;
                self.take(Action::WriteRecord(c))?;
                self.is_used(c)?;
                self.adopt_bits(*page, mini.as_ref())?;
                self.same_mini(*page, mini.as_ref(), |row| row)
            }
            Event::AbsentAlready { page } => {
                self.arrives(c, *page)?;
                let next = self.mirror.absent_already(&self.state, c);
                self.state = next.ok_or("the mini-page does not know the key to be absent")?;
                self.notes.tally.took("(AbsentAlready)");
                Ok(())
            }
            Event::Scanned { page } => self.scans(c, *page),
            Event::Merged {
                page,
                cause,
                mini,
                leaf,
            } => self.merges(*page, *cause, mini, leaf.as_ref()),
            Event::LoggedAgain { page, mini } => {
                self.settle(*page)?;
                self.same_mini(*page, mini.as_ref(), without_bits)?;
                self.notes.tally.took("(LoggedAgain)");
                Ok(())
            }
            Event::Kept { page, mini } => self.keeps(*page, mini.as_ref()),
            Event::Mirrored { page, mini } => self.mirrors(*page, mini.as_ref()),
            Event::Dropped { page } => self.drops(*page),
            Event::Split {
                page,
                right,
                minis,
                leaves,
            } => self.splits(c, [*page, *right], minis, leaves.as_ref()),
            Event::Joined { page, right, leaf } => self.joins(*page, *right, leaf.as_ref()),
        }
    }

    fn descends(&mut self, c: u8) -> Accepted {
        match self.step(c) {
            Step::Descend => self.reads_inner(c),
            // The client reads the inner node again although no event made it: what it knows may be
            // out of date.
            Step::Child if self.mirror.is_valid(&self.state, c) => Ok(()),
            Step::Child => self.restarts(c),
            other => Err(format!(
                "the client is not looking for a page, but is at {other:?}"
            )),
        }
    }

    fn reads_inner(&mut self, c: u8) -> Accepted {
        self.take(Action::ReadVersion(c))?;
        self.take(Action::ReadChild(c))
    }

    fn restarts(&mut self, c: u8) -> Accepted {
        self.detour(Action::Restart(c))?;
        self.detour(Action::ReadVersion(c))?;
        self.detour(Action::ReadChild(c))
    }

    /// A client has the lock of the page that it was looking for. The spec has a single inner node.
    /// If that has changed elsewhere, the spec's client restarts, and the engine's need not.
    pub(super) fn arrives(&mut self, c: u8, page: PageId) -> Accepted {
        self.settle(page)?;
        let is = same("what it does", self.step(c), Step::Child);
        self.notes.claim(is, || format!("LockPage(c{})", c + 1))?;
        if !self.mirror.is_valid(&self.state, c) {
            self.restarts(c)?;
        }
        let found = self.mirror.client(&self.state, c).at();
        let p = self.number(page)?;
        let is = same("the page of its key", p, found);
        self.notes
            .claim(is, || holds(&format!("at[c{}] = {p}", c + 1)))?;
        self.take(Action::LockPage(c))
    }

    /// A client has its page exclusively: as a reader that has read the leaf, or as a writer from
    /// the start.
    fn upgrades(&mut self, c: u8, page: PageId) -> Accepted {
        match self.step(c) {
            Step::Loaded => self.take(Action::Upgrade(c))?,
            Step::Child => self.arrives(c, page)?,
            Step::Promote | Step::Write => {}
            other => {
                let why = format!("the client has no page, but is at {other:?}");
                return self
                    .notes
                    .claim(Err(why), || format!("Upgrade(c{})", c + 1));
            }
        }
        self.same_page(c, page)
    }

    fn same_page(&mut self, c: u8, page: PageId) -> Accepted {
        let at = self.mirror.client(&self.state, c).at();
        let p = self.number(page)?;
        self.notes.claim(same("the page", p, at), || {
            holds(&format!("at[c{}] = {p}", c + 1))
        })
    }

    fn declines(&mut self, c: u8, page: PageId) -> Accepted {
        self.same_page(c, page)?;
        let p = self.number(page)?;
        if let Call::Get { key, .. } = *self.call(c)
            && self.page(p).mini.mirror
        {
            // The client has made the mirror, and used its record.
            let rec = self.page(p).mini.rec;
            let used = |k: u8| k == key || rec[usize::from(k) - 1].hot();
            self.state = self.mirror.with_bits(&self.state, p, used);
        }
        self.take(Action::Decline(c))
    }

    /// The engine's new records count as used.
    fn is_used(&mut self, c: u8) -> Accepted {
        let (Call::Get { key, .. } | Call::Write { key, .. }) = *self.call(c) else {
            return Err("the client has neither a get nor a write outstanding".into());
        };
        self.read_for_nobody(key)
    }

    /// The engine's scans do not change reference bits.
    fn scans(&mut self, c: u8, page: PageId) -> Accepted {
        let p = self.number(page)?;
        let down = self.down.remove(&c);
        if let Some(down) = &down
            && self.page(p).covers(down.before)
        {
            // A page may begin between two keys. Then its first key is the upper one, and it is the
            // last page below that key.
            self.state = self.mirror.scans_from(&self.state, c, down.before);
            self.detour(Action::ReadVersion(c))?;
            self.detour(Action::ReadChild(c))?;
        }
        self.arrives(c, page)?;
        let low = self.page(p).low;
        if down.is_some() {
            self.state = self.mirror.scans_from(&self.state, c, low);
        }
        let before = self.state;
        self.take(Action::ScanPage(c))?;
        let untouched = self.mirror.untouched(&before, &self.state, p);
        if untouched != self.state {
            self.notes.tally.took("(ScanLeavesBits)");
            self.state = untouched;
        }
        if let Some(Down { before, mut rows }) = down {
            let found = self.call(c).rows().into_iter().rev();
            rows.extend(found.filter(|(key, _)| *key < before));
            self.goes_down(c, low, rows);
            self.notes.tally.took("(ScanDown)");
        }
        Ok(())
    }

    /// A scan continues below a key. The spec's scan begins at the last key there, and ends if
    /// there is none.
    fn goes_down(&mut self, c: u8, before: u8, rows: Vec<(u8, Content)>) {
        self.state = self.mirror.scans_from(&self.state, c, before - 1);
        self.down.insert(c, Down { before, rows });
    }

    // Requests to the mirror.

    pub(super) fn take(&mut self, action: Action) -> Accepted {
        let next = self.mirror.after(&self.state, action);
        let next = next.ok_or_else(|| format!("{action:?} is not enabled"));
        let next = self.notes.claim(next, || MiniPage::formula(&action))?;
        let before = std::mem::replace(&mut self.state, next);
        let mirror = &self.mirror;
        self.notes.took(
            &action,
            (Some(&Box::new(before)), &Box::new(self.state)),
            |before| vec![mirror.situation(before, action)],
        );
        Ok(())
    }

    /// Takes a step that the spec needs and the engine does not.
    pub(super) fn detour(&mut self, action: Action) -> Accepted {
        let next = self.mirror.after(&self.state, action);
        let next = next.ok_or_else(|| format!("{action:?}, on the way, is not enabled"));
        let next = self.notes.claim(next, || MiniPage::formula(&action))?;
        let before = std::mem::replace(&mut self.state, next);
        let states = (&Box::new(before), &Box::new(self.state));
        self.notes.passed(&action, states);
        self.notes.tally.took("(detour)");
        Ok(())
    }

    pub(super) fn step(&self, c: u8) -> Step {
        self.mirror.client(&self.state, c).step()
    }

    fn call(&self, c: u8) -> &Call {
        self.mirror.client(&self.state, c).call()
    }

    pub(super) fn page(&self, p: u8) -> &Page {
        self.mirror.page(&self.state, p)
    }

    /// The first page that is reported is the spec's first.
    pub(super) fn number(&mut self, page: PageId) -> Result<u8, String> {
        if self.pages.is_empty() {
            self.pages.insert(page, 1);
        }
        let known = self.pages.get(&page).copied();
        known.ok_or_else(|| format!("{page} is not a page of the tree"))
    }

    pub(super) fn same_mini(
        &mut self,
        page: PageId,
        told: Option<&MiniImage>,
        of: fn(Row) -> Row,
    ) -> Accepted {
        let p = self.number(page)?;
        let engine: Vec<Row> = self.scale.told(told)?.into_iter().map(of).collect();
        let mirror: Vec<Row> = scale::rows(self.page(p)).into_iter().map(of).collect();
        let is = same("the mini-page", &engine, &mirror);
        self.notes.claim(is, || {
            let [told, known] = [&engine, &mirror].map(|rows| {
                let rows = rows.iter().copied().map(without_bits);
                rows.collect::<Vec<_>>()
            });
            tla::records(&format!("mini[{p}]"), &engine, told == known)
        })?;
        let whole = told.is_some_and(|mini| mini.whole);
        let is = same("a mirror", whole, self.page(p).mini.mirror);
        self.notes.claim(is, || {
            let not = if whole { "" } else { "~" };
            holds(&format!("{not}mini[{p}].mirror"))
        })?;
        if whole {
            return Ok(());
        }
        let size = Scale::size(told)?;
        let is = same("its size", size, self.page(p).mini.size);
        self.notes
            .claim(is, || holds(&format!("mini[{p}].size = {size}")))
    }

    pub(super) fn same_leaf(&mut self, page: PageId, told: Option<&LeafImage>) -> Accepted {
        let p = self.number(page)?;
        let told = told.ok_or("the leaf could not be read")?;
        let engine = self.scale.told_leaf(told)?;
        let is = same("the leaf", &engine, &scale::leaf(self.page(p)));
        self.notes
            .claim(is, || tla::leaf(p, &format!("leaf[{p}]"), &engine))
    }
}

/// A row without its reference bit, which another reader may be setting.
pub(super) fn without_bits((key, kind, value, _): Row) -> Row {
    (key, kind, value, false)
}

//! Damage to a store in persistent memory, in lines of 256 bytes.
//!
//! The papers' leaves have no space for checksums. So wrong answers after damage to them are
//! counted, not refused; `engine/src/pm/mod.rs` lists what is detected. Superblock, directory and
//! records are guarded: damage to them is reported, or changes nothing. Whatever is damaged,
//! nothing may panic, and every scan must end.

use std::ops::Range;
use std::sync::Arc;

use treering_engine::device::{MemPm, PmDevice};
use treering_engine::{Error, Kv, PmPlace, Result as EngineResult, pm_places};

use super::harm::HarmKind;
use super::judge::{self, Judged, Reader, caught};
use super::state::State;
use super::store::{BUILT, PAST, Program, failed, fewer};
use super::tally::Tally;
use crate::deadline::Deadline;
use crate::finding::{Check, Finding};
use crate::random::Random;
use crate::{Disk, Engine, Write};

/// The unit of damage: an XPLine.
const LINE: usize = 256;
/// The number of cases for each store. A case costs ten times as much as one on blocks.
const CASES: u64 = 25;

/// A store and its history.
struct Built {
    state: State,
    /// The number of operations that made it.
    operations: u64,
    image: Vec<u8>,
    past: Vec<Vec<u8>>,
    program: Program,
    places: Vec<(Range<u64>, PmPlace)>,
    /// Lines that do not consist of zeros.
    in_use: Vec<usize>,
}

/// Damage to one medium.
struct Harm {
    kind: HarmKind,
    /// The damaged lines. Empty if the medium is truncated.
    lines: Vec<usize>,
    /// The content after the damage.
    image: Vec<u8>,
    sentence: String,
}

impl Built {
    fn place(&self, line: usize) -> PmPlace {
        let at = (line * LINE) as u64;
        let found = self.places.iter().find(|(range, _)| range.contains(&at));
        // Directory and chunks begin at lines. Nothing uses the space after the last chunk.
        found.map_or(PmPlace::Blank, |(_, place)| *place)
    }

    fn line(&self, line: usize) -> &[u8] {
        &self.image[line * LINE..][..LINE]
    }

    /// Whether the engine must report the damage if it changes an answer.
    fn guards(&self, harm: &Harm) -> bool {
        let guarded = |line: &usize| !matches!(self.place(*line), PmPlace::Leaves | PmPlace::Log);
        harm.kind != HarmKind::Old && harm.lines.iter().all(guarded)
    }

    fn pick(&self, random: &mut Random) -> Option<Harm> {
        let mut image = self.image.clone();
        // There is one superblock and many leaves.
        let mut line = || match random.below(20) {
            0 => 0,
            _ => self.in_use[random.below(self.in_use.len() as u64) as usize],
        };
        let (a, b) = (line(), line());
        let name = |line: usize| format!("line {line}, {:?}", self.place(line));
        let (kind, lines, sentence) = match random.below(20) {
            0..8 => {
                let bit = random.below(8 * LINE as u64) as usize;
                image[a * LINE + bit / 8] ^= 1 << (bit % 8);
                let sentence = format!("bit {bit} of {} flipped", name(a));
                (HarmKind::Flip, vec![a], sentence)
            }
            8..12 => {
                image[a * LINE..][..LINE].fill(0);
                (
                    HarmKind::Zero,
                    vec![a],
                    format!("{} reads as zeros", name(a)),
                )
            }
            12..16 => {
                let then = random.below(self.past.len() as u64) as usize;
                let old = &self.past[then];
                let lines = 0..self.image.len() / LINE;
                let changed = lines.filter(|line| old[line * LINE..][..LINE] != *self.line(*line));
                let changed: Vec<usize> = changed.collect();
                let at = random.below(changed.len().max(1) as u64) as usize;
                let line = *changed.get(at)?;
                image[line * LINE..][..LINE].copy_from_slice(&old[line * LINE..][..LINE]);
                let sentence = format!("{} as it was at time {then}", name(line));
                (HarmKind::Old, vec![line], sentence)
            }
            16..19 => {
                image[a * LINE..][..LINE].copy_from_slice(self.line(b));
                image[b * LINE..][..LINE].copy_from_slice(self.line(a));
                let sentence = format!("{} and {} swapped", name(a), name(b));
                (HarmKind::Swap, vec![a, b], sentence)
            }
            _ => {
                let lines = random.below((self.image.len() / LINE) as u64) as usize;
                image.truncate(lines * LINE);
                let sentence = format!("the medium cut after {lines} lines");
                (HarmKind::Cut, Vec::new(), sentence)
            }
        };
        (image != self.image).then_some(Harm {
            kind,
            lines,
            image,
            sentence,
        })
    }
}

fn newest(device: &MemPm) -> Vec<u8> {
    device.crash(&mut |n| n - 1).to_vec()
}

fn disk(device: &Arc<MemPm>) -> Disk {
    Disk::Pm(Arc::clone(device) as Arc<dyn PmDevice>)
}

fn build(
    engine: &dyn Engine,
    bytes: u64,
    state: State,
    operations: usize,
    random: &mut Random,
    until: &Deadline,
) -> EngineResult<Built> {
    let device = Arc::new(MemPm::new(bytes));
    let open = || engine.open(&disk(&device));
    let mut program = Program::new(engine);
    let mut past = Vec::new();
    let mut store = open()?;
    let mut done = 0;
    for n in 0..operations {
        // At least one earlier time is needed.
        if n > 0 && until.is_over() {
            break;
        }
        done += 1;
        program.step(&*store, random)?;
        if random.one_in(400) {
            store.checkpoint()?;
            drop(store);
            store = open()?;
        }
        if n % (operations / PAST).max(1) == 0 {
            past.push(newest(&device));
        }
    }
    let image = match state {
        State::AtRest => {
            store.checkpoint()?;
            drop(store);
            newest(&device)
        }
        // A power cut that keeps as little as possible.
        State::Cut => device.crash(&mut |_| 0).to_vec(),
    };
    let places = pm_places(Arc::new(MemPm::from_image(image.clone())))?;
    let lines = image.chunks_exact(LINE).enumerate();
    let in_use = lines.filter(|(_, line)| line.iter().any(|byte| *byte != 0));
    let in_use = in_use.map(|(at, _)| at).collect();
    Ok(Built {
        state,
        operations: done,
        image,
        past,
        program,
        places,
        in_use,
    })
}

/// Opens what is left, and reads all of it.
fn judge(engine: &dyn Engine, built: &Built, harm: &Harm) -> Result<Judged, Finding> {
    let device = Arc::new(MemPm::from_image(harm.image.clone()));
    let mut reader = Reader {
        keys: &built.program.keys,
        cut_at: None,
        judged: Judged::default(),
        except: judge::Later::new(),
    };
    let store = match engine.open(&disk(&device)) {
        Ok(store) => store,
        // An error that the medium is too small for any store reports the damage too.
        Err(Error::BadOption { name: "device", .. }) if harm.kind == HarmKind::Cut => {
            reader.judged.told = true;
            return Ok(reader.judged);
        }
        Err(e) => {
            judge::tells("open", &e)?;
            reader.judged.told = true;
            return Ok(reader.judged);
        }
    };
    reader.gets(&*store)?;
    reader.scans(&*store)?;
    if !reader.judged.told {
        on(engine, built, &device, &*store)?;
    }
    Ok(reader.judged)
}

/// Writes more, cuts the power, and reads everything.
fn on(
    engine: &dyn Engine,
    built: &Built,
    device: &Arc<MemPm>,
    store: &dyn Kv,
) -> Result<(), Finding> {
    let later = match judge::write_on(store, &built.program.keys) {
        Ok(later) => later,
        Err(Error::PmFull { .. }) if engine.may_refuse(&Write::Put) => return Ok(()),
        Err(e) => return judge::tells("write on", &e),
    };
    let cut = Arc::new(MemPm::from_image(device.crash(&mut |_| 0)));
    let store = match engine.open(&disk(&cut)) {
        Ok(store) => store,
        Err(e) => return judge::tells("open again", &e),
    };
    judge::read_on(&*store, &later)?;
    let mut again = Reader {
        keys: &built.program.keys,
        cut_at: None,
        judged: Judged::default(),
        except: later,
    };
    again.gets(&*store)
}

/// Builds the store of `seed` with this many operations on a medium of this many bytes, and damages
/// it in several ways.
pub(super) fn run(
    engine: &dyn Engine,
    bytes: u64,
    seed: u64,
    operations: usize,
    until: &Deadline,
) -> Result<Tally, Box<Finding>> {
    let mut random = Random::part(seed, 0);
    let state = State::any(&mut random);
    let building = until.part(BUILT);
    let built = build(engine, bytes, state, operations, &mut random, &building).map_err(failed)?;
    until.join(&building);
    let mut tally = Tally {
        stores: 1,
        operations: built.operations,
        ..Tally::default()
    };
    for case in 0..CASES {
        if until.is_over() {
            break;
        }
        let mut random = Random::part(seed, case + 1);
        let Some(harm) = built.pick(&mut random) else {
            continue;
        };
        let guarded = built.guards(&harm);
        tally.unguarded += u64::from(!guarded);
        let judged = caught(|| judge(engine, &built, &harm));
        let kind = &mut tally.harms[harm.kind as usize];
        kind.0 += 1;
        match judged {
            Ok(judged) => kind.1 += u64::from(judged.told),
            // A panic, or an endless scan, is a finding whatever was damaged.
            Err(finding) if !guarded && finding.check == Check::Damage => {
                tally.unguarded_wrong += 1
            }
            Err(finding) => {
                let what = format!(
                    "{}, {} (seed {seed}, case {case}{}): {}",
                    harm.sentence,
                    built.state,
                    fewer(built.operations, operations),
                    finding.what
                );
                return Err(Box::new(Finding { what, ..finding }));
            }
        }
    }
    Ok(tally)
}

//! Scans, upwards and downwards, and the checks of their rows.

use std::ops::{ControlFlow, Range};

use super::Session;
use crate::finding::{Check, Finding};
use crate::program::KeyNo;
use crate::reference::{Content, Written};
use crate::value;

impl Session<'_> {
    /// Reads keys in order, from the first key if there is no `from`. Checks that they are sorted,
    /// distinct, in the range, and no more than requested.
    pub(super) fn read_range(
        &self,
        from: Option<KeyNo>,
        to: Option<KeyNo>,
        limit: Option<u32>,
    ) -> Result<Result<Vec<(KeyNo, Content)>, String>, treering_engine::Error> {
        let program = self.program;
        let end = to.map_or(program.keys.len(), |to| to.0 as usize);
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let (mut rows, mut wrong, mut over) = (Vec::new(), None, limit == 0);
        let mut next = from.map_or(0, |from| from.0 as usize);
        let mut visit = |key: &[u8], bytes: &[u8]| {
            if over {
                wrong.get_or_insert_with(|| {
                    "another row after the visitor had stopped the scan".to_owned()
                });
                return ControlFlow::Break(());
            }
            let text = key.escape_ascii();
            // Rows are sorted, so the search starts here. It is mostly the next key or one soon
            // after.
            let at = match program.keys.get(next) {
                Some(k) if k == key => Ok(0),
                _ => program.keys[next.min(program.keys.len())..]
                    .binary_search_by(|k| k.as_slice().cmp(key)),
            };
            match (at, Written::decode(bytes)) {
                (Err(_), _) => {
                    wrong = Some(format!(
                        "\"{text}\", which is out of order or was never written"
                    ));
                }
                (Ok(_), None) => {
                    wrong = Some(format!("\"{text}\": {}", value::describe(Some(bytes))));
                }
                (Ok(at), written) => {
                    let at = next + at;
                    if at >= end {
                        over = true;
                        return ControlFlow::Break(());
                    }
                    rows.push((KeyNo(at as u32), written));
                    next = at + 1;
                }
            }
            over = wrong.is_some() || rows.len() >= limit;
            if over {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        if limit > 0 {
            let from = from.map_or(&b""[..], |from| program.key(from));
            self.store().scan(from, &mut visit)?;
        }
        Ok(match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(rows),
        })
    }

    pub(super) fn scan(
        &mut self,
        at: usize,
        from: KeyNo,
        to: Option<KeyNo>,
        limit: Option<u32>,
    ) -> Result<(), Finding> {
        let rows = match self.read_range(Some(from), to, limit) {
            Ok(Ok(rows)) => rows,
            Ok(Err(wrong)) => {
                let expected = "rows in order, of written values".to_owned();
                return Err(self.finding(Check::Scan, at, expected, wrong));
            }
            Err(e) => return self.unread(at, &e),
        };
        // The scan says something about the keys up to its bound, or up to its last row if the
        // limit stopped it.
        let bound = to.map_or(self.program.keys.len() as u32, |to| to.0);
        let stopped = limit.is_some_and(|limit| rows.len() >= limit as usize);
        let end = match (stopped, rows.last()) {
            (true, Some((last, _))) => last.0 + 1,
            (true, None) => from.0,
            (false, _) => bound.max(from.0),
        };
        self.judge_rows(at, from.0..end, rows)
    }

    /// Reads keys in descending order.
    pub(super) fn scan_back(
        &mut self,
        at: usize,
        before: Option<KeyNo>,
        limit: Option<u32>,
    ) -> Result<(), Finding> {
        let program = self.program;
        let end = before.map_or(program.keys.len(), |before| before.0 as usize);
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let (mut rows, mut wrong, mut next) = (Vec::new(), None, end);
        let mut visit = |key: &[u8], bytes: &[u8]| {
            let place = program.keys[..next].binary_search_by(|k| k.as_slice().cmp(key));
            match (place, Written::decode(bytes)) {
                _ if rows.len() >= limit || wrong.is_some() => {
                    wrong = Some("another row after the visitor had stopped the scan".to_owned());
                }
                (Ok(place), Some(written)) => {
                    rows.push((KeyNo(place as u32), Some(written)));
                    next = place;
                }
                (Ok(_), None) => {
                    let text = key.escape_ascii();
                    wrong = Some(format!("\"{text}\": {}", value::describe(Some(bytes))));
                }
                (Err(_), _) => {
                    let text = key.escape_ascii();
                    wrong = Some(format!(
                        "\"{text}\", which is out of order, not below the bound, or was never written"
                    ));
                }
            }
            if wrong.is_some() || rows.len() >= limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        if limit > 0 {
            let before = before.map(|before| program.key(before));
            if let Err(e) = self.store().scan_back(before, &mut visit) {
                return self.unread(at, &e);
            }
        }
        if let Some(wrong) = wrong {
            let expected = "rows in descending order, of written values".to_owned();
            return Err(self.finding(Check::Scan, at, expected, wrong));
        }
        rows.reverse();
        let from = match rows.first() {
            _ if rows.len() < limit => 0,
            Some((first, _)) => first.0,
            None => end as u32,
        };
        self.judge_rows(at, from..end as u32, rows)
    }

    /// Checks that these are exactly the rows of the keys in a range, each with a permitted
    /// content.
    fn judge_rows(
        &self,
        at: usize,
        keys: Range<u32>,
        rows: Vec<(KeyNo, Content)>,
    ) -> Result<(), Finding> {
        let mut rows = rows.into_iter().peekable();
        let mut all = Vec::new();
        for key in keys {
            let key = KeyNo(key);
            let row = rows.next_if(|(k, _)| *k == key);
            let found = row.and_then(|(_, content)| content);
            if self.reference.doubtful() > 0 {
                all.push((key, found));
            }
            if !self.reference.may_read(key, found) {
                let name = self.program.key(key).escape_ascii();
                let expected = Written::describe(self.reference.get(key));
                let check = self.blame(&[key]);
                let found = Written::describe(found);
                return Err(self.finding(check, at, format!("\"{name}\": {expected}"), found));
            }
        }
        if !self.reference.may_read_all(&all) {
            let expected = "all changes of a batch that failed, or none".to_owned();
            let found = "some of them".to_owned();
            return Err(self.finding(Check::Reference, at, expected, found));
        }
        Ok(())
    }

    /// The check that fails if a scan was wrong about these keys: the scan's if gets are right
    /// about them, else the store's content.
    pub(super) fn blame(&self, keys: &[KeyNo]) -> Check {
        let mut bytes = Vec::new();
        let mut get_is_right = |key: &KeyNo| {
            let found = self.store().get(self.program.key(*key), &mut bytes);
            let content = match found {
                Ok(true) => Written::decode(&bytes).map(Some),
                Ok(false) => Some(None),
                Err(_) => None,
            };
            content.is_some_and(|content| self.reference.may_read(*key, content))
        };
        if keys.iter().all(&mut get_is_right) {
            Check::Scan
        } else {
            Check::Reference
        }
    }
}

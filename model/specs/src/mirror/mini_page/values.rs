//! Reads the model's constants from a configuration, and translates its states to TLA+.

use super::invariants::INVARIANTS;
use super::records::{ABSENT, Content, Image, NOBODY, PENDING, Page, Record, Sizes};
use super::room::{CLIENTS, KEYS, Set};
use super::state::{Call, Client, PAGES, Rows, State};
use super::{MiniPage, listed, named};
use crate::{Config, ConfigError, Value};

/// A constant that is a set of small integers, in ascending order.
fn integers(config: &Config, name: &str, most: usize) -> Result<Vec<u8>, ConfigError> {
    let members = config.members(name, most)?;
    let small = |value: &Value| match value {
        Value::Int(n @ 1..) if *n <= most as i64 => Ok(*n as u8),
        other => Err(config.wrong(
            name,
            format!("expected integers 1 to {most}, found {other}"),
        )),
    };
    members.iter().map(small).collect()
}

/// The model with the constants of a configuration.
///
/// # Errors
/// If a constant is missing, of another kind, or too large.
pub(super) fn model(config: &Config) -> Result<MiniPage, ConfigError> {
    let clients = config.members("Clients", CLIENTS)?;
    let values = config.members("Values", usize::from(PENDING) - 1)?;
    let among = |name: &str| -> Result<Set, ConfigError> {
        let members = config.members(name, CLIENTS)?;
        let bit = |(i, c): (usize, &Value)| Set::from(members.contains(c)) << i;
        Ok(clients.iter().enumerate().map(bit).sum())
    };
    let requests = |c: usize| -> Result<Vec<Call>, ConfigError> {
        let mut calls = Vec::new();
        if among("Getters")? >> c & 1 == 1 {
            let keys = integers(config, "GetKeys", KEYS)?.into_iter();
            calls.extend(keys.map(|key| Call::Get { key, got: PENDING }));
        }
        if among("Writers")? >> c & 1 == 1 {
            for key in integers(config, "PutKeys", KEYS)? {
                let values = 1..=values.len() as u8;
                calls.extend(values.map(|value| Call::Write { key, value }));
            }
            let keys = integers(config, "DeleteKeys", KEYS)?.into_iter();
            let value = ABSENT;
            calls.extend(keys.map(|key| Call::Write { key, value }));
        }
        if among("Scanners")? >> c & 1 == 1 {
            let rows = Rows::NONE;
            calls.push(Call::Scan { cursor: 1, rows });
        }
        Ok(calls)
    };
    Ok(MiniPage {
        requests: (0..clients.len()).map(requests).collect::<Result<_, _>>()?,
        keepers: among("Keepers")?,
        keys: integers(config, "Keys", KEYS)?.len() as u8,
        pages: integers(config, "Pages", PAGES)?.len() as u8,
        sizes: Sizes(integers(config, "Sizes", KEYS)?),
        capacity: config.int("LeafCapacity", KEYS as u8)?,
        absent: config.constant_value("Absent")?.clone(),
        pending: config.constant_value("Pending")?.clone(),
        bug: named(config, "Bug")?,
        invariants: listed(config, &INVARIANTS)?,
        clients,
        values,
    })
}

impl MiniPage {
    /// The variables of the module.
    pub(super) fn tla(&self, state: &State) -> Vec<(&'static str, Value)> {
        let pages = &state.page[..usize::from(self.pages)];
        let by_page = |f: &dyn Fn(&Page) -> Value| Value::seq(pages.iter().map(f));
        let clients = &state.client[..self.clients.len()];
        let by_client = |f: &dyn Fn(&Client) -> Value| {
            Value::fun(self.clients.iter().cloned().zip(clients.iter().map(f)))
        };
        let inner = state.inner[..usize::from(self.keys)].iter();
        vec![
            ("inner", Value::seq(inner.map(|p| Value::int(*p)))),
            ("innerLock", self.client_or_nobody(state.inner_lock)),
            ("lock", by_page(&|p| self.lock_value(p))),
            ("low", by_page(&|p| Value::int(p.low))),
            ("high", by_page(&|p| Value::int(p.high))),
            ("leaf", by_page(&|p| self.image_value(&p.leaf))),
            ("mini", by_page(&|p| self.mini_value(p))),
            ("call", by_client(&|c| self.call_value(&c.call))),
            ("step", by_client(&|c| Value::variant(c.step))),
            ("at", by_client(&|c| Value::int(c.at))),
            ("right", by_client(&|c| Value::int(c.right))),
            ("outdated", self.client_set(state.outdated)),
            ("store", self.image_value(&state.store)),
            ("honest", state.honest.into()),
        ]
    }

    fn client_or_nobody(&self, c: u8) -> Value {
        match c {
            NOBODY => Value::str("nobody"),
            c => self.clients[usize::from(c)].clone(),
        }
    }

    fn client_set(&self, bits: Set) -> Value {
        let among = (0..).zip(&self.clients).filter(|(i, _)| bits >> i & 1 == 1);
        Value::set(among.map(|(_, client)| client.clone()))
    }

    fn content(&self, content: Content) -> Value {
        match content {
            ABSENT => self.absent.clone(),
            PENDING => self.pending.clone(),
            n => self.values[usize::from(n) - 1].clone(),
        }
    }

    fn image_value(&self, image: &Image) -> Value {
        let contents = image[..usize::from(self.keys)].iter();
        Value::seq(contents.map(|c| self.content(*c)))
    }

    fn lock_value(&self, page: &Page) -> Value {
        Value::record([
            ("writer", self.client_or_nobody(page.writer)),
            ("readers", self.client_set(page.readers)),
        ])
    }

    fn record_value(&self, record: Record) -> Value {
        Value::record([
            ("kind", Value::variant(record.kind())),
            ("value", self.content(record.value())),
            ("hot", record.hot().into()),
        ])
    }

    fn mini_value(&self, page: &Page) -> Value {
        let records = page.mini.rec[..usize::from(self.keys)].iter();
        Value::record([
            ("size", Value::int(page.mini.size)),
            ("mirror", page.mini.mirror.into()),
            ("rec", Value::seq(records.map(|r| self.record_value(*r)))),
        ])
    }

    fn call_value(&self, call: &Call) -> Value {
        let row = |(k, v)| Value::seq([Value::int(k), self.content(v)]);
        match *call {
            Call::Idle => Value::record([("op", Value::str("none"))]),
            Call::Get { key, got } => Value::record([
                ("op", Value::str("get")),
                ("key", Value::int(key)),
                ("got", self.content(got)),
            ]),
            Call::Write { key, value } => Value::record([
                ("op", Value::str("write")),
                ("key", Value::int(key)),
                ("value", self.content(value)),
            ]),
            Call::Scan { cursor, rows } => Value::record([
                ("op", Value::str("scan")),
                ("cursor", Value::int(cursor)),
                ("rows", Value::seq(rows.iter().map(row))),
            ]),
        }
    }
}

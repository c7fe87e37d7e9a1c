//! TLA+ values, and the text that TLC prints for them.
//!
//! In TLA+ sequences, tuples and records are functions, and here they have the same form: a
//! sequence is a function from `1..n`, a record a function from strings. So a value has one
//! representation however a checker prints it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A TLA+ value. The order of values is that in which sets and functions are printed.
///
/// ```
/// use treering_specs::Value;
///
/// let record = Value::parse(r#"[lsn |-> 3, kept |-> {"b", "a"}]"#).unwrap();
/// assert_eq!(record, Value::record([
///     ("kept", Value::set(["a", "b"].map(Value::str))),
///     ("lsn", Value::int(3)),
/// ]));
/// // A sequence is a function from 1..n.
/// assert_eq!(Value::parse("<<7>>"), Value::parse("(1 :> 7)"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// `TRUE`, `FALSE`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(Cow<'static, str>),
    /// A model value: an identifier that equals only itself.
    Model(Cow<'static, str>),
    /// A finite set.
    Set(BTreeSet<Value>),
    /// A function. Every sequence, tuple and record is one too.
    Fun(BTreeMap<Value, Value>),
}

impl Value {
    /// An integer.
    pub fn int(value: impl Into<i64>) -> Self {
        Self::Int(value.into())
    }

    /// A string.
    pub fn str(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Str(text.into())
    }

    /// The name that the spec has for an enum's variant.
    pub fn variant(of: impl Into<&'static str>) -> Self {
        Self::str(of.into())
    }

    /// A model value.
    pub fn model(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Model(name.into())
    }

    /// A set.
    pub fn set(members: impl IntoIterator<Item = Self>) -> Self {
        // Not `collect`, which is compiled with a sort of its own for each caller's iterator.
        let mut set = BTreeSet::new();
        for member in members {
            set.insert(member);
        }
        Self::Set(set)
    }

    /// A function from pairs of argument and value.
    pub fn fun(pairs: impl IntoIterator<Item = (Self, Self)>) -> Self {
        let mut fun = BTreeMap::new();
        for (argument, value) in pairs {
            fun.insert(argument, value);
        }
        Self::Fun(fun)
    }

    /// A sequence.
    pub fn seq(items: impl IntoIterator<Item = Self>) -> Self {
        Self::fun((1i64..).map(Self::Int).zip(items))
    }

    /// A record.
    pub fn record(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::fun(fields.into_iter().map(|(name, v)| (Self::str(name), v)))
    }

    /// Parses all of `text`, a value as TLC prints it.
    ///
    /// # Errors
    /// What was expected, and the byte at which something else was found.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value()?;
        parser.end()?;
        Ok(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// Parses a state as TLC prints it: `/\ name = value` for each variable, in any order. The result
/// is sorted by name.
///
/// # Errors
/// What was expected, and the byte at which something else was found.
pub fn parse_state(text: &str) -> Result<Vec<(String, Value)>, ParseError> {
    let mut parser = Parser { text, at: 0 };
    let mut variables = Vec::new();
    while !parser.rest().is_empty() {
        // The state of a module with one variable is printed without the conjunction.
        let _ = parser.take("/\\");
        let name = parser.identifier()?.to_owned();
        parser.expect("=")?;
        variables.push((name, parser.value()?));
    }
    variables.sort();
    Ok(variables)
}

/// Writes a state in the form that [`parse_state`] reads, with variables sorted by name.
pub fn state_text(variables: &[(impl AsRef<str>, Value)]) -> String {
    use fmt::Write as _;
    let mut order: Vec<_> = variables.iter().map(|(n, v)| (n.as_ref(), v)).collect();
    order.sort();
    order.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "/\\ {name} = {value}");
        text
    })
}

/// Text that is not a TLA+ value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: expected {expected}, found `{found}`")]
pub struct ParseError {
    /// The byte offset in the text.
    pub at: usize,
    /// What the text should hold there.
    pub expected: &'static str,
    /// What the text holds there.
    pub found: String,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The rest of the text, without leading white space.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn take(&mut self, token: &str) -> bool {
        let taken = self.rest().starts_with(token);
        if taken {
            self.at += token.len();
        }
        taken
    }

    fn fail<T>(&mut self, expected: &'static str) -> Result<T, ParseError> {
        let found = self.rest().chars().take(20).collect();
        Err(ParseError {
            at: self.at,
            expected,
            found,
        })
    }

    fn expect(&mut self, token: &'static str) -> Result<(), ParseError> {
        if self.take(token) {
            return Ok(());
        }
        self.fail(token)
    }

    fn end(&mut self) -> Result<(), ParseError> {
        if self.rest().is_empty() {
            return Ok(());
        }
        self.fail("the end")
    }

    fn identifier(&mut self) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if end == 0 {
            return self.fail("a name");
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        if self.take("<<") {
            return Ok(Value::seq(self.list(">>")?));
        }
        if self.take("{") {
            return Ok(Value::set(self.list("}")?));
        }
        if self.take("[") {
            return self.record();
        }
        if self.take("(") {
            return self.function();
        }
        if self.take("\"") {
            return self.string();
        }
        match self.rest().as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Ok(match self.identifier()? {
                "TRUE" => Value::Bool(true),
                "FALSE" => Value::Bool(false),
                name => Value::model(name.to_owned()),
            }),
        }
    }

    fn list(&mut self, end: &'static str) -> Result<Vec<Value>, ParseError> {
        let mut items = Vec::new();
        if self.take(end) {
            return Ok(items);
        }
        loop {
            items.push(self.value()?);
            if self.take(end) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    fn record(&mut self) -> Result<Value, ParseError> {
        let mut fields = BTreeMap::new();
        loop {
            let name = Value::str(self.identifier()?.to_owned());
            self.expect("|->")?;
            fields.insert(name, self.value()?);
            if self.take("]") {
                return Ok(Value::Fun(fields));
            }
            self.expect(",")?;
        }
    }

    fn function(&mut self) -> Result<Value, ParseError> {
        let mut pairs = BTreeMap::new();
        loop {
            let argument = self.value()?;
            self.expect(":>")?;
            pairs.insert(argument, self.value()?);
            if self.take(")") {
                return Ok(Value::Fun(pairs));
            }
            self.expect("@@")?;
        }
    }

    fn string(&mut self) -> Result<Value, ParseError> {
        let rest = &self.text[self.at..];
        let Some(end) = rest.find('"') else {
            return self.fail("a closing quote");
        };
        self.at += end + 1;
        Ok(Value::str(rest[..end].to_owned()))
    }

    fn integer(&mut self) -> Result<i64, ParseError> {
        let rest = self.rest();
        let digits = rest[1..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |n| n + 1);
        match rest[..digits].parse() {
            Ok(number) => {
                self.at += digits;
                Ok(number)
            }
            Err(_) => self.fail("an integer"),
        }
    }

    /// Parses a number, or an interval `a..b`, which TLC does not expand.
    fn number(&mut self) -> Result<Value, ParseError> {
        let low = self.integer()?;
        if !self.take("..") {
            return Ok(Value::Int(low));
        }
        if self.rest().is_empty() {
            return self.fail("an integer");
        }
        let high = self.integer()?;
        if high.saturating_sub(low) > 1 << 20 {
            return self.fail("an interval of at most 2^20 integers");
        }
        Ok(Value::set((low..=high).map(Value::Int)))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(true) => f.write_str("TRUE"),
            Self::Bool(false) => f.write_str("FALSE"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Str(text) => write!(f, "\"{text}\""),
            Self::Model(name) => f.write_str(name),
            Self::Set(members) => between(f, "{", members, "}", |f, v| write!(f, "{v}")),
            Self::Fun(pairs) => function(f, pairs),
        }
    }
}

fn function(f: &mut fmt::Formatter<'_>, pairs: &BTreeMap<Value, Value>) -> fmt::Result {
    let sequence = (1i64..).zip(pairs.keys()).all(|(i, k)| *k == Value::Int(i));
    if sequence {
        return between(f, "<<", pairs.values(), ">>", |f, v| write!(f, "{v}"));
    }
    if pairs.keys().all(|k| matches!(k, Value::Str(_))) {
        return between(f, "[", pairs, "]", |f, (k, v)| match k {
            Value::Str(name) => write!(f, "{name} |-> {v}"),
            other => write!(f, "{other} |-> {v}"),
        });
    }
    f.write_str("(")?;
    for (i, (argument, value)) in pairs.iter().enumerate() {
        let and = if i == 0 { "" } else { " @@ " };
        write!(f, "{and}{argument} :> {value}")?;
    }
    f.write_str(")")
}

fn between<T>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: impl IntoIterator<Item = T>,
    close: &str,
    write_item: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write_item(f, item)?;
    }
    f.write_str(close)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        Value::parse(text).unwrap().to_string()
    }

    #[test]
    fn what_tlc_prints_is_read_in_any_order_and_over_lines() {
        assert_eq!(
            round("( c2 :> [op |-> \"none\"] @@\n  c1 :> [key |-> k1, got |-> TRUE] )"),
            "(c1 :> [got |-> TRUE, key |-> k1] @@ c2 :> [op |-> \"none\"])"
        );
        assert_eq!(round("{3, -1, 2}"), "{-1, 2, 3}");
        assert_eq!(round("1..3"), "{1, 2, 3}");
        assert_eq!(round("{1..2, {}}"), "{{}, {1, 2}}");
        assert_eq!(round("<<1, <<>>, \"a b\">>"), "<<1, <<>>, \"a b\">>");
    }

    #[test]
    fn a_sequence_is_a_function_and_a_record_too() {
        assert_eq!(Value::parse("(1 :> a @@ 2 :> b)"), Value::parse("<<a, b>>"));
        assert_eq!(round("(0 :> a @@ 1 :> b)"), "(0 :> a @@ 1 :> b)");
        assert_eq!(
            Value::parse("[b |-> 2, a |-> 1]").unwrap(),
            Value::record([("a", Value::int(1)), ("b", Value::int(2))])
        );
    }

    #[test]
    fn a_state_is_its_variables_sorted() {
        let state = parse_state("/\\ up = TRUE\n/\\ base = (k1 :> Absent)").unwrap();
        assert_eq!(
            state_text(&state),
            "/\\ base = (k1 :> Absent)\n/\\ up = TRUE\n"
        );
        assert_eq!(parse_state("x = 1").unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_value_is_refused_with_its_place() {
        for text in [
            "",
            "<<1",
            "{1,}",
            "[a 1]",
            "(1 :> )",
            "\"a",
            "1..",
            "-",
            "1 2",
            "1..9999999999",
        ] {
            let error = Value::parse(text).unwrap_err();
            assert!(error.at <= text.len(), "{text}: {error}");
        }
    }
}

//! Splits a TLA+ module into tokens that know their place.
//!
//! Comments are left out. A token keeps its bytes, its line and its column, because bulleted lists
//! depend on columns.

use std::ops::Range;

use super::mutant::MutantsError;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Word,
    /// A number.
    Number,
    /// A string, with its quotes.
    Text,
    /// An operator or a bracket.
    Symbol,
    /// A line of dashes, or of equals signs at the end of a module.
    Rule,
}

/// A token of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// Where its first byte is.
    pub(super) at: usize,
    /// From 1.
    pub(super) line: usize,
    /// From 1, in bytes.
    pub(super) column: usize,
}

impl Token<'_> {
    pub(super) fn bytes(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != TokenKind::Text
    }
}

/// Longest first, so that no prefix wins.
const SYMBOLS: [&str; 45] = [
    "<=>", "|->", "...", "==", "=>", "=<", "<=", ">=", "/=", "/\\", "\\/", "<<", ">>", "->", "<-",
    "[]", "<>", "~>", "..", "::", ":>", "@@", "=", "#", "<", ">", ":", "@", "'", "(", ")", "[",
    "]", "{", "}", ",", ".", "+", "-", "*", "%", "~", "!", "^", "\\",
];

/// Splits the text of the module `name`. What is before its first line or after its last is prose.
pub(super) fn split<'a>(name: &str, text: &'a str) -> Result<Vec<Token<'a>>, MutantsError> {
    let mut scanner = Scanner {
        name,
        text,
        at: 0,
        line: 1,
        line_starts_at: 0,
    };
    let mut tokens = Vec::new();
    while let Some(token) = scanner.next()? {
        let ends = token.kind == TokenKind::Rule && token.text.starts_with('=');
        tokens.push(token);
        if ends {
            break;
        }
    }
    Ok(tokens)
}

struct Scanner<'n, 'a> {
    name: &'n str,
    text: &'a str,
    at: usize,
    line: usize,
    line_starts_at: usize,
}

impl<'a> Scanner<'_, 'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves over `bytes`, and counts the lines in them.
    fn skip(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        let passed = self.text.get(self.at..end).unwrap_or_default();
        self.line += passed.matches('\n').count();
        if let Some(last) = passed.rfind('\n') {
            self.line_starts_at = self.at + last + 1;
        }
        self.at = end;
    }

    fn wrong(&self, why: impl Into<String>) -> MutantsError {
        MutantsError::Syntax {
            module: self.name.to_owned(),
            line: self.line,
            column: self.at - self.line_starts_at + 1,
            why: why.into(),
        }
    }

    fn next(&mut self) -> Result<Option<Token<'a>>, MutantsError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.skip(blank);
            } else if rest.starts_with("\\*") {
                self.skip(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("(*") {
                let length = comment(rest).ok_or_else(|| {
                    self.wrong("the comment that begins here does not end; expected *)")
                })?;
                self.skip(length);
            } else {
                break;
            }
        }
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(None);
        };
        let (kind, length) = match first {
            '"' => {
                let end = rest[1..].find(['"', '\n']);
                let end = end.filter(|end| rest[1 + end..].starts_with('"'));
                let end = end
                    .ok_or_else(|| self.wrong("a string does not end on its line; expected \""))?;
                (TokenKind::Text, end + 2)
            }
            '-' | '=' if run(rest, |c| c == first) >= 4 => {
                (TokenKind::Rule, run(rest, |c| c == first))
            }
            c if is_word(c) => {
                let length = run(rest, is_word);
                let number = rest[..length].bytes().all(|b| b.is_ascii_digit());
                let kind = if number {
                    TokenKind::Number
                } else {
                    TokenKind::Word
                };
                (kind, length)
            }
            '\\' if rest[1..].starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let letters = run(&rest[1..], |c| c.is_ascii_alphabetic());
                (TokenKind::Symbol, 1 + letters)
            }
            _ => {
                let symbol = SYMBOLS.iter().find(|s| rest.starts_with(**s));
                let symbol = symbol.ok_or_else(|| {
                    self.wrong(format!("found {first:?}, which begins no token of TLA+"))
                })?;
                (TokenKind::Symbol, symbol.len())
            }
        };
        let token = Token {
            kind,
            text: &rest[..length],
            at: self.at,
            line: self.line,
            column: self.at - self.line_starts_at + 1,
        };
        self.skip(length);
        Ok(Some(token))
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// The length of the comment at the start of `text`. Comments nest.
fn comment(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        if rest.starts_with("(*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*)") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let tokens = split("M", text).unwrap();
        tokens.into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_prose_are_no_tokens() {
        let text = "a (* b (* c *) *) == \"(* d *)\" \\* e\n  /\\ x' = 1..n\n====\nprose";
        let expected = [
            "a",
            "==",
            "\"(* d *)\"",
            "/\\",
            "x",
            "'",
            "=",
            "1",
            "..",
            "n",
            "====",
        ];
        assert_eq!(texts(text), expected);
    }

    #[test]
    fn a_token_knows_its_line_and_column() {
        let tokens = split("M", "A ==\n    \\/ b \\cup {c}\n").unwrap();
        let place = |text: &str| {
            let token = tokens.iter().find(|t| t.text == text).unwrap();
            (token.line, token.column)
        };
        assert_eq!(place("\\/"), (2, 5));
        assert_eq!(place("\\cup"), (2, 10));
    }

    #[test]
    fn what_is_no_token_is_an_error_with_its_place() {
        let found = |text| split("M", text).unwrap_err().to_string();
        assert_eq!(
            found("a ==\n  \"b"),
            "M, line 2, column 3: a string does not end on its line; expected \""
        );
        assert!(found("(* a").contains("does not end"));
        assert!(found("a ; b").contains("';'"));
    }
}

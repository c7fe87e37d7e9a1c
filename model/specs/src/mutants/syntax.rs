//! Parses the definitions of a TLA+ module into trees that know their bytes.
//!
//! The grammar is that of the specs here: expressions and actions, bulleted lists with their
//! columns, `LET`, `EXCEPT`, quantifiers, and the temporal operators of a specification. As
//! everywhere in `specs/`, a definition begins in the first column of a line.

use super::mutant::MutantsError;
use super::tokens::{self, Token, TokenKind};
use super::tree::{Definition, Kind, Module, Node, binding};

/// Words that begin a unit of a module and no definition.
const UNITS: [&str; 10] = [
    "EXTENDS",
    "CONSTANT",
    "CONSTANTS",
    "VARIABLE",
    "VARIABLES",
    "ASSUME",
    "RECURSIVE",
    "THEOREM",
    "INSTANCE",
    "LOCAL",
];

/// Parses a module.
pub(super) fn parse(name: &str, text: &str) -> Result<Module, MutantsError> {
    let tokens = tokens::split(name, text)?;
    let first = |token: &Token<'_>| {
        token.column == 1 && (token.kind == TokenKind::Word || token.kind == TokenKind::Rule)
    };
    let starts: Vec<usize> = (tokens.iter().enumerate())
        .filter_map(|(at, token)| first(token).then_some(at))
        .chain([tokens.len()])
        .collect();
    let mut module = Module {
        name: name.to_owned(),
        text: text.to_owned(),
        uses: Vec::new(),
        definitions: Vec::new(),
        ghosts: Vec::new(),
        counters: Vec::new(),
        end: text.len(),
    };
    let mut recursive = None;
    for unit in starts.windows(2) {
        let unit = &tokens[unit[0]..unit[1]];
        let head = &unit[0];
        if head.kind == TokenKind::Rule {
            if head.text.starts_with('=') {
                module.end = head.at;
            }
            continue;
        }
        if UNITS.contains(&head.text) {
            module.uses.extend(used(unit));
            recursive = (head.text == "RECURSIVE").then_some(head.at);
            continue;
        }
        if let Some(instance) = unit.iter().position(|token| token.is("INSTANCE")) {
            // The contract, with the refinement mapping.
            let used = unit.get(instance + 1).map(|token| token.text.to_owned());
            module.uses.extend(used);
            continue;
        }
        let mut parser = Parser {
            module: name,
            tokens: unit,
            at: 0,
            columns: Vec::new(),
        };
        let body = parser.definition()?;
        module.definitions.push(Definition {
            name: head.text.to_owned(),
            bytes: recursive.take().unwrap_or(head.at)..body.bytes.end,
            at: head.at,
            body,
        });
    }
    module.find_ghosts();
    Ok(module)
}

/// The modules that a unit of declarations names.
fn used(unit: &[Token<'_>]) -> Vec<String> {
    if !["EXTENDS", "INSTANCE"].contains(&unit[0].text) {
        return Vec::new();
    }
    let names = (unit[1..].iter())
        .take_while(|token| token.text != "WITH")
        .filter(|token| token.kind == TokenKind::Word);
    names.map(|token| token.text.to_owned()).collect()
}

struct Parser<'n, 'a> {
    module: &'n str,
    tokens: &'n [Token<'a>],
    at: usize,
    /// The columns of the bulleted lists around: a token there or further left ends an item.
    columns: Vec<usize>,
}

impl<'n, 'a> Parser<'n, 'a> {
    /// The next token, unless it is outside the bullet's item.
    fn peek(&self) -> Option<&'n Token<'a>> {
        let token = self.tokens.get(self.at)?;
        let inside = self
            .columns
            .last()
            .is_none_or(|column| token.column > *column);
        inside.then_some(token)
    }

    fn peeks(&self, text: &str) -> bool {
        self.peek().is_some_and(|token| token.is(text))
    }

    fn take(&mut self) -> Result<&'n Token<'a>, MutantsError> {
        let token = self.peek().ok_or_else(|| self.wrong("an expression"))?;
        self.at += 1;
        Ok(token)
    }

    fn takes(&mut self, text: &str) -> bool {
        let there = self.peeks(text);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, text: &str) -> Result<&'n Token<'a>, MutantsError> {
        match self.peek() {
            Some(token) if token.is(text) => {
                self.at += 1;
                Ok(token)
            }
            _ => Err(self.wrong(text)),
        }
    }

    fn wrong(&self, expected: &str) -> MutantsError {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        MutantsError::Syntax {
            module: self.module.to_owned(),
            line: token.map_or(1, |token| token.line),
            column: token.map_or(1, |token| token.column),
            why: format!(
                "expected {expected}, found {}",
                (self.tokens.get(self.at)).map_or("the end of the definition", |t| t.text)
            ),
        }
    }

    /// `Name(a, b) == body`, to its end.
    fn definition(&mut self) -> Result<Node, MutantsError> {
        self.definition_head()?;
        let body = self.expression(0)?;
        match self.at == self.tokens.len() {
            true => Ok(body),
            false => Err(self.wrong("the end of the definition")),
        }
    }

    /// Up to `==`, and over it. Sets that it names, as in `f[x \in S] ==`, have no mutants.
    fn definition_head(&mut self) -> Result<(), MutantsError> {
        while !self.take()?.is("==") {}
        Ok(())
    }

    fn expression(&mut self, least: u8) -> Result<Node, MutantsError> {
        let mut left = self.prefixed()?;
        while let Some(token) = self.peek() {
            let Some(power) = binding(token.text).filter(|_| token.kind == TokenKind::Symbol)
            else {
                break;
            };
            if power < least {
                break;
            }
            self.at += 1;
            let right = self.expression(power + 1)?;
            left = joined(left, token, right);
        }
        Ok(left)
    }

    fn prefixed(&mut self) -> Result<Node, MutantsError> {
        let token = self.peek().ok_or_else(|| self.wrong("an expression"))?;
        if token.kind == TokenKind::Text || token.kind == TokenKind::Number {
            return self.postfixed();
        }
        let power = match token.text {
            "/\\" | "\\/" => return self.bullets(),
            "~" | "\\lnot" | "\\neg" => 4,
            "ENABLED" | "UNCHANGED" | "[]" | "<>" => 4,
            "SUBSET" | "UNION" | "DOMAIN" => 9,
            "-" => 12,
            "\\A" | "\\E" => return self.quantifier(),
            "CHOOSE" => return self.choose(),
            "IF" => return self.condition(),
            "CASE" => return self.case(),
            "LET" => return self.bound_here(),
            _ => return self.postfixed(),
        };
        self.at += 1;
        let operand = self.expression(power)?;
        let kind = match token.text {
            "~" | "\\lnot" | "\\neg" => Kind::Not,
            other => Kind::Prefix(other.to_owned()),
        };
        let bytes = token.at..operand.bytes.end;
        let mut node = Node::new(kind, bytes, vec![operand]);
        node.operator = token.bytes();
        Ok(node)
    }

    /// Items that begin with the same bullet in the same column.
    fn bullets(&mut self) -> Result<Node, MutantsError> {
        let first = self.take()?;
        let mut items = Vec::new();
        loop {
            self.columns.push(first.column);
            let item = self.expression(0);
            self.columns.pop();
            items.push(item?);
            let next = self.peek();
            if !next.is_some_and(|t| t.column == first.column && t.text == first.text) {
                break;
            }
            self.at += 1;
        }
        let end = items.last().map_or(first.at, |item| item.bytes.end);
        let mut node = Node::new(junction(first.text), first.at..end, items);
        node.operator = first.bytes();
        Ok(node)
    }

    fn quantifier(&mut self) -> Result<Node, MutantsError> {
        let sign = self.take()?;
        let mut children = self.bounds(":")?;
        children.push(self.expression(0)?);
        Ok(whole(
            Kind::Quantifier(sign.text.to_owned()),
            sign,
            children,
        ))
    }

    fn choose(&mut self) -> Result<Node, MutantsError> {
        let word = self.take()?;
        let mut children = self.bounds(":")?;
        children.push(self.expression(0)?);
        Ok(whole(Kind::Choose, word, children))
    }

    /// `a, b \in S, <<c, d>> \in T`, up to `end` and over it: the sets.
    fn bounds(&mut self, end: &str) -> Result<Vec<Node>, MutantsError> {
        let mut sets = Vec::new();
        loop {
            while !self.takes("\\in") {
                let token = self.take()?;
                let name = token.kind == TokenKind::Word;
                if !name && ![",", "<<", ">>"].contains(&token.text) {
                    self.at -= 1;
                    return Err(self.wrong("names and \\in"));
                }
            }
            sets.push(self.expression(0)?);
            if self.takes(end) {
                return Ok(sets);
            }
            self.expect(",")?;
        }
    }

    fn condition(&mut self) -> Result<Node, MutantsError> {
        let word = self.take()?;
        let condition = self.expression(0)?;
        self.expect("THEN")?;
        let then = self.expression(0)?;
        self.expect("ELSE")?;
        let other = self.expression(0)?;
        Ok(whole(Kind::If, word, vec![condition, then, other]))
    }

    fn case(&mut self) -> Result<Node, MutantsError> {
        let word = self.take()?;
        let mut children = Vec::new();
        loop {
            if !self.takes("OTHER") {
                children.push(self.expression(0)?);
            }
            self.expect("->")?;
            children.push(self.expression(0)?);
            if !self.takes("[]") {
                return Ok(whole(Kind::Case, word, children));
            }
        }
    }

    fn bound_here(&mut self) -> Result<Node, MutantsError> {
        let word = self.take()?;
        let mut children = Vec::new();
        while !self.takes("IN") {
            if self.takes("RECURSIVE") {
                // Declarations end where a name is followed by no comma.
                let mut depth = 0_usize;
                loop {
                    let token = self.take()?;
                    depth += usize::from(token.is("("));
                    depth -= usize::from(token.is(")") && depth > 0);
                    if depth == 0 && !token.is(",") && !self.peeks("(") && !self.peeks(",") {
                        break;
                    }
                }
            }
            self.definition_head()?;
            children.push(self.expression(0)?);
        }
        children.push(self.expression(0)?);
        Ok(whole(Kind::Let, word, children))
    }

    fn postfixed(&mut self) -> Result<Node, MutantsError> {
        let mut node = self.primary()?;
        while let Some(token) = self.peek() {
            node = match token.text {
                "'" => {
                    self.at += 1;
                    let bytes = node.bytes.start..token.at + 1;
                    Node::new(Kind::Prime, bytes, vec![node])
                }
                "[" => {
                    self.at += 1;
                    let mut children = vec![node];
                    let end = self.list("]", &mut children)?;
                    let start = children[0].bytes.start;
                    Node::new(Kind::Apply, start..end, children)
                }
                "." => {
                    self.at += 1;
                    let field = self.take()?;
                    let bytes = node.bytes.start..field.bytes().end;
                    Node::new(Kind::Field, bytes, vec![node])
                }
                _ => break,
            };
        }
        Ok(node)
    }

    /// Expressions up to `end`, and where that ends.
    fn list(&mut self, end: &str, into: &mut Vec<Node>) -> Result<usize, MutantsError> {
        loop {
            if let Some(token) = self.peek().filter(|token| token.is(end)) {
                self.at += 1;
                return Ok(token.bytes().end);
            }
            into.push(self.expression(0)?);
            if !self.peeks(end) {
                self.expect(",")?;
            }
        }
    }

    fn primary(&mut self) -> Result<Node, MutantsError> {
        let token = self.take()?;
        let plain = |kind| Ok(Node::new(kind, token.bytes(), Vec::new()));
        match (token.kind, token.text) {
            (TokenKind::Number, _) => plain(Kind::Number),
            (TokenKind::Text, _) | (_, "TRUE" | "FALSE") => {
                plain(Kind::Literal(token.text.to_owned()))
            }
            (_, "@") => plain(Kind::At),
            (TokenKind::Word, _) => self.named(token),
            (_, "(") => {
                let inner = self.expression(0)?;
                let end = self.expect(")")?.bytes().end;
                Ok(Node::new(Kind::Group, token.at..end, vec![inner]))
            }
            (_, "<<") => {
                let mut children = Vec::new();
                let end = self.list(">>", &mut children)?;
                Ok(Node::new(Kind::Tuple, token.at..end, children))
            }
            (_, "{") => self.set(token),
            (_, "[") => self.bracket(token),
            _ => {
                self.at -= 1;
                Err(self.wrong("an expression"))
            }
        }
    }

    fn named(&mut self, first: &Token<'_>) -> Result<Node, MutantsError> {
        let mut name = first.text.to_owned();
        let mut end = first.bytes().end;
        while self.takes("!") {
            let part = self.take()?;
            name = format!("{name}!{}", part.text);
            end = part.bytes().end;
        }
        let mut children = Vec::new();
        if self.takes("(") {
            end = self.list(")", &mut children)?;
        } else if ["WF_", "SF_"].contains(&&*name) {
            // The subscript of fairness is an expression here, and a name elsewhere.
            children.push(self.primary()?);
            self.expect("(")?;
            end = self.list(")", &mut children)?;
        }
        Ok(Node::new(Kind::Name(name), first.at..end, children))
    }

    fn set(&mut self, open: &Token<'_>) -> Result<Node, MutantsError> {
        if self.is_bound() {
            let mut children = self.bounds(":")?;
            children.push(self.expression(0)?);
            let end = self.expect("}")?.bytes().end;
            return Ok(Node::new(Kind::Filter, open.at..end, children));
        }
        let mut children = Vec::new();
        if !self.peeks("}") {
            children.push(self.expression(0)?);
            if self.takes(":") {
                children.extend(self.bounds("}")?);
                let end = self.tokens[self.at - 1].bytes().end;
                return Ok(Node::new(Kind::Image, open.at..end, children));
            }
            if !self.peeks("}") {
                self.expect(",")?;
            }
        }
        let end = self.list("}", &mut children)?;
        Ok(Node::new(Kind::Set, open.at..end, children))
    }

    /// Whether `name \in S :` comes next, and not the expression `name \in S`.
    fn is_bound(&self) -> bool {
        let mut rest = self.tokens[self.at.min(self.tokens.len())..].iter();
        let named = rest
            .next()
            .is_some_and(|token| token.kind == TokenKind::Word);
        if !named || !rest.next().is_some_and(|token| token.is("\\in")) {
            return false;
        }
        let mut depth = 0_usize;
        for token in rest {
            match token.text {
                "(" | "[" | "{" | "<<" => depth += 1,
                ":" if depth == 0 => return true,
                ")" | "]" | "}" | ">>" if depth == 0 => return false,
                ")" | "]" | "}" | ">>" => depth -= 1,
                _ => {}
            }
        }
        false
    }

    fn bracket(&mut self, open: &Token<'_>) -> Result<Node, MutantsError> {
        let field = self.tokens.get(self.at + 1);
        let named = (self.peek()).is_some_and(|token| token.kind == TokenKind::Word);
        if named && field.is_some_and(|token| token.is("|->") || token.is(":")) {
            return self.record(open);
        }
        if self.is_function() {
            let mut children = self.bounds("|->")?;
            children.push(self.expression(0)?);
            let end = self.expect("]")?.bytes().end;
            return Ok(Node::new(Kind::Function, open.at..end, children));
        }
        let first = self.expression(0)?;
        if self.takes("EXCEPT") {
            return self.updates(open, first);
        }
        if self.takes("->") {
            let range = self.expression(0)?;
            let end = self.expect("]")?.bytes().end;
            return Ok(Node::new(Kind::Function, open.at..end, vec![first, range]));
        }
        self.expect("]")?;
        let subscript = self.take()?;
        let mut children = vec![first];
        let mut end = subscript.bytes().end;
        if subscript.is("_") {
            let variables = self.primary()?;
            end = variables.bytes.end;
            children.push(variables);
        } else if let Some(name) = subscript.text.strip_prefix('_') {
            let bytes = subscript.at + 1..end;
            children.push(Node::new(Kind::Name(name.to_owned()), bytes, Vec::new()));
        } else {
            self.at -= 1;
            return Err(self.wrong("the variables of [A]_v"));
        }
        Ok(Node::new(Kind::Box, open.at..end, children))
    }

    /// Whether `x \in S |->` or `x, y \in S |->` comes next.
    fn is_function(&self) -> bool {
        let mut depth = 0_usize;
        for token in &self.tokens[self.at.min(self.tokens.len())..] {
            match token.text {
                "(" | "[" | "{" | "<<" => depth += 1,
                "|->" if depth == 0 => return true,
                "EXCEPT" | "->" if depth == 0 => return false,
                ")" | "]" | "}" | ">>" if depth == 0 => return false,
                ")" | "]" | "}" | ">>" => depth -= 1,
                _ => {}
            }
        }
        false
    }

    fn record(&mut self, open: &Token<'_>) -> Result<Node, MutantsError> {
        let mut children = Vec::new();
        loop {
            self.take()?;
            if !self.takes("|->") {
                self.expect(":")?;
            }
            children.push(self.expression(0)?);
            if !self.takes(",") {
                let end = self.expect("]")?.bytes().end;
                return Ok(Node::new(Kind::Record, open.at..end, children));
            }
        }
    }

    fn updates(&mut self, open: &Token<'_>, base: Node) -> Result<Node, MutantsError> {
        let mut children = vec![base];
        loop {
            let start = self.expect("!")?;
            let mut parts = Vec::new();
            loop {
                if self.takes(".") {
                    self.take()?;
                } else if self.takes("[") {
                    self.list("]", &mut parts)?;
                } else {
                    break;
                }
            }
            self.expect("=")?;
            parts.push(self.expression(0)?);
            children.push(whole(Kind::Update, start, parts));
            if !self.takes(",") {
                let end = self.expect("]")?.bytes().end;
                return Ok(Node::new(Kind::Except, open.at..end, children));
            }
        }
    }
}

fn junction(sign: &str) -> Kind {
    match sign {
        "/\\" | "\\land" => Kind::And,
        _ => Kind::Or,
    }
}

/// An infix expression. Chains of the same junction are one list.
fn joined(left: Node, sign: &Token<'_>, right: Node) -> Node {
    let bytes = left.bytes.start..right.bytes.end;
    let kind = match sign.text {
        "/\\" | "\\/" | "\\land" | "\\lor" => junction(sign.text),
        other => Kind::Infix(other.to_owned()),
    };
    // A bulleted list begins with its own sign.
    let chained = left.kind == kind && left.operator.start > left.bytes.start;
    let mut node = if chained && kind.is_junction() {
        let mut list = left;
        list.children.push(right);
        Node { bytes, ..list }
    } else {
        Node::new(kind, bytes, vec![left, right])
    };
    node.operator = sign.bytes();
    node
}

/// A node that begins with `first` and ends with its last child.
fn whole(kind: Kind, first: &Token<'_>, children: Vec<Node>) -> Node {
    let end = children
        .last()
        .map_or(first.bytes().end, |last| last.bytes.end);
    let mut node = Node::new(kind, first.at..end, children);
    node.operator = first.bytes();
    node
}

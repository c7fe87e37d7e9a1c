//! Expressions of TLA+ as trees that know their bytes, and modules of them.

use std::ops::Range;

/// What an expression is. Its parts are the children of its [`Node`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, with the arguments as children.
    Name(String),
    /// A number.
    Number,
    /// A string, with its quotes, or a truth value.
    Literal(String),
    /// `@`.
    At,
    /// `/\`: a bulleted list, or infix.
    And,
    /// `\/`: a bulleted list, or infix.
    Or,
    /// `~`.
    Not,
    /// `p'`.
    Prime,
    /// An infix operator.
    Infix(String),
    /// A prefix operator such as `SUBSET` or `[]`.
    Prefix(String),
    /// Condition, then, else.
    If,
    /// Conditions and values in turns; a last value alone is that of `OTHER`.
    Case,
    /// The bodies of the definitions, then the expression.
    Let,
    /// `\A` or `\E`: the sets, then the body.
    Quantifier(String),
    /// The set, then the condition.
    Choose,
    /// `{a, b}`.
    Set,
    /// `{x \in S : p}`: the set, then the condition.
    Filter,
    /// `{e : x \in S}`: the expression, then the sets.
    Image,
    /// `[x \in S |-> e]`: the sets, then the expression.
    Function,
    /// `[f EXCEPT ![a] = b]`: the function, then each update.
    Except,
    /// An update: the indices, then the value.
    Update,
    /// `[a |-> b]` or `[a : S]`.
    Record,
    /// `f[a]`: the function, then the arguments.
    Apply,
    /// `r.f`.
    Field,
    /// `<<a, b>>`.
    Tuple,
    /// `[A]_v`: the action, then the variables.
    Box,
    /// Parentheses.
    Group,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) bytes: Range<usize>,
    /// Where its operator is, or else where it begins.
    pub(super) operator: Range<usize>,
    pub(super) children: Vec<Node>,
}

impl Node {
    pub(super) fn new(kind: Kind, bytes: Range<usize>, children: Vec<Node>) -> Node {
        let operator = bytes.clone();
        Node {
            kind,
            bytes,
            operator,
            children,
        }
    }

    /// The expression in the parentheses, if there are any.
    pub(super) fn inner(&self) -> &Node {
        match (&self.kind, self.children.first()) {
            (Kind::Group, Some(inner)) => inner.inner(),
            _ => self,
        }
    }

    /// The name, if it is one.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The variable `x` of `x'`.
    pub(super) fn primed(&self) -> Option<&str> {
        match self.kind {
            Kind::Prime => self.children.first()?.name(),
            _ => None,
        }
    }

    /// The operator, if it is infix.
    pub(super) fn infix(&self) -> Option<&str> {
        match &self.kind {
            Kind::Infix(operator) => Some(operator),
            _ => None,
        }
    }

    /// Calls `visit` with this node and all below it.
    pub(super) fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        visit(self);
        for child in &self.children {
            child.each(visit);
        }
    }
}

/// A definition at the top level of a module.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// From its name (or `RECURSIVE` before it) to the end of its body.
    pub(super) bytes: Range<usize>,
    /// Where its name is.
    pub(super) at: usize,
    pub(super) body: Node,
}

/// A module.
#[derive(Clone, Debug)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) text: String,
    /// The modules that it extends or instantiates.
    pub(super) uses: Vec<String>,
    pub(super) definitions: Vec<Definition>,
    /// Variables that only serve the checking.
    pub(super) ghosts: Vec<String>,
    /// Those of them that only count, for the bounds of models.
    pub(super) counters: Vec<String>,
    /// Where its last line, `====`, begins.
    pub(super) end: usize,
}

impl Module {
    /// The line and the column, both from 1, of a byte.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        (line, before.len() - start + 1)
    }
}

impl Module {
    /// A comment says that a variable, or those that follow, are only there for the checking.
    pub(super) fn find_ghosts(&mut self) {
        const BOUNDS: &str = "For the bounds";
        let (mut below, mut counts) = (false, false);
        let mut variables = false;
        for line in self.text.lines() {
            let (code, comment) = line.split_once("\\*").unwrap_or((line, ""));
            if line.starts_with(|c: char| !c.is_whitespace()) {
                variables = line.starts_with("VARIABLE");
                below = false;
                continue;
            }
            if !variables {
                continue;
            }
            let code = code.trim().trim_end_matches(',');
            if code.is_empty() && !comment.is_empty() && line.trim_start().starts_with("\\* ") {
                let heads = ["For checking", "For the observer", BOUNDS];
                // A comment that goes on below a variable is indented further.
                let head = line.len() - line.trim_start().len() <= 4;
                if head {
                    below = heads.contains(&comment.trim());
                    counts = comment.trim() == BOUNDS;
                }
            } else if !code.is_empty() && (below || comment.trim_start().starts_with("ghost")) {
                self.ghosts.push(code.to_owned());
                if below && counts {
                    self.counters.push(code.to_owned());
                }
            }
        }
    }
}

impl Kind {
    pub(super) fn is_junction(&self) -> bool {
        matches!(self, Kind::And | Kind::Or)
    }
}

/// How tightly infix operators bind, loosest first.
pub(super) fn binding(operator: &str) -> Option<u8> {
    Some(match operator {
        "=>" | "<=>" | "~>" => 1,
        "\\/" | "\\lor" => 2,
        "/\\" | "\\land" => 3,
        "=" | "#" | "/=" | "<" | ">" | "<=" | "=<" | ">=" | "\\in" | "\\notin" | "\\subseteq"
        | "\\subset" | "\\supseteq" | "\\leq" | "\\geq" => 5,
        "@@" | ":>" => 6,
        "\\cup" | "\\cap" | "\\" | "\\union" | "\\intersect" => 8,
        ".." => 9,
        "+" | "-" | "%" => 10,
        "\\X" | "\\times" => 11,
        "\\o" | "\\circ" | "*" | "\\div" => 13,
        "^" => 14,
        _ => return None,
    })
}

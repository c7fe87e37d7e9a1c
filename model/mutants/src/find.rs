//! Finds the places for mutants in the syntax tree of a file.
//!
//! | kind | of | makes |
//! |---|---|---|
//! | `lt`, `le`, `gt`, `ge` | a comparison | its neighbour: `<` and `<=`, `>` and `>=` |
//! | `eq`, `ne` | a comparison | the other |
//! | `plus`, `minus` | a sum or difference | the other |
//! | `yes` | an operand of `&&` | `true` |
//! | `no` | an operand of `\|\|` | `false` |
//! | `flip` | a condition | its opposite |
//! | `one_more` | a whole number | the next |
//! | `keep` | a statement that is a call or an assignment | nothing |
//!
//! Code that is evaluated at compile time gets no switches. Neither do tests, the contents of
//! macros, and code that only counts or reports.

use std::ops::Range;

use proc_macro2::Span;
use serde::{Deserialize, Serialize};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Stmt};

/// A mutant. Ranges are in bytes of its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mutant {
    /// The number of its switch.
    pub(crate) number: usize,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) kind: String,
    /// The original text.
    pub(crate) text: String,
    pub(crate) range: Range<usize>,
    /// For a mutant with two operands: from the end of the first to the start of the second.
    pub(crate) between: Option<Range<usize>>,
}

/// All mutants of a file, numbered from `first` on.
pub(crate) fn mutants(file: &str, source: &str, first: usize) -> syn::Result<Vec<Mutant>> {
    let tree = syn::parse_file(source)?;
    let mut finder = Finder {
        file,
        source,
        first,
        found: Vec::new(),
    };
    finder.visit_file(&tree);
    Ok(finder.found)
}

struct Finder<'s> {
    file: &'s str,
    source: &'s str,
    first: usize,
    found: Vec<Mutant>,
}

/// Names of functions that do not affect any result.
const TELLS: [&str; 12] = [
    "mutation::on",
    "counters",
    "fetch_add",
    "fetch_sub",
    "stats",
    ".tell(",
    "debug",
    "trace",
    "spin_loop",
    "yield_now",
    "reserve",
    "drop(",
];

fn holds_let(expr: &Expr) -> bool {
    struct Search(bool);
    impl<'ast> Visit<'ast> for Search {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
        fn visit_expr_block(&mut self, _: &'ast syn::ExprBlock) {}
    }
    let mut search = Search(false);
    search.visit_expr(expr);
    search.0
}

/// Whether a function gets no switches: it is evaluated at compile time, or only reports a size or
/// a count.
fn tells(function: &syn::Signature) -> bool {
    let name = function.ident.to_string();
    let tells = ["stats", "memory", "memory_bytes", "node_bytes"];
    function.constness.is_some() || tells.iter().any(|end| name.ends_with(end))
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let text = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        path.is_ident("test") || path.is_ident("cfg") && text.contains("test")
    })
}

impl Finder<'_> {
    fn add(&mut self, kind: &str, span: Span, between: Option<Range<usize>>) {
        let range = span.byte_range();
        let text = &self.source[range.clone()];
        if TELLS.iter().any(|tells| text.contains(tells)) {
            return;
        }
        self.found.push(Mutant {
            number: self.first + self.found.len(),
            file: self.file.to_owned(),
            line: span.start().line,
            kind: kind.to_owned(),
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            range,
            between,
        });
    }

    fn condition(&mut self, condition: &Expr) {
        if !holds_let(condition) {
            self.add("flip", condition.span(), None);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let between = || {
            let (left, right) = (binary.left.span(), binary.right.span());
            Some(left.byte_range().end..right.byte_range().start)
        };
        let two = match binary.op {
            BinOp::Lt(_) => Some("lt"),
            BinOp::Le(_) => Some("le"),
            BinOp::Gt(_) => Some("gt"),
            BinOp::Ge(_) => Some("ge"),
            BinOp::Eq(_) => Some("eq"),
            BinOp::Ne(_) => Some("ne"),
            BinOp::Add(_) => Some("plus"),
            BinOp::Sub(_) => Some("minus"),
            _ => None,
        };
        if let Some(kind) = two {
            self.add(kind, binary.span(), between());
        }
        let one = match binary.op {
            BinOp::And(_) => Some("yes"),
            BinOp::Or(_) => Some("no"),
            _ => None,
        };
        if let Some(kind) = one {
            for operand in [&binary.left, &binary.right] {
                if !holds_let(operand) {
                    self.add(kind, operand.span(), None);
                }
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.condition(&expr.cond);
        visit::visit_expr_if(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        // Patterns are not expressions.
        if let Some((_, guard)) = &arm.guard {
            self.visit_expr(guard);
        }
        self.visit_expr(&arm.body);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        if matches!(literal.lit, syn::Lit::Int(_)) {
            self.add("one_more", literal.span(), None);
        }
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = stmt {
            let call = match expr {
                Expr::Try(inner) => &inner.expr,
                other => other,
            };
            let compound = matches!(call, Expr::Binary(binary) if matches!(binary.op,
                BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_)
                | BinOp::BitAndAssign(_) | BinOp::MulAssign(_)));
            let plain = matches!(call, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_));
            if plain || compound {
                self.add("keep", stmt.span(), None);
            }
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        // The amounts that a counter adds or subtracts.
        let counts = ["fetch_add", "fetch_sub", "fetch_max"];
        if counts.iter().any(|name| call.method == name) {
            let receiver = &self.source[call.receiver.span().byte_range()];
            if ["counter", "stats"].iter().any(|of| receiver.contains(of)) {
                return;
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        // The length is a constant.
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !tells(&function.sig) && !is_test(&function.attrs) {
            self.visit_block(&function.block);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !tells(&function.sig) && !is_test(&function.attrs) {
            self.visit_block(&function.block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // Implementations that print a value.
        let prints = item.trait_.as_ref().is_some_and(|(_, path, _)| {
            let last = path.segments.last();
            last.is_some_and(|segment| segment.ident == "Debug" || segment.ident == "Display")
        });
        if !prints {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_operators_numbers_and_statements_are_found_but_not_constants() {
        let source = "const N: u8 = 1 + 1;\n\
                      fn f(a: u8, v: &mut [u8; 4]) -> bool {\n\
                      if a < 3 && a + 1 != 4 { v.fill(a); }\n\
                      a >= N || v[0] == [7; 2][0]\n}\n\
                      #[test]\nfn t() { assert!(1 < 2); }";
        let found = mutants("f.rs", source, 0).unwrap();
        let mut kinds: Vec<&str> = found.iter().map(|m| m.kind.as_str()).collect();
        kinds.sort_unstable();
        let mut wanted = vec![
            "flip", "yes", "yes", "lt", "ne", "plus", "ge", "eq", "no", "no", "keep",
        ];
        // The numbers 3, 1, 4, two zeros and 7, but not the length 2.
        wanted.extend(["one_more"; 6]);
        wanted.sort_unstable();
        assert_eq!(kinds, wanted, "{found:#?}");
        let lt = found.iter().find(|m| m.kind == "lt").unwrap();
        assert_eq!((lt.text.as_str(), lt.line), ("a < 3", 3));
        assert_eq!(&source[lt.between.clone().unwrap()], " < ");
    }
}

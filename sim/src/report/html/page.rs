//! The frame of all pages: a single file that includes its style and script and loads nothing.

use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Content policy: nothing may be loaded, not even if a trace's name contains HTML.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Builds a page with this title, which is also its heading; `body` is HTML.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\
         <script>{SCRIPT}</script></body></html>\n"
    )
}

/// Sentences below the title.
#[must_use]
pub fn sentences<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let mut out = String::new();
    for text in texts {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(text));
    }
    out
}

/// A heading.
#[must_use]
pub fn heading(title: &str) -> String {
    format!("<h2>{}</h2>\n", escape(title))
}

/// Escapes `&`, `<`, `>` and quotes as entities.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

//! Checks that functions have 60 lines at most, and files 400. Counts every line, blank ones and tests too.

use proc_macro2::{Delimiter, TokenTree};

use super::finding::TidyFinding;
use super::source::{RustSource, group, ident, is_punct, line};

const FILE: usize = 400;
const FUNCTION: usize = 60;

pub(super) fn file(rust: &RustSource) -> Vec<TidyFinding> {
    let lines = rust.text.lines().count();
    if lines <= FILE {
        return Vec::new();
    }
    let what = format!("the file has {lines} lines; the maximum is {FILE}");
    vec![rust.finding(
        lines,
        "file-length",
        what,
        "divide the file by idea; move long tests into a `tests.rs` beside the file",
    )]
}

pub(super) fn functions(rust: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    rust.each(|tokens| {
        let Some((name, lines)) = function(tokens) else { return };
        if lines > FUNCTION {
            let what = format!("function `{name}` has {lines} lines; the maximum is {FUNCTION}");
            let remedy = "move parts of the function into named functions";
            findings.push(rust.finding(line(&tokens[0]), "function-length", what, remedy));
        }
    });
    findings
}

/// Returns name and length, from signature to closing brace, of the function that the tokens begin with.
fn function(tokens: &[TokenTree]) -> Option<(String, usize)> {
    if ident(tokens.first())? != "fn" {
        return None;
    }
    let name = ident(tokens.get(1))?;
    let body = (2..tokens.len()).find_map(|at| body_or_end(tokens, at))??;
    Some((name.to_string(), body + 1 - line(&tokens[0])))
}

/// Examines one token of a function. Returns the last line of a body, `Some(None)` for the semicolon of a
/// function without a body, and `None` for any other token.
fn body_or_end(tokens: &[TokenTree], at: usize) -> Option<Option<usize>> {
    // In `-> Ring<{ LEN }>` the braces hold a constant.
    let argument = is_punct(tokens.get(at - 1), '<') || is_punct(tokens.get(at - 1), ',');
    match group(tokens.get(at), Delimiter::Brace) {
        // A where clause may end in a comma; a constant argument is followed by `,` or `>`.
        Some(_) if argument && closes_argument(tokens.get(at + 1)) => None,
        Some(body) => Some(Some(body.span_close().end().line)),
        None if is_punct(tokens.get(at), ';') => Some(None),
        None => None,
    }
}

fn closes_argument(next: Option<&TokenTree>) -> bool {
    is_punct(next, ',') || is_punct(next, '>')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(signature: &str, lines: usize) -> String {
        format!("{signature} {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn file_above_its_length_limit_is_found() {
        assert!(file(&RustSource::sample(&"//\n".repeat(FILE))).is_empty());
        let findings = file(&RustSource::sample(&"//\n".repeat(FILE + 1)));
        assert_eq!((findings.len(), findings[0].line), (1, FILE + 1));
    }

    #[test]
    fn function_above_its_length_limit_is_found() {
        assert!(functions(&RustSource::sample(&function_of("fn short()", FUNCTION))).is_empty());
        let long = format!("\n{}", function_of("pub fn long() -> Ring<{ LEN }> where A: B,", FUNCTION + 1));
        let findings = functions(&RustSource::sample(&long));
        assert_eq!((findings.len(), findings[0].line), (1, 2));
        assert!(findings[0].what.starts_with("function `long` has 61 lines"), "{}", findings[0].what);
    }

    #[test]
    fn length_limit_covers_macros_but_not_function_pointers() {
        let in_macro = format!("proptest! {{\n{}}}\n", function_of("fn long(a in 0..9)", FUNCTION + 1));
        assert_eq!(functions(&RustSource::sample(&in_macro)).len(), 1);
        let other = format!(
            "trait T {{ fn f(&self); fn g(); }}\ntype P = fn(u8);\nstruct S {{\n{}}}",
            "a: u8,\n".repeat(99)
        );
        assert!(functions(&RustSource::sample(&other)).is_empty());
    }
}

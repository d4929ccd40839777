//! Finds functions with more arguments than the limit, except closures.

use proc_macro2::{Delimiter, TokenTree};

use super::place::BudgetedFinding;
use crate::tidy::source::{RustSource, group, ident, inside, is_punct, line};

/// Maximum number of arguments of a function, without `self`.
const MOST: usize = 6;

/// Returns the functions that take more arguments than permitted.
pub(super) fn check(rust: &RustSource) -> Vec<BudgetedFinding> {
    let mut places = Vec::new();
    rust.each(|tokens| {
        let Some((name, count)) = function(tokens).filter(|(_, count)| *count > MOST) else { return };
        let text = format!(
            "`{name}` takes {count} arguments; the maximum is {MOST}: combine arguments that belong together \
             in a type"
        );
        places.push(BudgetedFinding { file: rust.path.clone(), line: line(&tokens[0]), text });
    });
    places
}

/// Returns name and number of arguments of the function that the tokens begin with; `None` if they begin with no
/// function.
fn function(tokens: &[TokenTree]) -> Option<(String, usize)> {
    ident(tokens.first()).filter(|word| *word == "fn")?;
    let name = ident(tokens.get(1))?.to_string();
    let mut generics = 0;
    for (at, token) in tokens.iter().enumerate().skip(2) {
        let arrow = is_punct(tokens.get(at - 1), '-');
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '<' => generics += 1,
            TokenTree::Punct(sign) if sign.as_char() == '>' && !arrow => generics -= 1,
            // In generics there are the parentheses of `Fn(u8)`.
            _ if generics > 0 => {}
            _ => return Some((name, arguments(&inside(group(Some(token), Delimiter::Parenthesis)?)))),
        }
    }
    None
}

/// Counts arguments by the colons behind their names. Colons of paths come in pairs, and `self` has none or is not
/// counted.
fn arguments(list: &[TokenTree]) -> usize {
    let colon = |at: usize| is_punct(list.get(at), ':');
    let pairs = |at: usize| colon(at + 1) || (at > 0 && colon(at - 1));
    let of_self = |at: usize| at > 0 && ident(list.get(at - 1)).is_some_and(|name| name == "self");
    (0..list.len()).filter(|&at| colon(at) && !pairs(at) && !of_self(at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_count_excludes_self_and_the_colons_of_paths() {
        let source = "fn a(&mut self, a: u8, b: x::Y<u8, u8>, (c, d): (u8, u8), e: fn(f: u8), g: &'a u8, h: [u8; 2]) {}\n\
            fn b<F: Fn(u8)>(self: Box<Self>, a: F, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) -> u8;\n";
        let found: Vec<_> = check(&RustSource::sample(source)).into_iter().map(|place| place.line).collect();
        assert_eq!(found, [2]);
    }
}

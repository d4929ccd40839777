//! Divides the text of a filter into tokens. The longest possible token wins, and among equally long ones the first
//! kind of: reserved word, Ethernet address, number, IPv4 address, IPv6 address and name: `80-90` is a name,
//! `1.2.3.4.5.6` an Ethernet address.

use crate::error::{FilterError, refuse};
use crate::words::{self, ReservedWord};
use alloc::vec::Vec;
use core::net::Ipv6Addr;

/// Token of a filter's text: a word, a number, an address, a name or a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterToken<'a> {
    Word(ReservedWord),
    Number(u32),
    Mac([u8; 6]),
    /// An IPv4 address of two to four parts, as written in a filter.
    Ipv4(&'a str),
    Ipv6(Ipv6Addr),
    Name(&'a str),
    Sign(SymbolToken),
}

/// Symbol of the filter language: an operator or a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolToken {
    Open,
    Close,
    OpenIndex,
    CloseIndex,
    Colon,
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const SIGNS: &[(&str, SymbolToken)] = &[
    (">=", SymbolToken::GreaterOrEqual),
    ("<=", SymbolToken::LessOrEqual),
    ("!=", SymbolToken::NotEqual),
    ("==", SymbolToken::Equal),
    ("<<", SymbolToken::ShiftLeft),
    (">>", SymbolToken::ShiftRight),
    ("(", SymbolToken::Open),
    (")", SymbolToken::Close),
    ("[", SymbolToken::OpenIndex),
    ("]", SymbolToken::CloseIndex),
    (":", SymbolToken::Colon),
    ("+", SymbolToken::Plus),
    ("-", SymbolToken::Minus),
    ("*", SymbolToken::Times),
    ("/", SymbolToken::Divide),
    ("%", SymbolToken::Modulo),
    ("&", SymbolToken::BitAnd),
    ("|", SymbolToken::BitOr),
    ("^", SymbolToken::BitXor),
    ("=", SymbolToken::Equal),
    ("<", SymbolToken::Less),
    (">", SymbolToken::Greater),
];
const WORD_SIGNS: &[(&str, ReservedWord)] = &[("&&", ReservedWord::And), ("||", ReservedWord::Or)];

/// Divides the text of a filter into tokens, each with the offset of its first byte.
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, FilterToken<'_>)>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = text[at..].trim_start_matches([' ', '\r', '\n', '\t']);
        at = text.len() - rest.len();
        if rest.is_empty() {
            return Ok(tokens);
        }
        let (length, token) = first(rest)?;
        tokens.push((at, token));
        at += length;
    }
}

/// Returns the first token of a text, and the token's length in bytes.
fn first(text: &str) -> Result<(usize, FilterToken<'_>), FilterError> {
    if let Some((sign, word)) = WORD_SIGNS.iter().find(|(sign, _)| text.starts_with(sign)) {
        return Ok((sign.len(), FilterToken::Word(*word)));
    }
    if let Some(name) = text.strip_prefix('\\') {
        let length = name.find([' ', '!', '(', ')', '\n', '\t']).unwrap_or(name.len());
        return if length == 0 {
            unknown(text)
        } else {
            Ok((length + 1, FilterToken::Name(&name[..length])))
        };
    }
    let name = name_length(text);
    if let Some(word) = words::word(&text[..name]) {
        return Ok((name, FilterToken::Word(word)));
    }
    let candidates = [
        (mac_length(text), 4),
        (number_length(text), 3),
        (ipv4_length(text), 2),
        (ipv6_length(text), 1),
        (name, 0),
    ];
    let Some((length, kind)) = candidates.into_iter().max().filter(|(length, _)| *length > 0) else {
        return sign(text);
    };
    let found = &text[..length];
    let token = match kind {
        4 => FilterToken::Mac(mac(found)),
        3 => FilterToken::Number(number(found)?),
        2 => FilterToken::Ipv4(found),
        1 => match found.parse() {
            Ok(address) => FilterToken::Ipv6(address),
            Err(_) => refuse!("{found} is not an IPv6 address"),
        },
        _ => words::number(found).map_or(FilterToken::Name(found), FilterToken::Number),
    };
    Ok((length, token))
}

fn sign(text: &str) -> Result<(usize, FilterToken<'_>), FilterError> {
    if let Some((sign, meaning)) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign)) {
        return Ok((sign.len(), FilterToken::Sign(*meaning)));
    }
    if text.starts_with('!') { Ok((1, FilterToken::Word(ReservedWord::Not))) } else { unknown(text) }
}

fn unknown(text: &str) -> Result<(usize, FilterToken<'_>), FilterError> {
    refuse!("unknown character at \"{text:.20}\"")
}

/// Returns the length of the name that a text begins with: letters and digits, with `-`, `_` and `.` between them; it
/// may end in a dot.
fn name_length(text: &str) -> usize {
    if !text.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return 0;
    }
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let run = text.find(|c| !inside(c)).unwrap_or(text.len());
    text[..run].trim_end_matches(['-', '_']).len()
}

fn number_length(text: &str) -> usize {
    let digits = |text: &str, is: fn(&char) -> bool| text.chars().take_while(is).count();
    if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        let length = digits(hex, char::is_ascii_hexdigit);
        if length > 0 {
            return length + 2;
        }
    }
    digits(text, char::is_ascii_digit)
}

/// Returns the length of the IPv4 address that a text begins with: two to four numbers with dots between them.
fn ipv4_length(text: &str) -> usize {
    let mut length = number_length(text);
    let mut parts = 1;
    while length > 0 && parts < 4 && text[length..].starts_with('.') {
        let part = number_length(&text[length + 1..]);
        if part == 0 {
            break;
        }
        length += 1 + part;
        parts += 1;
    }
    if parts > 1 { length } else { 0 }
}

/// Returns the length of the Ethernet address that a text begins with: six groups of one or two hexadecimal digits with
/// colons, dots or hyphens, three groups of four with dots, or twelve digits.
fn mac_length(text: &str) -> usize {
    let pairs = [':', '-', '.'].map(|separator| groups(text, separator, 6, 1..=2));
    let run = text.chars().take_while(char::is_ascii_hexdigit).count();
    let plain = if run >= 12 { 12 } else { 0 };
    pairs.into_iter().chain([groups(text, '.', 3, 4..=4), plain]).max().unwrap_or(0)
}

/// Returns the length of `count` groups of hexadecimal digits that a text begins with, or 0 if the text begins with
/// fewer groups.
fn groups(text: &str, separator: char, count: usize, digits: core::ops::RangeInclusive<usize>) -> usize {
    let mut length = 0;
    for group in 0..count {
        if group > 0 {
            if !text[length..].starts_with(separator) {
                return 0;
            }
            length += 1;
        }
        let found = text[length..].chars().take_while(char::is_ascii_hexdigit).count().min(*digits.end());
        if found < *digits.start() {
            return 0;
        }
        length += found;
    }
    length
}

fn mac(text: &str) -> [u8; 6] {
    let mut mac = [0; 6];
    let digits = |text: &str| u8::from_str_radix(text, 16).unwrap_or(0);
    let is_group = |c: char| matches!(c, ':' | '-') || (c == '.' && text.matches('.').count() == 5);
    if text.contains(is_group) {
        mac.iter_mut().zip(text.split(is_group)).for_each(|(byte, group)| *byte = digits(group));
    } else {
        let mut all = text.chars().filter_map(|c| c.to_digit(16));
        mac.iter_mut().for_each(|byte| {
            *byte =
                [all.next(), all.next()].into_iter().flatten().fold(0, |sum, digit| sum << 4 | digit as u8);
        });
    }
    mac
}

/// Returns the length of the IPv6 address that a text begins with: eight groups of up to four hexadecimal digits, or
/// fewer around `::`; an IPv4 address may stand for the last two.
fn ipv6_length(text: &str) -> usize {
    let run = text.chars().take_while(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.')).count().min(64);
    (2..=run).rev().find(|length| is_ipv6(&text[..*length])).unwrap_or(0)
}

fn is_ipv6(text: &str) -> bool {
    let count = |part: &str, may_end_in_ipv4: bool| -> Option<usize> {
        if part.is_empty() {
            return Some(0);
        }
        let groups = part.split(':').count();
        part.split(':').enumerate().try_fold(0, |sum, (n, group)| {
            let is_hex = (1..=4).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_ipv4 = may_end_in_ipv4
                && n + 1 == groups
                && group.split('.').count() == 4
                && group
                    .split('.')
                    .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
            Some(
                sum + if is_hex {
                    1
                } else if is_ipv4 {
                    2
                } else {
                    return None;
                },
            )
        })
    };
    match text.split_once("::") {
        Some((before, after)) => {
            count(before, false).zip(count(after, true)).is_some_and(|(before, after)| before + after <= 7)
        }
        None => count(text, true) == Some(8),
    }
}

/// Parses a number as C does: a leading 0 is octal, 0x hexadecimal.
pub(crate) fn number(text: &str) -> Result<u32, FilterError> {
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    match u32::from_str_radix(digits, radix) {
        Ok(number) => Ok(number),
        Err(error) => refuse!("{text} is not a 32-bit number of base {radix}: {error}"),
    }
}

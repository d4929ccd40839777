//! Text format of a kept corpus: an input a line, with Rust's escapes for bytes that are no printable ASCII.

/// Returns the inputs of a corpus.
///
/// # Errors
/// Number of the first line that is invalid, from 1 on.
pub(crate) fn parse(text: &str) -> Result<Vec<Vec<u8>>, usize> {
    let lines = (1..).zip(text.lines());
    lines.map(|(number, line)| input(line.as_bytes()).ok_or(number)).collect()
}

/// Returns the text of a corpus.
pub(crate) fn print(inputs: &[Vec<u8>]) -> String {
    inputs.iter().map(|input| format!("{}\n", input.escape_ascii())).collect()
}

/// Returns the input of a line.
fn input(mut line: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::new();
    loop {
        let (byte, rest) = match line {
            [] => return Some(bytes),
            [b'\\', b'x', high, low, rest @ ..] => (digit(high)? << 4 | digit(low)?, rest),
            [b'\\', escaped, rest @ ..] => {
                let byte = match escaped {
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'n' => b'\n',
                    b'\\' | b'\'' | b'"' => *escaped,
                    _ => return None,
                };
                (byte, rest)
            }
            [b'\\'] => return None,
            [byte, rest @ ..] => (*byte, rest),
        };
        bytes.push(byte);
        line = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, print};

    #[test]
    fn printed_corpus_is_parsed_unchanged() {
        let inputs = [(0..=255).collect(), b"vf 0 mac".to_vec(), vec![0]];
        let text = print(&inputs);
        assert!(text.is_ascii());
        assert_eq!(parse(&text).as_deref(), Ok(&inputs[..]));
        assert_eq!(parse("a\n\\q\n"), Err(2));
        assert_eq!(parse("\\x4"), Err(1));
    }
}

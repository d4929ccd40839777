//! The words of a command, read one after the other as iproute2 reads them.

use super::Said;

/// Those that are not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a>(&'a [String]);

impl<'a> Words<'a> {
    pub(super) fn new(words: &'a [String]) -> Self {
        Self(words)
    }

    /// The next word, which is not read by this.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.0.first().map(String::as_str)
    }

    /// Reads a word.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.0 = &self.0[1..];
        Some(word)
    }

    /// Reads a word if it is this one, possibly cut short.
    pub(super) fn skip(&mut self, full: &str) -> bool {
        let is_next = self.peek().is_some_and(|word| matches(word, full));
        if is_next {
            self.next();
        }
        is_next
    }

    /// Reads a word that has to be there.
    pub(super) fn value(&mut self) -> Result<&'a str, Said> {
        self.next().ok_or_else(|| Said::new("Command line is not complete. Try option \"help\"", 255))
    }

    /// Reads a number: decimal, or hexadecimal after 0x, or octal after 0.
    pub(super) fn number(&mut self, wrong: &str) -> Result<u32, Said> {
        let word = self.value()?;
        let number = match (word.strip_prefix("0x"), word.strip_prefix('0')) {
            (Some(digits), _) => u32::from_str_radix(digits, 16),
            (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8),
            _ => word.parse(),
        };
        number.map_err(|_| invalid(word, wrong))
    }

    /// Reads "on" or "off" for an attribute.
    pub(super) fn on_off(&mut self, attribute: &str) -> Result<bool, Said> {
        match self.value()? {
            "on" => Ok(true),
            "off" => Ok(false),
            other => {
                let one_of = "must be one of \"off\", \"on\"";
                Err(Said::new(format!("Error: argument of \"{attribute}\" {one_of}, not \"{other}\""), 1))
            }
        }
    }
}

/// Whether a word is another one, possibly cut short.
pub(super) fn matches(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

/// A word that makes no sense where it is.
pub(super) fn invalid(word: &str, wrong: &str) -> Said {
    Said::new(format!("Error: argument \"{word}\" is wrong: {wrong}\n"), 255)
}

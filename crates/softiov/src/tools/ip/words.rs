//! Reads the words of an `ip` command, one after the other as iproute2 reads them.

use super::ToolExit;

/// Words of an `ip` command that are not parsed yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct IpCommandWords<'a>(&'a [String]);

impl<'a> IpCommandWords<'a> {
    pub(super) fn new(words: &'a [String]) -> Self {
        Self(words)
    }

    /// Returns the next word of the command, which stays unread.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.0.first().map(String::as_str)
    }

    /// Reads the next word of the command.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.0 = &self.0[1..];
        Some(word)
    }

    /// Reads the next word if it is `full` or an abbreviation of it.
    pub(super) fn skip(&mut self, full: &str) -> bool {
        let is_next = self.peek().is_some_and(|word| matches(word, full));
        if is_next {
            self.next();
        }
        is_next
    }

    /// Reads the next word of the command, which must exist.
    pub(super) fn value(&mut self) -> Result<&'a str, ToolExit> {
        self.next().ok_or_else(|| ToolExit::new("Command line is not complete. Try option \"help\"", 255))
    }

    /// Reads the next word of the command as a number; `wrong` is the error for another word.
    pub(super) fn number(&mut self, wrong: &str) -> Result<u32, ToolExit> {
        let word = self.value()?;
        number(word).ok_or_else(|| invalid(word, wrong))
    }

    /// Reads the next word of the command as `on` or `off`, the value of an attribute.
    pub(super) fn on_off(&mut self, attribute: &str) -> Result<bool, ToolExit> {
        match self.value()? {
            "on" => Ok(true),
            "off" => Ok(false),
            other => {
                let one_of = "must be one of \"off\", \"on\"";
                Err(ToolExit::new(format!("Error: argument of \"{attribute}\" {one_of}, not \"{other}\""), 1))
            }
        }
    }
}

/// Parses a number as C's `strtoul` with base 0: decimal, hexadecimal after 0x, octal after 0.
pub(super) fn number(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('+').unwrap_or(word);
    let radix_digits = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let (radix, digits) = radix_digits;
    let has_digits = digits.starts_with(|first: char| first.is_ascii_hexdigit());
    has_digits.then(|| u32::from_str_radix(digits, radix).ok())?
}

/// Returns true if a word is `full` or an abbreviation of it.
pub(super) fn matches(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

/// Returns iproute2's error for an invalid word; `wrong` is the description of the fault.
pub(super) fn invalid(word: &str, wrong: &str) -> ToolExit {
    ToolExit::new(format!("Error: argument \"{word}\" is wrong: {wrong}\n"), 255)
}

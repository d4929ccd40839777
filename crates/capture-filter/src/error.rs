//! Errors of filters that are refused.

use alloc::string::String;
use core::fmt;

/// Error of a filter that is refused: the refused part of the text, and the reason or the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError(String);

impl FilterError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for FilterError {}

/// Returns a [`FilterError`] with a formatted text from the calling function.
macro_rules! refuse {
    ($($arguments:tt)*) => {
        return Err($crate::error::FilterError::new(alloc::format!($($arguments)*)))
    };
}
pub(crate) use refuse;

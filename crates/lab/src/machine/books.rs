//! What parts of a system owe: equations that must hold whenever one looks. A run that leaves one open is no
//! measurement. Left out: cycles, which the processors' own accounts are about.

use thiserror::Error;

/// Two counts that must be the same are not: a defect of the model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}: {owed} owed, {found} found")]
pub struct Unbalanced {
    /// What is counted.
    pub what: String,
    /// What there must be.
    pub owed: u64,
    /// What there is.
    pub found: u64,
}

/// Equations, the first of which that does not hold is remembered.
#[derive(Debug, Default)]
pub struct Books {
    open: Option<Unbalanced>,
}

impl Books {
    /// So much is owed, and so much was found.
    pub fn balance(&mut self, what: &str, owed: u64, found: u64) {
        if owed != found {
            self.open.get_or_insert_with(|| Unbalanced { what: what.to_owned(), owed, found });
        }
    }

    /// It must never have happened.
    pub fn never(&mut self, what: &str, times: u64) {
        self.balance(what, 0, times);
    }

    /// Whether all equations hold.
    pub(crate) fn close(self) -> Result<(), Unbalanced> {
        self.open.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::Books;

    #[test]
    fn the_first_equation_that_is_open_is_named() {
        let mut books = Books::default();
        books.balance("frames", 3, 3);
        books.balance("pages", 2, 1);
        books.never("interrupts lost", 1);
        assert_eq!(books.close().unwrap_err().to_string(), "pages: 2 owed, 1 found");
    }
}

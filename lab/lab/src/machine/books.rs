//! Conservation checks: equations over counters of a modelled system that must hold at any time. A run that
//! violates an equation has no valid results. Cycles are checked by the processors' own accounts.

use thiserror::Error;

/// Error: two counts of the model that must be equal differ.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the counts of {what} differ: expected {owed}, found {found}")]
pub struct CountMismatch {
    /// Quantity whose two counts must be equal.
    pub what: String,
    /// Count that the quantity should have.
    pub owed: u64,
    /// Count that the quantity has in the model.
    pub found: u64,
}

/// Conservation equations of a simulation, with the first equation that was violated.
#[derive(Debug, Default)]
pub struct ConservationChecks {
    open: Option<CountMismatch>,
}

impl ConservationChecks {
    /// Checks that two counts of the quantity `what` are equal: the expected `owed` and the counted `found`.
    pub fn balance(&mut self, what: &str, owed: u64, found: u64) {
        if owed != found {
            self.open.get_or_insert_with(|| CountMismatch { what: what.to_owned(), owed, found });
        }
    }

    /// Checks that the event `what` never happened; `times` is its count.
    pub fn never(&mut self, what: &str, times: u64) {
        self.balance(what, 0, times);
    }

    /// Ends the conservation checks. Returns the first violated equation as an error.
    pub(crate) fn close(self) -> Result<(), CountMismatch> {
        self.open.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::ConservationChecks;

    #[test]
    fn conservation_check_reports_the_first_unequal_counters() {
        let mut books = ConservationChecks::default();
        books.balance("frames", 3, 3);
        books.balance("pages", 2, 1);
        books.never("interrupts lost", 1);
        assert_eq!(books.close().unwrap_err().to_string(), "the counts of pages differ: expected 2, found 1");
    }
}

//! Counts of passed, failed and skipped tests. Reads no output.

use std::fmt;

/// Counts of tests. A stage without separate tests counts as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestTally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Number of tests that the test program ignored.
    pub(crate) ignored: usize,
    /// Name and reason of each test that did not run.
    pub(crate) skipped: Vec<String>,
    /// Failed tests with their reasons; empty for a stage that counts as one test.
    pub(crate) failures: Vec<TestFailure>,
}

/// Failed test with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestFailure {
    pub(crate) name: String,
    /// Text that the test printed about its failure, if it is known.
    pub(crate) reason: Option<String>,
}

impl fmt::Display for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            None => f.write_str(&self.name),
            Some(reason) => write!(f, "{}: {reason}", self.name),
        }
    }
}

impl TestTally {
    pub(crate) const PASSED: Self =
        Self { passed: 1, failed: 0, ignored: 0, skipped: Vec::new(), failures: Vec::new() };
    pub(crate) const FAILED: Self =
        Self { passed: 0, failed: 1, ignored: 0, skipped: Vec::new(), failures: Vec::new() };

    pub(crate) fn skip(what_and_why: String) -> Self {
        Self { skipped: vec![what_and_why], ..Self::default() }
    }

    /// Adds the test counts of another run to these.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
        self
    }

    pub(crate) fn skips(&self) -> usize {
        self.ignored + self.skipped.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.passed + self.failed + self.skips() == 0
    }
}

impl fmt::Display for TestTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skips())
    }
}

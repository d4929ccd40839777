//! Why a request was not served, as RFC 9457 has it: a JSON object of the type `application/problem+json`. The kinds and
//! their words are part of the interface: a program may rely on `type` and `status`, a person reads `detail`.

pub use super::problem_kind::Kind;
use super::protocol::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request that was not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The kind of problem, such as `urn:softiov:problem:no-such-name`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The status of the response.
    pub status: u16,
    /// What is wrong here, and what would be right.
    pub detail: String,
    /// The path that was asked for, which names the port or the VF.
    pub instance: String,
    /// What helps against problems of this kind.
    pub remedy: String,
}

impl Problem {
    /// What is told of a failure to whoever asked for this path.
    #[must_use]
    pub fn new(failure: Failure, path: &str) -> Self {
        let (name, title, remedy) = failure.kind.words();
        Self {
            kind: format!("urn:softiov:problem:{name}"),
            title: title.to_owned(),
            status: failure.kind.status().as_u16(),
            detail: failure.message,
            instance: path.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    /// Whether it is of this kind.
    #[must_use]
    pub fn is(&self, kind: Kind) -> bool {
        self.kind.rsplit(':').next() == Some(kind.name())
    }
}

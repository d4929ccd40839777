//! Error responses in the form of RFC 9457: a JSON object of the type `application/problem+json`. Kinds and titles are
//! part of the interface: a program may rely on `type` and `status`, a person reads `detail`.

pub use super::problem_kind::ProblemKind;
use super::protocol::ControlRequestFailure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Problem that kept the host from serving a request (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDetails {
    /// Kind of problem as a URN, such as `urn:softiov:problem:no-such-name`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Title of this kind of problem.
    pub title: String,
    /// HTTP status of the response.
    pub status: u16,
    /// Description of the problem with this request, and its remedy.
    pub detail: String,
    /// Path of the failed request, which names the port or the VF.
    pub instance: String,
    /// General remedy for problems of this kind.
    pub remedy: String,
}

impl ProblemDetails {
    /// Creates the problem details for a failed request to this path.
    #[must_use]
    pub fn new(failure: ControlRequestFailure, path: &str) -> Self {
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

    /// Returns true if the problem is of this kind.
    #[must_use]
    pub fn is(&self, kind: ProblemKind) -> bool {
        self.kind.rsplit(':').next() == Some(kind.name())
    }
}

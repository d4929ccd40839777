//! Kinds of problems with their names, titles, remedies and HTTP status, which are part of the interface.

use axum::http::StatusCode;

/// Kind of problem of a control request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The control request is not valid.
    Malformed,
    /// The token of a TCP client is missing or wrong.
    Unauthorized,
    /// The control request is not allowed over TCP, only over the control socket.
    LocalOnly,
    /// The named VF or port does not exist.
    NoSuchName,
    /// The path of the control request does not exist.
    NoSuchPath,
    /// The path of the control request does not support its HTTP method.
    WrongMethod,
    /// The control request did not arrive whole within its time limit.
    TooSlow,
    /// The requested change is invalid, or impossible in the present state.
    Refused,
    /// The body of the control request is too long, more than one MiB.
    TooLong,
    /// The Content-Type of the control request's body is not JSON.
    NotJson,
    /// The host is ending, or a port does not answer.
    Unavailable,
    /// Too many control requests are pending, a removed port has not ended, or a signal to the host comes before an upgrade. The
    /// host has changed nothing, and a later attempt may succeed.
    Busy,
    /// Another process serves the host now. The control request was not begun.
    HandedOver,
}

impl ProblemKind {
    /// All kinds of problems of control requests.
    pub const ALL: [Self; 13] = [
        Self::Malformed,
        Self::Unauthorized,
        Self::LocalOnly,
        Self::NoSuchName,
        Self::NoSuchPath,
        Self::WrongMethod,
        Self::TooSlow,
        Self::Refused,
        Self::TooLong,
        Self::NotJson,
        Self::Unavailable,
        Self::Busy,
        Self::HandedOver,
    ];

    /// Returns the HTTP status of a response with this kind of problem.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::LocalOnly => StatusCode::FORBIDDEN,
            Self::NoSuchName | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Refused => StatusCode::CONFLICT,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unavailable | Self::Busy | Self::HandedOver => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the name of this kind, the last part of the problem's type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns name, title and remedy of a kind of problem.
    pub(super) const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Malformed => {
                ("malformed", "The request is not valid", "compare the request with GET /v1/openapi.json")
            }
            Self::Unauthorized => (
                "unauthorized",
                "A token is needed",
                "send \"Authorization: Bearer TOKEN\" with the token of the configuration's token_file",
            ),
            Self::LocalOnly => (
                "local-only",
                "The request is not allowed over TCP",
                "send the request over the control socket",
            ),
            Self::NoSuchName => {
                ("no-such-name", "No port or VF has this name", "GET /v1/ports has all names")
            }
            Self::NoSuchPath => {
                ("no-such-path", "The path does not exist", "GET /v1/openapi.json has all paths")
            }
            Self::WrongMethod => (
                "wrong-method",
                "The path does not support this method",
                "the header Allow has the supported methods",
            ),
            Self::TooSlow => {
                ("too-slow", "The request did not arrive in time", "send the whole request at once")
            }
            Self::Refused => (
                "refused",
                "The change was refused as a whole",
                "correct the problem that detail names, and send the request again",
            ),
            Self::TooLong => ("too-long", "The body is too long", "send a body of at most one MiB"),
            Self::NotJson => {
                ("not-json", "The body's Content-Type is not JSON", "send \"Content-Type: application/json\"")
            }
            Self::Unavailable => ("unavailable", "The host or a port does not answer", "see the host's log"),
            Self::Busy => (
                "busy",
                "The host is busy, and the request was not carried out",
                "try again in a second, with one request at a time",
            ),
            Self::HandedOver => (
                "handed-over",
                "A new process serves the host now, and the request was not carried out",
                "send the request again",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProblemKind;
    use std::collections::BTreeSet;

    #[test]
    fn api_problem_kinds_have_unique_names_and_error_statuses() {
        let names: BTreeSet<&str> = ProblemKind::ALL.into_iter().map(ProblemKind::name).collect();
        assert_eq!(names.len(), ProblemKind::ALL.len());
        assert!(ProblemKind::ALL.into_iter().all(|kind| kind.status().as_u16() >= 400));
    }
}

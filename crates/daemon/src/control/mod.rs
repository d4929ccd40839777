//! Control interface: commands to a running host, as HTTP. `route` has the requests and their paths, [`openapi`]
//! describes them to programs, and [`problem`] defines the error responses. `management` carries the requests out, on
//! the thread named control.

pub mod client;
pub mod export;
pub mod functions;
mod metrics;
pub mod openapi;
pub mod problem;
mod problem_kind;
pub mod protocol;
pub(crate) mod route;
pub(crate) mod server;
pub mod status;
pub(crate) mod tcp;
pub mod uplink;

pub use route::check_request;

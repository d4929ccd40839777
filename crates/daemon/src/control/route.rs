//! Which request is which method and path: one table, from which the server serves, the client asks, and the
//! description of the interface ([`super::openapi`]) is made. Left out: sockets, and what a request does.

use super::functions::Functions;
use super::problem::Kind;
use super::protocol::{Apply, CaptureQuery, Change, Difference, Failure, Request, Upgraded};
use super::status::{PortStatus, VfStatus};
use crate::events::Recent;
use crate::flight::recording::Recording;
use crate::settings::{PortSettings, VfSettings};
use axum::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Bytes of the longest body either side accepts.
pub(crate) const MAX_BODY: usize = 1 << 20;

/// One method of one path.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Its name in programs that are made of the description.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// The form of the body, if there is one.
    pub(crate) body: Option<Form>,
    pub(crate) answer: Form,
    /// It changes more than a setting, and is for those who may open the control socket.
    pub(crate) local_only: bool,
    pub(crate) request: fn(&Input) -> Result<Request, Failure>,
}

/// The schema of a type.
pub(crate) type Form = fn(&mut SchemaGenerator) -> Schema;

/// Name, query and body of a request.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// What stands for `{port}` or `{vf}` in the path.
    pub(crate) name: String,
    /// Of the query.
    pub(crate) after: u64,
    pub(crate) body: Vec<u8>,
}

/// What is told of a name under `/v1/vfs`: a VF, or the port whose PF a guest drives in the place of VFs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Function {
    /// A VF.
    Vf(Box<VfStatus>),
    /// A port.
    Port(Box<PortStatus>),
}

pub(crate) static ROUTES: [Route; 12] = [
    Route {
        method: Method::GET,
        path: "/v1/ports",
        id: "listPorts",
        summary: "Every port with its VFs.",
        body: None,
        answer: form::<Vec<PortStatus>>,
        local_only: false,
        request: |_| Ok(Request::PortList),
    },
    Route {
        method: Method::GET,
        path: "/v1/ports/{port}",
        id: "showPort",
        summary: "One port with its VFs.",
        body: None,
        answer: form::<PortStatus>,
        local_only: false,
        request: |input| Ok(Request::PortShow { port: input.name.clone() }),
    },
    Route {
        method: Method::GET,
        path: "/v1/ports/{port}/functions",
        id: "listFunctions",
        summary: "A port's functions as PCI devices: their configuration spaces, drivers and rings.",
        body: None,
        answer: form::<Functions>,
        local_only: false,
        request: |input| Ok(Request::PortFunctions { port: input.name.clone() }),
    },
    Route {
        method: Method::PATCH,
        path: "/v1/ports/{port}",
        id: "changePort",
        summary: "Changes settings of a port: all that are named, or none. What is not named stays.",
        body: Some(form::<Change<PortSettings>>),
        answer: form::<PortStatus>,
        local_only: false,
        request: |input| Ok(Request::PortSet { port: input.name.clone(), change: input.json()? }),
    },
    Route {
        method: Method::POST,
        path: "/v1/ports/{port}/reset",
        id: "resetPort",
        summary: "Resets a port: its guests are told, their drivers start anew, and its policy stays.",
        body: None,
        answer: form::<PortStatus>,
        local_only: true,
        request: |input| Ok(Request::PortReset { port: input.name.clone() }),
    },
    Route {
        method: Method::GET,
        path: "/v1/vfs/{vf}",
        id: "showVf",
        summary: "One VF, or the port whose PF a guest drives.",
        body: None,
        answer: form::<Function>,
        local_only: false,
        request: |input| Ok(Request::VfShow { vf: input.name.clone() }),
    },
    Route {
        method: Method::PATCH,
        path: "/v1/vfs/{vf}",
        id: "changeVf",
        summary: "Changes settings of a VF: all that are named, or none. What is not named stays.",
        body: Some(form::<Change<VfSettings>>),
        answer: form::<VfStatus>,
        local_only: false,
        request: |input| Ok(Request::VfSet { vf: input.name.clone(), change: input.json()? }),
    },
    Route {
        method: Method::POST,
        path: "/v1/vfs/{vf}/disconnect",
        id: "disconnectVf",
        summary: "Ends the connection of a VF's client: its guest loses the VF. Another client may connect.",
        body: None,
        answer: form::<VfStatus>,
        local_only: true,
        request: |input| Ok(Request::VfDisconnect { vf: input.name.clone() }),
    },
    Route {
        method: Method::GET,
        path: "/v1/vfs/{vf}/flight",
        id: "showFlight",
        summary: "What a VF and its client did last: registers read and written, requests refused, frames dropped, resets.",
        body: None,
        answer: form::<Recording>,
        local_only: false,
        request: |input| Ok(Request::VfFlight { vf: input.name.clone() }),
    },
    Route {
        method: Method::GET,
        path: "/v1/events",
        id: "listEvents",
        summary: "What has happened after the event with the number `after`; 256 events at most.",
        body: None,
        answer: form::<Recent>,
        local_only: false,
        request: |input| Ok(Request::Events { after: input.after }),
    },
    Route {
        method: Method::POST,
        path: "/v1/apply",
        id: "apply",
        summary: "Makes the host what a configuration file says, all of it or nothing; or tells what would change.",
        body: Some(form::<Apply>),
        answer: form::<Difference>,
        local_only: true,
        request: |input| input.json().map(Request::Apply),
    },
    Route {
        method: Method::POST,
        path: "/v1/upgrade",
        id: "upgrade",
        summary: "Has a new process of the program take over, with all clients.",
        body: None,
        answer: form::<Upgraded>,
        local_only: true,
        request: |_| Ok(Request::Upgrade),
    },
];

fn form<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

impl Input {
    fn json<T: for<'a> Deserialize<'a>>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::new(Kind::Malformed, format!("the body is no such request: {error}")))
    }
}

/// A request as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Vec<u8>>,
    /// The last event that is known already, as its id.
    pub(crate) last_event: Option<String>,
}

impl Sent {
    /// Asks for what is under a path.
    pub(crate) fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None, last_event: None }
    }
}

/// Events as they happen.
pub(crate) const EVENTS: &str = "/v1/events/stream";
/// The header in which a client says which event it knows already.
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

impl Request {
    /// How to send it.
    pub(crate) fn sent(&self) -> serde_json::Result<Sent> {
        let (id, name, body) = match self {
            Self::PortList => ("listPorts", "", None),
            Self::PortShow { port } => ("showPort", port.as_str(), None),
            Self::PortFunctions { port } => ("listFunctions", port.as_str(), None),
            Self::PortSet { port, change } => {
                ("changePort", port.as_str(), Some(serde_json::to_vec(change)?))
            }
            Self::PortReset { port } => ("resetPort", port.as_str(), None),
            Self::VfShow { vf } => ("showVf", vf.as_str(), None),
            Self::VfSet { vf, change } => ("changeVf", vf.as_str(), Some(serde_json::to_vec(change)?)),
            Self::VfDisconnect { vf } => ("disconnectVf", vf.as_str(), None),
            Self::VfFlight { vf } => ("showFlight", vf.as_str(), None),
            Self::Events { .. } => ("listEvents", "", None),
            Self::Apply(file) => ("apply", "", Some(serde_json::to_vec(file)?)),
            Self::Upgrade => ("upgrade", "", None),
        };
        let (method, path) = place(id);
        let mut path = with_name(path, name);
        if let Self::Events { after } = self {
            path += &format!("?after={after}");
        }
        Ok(Sent { method, path, body, last_event: None })
    }
}

/// Method and path of the route with this name.
fn place(id: &str) -> (Method, &'static str) {
    let route = ROUTES.iter().find(|route| route.id == id);
    route.map_or((Method::GET, "/"), |route| (route.method.clone(), route.path))
}

/// What may stand in a path as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The path with a name in the place of its braces.
fn with_name(path: &str, name: &str) -> String {
    match (path.split_once('{'), path.split_once('}')) {
        (Some((before, _)), Some((_, behind))) => {
            format!("{before}{}{behind}", utf8_percent_encode(name, PLAIN))
        }
        _ => path.to_owned(),
    }
}

/// The path under which frames are captured. It is no route, since its answer is no JSON.
pub(crate) const CAPTURE: &str = "/v1/ports/{port}/capture";

/// Path and query of a capture.
pub(crate) fn capture_path(query: &CaptureQuery) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
    let CaptureQuery { port, at, filter, drops, snaplen } = query;
    let snaplen = snaplen.map_or_else(String::new, |bytes| format!("&snaplen={bytes}"));
    let path = with_name(CAPTURE, port);
    format!("{path}?at={}&filter={}&drops={drops}{snaplen}", encoded(&at.join(",")), encoded(filter))
}

#[cfg(test)]
mod tests {
    use super::{Input, ROUTES, Request};
    use crate::control::protocol::{Apply, Change};
    use crate::settings::{PortSettings, VfSettings};

    /// One of each.
    fn requests() -> [Request; 12] {
        let (port, vf) = (|| "pf0".to_owned(), || "pf0vf1".to_owned());
        let change = Change::kept(PortSettings { vfs: Some(3), ..PortSettings::default() });
        let vf_change = Change::volatile(VfSettings { vlan: Some(3), ..VfSettings::default() });
        [
            Request::PortList,
            Request::PortShow { port: port() },
            Request::PortFunctions { port: port() },
            Request::PortSet { port: port(), change },
            Request::PortReset { port: port() },
            Request::VfShow { vf: vf() },
            Request::VfSet { vf: vf(), change: vf_change },
            Request::VfDisconnect { vf: vf() },
            Request::VfFlight { vf: vf() },
            Request::Events { after: 7 },
            Request::Apply(Apply { text: "x".into(), ..Apply::default() }),
            Request::Upgrade,
        ]
    }

    #[test]
    fn each_request_is_sent_to_a_route_that_reads_it_back() {
        for (request, route) in requests().into_iter().zip(&ROUTES) {
            let sent = request.sent().unwrap();
            assert_eq!(sent.method, route.method);
            assert_eq!(sent.body.is_some(), route.body.is_some(), "{}", route.id);
            let name = if route.path.contains("{port}") { "pf0" } else { "pf0vf1" };
            let input = Input { name: name.into(), after: 7, body: sent.body.unwrap_or_default() };
            assert_eq!((route.request)(&input).unwrap(), request);
        }
    }

    #[test]
    fn a_name_cannot_leave_its_place_in_the_path() {
        let path = |vf: &str| Request::VfDisconnect { vf: vf.into() }.sent().unwrap().path;
        assert_eq!(path("pf0vf1"), "/v1/vfs/pf0vf1/disconnect");
        assert_eq!(path("../../x?y#z %"), "/v1/vfs/%2E%2E%2F%2E%2E%2Fx%3Fy%23z%20%25/disconnect");
    }
}

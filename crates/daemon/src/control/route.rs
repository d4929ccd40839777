//! Table of routes: method, path and schemas of every request. The server, the client and the description of the
//! interface ([`super::openapi`]) all use it.

use super::export::VfImport;
use super::functions::PortFunctions;
use super::problem::ProblemKind;
use super::protocol::{
    ApplyRequest, CaptureQuery, ConfigDifference, ControlRequest, ControlRequestFailure, SettingsCommand,
    UpgradeResult,
};
use super::status::{PortStatus, VfStatus};
use crate::events::RecentEvents;
use crate::flight::recording::FlightRecording;
use crate::settings::{PortSettings, VfSettings};
use axum::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Maximum bytes of a request's or response's body, which server and client accept.
pub(crate) const MAX_BODY: usize = 1 << 20;

/// Route of the control interface: method, path, schemas and handling of one request.
#[derive(Debug)]
pub(crate) struct ControlRoute {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Operation id: the name of the request in programs generated from the description.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// Schema of the request's body, if the request has one.
    pub(crate) body: Option<SchemaFunction>,
    pub(crate) answer: SchemaFunction,
    /// True if only the control socket allows this request, and TCP does not: the request changes more than a setting.
    pub(crate) local_only: bool,
    pub(crate) request: fn(&ControlRouteInput) -> Result<ControlRequest, ControlRequestFailure>,
}

/// Function that returns the JSON schema of a type.
pub(crate) type SchemaFunction = fn(&mut SchemaGenerator) -> Schema;

/// Name, query and body of a received control request.
#[derive(Debug, Default)]
pub(crate) struct ControlRouteInput {
    /// Value of `{port}` or `{vf}` in the path.
    pub(crate) name: String,
    /// Query parameter `after`: number of the event after which a list of events begins.
    pub(crate) after: u64,
    pub(crate) body: Vec<u8>,
}

/// Status of the VF with the requested name, or of the port with that name whose PF a guest drives.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum VfOrGuestPf {
    /// Status of the requested VF.
    Vf(Box<VfStatus>),
    /// Status of the requested port, whose PF a guest drives.
    Port(Box<PortStatus>),
}

/// Routes of the control interface, in the order of the OpenAPI description.
pub(crate) static ROUTES: [ControlRoute; 13] = [
    ControlRoute {
        method: Method::GET,
        path: "/v1/ports",
        id: "listPorts",
        summary: "Every port with its VFs.",
        body: None,
        answer: form::<Vec<PortStatus>>,
        local_only: false,
        request: |_| Ok(ControlRequest::PortList),
    },
    ControlRoute {
        method: Method::GET,
        path: "/v1/ports/{port}",
        id: "showPort",
        summary: "One port with its VFs.",
        body: None,
        answer: form::<PortStatus>,
        local_only: false,
        request: |input| Ok(ControlRequest::PortShow { port: input.name.clone() }),
    },
    ControlRoute {
        method: Method::GET,
        path: "/v1/ports/{port}/functions",
        id: "listFunctions",
        summary: "A port's functions as PCI devices: configuration spaces and rings.",
        body: None,
        answer: form::<PortFunctions>,
        local_only: false,
        request: |input| Ok(ControlRequest::PortFunctions { port: input.name.clone() }),
    },
    ControlRoute {
        method: Method::PATCH,
        path: "/v1/ports/{port}",
        id: "changePort",
        summary: "Changes the given settings of a port, all or none. Other settings stay.",
        body: Some(form::<SettingsCommand<PortSettings>>),
        answer: form::<PortStatus>,
        local_only: false,
        request: |input| Ok(ControlRequest::PortSet { port: input.name.clone(), change: input.json()? }),
    },
    ControlRoute {
        method: Method::POST,
        path: "/v1/ports/{port}/reset",
        id: "resetPort",
        summary: "Resets a port: its guests are notified, their drivers restart, and its policy stays.",
        body: None,
        answer: form::<PortStatus>,
        local_only: true,
        request: |input| Ok(ControlRequest::PortReset { port: input.name.clone() }),
    },
    ControlRoute {
        method: Method::GET,
        path: "/v1/vfs/{vf}",
        id: "showVf",
        summary: "One VF, or the port whose PF a guest drives.",
        body: None,
        answer: form::<VfOrGuestPf>,
        local_only: false,
        request: |input| Ok(ControlRequest::VfShow { vf: input.name.clone() }),
    },
    ControlRoute {
        method: Method::PATCH,
        path: "/v1/vfs/{vf}",
        id: "changeVf",
        summary: "Changes the given settings of a VF, all or none. Other settings stay.",
        body: Some(form::<SettingsCommand<VfSettings>>),
        answer: form::<VfStatus>,
        local_only: false,
        request: |input| Ok(ControlRequest::VfSet { vf: input.name.clone(), change: input.json()? }),
    },
    ControlRoute {
        method: Method::POST,
        path: "/v1/vfs/{vf}/import",
        id: "importVf",
        summary: "Imports the settings of a VF of another host, all or none, and counts on from its counters.",
        body: Some(form::<VfImport>),
        answer: form::<VfStatus>,
        local_only: true,
        request: |input| Ok(ControlRequest::VfImport { vf: input.name.clone(), import: input.json()? }),
    },
    ControlRoute {
        method: Method::POST,
        path: "/v1/vfs/{vf}/disconnect",
        id: "disconnectVf",
        summary: "Ends the connection of a VF's client: its guest loses the VF. Another client may connect.",
        body: None,
        answer: form::<VfStatus>,
        local_only: true,
        request: |input| Ok(ControlRequest::VfDisconnect { vf: input.name.clone() }),
    },
    ControlRoute {
        method: Method::GET,
        path: "/v1/vfs/{vf}/flight",
        id: "showFlight",
        summary: "Last actions of a VF and its client: registers read and written, requests refused, frames dropped, resets.",
        body: None,
        answer: form::<FlightRecording>,
        local_only: false,
        request: |input| Ok(ControlRequest::VfFlight { vf: input.name.clone() }),
    },
    ControlRoute {
        method: Method::GET,
        path: "/v1/events",
        id: "listEvents",
        summary: "Events after the one with the number `after`; 256 events at most.",
        body: None,
        answer: form::<RecentEvents>,
        local_only: false,
        request: |input| Ok(ControlRequest::Events { after: input.after }),
    },
    ControlRoute {
        method: Method::POST,
        path: "/v1/apply",
        id: "apply",
        summary: "Applies a configuration file to the host, whole or not at all; or returns the difference.",
        body: Some(form::<ApplyRequest>),
        answer: form::<ConfigDifference>,
        local_only: true,
        request: |input| input.json().map(ControlRequest::Apply),
    },
    ControlRoute {
        method: Method::POST,
        path: "/v1/upgrade",
        id: "upgrade",
        summary: "Hands over to a new process of the program, with all clients.",
        body: None,
        answer: form::<UpgradeResult>,
        local_only: true,
        request: |_| Ok(ControlRequest::Upgrade),
    },
];

/// Returns the JSON schema of the type `T`.
fn form<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

impl ControlRouteInput {
    fn json<T: for<'a> Deserialize<'a>>(&self) -> Result<T, ControlRequestFailure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            ControlRequestFailure::new(
                ProblemKind::Malformed,
                format!("the body is invalid for this request: {error}"),
            )
        })
    }
}

/// Parses the body of a request on the route with number `route`, sends the parsed request again as the client does, and
/// parses that too. The fuzz target of control requests calls it.
///
/// # Errors
/// [`ControlRequestFailure`] if the body is invalid for the route.
///
/// # Panics
/// If the request changes on its way.
pub fn check_request(
    route: usize,
    name: &str,
    after: u64,
    body: &[u8],
) -> Result<ControlRequest, ControlRequestFailure> {
    let route = &ROUTES[route % ROUTES.len()];
    let input = ControlRouteInput { name: name.to_owned(), after, body: body.to_owned() };
    let request = (route.request)(&input)?;
    let sent = request.sent().expect("a parsed request has a JSON form");
    assert_eq!((&sent.method, sent.body.is_some()), (&route.method, route.body.is_some()));
    let again = (route.request)(&ControlRouteInput { body: sent.body.unwrap_or_default(), ..input });
    assert_eq!(again.as_ref(), Ok(&request), "the request changes on its way");
    Ok(request)
}

/// HTTP request by which the client sends a control request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Vec<u8>>,
    /// Id of the last event that the client has received.
    pub(crate) last_event: Option<String>,
}

impl HttpRequest {
    /// Creates an HTTP GET request for a path of the control interface.
    pub(crate) fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None, last_event: None }
    }
}

/// Path of the host's stream of events.
pub(crate) const EVENTS: &str = "/v1/events/stream";
/// Header with the id of the last event that the client has received (server-sent events).
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

impl ControlRequest {
    /// Converts the control request to the HTTP request that carries it.
    pub(crate) fn sent(&self) -> serde_json::Result<HttpRequest> {
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
            Self::VfImport { vf, import } => ("importVf", vf.as_str(), Some(serde_json::to_vec(import)?)),
            Self::VfDisconnect { vf } => ("disconnectVf", vf.as_str(), None),
            Self::VfFlight { vf } => ("showFlight", vf.as_str(), None),
            Self::Events { .. } => ("listEvents", "", None),
            Self::Apply(file) => ("apply", "", Some(serde_json::to_vec(file)?)),
            Self::Upgrade => ("upgrade", "", None),
        };
        let (method, path) = method_and_path(id);
        let mut path = with_name(path, name);
        if let Self::Events { after } = self {
            path += &format!("?after={after}");
        }
        Ok(HttpRequest { method, path, body, last_event: None })
    }
}

/// Returns HTTP method and path of the route with this operation id.
fn method_and_path(id: &str) -> (Method, &'static str) {
    let route = ROUTES.iter().find(|route| route.id == id);
    route.map_or((Method::GET, "/"), |route| (route.method.clone(), route.path))
}

/// Characters, besides letters and digits, that a name in a path contains unescaped.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Replaces `{port}` or `{vf}` in a route's path by a name.
fn with_name(path: &str, name: &str) -> String {
    match (path.split_once('{'), path.split_once('}')) {
        (Some((before, _)), Some((_, behind))) => {
            format!("{before}{}{behind}", utf8_percent_encode(name, PLAIN))
        }
        _ => path.to_owned(),
    }
}

/// Path of packet captures of a port. It is not in [`ROUTES`], because its answer is not JSON.
pub(crate) const CAPTURE: &str = "/v1/ports/{port}/capture";

/// Returns path and query of the HTTP request for a packet capture.
pub(crate) fn capture_path(query: &CaptureQuery) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
    let CaptureQuery { port, at, filter, drops, snaplen } = query;
    let snaplen = snaplen.map_or_else(String::new, |bytes| format!("&snaplen={bytes}"));
    let path = with_name(CAPTURE, port);
    format!("{path}?at={}&filter={}&drops={drops}{snaplen}", encoded(&at.join(",")), encoded(filter))
}

#[cfg(test)]
mod tests {
    use super::{ControlRequest, ControlRouteInput, ROUTES};
    use crate::control::export::{ExportedCounters, FORMAT, VfExport, VfImport};
    use crate::control::protocol::{ApplyRequest, SettingsCommand};
    use crate::settings::{PortSettings, VfSettings};

    /// Returns an example of each control request, in the order of [`ROUTES`].
    fn requests() -> [ControlRequest; 13] {
        let (port, vf) = (|| "pf0".to_owned(), || "pf0vf1".to_owned());
        let change = SettingsCommand::kept(PortSettings { vfs: Some(3), ..PortSettings::default() });
        let settings = VfSettings { vlan: Some(3), ..VfSettings::default() };
        let vf_change = SettingsCommand::volatile(settings.clone());
        let counters = ExportedCounters::default();
        let export = VfExport { format: FORMAT, name: vf(), settings, counters };
        let import = VfImport { export, volatile: true };
        [
            ControlRequest::PortList,
            ControlRequest::PortShow { port: port() },
            ControlRequest::PortFunctions { port: port() },
            ControlRequest::PortSet { port: port(), change },
            ControlRequest::PortReset { port: port() },
            ControlRequest::VfShow { vf: vf() },
            ControlRequest::VfSet { vf: vf(), change: vf_change },
            ControlRequest::VfImport { vf: vf(), import },
            ControlRequest::VfDisconnect { vf: vf() },
            ControlRequest::VfFlight { vf: vf() },
            ControlRequest::Events { after: 7 },
            ControlRequest::Apply(ApplyRequest { text: "x".into(), ..ApplyRequest::default() }),
            ControlRequest::Upgrade,
        ]
    }

    #[test]
    fn control_request_sent_over_its_http_route_is_parsed_unchanged() {
        for (request, route) in requests().into_iter().zip(&ROUTES) {
            let sent = request.sent().unwrap();
            assert_eq!(sent.method, route.method);
            assert_eq!(sent.body.is_some(), route.body.is_some(), "{}", route.id);
            let name = if route.path.contains("{port}") { "pf0" } else { "pf0vf1" };
            let input =
                ControlRouteInput { name: name.into(), after: 7, body: sent.body.unwrap_or_default() };
            assert_eq!((route.request)(&input).unwrap(), request);
        }
    }

    #[test]
    fn vf_name_with_special_characters_is_one_path_segment() {
        let path = |vf: &str| ControlRequest::VfDisconnect { vf: vf.into() }.sent().unwrap().path;
        assert_eq!(path("pf0vf1"), "/v1/vfs/pf0vf1/disconnect");
        assert_eq!(path("../../x?y#z %"), "/v1/vfs/%2E%2E%2F%2E%2E%2Fx%3Fy%23z%20%25/disconnect");
    }
}

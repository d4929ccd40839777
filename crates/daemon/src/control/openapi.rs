//! OpenAPI 3.1 description of the control interface, generated from the routes and from the types of their requests and
//! answers, so that it cannot differ from the code. `docs/openapi.json` is a copy.

use super::problem::{ProblemDetails, ProblemKind};
use super::route::{CAPTURE, ControlRoute, ROUTES, SchemaFunction};
use crate::events::HostEvent;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Paths of the control interface outside the table of routes: path, operation id, summary and media type.
const OTHERS: [(&str, &str, &str, &str); 4] = [
    ("/metrics", "metrics", "Counters for Prometheus, or by the header Accept in OpenMetrics.", "text/plain"),
    (
        "/v1/events/stream",
        "streamEvents",
        "Server-sent events: those after the event with the number `after` (or the header Last-Event-ID), then new ones as \
                 they happen. An `event` has an Event as its data; `lost` has the number of events that were dropped before the \
                 client read them.",
        "text/event-stream",
    ),
    (
        CAPTURE,
        "captureFrames",
        "Frames on a port as they happen, as pcapng: an interface for each function and for the uplink, the direction of each \
                 frame, and the reason of each drop (in a comment). A client that reads too slowly misses frames; the next packet \
                 has their number. At most 4 captures run at a time.",
        "application/x-pcapng",
    ),
    ("/v1/openapi.json", "describe", "OpenAPI description of the control interface.", "application/json"),
];

/// Creates the OpenAPI description of the control interface.
#[must_use]
pub fn description() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<ProblemDetails>();
    schemas.subschema_for::<HostEvent>();
    let mut paths = Map::new();
    for route in &ROUTES {
        add(&mut paths, route.path, route.method.as_str(), operation(route, &mut schemas));
    }
    for (path, id, summary, media) in OTHERS {
        let answer = json!({"200": {"description": "Served", "content": {media: {}}}});
        let parameters = match path {
            CAPTURE => capture(),
            path if path.ends_with("stream") => vec![after()],
            _ => Vec::new(),
        };
        let operation =
            json!({"operationId": id, "summary": summary, "parameters": parameters, "responses": answer});
        add(&mut paths, path, "GET", operation);
    }
    let kinds: Vec<String> = ProblemKind::ALL
        .iter()
        .map(|kind| format!("{} `urn:softiov:problem:{}`", kind.status().as_u16(), kind.name()))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "SoftIOV",
            "version": "1",
            "description": "The control interface of a running host, over its control socket.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "servers": [{"url": "http://localhost", "description": "The UNIX socket control/control.sock"}],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "responses": {"Problem": {
                "description": format!("Not served: {}", kinds.join(", ")),
                "content": {"application/problem+json": {"schema": problem}},
            }},
        },
    })
}

/// Returns the OpenAPI description as JSON text, as the host serves it and `docs/openapi.json` contains it.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", description())
}

/// Adds an operation to a path of the OpenAPI description.
fn add(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let methods = paths.entry(path).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(methods) = methods {
        methods.insert(method.to_lowercase(), operation);
    }
}

/// Describes a route of the control interface.
fn operation(route: &ControlRoute, schemas: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": {
            "200": {"description": "Served", "content": content(route.answer, schemas)},
            "default": {"$ref": "#/components/responses/Problem"},
        },
    });
    if let Some(form) = route.body {
        operation["requestBody"] = json!({"required": true, "content": content(form, schemas)});
    }
    if route.local_only {
        operation["description"] = json!("Over the control socket only, not over TCP.");
    }
    operation
}

fn content(form: SchemaFunction, schemas: &mut SchemaGenerator) -> Value {
    json!({"application/json": {"schema": form(schemas)}})
}

/// Describes the parameters of a route's path and query.
fn parameters(route: &ControlRoute) -> Vec<Value> {
    let name = route.path.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(name, _)| name);
    let name =
        name.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    name.into_iter().chain((route.id == "listEvents").then(after)).collect()
}

/// Describes the query parameters of a packet capture.
fn capture() -> Vec<Value> {
    let text = json!({"type": "string"});
    let query = |name: &str, schema: Value, what: &str| json!({"name": name, "in": "query", "description": what, "schema": schema});
    vec![
        json!({"name": "port", "in": "path", "required": true, "schema": text}),
        query("at", text.clone(), "Names of functions, and `uplink`, separated by commas; all if missing."),
        query(
            "filter",
            text,
            "Filter in the language of pcap-filter(7), such as `tcp port 80`, of at most 4,096 bytes.",
        ),
        query("drops", json!({"type": "boolean", "default": false}), "True to capture dropped frames only."),
        query("snaplen", json!({"type": "integer", "minimum": 14}), "Maximum captured bytes of each frame."),
    ]
}

/// Describes the query parameter `after`: the number of the event after which a list of events begins.
fn after() -> Value {
    json!({"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0, "default": 0}})
}

#[cfg(test)]
mod tests {
    use super::{description, text};
    use serde_json::Value;
    use std::path::Path;

    #[test]
    fn documented_openapi_file_equals_the_generated_one() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("WRITE").is_some() {
            std::fs::write(&file, text()).unwrap();
        }
        let copy = std::fs::read_to_string(file).unwrap_or_default();
        assert!(copy == text(), "generate it: WRITE=1 cargo test -p daemon --lib openapi");
    }

    #[test]
    fn every_openapi_reference_has_a_target() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| references(value, found));
                }
                Value::Array(values) => values.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let (whole, mut found) = (description(), Vec::new());
        references(&whole, &mut found);
        assert!(found.len() > 20);
        for reference in found {
            let pointer =
                reference.strip_prefix('#').expect("a reference must point into the OpenAPI document");
            assert!(whole.pointer(pointer).is_some(), "{reference}");
        }
    }
}

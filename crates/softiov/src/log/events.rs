//! Stores log lines as records for `softiov events`, in the form of `daemon::events`.

use daemon::events::{self, HostEvent};
use serde_json::{Map, Value};
use std::fmt::Debug;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;

/// Tracing layer that stores each log line as a record for `softiov events`.
#[derive(Debug)]
pub(crate) struct EventRecordLayer;

/// Log fields that state which function, port or tap a log line is about. The first one that the line has
/// counts.
const ABOUT: [&str; 5] = ["function", "vf", "port", "pf", "tap"];

impl<S: Subscriber> Layer<S> for EventRecordLayer {
    fn on_event(&self, line: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = LogLineFields::default();
        line.record(&mut fields);
        let mut time = String::new();
        // Writing into a string does not fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let level = line.metadata().level().as_str().to_lowercase();
        events::note(fields.event(time, level));
    }
}

#[derive(Debug, Default)]
struct LogLineFields {
    message: String,
    others: Map<String, Value>,
}

impl LogLineFields {
    fn event(self, time: String, level: String) -> HostEvent {
        let Self { message, mut others } = self;
        let name = ABOUT.into_iter().find(|name| others.contains_key(*name));
        let about = name.and_then(|name| match others.remove(name)? {
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        });
        // Most lines have suppressed no earlier ones.
        others.retain(|name, value| name != "suppressed" || *value != 0);
        HostEvent { number: 0, time, level, about, event: message, fields: others }
    }

    fn keep(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => {
                self.others.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for LogLineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.keep(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, Value::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::EventRecordLayer;
    use daemon::events;
    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn event_record_names_the_function_or_tap_of_its_log_line() {
        let subscriber = tracing_subscriber::registry().with(EventRecordLayer);
        tracing::subscriber::with_default(subscriber, || {
            let (name, count) = ("pf0vf3", 7_u64);
            tracing::warn!(function = name, count, suppressed = 0_u64, "the VF exceeds {}", "a threshold");
            tracing::info!(tap = %"tap0", up = true, suppressed = 2_u64, "the tap is back");
        });
        let kept = serde_json::to_value(events::after(0).events).expect("JSON");
        let [first, second] = kept.as_array().expect("events must be an array").as_slice() else {
            panic!("{kept}")
        };
        let without_time = |event: &Value| {
            let mut event = event.clone();
            let time = event["time"].take();
            assert!(time.as_str().is_some_and(|time| time.len() > 20 && time.ends_with('Z')), "{time}");
            event
        };
        assert_eq!(
            without_time(first),
            json!({"number": 1, "time": null, "level": "warn", "about": "pf0vf3",
                   "event": "the VF exceeds a threshold", "fields": {"count": 7}})
        );
        assert_eq!(
            without_time(second),
            json!({"number": 2, "time": null, "level": "info", "about": "tap0", "event": "the tap is back",
                "fields": {"up": true, "suppressed": 2}})
        );
    }
}

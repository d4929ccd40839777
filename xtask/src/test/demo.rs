//! Checks the results of `softiov demo` in JSON, without its speed.

use serde_json::Value;

/// Number of guests of the demo without `--linux`.
pub(super) const EMBEDDED_GUESTS: usize = 3;
/// Number of virtual machines of the demo with `--linux`.
pub(super) const LINUX_GUESTS: usize = 2;

/// Checks the demo's JSON output for `expected` guests, answered pings, flows and counters. Returns a summary
/// of the demo.
///
/// # Errors
/// The missing or wrong part of the output.
pub(super) fn check(json: &str, expected: usize) -> Result<String, String> {
    let demo: Value =
        serde_json::from_str(json).map_err(|error| format!("the output of the demo is not JSON: {error}"))?;
    let guests = list(&demo, "guests")?;
    if guests.len() < expected {
        return Err(format!("the demo reports {} guests instead of {expected}", guests.len()));
    }
    for key in ["vf", "kind", "mac", "driver"] {
        if let Some(guest) = guests.iter().find(|guest| guest[key].is_null()) {
            return Err(format!("a guest of the demo has no \"{key}\": {guest}"));
        }
    }
    let pings = list(&demo, "pings")?;
    if let Some(lost) = pings.iter().find(|ping| !is_answered(ping)) {
        return Err(format!("a ping of the demo was not answered: {lost}"));
    }
    let flows = list(&demo, "flows")?;
    if let Some(dry) = flows.iter().find(|flow| flow["bytes"].as_u64().unwrap_or(0) == 0) {
        return Err(format!("a flow of the demo carried no bytes: {dry}"));
    }
    let interventions = &demo["interventions_per_1000_packets"];
    if let Some(key) =
        ["reads", "writes", "interrupts"].into_iter().find(|key| !interventions[key].is_number())
    {
        return Err(format!("no \"{key}\" in \"interventions_per_1000_packets\": {interventions}"));
    }
    let vfs = list(&demo, "vfs")?;
    if let Some(idle) = vfs.iter().find(|vf| vf["rx"]["packets"].as_u64().is_none()) {
        return Err(format!("a VF of the demo has no counters: {idle}"));
    }
    Ok(format!("{} guests, {} pings, {} flows", guests.len(), pings.len(), flows.len()))
}

fn list<'a>(demo: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    let list = demo[key].as_array().filter(|list| !list.is_empty());
    list.ok_or_else(|| format!("\"{key}\" of the demo's output is not a list, or is empty: {}", demo[key]))
}

fn is_answered(ping: &Value) -> bool {
    let sent = ping["sent"].as_u64();
    sent.is_some_and(|sent| sent > 0) && sent == ping["received"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Value {
        let guest = json!({"vf": "vf0", "kind": "embedded", "mac": "02:00:00:00:00:01", "driver": "softiov"});
        json!({
            "guests": vec![guest; EMBEDDED_GUESTS],
            "pings": [{"from": 0, "to": 1, "sent": 5, "received": 5, "rtt_us_p50": 80.5}],
            "flows": [{"from": 0, "to": 1, "protocol": "tcp", "bytes": 1000, "mbps": 1.5}],
            "interventions_per_1000_packets": {"reads": 0, "writes": 12.5, "interrupts": 3},
            "vfs": [{"vf": "vf0", "rx": {"packets": 5, "bytes": 500}}],
        })
    }

    #[test]
    fn successful_demo_is_summarized() {
        assert_eq!(
            check(&sample().to_string(), EMBEDDED_GUESTS),
            Ok("3 guests, 1 pings, 1 flows".to_owned())
        );
    }

    #[test]
    fn demo_check_reports_lost_pings_idle_flows_and_missing_parts() {
        let spoiled = |pointer: &str, value: Value| {
            let mut demo = sample();
            *demo.pointer_mut(pointer).unwrap() = value;
            check(&demo.to_string(), EMBEDDED_GUESTS).unwrap_err()
        };
        assert!(spoiled("/pings/0/received", json!(4)).contains("not answered"));
        assert!(spoiled("/pings/0", json!({})).contains("not answered"));
        assert!(spoiled("/flows/0/bytes", json!(0)).contains("no bytes"));
        assert!(spoiled("/flows", json!([])).contains("flows"));
        assert!(spoiled("/guests", json!([{}])).contains("1 guests"));
        assert!(spoiled("/guests/0/mac", Value::Null).contains("mac"));
        assert!(spoiled("/interventions_per_1000_packets", Value::Null).contains("reads"));
        assert!(check("hello", EMBEDDED_GUESTS).unwrap_err().contains("not JSON"));
    }
}

//! Tests the commands of docs/api.md, run by a shell in their order, and compared with the output on the
//! page. `crates/daemon/tests/live` tests the requests.

use crate::process::ServeProcess;
use host::test_support::skipped;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

const PAGE: &str = include_str!("../../../../docs/api.md");

/// Returns the code blocks of the API page: language and text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let parts: Vec<&str> = PAGE.split("```").collect();
    parts.iter().skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

/// Runs the first code block of docs/api.md, which defines shell functions, and then another block. Returns
/// their output.
fn shell(socket: &Path, first: &str, block: &str) -> String {
    let mut command = Command::new("bash");
    let script = format!("set -e\n{first}\n{block}");
    let output = command.args(["-c", &script]).env("SOCKET", socket).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{block}: {stderr}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns true if the page's JSON value `printed` is contained in the host's value `told`; the page may
/// leave out keys of an object.
fn is_within(printed: &Value, told: &Value) -> bool {
    match (printed, told) {
        (Value::Object(printed), Value::Object(told)) => {
            printed.iter().all(|(key, value)| told.get(key).is_some_and(|told| is_within(value, told)))
        }
        (Value::Array(printed), Value::Array(told)) => {
            printed.iter().zip(told).all(|(printed, told)| is_within(printed, told))
                && printed.len() <= told.len()
        }
        _ => printed == told,
    }
}

#[test]
fn commands_of_the_api_page_print_the_documented_output() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("the commands of docs/api.md", "curl is not installed (Debian package curl)");
    }
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let socket = serve.folder().join("control/control.sock");
    let (mut first, mut printed) = (None, String::new());
    let mut compared = 0;
    for (language, text) in blocks() {
        match (language, first) {
            ("sh", None) => first = Some(text),
            ("sh", Some(first)) => printed = shell(&socket, first, text),
            ("json", _) => {
                // The page shows the last answer.
                let answers = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
                let told = answers.last().expect("the host must answer").expect("JSON");
                let wanted = serde_json::from_str(text).expect("JSON on the page");
                assert!(is_within(&wanted, &told), "{text}: {told:#}");
                compared += 1;
            }
            ("text", _) => {
                let (id, rest) = printed.split_once('\n').expect("the page must have an event");
                assert!(id.starts_with("id: ") && id.ends_with("-1"), "{printed}");
                assert!(rest.starts_with("event: event\ndata: {\"number\":1,"), "{printed}");
                compared += 1;
            }
            _ => panic!("a block of {language}"),
        }
    }
    assert!(compared >= 5, "{compared} outputs were compared");
}

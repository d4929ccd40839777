//! Tests `softiov vf export` and `softiov vf import`.

use crate::process::{CommandOutput, ServeProcess, softiov};
use serde_json::{Value, json};
use std::fs;
use tempfile::{TempDir, tempdir};

/// Running host, and the file of an export.
struct Transfer {
    serve: ServeProcess,
    folder: TempDir,
}

impl Transfer {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        Self { serve: ServeProcess::start(&folder, &[]), folder }
    }

    fn export(&self, vf: &str) -> Value {
        let said = softiov(self.serve.folder(), &["vf", "export", vf]);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
        serde_json::from_str(&said.out).unwrap()
    }

    fn import(&self, vf: &str, text: &str) -> CommandOutput {
        let file = self.folder.path().join("vf.json");
        fs::write(&file, text).unwrap();
        softiov(self.serve.folder(), &["vf", "import", vf, "--file", file.to_str().unwrap()])
    }

    fn show(&self, vf: &str) -> Value {
        serde_json::from_str(&softiov(self.serve.folder(), &["vf", "show", vf, "--json"]).out).unwrap()
    }
}

#[test]
fn imported_vf_has_settings_and_counters_of_the_exported_one() {
    let host = Transfer::new();
    let words = ["vf", "set", "pf0vf1", "--vlan", "100", "--max-tx-rate", "300", "--trust", "on"];
    assert_eq!(softiov(host.serve.folder(), &words).status, Some(0));
    let mut export = host.export("pf0vf1");
    assert_eq!((&export["format"], &export["settings"]["vlan"]), (&1.into(), &100.into()));
    export["counters"]["rx"]["packets"] = 17.into();
    export["counters"]["drops"]["tx_spoofed"] = 4.into();
    export["counters"]["offences"] = json!({ "spoofing": 3 });
    for _ in 0..2 {
        let said = host.import("pf0vf2", &export.to_string());
        assert!(said.status == Some(0) && said.out.contains("max_tx_rate 300"), "{said:?}");
        let shown = host.show("pf0vf2");
        assert_eq!(shown["settings"], export["settings"]);
        assert_eq!((&shown["rx"]["packets"], &shown["drops"]["tx_spoofed"]), (&17.into(), &4.into()));
        assert_eq!(shown["conduct"]["offences"], json!({ "spoofing": 3 }), "a second import adds nothing");
    }
    // An earlier version had fewer counters.
    export["counters"] = json!({ "rx": { "packets": 5 } });
    assert_eq!(host.import("pf0vf2", &export.to_string()).status, Some(0));
    assert_eq!(host.show("pf0vf2")["rx"]["packets"], 17, "a counter never falls");
    assert_eq!(host.show("pf0vf3")["rx"]["packets"], 0);
}

#[test]
fn refused_import_names_its_reason_and_changes_nothing() {
    let host = Transfer::new();
    let export = host.export("pf0vf1");
    let with = |path: &str, value: Value| {
        let mut changed = export.clone();
        changed["counters"]["rx"]["packets"] = 5.into();
        *changed.pointer_mut(path).unwrap() = value;
        changed.to_string()
    };
    let before = host.show("pf0vf2");
    for (text, parts) in [
        (with("/format", 2.into()), ["vf.json has format 2", "format 1"]),
        (with("/settings/max_tx_rate", 100_000.into()), ["max_tx_rate", "1000"]),
        (with("/settings/vlan", 5_000.into()), ["vlan", "5000"]),
        (with("/settings", json!({ "colour": "red" })), ["not an exported VF", "colour"]),
        (with("/counters/rx", (-1).into()), ["not an exported VF", "softiov vf export"]),
        (
            with("/counters/offences", json!({ "rudeness": 1 })),
            ["\"rudeness\" is no kind of offence", "pf0vf2"],
        ),
        (" ".repeat((1 << 20) + 1), ["cannot read the exported VF", "longer than 1048576 bytes"]),
        ("nothing".to_owned(), ["vf.json is not an exported VF", "softiov vf export"]),
    ] {
        let said = host.import("pf0vf2", &text);
        assert!(said.status == Some(1) && parts.iter().all(|part| said.err.contains(part)), "{said:?}");
        assert_eq!(host.show("pf0vf2"), before, "{text}");
    }
    let said = host.import("pf0vf99", &export.to_string());
    assert!(said.status == Some(1) && said.err.contains("no VF is named \"pf0vf99\""), "{said:?}");
    let said = softiov(host.serve.folder(), &["vf", "import", "pf0vf2", "--file", "/missing"]);
    assert!(said.status == Some(1) && said.err.contains("cannot read the exported VF /missing"), "{said:?}");
}

#[test]
fn import_leaves_a_vf_in_quarantine() {
    let host = Transfer::new();
    let export = host.export("pf0vf1");
    let words = ["vf", "set", "pf0vf2", "--quarantine", "on"];
    assert_eq!(softiov(host.serve.folder(), &words).status, Some(0));
    assert_eq!(host.import("pf0vf2", &export.to_string()).status, Some(0));
    assert_eq!(host.show("pf0vf2")["settings"]["quarantine"], true);
}

//! Tests of the paths in a configuration: they are absolute, and have one spelling.

use super::{check, refused};
use crate::config::HostConfig;
use std::path::Path;

#[test]
fn path_spelling_changes_no_address_and_no_claim() {
    let usual = check("runtime_dir = \"/run/softiov\"").unwrap();
    for spelling in ["/run/softiov/", "/run//softiov", "/run/./softiov"] {
        assert_eq!(check(&format!("runtime_dir = {spelling:?}")).unwrap(), usual, "{spelling}");
        let file = HostConfig::parse("").unwrap();
        assert_eq!(HostConfig::check(file, Path::new(spelling)).unwrap(), usual, "{spelling}");
    }
    let lines = [
        ("record", "record = \"/a/x\"", "record = \"/a//x\""),
        (
            "uplink",
            "uplink = { stream = { listen = \"/a/x\" } }",
            "uplink = { stream = { listen = \"/a/./x\" } }",
        ),
        ("socket", "pf = \"guest\"\nsocket = \"/a/x\"", "pf = \"guest\"\nsocket = \"/a/x/\""),
    ];
    for (key, one, other) in lines {
        let message = refused(&format!("[[port]]\n{one}\n[[port]]\n{other}"));
        assert!(message.contains(&format!("/a/x is also given to pf0.{key}")), "{message}");
    }
}

#[test]
fn relative_runtime_dir_is_refused() {
    let message = refused("runtime_dir = \"softiov\"");
    assert!(message.contains("runtime_dir: softiov is a relative path"), "{message}");
}

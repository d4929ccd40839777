//! Tests the bounds on the cost of filters, and the errors of refused texts.

use capture_filter::{Filter, MAX_TEXT, NameDatabases};
use proptest::prelude::{any, proptest};
use std::thread;

fn compile(text: &str) -> Result<Filter, String> {
    Filter::compile(text, &NameDatabases::default()).map_err(|error| error.to_string())
}

/// Compiles a filter and applies it to a frame, on a thread with a small stack.
fn runs(text: String) -> Result<bool, String> {
    let run = move || compile(&text).map(|filter| filter.selects(&[0; 60], 60));
    thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap()
}

#[test]
fn deeply_nested_filters_fit_a_small_stack_or_are_refused() {
    let joined = |part: &str, joint: &str, count| vec![part; count].join(joint);
    let nested =
        |open: &str, part: &str, close: &str, count| open.repeat(count) + part + &close.repeat(count);
    assert_eq!(runs(nested("(", "less 90", ")", 60)), Ok(true));
    assert_eq!(runs(nested("not ", "less 90", "", 60)), Ok(true));
    assert_eq!(runs(nested("ether[", "0", "]", 60) + " = 0"), Ok(true));
    assert_eq!(runs(nested("-", "1", "", 60) + " = 1"), Ok(true));
    assert_eq!(runs(joined("1", "%", 60) + " = 0"), Ok(false));
    assert_eq!(runs(joined("len", "+", 500) + " = 30000"), Ok(true));
    assert_eq!(runs(joined("less 9 or less 9", " and ", 170)), Ok(false));
    for (open, close) in
        [("(", ")"), ("not ", ""), ("ether[", "]"), ("-", ""), ("1 + (", ")"), ("ip[1+(", ")]"), ("1 % ", "")]
    {
        let refused = runs(nested(open, "1", close, 70) + " = 1");
        assert!(refused.clone().is_err_and(|why| why.contains("deeper than 64")), "{open}: {refused:?}");
    }
    assert!(runs(joined("1", "+", 600) + " = 1").is_err_and(|why| why.contains("the maximum is 1024")));
    assert!(runs(joined("port 1", " or ", 200)).is_err_and(|why| why.contains("the maximum is 4096")));
    assert!(runs(" ".repeat(MAX_TEXT) + "ip").is_err_and(|why| why.contains("the maximum is 4096")));
}

#[test]
fn protochain_filter_ends_on_circular_ip_headers() {
    // An authentication header whose next header is its own kind.
    let mut frame = [0; 60];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[23] = 51;
    frame[34..36].copy_from_slice(&[51, 3]);
    assert!(!compile("ip protochain 6").unwrap().selects(&frame, 60));
}

#[test]
fn filter_error_names_the_position_or_the_remedy() {
    for (text, part) in [
        ("tcp prot 80", "syntax error at \"prot 80\""),
        ("tcp and", "the filter ends too early"),
        ("tcp and 80", "80 needs a word before it"),
        ("host example.org", "names of hosts and networks are not looked up: write the address"),
        ("port ssh", "not in /etc/services: write its number"),
        ("ip proto ospf", "not in /etc/protocols: write its number"),
        ("ether proto what", "ether has no protocol what"),
        ("gateway router", "names are not looked up"),
        ("inbound", "a captured Ethernet frame does not have this property"),
        ("byte 12 & 1", "write ether[12] & 1 != 0"),
        ("net 10.0.0.1/8", "write the network as 10.0.0.0"),
        ("net 2001:db8::1/32", "write the network as 2001:db8::/32"),
        ("net 10.0.0.0/33", "33 is out of range (0-32)"),
        ("vlan 4096", "VLAN 4096 is out of range (0-4095)"),
        ("mpls and arp", "behind mpls only ip and ip6 can be tested"),
        ("geneve or tcp", "tcp or geneve and udp"),
        ("host 02:00:00:00:00:01", "ether host 02:00:00:00:00:01"),
        ("tcp[0:3] = 1", "1, 2 or 4 bytes"),
        ("portrange 080-90", "port 080 has leading zeros"),
        ("port 65536", "out of range (0-65535)"),
        ("tcp ü", "unknown character"),
    ] {
        let refused = compile(text).unwrap_err();
        assert!(refused.contains(part), "{text}: {refused}");
    }
}

#[test]
fn an_empty_filter_selects_every_frame() {
    assert!(["", "  \n"].iter().all(|text| compile(text).unwrap().selects(&[], 0)));
}

proptest! {
    #[test]
    fn filter_compiler_does_not_panic_on_any_text(text in "[a-z0-9 ():&|!=<>+*/%^\\[\\]\\\\.-]{0,60}", frame: Vec<u8>, length in any::<u16>()) {
        if let Ok(filter) = compile(&text) {
            let _ = filter.selects(&frame, length.into());
        }
    }

    #[test]
    fn filter_of_any_keywords_on_any_frame_does_not_panic(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..12),
        frame in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        if let Ok(filter) = compile(&words.join(" ")) {
            let _ = filter.selects(&frame, frame.len());
        }
    }
}

const WORDS: &[&str] = &[
    "tcp",
    "ip",
    "ip6",
    "ether",
    "host",
    "net",
    "port",
    "src",
    "dst",
    "or",
    "and",
    "not",
    "(",
    ")",
    "[",
    "]",
    ":",
    "0",
    "1",
    "80",
    "+",
    "-",
    "/",
    "%",
    "<<",
    "=",
    "!=",
    "10.0.0.1",
    "::1",
    "vlan",
    "mpls",
    "pppoes",
    "geneve",
    "proto",
    "protochain",
    "len",
    "less",
    "llc",
    "4294967295",
    "udp",
];

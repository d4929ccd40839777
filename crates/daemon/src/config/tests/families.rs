//! Tests of settings that a card family does not support.

use super::{check, refused};

#[test]
fn unsupported_avf_setting_is_refused_with_a_remedy() {
    for (key, lines) in [
        ("pf0.pf", "pf = \"guest\""),
        ("pf0vf0.rss", "vf = [{ index = 0, rss = true }]"),
        ("pf0vf0.coalesce", "vf = [{ index = 0, coalesce = \"adaptive\" }]"),
        ("pf0vf0.max_mtu", "vf = [{ index = 0, max_mtu = 1000 }]"),
    ] {
        let said = refused(&format!("[[port]]\nfamily = \"avf\"\n{lines}"));
        assert!(said.starts_with(&format!("invalid setting {key}: ")), "{lines}: {said}");
        assert!(key.ends_with("max_mtu") || said.contains("use family = \"82576\""), "{said}");
    }
    for lines in [
        "wait = \"mapped\"",
        "limits = { storm = { warn = 1 } }",
        "storm = { broadcast = 1000 }",
        "mirror = [{ to = 1, vfs = [0] }]",
        "vf = [{ index = 0, allmulti = false }]",
        "vf = [{ index = 0, max_mac_filters = 128, min_vlan_filters = 40, max_vlan_filters = 4095 }]",
    ] {
        check(&format!("[[port]]\nfamily = \"avf\"\n{lines}")).unwrap();
    }
    check("[[port]]\nfamily = \"avf\"\nvf = [{ index = 0, vlan = 7, trust = true, state = \"disable\" }]")
        .unwrap();
}

#[test]
fn unsupported_virtio_setting_is_refused_with_a_remedy() {
    for (key, lines) in [
        ("pf0.pf", "pf = \"guest\""),
        ("pf0.wait", "wait = \"mapped\""),
        ("pf0vf0.rss", "vf = [{ index = 0, rss = true }]"),
        ("pf0vf0.max_interrupts", "vf = [{ index = 0, max_interrupts = 1000 }]"),
        ("pf0vf0.max_mtu", "vf = [{ index = 0, max_mtu = 9707 }]"),
        ("pf0vf0.min_mac_filters", "vf = [{ index = 0, min_mac_filters = 2 }]"),
        ("pf0vf0.max_vlan_filters", "vf = [{ index = 0, max_vlan_filters = 4 }]"),
    ] {
        let said = refused(&format!("[[port]]\nfamily = \"virtio\"\n{lines}"));
        assert!(said.starts_with(&format!("invalid setting {key}: ")), "{lines}: {said}");
        assert!(key.ends_with("max_mtu") || said.contains("use family = "), "{said}");
    }
    for lines in [
        "wait = \"busy\"",
        "limits = { storm = { warn = 1 } }",
        "storm = { broadcast = 1000 }",
        "mirror = [{ to = 1, vfs = [0] }]",
        "vf = [{ index = 0, vlan = 7, trust = true, allmulti = false, state = \"disable\", max_mtu = 9706 }]",
    ] {
        check(&format!("[[port]]\nfamily = \"virtio\"\nvfs = 64\n{lines}")).unwrap();
    }
}

#[test]
fn quotas_that_the_card_cannot_keep_are_refused() {
    for (lines, parts) in [
        ("min_mac_filters = 20", ["pf0vf0.min_mac_filters", "out of range (0 to 19)"]),
        ("min_vlan_filters = 3\nmax_vlan_filters = 2", ["pf0vf0.min_vlan_filters", "raise max_vlan_filters"]),
        ("min_vlan_filters = 20", ["pf0.min_vlan_filters", "are 32, and the card has 31"]),
    ] {
        let said = refused(&format!("[[port]]\n[[port.vf]]\nindex = 0\n{lines}"));
        assert!(parts.iter().all(|part| said.contains(part)), "{lines}: {said}");
    }
}

#[test]
fn socket_mode_client_needs_family_virtio() {
    let message = refused("[[port]]\nsocket_mode = \"client\"");
    assert!(message.contains("pf0.socket_mode: \"client\" needs family = \"virtio\""), "{message}");
    let message = refused("[[port]]\nfamily = \"avf\"\n[[port.vf]]\nindex = 2\nsocket_mode = \"client\"");
    assert!(message.contains("pf0vf2.socket_mode") && message.contains("leave socket_mode out"), "{message}");
}

//! Tests of explanations: they add up to the row, and name the mechanism that two rows differ in.

use super::lines::{BreakdownDetail, BreakdownLine, lines};
use super::{ExplainRowError, ExplainedRow, explain, graph, to_json};
use crate::experiments::catalogue;
use crate::runner::plan::SettingAssignment;

fn explained(selector: &str) -> ExplainedRow {
    let selector = format!("{selector},measure_ms=20,warm_up_ms=20").parse().unwrap();
    explain(&catalogue(), &selector, &[], 1).unwrap()
}

fn sum(lines: &[BreakdownLine], wanted: impl Fn(&BreakdownLine) -> bool) -> f64 {
    lines.iter().filter(|line| wanted(line)).map(|line| line.thread_pct).sum()
}

#[test]
fn explanation_adds_up_to_the_sums_of_its_row() {
    let explained = explained("fig06:vms=2,msi_accel=false");
    let lines = lines(&explained.cycles, None, BreakdownDetail::Port);
    let metric = |name: &str| *explained.row.metrics.get(name).unwrap();
    for (name, found) in [
        ("cpu_dom0_pct", sum(&lines, |line| line.domain == "dom0" && !line.hypervisor)),
        ("cpu_xen_pct", sum(&lines, |line| line.hypervisor)),
        ("cpu_dom0_attributed_pct", sum(&lines, |line| line.domain == "dom0")),
        ("cpu_xen_attributed_pct", sum(&lines, |line| line.hypervisor && line.domain != "dom0")),
        ("cpu_guest_pct", sum(&lines, |line| line.domain == "HVM guests" && !line.hypervisor)),
    ] {
        assert!((found - metric(name)).abs() < 0.01, "{name}: {found} {}", metric(name));
    }
}

#[test]
fn explanation_with_all_domains_adds_up_to_that_by_kind() {
    let explained = explained("fig06:vms=3,msi_accel=false");
    let total = |detail| sum(&lines(&explained.cycles, None, detail), |_| true);
    let (domain, kind) = (total(BreakdownDetail::Domain), total(BreakdownDetail::Kind));
    assert!((domain - kind).abs() < 0.01, "{domain} {kind}");
    let of_guests = lines(&explained.cycles, None, BreakdownDetail::Domain);
    assert!(of_guests.iter().any(|line| line.domain == "guest2" && line.port == Some(0)));
}

#[test]
fn explanation_of_two_rows_names_the_accelerated_path_first() {
    let (before, after) = (explained("fig06:vms=2,msi_accel=false"), explained("fig06:vms=2,msi_accel=true"));
    let lines = lines(&before.cycles, Some(&after.cycles), BreakdownDetail::Kind);
    assert_eq!((lines[0].domain.as_str(), lines[0].category), ("dom0", "device_model"));
    assert!(lines[0].other.unwrap().difference_pct < 0.0);
}

/// Checks the project's headline difference: programs of a bare machine beside HVM guests.
#[test]
fn explanation_pairs_guests_of_different_kinds() {
    let native = explained("fig11:guest=native,opts=aic");
    let guests = explained("fig11:guest=2.6.28,opts=aic");
    for detail in [BreakdownDetail::Kind, BreakdownDetail::Port] {
        let lines = lines(&native.cycles, Some(&guests.cycles), detail);
        let user: Vec<_> = lines.iter().filter(|line| line.category == "user" && !line.hypervisor).collect();
        let is_paired =
            |line: &&BreakdownLine| line.thread_pct > 0.0 && line.other.unwrap().other_thread_pct > 0.0;
        assert!(!user.is_empty() && user.iter().all(is_paired), "{user:?}");
        assert!(user.iter().all(|line| line.domain == "guests"), "{user:?}");
    }
    let svg = graph::of_difference(&native.cycles, &guests.cycles, "virtualization");
    assert!(!svg.contains("programs") && !svg.contains("HVM guests"), "{svg}");
    let of_one = lines(&native.cycles, None, BreakdownDetail::Kind);
    assert!(of_one.iter().any(|line| line.domain == "programs"), "{of_one:?}");
}

#[test]
fn explanation_and_its_graph_are_byte_equal_twice() {
    let all = || {
        let row = explained("fig15:vms=10");
        (to_json(&row, None, BreakdownDetail::Domain, 1), graph::of_row(&row.cycles, "fig15"))
    };
    let (json, svg) = all();
    assert_eq!((json.clone(), svg.clone()), all());
    assert!(json.contains("\"port\": 9") && svg.contains("port 9"));
}

#[test]
fn flame_graph_of_a_row_and_itself_has_no_change() {
    let row = explained("fig06:vms=1,msi_accel=true");
    let svg = graph::of_difference(&row.cycles, &row.cycles, "nothing");
    assert!(svg.contains("+0.0 M cycles/s") && !svg.contains("#e8837a"), "{svg}");
}

#[test]
fn explanation_on_a_machine_equals_that_of_its_settings() {
    let machine = [("table", "modern"), ("cost.rx_skb", "700")].map(SettingAssignment::from);
    let selector = "fig08:policy=2k,measure_ms=20,warm_up_ms=20".parse().unwrap();
    let on_machine = explain(&catalogue(), &selector, &machine, 1).unwrap();
    assert_eq!(on_machine, explained("fig08:policy=2k,table=modern,cost.rx_skb=700"));
    let selector = "fig08:policy=2k,table=nehalem,measure_ms=20,warm_up_ms=20".parse().unwrap();
    let other = explain(&catalogue(), &selector, &machine[..1], 1).unwrap();
    assert_eq!(
        other.cycles,
        explained("fig08:policy=2k,table=nehalem").cycles,
        "the selector takes precedence"
    );
}

#[test]
fn selector_of_several_rows_is_refused_with_an_example() {
    let error = explain(&catalogue(), &"fig06:vms=2".parse().unwrap(), &[], 1).unwrap_err();
    assert!(matches!(error, ExplainRowError::SeveralRows { count: 2, .. }), "{error}");
    assert!(error.to_string().contains("`fig06:vms=2,msi_accel=false`"), "{error}");
}

#[test]
fn experiment_without_processor_cycles_is_refused() {
    let error = explain(&catalogue(), &"reset-ladder".parse().unwrap(), &[], 1).unwrap_err();
    let refused = matches!(error, ExplainRowError::NoCycles { .. } | ExplainRowError::SeveralRows { .. });
    assert!(refused, "{error}");
}

#[test]
fn row_of_counts_and_prices_is_refused_with_its_metrics() {
    let selector = "today:path=vhost-net,interrupts=posted".parse().unwrap();
    let error = explain(&catalogue(), &selector, &[], 1).unwrap_err().to_string();
    assert!(error.contains("today checks rules, measures times, or multiplies counts by prices"), "{error}");
    assert!(error.contains("`softiov lab run today` prints its metrics"), "{error}");
}

#[test]
fn text_without_an_experiment_is_no_row_selector() {
    for text in ["", ":vms=1", "fig06:", "fig06:vms"] {
        assert!(text.parse::<super::selector::RowSelector>().is_err(), "{text}");
    }
}

/// Checks that two programs of one core overlap by chance: each uses less than a quarter of its thread, so at most half
/// of a program's work is contended, as the mean of five seeds.
#[test]
fn interrupts_of_ports_have_independent_phases() {
    let selector = "fig11:guest=native,opts=aic,measure_ms=100,warm_up_ms=1050".parse().unwrap();
    let work = |row: &ExplainedRow, domain: &str| {
        let lines = lines(&row.cycles, None, BreakdownDetail::Domain);
        sum(&lines, |line| line.domain == domain && line.category == "user")
    };
    let share = |seed| {
        let row = explain(&catalogue(), &selector, &[], seed).unwrap();
        // Programs 0 and 8 share a core; program 2 of the same socket has one.
        (work(&row, "guest0") / work(&row, "guest2") - 1.0) / 0.44
    };
    let shares: Vec<f64> = (1..=5).map(share).collect();
    let mean = shares.iter().sum::<f64>() / 5.0;
    assert!(mean < 0.5, "{shares:?}");
    assert!(shares.iter().any(|share| share != &shares[0]), "{shares:?}");
}

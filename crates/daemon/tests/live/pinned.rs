//! Ports held to processors. Left out: what becomes of it when the host is replaced, which is the command's test.

use crate::support::live::Live;
use daemon::Host;
use daemon::config::Config;
use host::cpus::Cpus;

fn allowed() -> Vec<u32> {
    Cpus::allowed().unwrap().iter().collect()
}

#[test]
fn a_port_runs_where_the_file_says_and_a_new_file_moves_it() {
    let all = allowed();
    let (first, last) = (all[0], all[all.len() - 1]);
    let live = Live::keeping(&format!("[[port]]\ncpus = [{first}]\n[[port]]\n"));
    assert_eq!(live.show_port("pf0").cpus, [first]);
    assert!(live.show_port("pf1").cpus.is_empty(), "it runs anywhere");
    let moved = live.apply(&format!("[[port]]\n[[port]]\ncpus = [{last}]\n")).unwrap();
    assert_eq!(moved.changes[0].settings["cpus"].new, "any");
    assert_eq!(live.show_port("pf1").cpus, [last]);
    assert!(live.show_port("pf0").cpus.is_empty());
}

#[test]
fn a_processor_that_is_not_the_hosts_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[port]]\n[[port]]\ncpus = [0, 1000]\n";
    let config = Config::check(Config::parse(text).unwrap(), folder.path()).unwrap();
    let refused = Host::start(config).unwrap_err().to_string();
    assert!(refused.contains("pf1: cpus: CPU 1000 is not available to this host"), "{refused}");
    assert!(refused.contains("choose among these") && refused.contains("CPUAffinity="), "{refused}");
    let live = Live::keeping("[[port]]\n");
    let refused = live.apply("[[port]]\ncpus = [1000]\n").expect_err("is refused").to_string();
    assert!(refused.contains("pf0: cpus: CPU 1000 is not available to this host"), "{refused}");
    assert!(live.show_port("pf0").cpus.is_empty());
}

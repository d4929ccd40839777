//! Tests of ports whose threads are pinned to processors. The tests of the `softiov` command cover
//! hand-overs.

use crate::support::live::LiveHost;
use daemon::RunningHost;
use daemon::config::HostConfig;
use host::cpus::CpuList;

fn allowed() -> Vec<u32> {
    CpuList::allowed().unwrap().iter().collect()
}

#[test]
fn port_thread_runs_on_configured_cpus_and_moves_on_apply() {
    let all = allowed();
    let (first, last) = (all[0], all[all.len() - 1]);
    let live = LiveHost::keeping(&format!("[[port]]\ncpus = [{first}]\n[[port]]\n"));
    assert_eq!(live.show_port("pf0").cpus, [first]);
    assert!(live.show_port("pf1").cpus.is_empty(), "a port without the key is restricted");
    let moved = live.apply(&format!("[[port]]\n[[port]]\ncpus = [{last}]\n")).unwrap();
    assert_eq!(moved.changes[0].settings["cpus"].new, "any");
    assert_eq!(live.show_port("pf1").cpus, [last]);
    assert!(live.show_port("pf0").cpus.is_empty());
}

#[test]
fn unavailable_cpu_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[port]]\n[[port]]\ncpus = [0, 1000]\n";
    let config = HostConfig::check(HostConfig::parse(text).unwrap(), folder.path()).unwrap();
    let refused = RunningHost::start(config).unwrap_err().to_string();
    assert!(refused.contains("pf1: cpus: CPU 1000 is not available to this host"), "{refused}");
    assert!(refused.contains("choose among these") && refused.contains("CPUAffinity="), "{refused}");
    let live = LiveHost::keeping("[[port]]\n");
    let refused =
        live.apply("[[port]]\ncpus = [1000]\n").expect_err("the host refuses the change").to_string();
    assert!(refused.contains("pf0: cpus: CPU 1000 is not available to this host"), "{refused}");
    assert!(live.show_port("pf0").cpus.is_empty());
}

//! Runs tests that measure a whole process in a process of their own: file descriptors, memory, processor time, log
//! lines. In a shared process other tests would be measured too.

use rustix::param::clock_ticks_per_second;
use std::process::Command;
use std::time::Duration;

/// Environment variable that is set in a process that runs one test alone.
const MARK: &str = "SOFTIOV_TEST_ALONE";

/// Runs a test's `body` in a process of its own. `name` is the name of the test, with its module.
#[track_caller]
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    let output =
        Command::new(program).args([name, "--exact", "--nocapture"]).env(MARK, "1").output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("running 1 test"), "is {name:?} the name of the test?\n{said}");
    assert!(output.status.success(), "{said}");
}

/// Returns the number of open file descriptors of this process.
pub(crate) fn descriptors() -> usize {
    // The listing has the descriptor that reads the folder, too.
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// Returns the resident memory of this process, bytes.
pub(crate) fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// Checks that this process, which should be idle, uses next to no processor time in two seconds.
#[track_caller]
pub(crate) fn assert_asleep(what: &str) {
    std::thread::sleep(Duration::from_millis(300));
    let before = processor_time();
    std::thread::sleep(Duration::from_secs(2));
    let used = processor_time() - before;
    assert!(used < Duration::from_millis(200), "{what}: {used:?} of processor time in two seconds");
}

/// Returns the processor time of this process so far, user and system.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The command's name may contain any character, but after its last parenthesis there are only numbers.
    let (_, numbers) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = numbers.split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / clock_ticks_per_second())
}

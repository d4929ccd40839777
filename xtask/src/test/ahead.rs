//! Builds programs of later stages during the stage that boots most guests, which leaves a processor idle for much of
//! its time. The builds have the least priority, so that guests do not wait for them. A later stage builds again and
//! reports errors.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::metadata;

/// Arguments of cargo for the builds: the static program of the stage `package`, the demo's program, and the benchmarks
/// whose instructions are counted.
const BUILDS: [&str; 6] = [
    "build --quiet --locked --package softiov --profile quick --target x86_64-unknown-linux-musl",
    "build --quiet --release --package softiov",
    "bench --quiet --profile release --package softiov-nic --bench frame_path --no-run",
    "bench --quiet --profile release --package softiov-avf-nic --bench frame_path --no-run",
    "bench --quiet --profile release --package virtio-nic --bench frame_path --no-run",
    "bench --quiet --profile release --package softiov-driver --bench frame_path --no-run",
];

/// Thread that builds programs beside the guests' tests, one after the other.
#[derive(Debug, Default)]
pub(super) struct BackgroundBuilds(Option<JoinHandle<()>>);

impl BackgroundBuilds {
    /// Starts the background builds of later stages, unless they were started before.
    pub(super) fn begin(&mut self, root: &Path) {
        let commands = BUILDS.map(|arguments| {
            let mut command = Command::new("nice");
            command.args(["-n", "19"]).arg(metadata::cargo().get_program()).args(arguments.split(' '));
            command.current_dir(root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        });
        self.0.get_or_insert_with(|| {
            thread::spawn(|| {
                for mut command in commands {
                    // What is not built here is built where it is needed.
                    let _ = command.status();
                }
            })
        });
    }

    /// Waits for the end of the background builds of later stages.
    pub(super) fn wait(&mut self) {
        let Some(builds) = self.0.take() else { return };
        if !builds.is_finished() {
            println!("   waiting for the builds that run beside the guests' tests");
        }
        // There is nothing in it that panics.
        let _ = builds.join();
    }
}

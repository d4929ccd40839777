//! Client of the counter that kills the server again and again, and checks every reply.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use crate::REPLY;

/// Number of kills. From the fifth death within a minute on, the keeper waits before it starts the next process.
const KILLS: u64 = 4;
/// Timeout of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeper process of the counter, killed when dropped.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        // The server ends with SIGTERM, and the keeper with its server.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Counts while another thread kills the server, and checks that each request was counted once.
pub(super) fn run() -> io::Result<ExitCode> {
    let folder = std::env::temp_dir().join(format!("counter-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let socket = folder.join("counter.sock");
    let keeper = Keeper(Command::new(std::env::current_exe()?).arg("serve").arg(&socket).spawn()?);
    let mut client = within_patience(|| UnixStream::connect(&socket).ok())?;
    client.set_read_timeout(Some(PATIENCE))?;

    let id = keeper.0.id();
    let killer = thread::spawn(move || (1..=KILLS).try_fold(0, |last, number| kill_next(id, last, number)));
    let mut count = 0_u64;
    while !killer.is_finished() {
        count += 1;
        let request = count.to_le_bytes()[0];
        client.write_all(&[request])?;
        let mut reply = [0; REPLY as usize];
        client.read_exact(&mut reply)?;
        assert_eq!(
            u64::from_le_bytes(reply),
            count << 8 | u64::from(request),
            "the reply to request {count}"
        );
    }
    killer.join().expect("the thread that kills servers panicked")?;
    println!("{count} requests were counted once each, over {KILLS} killed processes");
    drop(keeper);
    fs::remove_dir_all(&folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Kills the server process that follows the process `last`, after some requests. Returns its process id.
fn kill_next(keeper: u32, last: u32, number: u64) -> io::Result<u32> {
    let server = within_patience(|| server_of(keeper).filter(|server| *server != last))?;
    // Different times, so that the process dies at different instructions.
    thread::sleep(Duration::from_micros(20_000 + 777 * number));
    println!("killing process {server}");
    Command::new("kill").args(["-KILL", &server.to_string()]).status()?;
    Ok(server)
}

/// Returns the process id of a keeper's server: its only child besides the starter.
fn server_of(keeper: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
    let is_starter = |process: &u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm"));
        name.is_ok_and(|name| name.trim_end() == "counter-starter")
    };
    children
        .split_whitespace()
        .filter_map(|process| process.parse().ok())
        .find(|process| !is_starter(process))
}

/// Repeats `attempt` until it returns a value.
fn within_patience<T>(mut attempt: impl FnMut() -> Option<T>) -> io::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(value) = attempt() {
            return Ok(value);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(io::ErrorKind::TimedOut.into())
}

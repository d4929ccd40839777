//! Runs a program, keeps its output, and prints the last line of it once a minute. A program without output for a long
//! time is killed and counts as failed. Tests limit their own duration.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::results;

/// Interval at which a program that prints nothing is checked for its end.
const GLANCE: Duration = Duration::from_millis(200);
/// Interval of the messages that a program still runs, while its output is not shown.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);
/// Time without output after which a program is killed. Longer than any test or build takes.
const HANGS: Duration = Duration::from_secs(900);
/// Timeout for further output after a program's end, while a process that it left behind holds its output open.
const LEFTOVERS: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputVisibility {
    /// Prints each line of the program's output as soon as the program has written it.
    Live,
    /// Prints the output of the program, without cargo's progress, but only if the program fails.
    OnFailure,
    /// Prints the output of the failed tests, if the test program fails.
    FailedTests,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputLine {
    pub(super) stream: OutputStream,
    pub(super) text: String,
}

/// Lines that a program printed, both streams in the order in which they were read.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) success: bool,
    pub(super) lines: Vec<OutputLine>,
}

impl ProgramOutput {
    pub(crate) fn stdout(&self) -> String {
        self.text(|line| line.stream == OutputStream::Stdout)
    }

    pub(crate) fn all(&self) -> String {
        self.text(|_| true)
    }

    /// Returns true if a signal ended a compiler that cargo ran, such as the kernel's SIGKILL for lack of memory.
    pub(super) fn lost_a_compiler(&self) -> bool {
        !self.success && self.texts().any(|line| line.contains("(signal: "))
    }

    /// Returns the lines of the program's output, both streams together.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.text.as_str())
    }

    fn text(&self, wanted: impl Fn(&&OutputLine) -> bool) -> String {
        let lines: Vec<_> = self.lines.iter().filter(wanted).map(|line| line.text.as_str()).collect();
        lines.join("\n")
    }
}

/// Runs a program to its end, and returns its output. A program that hangs is killed.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn run(command: &mut Command, show: OutputVisibility) -> Result<ProgramOutput> {
    run_while(command, show, HANGS)
}

/// Runs a program to its end and returns its output; kills it after `hangs` without output.
fn run_while(command: &mut Command, show: OutputVisibility, hangs: Duration) -> Result<ProgramOutput> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let (sender, receiver) = mpsc::channel();
    read(child.stdout.take(), OutputStream::Stdout, sender.clone());
    read(child.stderr.take(), OutputStream::Stderr, sender);
    let lines = collect(&mut child, &receiver, show, hangs)?;
    let status = child.wait()?;
    let output = ProgramOutput { success: status.success(), lines };
    if !output.success {
        match show {
            OutputVisibility::Live => {}
            OutputVisibility::OnFailure => println!("{}", output.text(|line| !is_progress(&line.text))),
            OutputVisibility::FailedTests => {
                println!("{}", results::without_successes(output.texts()).join("\n"));
            }
        }
        println!("`{}` failed: {status}", shown(command));
    }
    Ok(output)
}

/// Returns true for a line in which cargo reports its progress. Hundreds of them would bury an error.
fn is_progress(line: &str) -> bool {
    const WORDS: [&str; 6] = ["Compiling", "Checking", "Documenting", "Downloading", "Downloaded", "Fresh"];
    line.starts_with("  ") && line.split_whitespace().next().is_some_and(|word| WORDS.contains(&word))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn read(pipe: Option<impl Read + Send + 'static>, stream: OutputStream, sender: Sender<OutputLine>) {
    thread::spawn(move || {
        for line in pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')) {
            let Ok(line) = line else { return };
            let text = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if sender.send(OutputLine { stream, text }).is_err() {
                return;
            }
        }
    });
}

/// Returns the lines that the program prints until it has ended and both its streams are read. A program that hangs is
/// killed.
fn collect(
    child: &mut Child,
    receiver: &Receiver<OutputLine>,
    show: OutputVisibility,
    hangs: Duration,
) -> io::Result<Vec<OutputLine>> {
    let begun = Instant::now();
    let mut heard = begun;
    let mut lines: Vec<OutputLine> = Vec::new();
    let mut sign_at = SIGN_OF_LIFE;
    let mut ended: Option<Instant> = None;
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(line) => {
                if show == OutputVisibility::Live {
                    println!("{}", line.text);
                }
                lines.push(line);
                heard = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(lines),
            Err(RecvTimeoutError::Timeout) => {
                if ended.is_none() && child.try_wait()?.is_some() {
                    ended = Some(Instant::now());
                }
                if ended.is_some_and(|ended| ended.elapsed() > LEFTOVERS) {
                    return Ok(lines);
                }
                if ended.is_none() && heard.elapsed() > hangs {
                    println!("   killing the command, which printed nothing for {} s", hangs.as_secs());
                    end(child.id(), &lines);
                    heard = Instant::now();
                }
            }
        }
        if show != OutputVisibility::Live && begun.elapsed() > sign_at {
            let last = lines.last().map_or("", |line| line.text.as_str());
            println!("   after {} s: {last}", sign_at.as_secs());
            sign_at += SIGN_OF_LIFE;
        }
    }
}

/// Kills a process that hangs with all its descendants, and prints the names of its unfinished tests.
fn end(process: u32, lines: &[OutputLine]) {
    for name in results::unfinished(lines.iter().map(|line| line.text.as_str())) {
        println!("   unfinished test: {name}");
    }
    descendants(process).into_iter().for_each(kill);
}

/// Returns the ids of a process and of its descendants. Parents come first, so that none continues when its child is
/// killed.
fn descendants(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = lists.flat_map(|list| numbers(&list)).collect();
    iter::once(process).chain(children.into_iter().flat_map(descendants)).collect()
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Kills a process. A process that has ended already is ignored.
fn kill(process: u32) {
    let mut command = Command::new("kill");
    command.args(["-KILL", &process.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.status();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> ProgramOutput {
        run(Command::new("sh").args(["-c", script]), OutputVisibility::OnFailure).unwrap()
    }

    #[test]
    fn stdout_and_stderr_of_a_program_are_kept_apart() {
        let output = sh("echo out; echo err >&2; printf 'no newline'");
        assert!(output.success);
        assert_eq!(output.stdout(), "out\nno newline");
        assert!(output.lines.contains(&OutputLine { stream: OutputStream::Stderr, text: "err".to_owned() }));
    }

    #[test]
    fn failed_program_is_an_outcome_and_a_missing_program_an_error() {
        assert!(!sh("exit 3").success);
        assert!(!sh("kill -9 $$").success);
        assert!(run(&mut Command::new("no-such-program"), OutputVisibility::Live).is_err());
    }

    #[test]
    fn output_of_a_failed_build_leaves_out_its_progress() {
        for line in ["   Compiling libc v0.2.191", "    Checking avf v0.1.0 (/a)", "  Downloaded nix v0.31.3"]
        {
            assert!(is_progress(line), "{line}");
        }
        for line in ["error: Compiling failed", "    Finished `dev` profile", "   --> src/lib.rs:1", ""] {
            assert!(!is_progress(line), "{line}");
        }
    }

    #[test]
    fn lost_compiler_is_told_from_an_error_in_the_code() {
        let killed =
            "echo '  process did not exit successfully: `rustc x` (signal: 9, SIGKILL: kill)' >&2; exit 101";
        assert!(sh(killed).lost_a_compiler());
        assert!(!sh("echo 'error[E0308]: mismatched types' >&2; exit 101").lost_a_compiler());
    }

    #[test]
    fn program_without_output_is_killed_with_its_children() {
        let begun = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; sh -c 'echo $$; sleep 300; true'; true"]);
        let output =
            run_while(&mut command, OutputVisibility::OnFailure, Duration::from_millis(500)).unwrap();
        assert!(!output.success);
        let started = output.stdout().lines().last().unwrap().to_owned();
        let zombie_or_gone = || {
            let state = fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        while !zombie_or_gone() {
            assert!(begun.elapsed() < Duration::from_secs(60), "what it started is still there");
            thread::sleep(GLANCE);
        }
    }

    #[test]
    fn process_left_by_a_test_does_not_delay_the_end_of_its_run() {
        let begun = Instant::now();
        assert_eq!(sh("sleep 120 & echo done").stdout(), "done");
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

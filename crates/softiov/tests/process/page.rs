//! Follows a page of the documentation as its reader does: its commands are typed into one shell in their order, and
//! their output must match the page. `...` on a page stands for lines that it leaves out, and `[..]` for text that
//! differs between machines. Blocks that are not commands (`toml`, `xml`) are skipped.

use snapbox::{Assert, IntoData};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Text that the shell prints after each command of a page, before its exit status; commands do not print this text.
const ENDED: &str = "the command has ended with status";

/// Command that a page of the documentation tells its reader to type, with the output that the page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentedCommand {
    /// Number of the command's line on the page.
    pub(crate) line: usize,
    pub(crate) command: String,
    /// Output that the page shows below the command; `None` where it shows none.
    pub(crate) printed: Option<String>,
}

/// Returns the text of a page of the task guide, docs/guide/`name`.md.
pub(crate) fn guide(name: &str) -> String {
    let path = format!("{}/../../docs/guide/{name}.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the commands of a page or of a part of one: those behind `$ ` in `console` blocks, each with the output
/// below it, and each `sh` block as one command, which fails where one of its lines does. A line behind `> `
/// continues a command.
pub(crate) fn steps(page: &str) -> Vec<DocumentedCommand> {
    let (mut steps, mut language) = (Vec::<DocumentedCommand>::new(), None);
    for (number, text) in page.lines().enumerate() {
        let line = number + 1;
        if let Some(opened) = text.strip_prefix("```") {
            match (language.take(), steps.last_mut()) {
                (None, _) => language = Some(opened),
                (Some("sh"), Some(step)) => step.command += ")\n",
                _ => {}
            }
            if language == Some("sh") {
                steps.push(DocumentedCommand { line, command: "(set -e\n".to_owned(), printed: None });
            }
            continue;
        }
        match (language, steps.last_mut()) {
            (Some("sh"), Some(step)) => step.command += &format!("{text}\n"),
            (Some("console"), last) => match (text.strip_prefix("$ "), continued(text), last) {
                (Some(command), ..) => {
                    let command = format!("{command}\n");
                    steps.push(DocumentedCommand { line, command, printed: Some(String::new()) });
                }
                (_, Some(more), Some(step)) if step.printed.as_deref() == Some("") => {
                    step.command += &format!("{more}\n");
                }
                (.., Some(DocumentedCommand { printed: Some(printed), .. })) => {
                    *printed += &format!("{text}\n");
                }
                _ => panic!("line {line} is printed before there is a command: {text}"),
            },
            _ => {}
        }
    }
    steps
}

/// Returns the text that a line after `> ` adds to the command before it; `None` for another line.
fn continued(line: &str) -> Option<&str> {
    line.strip_prefix("> ").or((line == ">").then_some(""))
}

/// Shell into which the commands of a page are typed. Dropping this value ends the processes that were started in the
/// background.
#[derive(Debug)]
pub(crate) struct DocumentationShell {
    shell: Child,
    typed: Option<ChildStdin>,
    printed: BufReader<ChildStdout>,
    places: Vec<(String, String)>,
}

impl DocumentationShell {
    /// Starts the shell of a reader. `places` are pairs of names, such as paths: the first is the name on the page, the
    /// second the name on this machine.
    pub(crate) fn at(mut shell: Command, places: &[(&str, &str)]) -> Self {
        let mut shell = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the reader's shell must start");
        let (typed, printed) =
            (shell.stdin.take(), BufReader::new(shell.stdout.take().expect("stdout is piped")));
        let places = places.iter().map(|(page, here)| ((*page).to_owned(), (*here).to_owned())).collect();
        let mut reader = Self { shell, typed, printed, places };
        reader.type_in("exec 2>&1; RUNNING=; trap 'kill $RUNNING 2>/dev/null; wait' EXIT");
        reader
    }

    /// Types every command of a page in its order, and compares each output with the page.
    pub(crate) fn follow(&mut self, page: &str) {
        for step in steps(page) {
            self.take(&step);
        }
    }

    /// Types one command of a page, and compares its output with the page.
    pub(crate) fn take(&mut self, step: &DocumentedCommand) {
        let mut command = step.command.clone();
        for (page, here) in &self.places {
            command = command.replace(page, here);
        }
        let (mut printed, status) = self.run(&command);
        for (page, here) in &self.places {
            printed = printed.replace(here, page);
        }
        let at = format!("line {}: {}", step.line, step.command);
        assert_eq!(status, 0, "{at}{printed}");
        if let Some(expected) = &step.printed {
            let same = Assert::new().normalize_paths(false).try_eq(
                Some(&at),
                printed.into_data(),
                expected.into_data(),
            );
            same.unwrap_or_else(|difference| panic!("{at}{difference}"));
        }
    }

    /// Runs a command in the reader's shell, and returns its output and exit status.
    pub(crate) fn run(&mut self, command: &str) -> (String, i32) {
        self.type_in(&format!("{{\n{command}}} </dev/null\nprintf '\\n{ENDED} %s\\n' $?"));
        if command.trim_end().ends_with('&') {
            self.type_in("RUNNING=\"$RUNNING $!\"");
        }
        if command.starts_with("softiov serve") {
            // A reader reads on more slowly than a host starts.
            self.type_in("until softiov vf list >/dev/null 2>&1; do kill -0 $! || break; sleep 0.05; done");
        }
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let length = self.printed.read_line(&mut line).expect("text");
            assert_ne!(length, 0, "the shell has ended:\n{command}{printed}");
            if let Some(status) = line.strip_prefix(ENDED) {
                // The shell has added the line break.
                printed.pop();
                return (printed, status.trim().parse().expect("the exit status must be a number"));
            }
            printed += &line;
        }
    }

    fn type_in(&mut self, line: &str) {
        let typed = self.typed.as_mut().expect("the shell's input is open until the end");
        writeln!(typed, "{line}").expect("the reader's shell must read commands");
    }
}

impl Drop for DocumentationShell {
    fn drop(&mut self) {
        // At the end of its input the shell ends its children, and itself.
        self.typed = None;
        let _ = self.shell.wait();
    }
}

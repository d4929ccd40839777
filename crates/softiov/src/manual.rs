//! `softiov completions` and `softiov man`: what a shell and a reader of manuals need, made from the command line as it is
//! declared. Left out: where packages put it.

use crate::output;
use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// For which shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script that a shell loads.
    pub(crate) fn run(&self, mut command: Command) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "softiov", &mut script);
        output::print(&String::from_utf8(script)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Which pages, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Manual {
    /// Write the pages of all commands into this folder, instead of printing one.
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    dir: Option<PathBuf>,
    /// The command whose page to print, such as vf set; without one, softiov's own.
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

impl Manual {
    /// Prints a page in roff, or writes them all.
    pub(crate) fn run(&self, mut command: Command) -> anyhow::Result<ExitCode> {
        // Otherwise subcommands do not know the names of those above them.
        command.build();
        if let Some(dir) = &self.dir {
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("cannot write to {}", dir.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut page = &command;
        for word in &self.words {
            page = page.find_subcommand(word).with_context(|| {
                format!("{} has no command {word:?}", page.get_bin_name().unwrap_or("softiov"))
            })?;
        }
        let mut roff = Vec::new();
        clap_mangen::Man::new(page.clone()).render(&mut roff)?;
        output::print(&String::from_utf8(roff)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

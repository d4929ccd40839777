//! `softiov completions` and `softiov man`: completion scripts and manual pages, generated from the declared
//! commands.

use crate::output;
use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `softiov completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that the completion script is for.
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script with which a shell completes the commands.
    pub(crate) fn run(&self, mut command: Command) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "softiov", &mut script);
        output::print(&String::from_utf8(script)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Arguments of `softiov man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// Write the pages of all commands to this directory, instead of printing one.
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    dir: Option<PathBuf>,
    /// Command whose page to print, such as vf set (default: the page of softiov itself).
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

impl ManualArgs {
    /// Prints a manual page in roff, or writes all manual pages.
    pub(crate) fn run(&self, mut command: Command) -> anyhow::Result<ExitCode> {
        // Only built subcommands know the names of their parents.
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

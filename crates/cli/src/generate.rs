//! The manual page and shell completions, made from the definitions of the flags.

use std::io::Write;

use clap::CommandFactory;

use crate::error::{Error, SessionError};
use crate::flags::Words;
use crate::tell::print;

/// Writes the manual page to stdout.
pub(crate) fn man() -> Result<u8, Error> {
    let mut page = Vec::new();
    let mut render = || -> std::io::Result<()> {
        let command = Words::command();
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        writeln!(page, ".SH ENVIRONMENT")?;
        for (name, meaning) in ENVIRONMENT {
            writeln!(page, ".TP\n{name}\n{meaning}")?;
        }
        writeln!(page, ".SH \"EXIT STATUS\"")?;
        for (code, meaning) in crate::error::CODES {
            writeln!(page, ".TP\n{code}\n{}", meaning.replace('\\', "\\\\"))?;
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let sub = sub.clone().bin_name(format!("wayferry {}", sub.get_name()));
            writeln!(page, ".SH \"COMMAND {}\"", sub.get_name().to_uppercase())?;
            let man = clap_mangen::Man::new(sub);
            man.render_synopsis_section(&mut page)?;
            man.render_description_section(&mut page)?;
            man.render_options_section(&mut page)?;
        }
        Ok(())
    };
    render().map_err(|source| SessionError::System { doing: "making the manual page", source })?;
    print(&page)
}

/// Writes completions for `shell` to stdout.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Words::command(), "wayferry", &mut script);
    print(&script)
}

/// Every variable of the environment that a user may set.
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "WAYLAND_DISPLAY",
        "The compositor on which windows are shown; programs of a session find theirs in it.",
    ),
    (
        "XDG_RUNTIME_DIR",
        "Where sockets are; where there is none, a private directory is made and removed again.",
    ),
    (
        "XCURSOR_THEME, XCURSOR_SIZE",
        "Pointers that the compositor cannot draw by name are taken from this theme.",
    ),
    ("SHELL", "What runs where no command is given."),
    ("TMPDIR", "Where private directories are made."),
    (
        "SSLKEYLOGFILE",
        "TLS secrets are appended to this file, for a network analyser. A reader of it can read the session.",
    ),
];

//! The manual pages, made from the definitions of the flags, and the scripts of shell completions.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::error::{Error, SessionError};
use crate::flags::Words;
use crate::tell::print;

/// Writes the manual page of all commands to stdout.
pub(crate) fn man() -> Result<u8, Error> {
    print(&whole_page().map_err(failed)?)
}

/// Writes the manual page of all commands, and one for each, into `folder`, which is there.
pub(crate) fn man_to(folder: &Path) -> Result<u8, Error> {
    let write = |name: &str, page: Vec<u8>| {
        let path = folder.join(name);
        std::fs::write(&path, page).map_err(|source| SessionError::File { path, source })
    };
    write("wayferry.1", whole_page().map_err(failed)?)?;
    let mut command = Words::command();
    command.build();
    for sub in visible(&command) {
        let (name, title) = (format!("wayferry {}", sub.get_name()), format!("wayferry-{}", sub.get_name()));
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(sub.clone().bin_name(name).display_name(&title));
        man.render(&mut page).map_err(failed)?;
        page.extend_from_slice(b".SH \"SEE ALSO\"\n.BR wayferry (1)\n");
        write(&(title + ".1"), page)?;
    }
    Ok(0)
}

fn whole_page() -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
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
    for sub in visible(&command) {
        let sub = sub.clone().bin_name(format!("wayferry {}", sub.get_name()));
        writeln!(page, ".SH \"COMMAND {}\"", sub.get_name().to_uppercase())?;
        let man = clap_mangen::Man::new(sub);
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    Ok(page)
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

fn failed(source: std::io::Error) -> SessionError {
    SessionError::System { doing: "making a page or a script", source }
}

/// Writes the script to stdout that has `shell` ask this program for completions.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, Error> {
    print(&crate::complete::script(shell).map_err(failed)?)
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

//! Why `--install-remote` put no copy on the other machine, and what to do about it.

use std::fmt;

/// Why there is no copy.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Neither this program nor one beside it runs everywhere.
    NotStatic,
    /// It is a machine of another kind, by `uname -sm`; nothing was sent.
    OtherMachine { here: String, there: String },
    /// Something that is no program has the name already.
    Occupied,
    /// It did not arrive whole, or could not be put there.
    Transfer,
    /// It arrived and could not be run: too old a kernel, or a directory that programs may not be in.
    DoesNotRun,
}

impl Failure {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NotStatic => {
                "`make static` builds target/static/wayferry; run that, or put it beside this program as `wayferry-static`"
            }
            Self::OtherMachine { .. } => {
                "run `make static` on a machine of that kind, and copy target/static/wayferry to ~/.local/bin there"
            }
            Self::Occupied => "look at ~/.local/bin/wayferry there; move it away, or make it executable",
            Self::Transfer => {
                "the other machine's own message is above; is its disk full, or ~/.local not yours?"
            }
            Self::DoesNotRun => {
                "build wayferry on that machine, and say where it is with `--remote-bin PATH`"
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStatic => f.write_str("this is no static build, and none lies beside it"),
            Self::OtherMachine { here, there } => {
                write!(f, "that machine is `{there}`, and this program is for `{here}`")
            }
            Self::Occupied => f.write_str("~/.local/bin/wayferry is there and is no program"),
            Self::Transfer => f.write_str("it did not arrive whole"),
            Self::DoesNotRun => f.write_str("the copy does not run on that machine"),
        }
    }
}

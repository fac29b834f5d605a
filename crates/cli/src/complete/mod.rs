//! Completions: what a shell offers while the user types.
//!
//! The scripts that packages install ask this program, through a variable of the environment, for what fits: commands
//! and options as they are defined in [`crate::flags`], hosts that ssh's files name, sessions that run here. It asks
//! nothing of the network. Invariant: without that variable, one look at the environment is all that it costs.

mod hosts;

use std::ffi::OsStr;
use std::io::Write;

use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Zsh};
use clap_complete::{ArgValueCandidates, ArgValueCompleter, CompleteEnv, CompletionCandidate, Shell};

use crate::flags::Words;
use crate::ssh::args::{WITH_ARGUMENT, WITHOUT_ARGUMENT};
use wayferry_host::sessions;

/// Whether a shell asks what fits.
pub(crate) fn is_asked() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|shell| !shell.is_empty())
}

/// Answers the shell; gives the exit code.
pub(crate) fn run() -> u8 {
    let complete = CompleteEnv::with_factory(definition).var(VARIABLE).bin(NAME).completer(NAME);
    let directory = std::env::current_dir().ok();
    // A message would stand in the middle of what the user types.
    u8::from(complete.try_complete(std::env::args_os(), directory.as_deref()).is_err())
}

/// The script that has a shell ask this program, which it finds in its PATH.
pub(crate) fn script(shell: Shell) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let mut of = |shell: &dyn EnvCompleter| shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script);
    match shell {
        Shell::Elvish => of(&Elvish)?,
        Shell::Fish => of(&Fish)?,
        Shell::PowerShell => of(&Powershell)?,
        Shell::Zsh => {
            of(&Zsh)?;
            script = called_at_once(&script);
        }
        // Bash, and what may come.
        _ => script.write_all(BASH.replace("VARIABLE", VARIABLE).as_bytes())?,
    }
    Ok(script)
}

/// zsh reads a file of completions when it needs the first one, which this makes, too.
fn called_at_once(script: &[u8]) -> Vec<u8> {
    let script = String::from_utf8_lossy(script);
    let (body, last) = script.trim_end().rsplit_once('\n').unwrap_or_default();
    let function = last.split(' ').nth(1).unwrap_or_default();
    let end = format!(
        "if [ \"$funcstack[1]\" = \"_{NAME}\" ]; then\n    {function} \"$@\"\nelse\n    {last}\nfi\n"
    );
    format!("{body}\n{end}").into_bytes()
}

/// The commands, with what else may be completed.
fn definition() -> Command {
    let command = Words::command();
    let names: Vec<String> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let commands =
        move || names.iter().map(|name| CompletionCandidate::new(name.as_str())).collect::<Vec<_>>();
    let help =
        |help: Command| help.mut_arg("command", |arg| arg.add(ArgValueCandidates::new(commands.clone())));
    command.mut_subcommands(|sub| {
        let has = |id: &str| sub.get_arguments().any(|arg| arg.get_id() == id);
        let (which, host, reaches) = (has("which"), has("host"), has("ssh_bin"));
        let mut sub = match sub.get_name() {
            "ssh" | "desktop-entry" => {
                sub.arg(Arg::new("destination").add(ArgValueCompleter::new(fitting_hosts)))
            }
            "help" => help(sub),
            _ if which => sub.mut_arg("which", |arg| arg.add(ArgValueCompleter::new(fitting_sessions))),
            _ if host => sub.mut_arg("host", |arg| arg.add(ArgValueCompleter::new(fitting_hosts))),
            _ => sub,
        };
        if reaches && sub.get_name() != "through" {
            sub = sub.args(ssh_options());
        }
        sub
    })
}

/// ssh's own options, so that it is known where they end.
fn ssh_options() -> Vec<Arg> {
    let option =
        |letter: &u8| Arg::new(format!("ssh-{}", char::from(*letter))).short(char::from(*letter)).hide(true);
    // `-v` and `-h` are ours, too.
    let flags = WITHOUT_ARGUMENT.iter().filter(|letter| !OURS.contains(letter));
    let flags = flags.map(|letter| option(letter).action(ArgAction::Count));
    let with_value = WITH_ARGUMENT.iter().map(|letter| {
        let option = option(letter).action(ArgAction::Append);
        match letter {
            b'E' | b'F' | b'I' | b'i' | b'S' => option.value_hint(ValueHint::AnyPath),
            b'J' => option.add(ArgValueCompleter::new(fitting_hosts)),
            _ => option,
        }
    });
    flags.chain(with_value).collect()
}

/// Hosts that begin like this, behind the user that was typed.
fn fitting_hosts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let (user, name) =
        typed.rsplit_once('@').map_or(("", typed), |(_, name)| typed.split_at(typed.len() - name.len()));
    let hosts = hosts::known().into_iter().filter(|host| host.starts_with(name));
    hosts.map(|host| CompletionCandidate::new(format!("{user}{host}"))).collect()
}

/// Sessions of this machine, and hosts: those of other machines are not asked for.
fn fitting_sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = sessions::names().into_iter().map(|name| format!(":{name}"));
    let fits = |name: &String| typed.to_str().is_some_and(|typed| name.starts_with(typed));
    let here = names.filter(fits).map(CompletionCandidate::new);
    here.chain(fitting_hosts(typed)).collect()
}

/// Names the shell that asks. No setting: it is of no use to users.
const VARIABLE: &str = "_WAYFERRY_COMPLETE";
/// As users call it.
const NAME: &str = "wayferry";
/// Letters of ssh's options that are Wayferry's as well.
const OURS: &[u8] = b"hv";

/// bash splits words at `:` and `@`, so they are put together again, and of each answer only that is given which is to
/// replace bash's last part.
const BASH: &str = r#"_wayferry() {
    local line=${COMP_LINE:0:COMP_POINT} rest word words=() last=-1 i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        if ((i == 0)) || [[ $rest != "$line" ]]; then
            ((++last))
            words[last]=
        fi
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$rest
        words[last]+=$word
        line=${rest:${#word}}
    done
    local typed=${words[last]} IFS=$'\013'
    local replies=($(VARIABLE=bash _CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$last wayferry -- "${words[@]}" 2>/dev/null))
    COMPREPLY=("${replies[@]#"${typed%"$2"}"}")
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != */ ]] || compopt -o nospace 2>/dev/null
}
complete -o bashdefault -o default -o nosort -F _wayferry wayferry
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_completed_is_sound_and_knows_where_ssh_ends() {
        definition().debug_assert();
        let fits = |line: &str| -> Vec<String> {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            let index = words.len() - 1;
            let found =
                clap_complete::engine::complete(&mut definition(), words, index, None).expect("answers");
            found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(fits("wayferry det"), ["detach"]);
        assert_eq!(fits("wayferry help det"), ["detach"]);
        assert_eq!(fits("wayferry ssh -p 22 --loss"), ["--lossless"]);
        assert!(fits("wayferry ssh -p ").is_empty());
        assert!(!fits("wayferry ").iter().any(|name| name == "gpu-reader" || name == "meet"));
    }

    #[test]
    fn the_scripts_ask_this_program() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let text = String::from_utf8(script(shell).expect("a script")).expect("text");
            assert!(text.contains(VARIABLE) && text.contains("wayferry"), "{text}");
        }
        let zsh = String::from_utf8(script(Shell::Zsh).expect("a script")).expect("text");
        assert!(zsh.starts_with("#compdef wayferry\n") && zsh.contains("$funcstack[1]"), "{zsh}");
    }
}

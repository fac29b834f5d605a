//! `wayferry desktop-entry`: a program of another machine in this desktop's menu.
//!
//! It writes an entry after the Desktop Entry Specification 1.5, whose command is `wayferry ssh` with the words that
//! were given. It starts nothing. Invariant: a launcher that keeps to the specification runs exactly these words, and a
//! file that is there is never changed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, SessionError};
use crate::flags::{DesktopEntryFlags, OwnFlags};
use crate::ssh::args::SshArgs;
use crate::tell::print;
use crate::user_dirs;
use wayferry_host::edge::whole_file;

/// Prints an entry, or puts it where the desktop looks; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &DesktopEntryFlags) -> Result<u8, Error> {
    let args = SshArgs::parse(&flags.words)?;
    let Some(first) = args.command.first() else {
        return Err(Error::Usage {
            what: "no program is named: a shell needs a terminal".to_owned(),
            hint: Some("name one behind the host, as in `wayferry desktop-entry user@host foot`".to_owned()),
        });
    };
    let host = text(&args.destination)?;
    let program = text(Path::new(first).file_name().unwrap_or(first))?;
    let entry = entry(host, program, &command(own, &args)?)?;
    if !flags.install {
        return print(entry.as_bytes());
    }
    let path = applications()?.join(file_name(host, program));
    install(&path, &entry).map_err(|source| SessionError::File { path: path.clone(), source })?;
    print(format!("{}\n", path.display()).as_bytes())
}

/// The words that the entry runs.
fn command(own: &OwnFlags, args: &SshArgs) -> Result<Vec<OsString>, Error> {
    let mut words = vec![itself()?];
    let mut option = |name: &str, value: &OsStr| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        words.push(word);
    };
    own.reach.remote_bin.iter().for_each(|value| option("remote-bin", value.as_ref()));
    own.reach.ssh_bin.iter().for_each(|value| option("ssh-bin", value));
    words.push("ssh".into());
    words.extend(args.options.iter().cloned());
    words.push(args.destination.clone());
    // Behind a destination ssh reads options again.
    words.push("--".into());
    words.extend(args.command.iter().cloned());
    Ok(words)
}

/// This program, as a desktop finds it: by its name, if that is in a place where every desktop looks.
fn itself() -> Result<OsString, Error> {
    let system = |source| SessionError::System { doing: "looking for this program", source };
    let path = std::env::current_exe().map_err(system)?;
    let is_this = |place: &str| fs::canonicalize(place).is_ok_and(|place| place == path);
    let is_found = ["/usr/bin/wayferry", "/usr/local/bin/wayferry"].into_iter().any(is_this);
    Ok(if is_found { "wayferry".into() } else { path.into_os_string() })
}

fn entry(host: &str, program: &str, words: &[OsString]) -> Result<String, Error> {
    let exec = words.iter().map(|word| text(word).map(quote)).collect::<Result<Vec<_>, _>>()?;
    // "The executable program … must not contain the equal sign".
    if exec[0].contains('=') {
        return Err(Error::usage(format!("`{}` has an `=` in it, which no desktop entry may run", exec[0])));
    }
    let is_icon = program.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    let icon = if is_icon { format!("Icon={program}\n") } else { String::new() };
    let name = escape(&format!("{program} @ {host}"));
    let comment = escape(&format!("{program} of {host}, shown here by Wayferry"));
    Ok(format!(
        "[Desktop Entry]\nVersion=1.0\nType=Application\nName={name}\nComment={comment}\n{icon}Exec={}\n\
         Terminal=false\n",
        escape(&exec.join(" "))
    ))
}

/// A word that may stand in an entry.
///
/// # Errors
/// It is no text, or has control characters: the specification has no way to say them in a command.
fn text(word: &OsStr) -> Result<&str, Error> {
    let text = word.to_str().filter(|text| !text.chars().any(char::is_control));
    text.ok_or_else(|| Error::usage(format!("{word:?} cannot stand in a desktop entry")))
}

/// A word of a command. Desktop Entry Specification 1.5, "The Exec key".
fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "%-_./:=,+@^".contains(letter);
    // Begins a field code.
    let word = word.replace('%', "%%");
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    let mut quoted = String::from("\"");
    for letter in word.chars() {
        if "\"`$\\".contains(letter) {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

/// A value of a key. Desktop Entry Specification 1.5, "Possible value types".
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\")
}

/// Where a user's own entries are. Desktop Entry Specification 1.5, "File naming".
fn applications() -> Result<PathBuf, Error> {
    let data =
        user_dirs::named("XDG_DATA_HOME").or_else(|| user_dirs::home().map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| Error::usage("neither XDG_DATA_HOME nor HOME says where to install it"))?;
    Ok(data.join("applications"))
}

fn file_name(host: &str, program: &str) -> String {
    let plain = |text: &str| -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        text.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).take(MAX_PART).collect()
    };
    format!("wayferry-{}-{}.desktop", plain(host), plain(program))
}

/// Makes the file, whole or not at all; one with the same content may be there.
fn install(path: &Path, entry: &str) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    match whole_file::create(path, entry) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_same = fs::metadata(path)
                .is_ok_and(|found| found.is_file() && found.len() == entry.len() as u64)
                && fs::read(path).is_ok_and(|found| found == entry.as_bytes());
            if is_same { Ok(()) } else { Err(error) }
        }
        made => made.map(drop),
    }
}

/// Letters of a part of a file's name.
const MAX_PART: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    #[test]
    fn words_are_quoted_as_the_specification_says() {
        for (word, quoted) in [
            ("foot", "foot"),
            ("--port=1-2", "--port=1-2"),
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("100%", "100%%"),
            ("$HOME", r#""\$HOME""#),
            (r"\", r#""\\""#),
            ("\"`", r#""\"\`""#),
            ("it's", r#""it's""#),
            ("%f;reboot", r#""%%f;reboot""#),
        ] {
            assert_eq!(quote(word), quoted, "{word}");
        }
        let entry = entry("h", r"a\b", &["wayferry".into(), r"\".into()]).expect("an entry");
        assert!(entry.contains("\nName=a\\\\b @ h\n") && !entry.contains("Icon"), "{entry}");
        assert!(entry.contains("\nExec=wayferry \"\\\\\\\\\"\n"), "{entry}");
    }

    #[test]
    fn what_no_entry_can_say_is_refused() {
        for word in ["a\nExec=evil", "a\u{1b}", "a\tb", "\u{7f}"] {
            assert_eq!(entry("h", "p", &["w".into(), word.into()]).expect_err(word).code(), 64);
            assert_eq!(text(OsStr::new(word)).expect_err(word).code(), 64);
        }
        let raw = std::os::unix::ffi::OsStringExt::from_vec(vec![0xff]);
        assert_eq!(entry("h", "p", &["w".into(), raw]).expect_err("no text").code(), 64);
        assert_eq!(entry("h", "p", &["/a=b/wayferry".into()]).expect_err("its name").code(), 64);
    }

    #[test]
    fn a_file_that_is_there_stays_as_it_is() {
        let dir = RuntimeDir::private().expect("a directory");
        let path = dir.path().join("applications").join(file_name("u@h", "../x"));
        assert_eq!(path.file_name(), Some(OsStr::new("wayferry-u-h-..-x.desktop")));
        install(&path, "one").expect("it is new");
        install(&path, "one").expect("it is the same");
        let error = install(&path, "two").expect_err("it is another");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "one");
    }
}

use clap::CommandFactory;

use super::*;
use crate::flags::Words;

fn held_for(host: &str, variables: &[(&str, &str)], file: &str) -> Result<(Vec<String>, Vec<String>), Error> {
    let mut definition = Words::command();
    definition.build();
    let command = definition.find_subcommand("ssh").expect("ssh");
    let given = ["ssh", "--silence", "9"];
    let matches = command.clone().try_get_matches_from(given).expect("a line");
    let filled = fill(command, &matches, Some(OsStr::new(host)), &Sources::of(variables, Some(file)))?;
    let words = filled.words.into_iter().map(|word| word.into_string().expect("text")).collect();
    Ok((words, filled.notes))
}

const FILE: &str = "\
quality = 60
silence = 30
allow = [\"a\", \"b\"]

[host.\"*.example.org\"]
quality = 80
title-prefix = \"[work] \"
lossless = false

[host.\"a*\"]
quality = 70
port = \"60000-61000\"
";

#[test]
fn what_is_said_first_and_nearest_holds() {
    let words = |host, variables| held_for(host, variables, FILE).expect("it can be used").0;
    assert_eq!(words("other", &[]), ["--quality=60", "--allow=a", "--allow=b"]);
    let both = ["--quality=80", "--title-prefix=[work] ", "--port=60000-61000", "--allow=a", "--allow=b"];
    assert_eq!(words("user@a.example.org", &[]), both);
    assert_eq!(words("a1", &[("quality", "1"), ("allow", "")]), ["--quality=1", "--port=60000-61000"]);
}

#[test]
fn settings_that_exclude_each_other_do_not_meet() {
    let (words, _) = held_for("h", &[("lossless", "1")], "quality = 60\n").expect("it can be used");
    assert_eq!(words, ["--lossless"]);
    let (words, _) = held_for("h", &[("quality", "5")], "lossless = true\n").expect("it can be used");
    assert_eq!(words, ["--quality=5"]);
}

#[test]
fn what_is_unknown_is_told_and_ignored() {
    let (words, notes) =
        held_for("h", &[("nonsense", "1")], "qualty = 60\nverbose = 1\n").expect("it can be used");
    assert_eq!(words, ["--verbose"]);
    let note = "config.toml:1: no setting is called `qualty`, it is ignored; did you mean `quality`?";
    assert_eq!(notes, [note]);
    let variables =
        [("titel-prefix", "x"), ("control", "/run/w"), ("peers", "x"), ("helper", "x"), ("", "x")];
    let (_, notes) = held_for("h", &variables, "").expect("it can be used");
    let note = "$WAYFERRY_TITEL_PREFIX: no setting is called so, it is ignored; did you mean `WAYFERRY_TITLE_PREFIX`?";
    assert_eq!(notes, [note]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (file, expected) in [
        ("a = 1\nquality = 0\n", "config.toml:2: `quality`: expected a number from 1 to 100, got `0`"),
        ("quality = \"high\"\n", "config.toml:1: `quality`: expected a number from 1 to 100, got `high`"),
        ("files = [\"on\"]\n", "config.toml:1: `files`: expected on or off, got [on]"),
        ("files = \"maybe\"\n", "config.toml:1: `files`: expected one of on, off, got `maybe`"),
        ("quality = [\"1\"]\n", "config.toml:1: `quality`: expected a text or a number, got [1]"),
        ("lossless = 1979-05-27\n", "config.toml:1: `lossless`: expected true or false, got a date"),
        ("allow = 7.5\nport = \"9-1\"\n", "config.toml:2: `port`: expected a port or LOW-HIGH, got `9-1`"),
        ("[host]\nx = 1\n", "config.toml:2: expected blocks `[host.\"PATTERN\"]`"),
        ("quality = \n", "config.toml:1: it is not valid TOML: "),
        // Of a host that this is not about, too.
        ("[host.\"other\"]\nname = \"a b\"\n", "config.toml:2: `name`: "),
    ] {
        let error = held_for("h", &[], file).expect_err(file);
        assert_eq!(error.code(), 87, "{file}");
        assert!(error.to_string().starts_with(expected), "{file}: {error}");
    }
    let error = held_for("h", &[("detached", "perhaps")], "").expect_err("no such value");
    assert_eq!(error.to_string(), "$WAYFERRY_DETACHED: `detached`: expected true or false, got `perhaps`");
}

#[test]
fn an_option_whose_value_may_be_left_out_is_a_flag_too() {
    for (text, expected) in [
        ("true", &["--xwayland"][..]),
        ("false", &[]),
        ("\"\"", &[]),
        ("\"satellite\"", &["--xwayland=satellite"]),
        ("\"rootful\"", &["--xwayland=rootful"]),
    ] {
        let (words, _) = held_for("h", &[], &format!("xwayland = {text}\n")).expect(text);
        assert_eq!(words, expected, "{text}");
        let (words, _) = held_for("h", &[("xwayland", text.trim_matches('"'))], "").expect(text);
        assert_eq!(words, expected, "{text}");
    }
    let error = held_for("h", &[("xwayland", "perhaps")], "").expect_err("no such value");
    let expected = "$WAYFERRY_XWAYLAND: `xwayland`: expected satellite or rootful, got `perhaps`";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_on_or_off_is_true_or_false_too() {
    for (text, expected) in [
        ("true", &["--files=on"][..]),
        ("false", &["--files=off"]),
        ("\"on\"", &["--files=on"]),
        ("\"off\"", &["--files=off"]),
        ("\"\"", &[]),
    ] {
        let (words, _) = held_for("h", &[], &format!("files = {text}\n")).expect(text);
        assert_eq!(words, expected, "{text}");
        let (words, _) = held_for("h", &[("files", text.trim_matches('"'))], "").expect(text);
        assert_eq!(words, expected, "{text}");
    }
}

use clap::CommandFactory;
use wayferry_host::edge::xwayland::How;
use wayferry_host::settings::Compress;

use super::*;

fn parse(line: &str) -> Result<Flags, Error> {
    Flags::parse_with(line.split_whitespace().map(OsString::from), &config::Sources::default())
}

#[test]
fn the_definitions_are_sound() {
    Words::command().debug_assert();
}

#[test]
fn what_is_sshs_reaches_it_as_it_was() {
    for line in [
        "wayferry --compress lz4 --display ssh ssh -vp 22 -o A=B host foot --compress zstd -h",
        "wayferry ssh -vp 22 --compress lz4 -o A=B --display=ssh host foot --compress zstd -h",
        "wayferry --display ssh ssh -vp 22 -o A=B host --compress lz4 foot --compress zstd -h",
    ] {
        let flags = parse(line).expect(line);
        assert_eq!(flags.own.begin.pixels.compress, Some(Compress::Lz4), "{line}");
        assert_eq!(flags.own.begin.display.as_deref(), Some("ssh"), "{line}");
        let Command::Ssh(ssh) = flags.command else { panic!("not ssh") };
        let words = ssh.words.join(std::ffi::OsStr::new(" "));
        assert_eq!(words, "-vp 22 -o A=B host foot --compress zstd -h", "{line}");
    }
}

#[test]
fn how_x11_programs_are_shown_stands_in_its_own_word() {
    for (line, expected) in [
        ("wayferry --xwayland ssh host xterm", How::Satellite),
        ("wayferry ssh --xwayland host xterm", How::Satellite),
        ("wayferry ssh host --xwayland=satellite xterm", How::Satellite),
        ("wayferry --xwayland=rootful ssh host xterm", How::Rootful),
    ] {
        let flags = parse(line).expect(line);
        assert_eq!(flags.own.begin.xwayland, Some(expected), "{line}");
        let Command::Ssh(ssh) = flags.command else { panic!("not ssh") };
        assert_eq!(ssh.words, ["host", "xterm"], "{line}");
    }
    let refused = parse("wayferry --xwayland=other ssh host").expect_err("no such way").to_string();
    assert!(refused.contains("expected satellite or rootful"), "{refused}");
}

#[test]
fn sshs_options_may_stand_before_a_host() {
    let flags = parse("wayferry stop -p 2222 -J gate -4 user@host:foot").expect("parses");
    assert_eq!(flags.own.reach.ssh_options, ["-p", "2222", "-J", "gate", "-4"]);
    let Command::Stop(stop) = flags.command else { panic!("not stop") };
    assert_eq!(stop.which, Some("user@host:foot".parse().expect("a session")));
    let flags = parse("wayferry attach --view -i key -vv host").expect("parses");
    assert_eq!((flags.own.reach.ssh_options.len(), flags.own.common.verbose), (2, 2));
}

#[test]
fn an_option_has_one_meaning() {
    let definition = Words::command();
    let mut seen = std::collections::BTreeMap::new();
    for command in definition.get_subcommands() {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            // All tickets, but one link.
            if long == "revoke" {
                continue;
            }
            let takes = arg.get_action().takes_values();
            assert_eq!(
                *seen.entry(long.to_owned()).or_insert(takes),
                takes,
                "--{long} of {}",
                command.get_name()
            );
        }
    }
}

#[test]
fn what_is_revoked_is_named_where_it_is_a_link() {
    let flags = parse("wayferry ticket --revoke -p 22 host:foot").expect("parses");
    let Command::Ticket(ticket) = flags.command else { panic!("not ticket") };
    assert!(ticket.revoke && ticket.which.which == "host:foot".parse().ok());
    let flags = parse("wayferry share --revoke 3 -p 22 host:foot").expect("parses");
    assert_eq!(flags.own.reach.ssh_options, ["-p", "22"]);
    let Command::Share(share) = flags.command else { panic!("not share") };
    assert_eq!(share.revoke, Some(Links("3".parse().ok())));
    assert_eq!(share.which.which, "host:foot".parse().ok());
    let Command::Share(share) = parse("wayferry share --revoke all").expect("parses").command else {
        panic!("not share")
    };
    assert_eq!(share.revoke, Some(Links(None)));
    for line in ["share --revoke", "share --revoke 0", "share --revoke 3 --list", "share --list --control"] {
        assert!(parse(&format!("wayferry {line}")).is_err(), "{line}");
    }
}

#[test]
fn an_option_may_take_two_words() {
    let flags =
        parse("wayferry share --https c.pem k.pem -p 22 host:foot --name a.test -i id").expect("parses");
    assert_eq!(flags.own.reach.ssh_options, ["-p", "22", "-i", "id"]);
    let Command::Share(share) = flags.command else { panic!("not share") };
    assert_eq!(share.https, Some(vec!["c.pem".into(), "k.pem".into()]));
    assert_eq!((share.which.which, share.https_name.as_deref()), ("host:foot".parse().ok(), Some("a.test")));
    for line in ["--https c.pem", "--name a.test", "--list --https c k", "--revoke 3 --https c k"] {
        assert!(parse(&format!("wayferry share {line}")).is_err(), "{line}");
    }
}

#[test]
fn help_is_short() {
    let lines = |command: &mut clap::Command| command.render_help().to_string().lines().count();
    let mut definition = Words::command();
    definition.build();
    assert!(lines(&mut definition.clone()) <= 25, "{}", definition.render_help());
    for command in definition.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        let help = command.render_help();
        assert!(lines(command) <= 40, "{help}");
        let long = help.to_string().lines().filter(|line| line.chars().count() > 110).count();
        assert_eq!(long, 0, "{help}");
    }
}

#[test]
fn what_is_mistyped_is_understood() {
    for (line, what, hint) in [
        ("wayferry atach host", "unrecognized subcommand 'atach'", "did you mean `attach`?"),
        ("wayferry attach --veiw host", "unexpected argument '--veiw' found", "did you mean `--view`?"),
        (
            "wayferry --lossless stop host",
            "`--lossless` means nothing to `stop`",
            "it is an option of `ssh`, `through` and `host`; `wayferry stop --help` lists those of `stop`",
        ),
        (
            "wayferry list -p 22",
            "ssh's options stand before a host, and none is named",
            "`wayferry help` lists the commands",
        ),
        ("wayferry list -Z host", "ssh has no option `-Z`", "`wayferry help` lists the commands"),
        // `bench`, which is most like it, is listed nowhere.
        ("wayferry nosuch", "unrecognized subcommand 'nosuch'", "`wayferry help` lists the commands"),
        (
            "wayferry attach --files maybe host",
            "invalid value 'maybe' for '--files <WHETHER>': expected one of on, off",
            "`wayferry attach --help` lists its options",
        ),
        (
            "wayferry ssh --quality 0 host",
            "invalid value '0' for '--quality <NUMBER>': expected a number from 1 to 100",
            "`wayferry ssh --help` lists its options",
        ),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!([error.to_string(), error.hint()], [what, hint], "{line}");
    }
}

#[test]
fn own_options_stand_on_either_side_of_the_other_commands() {
    for line in ["wayferry --title-prefix X: attach wf1:", "wayferry attach --title-prefix X: wf1:"] {
        assert_eq!(parse(line).expect(line).own.show.title_prefix.as_deref(), Some("X:"));
    }
}

#[test]
fn host_takes_a_command_after_two_dashes() {
    let flags =
        parse("wayferry host --listen 127.0.0.1:0 --port 60000-61000 -- foot --server").expect("parses");
    assert_eq!(flags.own.begin.port, Some(60000..=61000));
    let Command::Host(host) = flags.command else { panic!("not host") };
    assert_eq!(host.command, ["foot", "--server"]);
}

#[test]
fn wrong_use_is_one_line_and_code_64() {
    for line in [
        "wayferry frobnicate",
        "wayferry --nope ssh host",
        "wayferry host -- foot",
        "wayferry host --listen nonsense",
        "wayferry --compress zstd=99 ssh host",
        "wayferry --port 9-1 ssh host",
        "wayferry conn --role both",
        "wayferry attach -x",
        "wayferry through",
        "wayferry attach --ca ca.pem wf1:",
        "wayferry attach --ticket-file t wf1:",
        "wayferry host --listen 127.0.0.1:0 --cert host.crt",
        "wayferry host --listen 127.0.0.1:0 --key host.key",
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.code(), 64, "{line}");
        assert!(!error.to_string().contains('\n') && !error.to_string().is_empty(), "{line}: {error}");
    }
}

#[test]
fn events_go_to_stdout_or_to_a_descriptor_of_the_callers() {
    let events = |value| {
        let words = ["wayferry", "--events", value, "list"].map(Into::into);
        Flags::parse_with(words, &config::Sources::default()).map(|flags| flags.own.common.events)
    };
    assert_eq!(events("-").expect("stdout"), Some(Events::Stdout));
    assert_eq!(events("3").expect("a descriptor"), Some(Events::Descriptor(3)));
    for value in ["2", "-1", "x", ""] {
        assert_eq!(events(value).expect_err("refused").code(), 64, "{value}");
    }
}

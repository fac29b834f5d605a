//! `wayferry share --list`: the links of a session, and who is there by them.

use serde_json::json;
use wayferry_host::control::{Answer, LinkInfo, LinkRole, Request};
use wayferry_host::sanitize::{self, sanitize};

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, Which};
use crate::manage::{self, span};
use crate::tell::print;

/// Tells which links are good, and who is there by which; gives the exit code.
pub(super) fn list(own: &OwnFlags, which: &Which, as_json: bool) -> Result<u8, Error> {
    let read =
        |printed: Vec<u8>| serde_json::from_slice(&printed).ok().map(|links| (None, Answer::Links(links)));
    match manage::ask_session(own, which, &Request::Links, read)?.map(|(_, answer)| answer) {
        Ok(Answer::Links(links)) if as_json => print(sanitize::json(&json!(links), false).as_bytes()),
        Ok(Answer::Links(links)) => print(table(&links).as_bytes()),
        Ok(_) => Err(SessionError::PeerViolation("what it said are no links".into()).into()),
        Err(code) => Ok(code),
    }
}

fn table(links: &[LinkInfo]) -> String {
    if links.is_empty() {
        return "no links\n".to_owned();
    }
    let rows = links.iter().map(|link| {
        let role = if link.role == LinkRole::View { "view" } else { "control" };
        let left = if link.uses == 0 { "over".to_owned() } else { span(link.seconds) };
        let there = link.there.iter().map(|from| from.as_deref().map_or("unknown".into(), sanitize));
        let there = there.collect::<Vec<_>>().join(", ");
        [link.id.to_string(), role.to_owned(), left, link.uses.to_string(), there]
    });
    let head = ["LINK", "ROLE", "GOOD FOR", "USES LEFT", "THERE"].map(str::to_owned);
    manage::columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stand_in_columns() {
        let link = |id, role, seconds, uses, there: &[Option<&str>]| LinkInfo {
            id,
            role,
            seconds,
            uses,
            there: there.iter().map(|from| from.map(str::to_owned)).collect(),
        };
        let links = [
            link(1, LinkRole::Control, 0, 0, &[Some("192.0.2.7:5")]),
            link(12, LinkRole::View, 3_540, 6, &[Some("a\u{1b}"), None]),
        ];
        assert_eq!(
            table(&links),
            "LINK  ROLE     GOOD FOR  USES LEFT  THERE\n\
             1     control  over      0          192.0.2.7:5\n\
             12    view     59 min    6          a\u{fffd}, unknown\n"
        );
        assert_eq!(table(&[]), "no links\n");
    }
}

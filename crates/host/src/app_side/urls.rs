//! Addresses that programs want opened beside the display.
//!
//! The app side judges none of them: the display's side does. Invariants: a caller is answered once, and by the display
//! that was asked; at most [`MAX_WAITING`] wait for that.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use wayferry_proto::{Capabilities, Control, MAX_URL, Secret, Session, UrlFate};

use crate::control::Answer;
use crate::control_server::answer;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Urls {
    /// Questions so far.
    asked: u64,
    waiting: BTreeMap<u64, OwnedFd>,
    /// Which display was asked.
    display: Option<Secret>,
}

impl Urls {
    /// A caller wants an address opened.
    pub(super) fn ask(&mut self, session: &mut Session, url: String, caller: OwnedFd) {
        if !session.capabilities().has(Capabilities::OPEN_URL) {
            return answer(&caller, &Answer::Elsewhere);
        }
        if self.waiting.len() >= MAX_WAITING {
            return refuse(&caller, "the display has not yet answered for others");
        }
        if url.len() > MAX_URL {
            return refuse(&caller, "the address is longer than 2048 bytes");
        }
        self.asked += 1;
        match session.control(&Control::OpenUrl { id: self.asked, url }) {
            Ok(()) => drop(self.waiting.insert(self.asked, caller)),
            Err(error) => refuse(&caller, &error.to_string()),
        }
    }

    /// The display tells what became of one.
    pub(super) fn on_done(&mut self, id: u64, fate: UrlFate) {
        let Some(caller) = self.waiting.remove(&id) else { return };
        match fate {
            UrlFate::Open => answer(&caller, &Answer::Done),
            UrlFate::Refused => refuse(&caller, "the user at the display did not allow it"),
            UrlFate::Unfit => refuse(&caller, "the display opens http, https and mailto alone"),
            UrlFate::TooMany => refuse(&caller, "too many addresses were to be opened at the display"),
            UrlFate::Failed => refuse(&caller, "there is no browser at the display"),
        }
    }

    /// This display shows the session now: another one will not answer.
    pub(super) fn keep_to(&mut self, display: Option<Secret>) {
        if display.is_none() || self.display != display {
            self.display = display;
            std::mem::take(&mut self.waiting)
                .into_values()
                .for_each(|caller| refuse(&caller, "the display has left"));
        }
    }
}

fn refuse(caller: &OwnedFd, why: &str) {
    answer(caller, &Answer::Not(why.to_owned()));
}

/// Callers that wait for the display's answer; more are refused.
const MAX_WAITING: usize = 8;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn waiting(urls: &mut Urls, id: u64) -> UnixStream {
        let (caller, ours) = UnixStream::pair().expect("a pair");
        urls.waiting.insert(id, ours.into());
        caller
    }

    fn heard(mut caller: UnixStream) -> String {
        let mut text = String::new();
        caller.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn each_caller_is_answered_once_and_by_the_display_that_was_asked() {
        let mut urls = Urls::default();
        urls.keep_to(Some([1; 32].into()));
        let (first, second) = (waiting(&mut urls, 1), waiting(&mut urls, 2));
        urls.on_done(9, UrlFate::Open);
        urls.on_done(1, UrlFate::Open);
        urls.on_done(1, UrlFate::Failed);
        assert_eq!(heard(first), "done\n");
        // The same display on another carrier goes on; another one does not know the question.
        urls.keep_to(Some([1; 32].into()));
        assert_eq!(urls.waiting.len(), 1);
        urls.keep_to(Some([2; 32].into()));
        assert_eq!(heard(second), "not the display has left\n");
    }
}

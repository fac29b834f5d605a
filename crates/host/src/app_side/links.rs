//! Links of a session as its user sees them: which are good, and who is there by which.
//!
//! Which are good is the admission's to say. Invariant: once a link was revoked, none who came by it is here.

use wayferry_proto::Time;
use wayferry_proto::admission::{LinkId, Role};
use wayferry_proto::succession::Presence;

use super::AppSide;
use crate::control::{LinkInfo, LinkRole};
use crate::control_server::{ControlServer, LinksRevoked};

impl AppSide<'_> {
    /// The links that are good, or by which somebody is here.
    pub(super) fn links(&self, now: Time) -> Vec<LinkInfo> {
        let admission = self.control_server.as_ref().map(ControlServer::admission_there);
        let good = admission.into_iter().flat_map(|admission| admission.links(now)).map(|link| LinkInfo {
            id: link.id.into(),
            role: if link.role == Role::View { LinkRole::View } else { LinkRole::Control },
            seconds: link.until.since(now).as_secs(),
            uses: link.uses,
            there: Vec::new(),
        });
        let mut links: Vec<LinkInfo> = good.collect();
        for (id, role, from) in self.guests() {
            let id = u32::from(id);
            let index = links.iter().position(|link| link.id == id).unwrap_or_else(|| {
                links.push(LinkInfo { id, role, seconds: 0, uses: 0, there: Vec::new() });
                links.len() - 1
            });
            links[index].there.push(from);
        }
        links.sort_by_key(|link| link.id);
        links
    }

    /// Who is here by a link, and from where.
    fn guests(&self) -> impl Iterator<Item = (LinkId, LinkRole, Option<String>)> {
        let active = self.active_link();
        let from = self.hub.link.from().map(|from| from.to_string());
        let active = active.map(|link| (link, LinkRole::Control, from));
        let views = self.views.guests().map(|(link, from)| {
            let from = from.map(|from| from.to_string());
            (link, LinkRole::View, from)
        });
        active.into_iter().chain(views)
    }

    /// The link by which the display came that has the session.
    pub(super) fn active_link(&self) -> Option<LinkId> {
        let admission = self.control_server.as_ref().map(ControlServer::admission_there)?;
        admission.active_link().filter(|_| self.hub.link.presence() != Presence::Detached)
    }

    /// Who came by a link that was revoked is sent away. Says whether the link was good, or anybody came by it.
    pub(super) fn send_guests_away(&mut self, now: Time, revoked: LinksRevoked) -> bool {
        let watched = self.views.dismiss_guests(now, revoked.which);
        if revoked.active {
            self.send_guest_away(now);
        }
        revoked.any || watched
    }
}

/// Why no link was revoked.
pub(super) const NO_LINK: &str = "it has no such link";

//! What is asked of windows and popups.
//!
//! Invariant: what has a role is told from what has none by the objects that live.

use wayferry_message::value::Positioner;
use wayferry_message::{WireArg, WireId};

use crate::ask::{Ask, Popup};
use crate::end::{End, wrong};
use crate::objects::text;

use super::{Client, GET, Object};

impl Client {
    /// Of the shell, and of what decorates windows.
    pub(super) fn ask_shell(&mut self, opcode: u16, args: &[WireArg]) -> Result<Option<Ask>, End> {
        let &[WireArg::NewId(id), WireArg::Object(of)] = args else { return Ok(None) };
        Ok(match opcode {
            base::GET_XDG_SURFACE => {
                self.take_role(of)?;
                self.add(id, Object::XdgSurface(of))?;
                Some(Ask::Nothing)
            }
            GET => {
                let Object::Toplevel(surface) = self.object(of)? else { return Ok(None) };
                self.add(id, Object::Decoration(surface))?;
                Some(Ask::Decorate { surface, decoration: id })
            }
            _ => None,
        })
    }

    pub(super) fn ask_decoration(
        &self,
        decoration: WireId,
        surface: WireId,
        opcode: u16,
        args: &[WireArg],
    ) -> Option<Ask> {
        match (opcode, args) {
            // It may prefer what it likes: the page shows a bar above its windows.
            (decoration::SET_MODE, [WireArg::Uint(_)]) | (decoration::UNSET_MODE, []) => {
                Some(Ask::Decorate { surface, decoration })
            }
            _ => None,
        }
    }

    pub(super) fn ask_xdg_surface(
        &mut self,
        id: WireId,
        surface: WireId,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<Ask>, End> {
        Ok(match (opcode, args) {
            (xdg_surface::GET_TOPLEVEL, &[WireArg::NewId(toplevel)]) => {
                self.add(toplevel, Object::Toplevel(surface))?;
                Some(Ask::BeWindow { surface, xdg_surface: id, toplevel })
            }
            (
                xdg_surface::GET_POPUP,
                &[WireArg::NewId(popup), WireArg::Object(parent), WireArg::Positioner(rules)],
            ) => {
                let parent = match parent {
                    WireId::NULL => None,
                    parent => Some(self.xdg_surface(parent)?),
                };
                if parent == Some(surface) {
                    return Err(wrong(format!("surface {} is a popup of itself", surface.0)));
                }
                self.add(popup, Object::Popup(surface))?;
                Some(Ask::BePopup(Box::new(Popup { surface, xdg_surface: id, popup, parent, rules })))
            }
            _ => None,
        })
    }

    /// The surface of that.
    fn xdg_surface(&self, id: WireId) -> Result<WireId, End> {
        match self.object(id)? {
            Object::XdgSurface(surface) => Ok(surface),
            _ => Err(wrong(format!("{} is no window or popup", id.0))),
        }
    }

    pub(super) fn ask_toplevel(
        &self,
        surface: WireId,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<Ask>, End> {
        let wish = |fullscreen| Some(Ask::Wish { surface, fullscreen });
        Ok(match (opcode, args) {
            (toplevel::SET_PARENT, &[WireArg::Object(WireId::NULL)]) => {
                Some(Ask::Belong { surface, to: None })
            }
            (toplevel::SET_PARENT, &[WireArg::Object(parent)]) => match self.object(parent)? {
                Object::Toplevel(to) if to != surface => Some(Ask::Belong { surface, to: Some(to) }),
                _ => None,
            },
            (toplevel::SET_TITLE, [WireArg::Str(Some(title))]) => {
                Some(Ask::Title { surface, title: text(title) })
            }
            (toplevel::SET_APP_ID, [WireArg::Str(Some(app_id))]) => {
                Some(Ask::AppId { surface, app_id: text(app_id) })
            }
            (toplevel::SET_FULLSCREEN, [WireArg::Object(_)]) => wish(Some(true)),
            (toplevel::UNSET_FULLSCREEN, []) => wish(Some(false)),
            (toplevel::SET_MAXIMIZED | toplevel::UNSET_MAXIMIZED, []) => wish(None),
            // Windows of a page stay where they are, and have no menus.
            (toplevel::SHOW_WINDOW_MENU, [_, _, _, _])
            | (toplevel::MOVE, [_, _])
            | (toplevel::RESIZE, [_, _, _])
            | (toplevel::SET_MINIMIZED, []) => Some(Ask::Nothing),
            _ => None,
        })
    }

    pub(super) fn ask_popup(
        &self,
        surface: WireId,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<Ask>, End> {
        Ok(match (opcode, args) {
            (popup::GRAB, [WireArg::Object(_), WireArg::Uint(_)]) => Some(Ask::Grab(surface)),
            (popup::REPOSITION, &[WireArg::Positioner(rules), WireArg::Uint(token)]) => {
                Some(reposition(surface, rules, token))
            }
            _ => None,
        })
    }
}

fn reposition(surface: WireId, rules: Positioner, token: u32) -> Ask {
    Ask::Reposition { surface, rules: Box::new(rules), token }
}

mod base {
    pub(super) const GET_XDG_SURFACE: u16 = 2;
}

mod decoration {
    pub(super) const SET_MODE: u16 = 1;
    pub(super) const UNSET_MODE: u16 = 2;
}

mod xdg_surface {
    pub(super) const GET_TOPLEVEL: u16 = 1;
    pub(super) const GET_POPUP: u16 = 2;
}

mod toplevel {
    pub(super) const SET_PARENT: u16 = 1;
    pub(super) const SET_TITLE: u16 = 2;
    pub(super) const SET_APP_ID: u16 = 3;
    pub(super) const SHOW_WINDOW_MENU: u16 = 4;
    pub(super) const MOVE: u16 = 5;
    pub(super) const RESIZE: u16 = 6;
    pub(super) const SET_MAXIMIZED: u16 = 9;
    pub(super) const UNSET_MAXIMIZED: u16 = 10;
    pub(super) const SET_FULLSCREEN: u16 = 11;
    pub(super) const UNSET_FULLSCREEN: u16 = 12;
    pub(super) const SET_MINIMIZED: u16 = 13;
}

mod popup {
    pub(super) const GRAB: u16 = 1;
    pub(super) const REPOSITION: u16 = 2;
}

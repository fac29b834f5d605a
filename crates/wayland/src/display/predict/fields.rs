//! What programs say of the fields that have the focus, by text input.
//!
//! Knows no pixels: where a caret is, is handed on. In doubt a field is sensitive: it becomes so at once, and is so
//! until the program says otherwise of the field as a whole. Invariant: there are no more fields here than text inputs
//! of the program.

use std::collections::HashMap;

use crate::message::{WireArg, WireId};

/// The fields that were spoken of, by text input.
#[derive(Debug, Default)]
pub(crate) struct Fields(HashMap<WireId, Field>);

#[derive(Debug, Default)]
struct Field {
    /// What holds with the next commit.
    pending: bool,
    is_sensitive: bool,
    /// Where its caret is said to be with the next commit: left, top, width and height in units of the surface.
    caret: Option<[i32; 4]>,
}

impl Fields {
    /// A program's request to a text input, of either version. Gives the caret's place where that holds from now on.
    pub(crate) fn asked(&mut self, input: WireId, request: &str, args: &[WireArg]) -> Option<[i32; 4]> {
        let field = self.0.entry(input).or_default();
        match (request, args) {
            // It begins anew, with no purpose; version 1's `reset` is of what is composed in it.
            ("enable" | "disable" | "activate" | "deactivate", _) => {
                (field.pending, field.caret) = (false, None);
            }
            ("set_content_type", [WireArg::Uint(hint), WireArg::Uint(purpose)]) => {
                field.pending = hint & SENSITIVE != 0 || [PASSWORD, PIN].contains(purpose);
                field.is_sensitive |= field.pending;
            }
            (
                "set_cursor_rectangle",
                &[WireArg::Int(x), WireArg::Int(y), WireArg::Int(width), WireArg::Int(height)],
            ) => field.caret = Some([x, y, width, height]),
            ("commit" | "commit_state", _) => {
                field.is_sensitive = field.pending;
                return field.caret.take();
            }
            _ => {}
        }
        None
    }

    /// A text input is gone.
    pub(crate) fn forget(&mut self, input: WireId) {
        self.0.remove(&input);
    }

    /// Whether one of them is for what must not be shown.
    pub(crate) fn are_sensitive(&self) -> bool {
        self.0.values().any(|field| field.is_sensitive)
    }
}

/// `content_hint.hidden_text` and `sensitive_data`, of both versions.
const SENSITIVE: u32 = 0x40 | 0x80;

/// `content_purpose.password` of both versions, and `pin` of version 3, which is a date in version 1.
const PASSWORD: u32 = 8;
const PIN: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: WireId = WireId(8);

    fn content(fields: &mut Fields, hint: u32, purpose: u32) {
        fields.asked(INPUT, "set_content_type", &[WireArg::Uint(hint), WireArg::Uint(purpose)]);
    }

    #[test]
    fn a_field_is_sensitive_at_once_and_until_the_next_one_is_committed() {
        for (hint, purpose) in [(0, 8), (0, 9), (0x40, 0), (0x80, 13)] {
            let mut fields = Fields::default();
            content(&mut fields, hint, purpose);
            assert!(fields.are_sensitive());
            fields.asked(INPUT, "commit", &[]);
            fields.asked(INPUT, "enable", &[]);
            content(&mut fields, 1, 13);
            assert!(fields.are_sensitive(), "not before the commit");
            fields.asked(INPUT, "commit", &[]);
            assert!(!fields.are_sensitive());
        }
    }

    #[test]
    fn what_was_composed_is_reset_and_the_field_is_sensitive_as_before() {
        let mut fields = Fields::default();
        content(&mut fields, 0, 8);
        for request in ["commit_state", "reset", "commit_state"] {
            fields.asked(INPUT, request, &[]);
            assert!(fields.are_sensitive());
        }
    }

    #[test]
    fn a_caret_is_where_it_was_said_to_be_once_that_is_committed() {
        let mut fields = Fields::default();
        let place = [1, -2, i32::MAX, 4];
        let said =
            |fields: &mut Fields| fields.asked(INPUT, "set_cursor_rectangle", &place.map(WireArg::Int));
        assert_eq!(said(&mut fields), None);
        assert_eq!(fields.asked(INPUT, "commit", &[]), Some(place));
        assert_eq!(fields.asked(INPUT, "commit", &[]), None, "nothing was said since");
        assert_eq!(said(&mut fields), None);
        fields.asked(INPUT, "enable", &[]);
        assert_eq!(fields.asked(INPUT, "commit", &[]), None, "it was said of another field");
    }

    #[test]
    fn a_text_input_that_is_gone_says_nothing() {
        let mut fields = Fields::default();
        content(&mut fields, 0, 8);
        fields.forget(INPUT);
        assert!(!fields.are_sensitive() && fields.0.is_empty());
    }
}

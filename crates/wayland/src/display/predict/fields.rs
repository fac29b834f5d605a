//! What programs say of the fields that have the focus, by text input.
//!
//! Knows no pixels. In doubt a field is sensitive: it becomes so at once, and is so until the program says otherwise of
//! the field as a whole. Invariant: there are no more fields here than text inputs of the program.

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
}

impl Fields {
    /// A program's request to a text input, of either version.
    pub(crate) fn asked(&mut self, input: WireId, request: &str, args: &[WireArg]) {
        let field = self.0.entry(input).or_default();
        match (request, args) {
            // It begins anew, with no purpose; version 1's `reset` is of what is composed in it.
            ("enable" | "disable" | "activate" | "deactivate", _) => field.pending = false,
            ("set_content_type", [WireArg::Uint(hint), WireArg::Uint(purpose)]) => {
                field.pending = hint & SENSITIVE != 0 || [PASSWORD, PIN].contains(purpose);
                field.is_sensitive |= field.pending;
            }
            ("commit" | "commit_state", _) => field.is_sensitive = field.pending,
            _ => {}
        }
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
    fn a_text_input_that_is_gone_says_nothing() {
        let mut fields = Fields::default();
        content(&mut fields, 0, 8);
        fields.forget(INPUT);
        assert!(!fields.are_sensitive() && fields.0.is_empty());
    }
}

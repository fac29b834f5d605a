//! The markup of a notification's body, which crosses as plain text.
//!
//! Programs write some though they are told that there is none; a desk's server may read some. Invariant: what is given
//! to a desk has no markup of the host's, so no link and no picture.

use wayferry_proto::note::MAX_BODY;

/// The text of a body that may have markup: without the tags of the Desktop Notifications Specification 1.2, "Markup",
/// and with what its entities stand for. All else stays, as in `a < b`.
pub(crate) fn plain(body: &str) -> String {
    let end = (0..=MAX_MARKUP.min(body.len())).rev().find(|end| body.is_char_boundary(*end));
    let mut rest = &body[..end.unwrap_or(0)];
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (stands_for, length) = tag(rest).or_else(|| entity(rest)).unwrap_or((&rest[..1], 1));
        text.push_str(stands_for);
        rest = &rest[length..];
    }
    text.push_str(rest);
    text
}

/// A text for a server that reads markup.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What a tag at the beginning stands for, and its length.
fn tag(text: &str) -> Option<(&'static str, usize)> {
    let inner = text.strip_prefix('<')?;
    let end = inner.bytes().take(MAX_TAG).position(|byte| byte == b'>')?;
    let inner = &inner[..end];
    let name = inner.strip_prefix('/').unwrap_or(inner);
    let name = name.split([' ', '\t', '\n', '/']).next()?;
    TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag)).then_some(("", end + 2))
}

/// What an entity at the beginning stands for, and its length.
fn entity(text: &str) -> Option<(&'static str, usize)> {
    let found = ENTITIES.iter().find(|(entity, _)| text.starts_with(entity))?;
    Some((found.1, found.0.len()))
}

const TAGS: [&str; 5] = ["b", "i", "u", "a", "img"];
const ENTITIES: [(&str, &str); 5] =
    [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'")];
/// Bytes of a body that are looked at: markup may take three quarters of it.
const MAX_MARKUP: usize = 4 * MAX_BODY;
/// Bytes of a tag; a longer one is none.
const MAX_TAG: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_and_entities_become_what_they_stand_for() {
        let body =
            "<b>Bold</b> &amp; <a href=\"https://e.org/?a>b\">x</a><img src=\"file:///x\" alt='y'/>&lt;b&gt;";
        assert_eq!(plain(body), "Bold & b\">x<b>");
        assert_eq!(plain("<I>it</I> <u >u</u>"), "it u");
    }

    #[test]
    fn what_is_no_markup_stays() {
        for text in ["a < b > c", "<", "&", "&&amp", "<br>", "<script>", "x &copy; y", "5 <b", "ü<ß>é", ""]
        {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn what_a_host_says_is_no_markup_at_the_desk() {
        let text = "<a href='https://e.org'>&lt;</a>";
        assert_eq!(escape(text), "&lt;a href='https://e.org'&gt;&amp;lt;&lt;/a&gt;");
        assert_eq!(plain(&escape(text)), text);
    }

    #[test]
    fn a_body_without_end_is_cut() {
        assert_eq!(plain(&"<".repeat(1 << 20)).len(), MAX_MARKUP);
        assert!(plain(&"ü".repeat(1 << 20)).len() <= MAX_MARKUP);
    }
}

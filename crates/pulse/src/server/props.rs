//! Properties that programs give themselves and their streams, and which others may read.
//!
//! Invariant: no list is longer than [`MAX_PROPS`] and [`MAX_BYTES`], of whichever kinds it is: what goes beyond is
//! left out. An icon is, for one.

use std::ffi::CString;

use pulseaudio::protocol::Props;
use pulseaudio::protocol::props::PropsUpdateMode;

/// As many of the properties as are kept.
pub(crate) fn kept(props: &Props) -> Props {
    let mut kept = Kept::default();
    kept.add(props, |_| true);
    kept.props
}

/// The properties after an update.
pub(crate) fn updated(old: &Props, mode: PropsUpdateMode, new: &Props) -> Props {
    let mut kept = Kept::default();
    match mode {
        PropsUpdateMode::Set => kept.add(new, |_| true),
        PropsUpdateMode::Merge => {
            kept.add(old, |_| true);
            kept.add(new, |key| old.get_bytes(key).is_none());
        }
        PropsUpdateMode::Replace => {
            kept.add(new, |_| true);
            kept.add(old, |key| new.get_bytes(key).is_none());
        }
    }
    kept.props
}

/// The properties but for those with these keys.
pub(crate) fn without(old: &Props, keys: &[CString]) -> Props {
    let mut kept = Kept::default();
    kept.add(old, |key| !keys.contains(key));
    kept.props
}

#[derive(Default)]
struct Kept {
    props: Props,
    count: usize,
    bytes: usize,
}

impl Kept {
    fn add(&mut self, props: &Props, wanted: impl Fn(&CString) -> bool) {
        for (key, value) in props.iter() {
            let key = CString::from(&**key);
            let bytes = key.as_bytes().len() + value.len() + OVERHEAD;
            if wanted(&key) && self.count < MAX_PROPS && self.bytes + bytes <= MAX_BYTES {
                self.props.set_bytes(&key, value);
                self.count += 1;
                self.bytes += bytes;
            }
        }
    }
}

/// Bytes that a property needs on its way besides key and value.
const OVERHEAD: usize = 16;

/// Properties of a client or stream: real programs have some twenty.
const MAX_PROPS: usize = 64;

/// Bytes of all of them.
const MAX_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn props(entries: &[(&str, &str)]) -> Props {
        let mut props = Props::new();
        for (key, value) in entries {
            props.set_bytes(CString::new(*key).unwrap(), value);
        }
        props
    }

    #[test]
    fn each_way_of_updating_differs() {
        let (old, new) = (props(&[("a", "1"), ("b", "1")]), props(&[("b", "2"), ("c", "2")]));
        let updated = |mode| updated(&old, mode, &new);
        assert_eq!(updated(PropsUpdateMode::Set), new);
        assert_eq!(updated(PropsUpdateMode::Merge), props(&[("a", "1"), ("b", "1"), ("c", "2")]));
        assert_eq!(updated(PropsUpdateMode::Replace), props(&[("a", "1"), ("b", "2"), ("c", "2")]));
        assert_eq!(without(&old, &[c"b".to_owned(), c"x".to_owned()]), props(&[("a", "1")]));
    }

    #[test]
    fn long_lists_are_cut() {
        let many: Vec<_> = (0..1000).map(|at| format!("key{at:04}")).collect();
        let many: Vec<_> = many.iter().map(|key| (&key[..], "x")).collect();
        assert_eq!(kept(&props(&many)).iter().count(), MAX_PROPS);
        let long = "x".repeat(60_000);
        assert_eq!(kept(&props(&[("icon", &long), ("name", "x")])), props(&[("name", "x")]));
    }
}

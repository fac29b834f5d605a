//! What the user wants to have predicted: of all programs, and of some.
//!
//! A text has both: `auto,foot=never`. Invariant: what is said of a program goes before what is said of all.

use std::fmt;
use std::str::FromStr;

use super::when::Predict;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    all: Predict,
    /// By application id.
    some: Vec<(String, Predict)>,
}

impl Wishes {
    /// Of all programs the same.
    pub fn all(predict: Predict) -> Self {
        Self { all: predict, some: Vec::new() }
    }

    /// Of a program with this application id, if it has one.
    pub fn of(&self, app_id: Option<&str>) -> Predict {
        let own = self.some.iter().find(|(id, _)| Some(id.as_str()) == app_id);
        own.map_or(self.all, |(_, predict)| *predict)
    }

    /// Whether there is no program of which anything is wanted.
    pub fn are_none(&self) -> bool {
        self.some
            .iter()
            .map(|(_, predict)| predict)
            .chain([&self.all])
            .all(|predict| *predict == Predict::Never)
    }
}

impl FromStr for Wishes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected auto, never or always, and APP_ID=WHEN for single programs".to_owned();
        let mut wishes = Self::default();
        for (place, word) in text.split(',').enumerate() {
            let (app_id, when) = word.split_once('=').map_or((None, word), |(id, when)| (Some(id), when));
            let when = [Predict::Auto, Predict::Never, Predict::Always]
                .into_iter()
                .find(|predict| predict.name() == when)
                .ok_or_else(expected)?;
            match app_id {
                Some(id) if !id.is_empty() => wishes.some.push((id.to_owned(), when)),
                None if place == 0 => wishes.all = when,
                _ => return Err(expected()),
            }
        }
        Ok(wishes)
    }
}

impl fmt::Display for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.all.name())?;
        self.some.iter().try_for_each(|(id, predict)| write!(f, ",{id}={}", predict.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_program_goes_before_what_is_said_of_all() {
        let wishes: Wishes = "never,foot=always,org.gnome.Console=auto".parse().expect("it is right");
        assert_eq!(wishes.of(Some("foot")), Predict::Always);
        assert_eq!(wishes.of(Some("org.gnome.Console")), Predict::Auto);
        assert_eq!([wishes.of(Some("gedit")), wishes.of(None)], [Predict::Never; 2]);
        assert_eq!(wishes.to_string(), "never,foot=always,org.gnome.Console=auto");
        assert_eq!("foot=never".parse::<Wishes>().map(|wishes| wishes.of(None)), Ok(Predict::Auto));
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["", "on", "auto,never", "=auto", "auto,", "foot=", "auto, foot=never "] {
            assert!(text.parse::<Wishes>().is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_wanted_only_if_it_is_of_no_program() {
        let are_none = |text: &str| text.parse::<Wishes>().expect(text).are_none();
        assert_eq!(
            ["never", "never,foot=never", "never,foot=auto", "auto"].map(are_none),
            [true, true, false, false]
        );
    }
}

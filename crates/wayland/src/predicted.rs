//! What came of the letters that were shown before their answers, in numbers.
//!
//! Numbers alone: never which keys or letters. Invariant: none of them falls while a window lives.

/// Of one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PredictFigures {
    /// Keys that were shown before their answer.
    pub shown: u64,
    /// Those of them whose answer looked like that.
    pub right: u64,
    /// Those of them whose answer looked otherwise, or did not come.
    pub wrong: u64,
    /// Keys that were not shown.
    pub held: u64,
}

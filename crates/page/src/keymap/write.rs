//! Keys as xkb text.
//!
//! The modifiers are where programs expect them: shift, lock, control, alt as 1, num lock as 2, super as 4, and what
//! chooses the third level as 5. Invariant: with any characters, the text is one that xkbcommon reads.

use std::fmt::Write;

use super::names::{self, Symbol};
use super::other_case;

/// The text of keys with these characters, by code, and those with names.
pub(super) fn keymap(keys: impl Iterator<Item = (u32, Vec<Symbol>)>) -> String {
    let mut symbols = String::new();
    let mut codes = String::new();
    for (code, name) in names::named() {
        declare(&mut codes, code);
        let kind = if name.contains("KP_") && name.contains(',') { "KEYPAD" } else { kind_of(name) };
        line(&mut symbols, code, kind, name);
    }
    for (code, levels) in keys {
        declare(&mut codes, code);
        let kind = match levels[..] {
            [_] => "ONE_LEVEL",
            [Symbol(lower), Symbol(upper), ..] if other_case(lower) == Some(upper) => "FOUR_LEVEL_ALPHABETIC",
            _ => "FOUR_LEVEL",
        };
        let levels: Vec<String> = levels.iter().map(Symbol::to_string).collect();
        line(&mut symbols, code, kind, &levels.join(", "));
    }
    format!(
        "xkb_keymap {{\nxkb_keycodes \"page\" {{\nminimum = 8;\nmaximum = 255;\n{codes}}};\n{TYPES}{COMPATIBILITY}\
         xkb_symbols \"page\" {{\n{symbols}{MODIFIERS}}};\n}};\n"
    )
}

fn kind_of(name: &str) -> &'static str {
    if name.contains(',') { "TWO_LEVEL" } else { "ONE_LEVEL" }
}

fn declare(codes: &mut String, code: u32) {
    // xkb counts from 8. Cannot fail: it is a string.
    let _ = writeln!(codes, "<I{code}> = {};", code + 8);
}

fn line(symbols: &mut String, code: u32, kind: &str, levels: &str) {
    let _ = writeln!(symbols, "key <I{code}> {{ type = \"{kind}\", [ {levels} ] }};");
}

const TYPES: &str = r#"xkb_types "page" {
virtual_modifiers NumLock, Alt, LevelThree, Super;
type "ONE_LEVEL" { modifiers = none; level_name[1] = "Any"; };
type "TWO_LEVEL" { modifiers = Shift; map[Shift] = 2; level_name[1] = "Base"; level_name[2] = "Shift"; };
type "KEYPAD" {
modifiers = Shift+NumLock; map[NumLock] = 2; map[Shift] = 2;
level_name[1] = "Base"; level_name[2] = "Number";
};
type "FOUR_LEVEL" {
modifiers = Shift+LevelThree;
map[Shift] = 2; map[LevelThree] = 3; map[Shift+LevelThree] = 4;
level_name[1] = "Base"; level_name[2] = "Shift"; level_name[3] = "AltGr"; level_name[4] = "Both";
};
type "FOUR_LEVEL_ALPHABETIC" {
modifiers = Shift+Lock+LevelThree;
map[Shift] = 2; map[Lock] = 2;
map[LevelThree] = 3; map[Shift+LevelThree] = 4;
map[Lock+LevelThree] = 3; map[Shift+Lock+LevelThree] = 4;
level_name[1] = "Base"; level_name[2] = "Shift"; level_name[3] = "AltGr"; level_name[4] = "Both";
};
};
"#;

const COMPATIBILITY: &str = r#"xkb_compatibility "page" {
virtual_modifiers NumLock, Alt, LevelThree, Super;
interpret.useModMapMods = AnyLevel;
interpret.repeat = False;
interpret Any + AnyOf(all) { action = SetMods(modifiers = modMapMods, clearLocks); };
interpret Caps_Lock + AnyOf(all) { action = LockMods(modifiers = Lock); };
interpret Num_Lock + AnyOf(all) { virtualModifier = NumLock; action = LockMods(modifiers = NumLock); };
interpret Alt_L + AnyOf(all) { virtualModifier = Alt; action = SetMods(modifiers = modMapMods, clearLocks); };
interpret Super_L + AnyOf(all) { virtualModifier = Super; action = SetMods(modifiers = modMapMods, clearLocks); };
interpret Super_R + AnyOf(all) { virtualModifier = Super; action = SetMods(modifiers = modMapMods, clearLocks); };
interpret ISO_Level3_Shift + AnyOf(all) {
virtualModifier = LevelThree; useModMapMods = level1; action = SetMods(modifiers = LevelThree, clearLocks);
};
};
"#;

const MODIFIERS: &str = "modifier_map Shift { <I42>, <I54> };
modifier_map Lock { <I58> };
modifier_map Control { <I29>, <I97> };
modifier_map Mod1 { <I56> };
modifier_map Mod2 { <I69> };
modifier_map Mod4 { <I125>, <I126> };
modifier_map Mod5 { <I100> };
";

/**
 * The keys of a PC: from the names that browsers have for their places to the numbers of Linux (evdev).
 *
 * A name stands for a place on the keyboard, not for what is printed there. Invariant: numbers are at most 247, the last
 * that Wayland's keymaps have.
 */

/** The number of a key; nothing where PCs have no such key. */
export function evdev(code: string): number | undefined {
  return NUMBERS.get(code);
}

/**
 * The name of a key's place. On-screen keyboards name what a key does alone, which for keys without a character is
 * nearly always the name of a place.
 */
export function placeOf(event: { readonly code: string; readonly key: string }): string {
  return event.code === "" && NUMBERS.has(event.key) ? event.key : event.code;
}

/** Numbers in a row, and the names of their keys; `-` where browsers have no name. */
const ROWS: readonly (readonly [number, string])[] = [
  [1, "Escape Digit1 Digit2 Digit3 Digit4 Digit5 Digit6 Digit7 Digit8 Digit9 Digit0 Minus Equal Backspace"],
  [15, "Tab KeyQ KeyW KeyE KeyR KeyT KeyY KeyU KeyI KeyO KeyP BracketLeft BracketRight Enter"],
  [29, "ControlLeft KeyA KeyS KeyD KeyF KeyG KeyH KeyJ KeyK KeyL Semicolon Quote Backquote"],
  [42, "ShiftLeft Backslash KeyZ KeyX KeyC KeyV KeyB KeyN KeyM Comma Period Slash ShiftRight"],
  [55, "NumpadMultiply AltLeft Space CapsLock F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 NumLock ScrollLock"],
  [71, "Numpad7 Numpad8 Numpad9 NumpadSubtract Numpad4 Numpad5 Numpad6 NumpadAdd Numpad1 Numpad2 Numpad3"],
  [82, "Numpad0 NumpadDecimal - Lang5 IntlBackslash F11 F12 IntlRo Lang3 Lang4 Convert KanaMode NonConvert"],
  [
    96,
    "NumpadEnter ControlRight NumpadDivide PrintScreen AltRight - Home ArrowUp PageUp ArrowLeft ArrowRight",
  ],
  [107, "End ArrowDown PageDown Insert Delete - AudioVolumeMute AudioVolumeDown AudioVolumeUp Power"],
  [117, "NumpadEqual - Pause - NumpadComma Lang1 Lang2 IntlYen MetaLeft MetaRight ContextMenu"],
  [
    128,
    "BrowserStop Again Props Undo - Copy Open Paste Find Cut Help - LaunchApp2 - Sleep WakeUp LaunchApp1",
  ],
  [155, "LaunchMail BrowserFavorites - BrowserBack BrowserForward - Eject - MediaTrackNext MediaPlayPause"],
  [165, "MediaTrackPrevious MediaStop - - - - MediaSelect BrowserHome BrowserRefresh"],
  [179, "NumpadParenLeft NumpadParenRight - - F13 F14 F15 F16 F17 F18 F19 F20 F21 F22 F23 F24"],
  [217, "BrowserSearch"],
  // Older names that Firefox has or had.
  [113, "VolumeMute VolumeDown VolumeUp"],
  [125, "OSLeft OSRight"],
];

const NUMBERS: ReadonlyMap<string, number> = new Map(
  ROWS.flatMap(([first, names]) =>
    names.split(" ").flatMap((name, at): [string, number][] => (name === "-" ? [] : [[name, first + at]])),
  ),
);

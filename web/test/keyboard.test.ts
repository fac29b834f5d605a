import { expect, test } from "vitest";
import { Keyboard, type System } from "../src/input/keyboard.js";
import { evdev, placeOf } from "../src/input/keys.js";
import { FakeViewer, key, random } from "./fakes.js";

function begin(system: System = "other") {
  const viewer = new FakeViewer();
  return { viewer, keyboard: new Keyboard(system, viewer.tell) };
}

test("places of keys have the numbers of linux/input-event-codes.h", () => {
  const some = { Escape: 1, KeyQ: 16, Enter: 28, KeyA: 30, Backquote: 41, Backslash: 43, Space: 57, F10: 68 };
  const others = { Numpad7: 71, NumpadDecimal: 83, IntlBackslash: 86, F12: 88, IntlRo: 89, NumpadEnter: 96 };
  const more = { AltRight: 100, Home: 102, Delete: 111, AudioVolumeUp: 115, Pause: 119, IntlYen: 124 };
  const last = {
    MetaRight: 126,
    ContextMenu: 127,
    Cut: 137,
    MediaStop: 166,
    F13: 183,
    F24: 194,
    BrowserBack: 158,
  };
  for (const [code, number] of Object.entries({ ...some, ...others, ...more, ...last })) {
    expect([code, evdev(code)]).toEqual([code, number]);
  }
  expect(evdev("Unidentified")).toBeUndefined();
  expect(placeOf({ code: "", key: "Backspace" })).toBe("Backspace");
  expect(placeOf({ code: "", key: "a" })).toBe("");
});

test("a key is told with its character and the level that has it", () => {
  const { viewer, keyboard } = begin();
  expect(keyboard.down(key("KeyA", "a"))).toBe("told");
  keyboard.up(key("KeyA", "a"));
  keyboard.down(key("ShiftLeft", "Shift", "Shift"));
  keyboard.down(key("Digit1", "!", "Shift"));
  keyboard.up(key("Digit1", "!", "Shift"));
  keyboard.up(key("ShiftLeft", "Shift"));
  keyboard.down(key("AltRight", "AltGraph", "AltGraph"));
  keyboard.down(key("KeyE", "€", "AltGraph"));
  expect(viewer.takeKeys()).toBe("+30=a@0 -30 +42 +2=!@1 -2 -42 +100 +18=€@2");
  expect(keyboard.down(key("Enter", "Enter"))).toBe("told");
  expect(keyboard.down(key("Numpad7", "7", "NumLock"))).toBe("told");
  // AltGr is off: it went up elsewhere.
  expect(viewer.takeKeys()).toBe("-100 +28 +71");
});

test("Caps Lock changes the level of letters alone", () => {
  const { viewer, keyboard } = begin();
  keyboard.down(key("KeyA", "A", "CapsLock"));
  keyboard.down(key("KeyB", "b", "CapsLock Shift"));
  keyboard.down(key("Digit1", "1", "CapsLock"));
  expect(viewer.takeKeys()).toBe("+30=A@1 +48=b@0 +2=1@0");
});

test("repeats are dropped, and a press whose release was lost is released first", () => {
  const { viewer, keyboard } = begin();
  keyboard.down(key("KeyA", "a"));
  expect(keyboard.down(key("KeyA", "a", "", { repeat: true }))).toBe("told");
  keyboard.down(key("KeyA", "a"));
  keyboard.up(key("KeyA", "a"));
  keyboard.up(key("KeyA", "a"));
  expect(viewer.takeKeys()).toBe("+30=a@0 -30 +30=a@0 -30");
});

test("blur releases all, and what goes up later is not told", () => {
  const { viewer, keyboard } = begin();
  keyboard.down(key("KeyA", "a"));
  keyboard.blur();
  keyboard.up(key("KeyA", "a"));
  expect(viewer.takeKeys()).toBe("+30=a@0 blur");
});

test("the Control that Windows makes up for AltGr does not stay", () => {
  const { viewer, keyboard } = begin("windows");
  keyboard.down(key("ControlLeft", "Control", "Control", { timeStamp: 5 }));
  keyboard.down(key("AltRight", "AltGraph", "Control Alt AltGraph", { timeStamp: 6 }));
  expect(viewer.told).toContainEqual({ kind: "modifiers", bits: 128 });
  keyboard.down(key("KeyQ", "@", "Control Alt AltGraph"));
  expect(viewer.told.at(-1)).toMatchObject({ level: 2 });
  keyboard.up(key("ControlLeft", "Control", "AltGraph"));
  keyboard.up(key("KeyQ", "@"));
  keyboard.up(key("AltRight", "AltGraph"));
  expect(viewer.takeKeys()).toBe("+29 -29 +100 +16=@@2 -16 -100");
  // Who holds Control means it.
  keyboard.down(key("ControlLeft", "Control", "Control", { timeStamp: 100 }));
  keyboard.down(key("AltRight", "AltGraph", "Control AltGraph", { timeStamp: 400 }));
  expect(viewer.takeKeys()).toBe("+29 +100");
});

test("on a Mac keys beside Command are released at once, and Caps Lock is a press each time", () => {
  const { viewer, keyboard } = begin("mac");
  keyboard.down(key("KeyX", "x"));
  keyboard.down(key("MetaLeft", "Meta", "Meta"));
  keyboard.down(key("KeyC", "c", "Meta"));
  expect(viewer.takeKeys()).toBe("+45=x@0 +125 +46=c@0 -46");
  keyboard.up(key("MetaLeft", "Meta"));
  expect(viewer.takeKeys()).toBe("-125 -45");
  keyboard.down(key("CapsLock", "CapsLock", "CapsLock"));
  keyboard.up(key("CapsLock", "CapsLock"));
  expect(viewer.takeKeys()).toBe("+58 -58 +58 -58");
  keyboard.down(key("AltLeft", "Alt", "Alt"));
  keyboard.down(key("KeyU", "ü", "Alt"));
  expect(viewer.takeKeys()).toBe("+56 +22=ü@2");
});

test("dead keys and input methods are the browser's", () => {
  const { viewer, keyboard } = begin();
  expect(keyboard.down(key("BracketLeft", "Dead"))).toBe("left");
  keyboard.up(key("BracketLeft", "Dead"));
  expect(keyboard.down(key("ShiftLeft", "Shift", "Shift"))).toBe("told");
  expect(keyboard.down(key("KeyE", "É", "Shift"))).toBe("left");
  keyboard.up(key("KeyE", "É", "Shift"));
  keyboard.up(key("ShiftLeft", "Shift"));
  expect(viewer.takeKeys()).toBe("+42 -42");
  expect(keyboard.down(key("KeyE", "e"))).toBe("told");
  expect(keyboard.down(key("KeyN", "Process"))).toBe("left");
  expect(keyboard.down(key("KeyI", "i", "", { isComposing: true }))).toBe("left");
  expect(keyboard.down(key("", "Unidentified"))).toBe("left");
});

test("what Option writes on a Mac is a level of the key, in ASCII, too", () => {
  const { viewer, keyboard } = begin("mac");
  keyboard.down(key("AltLeft", "Alt", "Alt"));
  // Of a German keyboard, and of a French one.
  keyboard.down(key("KeyL", "@", "Alt"));
  keyboard.down(key("Digit5", "{", "Alt"));
  keyboard.down(key("KeyN", "~", "Alt Shift"));
  expect(viewer.take()).toBe("(8) +56 (128) +38=@@2 +6={@2 (129) +49=~@3");
  // A key that writes nothing keeps it as a modifier, and so does a shortcut.
  keyboard.down(key("ArrowLeft", "ArrowLeft", "Alt"));
  keyboard.down(key("KeyV", "v", "Alt Meta"));
  expect(viewer.take()).toBe("(8) +105 (72) +47=v@0 -47");
});

test("what an input method takes is not told, though it says so in other ways", () => {
  const { viewer, keyboard } = begin("mac");
  expect(keyboard.down(key("KeyN", "n", "", { keyCode: 229 }))).toBe("left");
  keyboard.up(key("KeyN", "n"));
  expect(viewer.takeKeys()).toBe("");
});

test("a shortcut is none of a dead key's", () => {
  const { viewer, keyboard } = begin("mac");
  expect(keyboard.down(key("KeyE", "Dead", "Alt"))).toBe("left");
  expect(keyboard.down(key("KeyE", "é", "", { isComposing: true }))).toBe("left");
  expect(keyboard.down(key("KeyS", "s", "Meta"))).toBe("told");
  expect(keyboard.down(key("BracketLeft", "Dead"))).toBe("left");
  expect(keyboard.down(key("KeyC", "c", "Control"))).toBe("told");
  expect(viewer.takeKeys()).toBe("+31=s@0 -31 +46=c@0");
  const other = begin();
  expect(other.keyboard.down(key("Backquote", "Dead", "Control"))).toBe("told");
  expect(other.keyboard.down(key("KeyC", "c", "Control"))).toBe("told");
  expect(other.viewer.takeKeys()).toBe("+41 +46=c@0");
});

test("modifiers are told when they change, by keys and by the pointer", () => {
  const { viewer, keyboard } = begin();
  // Control went down elsewhere.
  keyboard.down(key("KeyC", "c", "Control"));
  keyboard.up(key("KeyC", "c", "Control"));
  keyboard.up(key("ControlLeft", "Control"));
  expect(viewer.take()).toBe("(4) +46=c@0 -46 (0)");
  keyboard.sync(key("", "", "Shift"));
  keyboard.sync(key("", "", "Shift"));
  expect(viewer.take()).toBe("(1)");
  keyboard.blur();
  keyboard.sync(key("", ""));
  expect(viewer.take()).toBe("blur (0)");
});

test("keys of the number pad are what they say, with Num Lock or without", () => {
  const { viewer, keyboard } = begin("mac");
  keyboard.down(key("Numpad7", "7"));
  keyboard.up(key("Numpad7", "7"));
  expect(viewer.take()).toBe("(16) +71 -71");
  const other = begin();
  other.keyboard.down(key("Numpad7", "Home", "NumLock Shift"));
  other.keyboard.down(key("Numpad4", "ArrowLeft"));
  other.keyboard.down(key("Numpad1", "1", "NumLock"));
  expect(other.viewer.take()).toBe("(17) +71 (0) +75 (16) +79");
});

test("Control, Alt and Escape release all and leave", () => {
  const { viewer, keyboard } = begin();
  keyboard.down(key("ControlLeft", "Control", "Control"));
  keyboard.down(key("AltLeft", "Alt", "Control Alt"));
  expect(keyboard.down(key("Escape", "Escape", "Control Alt"))).toBe("exit");
  keyboard.up(key("Escape", "Escape", "Control Alt"));
  expect(viewer.takeKeys()).toBe("+29 +56 blur");
});

test("with any events of a browser, each press is followed by one release", () => {
  const places: readonly (readonly [string, string])[] = [
    ["KeyA", "a"],
    ["KeyE", "é"],
    ["BracketLeft", "Dead"],
    ["KeyN", "Process"],
    ["", "Unidentified"],
    ["Enter", "Enter"],
    ["Numpad1", "1"],
    ["ShiftLeft", "Shift"],
    ["ShiftRight", "Shift"],
    ["ControlLeft", "Control"],
    ["AltRight", "AltGraph"],
    ["MetaLeft", "Meta"],
    ["CapsLock", "CapsLock"],
    ["Escape", "Escape"],
  ];
  const states = ["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock", "NumLock"];
  for (let seed = 0; seed < 200; seed += 1) {
    const pick = random(seed);
    const { viewer, keyboard } = begin((["mac", "windows", "other"] as const)[pick(3)]);
    for (let step = 0; step < 60; step += 1) {
      const [code, name] = places[pick(places.length)] ?? ["", ""];
      // Modifiers are as they like: their events get lost, too.
      const on = states.filter(() => pick(4) === 0).join(" ");
      const more = { repeat: pick(6) === 0, isComposing: pick(12) === 0, timeStamp: step * pick(60) };
      const event = key(code, name, on, more);
      const before = viewer.told.length;
      switch (pick(9)) {
        case 0:
          keyboard.blur();
          expect(viewer.down.size).toBe(0);
          break;
        case 1:
          keyboard.sync(event);
          break;
        case 2:
        case 3:
        case 4:
          keyboard.up(event);
          expect(viewer.down.has(evdev(code) ?? 0)).toBe(false);
          break;
        default:
          // What is left to the browser is not told.
          if (keyboard.down(event) === "left") {
            expect(viewer.told.length).toBe(before);
          }
      }
    }
    keyboard.blur();
    expect(viewer.down.size).toBe(0);
  }
});

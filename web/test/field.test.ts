import { expect, test } from "vitest";
import { Clipboard } from "../src/clipboard.js";
import { Field } from "../src/input/field.js";
import { Gate } from "../src/input/gate.js";
import { Keyboard } from "../src/input/keyboard.js";
import { evdev, placeOf } from "../src/input/keys.js";
import type { Input } from "../src/talk.js";
import { FakeTimers, FakeViewer, key, pasted, random } from "./fakes.js";

/** What is used of a `<textarea>`. */
class FakeArea extends EventTarget {
  value = "";
  inputMode = "none";
  readonly style = { left: "", top: "" };
  readonly #classes = new Set<string>();
  readonly classList = {
    toggle: (name: string, isOn: boolean) => this.#classes[isOn ? "add" : "delete"](name),
    contains: (name: string) => this.#classes.has(name),
  };
  setSelectionRange(): void {}
  focus(): void {}
  blur(): void {
    this.say("blur");
  }

  /** An event as the browser has it; says whether it is left to the browser. */
  say(type: string, { timeStamp: _, ...fields }: Record<string, unknown> = {}): boolean {
    return this.dispatchEvent(Object.assign(new Event(type, { cancelable: true }), fields));
  }
}

function begin() {
  const [area, viewer] = [new FakeArea(), new FakeViewer()];
  let exits = 0;
  const clipboard = new Clipboard(
    { hasFocus: () => false, write: async () => {}, read: async () => undefined },
    () => {},
  );
  const timers = new FakeTimers();
  const gate = new Gate(viewer.tell, timers);
  const tell = (input: Input) => gate.send(input);
  const keyboard = new Keyboard("other", tell);
  const field = new Field(area as unknown as HTMLTextAreaElement, keyboard, tell, {
    exit: () => {
      exits += 1;
    },
    pastes: () => gate.hold(),
    pasted: (pasted) => gate.answer(clipboard.pasted(pasted)),
  });
  return { area, viewer, field, timers, exits: () => exits };
}

test("a key is kept from the browser, so that its text does not come too", () => {
  const { area, viewer, exits } = begin();
  expect(area.say("keydown", key("KeyA", "a"))).toBe(false);
  area.say("keyup", key("KeyA", "a"));
  expect(viewer.takeKeys()).toBe("+30=a@0 -30");
  expect(area.say("keydown", key("Tab", "Tab"))).toBe(false);
  expect(area.say("keydown", key("Escape", "Escape", "Control Alt"))).toBe(false);
  expect([viewer.takeKeys(), exits()]).toEqual(["+15 blur", 1]);
});

test("an input method's text is told once, when it is done", () => {
  const { area, viewer } = begin();
  for (const data of ["n", "ni", "你"]) {
    expect(area.say("keydown", key("KeyN", "Process", "", { isComposing: data !== "n" }))).toBe(true);
    if (data === "n") {
      area.say("compositionstart");
    }
    area.say("beforeinput", { isComposing: true, inputType: "insertCompositionText", data });
    area.say("keyup", key("KeyN", "Process", "", { isComposing: true }));
  }
  area.value = "你";
  expect(area.classList.contains("composing")).toBe(true);
  area.say("compositionend", { data: "你" });
  area.say("input");
  expect([viewer.takeKeys(), area.value]).toEqual(['"你"', "\u200b"]);
});

test("on-screen keyboards write text, and press a few keys", () => {
  const { area, viewer, field } = begin();
  expect(area.say("keydown", key("", "Unidentified"))).toBe(true);
  expect(area.say("beforeinput", { inputType: "insertText", data: "hi" })).toBe(false);
  area.say("beforeinput", { inputType: "deleteContentBackward", data: null });
  area.say("beforeinput", { inputType: "insertLineBreak", data: null });
  area.say("beforeinput", { inputType: "formatBold", data: null });
  expect(viewer.takeKeys()).toBe('"hi" +14 -14 +28 -28');
  expect([field.toggleKeyboard(), area.inputMode]).toEqual([true, "text"]);
  expect([field.toggleKeyboard(), area.inputMode]).toEqual([false, "none"]);
});

test("what is typed comes as a key or as text, never as both", () => {
  // A browser in few words: a key that is not kept from it writes, joins or begins to compose.
  for (let seed = 0; seed < 100; seed += 1) {
    const pick = random(seed);
    const { area, viewer } = begin();
    let composed = "";
    for (let step = 0; step < 40; step += 1) {
      const isComposing = composed !== "";
      const name = ["a", "é", "Dead", "Process", "Enter"][pick(5)] ?? "";
      const event = key(pick(5) === 0 ? "" : "KeyA", name, "", { isComposing });
      const isLeft = area.say("keydown", event);
      if (isComposing && pick(3) === 0) {
        area.say("beforeinput", { isComposing, inputType: "insertCompositionText", data: composed });
        area.say("compositionend", { data: composed });
        expect(viewer.takeKeys()).toBe(`"${composed}"`);
        composed = "";
      } else if (isLeft && (isComposing || name === "Process")) {
        composed += "語";
        area.say("beforeinput", { isComposing: true, inputType: "insertCompositionText", data: composed });
        expect(viewer.takeKeys()).toBe("");
      } else if (isLeft && name.length === 1) {
        area.say("beforeinput", { isComposing: false, inputType: "insertText", data: name });
        expect(viewer.takeKeys()).toBe(`"${name}"`);
      } else if (!isLeft) {
        expect(viewer.takeKeys()).toMatch(/^\+\d+(=\S@0)?$/);
      }
      area.say("keyup", event);
      expect(viewer.takeKeys()).toBe(isLeft ? "" : `-${evdev(placeOf(event))}`);
    }
  }
});

test("what is pasted is told before the key that pastes, and the key once", () => {
  const { area, viewer, timers } = begin();
  expect(area.say("keydown", key("KeyV", "v", "Control"))).toBe(true);
  area.say("keyup", key("KeyV", "v", "Control"));
  expect(viewer.takeKeys()).toBe("");
  expect(area.say("paste", { clipboardData: pasted("x\r\ny") })).toBe(false);
  expect(viewer.takeKeys()).toBe("new:x\ny +47=v@0 -47");
  timers.pass(1000);
  expect(viewer.takeKeys()).toBe("");
  // A browser that says nothing of it.
  area.say("keydown", key("KeyV", "V", "Control Shift"));
  timers.pass(1000);
  expect(viewer.takeKeys()).toBe("+47=V@1");
  area.say("keyup", key("KeyV", "V", "Control Shift"));
  area.say("keydown", key("KeyV", "м", "Control"));
  area.say("blur");
  expect(viewer.takeKeys()).toBe("-47 +47=м@0 blur");
  for (const on of ["", "Control Alt", "Meta", "Control Meta"]) {
    expect(area.say("keydown", key("KeyV", "v", on))).toBe(false);
    area.say("keyup", key("KeyV", "v", on));
    expect(viewer.takeKeys()).toBe("+47=v@0 -47");
  }
});

test("nothing is lost, doubled or reordered, with any answer of the browser to a paste", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const pick = random(seed);
    const { area, viewer, timers } = begin();
    const keys: string[] = [];
    let pastes = 0;
    for (let step = 0; step < 60; step += 1) {
      const [code, name, number] = pick(2) === 0 ? ["KeyV", "v", 47] : ["KeyC", "c", 46];
      switch (pick(4)) {
        case 0:
        case 1: {
          const isLeft = area.say("keydown", key(`${code}`, `${name}`, "Control"));
          area.say("keyup", key(`${code}`, `${name}`, "Control"));
          expect(isLeft).toBe(code === "KeyV");
          pastes += Number(isLeft);
          keys.push(`+${number}=${name}@0`, `-${number}`);
          break;
        }
        case 2:
          if (pastes > 0) {
            pastes -= 1;
            area.say("paste", { clipboardData: pasted(`${step}`) });
          }
          break;
        case 3:
          timers.pass(pick(300));
          break;
      }
    }
    timers.pass(100_000);
    for (let waits = 0; waits < 60; waits += 1) {
      timers.pass(1000);
    }
    const told = viewer.takeKeys().split(" ");
    expect(told.filter((one) => !one.startsWith("new:"))).toEqual(keys);
  }
});

test("regression: of a long text that was dictated the rest was lost", () => {
  const { area, viewer } = begin();
  const text = `${"a".repeat(1023)}😀${"é".repeat(1500)}`;
  area.say("beforeinput", { inputType: "insertText", data: text });
  const told = viewer
    .takeKeys()
    .split(" ")
    .map((quoted) => JSON.parse(quoted) as string);
  expect(told.join("")).toBe(text);
  expect(told.map((piece) => piece.length)).toEqual([1023, 1024, 478]);
});

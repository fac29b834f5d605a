import { expect, test } from "vitest";
import { Field } from "../src/input/field.js";
import { Keyboard } from "../src/input/keyboard.js";
import { evdev, placeOf } from "../src/input/keys.js";
import { FakeViewer, key, random } from "./fakes.js";

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
  const keyboard = new Keyboard("other", viewer.tell);
  let exits = 0;
  const field = new Field(area as unknown as HTMLTextAreaElement, keyboard, viewer.tell, () => {
    exits += 1;
  });
  return { area, viewer, field, exits: () => exits };
}

test("a key is kept from the browser, so that its text does not come too", () => {
  const { area, viewer, exits } = begin();
  expect(area.say("keydown", key("KeyA", "a"))).toBe(false);
  area.say("keyup", key("KeyA", "a"));
  expect(viewer.take()).toBe("+30=a@0 -30");
  expect(area.say("keydown", key("Tab", "Tab"))).toBe(false);
  expect(area.say("keydown", key("Escape", "Escape", "Control Alt"))).toBe(false);
  expect([viewer.take(), exits()]).toEqual(["+15 blur", 1]);
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
  expect([viewer.take(), area.value]).toEqual(['"你"', "\u200b"]);
});

test("on-screen keyboards write text, and press a few keys", () => {
  const { area, viewer, field } = begin();
  expect(area.say("keydown", key("", "Unidentified"))).toBe(true);
  expect(area.say("beforeinput", { inputType: "insertText", data: "hi" })).toBe(false);
  area.say("beforeinput", { inputType: "deleteContentBackward", data: null });
  area.say("beforeinput", { inputType: "insertLineBreak", data: null });
  area.say("beforeinput", { inputType: "formatBold", data: null });
  expect(viewer.take()).toBe('"hi" +14 -14 +28 -28');
  expect([field.toggleKeyboard(), area.inputMode]).toEqual([true, "text"]);
  expect([field.toggleKeyboard(), area.inputMode]).toEqual([false, "none"]);
});

test("whatever is typed comes as a key or as text, never as both", () => {
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
        expect(viewer.take()).toBe(`"${composed}"`);
        composed = "";
      } else if (isLeft && (isComposing || name === "Process")) {
        composed += "語";
        area.say("beforeinput", { isComposing: true, inputType: "insertCompositionText", data: composed });
        expect(viewer.take()).toBe("");
      } else if (isLeft && name.length === 1) {
        area.say("beforeinput", { isComposing: false, inputType: "insertText", data: name });
        expect(viewer.take()).toBe(`"${name}"`);
      } else if (!isLeft) {
        expect(viewer.take()).toMatch(/^\+\d+(=\S@0)?$/);
      }
      area.say("keyup", event);
      expect(viewer.take()).toBe(isLeft ? "" : `-${evdev(placeOf(event))}`);
    }
  }
});

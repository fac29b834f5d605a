/**
 * What the keyboard does, from the events of a browser.
 *
 * A key that is told is kept from the browser, and one that is left to the browser is not told: its text comes from
 * the field ([`Field`](./field.ts)), so that no key comes with its text as well. Browsers lose keyups and make some up;
 * each such case has its answer here. Invariant: each press that was told is followed by one release of that key, or by
 * `blur`, which releases all, before the next press of it.
 */

import type { Input } from "../talk.js";
import { evdev, placeOf } from "./keys.js";

/** What is used of a `KeyboardEvent`. */
export type KeyEvent = Pick<
  KeyboardEvent,
  "code" | "key" | "keyCode" | "repeat" | "isComposing" | "timeStamp"
> &
  Modified;

/** An event that says which modifiers are on; those of pointers do, too. */
export type Modified = Pick<KeyboardEvent, "getModifierState">;

/** Whose keyboard it is: the two take away or add events. */
export type System = "mac" | "windows" | "other";

/** What became of a key: it was told, it is the browser's, or it is the one that leaves the session's windows. */
export type Outcome = "told" | "left" | "exit";

/** See the module. */
export class Keyboard {
  readonly #system: System;
  readonly #tell: (input: Input) => void;
  /** The keys that were told and not released, each with the modifier that it is. */
  readonly #held = new Map<number, string | undefined>();
  /** When the left Control key went down, if nothing came since. */
  #control: number | undefined;
  /** A dead key waits for the next one; the browser joins them. */
  #isDead = false;
  /** The modifiers that were told last, if that is known. */
  #modifiers: number | undefined;

  constructor(system: System, tell: (input: Input) => void) {
    this.#system = system;
    this.#tell = tell;
  }

  down(event: KeyEvent): Outcome {
    const code = evdev(placeOf(event));
    if (isComposed(event) || code === undefined) {
      // It has become part of what is joined.
      this.#isDead = false;
      return "left";
    }
    if (isExit(event)) {
      this.blur();
      return "exit";
    }
    // Programs repeat keys themselves.
    if (event.repeat) {
      return "told";
    }
    const modifier = modifierOf(event);
    const wasDead = this.#isDead;
    // With these it is a shortcut, which browsers do not join.
    const isDead = event.key === "Dead" && !this.#isShortcut(event);
    this.#isDead = isDead || (wasDead && modifier !== undefined);
    if (isDead || (wasDead && isCharacter(event.key) && !this.#isShortcut(event))) {
      return "left";
    }
    this.#forgetControl(event);
    this.#releaseLost(event, modifier);
    // Its release was lost.
    this.#release(code, event);
    this.#key(code, event, true);
    if (this.#isMomentary(event, modifier)) {
      this.#key(code, event, false);
    } else {
      this.#held.set(code, modifier);
    }
    this.#control = event.code === "ControlLeft" ? event.timeStamp : undefined;
    return "told";
  }

  /** Whether a key that goes down makes the browser paste. */
  pastes(event: KeyEvent): boolean {
    const isOn = (name: string) => event.getModifierState(name);
    const [on, off] = this.#system === "mac" ? ["Meta", "Control"] : ["Control", "Meta"];
    const isShortcut = isOn(on) && !isOn(off) && !isOn("Alt") && !isOn("AltGraph");
    // Where letters are not Latin, the place decides.
    const isLatin = /^[a-z]$/i.test(event.key);
    const isV = isLatin ? event.key.toLowerCase() === "v" : event.code === "KeyV";
    return isShortcut && isV && !event.repeat && !isComposed(event);
  }

  up(event: KeyEvent): void {
    const code = evdev(placeOf(event));
    if (code === undefined) {
      return;
    }
    if (this.#system === "mac" && event.code === "CapsLock") {
      // A Mac says down when the lock goes on, and up when it goes off.
      this.#key(code, event, true);
      this.#key(code, event, false);
    }
    this.#release(code, event);
    if (this.#system === "mac" && event.key === "Meta") {
      // What went up while it was down was not told.
      this.#releaseAll(event, (modifier) => modifier === undefined);
    }
    this.sync(event, modifierOf(event));
  }

  /**
   * Tells the modifiers, and releases those that went up unseen, as in another window; all but one of them that the
   * event is about.
   */
  sync(event: Modified, about?: string): void {
    this.#releaseLost(event, about);
    this.#tellModifiers(this.#bits(event, ""));
  }

  /** Keys go elsewhere from now on. */
  blur(): void {
    this.#held.clear();
    this.#isDead = false;
    this.#control = undefined;
    this.#modifiers = undefined;
    this.#tell({ kind: "blur" });
  }

  /** A key that goes down and up again at once: on-screen keyboards say no more. */
  tap(place: string): void {
    const code = evdev(place);
    if (code !== undefined && !this.#held.has(code)) {
      for (const pressed of [true, false]) {
        this.#tell({ kind: "key", code, level: 0, text: "", pressed });
      }
    }
  }

  #releaseLost(event: Modified, about: string | undefined): void {
    this.#releaseAll(event, (modifier) => {
      return modifier !== undefined && modifier !== about && !event.getModifierState(modifier);
    });
  }

  #releaseAll(event: Modified, which: (modifier: string | undefined) => boolean): void {
    for (const [code, modifier] of [...this.#held]) {
      if (which(modifier)) {
        this.#release(code, event);
      }
    }
  }

  #release(code: number, event: Modified): void {
    if (this.#held.delete(code)) {
      this.#key(code, event, false);
    }
  }

  #key(code: number, event: Modified & Partial<KeyEvent>, pressed: boolean): void {
    const text = pressed && isCharacter(event.key ?? "") && !isNumpad(event) ? (event.key ?? "") : "";
    const bits = this.#bits(event, text);
    this.#tellModifiers(bits);
    this.#tell({ kind: "key", code, level: levelOf(bits, text), text, pressed });
  }

  #tellModifiers(bits: number): void {
    if (bits !== this.#modifiers) {
      this.#modifiers = bits;
      this.#tell({ kind: "modifiers", bits });
    }
  }

  /** Whether a key means no character. */
  #isShortcut(event: Modified): boolean {
    const isOn = (name: string) => event.getModifierState(name);
    const isAlt = this.#system !== "mac" && isOn("Alt") && !isOn("AltGraph");
    return isAlt || isOn("Meta") || (isOn("Control") && !isOn("AltGraph"));
  }

  /** The modifiers at an event that writes this text. */
  #bits(event: Modified & Partial<KeyEvent>, text: string): number {
    let bits = 0;
    for (const [name, bit] of BITS) {
      bits |= event.getModifierState(name) ? bit : 0;
    }
    // Windows says that Control and Alt are on with AltGr.
    if (this.#system === "windows" && (bits & ALTGR) !== 0) {
      bits &= ~(CONTROL | ALT);
    }
    // What Option writes on a Mac is a level of the key, as AltGr's is elsewhere.
    if (this.#system === "mac" && (bits & (ALT | CONTROL | SUPER)) === ALT && text !== "") {
      bits = (bits & ~ALT) | ALTGR;
    }
    // Macs have no Num Lock, and Windows takes Shift back from these keys: what the key is, is what it says.
    if (/^Numpad(\d|Decimal)$/.test(event.code ?? "") && event.key !== undefined) {
      const isNumber = isCharacter(event.key) !== ((bits & SHIFT) !== 0);
      bits = isNumber ? bits | NUM : bits & ~NUM;
    }
    return bits;
  }

  /** On Windows a left Control that AltGr follows at once was made up. */
  #forgetControl(event: KeyEvent): void {
    const at = this.#control;
    this.#control = undefined;
    if (this.#system !== "windows" || event.code !== "AltRight" || event.key !== "AltGraph") {
      return;
    }
    if (at !== undefined && event.timeStamp - at < AT_ONCE) {
      this.#release(CONTROL_LEFT, event);
    }
  }

  /** Whether no keyup can be waited for. */
  #isMomentary(event: KeyEvent, modifier: string | undefined): boolean {
    const isLost = event.getModifierState("Meta") && modifier === undefined;
    return this.#system === "mac" && (event.code === "CapsLock" || isLost);
  }
}

/** The level of a key that has this text; Caps Lock turns Shift round for what has a large and a small form. */
function levelOf(modifiers: number, text: string): number {
  const hasCase = text.toLowerCase() !== text.toUpperCase();
  const isShifted = ((modifiers & SHIFT) !== 0) !== (hasCase && (modifiers & CAPS) !== 0);
  return (isShifted ? 1 : 0) + ((modifiers & ALTGR) !== 0 ? 2 : 0);
}

/** Whether an input method has it; on a Mac the first key of a word says so by its old number alone. */
function isComposed({ isComposing, key, keyCode }: KeyEvent): boolean {
  return isComposing || key === "Process" || keyCode === 229;
}

function isCharacter(key: string): boolean {
  return [...key].length === 1;
}

/** Num Lock alone decides what these write. */
function isNumpad(event: Partial<KeyEvent>): boolean {
  return event.code?.startsWith("Numpad") === true;
}

/** Control, Alt and Escape or Home, the way out for who has no pointer. */
function isExit(event: KeyEvent): boolean {
  const isThere = event.code === "Escape" || event.code === "Home";
  return isThere && event.getModifierState("Control") && event.getModifierState("Alt");
}

/** The modifier that is on for as long as this key is down. */
function modifierOf({ key }: KeyEvent): string | undefined {
  return ["Shift", "Control", "Alt", "Meta", "AltGraph"].includes(key) ? key : undefined;
}

const [SHIFT, CAPS, CONTROL, ALT, NUM, SUPER, ALTGR] = [1, 2, 4, 8, 16, 64, 128];

/** The bits by which the viewer knows modifiers. */
const BITS: readonly (readonly [string, number])[] = [
  ["Shift", SHIFT],
  ["CapsLock", CAPS],
  ["Control", CONTROL],
  ["Alt", ALT],
  ["NumLock", NUM],
  ["Meta", SUPER],
  ["AltGraph", ALTGR],
];

const CONTROL_LEFT = 29;
/** Milliseconds between the two events of AltGr on Windows, at most. */
const AT_ONCE = 50;

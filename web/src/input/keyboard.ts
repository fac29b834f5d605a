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
export type KeyEvent = Pick<KeyboardEvent, "code" | "key" | "repeat" | "isComposing" | "timeStamp"> &
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

  constructor(system: System, tell: (input: Input) => void) {
    this.#system = system;
    this.#tell = tell;
  }

  down(event: KeyEvent): Outcome {
    const code = evdev(placeOf(event));
    if (event.isComposing || event.key === "Process" || code === undefined) {
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
    this.#isDead = event.key === "Dead" || (wasDead && modifier !== undefined);
    if (event.key === "Dead" || (wasDead && isCharacter(event.key))) {
      return "left";
    }
    this.#forgetControl(event);
    this.sync(event, modifier);
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

  /** Releases modifiers that went up unseen, as in another window; all but one of them that the event is about. */
  sync(event: Modified, about?: string): void {
    this.#releaseAll(event, (modifier) => {
      return modifier !== undefined && modifier !== about && !event.getModifierState(modifier);
    });
  }

  /** Keys go elsewhere from now on. */
  blur(): void {
    this.#held.clear();
    this.#isDead = false;
    this.#control = undefined;
    this.#tell({ kind: "blur" });
  }

  /** A key that goes down and up again at once: on-screen keyboards say no more. */
  tap(place: string): void {
    const code = evdev(place);
    if (code !== undefined && !this.#held.has(code)) {
      for (const pressed of [true, false]) {
        this.#tell({ kind: "key", code, level: 0, text: "", pressed, modifiers: 0 });
      }
    }
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
    const modifiers = this.#modifiers(event, text);
    this.#tell({ kind: "key", code, level: levelOf(modifiers, text), text, pressed, modifiers });
  }

  #modifiers(event: Modified, text: string): number {
    let bits = 0;
    for (const [name, bit] of BITS) {
      bits |= event.getModifierState(name) ? bit : 0;
    }
    // Windows says that Control and Alt are on with AltGr.
    if (this.#system === "windows" && (bits & ALTGR) !== 0) {
      bits &= ~(CONTROL | ALT);
    }
    // What Option writes on a Mac is a level of the key, as AltGr's is elsewhere.
    if (this.#system === "mac" && (bits & ALT) !== 0 && (bits & CONTROL) === 0 && text > "\x7e") {
      bits = (bits & ~ALT) | ALTGR;
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

const [SHIFT, CAPS, CONTROL, ALT, ALTGR] = [1, 2, 4, 8, 128];

/** The bits by which the viewer knows modifiers. */
const BITS: readonly (readonly [string, number])[] = [
  ["Shift", SHIFT],
  ["CapsLock", CAPS],
  ["Control", CONTROL],
  ["Alt", ALT],
  ["NumLock", 16],
  ["Meta", 64],
  ["AltGraph", ALTGR],
];

const CONTROL_LEFT = 29;
/** Milliseconds between the two events of AltGr on Windows, at most. */
const AT_ONCE = 50;

/** What stands for a browser and a viewer in tests. */

import type { Pasted } from "../src/clipboard.js";
import type { KeyEvent } from "../src/input/keyboard.js";
import type { Input } from "../src/talk.js";
import type { Timers } from "../src/timers.js";

/** Takes what is told as a viewer does, and holds it to the rules. */
export class FakeViewer {
  readonly told: Input[] = [];
  readonly down = new Set<number>();

  readonly tell = (input: Input): void => {
    this.told.push(input);
    if (input.kind === "blur") {
      this.down.clear();
    } else if (input.kind === "key" || input.kind === "button") {
      // Many of these are told: `expect` would take most of the time.
      if (this.down.has(input.code) === input.pressed) {
        throw new Error(`${input.code} is ${input.pressed ? "pressed" : "released"} twice`);
      }
      this.down[input.pressed ? "add" : "delete"](input.code);
    }
  };

  /** What was told since the last call, in few words. */
  take(): string {
    return this.told.splice(0).map(brief).join(" ");
  }

  /** The same without modifiers, which are told before what they belong to. */
  takeKeys(): string {
    const told = this.told.splice(0).filter(({ kind }) => kind !== "modifiers");
    return told.map(brief).join(" ");
  }
}

function brief(input: Input): string {
  switch (input.kind) {
    case "key": {
      const text = input.text === "" ? "" : `=${input.text}@${input.level}`;
      return `${input.pressed ? "+" : "-"}${input.code}${text}`;
    }
    case "button":
      return `${input.pressed ? "+" : "-"}${input.code.toString(16)}`;
    case "move":
      return `${input.key}:${input.x},${input.y}`;
    case "wheel":
      return `wheel(${input.dx},${input.dy},${input.stepsX},${input.stepsY})`;
    case "area":
    case "focus":
    case "close":
      return input.kind;
    case "type":
      return `"${input.text}"`;
    case "offer":
      return `${input.isNew ? "new" : "old"}:${input.clip.kind === "text" ? input.clip.text : "picture"}`;
    case "modifiers":
      return `(${input.bits})`;
    default:
      return input.kind;
  }
}

/** A clock that tests move on. */
export class FakeTimers implements Timers {
  #now = 0;
  #next = 1;
  readonly #due = new Map<number, { at: number; act: () => void }>();

  set(act: () => void, after: number): number {
    this.#due.set(this.#next, { at: this.#now + after, act });
    return this.#next++;
  }

  clear(timer: number | undefined): void {
    this.#due.delete(timer ?? 0);
  }

  pass(milliseconds: number): void {
    this.#now += milliseconds;
    for (const [timer, { at, act }] of [...this.#due]) {
      if (at <= this.#now) {
        this.#due.delete(timer);
        act();
      }
    }
  }
}

/** An event of a key, with these modifiers on. */
export function key(code: string, key: string, on = "", more: Partial<KeyEvent> = {}): KeyEvent {
  const names = on.split(" ");
  const getModifierState = (name: string) => names.includes(name);
  return {
    code,
    key,
    keyCode: 0,
    repeat: false,
    isComposing: false,
    timeStamp: 0,
    getModifierState,
    ...more,
  };
}

/** What a browser pastes. */
export function pasted(text: string, ...files: Blob[]): Pasted {
  return { getData: (kind) => (kind === "text/plain" ? text : ""), files };
}

/** Numbers from 0 to below a limit, the same for the same seed (Marsaglia, xorshift of 32 bits). */
export function random(seed: number): (limit: number) => number {
  let state = (seed + 1) * 0x9e3779b9;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

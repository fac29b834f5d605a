/**
 * Fingers as a pointer: one that taps, drags or rests presses buttons, two scroll.
 *
 * A finger presses nothing until it is known what it does, so that fingers which scroll have clicked nowhere.
 * Invariant: a button that was pressed is released before the last finger is forgotten.
 */

import type { Timers } from "../timers.js";

/** What fingers do. */
export interface Acts {
  /** The pointer goes there. */
  move(at: Point): void;
  press(button: "left" | "right", isPressed: boolean): void;
  /** So far on the page. */
  scroll(dx: number, dy: number): void;
  scrolled(): void;
}

/** A place on the page, in its pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

type State = "none" | "waiting" | "dragging" | "scrolling" | "done";

/** See the module. */
export class Touch {
  readonly #acts: Acts;
  readonly #timers: Timers;
  readonly #fingers = new Map<number, Point>();
  #state: State = "none";
  #resting: number | undefined;

  constructor(acts: Acts, timers: Timers) {
    this.#acts = acts;
    this.#timers = timers;
  }

  down(finger: number, at: Point): void {
    this.#fingers.set(finger, at);
    if (this.#fingers.size === 1) {
      this.#state = "waiting";
      this.#resting = this.#timers.set(() => this.#rest(at), REST);
    } else if (this.#state === "waiting") {
      this.#timers.clear(this.#resting);
      this.#acts.move(at);
      this.#state = "scrolling";
    }
  }

  move(finger: number, to: Point): void {
    const from = this.#fingers.get(finger);
    if (from === undefined) {
      return;
    }
    if (this.#state === "waiting" && distance(from, to) < SLACK) {
      return;
    }
    this.#fingers.set(finger, to);
    switch (this.#state) {
      case "waiting":
        this.#timers.clear(this.#resting);
        this.#acts.move(from);
        this.#acts.press("left", true);
        this.#acts.move(to);
        this.#state = "dragging";
        break;
      case "dragging":
        this.#acts.move(to);
        break;
      case "scrolling": {
        // Two that go the same way scroll as far as one of them.
        const share = this.#fingers.size;
        this.#acts.scroll((from.x - to.x) / share, (from.y - to.y) / share);
        break;
      }
    }
  }

  up(finger: number): void {
    const at = this.#fingers.get(finger);
    if (at === undefined) {
      return;
    }
    if (this.#state === "waiting") {
      this.#click("left", at);
    }
    this.#lift(finger);
  }

  /** The browser has taken the finger away. */
  cancel(finger: number): void {
    if (this.#fingers.has(finger)) {
      this.#lift(finger);
    }
  }

  #lift(finger: number): void {
    this.#fingers.delete(finger);
    this.#timers.clear(this.#resting);
    if (this.#state === "dragging") {
      this.#acts.press("left", false);
    } else if (this.#state === "scrolling") {
      this.#acts.scrolled();
    }
    // Fingers that are left do nothing more.
    this.#state = this.#fingers.size === 0 ? "none" : "done";
  }

  #rest(at: Point): void {
    if (this.#state === "waiting") {
      this.#click("right", at);
      this.#state = "done";
    }
  }

  #click(button: "left" | "right", at: Point): void {
    this.#acts.move(at);
    this.#acts.press(button, true);
    this.#acts.press(button, false);
  }
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y);
}

/** Pixels of the page that a finger which rests may move. */
const SLACK = 8;
/** Milliseconds after which a finger that rests presses the right button. */
const REST = 600;

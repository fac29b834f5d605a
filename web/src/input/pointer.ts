/**
 * What a mouse, a pen or fingers do over the windows.
 *
 * The page keeps a pointer while a button is down, wherever it goes. Invariant: each press of a button that was told is
 * followed by one release of it, or by `blur`.
 */

import type { Input } from "../talk.js";
import type { Timers } from "../timers.js";
import { type Point, Touch } from "./touch.js";
import { Wheel, type WheelLike } from "./wheel.js";

/** A place in a window. */
export interface Spot extends Point {
  /** The window's. */
  readonly key: string;
  /** Pixels of the page for a unit of the window. */
  readonly zoom: number;
}

/** What is used of a `PointerEvent`. */
export type PointerLike = Pick<
  PointerEvent,
  "type" | "pointerId" | "pointerType" | "buttons" | "clientX" | "clientY"
>;

/** What the pointer asks of the page. */
export interface Ground {
  /** The window that is there; where a button is down, `held`, however far it is. */
  find(at: Point, held: string | undefined): Spot | undefined;
  /** A window was pressed. */
  pressed(key: string): void;
}

/** See the module. */
export class Pointer {
  readonly #ground: Ground;
  readonly #tell: (input: Input) => void;
  readonly #touch: Touch;
  readonly #wheel: Wheel;
  /** The buttons that were told, as `buttons` has them. */
  #buttons = 0;
  /** Those that are down and were not told: they went down elsewhere, or `blur` has released them. */
  #stale = 0;
  #spot: Spot | undefined;

  constructor(ground: Ground, tell: (input: Input) => void, timers: Timers) {
    this.#ground = ground;
    this.#tell = tell;
    this.#wheel = new Wheel(tell, timers);
    this.#touch = new Touch(
      {
        move: (at) => this.#move(at),
        press: (button, isPressed) => this.#press(button === "left" ? 1 : 2, isPressed),
        scroll: (dx, dy) => this.#wheel.scroll(dx / (this.#spot?.zoom ?? 1), dy / (this.#spot?.zoom ?? 1)),
        scrolled: () => this.#wheel.stop(),
      },
      timers,
    );
  }

  /** Any event of a pointer: a button that goes down while another is, is told as a motion. */
  on(event: PointerLike): void {
    const at = { x: event.clientX, y: event.clientY };
    if (event.pointerType === "touch") {
      this.#finger(event, at);
    } else if (event.type === "pointercancel") {
      this.#setButtons(0);
    } else if (event.type === "pointerleave" && this.#buttons === 0) {
      this.leave();
    } else {
      this.#move(at);
      if (event.type !== "pointerdown" && this.#buttons === 0) {
        this.#stale |= event.buttons;
      }
      this.#setButtons(event.buttons);
    }
  }

  wheel(event: WheelLike & Pick<PointerEvent, "clientX" | "clientY">): void {
    this.#move({ x: event.clientX, y: event.clientY });
    if (this.#spot !== undefined) {
      this.#wheel.turn(event, this.#spot.zoom);
    }
  }

  /** Everything was released by `blur`. */
  blur(): void {
    this.#stale |= this.#buttons;
    this.#buttons = 0;
  }

  /** The pointer is over no window any more. */
  leave(): void {
    if (this.#spot !== undefined) {
      this.#spot = undefined;
      this.#wheel.stop();
      this.#tell({ kind: "leave" });
    }
  }

  #finger(event: PointerLike, at: Point): void {
    switch (event.type) {
      case "pointerdown":
        this.#touch.down(event.pointerId, at);
        break;
      case "pointerup":
        this.#touch.up(event.pointerId);
        break;
      case "pointercancel":
        this.#touch.cancel(event.pointerId);
        break;
      case "pointermove":
        this.#touch.move(event.pointerId, at);
        break;
    }
  }

  #move(at: Point): void {
    const spot = this.#ground.find(at, this.#buttons === 0 ? undefined : this.#spot?.key);
    const old = this.#spot;
    if (spot === undefined) {
      if (this.#buttons === 0) {
        this.leave();
      }
      return;
    }
    this.#spot = spot;
    if (old === undefined || old.key !== spot.key || old.x !== spot.x || old.y !== spot.y) {
      this.#tell({ kind: "move", key: spot.key, x: spot.x, y: spot.y });
    }
  }

  #setButtons(buttons: number): void {
    this.#stale &= buttons;
    for (const [bit] of BUTTONS) {
      if (((buttons ^ this.#buttons) & bit) !== 0 && (this.#stale & bit) === 0) {
        this.#press(bit, (buttons & bit) !== 0);
      }
    }
  }

  #press(bit: number, pressed: boolean): void {
    const code = BUTTONS.get(bit);
    if (code === undefined || pressed === ((this.#buttons & bit) !== 0)) {
      return;
    }
    if (this.#spot === undefined) {
      // Who presses beside the windows means none of them.
      this.#stale |= bit;
      return;
    }
    if (pressed) {
      this.#ground.pressed(this.#spot.key);
    }
    this.#buttons ^= bit;
    this.#tell({ kind: "button", code, pressed });
  }
}

/** The bits of `buttons` and what Linux calls them: left, right, middle, back, forward. */
const BUTTONS: ReadonlyMap<number, number> = new Map([
  [1, 0x110],
  [2, 0x111],
  [4, 0x112],
  [8, 0x113],
  [16, 0x114],
]);

/**
 * What a wheel or a touchpad scrolls, in the units of Wayland's axes.
 *
 * Browsers say neither which of the two it was nor when fingers were lifted. Invariant: what scrolls without steps is
 * ended by a stop.
 */

import type { Input } from "../talk.js";
import type { Timers } from "../timers.js";

/** What is used of a `WheelEvent`. */
export type WheelLike = Pick<WheelEvent, "deltaX" | "deltaY" | "deltaMode"> & {
  /** 120 for a step upwards, where a browser has it. */
  readonly wheelDeltaX?: number;
  readonly wheelDeltaY?: number;
};

/** See the module. */
export class Wheel {
  readonly #tell: (input: Input) => void;
  readonly #timers: Timers;
  #stop: number | undefined;

  constructor(tell: (input: Input) => void, timers: Timers) {
    this.#tell = tell;
    this.#timers = timers;
  }

  /** `zoom` is how large a unit of the window is on the page. */
  turn(event: WheelLike, zoom: number): void {
    // Firefox gives lines to who asks for the mode first.
    const mode = event.deltaMode;
    const [stepsX, stepsY] = [
      steps(event.deltaX, mode, event.wheelDeltaX),
      steps(event.deltaY, mode, event.wheelDeltaY),
    ];
    if (stepsX !== undefined && stepsY !== undefined) {
      this.stop();
      const [dx, dy] = [(stepsX / STEP) * STEP_LENGTH, (stepsY / STEP) * STEP_LENGTH];
      if (stepsX !== 0 || stepsY !== 0) {
        this.#tell({ kind: "wheel", dx, dy, stepsX, stepsY });
      }
    } else {
      this.scroll(event.deltaX / zoom, event.deltaY / zoom);
    }
  }

  /** Fingers scroll so many units. */
  scroll(dx: number, dy: number): void {
    if (dx === 0 && dy === 0) {
      return;
    }
    this.#timers.clear(this.#stop);
    this.#tell({ kind: "wheel", dx, dy, stepsX: 0, stepsY: 0 });
    this.#stop = this.#timers.set(() => this.stop(), REST);
  }

  /** Fingers have been lifted, if there were any. */
  stop(): void {
    if (this.#stop !== undefined) {
      this.#timers.clear(this.#stop);
      this.#stop = undefined;
      this.#tell({ kind: "wheel", dx: 0, dy: 0, stepsX: 0, stepsY: 0 });
    }
  }
}

/** 120 for each step of a wheel; nothing if it was none that scrolled so far. */
function steps(delta: number, mode: number, wheelDelta: number | undefined): number | undefined {
  if (delta === 0) {
    return 0;
  }
  switch (mode) {
    case 0:
      // Touchpads come to whole steps by chance only.
      return wheelDelta !== undefined && wheelDelta !== 0 && wheelDelta % STEP === 0
        ? -wheelDelta
        : undefined;
    case 1:
      return Math.round((delta / LINES) * STEP);
    default:
      return Math.round(delta * STEP);
  }
}

/** What Wayland has for a step. */
const STEP = 120;
/** Units that a step scrolls. */
const STEP_LENGTH = 15;
/** Lines of a step. */
const LINES = 3;
/** Milliseconds after which fingers that scroll no more count as lifted. */
const REST = 150;

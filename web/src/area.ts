/**
 * How large the area for windows is, told when it has rested.
 *
 * Invariant: what was told last is what is, or was before a notice hid it, {@link REST} after the last change.
 */

import type { Timers } from "./timers.js";

/** In units, which are pixels of the page; `scale` in 120ths of a pixel of the screen. */
export interface Size {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
}

/** See the module. */
export class Area {
  readonly #tell: (size: Size) => void;
  readonly #timers: Timers;
  #told: Size | undefined;
  #timer: number | undefined;

  constructor(tell: (size: Size) => void, timers: Timers) {
    this.#tell = tell;
    this.#timers = timers;
  }

  /** The area has this size, in pixels of the page, and so many pixels of the screen to each. */
  see(width: number, height: number, ratio: number): void {
    // What is hidden has no size.
    if (width === 0 || height === 0) {
      return;
    }
    const size = {
      width: clamp(Math.floor(width), 1, MOST),
      height: clamp(Math.floor(height), 1, MOST),
      scale: clamp(Math.round(ratio * 120), 60, 480),
    };
    this.#timers.clear(this.#timer);
    if (this.#told === undefined) {
      this.#say(size);
    } else {
      this.#timer = this.#timers.set(() => this.#say(size), REST);
    }
  }

  /** Who is told is new. */
  again(): void {
    if (this.#told !== undefined) {
      this.#tell(this.#told);
    }
  }

  #say(size: Size): void {
    const old = this.#told;
    if (old?.width !== size.width || old.height !== size.height || old.scale !== size.scale) {
      this.#told = size;
      this.#tell(size);
    }
  }
}

/** Watches an element. */
export function watch(element: Element, area: Area): void {
  let size = { width: element.clientWidth, height: element.clientHeight };
  const see = () => area.see(size.width, size.height, devicePixelRatio);
  new ResizeObserver(([entry]) => {
    size = entry?.contentRect ?? size;
    see();
  }).observe(element);
  // A query is for one ratio.
  const wait = () => {
    const query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    query.addEventListener("change", () => [see(), wait()], { once: true });
  };
  wait();
  see();
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

/** Milliseconds without a change. */
const REST = 100;
/** Units of a side. */
const MOST = 16_384;

/**
 * What is to be drawn, as the viewer's words say it.
 *
 * Plain values. Invariant: a drawing is read whole, or not at all.
 */

import type { Rect, Surface } from "./viewer.js";

/** One window. */
export interface Window {
  /** The same as long as the window is there. */
  readonly key: string;
  readonly title: string;
  readonly kind: string;
  /** Its surface, to name it with. */
  readonly surface: Surface;
  /** The key of the window that it belongs to, as a dialog does. */
  readonly parent: string | undefined;
  /** The window inside its surface, in units; what is outside is shadow, or hangs over. */
  readonly geometry: Rect;
  /** From the lowest on. */
  readonly parts: readonly Part[];
}

/** A surface in its place. */
export interface Part {
  readonly key: string;
  readonly surface: Surface;
  /** Where it is in the window's surface, in units. */
  readonly at: Rect;
  readonly pixels: { readonly width: number; readonly height: number };
  /** `wl_output.transform`. */
  readonly transform: number;
  /** What of the pixels is shown, once they are turned. */
  readonly crop: Rect | undefined;
}

/** A cursor that is a surface. */
export interface Cursor {
  readonly part: Part;
  /** The point of it that is where the pointer is, in units. */
  readonly hotspot: { readonly x: number; readonly y: number };
}

/** Words, read one after the other. */
class Words {
  readonly #words: Int32Array;
  #at = 0;

  constructor(words: Int32Array) {
    this.#words = words;
  }

  next(): number {
    const word = this.#words[this.#at];
    this.#at += 1;
    if (word === undefined) {
      throw new RangeError("the drawing ends early");
    }
    return word;
  }

  rect(): Rect {
    return { x: this.next(), y: this.next(), width: this.next(), height: this.next() };
  }

  surface(program: number): Surface {
    return { program, low: this.next(), high: this.next() };
  }

  /** What there is to a surface beside its name. */
  part(surface: Surface): Part {
    const at = this.rect();
    const pixels = { width: this.next(), height: this.next() };
    const transform = this.next();
    const hasCrop = this.next() === 1;
    const { x, y, width, height } = this.rect();
    const crop = { x: x / 256, y: y / 256, width: width / 256, height: height / 256 };
    return { key: name(surface), surface, at, pixels, transform, crop: hasCrop ? crop : undefined };
  }
}

/** Reads words as they are laid out in `crates/page-wasm/src/drawing.rs`. */
export function readDrawing(list: Int32Array, text: Uint8Array): Window[] {
  const words = new Words(list);
  const say = (from: number, to: number) => new TextDecoder().decode(text.subarray(from, to));
  return Array.from({ length: words.next() }, () => {
    const surface = words.surface(words.next());
    const above = words.surface(surface.program);
    const parent = above.low === 0 && above.high === 0 ? undefined : name(above);
    const geometry = words.rect();
    const [from, between, to] = [words.next(), words.next(), words.next()];
    const parts = Array.from({ length: words.next() }, () => words.part(words.surface(surface.program)));
    const [title, kind] = [say(from, between), say(between, to)];
    return { key: name(surface), surface, parent, title, kind, geometry, parts };
  });
}

/** Reads the words of a cursor that is a surface. */
export function readCursor(list: Int32Array): Cursor {
  const words = new Words(list);
  const surface = words.surface(words.next());
  const hotspot = { x: words.next(), y: words.next() };
  return { part: words.part(surface), hotspot };
}

/** What all parts of a window cover, in units. */
export function extent(window: Window): Rect {
  const { parts } = window;
  const left = Math.min(...parts.map((part) => part.at.x));
  const top = Math.min(...parts.map((part) => part.at.y));
  const right = Math.max(...parts.map((part) => part.at.x + part.at.width));
  const bottom = Math.max(...parts.map((part) => part.at.y + part.at.height));
  return parts.length === 0
    ? { x: 0, y: 0, width: 0, height: 0 }
    : { x: left, y: top, width: right - left, height: bottom - top };
}

/** How many pixels of a part there are for a unit, across. */
export function scale(part: Part): number {
  const shown = part.crop?.width ?? turned(part).width;
  return part.at.width > 0 && shown > 0 ? shown / part.at.width : 1;
}

/**
 * With how many pixels a unit of a window is painted: as many as its own surface has, fewer where the canvas would be
 * larger than {@link MOST_SIDE} or {@link MOST_PIXELS}. What lies far outside of a window makes it coarse, not large.
 */
export function resolution(window: Window): number {
  const own = window.parts.find((part) => part.key === window.key) ?? window.parts[0];
  const { width, height } = extent(window);
  const most = Math.min(
    MOST_SIDE / Math.max(width, height, 1),
    Math.sqrt(MOST_PIXELS / Math.max(width * height, 1)),
  );
  return Math.min(own === undefined ? 1 : scale(own), most);
}

/** Browsers have no larger canvases. */
const MOST_SIDE = 16_384;
/** Of the canvas of a window: 256 MiB. */
const MOST_PIXELS = 2 ** 26;

function name(surface: Surface): string {
  return `${surface.program}/${surface.high >>> 0}/${surface.low >>> 0}`;
}

/** A map of a plane, as canvases have it: x becomes a·x + c·y + e, and y becomes b·x + d·y + f. */
export type Matrix = readonly [number, number, number, number, number, number];

/** Where the pixels of a part go, in units of the window's surface. */
export function place(part: Part): Matrix {
  const { at, crop } = part;
  const [a, b, c, d, e, f] = turn(part);
  const whole = turned(part);
  const shown = crop ?? { x: 0, y: 0, ...whole };
  const across = shown.width > 0 ? at.width / shown.width : 0;
  const down = shown.height > 0 ? at.height / shown.height : 0;
  return [
    a * across,
    b * down,
    c * across,
    d * down,
    (e - shown.x) * across + at.x,
    (f - shown.y) * down + at.y,
  ];
}

/** Where the pixels of a buffer go when it is turned as its program has said. */
function turn(part: Part): Matrix {
  const { width, height } = turned(part);
  switch (part.transform) {
    case 1:
      return [0, 1, -1, 0, width, 0];
    case 2:
      return [-1, 0, 0, -1, width, height];
    case 3:
      return [0, -1, 1, 0, 0, height];
    case 4:
      return [-1, 0, 0, 1, width, 0];
    case 5:
      return [0, 1, 1, 0, 0, 0];
    case 6:
      return [1, 0, 0, -1, 0, height];
    case 7:
      return [0, -1, -1, 0, width, height];
    default:
      return [1, 0, 0, 1, 0, 0];
  }
}

function turned({ pixels, transform }: Part): { width: number; height: number } {
  return transform % 2 === 1 ? { width: pixels.height, height: pixels.width } : pixels;
}

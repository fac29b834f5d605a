/**
 * Paints what a viewer shows: each surface on a canvas of its own, and of these each window.
 *
 * Invariant: the canvas of a window shows one state of it, never a part of the next.
 */

import { extent, type Matrix, type Part, place, readDrawing, resolutions, type Window } from "./drawing.js";
import type { Look } from "./talk.js";
import type { Rect, Viewer } from "./viewer.js";

/** What is used of a canvas. */
export type Canvas = Pick<OffscreenCanvas, "width" | "height"> & {
  getContext(kind: "2d"): Context | null;
};

/** What is used of its context. */
export interface Context {
  imageSmoothingEnabled: boolean;
  setTransform(a: number, b: number, c: number, d: number, e: number, f: number): void;
  clearRect(x: number, y: number, width: number, height: number): void;
  save(): void;
  restore(): void;
  beginPath(): void;
  rect(x: number, y: number, width: number, height: number): void;
  clip(): void;
  drawImage(image: OffscreenCanvas, x: number, y: number): void;
  putImageData(data: ImageData, x: number, y: number): void;
}

/** Who hears of windows. */
export interface Frame {
  /** A window is new, or has another look. */
  window(key: string, look: Look): void;
  gone(key: string): void;
}

/** See the module. */
export class Painter {
  readonly #viewer: Viewer;
  readonly #frame: Frame;
  readonly #surfaces = new Map<string, OffscreenCanvas>();
  readonly #looks = new Map<string, string>();
  /** Of windows; a context is asked for once, for Firefox refuses it when the page has read the canvas. */
  readonly #canvases = new Map<string, { readonly canvas: Canvas; readonly context: Context }>();
  /** What each canvas of a window shows, but for pixels. */
  readonly #painted = new Map<string, string>();

  constructor(viewer: Viewer, frame: Frame) {
    this.#viewer = viewer;
    this.#frame = frame;
  }

  /** A window is painted here from now on. */
  setCanvas(key: string, canvas: Canvas): void {
    const context = canvas.getContext("2d");
    if (this.#looks.has(key) && context !== null) {
      this.#canvases.set(key, { canvas, context });
      this.#painted.delete(key);
    }
  }

  /** Paints all that is new, in the frame that the browser began at that time. */
  paint(began: number): void {
    const { words, text } = this.#viewer.drawing();
    const windows = readDrawing(words, text);
    const parts = new Set(windows.flatMap((window) => window.parts.map((part) => part.key)));
    for (const key of [...this.#surfaces.keys()].filter((key) => !parts.has(key))) {
      this.#surfaces.delete(key);
    }
    this.#keep(new Set(windows.map((window) => window.key)));
    const scales = resolutions(windows);
    for (const window of windows) {
      const isNew = window.parts.map((part) => this.#paintSurface(part)).includes(true);
      this.#tell(window);
      const by = scales.get(window.key) ?? 1;
      const shown = JSON.stringify([by, window.parts]);
      if (isNew || this.#painted.get(window.key) !== shown) {
        this.#paintWindow(window, by, shown);
      }
    }
    this.#viewer.onFrame(began);
  }

  /** What comes is none of the windows that were, though it may have their keys. */
  forget(): void {
    this.#keep(new Set());
  }

  #keep(keys: ReadonlySet<string>): void {
    for (const key of [...this.#looks.keys()].filter((key) => !keys.has(key))) {
      this.#looks.delete(key);
      this.#canvases.delete(key);
      this.#painted.delete(key);
      this.#frame.gone(key);
    }
  }

  #tell(window: Window): void {
    const { parent, title, kind: app, geometry } = window;
    const look: Look = { parent, title, app, geometry, extent: extent(window) };
    const told = JSON.stringify(look);
    if (this.#looks.get(window.key) !== told) {
      this.#looks.set(window.key, told);
      this.#frame.window(window.key, look);
    }
  }

  /** Paints what is new of a surface; says whether anything is. */
  #paintSurface(part: Part): boolean {
    const { key, surface, pixels } = part;
    const damage = this.#viewer.damage(surface);
    let canvas = this.#surfaces.get(key);
    const isNew = canvas?.width !== pixels.width || canvas.height !== pixels.height;
    if (canvas === undefined || isNew) {
      canvas = new OffscreenCanvas(pixels.width, pixels.height);
      this.#surfaces.set(key, canvas);
    }
    const context = canvas.getContext("2d");
    const whole = { x: 0, y: 0, ...pixels };
    const news = damage === "all" || isNew ? [whole] : damage;
    for (const rect of news) {
      for (const tile of tiles(rect)) {
        const data = this.#viewer.pixels(surface, tile);
        context?.putImageData(new ImageData(data, tile.width, tile.height), tile.x, tile.y);
      }
    }
    return news.length > 0;
  }

  #paintWindow(window: Window, by: number, shows: string): void {
    const onto = this.#canvases.get(window.key);
    if (onto === undefined) {
      return;
    }
    const { canvas, context } = onto;
    const shown = extent(window);
    const [width, height] = [side(shown.width * by), side(shown.height * by)];
    // Setting a size clears.
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
    }
    this.#painted.set(window.key, shows);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    for (const part of window.parts) {
      this.#paintPart(context, part, [by, 0, 0, by, -shown.x * by, -shown.y * by]);
    }
  }

  #paintPart(context: Context, part: Part, [by, , , , x, y]: Matrix): void {
    const image = this.#surfaces.get(part.key);
    if (image === undefined) {
      return;
    }
    const [a, b, c, d, e, f] = place(part);
    context.save();
    context.setTransform(by, 0, 0, by, x, y);
    if (part.crop !== undefined) {
      context.beginPath();
      context.rect(part.at.x, part.at.y, part.at.width, part.at.height);
      context.clip();
    }
    context.setTransform(a * by, b * by, c * by, d * by, e * by + x, f * by + y);
    const isWhole = [a, b, c, d].every((value) => Number.isInteger(value * by));
    context.imageSmoothingEnabled = !isWhole;
    context.drawImage(image, 0, 0);
    context.restore();
  }
}

/** A part in pieces that take a few MiB each. */
export function tiles(part: Rect): Rect[] {
  const rows = Math.max(1, Math.floor(TILE / Math.max(1, part.width)));
  const count = Math.ceil(part.height / rows);
  return Array.from({ length: count }, (_, at) => ({
    x: part.x,
    y: part.y + at * rows,
    width: part.width,
    height: Math.min(rows, part.height - at * rows),
  }));
}

/** Pixels of a tile. */
const TILE = 1 << 20;

/** The side of a canvas. */
function side(length: number): number {
  return Math.max(Math.round(length), 1);
}

/** A window on the page: its canvas in its place, and its title. */

import type { Point } from "./input/touch.js";
import type { Look } from "./talk.js";

/** See the module. */
export class Figure {
  readonly element = document.createElement("figure");
  /** As large as the window without what hangs over. */
  readonly #frame = document.createElement("div");
  readonly #caption = document.createElement("figcaption");
  readonly #canvas = document.createElement("canvas");
  look: Look;

  constructor(look: Look) {
    this.look = look;
    this.#canvas.setAttribute("role", "img");
    this.#frame.append(this.#canvas);
    this.element.append(this.#caption, this.#frame);
    this.setLook(look);
  }

  /** What a worker paints on; to be asked for once. */
  takeCanvas(): OffscreenCanvas {
    return this.#canvas.transferControlToOffscreen();
  }

  get title(): string {
    return this.look.title || this.look.app || "a window";
  }

  setLook(look: Look): void {
    this.look = look;
    this.#caption.textContent = this.title;
    this.#canvas.setAttribute("aria-label", this.title);
    // What hangs over the window does not move it.
    const { geometry, extent } = look;
    this.element.style.setProperty("--width", `${geometry.width}`);
    this.element.style.setProperty("--height", `${geometry.height}`);
    const { style } = this.#canvas;
    style.left = percent(extent.x - geometry.x, geometry.width);
    style.top = percent(extent.y - geometry.y, geometry.height);
    style.width = percent(extent.width, geometry.width);
    style.height = percent(extent.height, geometry.height);
  }

  /** A place of the page in units of the window, and how large a unit is. */
  place(at: Point): Point & { readonly zoom: number } {
    const { left, top, width } = this.#frame.getBoundingClientRect();
    const zoom = width > 0 && this.look.geometry.width > 0 ? width / this.look.geometry.width : 1;
    return { x: (at.x - left) / zoom, y: (at.y - top) / zoom, zoom };
  }
}

function percent(part: number, whole: number): string {
  return `${whole > 0 ? (part / whole) * 100 : 0}%`;
}

/** The pointer's picture over the windows, by CSS. */

import type { Cursor } from "./talk.js";

/** See the module. */
export class CursorStyle {
  readonly #element: HTMLElement;
  #address: string | undefined;

  constructor(element: HTMLElement) {
    this.#element = element;
  }

  show(cursor: Cursor): void {
    const old = this.#address;
    this.#address = undefined;
    this.#element.style.cursor = this.#valueOf(cursor);
    if (old !== undefined) {
      URL.revokeObjectURL(old);
    }
  }

  #valueOf(cursor: Cursor): string {
    switch (cursor.kind) {
      case "default":
        return "default";
      case "hidden":
        return "none";
      case "name":
        // What CSS does not know is not taken.
        return CSS.supports("cursor", cursor.name) ? cursor.name : "default";
      case "image": {
        this.#address = URL.createObjectURL(cursor.image);
        const { x, y, scale } = cursor;
        const set = `image-set(url("${this.#address}") ${scale}x) ${x} ${y}, default`;
        return CSS.supports("cursor", set)
          ? set
          : `url("${this.#address}") ${x * scale} ${y * scale}, default`;
      }
    }
  }
}

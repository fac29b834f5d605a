/** The pointer's picture over the windows, by CSS. */

import type { Cursor } from "./talk.js";

/** Makes the pointer look so over an element. */
export function showCursor(element: HTMLElement, cursor: Cursor): void {
  const value = styleOf(cursor);
  // What CSS does not know is not taken.
  element.style.cursor = CSS.supports("cursor", value) ? value : "default";
}

function styleOf(cursor: Cursor): string {
  switch (cursor.kind) {
    case "default":
      return "default";
    case "hidden":
      return "none";
    case "name":
      return cursor.name;
    case "image":
      return `image-set(url("${cursor.address}") ${cursor.scale}x) ${cursor.x} ${cursor.y}, default`;
  }
}

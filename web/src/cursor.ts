/**
 * What the pointer looks like, for the page.
 *
 * Invariant: what was told last is what the viewer said last, however long a picture takes.
 */

import { type Cursor as Picture, readCursor, scale } from "./drawing.js";
import type { Cursor } from "./talk.js";
import type { Viewer } from "./viewer.js";

/** See the module. */
export class CursorTeller {
  readonly #viewer: Pick<Viewer, "cursor" | "damage" | "pixels">;
  readonly #tell: (cursor: Cursor) => void;
  #told = "";
  #turn = 0;

  constructor(viewer: Pick<Viewer, "cursor" | "damage" | "pixels">, tell: (cursor: Cursor) => void) {
    this.#viewer = viewer;
    this.#tell = tell;
  }

  /** Tells it if it has changed. */
  async look(): Promise<void> {
    const shape = this.#viewer.cursor();
    const said = JSON.stringify(shape);
    const read = shape.kind === "surface" ? readCursor(shape.words) : undefined;
    const isPainted = read !== undefined && this.#viewer.damage(read.part.surface).length > 0;
    if (said === this.#told && !isPainted) {
      return;
    }
    this.#told = said;
    this.#turn += 1;
    const turn = this.#turn;
    const cursor = read === undefined ? shape : await this.#paint(read);
    if (turn === this.#turn && cursor.kind !== "surface") {
      this.#tell(cursor);
    }
  }

  async #paint({ part, hotspot }: Picture): Promise<Cursor> {
    const { width, height } = part.pixels;
    if (width === 0 || height === 0 || width > MOST || height > MOST) {
      return { kind: width === 0 || height === 0 ? "hidden" : "default" };
    }
    const canvas = new OffscreenCanvas(width, height);
    const data = this.#viewer.pixels(part.surface, { x: 0, y: 0, width, height });
    canvas.getContext("2d")?.putImageData(new ImageData(data, width, height), 0, 0);
    const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
    const address = `data:image/png;base64,${btoa(String.fromCharCode(...bytes))}`;
    return { kind: "image", address, scale: scale(part), ...hotspot };
  }
}

/** Pixels of a side; browsers show no larger cursors. */
const MOST = 128;

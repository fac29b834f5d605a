/**
 * What the pointer looks like, for the page.
 *
 * Invariant: what was told last is what the viewer said last, however long a picture takes.
 */

import type { Cursor } from "./talk.js";
import type { CursorShape, Viewer } from "./viewer.js";

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
    const told = JSON.stringify(shape);
    const isPainted = shape.kind === "surface" && this.#viewer.damage(shape.surface).length !== 0;
    if (told === this.#told && !isPainted) {
      return;
    }
    this.#told = told;
    this.#turn += 1;
    const turn = this.#turn;
    const cursor = shape.kind === "surface" ? await this.#paint(shape) : shape;
    if (turn === this.#turn) {
      this.#tell(cursor);
    }
  }

  async #paint({ surface, hotspot, size, pixels }: CursorShape & { kind: "surface" }): Promise<Cursor> {
    const { width, height } = pixels;
    if (width === 0 || height === 0) {
      return { kind: "hidden" };
    }
    const canvas = new OffscreenCanvas(width, height);
    const data = new ImageData(this.#viewer.pixels(surface, { x: 0, y: 0, width, height }), width, height);
    canvas.getContext("2d")?.putImageData(data, 0, 0);
    const scale = size.width > 0 ? width / size.width : 1;
    return { kind: "image", address: await addressOf(canvas), scale, ...hotspot };
  }
}

async function addressOf(canvas: OffscreenCanvas): Promise<string> {
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  return `data:image/png;base64,${btoa(String.fromCharCode(...bytes))}`;
}

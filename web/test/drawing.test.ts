import { expect, test } from "vitest";
import { extent, type Part, place, readCursor, readDrawing, resolution, scale } from "../src/drawing.js";
import { tiles } from "../src/painter.js";

const PART: Part = {
  key: "1/0/8",
  surface: { program: 1, low: 8, high: 0 },
  at: { x: 0, y: 0, width: 4, height: 2 },
  pixels: { width: 4, height: 2 },
  transform: 0,
  crop: undefined,
};

test("words are windows with their surfaces", () => {
  const text = new TextEncoder().encode("a – windowfoot");
  const words = [1, 1, 8, 0, 0, 0, 0, 0, 4, 2, 0, 12, 16, 2];
  words.push(8, 0, 0, 0, 4, 2, 4, 2, 0, 0, 0, 0, 0, 0);
  words.push(10, 1, -3, 5, 8, 4, 4, 2, 1, 1, 256, 512, 1024, 768);
  const [window] = readDrawing(Int32Array.from(words), text);
  expect(window).toMatchObject({ key: "1/0/8", title: "a – window", kind: "foot", parent: undefined });
  expect(window?.surface).toEqual(PART.surface);
  expect(window?.parts[0]).toEqual(PART);
  expect(window?.parts[1]?.crop).toEqual({ x: 1, y: 2, width: 4, height: 3 });
  expect(window && extent(window)).toEqual({ x: -3, y: 0, width: 8, height: 9 });
  expect(() => readDrawing(Int32Array.from(words.slice(0, -1)), text)).toThrow(RangeError);
});

test("a dialog names the window that it belongs to", () => {
  const words = [1, 1, 20, 0, 8, 1, 0, 0, 4, 2, 0, 0, 0, 0];
  expect(readDrawing(Int32Array.from(words), new Uint8Array())[0]?.parent).toBe("1/1/8");
});

test("a cursor is a surface with the point that points", () => {
  const words = [1, 8, 0, 3, -2, 0, 0, 4, 2, 4, 2, 0, 0, 0, 0, 0, 0];
  expect(readCursor(Int32Array.from(words))).toEqual({ part: PART, hotspot: { x: 3, y: -2 } });
  expect(() => readCursor(Int32Array.from(words.slice(0, -1)))).toThrow(RangeError);
});

test("corners of pixels go where the program has turned them", () => {
  // The upper left corner of a buffer, and the lower right one, on a surface of 4 × 2 units.
  const corners = [
    [0, 0, 4, 2],
    [4, 0, 0, 2],
    [4, 2, 0, 0],
    [0, 2, 4, 0],
    [4, 0, 0, 2],
    [0, 0, 4, 2],
    [0, 2, 4, 0],
    [4, 2, 0, 0],
  ];
  corners.forEach((corner, transform) => {
    const isTurned = transform % 2 === 1;
    const pixels = isTurned ? { width: 4, height: 8 } : { width: 8, height: 4 };
    const [a, b, c, d, e, f] = place({ ...PART, pixels, transform });
    const { width, height } = pixels;
    expect([e, f, a * width + c * height + e, b * width + d * height + f]).toEqual(corner);
  });
});

test("a part that is shown fills the surface", () => {
  const part = {
    ...PART,
    crop: { x: 1, y: 1, width: 2, height: 1 },
    at: { x: 10, y: 20, width: 4, height: 2 },
  };
  expect(place(part)).toEqual([2, 0, 0, 2, 8, 18]);
  expect(scale(part)).toBe(0.5);
  expect(scale({ ...PART, pixels: { width: 6, height: 3 } })).toBe(1.5);
});

test("tiles cover a part, and none is large", () => {
  const part = { x: 3, y: 5, width: 3840, height: 2160 };
  const all = tiles(part);
  expect(all.reduce((sum, tile) => sum + tile.width * tile.height, 0)).toBe(3840 * 2160);
  expect(all.every((tile) => tile.width * tile.height <= 1 << 20 && tile.x === 3)).toBe(true);
  expect(all.at(-1)).toMatchObject({ height: expect.any(Number) });
  expect(tiles({ x: 0, y: 0, width: 0, height: 0 })).toEqual([]);
});

test("regression: a part far outside makes no canvas of a gigabyte", () => {
  const { key, surface } = PART;
  const window = { key, surface, parent: undefined, title: "", kind: "", geometry: PART.at, parts: [PART] };
  expect(resolution(window)).toBe(1);
  const far = { ...PART, key: "1/0/9", at: { x: 1_000_000, y: 1_000_000, width: 4, height: 2 } };
  const { width, height } = extent({ ...window, parts: [PART, far] });
  const by = resolution({ ...window, parts: [PART, far] });
  expect(width * by).toBeLessThanOrEqual(16_384);
  expect(width * by * height * by).toBeLessThanOrEqual(2 ** 26 + 1);
});

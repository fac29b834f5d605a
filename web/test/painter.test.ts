import { expect, test } from "vitest";
import { Painter } from "../src/painter.js";
import type { Viewer } from "../src/viewer.js";

test("regression: windows of a session that began anew were taken for those before", () => {
  const words = Int32Array.from([1, 1, 20, 0, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0]);
  const viewer = { drawing: () => ({ words, text: new Uint8Array() }), onFrame: () => undefined };
  const log: string[] = [];
  const painter = new Painter(viewer as unknown as Viewer, {
    window: (key) => void log.push(`window ${key}`),
    gone: (key) => void log.push(`gone ${key}`),
  });
  painter.paint(0);
  painter.paint(16);
  expect(log.splice(0)).toEqual(["window 1/0/20"]);
  painter.forget();
  painter.paint(33);
  expect(log).toEqual(["gone 1/0/20", "window 1/0/20"]);
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { start } from "../src/page.js";
import { FakeWorker, openPage } from "./dom.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A page that is a session's display. */
async function display() {
  const page = openPage("control,wf1:x");
  await start();
  FakeWorker.last.hear({ kind: "state", state: "shown" });
  return { ...page, worker: FakeWorker.last };
}

test("regression: after a fault of the worker the page held its session", async () => {
  const { document, worker } = await display();
  worker.orders.length = 0;
  worker.onerror?.();
  expect(worker.orders).toContainEqual({ kind: "leave" });
  // That it has left is not how it ended.
  worker.hear({ kind: "state", state: "done" });
  expect(document.documentElement.dataset).toEqual({ state: "broken" });
  // Leaving may fail as well.
  worker.orders.length = 0;
  worker.onerror?.();
  expect([worker.orders, worker.isEnded]).toEqual([[], false]);
  vi.runAllTimers();
  expect(worker.isEnded).toBe(true);
});

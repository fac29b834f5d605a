import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { start } from "../src/page.js";
import type { Input } from "../src/talk.js";
import { FakeWorker, openPage } from "./dom.js";
import { pasted } from "./fakes.js";

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
  const worker = FakeWorker.last;
  /** What the worker was told since the last call that a user did. */
  const inputs = (): Input[] =>
    worker.orders.splice(0).flatMap((order) => (order.kind === "input" ? [order.input] : []));
  return { ...page, worker, inputs };
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

test("a program's picture is known to be its own until the window loses the focus", async () => {
  const { element, window, worker, inputs } = await display();
  const picture = new Blob([], { type: "image/png" });
  worker.hear({ kind: "copied", clip: { kind: "picture", picture } });
  await vi.advanceTimersByTimeAsync(0);
  const isNew = () => {
    element("field").say("paste", { clipboardData: pasted("", picture) });
    return inputs().flatMap((input) => (input.kind === "offer" ? [input.isNew] : []));
  };
  inputs();
  expect(isNew()).toEqual([false]);
  window.dispatchEvent(new Event("blur"));
  expect(isNew()).toEqual([true]);
});

test("regression: a mouse's side buttons left the page as well", async () => {
  const { element } = await display();
  const isLeft = ["mousedown", "mouseup", "auxclick", "contextmenu"].map((kind) =>
    element("windows").say(kind, { button: 3 }),
  );
  expect(isLeft).toEqual([false, false, false, false]);
});

test("regression: a screen reader read each round-trip time aloud", async () => {
  const html = readFileSync(new URL("../index.html", import.meta.url), "utf8");
  const live = '<output id="state" aria-live="polite"></output>';
  expect(html).toContain(`<span id="badge">${live}<span id="link"></span></span>`);
  const { element, worker } = await display();
  for (const rtt of [12, 12.4, 13]) {
    worker.hear({ kind: "figures", carrier: "WebSocket", rtt, lost: undefined });
  }
  worker.hear({ kind: "state", state: "shown" });
  worker.hear({ kind: "figures", carrier: "WebTransport", rtt: undefined, lost: undefined });
  worker.hear({ kind: "state", state: "away" });
  expect(element("state").said).toEqual(["", "connecting …", "connected", "no connection"]);
  const told = [" · WebSocket · 12 ms", " · WebSocket · 13 ms", "", " · WebTransport", ""];
  expect(element("link").said).toEqual(["", ...told]);
});

test("what the link loses is told, as far as it can be known", async () => {
  const { element, worker } = await display();
  worker.hear({ kind: "state", state: "shown" });
  for (const lost of [undefined, 0, 0.0341, 1.25, 12.7]) {
    worker.hear({ kind: "figures", carrier: "WebTransport", rtt: 20, lost });
  }
  const told = ["", " · 0 % lost", " · 0.03 % lost", " · 1.3 % lost", " · 13 % lost"];
  expect(element("link").said.filter((said) => said !== "")).toEqual(
    told.map((share) => ` · WebTransport · 20 ms${share}`),
  );
});

test("regression: the page kept the first title of its window", async () => {
  const { document, element, worker, inputs } = await display();
  const rect = { x: 0, y: 0, width: 1, height: 1 };
  const look = { parent: undefined, app: "editor", geometry: rect, extent: rect };
  const called = () => [document.title, element("field").attributes.get("aria-label")];
  worker.hear({ kind: "window", key: "1/0/1", look: { ...look, title: "a" } });
  expect(called()).toEqual(["a – Wayferry", "Keys go to a"]);
  worker.hear({ kind: "window", key: "1/0/1", look: { ...look, title: "b" } });
  expect(called()).toEqual(["b – Wayferry", "Keys go to b"]);
  // The focus is told once.
  expect(inputs().filter(({ kind }) => kind === "focus")).toEqual([{ kind: "focus", key: "1/0/1" }]);
  worker.hear({ kind: "window", key: "1/0/2", look: { ...look, title: "b" } });
  expect(inputs().filter(({ kind }) => kind === "focus")).toEqual([{ kind: "focus", key: "1/0/2" }]);
  worker.hear({ kind: "gone", key: "1/0/2" });
  worker.hear({ kind: "gone", key: "1/0/1" });
  expect(called()).toEqual(["Wayferry", "Keys go to the session"]);
});

import { expect, test } from "vitest";
import { Area, type Size } from "../src/area.js";
import { noticeOf } from "../src/notices.js";
import { Stack } from "../src/stack.js";
import type { State } from "../src/talk.js";
import { readLink } from "../src/ticket.js";
import { FakeTimers } from "./fakes.js";

test("an area is told at once, and then when it has rested", () => {
  const [timers, told] = [new FakeTimers(), [] as Size[]];
  const area = new Area((size) => told.push(size), timers);
  area.see(800.6, 600, 1.25);
  expect(told.splice(0)).toEqual([{ width: 800, height: 600, scale: 150 }]);
  for (const width of [810, 820, 830]) {
    area.see(width, 600, 1.25);
    timers.pass(99);
  }
  expect(told).toEqual([]);
  timers.pass(1);
  expect(told.splice(0)).toEqual([{ width: 830, height: 600, scale: 150 }]);
  area.see(0, 99_999, 1.25);
  area.see(830, 600, 1.25);
  timers.pass(100);
  expect(told).toEqual([]);
  area.again();
  expect(told).toEqual([{ width: 830, height: 600, scale: 150 }]);
});

test("regression: behind a notice the area had one pixel, with which the next try began", () => {
  const [timers, told] = [new FakeTimers(), [] as Size[]];
  const area = new Area((size) => told.push(size), timers);
  area.see(800, 600, 1);
  area.see(0, 0, 1);
  timers.pass(100);
  area.again();
  expect(told.map(({ width, height }) => [width, height])).toEqual([
    [800, 600],
    [800, 600],
  ]);
});

test("a new window comes to the front, a dialog of a tab behind waits there", () => {
  const stack = new Stack();
  expect([stack.front, stack.focus]).toEqual([undefined, undefined]);
  stack.set("a", undefined);
  stack.set("b", undefined);
  expect([stack.front, stack.focus, stack.tabs]).toEqual(["b", "b", ["a", "b"]]);
  stack.set("dialog", "a");
  expect([stack.front, stack.focus, stack.top("a"), stack.tabOf("dialog")]).toEqual([
    "b",
    "b",
    "dialog",
    "a",
  ]);
  stack.raise(stack.top("a"));
  expect([stack.front, stack.focus]).toEqual(["a", "dialog"]);
  stack.raise("a");
  expect([stack.focus, stack.height("dialog") > stack.height("a")]).toEqual(["a", true]);
  stack.remove("a");
  // A dialog of nothing is a tab.
  expect([stack.front, stack.tabs]).toEqual(["dialog", ["b", "dialog"]]);
});

test("windows that are each other's dialogs are borne", () => {
  const stack = new Stack();
  stack.set("a", "b");
  stack.set("b", "a");
  stack.set("c", "c");
  expect([stack.front, stack.focus].every((key) => key !== undefined)).toBe(true);
  expect(stack.height("c")).toBeGreaterThan(0);
});

test("a link may ask for control", () => {
  expect(readLink("control,wf1:x")).toEqual({ control: true, ticket: "wf1:x" });
  expect(readLink("wf1:x")).toEqual({ control: false, ticket: "wf1:x" });
});

/** Whether the page has nothing to show in a state. */
const ENDS: Record<State, boolean> = {
  connecting: false,
  shown: false,
  away: false,
  insecure: true,
  "no link": true,
  unserved: true,
  "no transport": true,
  unreachable: true,
  refused: true,
  full: true,
  incompatible: true,
  done: true,
  taken: true,
  revoked: true,
  forgotten: true,
  lost: true,
  broken: true,
};

test("all that ends is told, with what can be done", () => {
  for (const [state, ends] of Object.entries(ENDS)) {
    const notice = noticeOf(state as State);
    expect(notice !== undefined, state).toBe(ends);
    if (notice !== undefined) {
      expect([notice.text, ...notice.ways].join(" "), state).toMatch(
        /ask for another|Ask |Copy |Open |Serve /,
      );
    }
  }
  expect(noticeOf("refused")?.text).toMatch(/used.*time is over.*taken back/);
  const retried = (["unserved", "no transport", "unreachable"] as const).map(
    (state) => noticeOf(state)?.canRetry,
  );
  expect([...retried, noticeOf("lost")?.canRetry]).toEqual([true, true, true, false]);
  expect(noticeOf("unreachable")?.ways.join()).toContain("UDP");
  expect(noticeOf("insecure")?.ways.join()).toMatch(/localhost.*HTTPS/s);
  expect([noticeOf("shown"), noticeOf("connecting")]).toEqual([undefined, undefined]);
});

import { expect, test } from "vitest";
import { Outbox } from "../src/input/outbox.js";
import { type Ground, Pointer, type PointerLike, type Spot } from "../src/input/pointer.js";
import type { Point } from "../src/input/touch.js";
import { FakeTimers, FakeViewer, random } from "./fakes.js";

/** Two windows of 100 × 100 beside each other. */
const GROUND: Ground = {
  find({ x, y }: Point, held: string | undefined): Spot | undefined {
    const low = held === undefined ? Math.floor(x / 100) + 1 : Number(held);
    const isInside = held !== undefined || (y >= 0 && y < 100 && (low === 1 || low === 2));
    return isInside ? { key: `${low}`, x: x - (low - 1) * 100, y, zoom: 2 } : undefined;
  },
  pressed() {},
};

function begin() {
  const [viewer, timers] = [new FakeViewer(), new FakeTimers()];
  const pointer = new Pointer(GROUND, viewer.tell, timers);
  const mouse = (type: string, x: number, y: number, buttons = 0) =>
    pointer.on({ type, pointerId: 1, pointerType: "mouse", clientX: x, clientY: y, buttons });
  const finger = (type: string, pointerId: number, x: number, y: number) =>
    pointer.on({ type, pointerId, pointerType: "touch", clientX: x, clientY: y, buttons: 1 });
  const wheel = (deltaY: number, deltaMode: number, wheelDeltaY?: number) =>
    pointer.wheel({
      ...{ clientX: 5, clientY: 5, deltaX: 0, deltaY, deltaMode },
      ...(wheelDeltaY === undefined ? {} : { wheelDeltaY }),
    });
  return { pointer, viewer, timers, mouse, finger, wheel };
}

test("buttons are told in their window, also those that go down while another is", () => {
  const { viewer, mouse } = begin();
  mouse("pointermove", 10, 20);
  mouse("pointerrawupdate", 10, 20);
  mouse("pointerdown", 10, 20, 1);
  mouse("pointermove", 150, 20, 3);
  mouse("pointermove", 150, 20, 2);
  mouse("pointerup", 150, 300, 0);
  mouse("pointermove", 150, 20);
  mouse("pointerleave", 150, 300);
  expect(viewer.take()).toBe("1:10,20 +110 1:150,20 +111 -110 1:150,300 -111 2:50,20 leave");
});

test("a button that went down elsewhere is none of the windows'", () => {
  const { pointer, viewer, mouse } = begin();
  mouse("pointermove", 10, 20, 1);
  mouse("pointerdown", 10, 20, 5);
  expect(viewer.take()).toBe("1:10,20 +112");
  pointer.blur();
  viewer.tell({ kind: "blur" });
  mouse("pointermove", 10, 30, 5);
  mouse("pointerup", 10, 30, 0);
  mouse("pointerdown", 10, 30, 1);
  expect(viewer.take()).toBe("blur 1:10,30 +110");
});

test("steps of a wheel are 120 each, in each unit of browsers", () => {
  const { viewer, timers, wheel } = begin();
  wheel(100, 0, -120);
  wheel(-3, 1);
  wheel(1, 2);
  expect(viewer.take()).toBe("1:5,5 wheel(0,15,0,120) wheel(0,-15,0,-120) wheel(0,15,0,120)");
  wheel(9, 0, -27);
  timers.pass(100);
  wheel(6, 0);
  timers.pass(149);
  expect(viewer.take()).toBe("wheel(0,4.5,0,0) wheel(0,3,0,0)");
  timers.pass(1);
  expect(viewer.take()).toBe("wheel(0,0,0,0)");
});

test("a finger taps, drags or rests", () => {
  const { viewer, timers, finger } = begin();
  finger("pointerdown", 1, 10, 10);
  finger("pointermove", 1, 12, 10);
  expect(viewer.take()).toBe("");
  finger("pointerup", 1, 12, 10);
  expect(viewer.take()).toBe("1:10,10 +110 -110");
  finger("pointerdown", 1, 10, 10);
  finger("pointermove", 1, 30, 10);
  finger("pointermove", 1, 130, 10);
  finger("pointerup", 1, 130, 10);
  expect(viewer.take()).toBe("+110 1:30,10 1:130,10 -110");
  finger("pointerdown", 1, 10, 10);
  timers.pass(600);
  finger("pointerup", 1, 10, 10);
  expect(viewer.take()).toBe("1:10,10 +111 -111");
});

test("two fingers scroll, and click nowhere", () => {
  const { viewer, timers, finger } = begin();
  finger("pointerdown", 1, 10, 50);
  finger("pointerdown", 2, 40, 50);
  finger("pointermove", 1, 10, 30);
  finger("pointermove", 2, 40, 30);
  expect(viewer.take()).toBe("1:40,50 wheel(0,5,0,0) wheel(0,5,0,0)");
  finger("pointerup", 1, 10, 30);
  finger("pointermove", 2, 40, 10);
  finger("pointercancel", 2, 40, 10);
  timers.pass(1000);
  expect(viewer.take()).toBe("wheel(0,0,0,0)");
});

test("with any events of pointers, each press is followed by one release", () => {
  const kinds = ["down", "move", "move", "up", "cancel", "leave", "rawupdate"];
  for (let seed = 0; seed < 300; seed += 1) {
    const pick = random(seed);
    const { pointer, viewer, timers } = begin();
    for (let step = 0; step < 60; step += 1) {
      const event: PointerLike = {
        type: `pointer${kinds[pick(kinds.length)]}`,
        pointerId: pick(3),
        pointerType: pick(2) === 0 ? "touch" : "mouse",
        clientX: pick(250),
        clientY: pick(120),
        buttons: pick(3) === 0 ? pick(32) : 0,
      };
      pointer.on(event);
      if (pick(9) === 0) {
        pointer.blur();
        viewer.tell({ kind: "blur" });
      }
      timers.pass(pick(300));
    }
    for (const pointerId of [0, 1, 2]) {
      pointer.on({
        ...{ type: "pointercancel", pointerId, pointerType: "touch" },
        ...{ clientX: 0, clientY: 0, buttons: 0 },
      });
    }
    pointer.on({
      ...{ type: "pointerup", pointerId: 1, pointerType: "mouse" },
      ...{ clientX: 0, clientY: 0, buttons: 0 },
    });
    expect([seed, ...viewer.down]).toEqual([seed]);
  }
});

test("of motions the latest goes once the one before was taken, and all else in order", () => {
  const viewer = new FakeViewer();
  const outbox = new Outbox(viewer.tell);
  const move = (x: number) => outbox.send({ kind: "move", key: "1", x, y: 0 });
  [1, 2, 3].forEach(move);
  expect(viewer.take()).toBe("1:1,0");
  outbox.taken();
  expect(viewer.take()).toBe("1:3,0");
  move(4);
  outbox.send({ kind: "button", code: 0x110, pressed: true });
  move(5);
  outbox.taken();
  expect(viewer.take()).toBe("1:4,0 +110");
  outbox.taken();
  expect(viewer.take()).toBe("1:5,0");
});

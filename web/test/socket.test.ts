import { expect, test, vi } from "vitest";
import { type Opened, open, proofOf, Socket, type Told } from "../src/socket.js";
import type { Next } from "../src/viewer.js";
import { FakeLine } from "./line.js";

/** Notes what it is told. */
class FakeViewer implements Told {
  readonly told: unknown[] = [];
  readonly wants: Next[] = [];
  readonly asked: number[] = [];

  socketBegin(): void {
    this.told.push("begin");
  }

  socketData(bytes: Uint8Array): void {
    this.told.push([...bytes]);
  }

  socketPoll(buffered: number): Next {
    this.asked.push(buffered);
    return this.wants.shift() ?? { kind: "nothing" };
  }

  lost(): void {
    this.told.push("lost");
  }
}

const PROOF = { shown: new Uint8Array([1, 2]), answer: new Uint8Array([3, 4]) };

function socket(opened: Partial<Opened> = {}) {
  const [line, viewer, onNews] = [new FakeLine(), new FakeViewer(), vi.fn()];
  return {
    line,
    viewer,
    onNews,
    socket: new Socket({ line, heard: [], isOver: false, ...opened }, viewer, onNews),
  };
}

test("a page shows its ticket first, and is heard once the server has shown it, too", async () => {
  const line = new FakeLine();
  const opened = open(line, PROOF);
  expect(line.binaryType).toBe("arraybuffer");
  line.onopen?.();
  expect(line.sent).toEqual([[1, 2]]);
  line.hear(3, 4);
  line.hear(5);
  expect(await opened).toEqual({ line, heard: [new Uint8Array([5])], isOver: false });
  line.onclose?.();
  expect((await opened).isOver).toBe(true);
});

test("a server that does not show the ticket is left", async () => {
  for (const answer of [[3, 5], [3], [3, 4, 0], []]) {
    const line = new FakeLine();
    const opened = open(line, PROOF);
    line.hear(...answer);
    await expect(opened).rejects.toThrow();
    expect(line.closes).toBe(1);
  }
});

test("a line that ends before the session was there is none", async () => {
  const line = new FakeLine();
  const opened = open(line, PROOF);
  line.onopen?.();
  line.onclose?.();
  await expect(opened).rejects.toThrow();
});

test("what is shown and answered is made of the ticket and of a number that is new each time", async () => {
  const [first, second] = [await proofOf("wf1:abc"), await proofOf("wf1:abc")];
  expect(first.shown.slice(0, 32)).toEqual(second.shown.slice(0, 32));
  expect(first.shown.slice(32)).not.toEqual(second.shown.slice(32));
  expect(first.answer).not.toEqual(second.answer);
  const number = first.shown.slice(32);
  const text = new TextEncoder();
  const said = [...text.encode("wayferry socket 1 server\n"), ...number, ...text.encode("wf1:abc")];
  const answer = await crypto.subtle.digest("SHA-256", new Uint8Array(said));
  expect(first.answer).toEqual(new Uint8Array(answer));
  expect((await proofOf("wf1:abd")).shown.slice(0, 32)).not.toEqual(first.shown.slice(0, 32));
});

test("what is heard reaches the viewer in order, what came before first", () => {
  const { line, viewer, onNews } = socket({ heard: [new Uint8Array([1]), new Uint8Array([2])] });
  line.hear(3, 4);
  line.onmessage?.({ data: "text" });
  expect(viewer.told).toEqual(["begin", [1], [2], [3, 4], []]);
  expect(onNews).toHaveBeenCalledTimes(4);
});

test("what the viewer wants sent is sent until there is nothing more", () => {
  const { line, viewer, socket: it } = socket();
  viewer.wants.push(
    { kind: "bytes", bytes: new Uint8Array([1]) },
    { kind: "bytes", bytes: new Uint8Array([2]) },
  );
  line.bufferedAmount = 7;
  it.pump();
  expect(line.sent).toEqual([[1], [2]]);
  expect(viewer.asked).toEqual([7, 7, 7]);
});

test("where the browser has enough to send, it is asked again a little later", () => {
  vi.useFakeTimers();
  const { line, viewer, socket: it } = socket();
  viewer.wants.push({ kind: "wait" }, { kind: "bytes", bytes: new Uint8Array([1]) });
  it.pump();
  expect(line.sent).toEqual([]);
  vi.runAllTimers();
  expect(line.sent).toEqual([[1]]);
  vi.useRealTimers();
});

test("the line is closed behind the viewer's last words, and nothing is told after that", () => {
  const { line, viewer, socket: it } = socket();
  viewer.wants.push(
    { kind: "last", bytes: new Uint8Array([9]) },
    { kind: "bytes", bytes: new Uint8Array([1]) },
  );
  it.pump();
  line.hear(1);
  line.onclose?.();
  it.pump();
  expect([line.sent, line.closes, viewer.told]).toEqual([[[9]], 1, ["begin"]]);
});

test("a line that ends is a lost link, told once", () => {
  const { line, viewer, onNews } = socket();
  line.onclose?.();
  line.onclose?.();
  line.hear(1);
  expect(viewer.told).toEqual(["begin", "lost"]);
  expect(onNews).toHaveBeenCalledTimes(1);
  expect(socket({ isOver: true }).viewer.told).toEqual(["begin", "lost"]);
});

test("of a line that is abandoned nothing is told, and it is closed", () => {
  vi.useFakeTimers();
  const { line, viewer, socket: it } = socket();
  viewer.wants.push({ kind: "wait" });
  it.pump();
  it.abandon();
  line.hear(1);
  line.onclose?.();
  vi.runAllTimers();
  expect([viewer.told, viewer.asked.length, line.closes]).toEqual([["begin"], 1, 1]);
  vi.useRealTimers();
});

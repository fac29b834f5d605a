import { expect, test, vi } from "vitest";
import { type Carried, Carrier, type Transport } from "../src/carrier.js";
import type { Bytes, Transmit } from "../src/viewer.js";

/** A link that hands over what it is given. */
class FakeTransport implements Transport {
  readonly opened: { order: number; bytes: number[]; end: string }[] = [];
  readonly sent: Bytes[] = [];
  readonly incomingUnidirectionalStreams: ReadableStream<ReadableStream<Uint8Array>>;
  readonly datagrams: Transport["datagrams"];
  readonly closed: Promise<{ closeCode?: number; reason?: string }>;
  readonly closes: unknown[] = [];
  /** Streams that are refused from now on. */
  refuses = 0;
  streams!: ReadableStreamDefaultController<ReadableStream<Uint8Array>>;
  heard!: ReadableStreamDefaultController<Uint8Array>;
  end!: { close(info: { closeCode?: number; reason?: string }): void; lose(): void };

  constructor() {
    this.incomingUnidirectionalStreams = new ReadableStream({
      start: (control) => {
        this.streams = control;
      },
    });
    const readable = new ReadableStream<Uint8Array>({
      start: (control) => {
        this.heard = control;
      },
    });
    const writable = new WritableStream<Bytes>({ write: (bytes) => void this.sent.push(bytes) });
    this.datagrams = { readable, writable };
    this.closed = new Promise((close, lose) => {
      this.end = { close, lose: () => lose(new Error("gone")) };
    });
  }

  async createUnidirectionalStream({ sendOrder }: { sendOrder: number }): Promise<WritableStream<Bytes>> {
    if (this.refuses > 0) {
      this.refuses -= 1;
      throw new Error("no more streams");
    }
    const stream = { order: sendOrder, bytes: [] as number[], end: "" };
    this.opened.push(stream);
    return new WritableStream({
      write: (bytes) => void stream.bytes.push(...bytes),
      close: () => {
        stream.end = "finished";
      },
      abort: (reason) => {
        stream.end = `reset ${reason}`;
      },
    });
  }

  close(info: { closeCode: number; reason: string }): void {
    this.closes.push(info);
  }
}

/** Notes what it is told. */
class FakeViewer implements Carried {
  readonly told: unknown[] = [];
  readonly wants: Transmit[] = [];
  most = 0;
  unsentNow = 0;

  streamData(stream: number, offset: number, bytes: Uint8Array): void {
    this.told.push(["data", stream, offset, [...bytes]]);
  }
  streamFinished(stream: number, length: number): void {
    this.told.push(["finished", stream, length]);
  }
  streamReset(stream: number, code: number): void {
    this.told.push(["reset", stream, code]);
  }
  streamStopped(stream: number, code: number): void {
    this.told.push(["stopped", stream, code]);
  }
  datagram(bytes: Uint8Array): void {
    this.told.push(["datagram", [...bytes]]);
  }
  closed(code: number, reason: string): void {
    this.told.push(["closed", code, reason]);
  }
  lost(): void {
    this.told.push(["lost"]);
  }
  unsent(bytes: number): void {
    this.most = Math.max(this.most, bytes);
    this.unsentNow = bytes;
  }
  pollTransmit(): Transmit | undefined {
    return this.wants.shift();
  }
}

function begin() {
  const [transport, viewer] = [new FakeTransport(), new FakeViewer()];
  let news = 0;
  const carrier = new Carrier(transport, viewer, () => {
    news += 1;
  });
  const settle = () => new Promise((done) => setTimeout(done));
  return { transport, viewer, carrier, settle, news: () => news };
}

const bytes = (...values: number[]): Bytes => Uint8Array.from(values);

test("streams are opened in order, written and ended", async () => {
  const { transport, viewer, carrier, settle } = begin();
  viewer.wants.push(
    { kind: "open", stream: 0, priority: 7 },
    { kind: "open", stream: 1, priority: 5 },
    { kind: "data", stream: 1, bytes: bytes(9), finish: false },
    { kind: "data", stream: 0, bytes: bytes(1, 2), finish: false },
    { kind: "data", stream: 0, bytes: bytes(3), finish: true },
    { kind: "reset", stream: 1, code: 4 },
    { kind: "datagram", bytes: bytes(8) },
    { kind: "data", stream: 77, bytes: bytes(1), finish: true },
  );
  carrier.pump();
  expect(viewer.most).toBe(5);
  await settle();
  expect(transport.opened).toEqual([
    { order: 7, bytes: [1, 2, 3], end: "finished" },
    { order: 5, bytes: [9], end: "reset 4" },
  ]);
  expect(transport.sent).toEqual([bytes(8)]);
});

test("what waited for room goes on when bytes have left", async () => {
  const { viewer, carrier, settle, news } = begin();
  viewer.wants.push(
    { kind: "open", stream: 0, priority: 7 },
    { kind: "data", stream: 0, bytes: bytes(1, 2), finish: false },
  );
  carrier.pump();
  expect([viewer.unsentNow, news()]).toEqual([2, 0]);
  await settle();
  expect([viewer.unsentNow, news()]).toEqual([0, 1]);
});

test("a stream that is refused for now is opened later, and none before it", async () => {
  vi.useFakeTimers();
  try {
    const { transport, viewer, carrier } = begin();
    transport.refuses = 12;
    viewer.wants.push(
      { kind: "open", stream: 0, priority: 7 },
      { kind: "data", stream: 0, bytes: bytes(1, 2), finish: true },
      { kind: "open", stream: 1, priority: 5 },
      { kind: "data", stream: 1, bytes: bytes(9), finish: true },
    );
    carrier.pump();
    await vi.advanceTimersByTimeAsync(1);
    expect(transport.opened).toEqual([]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(transport.opened).toEqual([
      { order: 7, bytes: [1, 2], end: "finished" },
      { order: 5, bytes: [9], end: "finished" },
    ]);
  } finally {
    vi.useRealTimers();
  }
});

test("what is refused is not tried again when the link is over", async () => {
  vi.useFakeTimers();
  try {
    const { transport, viewer, carrier } = begin();
    transport.refuses = Number.POSITIVE_INFINITY;
    viewer.wants.push({ kind: "open", stream: 0, priority: 7 });
    carrier.pump();
    await vi.advanceTimersByTimeAsync(1000);
    transport.end.lose();
    await vi.runAllTimersAsync();
    expect(viewer.told).toEqual([["lost"]]);
  } finally {
    vi.useRealTimers();
  }
});

test("what arrives is told in order, with its end", async () => {
  const { transport, viewer, settle, news } = begin();
  const stopped = { source: "stream", streamErrorCode: 6 };
  transport.streams.enqueue(
    new ReadableStream({
      start(control) {
        control.enqueue(bytes(1, 2));
        control.enqueue(bytes(3));
        control.close();
      },
    }),
  );
  transport.streams.enqueue(new ReadableStream({ start: (control) => control.error(stopped) }));
  transport.heard.enqueue(bytes(5));
  await settle();
  expect(viewer.told).toEqual(
    expect.arrayContaining([
      ["data", 0, 0, [1, 2]],
      ["data", 0, 2, [3]],
      ["finished", 0, 3],
      ["reset", 1, 6],
      ["datagram", [5]],
    ]),
  );
  expect(news()).toBe(5);
});

test("a stream that was stopped is told of no more", async () => {
  const { transport, viewer, carrier, settle } = begin();
  let cancelled: unknown;
  let feed!: ReadableStreamDefaultController<Uint8Array>;
  transport.streams.enqueue(
    new ReadableStream<Uint8Array>({
      start: (control) => {
        feed = control;
      },
      cancel: (reason) => {
        cancelled = reason;
      },
    }),
  );
  feed.enqueue(bytes(1));
  await settle();
  viewer.wants.push({ kind: "stop", stream: 0, code: 3 });
  carrier.pump();
  await settle();
  expect(cancelled).toBe(3);
  expect(viewer.told).toEqual([["data", 0, 0, [1]]]);
});

/** The constructor that documents have now, and Firefox. */
class LaterError {
  readonly streamErrorCode: number | undefined;

  constructor(_message: string, options: { streamErrorCode?: number }) {
    this.streamErrorCode = options.streamErrorCode;
  }
}

/** The one of Chromium, which takes no text. */
class EarlierError {
  readonly streamErrorCode: number | undefined;

  constructor(init: { streamErrorCode?: number }) {
    if (typeof init !== "object") {
      throw new TypeError("not of type 'WebTransportErrorInit'");
    }
    this.streamErrorCode = init.streamErrorCode;
  }
}

test.each([LaterError, EarlierError])(
  "a stream is given up with a code by the constructor that a browser has",
  async (kind) => {
    vi.stubGlobal("WebTransportError", kind);
    try {
      const { transport, viewer, carrier, settle } = begin();
      const ends: unknown[] = [];
      transport.streams.enqueue(
        new ReadableStream({ cancel: (reason) => void ends.push(reason.streamErrorCode) }),
      );
      await settle();
      viewer.wants.push({ kind: "stop", stream: 0, code: 3 });
      viewer.wants.push({ kind: "datagram", bytes: bytes(4) });
      carrier.pump();
      await settle();
      expect(ends).toEqual([3]);
      expect(transport.sent).toEqual([bytes(4)]);
    } finally {
      vi.unstubAllGlobals();
    }
  },
);

test("the end is told once, and nothing after it", async () => {
  const { transport, viewer, settle } = begin();
  transport.end.close({ closeCode: 6, reason: "why" });
  await settle();
  transport.heard.enqueue(bytes(5));
  await settle();
  expect(viewer.told).toEqual([["closed", 6, "why"]]);
  const other = begin();
  other.transport.end.lose();
  await other.settle();
  expect(other.viewer.told).toEqual([["lost"]]);
});

test("a viewer that closes says why", async () => {
  const { transport, viewer, carrier, settle } = begin();
  viewer.wants.push({ kind: "close", code: 0, reason: "" }, { kind: "open", stream: 0, priority: 1 });
  carrier.pump();
  transport.end.close({ closeCode: 0, reason: "" });
  await settle();
  expect(transport.closes).toEqual([{ closeCode: 0, reason: "" }]);
  expect([transport.opened, viewer.told]).toEqual([[], []]);
});

test("a link that is given up is closed as a lost one, and the viewer hears nothing more of it", async () => {
  const { transport, viewer, carrier, settle, news } = begin();
  carrier.abandon();
  transport.heard.enqueue(bytes(1));
  transport.end.lose();
  await settle();
  expect(transport.closes).toEqual([{ closeCode: 7, reason: "another link is looked for" }]);
  expect([viewer.told, news()]).toEqual([[], 0]);
  carrier.abandon();
  expect(transport.closes.length).toBe(1);
});

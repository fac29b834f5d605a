import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Heard, Hearing } from "../src/sound/hearing.js";
import { Sound } from "../src/sound/sound.js";
import { type Ask, MOST, Store } from "../src/sound/store.js";
import type { Order } from "../src/talk.js";
import type { Bytes, Encoded } from "../src/viewer.js";

afterEach(() => vi.unstubAllGlobals());

/** Blocks of so many frames, counted from a number on. */
function frames(from: number, count: number): Float32Array {
  return Float32Array.from({ length: 2 * count }, (_, at) => (at % 2 === 0 ? 1 : -1) * (from + (at >> 1)));
}

function play(store: Store, count = 128): [number[], number[]] {
  const [left, right] = [new Float32Array(count), new Float32Array(count)];
  store.play(left, right);
  return [[...left], [...right]];
}

test("a store plays both channels in order, and asks one question at a time", () => {
  const asked: Ask[] = [];
  const store = new Store((ask) => asked.push(ask));
  play(store);
  expect(asked).toEqual([{ held: 0, spare: 0, missed: 128 }]);
  for (let quantum = 0; quantum < 100; quantum += 1) {
    play(store);
  }
  expect(asked).toHaveLength(1);
  store.take(frames(1, 1000));
  const [left, right] = play(store);
  expect([left[0], left[127], right[127]]).toEqual([1, 128, -128]);
  expect(asked[1]).toEqual({ held: 872, spare: 0, missed: 12_800 });
  store.take(new Float32Array(0));
  play(store);
  play(store);
  expect(asked).toHaveLength(2);
  play(store);
  expect(asked[2]).toEqual({ held: 488, spare: 488, missed: 0 });
});

test("what breaks off fades, and of too much the oldest goes", () => {
  const asked: Ask[] = [];
  const store = new Store((ask) => asked.push(ask));
  store.take(frames(1, 2));
  const [left] = play(store, 500);
  expect(left.slice(0, 2)).toEqual([1, 2]);
  expect(left.every((sample, at) => at < 2 || Math.abs(sample) < Math.abs(left[at - 1] ?? 0))).toBe(true);
  expect(left[499]).toBeLessThan(0.001);
  expect(asked[0]?.missed).toBe(498);
  store.take(frames(1, MOST));
  store.take(frames(MOST + 1, 10));
  expect(play(store)[0][0]).toBe(11);
});

/** Has payloads to decode, and takes what is told as a viewer does. */
class FakeViewer implements Heard {
  readonly told: string[] = [];
  readonly payloads: Encoded[] = [];
  #count = 0;
  answer: Float32Array<ArrayBuffer> | undefined;

  /** These samples are to be decoded. */
  give(...samples: number[]): void {
    for (const sample of samples) {
      this.#count += 1;
      this.payloads.push({ number: this.#count, data: new Uint8Array([sample]) });
    }
  }

  listen = (codec: number) => void this.told.push(`listen ${codec}`);
  pollEncoded = () => this.payloads.shift();
  decoded = (number: number, samples: Float32Array) => void this.told.push(`${number} is ${[...samples]}`);
  undecoded = () => void this.told.push("undecoded");
  askSound = (ask: Ask, latency: number) => void this.told.push(`ask ${ask.held} ${latency}`);
  answerSound = () => this.answer;
}

/** A port, as far as it is used. */
function loudspeaker() {
  const sent: unknown[] = [];
  const postMessage = (data: unknown) => void sent.push(data);
  return { sent, port: { close: vi.fn(), postMessage, onmessage: null } as unknown as MessagePort };
}

/** A decoder of payloads that are a sample each; 0 is none, and for 99 it gives nothing. */
class FakeDecoder {
  static made = 0;
  /** As Chromium, it counts on from the first timestamp, and does not give each its own. */
  static counts = false;
  static isConfigSupported = async () => ({ supported: true });
  readonly configure = vi.fn();
  readonly #init: AudioDecoderInit;
  #next: number | undefined;
  state = "configured";
  close = vi.fn(() => {
    this.state = "closed";
  });

  constructor(init: AudioDecoderInit) {
    this.#init = init;
    FakeDecoder.made += 1;
  }

  decode({ data, timestamp }: { data: Bytes; timestamp: number }): void {
    const [sample = 0] = data;
    if (sample === 0) {
      this.state = "closed";
      this.#init.error(new DOMException("no payload"));
      return;
    }
    if (sample === 99) {
      return;
    }
    const counted = this.#next ?? timestamp;
    this.#next = counted + 10_000;
    this.#init.output({
      timestamp: FakeDecoder.counts ? counted : timestamp,
      numberOfFrames: 1,
      numberOfChannels: 2,
      copyTo: (to: Float32Array, { planeIndex }: AudioDataCopyToOptions) => to.fill(sample + planeIndex),
      close: () => undefined,
    } as unknown as AudioData);
  }
}

/** A browser with this decoder. */
function stub(decoder: unknown): void {
  vi.stubGlobal("AudioDecoder", decoder);
  const chunk = function (this: object, init: object) {
    Object.assign(this, init);
  };
  vi.stubGlobal("EncodedAudioChunk", chunk);
}

test("a viewer's sound is decoded, and a loudspeaker's questions are answered", async () => {
  stub(FakeDecoder);
  const viewer = new FakeViewer();
  const hearing = new Hearing(viewer, () => hearing.pump());
  const { sent, port: speaker } = loudspeaker();
  await hearing.listen(speaker);
  hearing.latency = 20;
  viewer.give(3);
  viewer.answer = new Float32Array([0.5, 0.5]);
  speaker.onmessage?.({ data: { held: 7, spare: 0, missed: 0 } } as MessageEvent);
  expect(viewer.told).toEqual(["listen 1", "ask 7 20", "1 is 3,4"]);
  expect(sent.at(-1)).toEqual(viewer.answer);
  await hearing.listen(undefined);
  expect(viewer.told.at(-1)).toBe("listen 0");
  expect(speaker.close).toHaveBeenCalled();
});

test("a payload that is none ends its decoder, and there is another one after a while", async () => {
  stub(FakeDecoder);
  const clock = vi.spyOn(performance, "now").mockReturnValue(1000);
  const viewer = new FakeViewer();
  const hearing = new Hearing(viewer, () => undefined);
  FakeDecoder.made = 0;
  viewer.give(0, 1);
  hearing.pump();
  expect([viewer.told, FakeDecoder.made]).toEqual([["undecoded", "undecoded"], 1]);
  clock.mockReturnValue(1500);
  viewer.give(1);
  hearing.pump();
  expect([viewer.told.at(-1), FakeDecoder.made]).toEqual(["3 is 1,2", 2]);
  clock.mockRestore();
});

test("regression: a payload for which nothing is given shifted all sound after it", async () => {
  stub(FakeDecoder);
  const clock = vi.spyOn(performance, "now").mockReturnValue(1000);
  for (const [counts, told] of [
    [false, ["1 is 1,2", "3 is 3,4", "4 is 4,5"]],
    // There it cannot be told until the sound pauses.
    [true, ["1 is 1,2", "2 is 3,4", "3 is 4,5", "undecoded", "5 is 5,6"]],
  ] as const) {
    FakeDecoder.counts = counts;
    const viewer = new FakeViewer();
    const hearing = new Hearing(viewer, () => undefined);
    viewer.give(1, 99, 3, 4);
    hearing.pump();
    if (counts) {
      clock.mockReturnValue(1500);
      viewer.give(5);
      hearing.pump();
    }
    expect(viewer.told).toEqual(told);
  }
  FakeDecoder.counts = false;
  clock.mockRestore();
});

test("regression: a decoder that stopped to answer ended sound until the page was loaded again", async () => {
  stub(FakeDecoder);
  const clock = vi.spyOn(performance, "now").mockReturnValue(1000);
  const viewer = new FakeViewer();
  const hearing = new Hearing(viewer, () => undefined);
  FakeDecoder.made = 0;
  viewer.give(...Array<number>(32).fill(99));
  hearing.pump();
  clock.mockReturnValue(1499);
  hearing.pump();
  expect([viewer.told, FakeDecoder.made]).toEqual([[], 1]);
  clock.mockReturnValue(1500);
  viewer.give(1);
  hearing.pump();
  expect([viewer.told.splice(0), FakeDecoder.made]).toEqual([["undecoded", "33 is 1,2"], 2]);
  viewer.give(99);
  hearing.pump();
  await hearing.listen(undefined);
  viewer.give(2);
  hearing.pump();
  expect([viewer.told, FakeDecoder.made]).toEqual([["undecoded", "listen 0", "35 is 2,3"], 3]);
  clock.mockRestore();
});

test("a browser without a decoder asks for samples", async () => {
  stub(undefined);
  const viewer = new FakeViewer();
  const hearing = new Hearing(viewer, () => undefined);
  await hearing.listen(loudspeaker().port);
  viewer.give(1);
  hearing.pump();
  expect(viewer.told).toEqual(["listen 2", "undecoded"]);
});

/** A browser that lets a page play once it `allows` it. */
class FakeContext extends EventTarget {
  static allows = false;
  /** Who serves the page is there. */
  static isServed = true;
  static last: FakeContext;
  state = "suspended";
  readonly audioWorklet = {
    addModule: async () => {
      if (!FakeContext.isServed) {
        throw new DOMException("no answer", "AbortError");
      }
    },
  };
  readonly destination = {};
  readonly outputLatency = 0.02;

  constructor() {
    super();
    FakeContext.last = this;
  }

  resume = async () => FakeContext.allows && this.set("running");
  suspend = async () => this.set("suspended");
  close = async () => this.set("closed");

  set(state: string): void {
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }
}

/** Lets promises that are due come true. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) {
    await Promise.resolve();
  }
}

let orders: Order[];
let said: string[];
let page: EventTarget;
let button: EventTarget & { hidden: boolean; pressed: string };

beforeEach(() => {
  [FakeContext.allows, FakeContext.isServed] = [false, true];
  [orders, said, page] = [[], [], new EventTarget()];
  const setAttribute = (_: string, value: string) => {
    button.pressed = value;
  };
  const contains = (other: unknown) => other === button;
  button = Object.assign(new EventTarget(), { hidden: true, pressed: "", setAttribute, contains });
  vi.stubGlobal("AudioContext", FakeContext);
  const node = function (this: object) {
    Object.assign(this, { port: { postMessage: () => undefined }, connect: () => undefined });
  };
  vi.stubGlobal("AudioWorkletNode", node);
  vi.stubGlobal("MessageChannel", function (this: object) {
    Object.assign(this, { port1: {}, port2: {} });
  });
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  vi.stubGlobal("navigator", { userActivation: { hasBeenActive: false } });
});

function sound(): Sound {
  const place = button as unknown as HTMLElement;
  return new Sound(
    place,
    (order) => void orders.push(order),
    (text) => void said.push(text),
  );
}

async function happens(on: EventTarget, kind: string): Promise<void> {
  on.dispatchEvent(new Event(kind));
  await settle();
}

/** What the worker was told since the last call. */
function told(): string {
  const brief = (order: Order) => (order.kind === "listen" ? (order.port ? "on" : "off") : order.kind);
  return orders.splice(0).map(brief).join(" ");
}

test("sound begins with the first key or click that the browser takes, and the button turns it off for good", async () => {
  const it = sound();
  await happens(page, "keydown");
  expect(told()).toBe("");
  it.offer(true);
  await settle();
  expect([button.hidden, button.pressed, told()]).toEqual([false, "false", ""]);
  await happens(page, "keydown");
  expect([button.pressed, told()]).toEqual(["false", ""]);
  FakeContext.allows = true;
  await happens(page, "pointerup");
  expect([button.pressed, told()]).toEqual(["true", "on latency"]);
  await happens(button, "click");
  expect([button.pressed, told(), FakeContext.last.state]).toEqual(["false", "off", "suspended"]);
  await happens(page, "keydown");
  expect(told()).toBe("");
  await happens(button, "click");
  expect([button.pressed, told()]).toEqual(["true", "on latency"]);
});

test("while the browser does not play, the page does not listen", async () => {
  FakeContext.allows = true;
  const it = sound();
  it.offer(true);
  await happens(button, "click");
  expect(told()).toBe("on latency");
  FakeContext.last.set("interrupted");
  expect([button.pressed, told()]).toEqual(["false", "off"]);
  FakeContext.last.set("running");
  expect([button.pressed, told()]).toEqual(["true", "on latency"]);
});

test("another worker is told as the one before, and a session without sound has no button", async () => {
  FakeContext.allows = true;
  const it = sound();
  it.offer(true);
  await happens(page, "pointerdown");
  expect(told()).toBe("on latency");
  it.offer(false);
  await settle();
  expect([button.hidden, FakeContext.last.state, told()]).toEqual([true, "suspended", ""]);
  vi.stubGlobal("navigator", { userActivation: { hasBeenActive: true } });
  it.offer(true);
  await settle();
  expect([button.pressed, told()]).toEqual(["true", "on latency"]);
});

test("regression: what plays was fetched with the first click, when the page may be served no more", async () => {
  const it = sound();
  it.offer(true);
  await settle();
  [FakeContext.allows, FakeContext.isServed] = [true, false];
  await happens(page, "keydown");
  expect([button.hidden, button.pressed, told(), said]).toEqual([false, "true", "on latency", []]);
});

test("regression: what could not be fetched was not tried again, and the user was not told", async () => {
  [FakeContext.allows, FakeContext.isServed] = [true, false];
  const it = sound();
  it.offer(true);
  await settle();
  expect([button.hidden, button.pressed, told()]).toEqual([false, "false", ""]);
  expect([said.splice(0).length, FakeContext.last.state]).toEqual([1, "closed"]);
  await happens(page, "keydown");
  expect(said, "only the button tries again").toEqual([]);
  await happens(button, "click");
  expect([said.splice(0).length, button.pressed, told()]).toEqual([1, "false", ""]);
  FakeContext.isServed = true;
  await happens(button, "click");
  expect([said, button.pressed, told()]).toEqual([[], "true", "on latency"]);
});

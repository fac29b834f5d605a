import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { canDecode, Videos, type Watched } from "../src/videos.js";
import type { Bytes, Task } from "../src/viewer.js";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** Has frames to decode, and takes what is told as a viewer does. */
class FakeViewer implements Watched {
  readonly told: string[] = [];
  readonly tasks: Task[] = [];

  /** A frame of this decoder, a key frame if it is the first of it. */
  give(decoder: number, number: number, ...data: number[]): void {
    const isKey = !this.tasks.some((task) => task.decoder === decoder) && number < 10;
    this.tasks.push({ kind: "decode", decoder, frame: { number, isKey, data: new Uint8Array(data) } });
  }

  end(decoder: number): void {
    this.tasks.push({ kind: "end", decoder });
  }

  pollTask = () => this.tasks.shift();
  decodedFrame = (number: number, layout: string, planes: Uint8Array) =>
    void this.told.push(`${number} is ${layout} ${[...planes]}`);
  undecodableFrame = (number: number) => void this.told.push(`not ${number}`);
}

/** Gives the bytes of a frame as its planes; 0 is an error, and for 99 it gives nothing. */
class FakeDecoder {
  static made: FakeDecoder[] = [];
  static format = "I420";
  static supported = true;
  static isConfigSupported = async () => ({ supported: FakeDecoder.supported });
  readonly types: string[] = [];
  readonly closed: number[] = [];
  readonly configure = vi.fn();
  readonly #init: VideoDecoderInit;
  state = "configured";
  close = vi.fn(() => {
    if (this.state === "closed") {
      throw new DOMException("closed twice", "InvalidStateError");
    }
    this.state = "closed";
  });
  constructor(init: VideoDecoderInit) {
    this.#init = init;
    FakeDecoder.made.push(this);
  }

  decode({ type, timestamp, data }: { type: string; timestamp: number; data: Bytes }): void {
    if (this.state === "closed") {
      throw new DOMException("it has failed", "InvalidStateError");
    }
    this.types.push(type);
    if (data[0] === 0 && data.length === 1) {
      this.state = "closed";
      this.#init.error(new DOMException("no frame"));
    } else if (data[0] !== 99) {
      const planes = data.length > 40 ? sample() : data;
      this.#init.output({
        timestamp,
        format: FakeDecoder.format,
        allocationSize: () => planes.length,
        copyTo: async (to: Bytes) => to.set(planes),
        close: () => this.closed.push(timestamp),
      } as unknown as VideoFrame);
    }
  }
}

/** What the sample is, decoded. */
function sample(): Bytes {
  return new Uint8Array(384).fill(126, 0, 256).fill(96, 256, 320).fill(157, 320);
}

beforeEach(() => {
  [FakeDecoder.made, FakeDecoder.format, FakeDecoder.supported] = [[], "I420", true];
  vi.stubGlobal("VideoDecoder", FakeDecoder);
  vi.stubGlobal("EncodedVideoChunk", function (this: object, init: object) {
    Object.assign(this, init);
  });
});

/** Lets promises that are due come true. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) {
    await Promise.resolve();
  }
}

test("frames of each video go to a decoder of its own, and their planes come back", async () => {
  const viewer = new FakeViewer();
  const news = vi.fn();
  const videos = new Videos(viewer, news);
  viewer.give(1, 1, 10, 11);
  viewer.give(2, 2, 20);
  viewer.give(1, 3, 12);
  videos.pump();
  await settle();
  expect(viewer.told).toEqual(["1 is I420 10,11", "2 is I420 20", "3 is I420 12"]);
  expect(news).toHaveBeenCalledTimes(3);
  const [one, two] = FakeDecoder.made;
  expect([FakeDecoder.made.length, one?.types, two?.types]).toEqual([2, ["key", "delta"], ["key"]]);
  expect([one?.closed, two?.closed], "frames are given back").toEqual([[1, 3], [2]]);
  viewer.end(1);
  viewer.end(7);
  videos.pump();
  expect([one?.state, two?.state]).toEqual(["closed", "configured"]);
  viewer.give(1, 4, 13);
  videos.pump();
  expect(FakeDecoder.made.length, "a number that is used again is another one").toBe(3);
});

test("a decoder that fails says so of the oldest frame that it owes, and is used no more", async () => {
  const viewer = new FakeViewer();
  const videos = new Videos(viewer, () => undefined);
  viewer.give(1, 1, 10);
  viewer.give(1, 2, 99);
  viewer.give(1, 3, 0);
  viewer.give(1, 4, 10);
  videos.pump();
  await settle();
  expect(viewer.told).toEqual(["not 2", "not 4", "1 is I420 10"]);
  viewer.end(1);
  videos.pump();
  expect(FakeDecoder.made).toHaveLength(1);
});

test("planes that lie in another way, or cannot be copied, are no answer", async () => {
  const viewer = new FakeViewer();
  const videos = new Videos(viewer, () => undefined);
  FakeDecoder.format = "BGRX";
  viewer.give(1, 1, 10);
  videos.pump();
  FakeDecoder.format = "NV12";
  viewer.give(2, 2, 10);
  videos.pump();
  await settle();
  expect(viewer.told).toEqual(["not 1", "2 is NV12 10"]);
  expect(FakeDecoder.made[0]?.closed).toEqual([1]);
});

test("a browser without decoders, or that has none for videos, is not given any", async () => {
  vi.stubGlobal("VideoDecoder", undefined);
  expect(await canDecode()).toBe(false);
  const viewer = new FakeViewer();
  viewer.give(1, 1, 10);
  new Videos(viewer, () => undefined).pump();
  expect(viewer.told).toEqual(["not 1"]);
  vi.stubGlobal("VideoDecoder", FakeDecoder);
  FakeDecoder.supported = false;
  expect(await canDecode()).toBe(false);
  expect(FakeDecoder.made).toEqual([]);
});

test("a browser is tried before it is given videos", async () => {
  expect(await canDecode()).toBe(true);
  expect(FakeDecoder.made[0]?.state).toBe("closed");
  FakeDecoder.format = "BGRX";
  expect(await canDecode()).toBe(false);
  FakeDecoder.format = "I420";
  vi.stubGlobal(
    "VideoDecoder",
    class extends FakeDecoder {
      override decode(): void {
        super.decode({ type: "key", timestamp: 1, data: new Uint8Array([1, 2, 3]) });
      }
    },
  );
  expect(await canDecode(), "other pixels").toBe(false);
});

test("a browser that does not answer is not waited for", async () => {
  vi.useFakeTimers();
  vi.stubGlobal(
    "VideoDecoder",
    class extends FakeDecoder {
      override decode(): void {}
    },
  );
  const can = canDecode();
  await vi.advanceTimersByTimeAsync(1000);
  expect(await can).toBe(false);
  expect(FakeDecoder.made[0]?.state).toBe("closed");
});

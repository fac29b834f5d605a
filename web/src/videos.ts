/**
 * The browser's decoders of a viewer's videos.
 *
 * Invariant: a frame that the viewer gives out is answered by its number, or one before it of the same decoder is said
 * to be undecodable, or the viewer has ended the decoder.
 */

import type { Bytes, EncodedFrame, Viewer } from "./viewer.js";

/** What is used of a {@link Viewer}. */
export type Watched = Pick<Viewer, "pollTask" | "decodedFrame" | "undecodableFrame">;

/** The browser's decoder of one video, and the numbers of frames that it has not given. */
interface Decoder {
  readonly codec: VideoDecoder;
  readonly owed: Set<number>;
}

/** See the module. */
export class Videos {
  readonly #viewer: Watched;
  readonly #onNews: () => void;
  readonly #decoders = new Map<number, Decoder>();

  /** `onNews` is called when the viewer was told something. */
  constructor(viewer: Watched, onNews: () => void) {
    this.#viewer = viewer;
    this.#onNews = onNews;
  }

  /** Does what the viewer wants done. */
  pump(): void {
    for (let task = this.#viewer.pollTask(); task !== undefined; task = this.#viewer.pollTask()) {
      if (task.kind === "decode") {
        this.#decode(task.decoder, task.frame);
      } else {
        this.#end(task.decoder);
      }
    }
  }

  #decode(key: number, { number, isKey, data }: EncodedFrame): void {
    try {
      const { codec, owed } = this.#decoders.get(key) ?? this.#begin(key);
      owed.add(number);
      codec.decode(new EncodedVideoChunk({ type: isKey ? "key" : "delta", timestamp: number, data }));
    } catch {
      // There is none, or it has failed.
      this.#viewer.undecodableFrame(number);
    }
  }

  #begin(key: number): Decoder {
    const owed = new Set<number>();
    const codec = new VideoDecoder({
      output: (frame) => {
        owed.delete(frame.timestamp);
        this.#answer(frame);
      },
      error: () => {
        const [first] = owed;
        if (first !== undefined) {
          this.#viewer.undecodableFrame(first);
          this.#onNews();
        }
      },
    });
    const decoder = { codec, owed };
    this.#decoders.set(key, decoder);
    codec.configure(CONFIG);
    return decoder;
  }

  #end(key: number): void {
    const codec = this.#decoders.get(key)?.codec;
    this.#decoders.delete(key);
    // One that has failed is closed.
    if (codec !== undefined && codec.state !== "closed") {
      codec.close();
    }
  }

  async #answer(frame: VideoFrame): Promise<void> {
    const number = frame.timestamp;
    const planes = await planesOf(frame);
    if (planes === undefined) {
      this.#viewer.undecodableFrame(number);
    } else {
      this.#viewer.decodedFrame(number, planes.layout, planes.bytes);
    }
    this.#onNews();
  }
}

/** Whether the browser decodes videos, and gives what was encoded: it is tried. */
export async function canDecode(): Promise<boolean> {
  if (typeof VideoDecoder === "undefined") {
    return false;
  }
  const told = await VideoDecoder.isConfigSupported(CONFIG).catch(() => undefined);
  return told?.supported === true && (await isRight(await tried()));
}

/** The sample, decoded; nothing if the browser cannot, or takes too long. */
async function tried(): Promise<VideoFrame | undefined> {
  let decoder: VideoDecoder | undefined;
  let patience: ReturnType<typeof setTimeout> | undefined;
  const frame = new Promise<VideoFrame | undefined>((give) => {
    patience = setTimeout(() => give(undefined), PATIENCE);
    try {
      decoder = new VideoDecoder({ output: give, error: () => give(undefined) });
      decoder.configure(CONFIG);
      decoder.decode(new EncodedVideoChunk({ type: "key", timestamp: 1, data: SAMPLE }));
    } catch {
      give(undefined);
    }
  });
  try {
    return await frame;
  } finally {
    clearTimeout(patience);
    if (decoder !== undefined && decoder.state !== "closed") {
      decoder.close();
    }
  }
}

async function isRight(frame: VideoFrame | undefined): Promise<boolean> {
  const planes = frame && (await planesOf(frame));
  // Both layouts begin their colours with the blue one, and end them with the red one.
  const [luma, blue, red] = [planes?.bytes[0], planes?.bytes[256], planes?.bytes.at(-1)];
  return planes?.bytes.length === 384 && luma === 126 && blue === 96 && red === 157;
}

interface Planes {
  readonly layout: "I420" | "NV12";
  readonly bytes: Bytes;
}

/** A picture as its decoder has it; nothing if that is another way than those known here. The frame is closed. */
async function planesOf(frame: VideoFrame): Promise<Planes | undefined> {
  const layout = frame.format;
  try {
    if (layout !== "I420" && layout !== "NV12") {
      return undefined;
    }
    const bytes = new Uint8Array(frame.allocationSize());
    await frame.copyTo(bytes);
    return { layout, bytes };
  } catch {
    return undefined;
  } finally {
    frame.close();
  }
}

/**
 * Constrained baseline profile, and the highest level there is: what a frame says of itself counts. Without a
 * description, parameters come with key frames. A GPU would have to give its pictures back.
 */
const CONFIG: VideoDecoderConfig = {
  codec: "avc1.42E034",
  optimizeForLatency: true,
  hardwareAcceleration: "prefer-software",
};

/** A key frame of 16 × 16 pixels in one colour: as OpenH264 writes it, parameters, parameters, a slice. */
const SAMPLE = new Uint8Array([
  ...[0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x34, 0x8c, 0x69, 0xe9, 0xa8, 8, 8, 8, 0x3c, 0x22, 0x11, 0xa8],
  ...[0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80],
  ...[0, 0, 0, 1, 0x65, 0xb8, 0, 4, 9, 0xe2, 0x31, 0x41, 0x8e, 0, 2, 3, 0xf1, 0xc0, 0, 0x40, 0x63],
]);

/** Milliseconds that it may take. */
const PATIENCE = 1000;

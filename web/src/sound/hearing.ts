/**
 * A viewer's sound, on its way to the page's loudspeaker: the browser decodes it, and the loudspeaker asks for it.
 *
 * Invariant: every payload that the viewer gives out is answered in its turn, or it is told that none is.
 */

import type { Bytes, Viewer } from "../viewer.js";
import type { Ask } from "./store.js";

/** What is used of a {@link Viewer}. */
export type Heard = Pick<
  Viewer,
  "listen" | "pollEncoded" | "decoded" | "undecoded" | "askSound" | "answerSound"
>;

/** See the module. */
export class Hearing {
  /** Milliseconds until what is played is heard. */
  latency = 0;
  readonly #viewer: Heard;
  readonly #onNews: () => void;
  #port: MessagePort | undefined;
  #decoder: AudioDecoder | undefined;
  /** When a decoder that has failed is replaced. */
  #rests = 0;

  /** `onNews` is called when the viewer was told something. */
  constructor(viewer: Heard, onNews: () => void) {
    this.#viewer = viewer;
    this.#onNews = onNews;
  }

  /** There is a loudspeaker behind this port, or none. */
  async listen(port: MessagePort | undefined): Promise<void> {
    this.#port?.close();
    this.#port = port;
    const codec = (await canDecode()) ? OPUS : SAMPLES;
    // It may have been turned off meanwhile.
    if (this.#port !== port) {
      return;
    }
    this.#viewer.listen(port === undefined ? NOTHING : codec);
    if (port !== undefined) {
      port.onmessage = ({ data }: MessageEvent<Ask>) => {
        this.#viewer.askSound(data, this.latency);
        this.#onNews();
      };
    }
    this.#onNews();
  }

  /** Does what the viewer wants done. */
  pump(): void {
    for (let next = this.#viewer.pollEncoded(); next !== undefined; next = this.#viewer.pollEncoded()) {
      this.#decode(next);
    }
    const answer = this.#viewer.answerSound();
    if (answer !== undefined) {
      this.#port?.postMessage(answer, [answer.buffer]);
    }
  }

  #decode(data: Bytes): void {
    if (typeof AudioDecoder === "undefined" || performance.now() < this.#rests) {
      this.#viewer.undecoded();
    } else {
      this.#decoder ??= this.#begin();
      const timestamp = Math.round(1000 * performance.now());
      this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp, data }));
    }
  }

  #begin(): AudioDecoder {
    const decoder = new AudioDecoder({
      output: (sound) => {
        const length = sound.numberOfFrames;
        const samples = new Float32Array(2 * length);
        for (const channel of [0, 1]) {
          const planeIndex = Math.min(channel, sound.numberOfChannels - 1);
          const plane = samples.subarray(channel * length, (channel + 1) * length);
          sound.copyTo(plane, { planeIndex, format: "f32-planar" });
        }
        sound.close();
        if (decoder === this.#decoder) {
          this.#viewer.decoded(samples);
        }
      },
      error: () => {
        this.#decoder = undefined;
        this.#rests = performance.now() + REST;
        this.#viewer.undecoded();
      },
    });
    decoder.configure(CONFIG);
    return decoder;
  }
}

async function canDecode(): Promise<boolean> {
  if (typeof AudioDecoder === "undefined") {
    return false;
  }
  return AudioDecoder.isConfigSupported(CONFIG).then(
    ({ supported }) => supported ?? false,
    () => false,
  );
}

const CONFIG: AudioDecoderConfig = { codec: "opus", sampleRate: 48_000, numberOfChannels: 2 };
/** What the viewer may listen to. */
const [NOTHING, OPUS, SAMPLES] = [0, 1, 2];
/** Milliseconds without sound after a payload that cannot be decoded. */
const REST = 500;

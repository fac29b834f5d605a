/**
 * A viewer's sound, on its way to the page's loudspeaker: the browser decodes it, and the loudspeaker asks for it.
 *
 * Invariant: every payload that the viewer gives out is answered by its number, or a later one is, or it is told that
 * none will be.
 */

import type { Encoded, Viewer } from "../viewer.js";
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
  /** What the decoder has not answered, the oldest first, and when it was asked. */
  #owed: { readonly number: number; readonly since: number }[] = [];
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
    this.#end();
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
    const [oldest] = this.#owed;
    if (oldest !== undefined && performance.now() - oldest.since >= REST) {
      // It has stopped, or given nothing for some payload.
      this.#end();
    }
    for (let next = this.#viewer.pollEncoded(); next !== undefined; next = this.#viewer.pollEncoded()) {
      this.#decode(next);
    }
    const answer = this.#viewer.answerSound();
    if (answer !== undefined) {
      this.#port?.postMessage(answer, [answer.buffer]);
    }
  }

  #decode({ number, data }: Encoded): void {
    const now = performance.now();
    if (typeof AudioDecoder === "undefined" || now < this.#rests) {
      this.#viewer.undecoded();
    } else {
      this.#decoder ??= this.#begin();
      this.#owed.push({ number, since: now });
      this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: number, data }));
    }
  }

  #begin(): AudioDecoder {
    const decoder = new AudioDecoder({
      output: (sound) => {
        const samples = samplesOf(sound);
        const number = decoder === this.#decoder ? this.#answered(sound.timestamp) : undefined;
        sound.close();
        if (number !== undefined) {
          this.#viewer.decoded(number, samples);
        }
      },
      error: () => {
        if (decoder === this.#decoder) {
          this.#rests = performance.now() + REST;
          this.#end();
        }
      },
    });
    decoder.configure(CONFIG);
    return decoder;
  }

  /** Which payload it is: Firefox gives back what it was told, Chromium counts on from the first, in their order. */
  #answered(timestamp: number): number | undefined {
    const place = this.#owed.findIndex(({ number }) => number === timestamp);
    return this.#owed.splice(0, Math.max(place, 0) + 1).at(-1)?.number;
  }

  /** What the decoder owes will not come; the next payload has another one. */
  #end(): void {
    const decoder = this.#decoder;
    if (decoder === undefined) {
      return;
    }
    [this.#decoder, this.#owed] = [undefined, []];
    if (decoder.state !== "closed") {
      decoder.close();
    }
    this.#viewer.undecoded();
  }
}

/** The left channel, then the right one. */
function samplesOf(sound: AudioData): Float32Array {
  const length = sound.numberOfFrames;
  const samples = new Float32Array(2 * length);
  for (const channel of [0, 1]) {
    const planeIndex = Math.min(channel, sound.numberOfChannels - 1);
    const plane = samples.subarray(channel * length, (channel + 1) * length);
    sound.copyTo(plane, { planeIndex, format: "f32-planar" });
  }
  return samples;
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
/** Milliseconds without sound after a payload that cannot be decoded, or until a decoder that does not answer is one. */
const REST = 500;

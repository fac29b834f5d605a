/** The page's audio worklet: it plays what a worker answers, on a thread of its own. */

import { Store } from "./sound/store.js";

/** What a worklet is for this script. */
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

class Loudspeaker extends AudioWorkletProcessor {
  #store: Store | undefined;
  #worker: MessagePort | undefined;

  constructor() {
    super();
    // The page hands over a way to its worker, and another one to the next.
    this.port.onmessage = ({ data: worker }: MessageEvent<MessagePort>) => {
      this.#worker?.close();
      this.#worker = worker;
      const store = new Store((ask) => worker.postMessage(ask));
      worker.onmessage = ({ data }: MessageEvent<Float32Array>) => store.take(data);
      this.#store = store;
    };
  }

  process(_inputs: unknown, [output]: Float32Array[][]): boolean {
    const [left, right] = output ?? [];
    if (left !== undefined && right !== undefined) {
      this.#store?.play(left, right);
    }
    return true;
  }
}

registerProcessor("loudspeaker", Loudspeaker);
